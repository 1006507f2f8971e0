/* Products of a packed matrix with a vector, and the gates of an LSTM. */
#ifndef QN_LSTM_KERNELS_H
#define QN_LSTM_KERNELS_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/vec_math.h"

enum { LSTM_VECTORS = 8 }; /* of results held in registers */

/* y[0, count) += sum over i of x[i] * m[i * rows + 0..count), at most LSTM_VECTORS vectors */
static void product_block(float *y, const float *m, const float *x, int64_t columns, int64_t rows,
                          int64_t count)
{
    vec sums[LSTM_VECTORS];
    for (int v = 0; v < LSTM_VECTORS; v++) {
        const int64_t left = count - v * VEC_WIDTH;
        sums[v] = left <= 0           ? vec_set(0)
                  : left >= VEC_WIDTH ? vec_load(y + v * VEC_WIDTH)
                                      : vec_load_first(y + v * VEC_WIDTH, left);
    }
    if (count == LSTM_VECTORS * VEC_WIDTH) {
        for (int64_t i = 0; i < columns; i++) {
            const vec a = vec_set(x[i]);
            for (int v = 0; v < LSTM_VECTORS; v++)
                sums[v] = vec_fma(a, vec_load(m + i * rows + v * VEC_WIDTH), sums[v]);
        }
    } else {
        for (int64_t i = 0; i < columns; i++) {
            const vec a = vec_set(x[i]);
            for (int v = 0; v * VEC_WIDTH < count; v++) {
                const int64_t left = QN_MIN(count - v * VEC_WIDTH, VEC_WIDTH);
                const vec w = vec_load_first(m + i * rows + v * VEC_WIDTH, left);
                sums[v] = vec_fma(a, w, sums[v]);
            }
        }
    }
    for (int v = 0; v * VEC_WIDTH < count; v++)
        vec_store_first(y + v * VEC_WIDTH, sums[v], QN_MIN(count - v * VEC_WIDTH, VEC_WIDTH));
}

static void product(float *y, const float *m, const float *x, int64_t columns, int64_t rows,
                    int64_t count)
{
    const int64_t block = LSTM_VECTORS * VEC_WIDTH;
    for (int64_t r = 0; r < count; r += block)
        product_block(y + r, m + r, x, columns, rows, QN_MIN(block, count - r));
}

/* c = f * c + i * tanh(g), h = o * tanh(c); gates [i, o, f, g] of `hidden` each */
static void lstm_gates(float *h, float *c, const float *gates, int64_t hidden)
{
    for (int64_t k = 0; k < hidden; k += VEC_WIDTH) {
        const int64_t count = QN_MIN(VEC_WIDTH, hidden - k);
        const vec i = vec_sigmoid(vec_load_first(gates + k, count));
        const vec o = vec_sigmoid(vec_load_first(gates + hidden + k, count));
        const vec f = vec_sigmoid(vec_load_first(gates + 2 * hidden + k, count));
        const vec g = vec_tanh(vec_load_first(gates + 3 * hidden + k, count));
        const vec next = vec_fma(f, vec_load_first(c + k, count), vec_mul(i, g));
        vec_store_first(c + k, next, count);
        vec_store_first(h + k, vec_mul(o, vec_tanh(next)), count);
    }
}

#endif
