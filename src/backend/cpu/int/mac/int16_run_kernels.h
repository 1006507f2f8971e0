/* The tiles of int16_mac_kernels.h by runs of steps (q_mac.h), for instruction sets with few
 * registers: one product and one sum where splitting the weights takes two of both.
 *
 * At the end of a run the upper half of a sum goes to another one, which lies in memory, and the
 * lower half stays: total = 65536 * high + low. */
#ifndef QN_CPU_INT16_RUN_KERNELS_H
#define QN_CPU_INT16_RUN_KERNELS_H

#include "backend/cpu/int/mac/q_tile_kernels.h"
#include "backend/cpu/simd/vec_int16.h"

/* The vector of weights v of a step: bytes or 16-bit numbers. */
Q_INLINE qi run_load(const uint8_t *weights, int v, bool is_int16)
{
    return is_int16 ? qi_load(weights + v * QI_BYTES)
                    : qi_load_int8_as_int16(weights + v * QI_BYTES / 2);
}

/* One step of all patches. size: patches, vectors, 16-bit numbers. */
Q_INLINE void run_step(qi *sum, const mac_groups *g, const uint8_t *weights, int64_t step,
                       const int size[3])
{
    qi w[QN_MAC_VECTORS];
    for (int v = 0; v < size[1]; v++)
        w[v] = run_load(weights, v, size[2]);
#pragma GCC unroll 14
    for (int i = 0; i < size[0]; i++) {
        const qi x = qi_broadcast(mac_patch(g, step, size[0], i));
#pragma GCC unroll 4
        for (int v = 0; v < size[1]; v++)
            sum[i * size[1] + v] = qi_dot_int16(sum[i * size[1] + v], x, w[v]);
    }
}

Q_INLINE void run_end(qi *high, qi *sum, int count)
{
    const qi mask = qi_set(65535);
#pragma GCC unroll 28
    for (int i = 0; i < count; i++) {
        high[i] = qi_add(high[i], qi_upper(sum[i]));
        sum[i] = qi_and(sum[i], mask);
    }
}

/* The totals of a tile, [patches][vectors]. */
Q_INLINE void run_sums(qi *low, qi *high, const qn_mac *m, const qn_mac_tile *t, const int size[3])
{
    const int count = size[0] * size[1];
    const int64_t step_bytes = size[1] * (size[2] ? QI_BYTES : QI_BYTES / 2);
    const uint8_t *weights = t->weights, *runs = t->runs;
    qi sum[QN_MAC_PATCHES * 2];
#pragma GCC unroll 28
    for (int i = 0; i < count; i++)
        sum[i] = high[i] = qi_load(m->start); /* 0 */
    for (int64_t s = 0; s < t->n_segments; s++) {
        mac_groups g = mac_begin(m, t, t->segments[s].offset, size[0]);
        for (int64_t left = t->segments[s].steps; left > 0;) {
            const int64_t run = runs ? *runs : QN_MIN(left, (int64_t)QN_MAC_RUN);
            for (int64_t k = 0; k < run; k++) {
                run_step(sum, &g, weights, m->x_step, size);
                weights += step_bytes;
                for (int i = 0; i < 4; i++)
                    g.at[i] += 4;
            }
            run_end(high, sum, count);
            left -= run;
            runs = runs ? runs + run : NULL;
        }
    }
#pragma GCC unroll 28
    for (int i = 0; i < count; i++)
        low[i] = sum[i];
}

/* ---- Ends ------------------------------------------------------------------------------------ */

Q_INLINE qf run_float(const qn_mac *m, qi low, qi high, int64_t param)
{
    const qd sum = qd_add(qd_of(low), qd_times(qd_of(high), 65536));
    return epilogue_int16(&m->epilogue, qd_add(qd_load(m->begin + param), sum), param);
}

/* The same of what is near 0 (q_mac.h): all numbers are exact, so that only the last sum rounds. */
Q_INLINE void run_floats_near(qf *floats, const qn_mac *m, const qi *low, const qi *high,
                              const int size[3], int64_t param)
{
    for (int v = 0; v < size[1]; v++) {
        const qi upper = qi_load(m->near[1] + param + v * QI_LANES);
        const qi lower = qi_load(m->near[0] + param + v * QI_LANES);
        for (int at = v; at < size[0] * size[1]; at += size[1])
            floats[at] = qf_fma(qi_float(qi_add(high[at], upper)), qf_set(65536),
                                qi_float(qi_add(low[at], lower)));
    }
}

