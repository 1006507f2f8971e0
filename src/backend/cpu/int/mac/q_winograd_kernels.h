/* Transforms of q_winograd.h. Included by int8_mac_kernels.h, behind mac_sums and mac_end. */
#ifndef QN_CPU_Q_WINOGRAD_KERNELS_H
#define QN_CPU_Q_WINOGRAD_KERNELS_H

#include "backend/cpu/int/conv/q_winograd.h"

/* B' d: 16-bit numbers */
Q_INLINE void wino_to_input(qi v[QN_Q_WINOGRAD_IN], const qi d[QN_Q_WINOGRAD_IN])
{
    const qi a = qi_sub_int16(d[4], qi_shift_int16(d[2], 2));
    const qi b = qi_sub_int16(d[3], qi_shift_int16(d[1], 2));
    const qi c = qi_sub_int16(d[4], d[2]);
    const qi e = qi_sub_int16(d[3], d[1]), twice = qi_add_int16(e, e);
    v[0] = qi_add_int16(qi_shift_int16(qi_sub_int16(d[0], d[2]), 2), c);
    v[1] = qi_add_int16(a, b);
    v[2] = qi_sub_int16(a, b);
    v[3] = qi_add_int16(c, twice);
    v[4] = qi_sub_int16(c, twice);
    v[5] = qi_sub_int16(qi_sub_int16(d[5], d[3]), qi_shift_int16(e, 2));
}

static void wino_input(const qn_q_winograd_input *in)
{
    const int64_t row = in->row, pixel = in->pixel, step = in->xi_step;
    for (int64_t at = 0; at < in->channels * 2; at += QI_BYTES) {
        qi columns[QN_Q_WINOGRAD_IN][QN_Q_WINOGRAD_IN]; /* [right][down] */
        for (int j = 0; j < QN_Q_WINOGRAD_IN; j++) {
            const uint8_t *x = in->x + at + j * pixel;
            qi d[QN_Q_WINOGRAD_IN];
#pragma GCC unroll 6
            for (int i = 0; i < QN_Q_WINOGRAD_IN; i++)
                d[i] = qi_load(x + i * row);
            wino_to_input(columns[j], d);
        }
        for (int i = 0; i < QN_Q_WINOGRAD_IN; i++) {
            uint8_t *to = in->v + at + i * QN_Q_WINOGRAD_IN * step;
            qi d[QN_Q_WINOGRAD_IN], v[QN_Q_WINOGRAD_IN];
#pragma GCC unroll 6
            for (int j = 0; j < QN_Q_WINOGRAD_IN; j++)
                d[j] = columns[j][i];
            wino_to_input(v, d);
#pragma GCC unroll 6
            for (int j = 0; j < QN_Q_WINOGRAD_IN; j++)
                qi_store(to + j * step, v[j]);
        }
    }
}

/* (A K')' m */
Q_INLINE void wino_to_output(qi y[QN_Q_WINOGRAD_OUT], const qi m[QN_Q_WINOGRAD_IN])
{
    const qi s = qi_shift_left(qi_add(m[1], m[2]), 2), d = qi_shift_left(qi_sub(m[1], m[2]), 2);
    const qi c = qi_add(m[3], m[4]), e = qi_sub(m[3], m[4]);
    y[0] = qi_add(qi_add(qi_add(m[0], m[0]), s), c);
    y[1] = qi_add(d, qi_add(e, e));
    y[2] = qi_add(s, qi_shift_left(c, 2));
    y[3] = qi_add(d, qi_shift_left(qi_add(e, m[5]), 3));
}

