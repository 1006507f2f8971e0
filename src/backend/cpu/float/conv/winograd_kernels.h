/* Transforms and products of winograd.h. */
#ifndef QN_CPU_WINOGRAD_KERNELS_H
#define QN_CPU_WINOGRAD_KERNELS_H

#include "backend/cpu/float/conv/epilogue_kernels.h"
#include "backend/cpu/float/conv/winograd.h"

/* Sums kept in registers: WINO_ROWS tiles by two blocks of filters, with room for the operands. */
enum { WINO_ROWS = VEC_WIDTH == 16 ? 14 : 6 };

VEC_INLINE vec wino_constant(double x)
{
    return vec_set((float)x);
}

/* B' of a column or row of six: with the points 0, +-p, +-q. */
VEC_INLINE void wino_from_input(vec *o, const vec *d)
{
    const vec p = wino_constant(QN_WINOGRAD_P), q = wino_constant(QN_WINOGRAD_Q);
    const vec pp = wino_constant(QN_WINOGRAD_P * QN_WINOGRAD_P),
              qq = wino_constant(QN_WINOGRAD_Q * QN_WINOGRAD_Q);
    const vec product =
        wino_constant(QN_WINOGRAD_P * QN_WINOGRAD_P * QN_WINOGRAD_Q * QN_WINOGRAD_Q);
    const vec sum = wino_constant(QN_WINOGRAD_P * QN_WINOGRAD_P + QN_WINOGRAD_Q * QN_WINOGRAD_Q);
    const vec even_q = vec_fnma(qq, d[2], d[4]), odd_q = vec_fnma(qq, d[1], d[3]);
    const vec even_p = vec_fnma(pp, d[2], d[4]), odd_p = vec_fnma(pp, d[1], d[3]);
    o[0] = vec_fma(product, d[0], vec_fnma(sum, d[2], d[4]));
    o[1] = vec_fma(p, odd_q, even_q);
    o[2] = vec_fnma(p, odd_q, even_q);
    o[3] = vec_fma(q, odd_p, even_p);
    o[4] = vec_fnma(q, odd_p, even_p);
    o[5] = vec_fma(product, d[1], vec_fnma(sum, d[3], d[5]));
}

/* A' of six: the values of powers 0 to 3 at the points. */
VEC_INLINE void wino_to_output(vec *o, const vec *m)
{
    const vec p = wino_constant(QN_WINOGRAD_P), q = wino_constant(QN_WINOGRAD_Q);
    const vec pp = wino_constant(QN_WINOGRAD_P * QN_WINOGRAD_P),
              qq = wino_constant(QN_WINOGRAD_Q * QN_WINOGRAD_Q);
    const vec ppp = wino_constant(QN_WINOGRAD_P * QN_WINOGRAD_P * QN_WINOGRAD_P);
    const vec qqq = wino_constant(QN_WINOGRAD_Q * QN_WINOGRAD_Q * QN_WINOGRAD_Q);
    const vec even_p = vec_add(m[1], m[2]), odd_p = vec_sub(m[1], m[2]);
    const vec even_q = vec_add(m[3], m[4]), odd_q = vec_sub(m[3], m[4]);
    o[0] = vec_add(vec_add(m[0], even_p), even_q);
    o[1] = vec_fma(p, odd_p, vec_mul(q, odd_q));
    o[2] = vec_fma(pp, even_p, vec_mul(qq, even_q));
    o[3] = vec_fma(ppp, odd_p, vec_fma(qqq, odd_q, m[5]));
}

/* ---- Input ----------------------------------------------------------------------------------- */

