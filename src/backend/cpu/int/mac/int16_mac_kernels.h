/* The tiles of q_mac.h where a side has 16 bits. */
#ifndef QN_CPU_INT16_MAC_KERNELS_H
#define QN_CPU_INT16_MAC_KERNELS_H

#include "backend/cpu/int/mac/q_tile_kernels.h"
#include "backend/cpu/simd/vec_int16.h"
#if !defined(__AVX512F__)
#include "backend/cpu/int/mac/int16_run_kernels.h"
#endif

/* How weights are packed: as bytes, as 16-bit numbers, as 16-bit numbers of high and of low bytes;
 * then the most steps without overflow (q_mac.h). */
enum { WEIGHTS_INT8, WEIGHTS_INT16, WEIGHTS_SPLIT };
static const int64_t int16_steps[] = {255, 128, 127};

/* All sums 0: loaded, since the compiler makes a loop of constants a call of memset, and sums that
 * are in memory once stay there. */
Q_INLINE void int16_clear(qi *sum, const qn_mac *m, int count)
{
    const qi zero = qi_load(m->start);
#pragma GCC unroll 28
    for (int i = 0; i < count; i++)
        sum[i] = zero;
}

/* Adds sums of 32 bits to the totals. Two a total with weights of 16-bit numbers: those of the low
 * bytes, then those of the high ones. */
Q_INLINE void int16_flush(qd *totals, const qi *sum, int count, bool is_int16)
{
#pragma GCC unroll 28
    for (int i = 0; i < count; i++) {
        totals[i] = qd_add(totals[i], qd_of(sum[i]));
        if (is_int16)
            totals[i] = qd_add(totals[i], qd_times(qd_of(sum[count + i]), 256));
    }
}

/* The weights of one vector: x * (256 * high + low). */
Q_INLINE void int16_load(qi *low, qi *high, const uint8_t *weights, int v, int type)
{
    const qi w = type == WEIGHTS_INT8    ? qi_load_int8_as_int16(weights + v * QI_BYTES / 2)
                 : type == WEIGHTS_INT16 ? qi_load(weights + v * QI_BYTES)
                                         : qi_load(weights + 2 * v * QI_BYTES);
    *low = type == WEIGHTS_INT16 ? qi_int16_low(w) : w;
    *high = type == WEIGHTS_SPLIT ? qi_load(weights + (2 * v + 1) * QI_BYTES) : qi_int16_high(w);
}

/* One step of all patches. */
Q_INLINE void int16_step(qi *sum, const mac_groups *g, const uint8_t *weights, int64_t step,
                         const int size[3])
{
    const int patches = size[0], vectors = size[1];
    qi low[QN_MAC_VECTORS], high[QN_MAC_VECTORS];
    for (int v = 0; v < vectors; v++)
        int16_load(&low[v], &high[v], weights, v, size[2]);
#pragma GCC unroll 14
    for (int i = 0; i < patches; i++) {
        const qi x = qi_broadcast(mac_patch(g, step, patches, i));
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const int at = i * vectors + v, other = patches * vectors + at;
            sum[at] = qi_dot_int16(sum[at], x, low[v]);
            if (size[2] != WEIGHTS_INT8)
                sum[other] = qi_dot_int16(sum[other], x, high[v]);
        }
    }
}