/* One vector of filters: sums[row][column][vector], with what sums begin with. */
Q_INLINE void wino_sums(qi *sums, const uint8_t *m, int64_t step, const int32_t *start)
{
    const qi first = qi_load(start), ninth = qi_set(0x38e38e39); /* 9 * this = 1 modulo 2^32 */
    qi columns[QN_Q_WINOGRAD_IN][QN_Q_WINOGRAD_OUT];             /* [right][down] */
    for (int j = 0; j < QN_Q_WINOGRAD_IN; j++) {
        qi d[QN_Q_WINOGRAD_IN];
#pragma GCC unroll 6
        for (int i = 0; i < QN_Q_WINOGRAD_IN; i++)
            d[i] = qi_load(m + (i * QN_Q_WINOGRAD_IN + j) * step);
        wino_to_output(columns[j], d);
    }
    for (int i = 0; i < QN_Q_WINOGRAD_OUT; i++) {
        qi d[QN_Q_WINOGRAD_IN], y[QN_Q_WINOGRAD_OUT];
#pragma GCC unroll 6
        for (int j = 0; j < QN_Q_WINOGRAD_IN; j++)
            d[j] = columns[j][i];
        wino_to_output(y, d);
#pragma GCC unroll 4
        for (int j = 0; j < QN_Q_WINOGRAD_OUT; j++)
            sums[(i * QN_Q_WINOGRAD_OUT + j) * QN_Q_WINOGRAD_VECTORS] =
                qi_add(qi_shift_right(qi_mul(y[j], ninth), 6), first);
    }
}

static void wino_end_row(const qi *sums, const qn_mac *m, const qn_mac_tile *t, int columns)
{
    mac_end(sums, m, t, columns, QN_Q_WINOGRAD_VECTORS);
}

static void wino_output(const qn_mac *m, const qn_q_winograd_output *out)
{
    qi sums[QN_Q_WINOGRAD_OUT * QN_Q_WINOGRAD_OUT * QN_Q_WINOGRAD_VECTORS];
    qn_mac_tile t = out->tile;
    for (int v = 0; v < QN_Q_WINOGRAD_VECTORS; v++)
        wino_sums(sums + v, out->m + v * QI_BYTES, out->xi_step, m->start + t.param + v * QI_LANES);
    for (int64_t i = 0; i < out->rows; i++) {
        const qi *row = sums + i * QN_Q_WINOGRAD_OUT * QN_Q_WINOGRAD_VECTORS;
        const int64_t first = (out->columns + 1) / 2;
        t.y[0] = out->tile.y[0] + i * out->y_row;
        t.y[1] = t.y[0] + first * m->y_step;
        t.r[0] = out->tile.r[0] + i * out->r_row;
        t.r[1] = t.r[0] + first * m->r_step;
        if (out->columns == QN_Q_WINOGRAD_OUT)
            mac_end(row, m, &t, QN_Q_WINOGRAD_OUT, QN_Q_WINOGRAD_VECTORS);
        else
            wino_end_row(row, m, &t, (int)out->columns);
    }
}

Q_INLINE void wino_product(const qn_q_winograd_product *p, int patches)
{
    const int64_t steps[2] = {p->steps, p->tile}, second = mac_half(patches) * p->tile;
    const uint8_t *v = p->v, *u = p->u;
    uint8_t *m = p->m;
    for (int64_t xi = p->xi; xi > 0; xi--) {
        qi sum[QN_MAC_PATCHES * 2];
#pragma GCC unroll 28
        for (int i = 0; i < patches * QN_Q_WINOGRAD_VECTORS; i++)
            sum[i] = qi_set(0);
        mac_segment(sum, mac_grouped(v, v + second, p->tile, patches), u, steps,
                    (mac_size){patches, QN_Q_WINOGRAD_VECTORS, MAC_ALL});
#pragma GCC unroll 28
        for (int i = 0; i < patches * QN_Q_WINOGRAD_VECTORS; i++)
            qi_store(m + i * QI_BYTES, sum[i]);
        v += p->v_xi;
        m += p->m_xi;
        u += p->steps * QN_Q_WINOGRAD_VECTORS * QI_BYTES;
    }
}

#define WINO_PRODUCT(n, v)                                                                         \
    static void wino_product_##n(const qn_q_winograd_product *p)                                   \
    {                                                                                              \
        wino_product(p, n);                                                                        \
    }
MAC_TILES(WINO_PRODUCT, 2)

#define WINO_ROW(n, v) wino_product_##n,
static qn_q_winograd_product_fn *const wino_products[] = {MAC_TILES(WINO_ROW, 2)};

static const qn_q_winograd_kernels wino_kernels = {wino_input, wino_products, wino_output};

#endif