/* One tile; its rows lie `row` floats apart. */
VEC_INLINE void wino_input_tile(float *v, int64_t xi_step, const float *x, int64_t row)
{
    vec t[QN_WINOGRAD_IN][QN_WINOGRAD_IN];
    for (int j = 0; j < QN_WINOGRAD_IN; j++) {
        vec d[QN_WINOGRAD_IN], o[QN_WINOGRAD_IN];
        for (int i = 0; i < QN_WINOGRAD_IN; i++)
            d[i] = vec_load(x + i * row + j * VEC_WIDTH);
        wino_from_input(o, d);
        for (int i = 0; i < QN_WINOGRAD_IN; i++)
            t[i][j] = o[i];
    }
    for (int i = 0; i < QN_WINOGRAD_IN; i++) {
        vec o[QN_WINOGRAD_IN];
        wino_from_input(o, t[i]);
        for (int j = 0; j < QN_WINOGRAD_IN; j++)
            vec_store(v + (i * QN_WINOGRAD_IN + j) * xi_step, o[j]);
    }
}

/* A tile that reaches over the edge, with zeros there. */
static void wino_edge_tile(const qn_winograd *w, float *tile, const float *x, int64_t top,
                           int64_t left)
{
    for (int64_t i = 0; i < QN_WINOGRAD_IN; i++) {
        for (int64_t j = 0; j < QN_WINOGRAD_IN; j++) {
            const int64_t y = top + i, z = left + j;
            const bool inside = y >= 0 && y < w->height && z >= 0 && z < w->width;
            vec_store(tile + (i * QN_WINOGRAD_IN + j) * VEC_WIDTH,
                      inside ? vec_load(x + (y * w->width + z) * VEC_WIDTH) : vec_set(0));
        }
    }
}

static void wino_input(const qn_winograd *w, float *v, int64_t xi_step, const float *x,
                       int64_t first, int64_t last)
{
    float edge[QN_WINOGRAD_XI * VEC_WIDTH];
    for (int64_t t = first; t < last; t++, v += VEC_WIDTH) {
        const int64_t n = t / w->tiles_of_sample, at = t % w->tiles_of_sample;
        const int64_t top = at / w->tiles_across * QN_WINOGRAD_OUT - w->pad_top;
        const int64_t left = at % w->tiles_across * QN_WINOGRAD_OUT - w->pad_left;
        const float *sample = x + n * w->x_stride;
        if (top >= 0 && left >= 0 && top + QN_WINOGRAD_IN <= w->height &&
            left + QN_WINOGRAD_IN <= w->width) {
            wino_input_tile(v, xi_step, sample + (top * w->width + left) * VEC_WIDTH,
                            w->width * VEC_WIDTH);
        } else {
            wino_edge_tile(w, edge, sample, top, left);
            wino_input_tile(v, xi_step, edge, QN_WINOGRAD_IN * VEC_WIDTH);
        }
    }
}

/* ---- Products -------------------------------------------------------------------------------- */

VEC_INLINE void wino_block(const qn_winograd_product *p, int tiles, int blocks)
{
    vec sums[WINO_ROWS][2];
    const float *v = p->v, *u = p->u;
    for (int t = 0; t < tiles; t++)
        sums[t][0] = sums[t][1] = vec_set(0);
    for (int64_t block = 0; block < p->channel_blocks; block++, v += p->v_step) {
        VEC_ROLLED
        for (int c = 0; c < VEC_WIDTH; c++, u += 2 * VEC_WIDTH) {
            const vec u0 = vec_load(u), u1 = blocks > 1 ? vec_load(u + VEC_WIDTH) : u0;
#pragma GCC unroll 14
            for (int t = 0; t < tiles; t++) {
                const vec x = vec_set(v[t * VEC_WIDTH + c]);
                sums[t][0] = vec_fma(x, u0, sums[t][0]);
                if (blocks > 1)
                    sums[t][1] = vec_fma(x, u1, sums[t][1]);
            }
        }
    }
    for (int t = 0; t < tiles; t++) {
        vec_store(p->m + t * VEC_WIDTH, sums[t][0]);
        if (blocks > 1)
            vec_store(p->m + p->m_step + t * VEC_WIDTH, sums[t][1]);
    }
}