/* The totals of a tile, [patches][vectors]. size: patches, vectors, type of the weights. */
Q_INLINE void int16_sums(qd *totals, const qn_mac *m, const qn_mac_tile *t, const int size[3])
{
    const int count = size[0] * size[1], is_int16 = size[2] != WEIGHTS_INT8;
    const int64_t most = int16_steps[size[2]], step_bytes = size[1] * (QI_BYTES / 2 << size[2]);
    const uint8_t *weights = t->weights;
    int64_t room = most;
    qi sum[QN_MAC_PATCHES * 2];
    int16_clear(sum, m, is_int16 ? 2 * count : count);
    for (int64_t s = 0; s < t->n_segments; s++) {
        mac_groups g = mac_begin(m, t, t->segments[s].offset, size[0]);
        for (int64_t left = t->segments[s].steps; left > 0;) {
            const int64_t run = left < room ? left : room;
            for (int64_t k = 0; k < run; k++) {
                int16_step(sum, &g, weights, m->x_step, size);
                weights += step_bytes;
                for (int i = 0; i < 4; i++)
                    g.at[i] += 4;
            }
            left -= run;
            room -= run;
            if (room == 0 || (left == 0 && s + 1 == t->n_segments)) {
                int16_flush(totals, sum, count, is_int16);
                int16_clear(sum, m, is_int16 ? 2 * count : count);
                room = most;
            }
        }
    }
}

Q_INLINE void int16_tile(const qn_mac *m, const qn_mac_tile *t, int patches, int vectors, int type)
{
    const int size[3] = {patches, vectors, type};
    qd totals[QN_MAC_PATCHES * 2];
    qf floats[QN_MAC_PATCHES * 2];
    for (int i = 0; i < patches * vectors; i++)
        totals[i] = qd_load(m->begin + t->param + i % vectors * QI_LANES);
    int16_sums(totals, m, t, size);
    for (int i = 0; i < patches * vectors; i++)
        floats[i] = epilogue_int16(&m->epilogue, totals[i], t->param + i % vectors * QI_LANES);
    mac_epilogue(floats, m, t, patches, vectors);
}

#define INT16_BY_SPLIT_TILE(n, v)                                                                  \
    static void int16_by_split_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                    \
    {                                                                                              \
        int16_tile(m, t, n, v, WEIGHTS_SPLIT);                                                     \
    }
MAC_TILES(INT16_BY_SPLIT_TILE, 1)
#define INT16_BY_SPLIT_ROW(n, v) int16_by_split_##n##_##v,
static qn_mac_fn *const int16_by_split_1[] = {MAC_TILES(INT16_BY_SPLIT_ROW, 1)};

#if defined(__AVX512F__)
#define INT16_BY_INT8_TILE(n, v)                                                                   \
    static void int16_by_int8_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                     \
    {                                                                                              \
        int16_tile(m, t, n, v, WEIGHTS_INT8);                                                      \
    }
#define INT16_BY_INT16_TILE(n, v)                                                                  \
    static void int16_by_int16_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                    \
    {                                                                                              \
        int16_tile(m, t, n, v, WEIGHTS_INT16);                                                     \
    }
MAC_TILES(INT16_BY_INT8_TILE, 1)
MAC_TILES(INT16_BY_INT8_TILE, 2)
MAC_TILES_BY_4(INT16_BY_INT8_TILE, 4)
MAC_TILES(INT16_BY_INT16_TILE, 1)

#define INT16_BY_INT8_ROW(n, v) int16_by_int8_##n##_##v,
#define INT16_BY_INT16_ROW(n, v) int16_by_int16_##n##_##v,
static qn_mac_fn *const int16_by_int8_1[] = {MAC_TILES(INT16_BY_INT8_ROW, 1)};
static qn_mac_fn *const int16_by_int8_2[] = {MAC_TILES(INT16_BY_INT8_ROW, 2)};
static qn_mac_fn *const int16_by_int8_4[] = {MAC_TILES_BY_4(INT16_BY_INT8_ROW, 4)};
static qn_mac_fn *const int16_by_int16_1[] = {MAC_TILES(INT16_BY_INT16_ROW, 1)};
#define INT16_BY_INT8_TILES                                                                        \
    {                                                                                              \
        int16_by_int8_1, int16_by_int8_2, int16_by_int8_4                                          \
    }
#define INT16_BY_INT16_TILES                                                                       \
    {                                                                                              \
        int16_by_int16_1, NULL, NULL                                                               \
    }
