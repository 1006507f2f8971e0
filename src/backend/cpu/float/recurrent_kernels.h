/* Products of rows with a packed matrix, and what recurrent cells make of the sums. */
#ifndef QN_CPU_RECURRENT_KERNELS_H
#define QN_CPU_RECURRENT_KERNELS_H

#include "backend/cpu/float/kernels.h"
#include "backend/cpu/simd/vec_math.h"

enum {
    PANEL = QN_PANEL_VECTORS * VEC_WIDTH,
    /* Panels that one row meets at a time. */
    GROUP_PANELS = 4,
    /* Panels that four rows meet at a time. */
    TILE_PANELS = VEC_WIDTH == 16 ? 2 : 1,
    TILE_VECTORS = GROUP_PANELS * QN_PANEL_VECTORS,
    TILE_ROWS = 4
};

/* y += M x for `rows` rows and `panels` panels, numbers that the compiler knows: the sums stay in
 * registers. Every sum goes through the depth in order, so that it does not depend on the tile. */
VEC_INLINE void product_tile(const qn_product *p, int64_t row, int64_t panel, int rows, int panels)
{
    const int vectors = panels * QN_PANEL_VECTORS;
    const float *const *x = p->x + row, *m = p->m + panel * p->depth * PANEL;
    float *y = p->y + row * p->y_stride + panel * PANEL;
    vec sums[TILE_ROWS][TILE_VECTORS], w[TILE_VECTORS];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            sums[r][v] = vec_load(y + r * p->y_stride + v * VEC_WIDTH);
    }
    for (int64_t i = 0; i < p->depth; i++) {
        for (int v = 0; v < vectors; v++)
            w[v] = vec_load(m + (v / QN_PANEL_VECTORS * p->depth + i) * PANEL +
                            v % QN_PANEL_VECTORS * VEC_WIDTH);
        for (int r = 0; r < rows; r++) {
            const vec a = vec_set(x[r][i]);
            for (int v = 0; v < vectors; v++)
                sums[r][v] = vec_fma(a, w[v], sums[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            vec_store(y + r * p->y_stride + v * VEC_WIDTH, sums[r][v]);
    }
}

/* All rows with a few panels, which come from far once. */
VEC_INLINE void product_group(const qn_product *p, int64_t panel, int panels)
{
    const int tile = panels < TILE_PANELS ? panels : TILE_PANELS;
    int64_t row = 0;
    for (; row + 4 <= p->rows; row += 4) {
        for (int q = 0; q < panels; q += tile)
            product_tile(p, row, panel + q, 4, tile);
    }
    for (; row + 2 <= p->rows; row += 2) {
        for (int q = 0; q < panels; q += tile)
            product_tile(p, row, panel + q, 2, tile);
    }
    for (; row < p->rows; row++)
        product_tile(p, row, panel, 1, panels);
}

static void product(const qn_product *p)
{
    int64_t panel = 0;
    for (; panel + GROUP_PANELS <= p->panels; panel += GROUP_PANELS)
        product_group(p, panel, GROUP_PANELS);
    for (; panel < p->panels; panel++)
        product_group(p, panel, 1);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* c = f * c + i * tanh(g), h = o * tanh(c); gates i, o, f, g */
static void lstm_gates(const qn_gates *s, int64_t first, int64_t last)
{
    for (int64_t k = first; k < last; k += VEC_WIDTH) {
        const vec i = vec_sigmoid(vec_load(s->sums + k));
        const vec o = vec_sigmoid(vec_load(s->sums + s->pitch + k));
        const vec f = vec_sigmoid(vec_load(s->sums + 2 * s->pitch + k));
        const vec g = vec_tanh(vec_load(s->sums + 3 * s->pitch + k));
        const vec next = vec_fma(f, vec_load(s->c + k), vec_mul(i, g));
        vec_store(s->c + k, next);
        vec_store(s->next + k, vec_mul(o, vec_tanh(next)));
    }
}

/* r . h, with which the product of the third gate begins; gates z, r, n */
static void gru_reset(const qn_gates *s, int64_t first, int64_t last)
{
    for (int64_t k = first; k < last; k += VEC_WIDTH) {
        const vec r = vec_sigmoid(vec_load(s->sums + s->pitch + k));
        vec_store(s->next + k, vec_mul(r, vec_load(s->h + k)));
    }
}

/* h = (1 - z) . n + z . h */
VEC_INLINE void gru_blend(const qn_gates *s, int64_t k, vec fresh)
{
    const vec z = vec_sigmoid(vec_load(s->sums + k)), n = vec_tanh(fresh);
    const vec kept = vec_mul(z, vec_load(s->h + k));
    vec_store(s->next + k, vec_fma(vec_sub(vec_set(1), z), n, kept));
}

static void gru_gates(const qn_gates *s, int64_t first, int64_t last)
{
    for (int64_t k = first; k < last; k += VEC_WIDTH)
        gru_blend(s, k, vec_load(s->sums + 2 * s->pitch + k));
}

/* The reset gate meets the product instead of the state. */
static void gru_gates_linear(const qn_gates *s, int64_t first, int64_t last)
{
    for (int64_t k = first; k < last; k += VEC_WIDTH) {
        const vec r = vec_sigmoid(vec_load(s->sums + s->pitch + k));
        const vec input = vec_load(s->sums + 2 * s->pitch + k);
        gru_blend(s, k, vec_fma(r, vec_load(s->recurrent + k), input));
    }
}

static void rnn_tanh(const qn_gates *s, int64_t first, int64_t last)
{
    for (int64_t k = first; k < last; k += VEC_WIDTH)
        vec_store(s->next + k, vec_tanh(vec_load(s->sums + k)));
}

static void rnn_relu(const qn_gates *s, int64_t first, int64_t last)
{
    for (int64_t k = first; k < last; k += VEC_WIDTH)
        vec_store(s->next + k, vec_max(vec_set(0), vec_load(s->sums + k)));
}

static qn_gates_fn *const gates[QN_CELL_COUNT] = {
    [QN_CELL_LSTM] = lstm_gates,     [QN_CELL_GRU] = gru_gates,
    [QN_CELL_GRU_RESET] = gru_reset, [QN_CELL_GRU_LINEAR] = gru_gates_linear,
    [QN_CELL_RNN_TANH] = rnn_tanh,   [QN_CELL_RNN_RELU] = rnn_relu,
};

#endif