#define WINO_CASE(tiles)                                                                           \
    case tiles:                                                                                    \
        if (p->blocks == 2)                                                                        \
            wino_block(p, tiles, 2);                                                               \
        else                                                                                       \
            wino_block(p, tiles, 1);                                                               \
        break;

static void wino_product(const qn_winograd_product *p)
{
    switch (p->tiles) {
        WINO_CASE(1)
        WINO_CASE(2)
        WINO_CASE(3)
        WINO_CASE(4)
        WINO_CASE(5)
        WINO_CASE(6)
#if defined(__AVX512F__)
        WINO_CASE(7)
        WINO_CASE(8)
        WINO_CASE(9)
        WINO_CASE(10)
        WINO_CASE(11)
        WINO_CASE(12)
        WINO_CASE(13)
        WINO_CASE(14)
#endif
    default: break;
    }
}

/* ---- Output ---------------------------------------------------------------------------------- */

VEC_INLINE void wino_output_tile(const qn_winograd *w, const qn_winograd_result *to, const float *m,
                                 int64_t offset, int64_t rows, int64_t columns)
{
    const vec bias = vec_load(w->bias + to->block * VEC_WIDTH);
    vec q[QN_WINOGRAD_OUT][QN_WINOGRAD_IN];
    for (int j = 0; j < QN_WINOGRAD_IN; j++) {
        vec d[QN_WINOGRAD_IN], o[QN_WINOGRAD_OUT];
        for (int i = 0; i < QN_WINOGRAD_IN; i++)
            d[i] = vec_load(m + (i * QN_WINOGRAD_IN + j) * to->xi_step);
        wino_to_output(o, d);
        for (int i = 0; i < QN_WINOGRAD_OUT; i++)
            q[i][j] = o[i];
    }
    for (int i = 0; i < rows; i++) {
        vec o[QN_WINOGRAD_OUT];
        wino_to_output(o, q[i]);
        for (int j = 0; j < QN_WINOGRAD_OUT; j++)
            o[j] = vec_add(o[j], bias);
        const int64_t at = offset + i * w->out_width * VEC_WIDTH;
        if (columns == QN_WINOGRAD_OUT) {
            epilogue_vectors(o, QN_WINOGRAD_OUT, &w->end.fused, to->r + at);
            for (int j = 0; j < QN_WINOGRAD_OUT; j++)
                vec_store(to->y + at + j * VEC_WIDTH, o[j]);
            continue;
        }
        for (int j = 0; j < columns; j++) {
            epilogue_vectors(o + j, 1, &w->end.fused, to->r + at + j * VEC_WIDTH);
            vec_store(to->y + at + j * VEC_WIDTH, o[j]);
        }
    }
}

static void wino_output(const qn_winograd *w, const qn_winograd_result *to, int64_t first,
                        int64_t last)
{
    const float *m = to->m;
    for (int64_t t = first; t < last; t++, m += VEC_WIDTH) {
        const int64_t n = t / w->tiles_of_sample, at = t % w->tiles_of_sample;
        const int64_t y = at / w->tiles_across * QN_WINOGRAD_OUT;
        const int64_t x = at % w->tiles_across * QN_WINOGRAD_OUT;
        const int64_t rows =
            w->out_height - y < QN_WINOGRAD_OUT ? w->out_height - y : QN_WINOGRAD_OUT;
        const int64_t columns =
            w->out_width - x < QN_WINOGRAD_OUT ? w->out_width - x : QN_WINOGRAD_OUT;
        const int64_t inside = (y * w->out_width + x) * VEC_WIDTH;
        const qn_winograd_result sample = {to->y + n * w->end.y_stride,
                                           to->r ? to->r + n * w->end.r_stride
                                                 : to->y + n * w->end.y_stride,
                                           NULL, to->xi_step, to->block};
        wino_output_tile(w, &sample, m, inside, rows, columns);
    }
}

static const qn_winograd_kernels wino_kernels = {WINO_ROWS, wino_input, wino_product, wino_output};

#endif