enum { INT16_RUNS = false, INT16_BY_INT16_VECTORS = 1, INT16_BY_INT16_PATCHES_BY_4 = MAC_PATCHES };
#else
#define INT16_BY_INT8_TILES                                                                        \
    {                                                                                              \
        run_bytes_1, run_bytes_2, run_bytes_4                                                      \
    }
#define INT16_BY_INT16_TILES                                                                       \
    {                                                                                              \
        run_int16_1, run_int16_2, run_int16_4                                                      \
    }
enum {
    INT16_RUNS = true,
    INT16_BY_INT16_VECTORS = QN_MAC_VECTORS,
    INT16_BY_INT16_PATCHES_BY_4 = MAC_PATCHES_BY_4
};
#endif

/* ---- Depthwise: weights are 16-bit numbers, two taps are mixed so that a lane has both numbers */

enum { INT16_DEPTH_VECTORS = 2 };

Q_INLINE void int16_depth_sums(qd *totals, const qn_depthwise_run *d, const uint8_t *x,
                               int64_t block, bool is_int16)
{
    const int64_t groups = d->n_taps / 2, bytes = INT16_DEPTH_VECTORS * QI_BYTES;
    const uint8_t *w = d->weights + block * groups * bytes;
    qi low[2] = {qi_set(0), qi_set(0)}, high[2] = {qi_set(0), qi_set(0)};
    for (int64_t g = 0; g < groups; g++, w += bytes) {
        const qi a = qi_load(x + d->taps[2 * g]), b = qi_load(x + d->taps[2 * g + 1]);
        const qi mixed[2] = {qi_mix_low(a, b), qi_mix_high(a, b)};
        for (int v = 0; v < 2; v++) {
            const qi both = qi_load(w + v * QI_BYTES);
            low[v] = qi_dot_int16(low[v], mixed[v], is_int16 ? qi_int16_low(both) : both);
            if (is_int16)
                high[v] = qi_dot_int16(high[v], mixed[v], qi_int16_high(both));
        }
    }
    qi_unmix(&low[0], &low[1]);
    qi_unmix(&high[0], &high[1]);
    for (int v = 0; v < 2; v++) {
        totals[v] = qd_add(qd_load(d->begin + (block * 2 + v) * QI_LANES), qd_of(low[v]));
        if (is_int16)
            totals[v] = qd_add(totals[v], qd_times(qd_of(high[v]), 256));
    }
}

Q_INLINE void int16_depth(const qn_depthwise_run *d, uint8_t *y, const uint8_t *x, bool is_int16)
{
    const int64_t size = INT16_DEPTH_VECTORS * QI_LANES,
                  bytes = qn_q_epilogue_y_bytes(&d->epilogue);
    int64_t block = 0;
    for (int64_t at = 0; at < d->count; at += size) {
        qd totals[INT16_DEPTH_VECTORS];
        int16_depth_sums(totals, d, x + at * 2, block, is_int16);
        for (int64_t v = 0; v < 2 && at + v * QI_LANES < d->count; v++) {
            const qf sum = epilogue_int16(&d->epilogue, totals[v], (block * 2 + v) * QI_LANES);
            const q_epilogue_lanes lanes = {.sums = &sum,
                                            .count = 1,
                                            .y = y + (at + v * QI_LANES) * bytes,
                                            .param = (block * 2 + v) * QI_LANES,
                                            .lanes = d->count - at - v * QI_LANES};
            epilogue_lanes(&d->epilogue, &lanes);
        }
        block = block + 1 == d->period ? 0 : block + 1;
    }
}

static void int16_depth_bytes(const qn_depthwise_run *d, uint8_t *y, const uint8_t *x)
{
    int16_depth(d, y, x, false);
}

static void int16_depth_int16(const qn_depthwise_run *d, uint8_t *y, const uint8_t *x)
{
    int16_depth(d, y, x, true);
}

/* ---- Maps as the tiles want them ------------------------------------------------------------- */

/* int16: numbers of 16 bits shifted by half the range where they are unsigned, bytes without zero
 * point. */