/* Results of 16 bits, all lanes real, without a function. */
Q_INLINE void run_epilogue_int16(const qf *floats, const qn_mac *m, const qn_mac_tile *t,
                                 const int size[3], bool sums)
{
    const qn_q_epilogue *f = &m->epilogue;
    const int first = mac_half(size[0]);
    for (int v = 0; v < size[1]; v++) {
        const q_epilogue_constants k = epilogue_load(f, t->param + v * QI_LANES);
        const int64_t at = v * QI_LANES * 2;
        for (int i = 0; i < size[0]; i++) {
            const int h = i >= first, in = h ? i - first : i;
            qf x = epilogue_scaled(&k, floats[i * size[1] + v]);
            if (sums) {
                const qi r = epilogue_residual(t->r[h] + in * m->r_step + at, f->sum.r_signed, true,
                                               QI_LANES);
                x = epilogue_add(&k, qf_rint(qf_clamp(x, k.low, k.high)), qi_float(r),
                                 f->sum.a_first);
            }
            qi_store_uint16(t->y[h] + in * m->y_step + at, epilogue_last(&k, x), QI_LANES);
        }
    }
}

/* Fused multiply-adds are slow where there is no instruction for them. */
#if defined(__AVX2__)
enum { RUN_NEAR = true };
#else
enum { RUN_NEAR = false };
#endif

Q_INLINE void run_tile(const qn_mac *m, const qn_mac_tile *t, int patches, int vectors,
                       bool is_int16)
{
    const qn_q_epilogue *f = &m->epilogue;
    const int size[3] = {patches, vectors, is_int16}, count = patches * vectors;
    qi low[QN_MAC_PATCHES * 2], high[QN_MAC_PATCHES * 2];
    qf floats[QN_MAC_PATCHES * 2];
    run_sums(low, high, m, t, size);
    if (RUN_NEAR && m->near[0])
        run_floats_near(floats, m, low, high, size, t->param);
    else
        for (int i = 0; i < count; i++)
            floats[i] = run_float(m, low[i], high[i], t->param + i % vectors * QI_LANES);
    if (!f->is_int16 || f->has_function || (f->has_sum && !f->sum.r_is_int16) ||
        t->filters < vectors * QI_LANES)
        mac_epilogue(floats, m, t, patches, vectors);
    else if (f->has_sum)
        run_epilogue_int16(floats, m, t, size, true);
    else
        run_epilogue_int16(floats, m, t, size, false);
}

#define RUN_BYTES_TILE(n, v)                                                                       \
    static void run_bytes_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                         \
    {                                                                                              \
        run_tile(m, t, n, v, false);                                                               \
    }
#define RUN_INT16_TILE(n, v)                                                                       \
    static void run_words_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                         \
    {                                                                                              \
        run_tile(m, t, n, v, true);                                                                \
    }
MAC_TILES(RUN_BYTES_TILE, 1)
MAC_TILES(RUN_BYTES_TILE, 2)
MAC_TILES_BY_4(RUN_BYTES_TILE, 4)
MAC_TILES(RUN_INT16_TILE, 1)
MAC_TILES(RUN_INT16_TILE, 2)
MAC_TILES_BY_4(RUN_INT16_TILE, 4)

#define RUN_BYTES_ROW(n, v) run_bytes_##n##_##v,
#define RUN_INT16_ROW(n, v) run_words_##n##_##v,
static qn_mac_fn *const run_bytes_1[] = {MAC_TILES(RUN_BYTES_ROW, 1)};
static qn_mac_fn *const run_bytes_2[] = {MAC_TILES(RUN_BYTES_ROW, 2)};
static qn_mac_fn *const run_bytes_4[] = {MAC_TILES_BY_4(RUN_BYTES_ROW, 4)};
static qn_mac_fn *const run_int16_1[] = {MAC_TILES(RUN_INT16_ROW, 1)};
static qn_mac_fn *const run_int16_2[] = {MAC_TILES(RUN_INT16_ROW, 2)};
static qn_mac_fn *const run_int16_4[] = {MAC_TILES_BY_4(RUN_INT16_ROW, 4)};

#endif