static void int16_copy(uint8_t *to, const uint8_t *from, int64_t count, const qn_mac_source *source)
{
    int16_t *is_int16 = (int16_t *)(void *)to;
    const uint16_t *as_int16 = (const uint16_t *)(const void *)from;
    const uint16_t flip = source->is_signed ? 0 : 0x8000;
    const int16_t zero = (int16_t)source->zero;
    if (source->is_int16) {
        for (int64_t i = 0; i < count; i++)
            is_int16[i] = (int16_t)(as_int16[i] ^ flip);
    } else if (source->is_signed) {
        for (int64_t i = 0; i < count; i++)
            is_int16[i] = (int16_t)((int8_t)from[i] - zero);
    } else {
        for (int64_t i = 0; i < count; i++)
            is_int16[i] = (int16_t)(from[i] - zero);
    }
}

/* Weights of a step as qn_mac_kernels.pack has them: row `row` is `step` bytes below the one
 * before. */
Q_INLINE int32_t int16_weight(const uint8_t *from, int64_t i, const qn_mac_source *source)
{
    const uint16_t *as_int16 = (const uint16_t *)(const void *)from;
    if (source->is_int16)
        return (source->is_signed ? (int16_t)as_int16[i] : as_int16[i]) - source->zero;
    return (source->is_signed ? (int8_t)from[i] : from[i]) - source->zero;
}

static void int16_pack_bytes(uint8_t *to, const uint8_t *from, int64_t row, int64_t count,
                             const qn_mac_source *source)
{
    for (int64_t i = 0; i < count; i++) {
        to[2 * i] = (uint8_t)int16_weight(from, i, source);
        to[2 * i + 1] = (uint8_t)int16_weight(from + row, i, source);
    }
}

/* All of one vector: low bytes, then high ones. */
static void int16_pack_split(uint8_t *to, const uint8_t *from, int64_t row, int64_t count,
                             const qn_mac_source *source)
{
    int16_t *low = (int16_t *)(void *)to, *high = low + 2 * QI_LANES;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t d = 0; d < 2; d++) {
            const int32_t w = int16_weight(from + d * row, i, source);
            low[2 * i + d] = (int16_t)(w & 255);
            high[2 * i + d] = (int16_t)((w - (w & 255)) / 256);
        }
    }
}

const qn_mac_kernels Q_NAME(qn_int16_mac_kernels)[3] = {
    {.lanes = QI_LANES,
     .dot = 2,
     .weight_bytes = 2,
     .vectors = QN_MAC_VECTORS,
     .patches = MAC_PATCHES,
     .patches_by_4 = MAC_PATCHES_BY_4,
     .reads_int16 = true,
     .by_runs = INT16_RUNS,
     .copy = int16_copy,
     .pack = int16_pack_bytes,
     .depth = int16_depth_bytes,
     .depth_block = INT16_DEPTH_VECTORS * QI_LANES,
     .tiles = INT16_BY_INT8_TILES},
    {.lanes = QI_LANES,
     .dot = 2,
     .weight_bytes = 4,
     .vectors = INT16_BY_INT16_VECTORS,
     .patches = MAC_PATCHES,
     .patches_by_4 = INT16_BY_INT16_PATCHES_BY_4,
     .reads_int16 = true,
     .by_runs = INT16_RUNS,
     .copy = int16_copy,
     .depth = int16_depth_int16,
     .depth_block = INT16_DEPTH_VECTORS * QI_LANES,
     .tiles = INT16_BY_INT16_TILES},
    {.lanes = QI_LANES,
     .dot = 2,
     .weight_bytes = 8,
     .vectors = 1,
     .patches = MAC_PATCHES,
     .patches_by_4 = MAC_PATCHES,
     .reads_int16 = true,
     .copy = int16_copy,
     .pack = int16_pack_split,
     .tiles = {int16_by_split_1, NULL, NULL}},
};

#endif
