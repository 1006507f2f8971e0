/* The tiles of q_mac.h where a side has 16 bits. */
#ifndef QN_CPU_INT16_MAC_KERNELS_H
#define QN_CPU_INT16_MAC_KERNELS_H

#include "backend/cpu/int/mac/q_tile_kernels.h"
#include "backend/cpu/simd/vec_int16.h"
#if !defined(__AVX512F__)
#include "backend/cpu/int/mac/int16_run_kernels.h"
#endif

/* How weights are packed: as bytes, as words, as words of high and of low bytes; then the most steps without
 * overflow (q_mac.h). */
enum { WIDE_BYTES, WIDE_WORDS, WIDE_SPLIT };
static const int64_t wide_steps[] = {255, 128, 127};

/* All sums 0: loaded, since the compiler makes a loop of constants a call of memset, and sums that are in
 * memory once stay there. */
Q_INLINE void wide_clear(qi *sum, const qn_mac *m, int count)
{
    const qi zero = qi_load(m->start);
#pragma GCC unroll 28
    for (int i = 0; i < count; i++)
        sum[i] = zero;
}

/* Adds sums of 32 bits to the totals. Two a total with weights of words: those of the low bytes, then those
 * of the high ones. */
Q_INLINE void wide_flush(qd *totals, const qi *sum, int count, bool words)
{
#pragma GCC unroll 28
    for (int i = 0; i < count; i++) {
        totals[i] = qd_add(totals[i], qd_of(sum[i]));
        if (words)
            totals[i] = qd_add(totals[i], qd_times(qd_of(sum[count + i]), 256));
    }
}

/* The weights of one vector: x * (256 * high + low). */
Q_INLINE void wide_load(qi *low, qi *high, const uint8_t *weights, int v, int form)
{
    const qi w = form == WIDE_BYTES   ? qi_load_widened(weights + v * QI_BYTES / 2)
                 : form == WIDE_WORDS ? qi_load(weights + v * QI_BYTES)
                                      : qi_load(weights + 2 * v * QI_BYTES);
    *low = form == WIDE_WORDS ? qi_words_low(w) : w;
    *high = form == WIDE_SPLIT ? qi_load(weights + (2 * v + 1) * QI_BYTES) : qi_words_high(w);
}

/* One step of all windows. */
Q_INLINE void wide_step(qi *sum, const mac_groups *g, const uint8_t *weights, int64_t step,
                        const int size[3])
{
    const int windows = size[0], vectors = size[1];
    qi low[QN_MAC_VECTORS], high[QN_MAC_VECTORS];
    for (int v = 0; v < vectors; v++)
        wide_load(&low[v], &high[v], weights, v, size[2]);
#pragma GCC unroll 14
    for (int i = 0; i < windows; i++) {
        const qi x = qi_broadcast(mac_window(g, step, windows, i));
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const int at = i * vectors + v, other = windows * vectors + at;
            sum[at] = qi_dot_words(sum[at], x, low[v]);
            if (size[2] != WIDE_BYTES)
                sum[other] = qi_dot_words(sum[other], x, high[v]);
        }
    }
}

/* The totals of a tile, [windows][vectors]. size: windows, vectors, form of the weights. */
Q_INLINE void wide_sums(qd *totals, const qn_mac *m, const qn_mac_tile *t, const int size[3])
{
    const int count = size[0] * size[1], words = size[2] != WIDE_BYTES;
    const int64_t most = wide_steps[size[2]], step_bytes = size[1] * (QI_BYTES / 2 << size[2]);
    const uint8_t *weights = t->weights;
    int64_t room = most;
    qi sum[QN_MAC_WINDOWS * 2];
    wide_clear(sum, m, words ? 2 * count : count);
    for (int64_t s = 0; s < t->n_segments; s++) {
        mac_groups g = mac_begin(m, t, t->segments[s].offset, size[0]);
        for (int64_t left = t->segments[s].steps; left > 0;) {
            const int64_t run = left < room ? left : room;
            for (int64_t k = 0; k < run; k++) {
                wide_step(sum, &g, weights, m->x_step, size);
                weights += step_bytes;
                for (int i = 0; i < 4; i++)
                    g.at[i] += 4;
            }
            left -= run;
            room -= run;
            if (room == 0 || (left == 0 && s + 1 == t->n_segments)) {
                wide_flush(totals, sum, count, words);
                wide_clear(sum, m, words ? 2 * count : count);
                room = most;
            }
        }
    }
}

Q_INLINE void wide_tile(const qn_mac *m, const qn_mac_tile *t, int windows, int vectors, int form)
{
    const int size[3] = {windows, vectors, form};
    qd totals[QN_MAC_WINDOWS * 2];
    qf floats[QN_MAC_WINDOWS * 2];
    for (int i = 0; i < windows * vectors; i++)
        totals[i] = qd_load(m->begin + t->param + i % vectors * QI_LANES);
    wide_sums(totals, m, t, size);
    for (int i = 0; i < windows * vectors; i++)
        floats[i] = finish_wide(&m->finish, totals[i], t->param + i % vectors * QI_LANES);
    mac_finish(floats, m, t, windows, vectors);
}

#define WIDE_SPLIT_TILE(n, v)                                                                      \
    static void wide_split_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                        \
    {                                                                                              \
        wide_tile(m, t, n, v, WIDE_SPLIT);                                                         \
    }
MAC_TILES(WIDE_SPLIT_TILE, 1)
#define WIDE_SPLIT_ROW(n, v) wide_split_##n##_##v,
static qn_mac_fn *const wide_split_1[] = {MAC_TILES(WIDE_SPLIT_ROW, 1)};

#if defined(__AVX512F__)
#define WIDE_BYTES_TILE(n, v)                                                                      \
    static void wide_bytes_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                        \
    {                                                                                              \
        wide_tile(m, t, n, v, WIDE_BYTES);                                                         \
    }
#define WIDE_WORDS_TILE(n, v)                                                                      \
    static void wide_words_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                        \
    {                                                                                              \
        wide_tile(m, t, n, v, WIDE_WORDS);                                                         \
    }
MAC_TILES(WIDE_BYTES_TILE, 1)
MAC_TILES(WIDE_BYTES_TILE, 2)
MAC_FEW_TILES(WIDE_BYTES_TILE, 4)
MAC_TILES(WIDE_WORDS_TILE, 1)

#define WIDE_BYTES_ROW(n, v) wide_bytes_##n##_##v,
#define WIDE_WORDS_ROW(n, v) wide_words_##n##_##v,
static qn_mac_fn *const wide_bytes_1[] = {MAC_TILES(WIDE_BYTES_ROW, 1)};
static qn_mac_fn *const wide_bytes_2[] = {MAC_TILES(WIDE_BYTES_ROW, 2)};
static qn_mac_fn *const wide_bytes_4[] = {MAC_FEW_TILES(WIDE_BYTES_ROW, 4)};
static qn_mac_fn *const wide_words_1[] = {MAC_TILES(WIDE_WORDS_ROW, 1)};
#define WIDE_BYTES_TILES                                                                           \
    {                                                                                              \
        wide_bytes_1, wide_bytes_2, wide_bytes_4                                                   \
    }
#define WIDE_WORDS_TILES                                                                           \
    {                                                                                              \
        wide_words_1, NULL, NULL                                                                   \
    }
enum { WIDE_RUNS = false, WIDE_WORDS_VECTORS = 1, WIDE_WORDS_FEW = MAC_WINDOWS };
#else
#define WIDE_BYTES_TILES                                                                           \
    {                                                                                              \
        run_bytes_1, run_bytes_2, run_bytes_4                                                      \
    }
#define WIDE_WORDS_TILES                                                                           \
    {                                                                                              \
        run_words_1, run_words_2, run_words_4                                                      \
    }
enum { WIDE_RUNS = true, WIDE_WORDS_VECTORS = QN_MAC_VECTORS, WIDE_WORDS_FEW = MAC_FEW };
#endif

/* ---- Depthwise: weights are words, two taps are mixed so that a lane has both numbers of one channel ------- */

enum { WIDE_DEPTH_VECTORS = 2 };

Q_INLINE void wide_depth_sums(qd *totals, const qn_depth *d, const uint8_t *x, int64_t block,
                              bool words)
{
    const int64_t groups = d->n_taps / 2, bytes = WIDE_DEPTH_VECTORS * QI_BYTES;
    const uint8_t *w = d->weights + block * groups * bytes;
    qi low[2] = {qi_set(0), qi_set(0)}, high[2] = {qi_set(0), qi_set(0)};
    for (int64_t g = 0; g < groups; g++, w += bytes) {
        const qi a = qi_load(x + d->taps[2 * g]), b = qi_load(x + d->taps[2 * g + 1]);
        const qi mixed[2] = {qi_mix_low(a, b), qi_mix_high(a, b)};
        for (int v = 0; v < 2; v++) {
            const qi both = qi_load(w + v * QI_BYTES);
            low[v] = qi_dot_words(low[v], mixed[v], words ? qi_words_low(both) : both);
            if (words)
                high[v] = qi_dot_words(high[v], mixed[v], qi_words_high(both));
        }
    }
    qi_unmix(&low[0], &low[1]);
    qi_unmix(&high[0], &high[1]);
    for (int v = 0; v < 2; v++) {
        totals[v] = qd_add(qd_load(d->begin + (block * 2 + v) * QI_LANES), qd_of(low[v]));
        if (words)
            totals[v] = qd_add(totals[v], qd_times(qd_of(high[v]), 256));
    }
}

Q_INLINE void wide_depth(const qn_depth *d, uint8_t *y, const uint8_t *x, bool words)
{
    const int64_t size = WIDE_DEPTH_VECTORS * QI_LANES, bytes = qn_q_finish_size(&d->finish);
    int64_t block = 0;
    for (int64_t at = 0; at < d->count; at += size) {
        qd totals[WIDE_DEPTH_VECTORS];
        wide_depth_sums(totals, d, x + at * 2, block, words);
        for (int64_t v = 0; v < 2 && at + v * QI_LANES < d->count; v++) {
            const qf sum = finish_wide(&d->finish, totals[v], (block * 2 + v) * QI_LANES);
            const q_finish_lanes lanes = {.sums = &sum,
                                          .count = 1,
                                          .y = y + (at + v * QI_LANES) * bytes,
                                          .param = (block * 2 + v) * QI_LANES,
                                          .lanes = d->count - at - v * QI_LANES};
            finish_lanes(&d->finish, &lanes);
        }
        block = block + 1 == d->period ? 0 : block + 1;
    }
}

static void wide_depth_bytes(const qn_depth *d, uint8_t *y, const uint8_t *x)
{
    wide_depth(d, y, x, false);
}

static void wide_depth_words(const qn_depth *d, uint8_t *y, const uint8_t *x)
{
    wide_depth(d, y, x, true);
}

/* ---- Maps as the tiles want them ----------------------------------------------------------------------------- */

/* int16: numbers of 16 bits shifted by half the range where they are unsigned, bytes without zero point. */
static void wide_copy(uint8_t *to, const uint8_t *from, int64_t count, const qn_mac_source *source)
{
    int16_t *words = (int16_t *)(void *)to;
    const uint16_t *wide = (const uint16_t *)(const void *)from;
    const uint16_t flip = source->is_signed ? 0 : 0x8000;
    const int16_t zero = (int16_t)source->zero;
    if (source->wide) {
        for (int64_t i = 0; i < count; i++)
            words[i] = (int16_t)(wide[i] ^ flip);
    } else if (source->is_signed) {
        for (int64_t i = 0; i < count; i++)
            words[i] = (int16_t)((int8_t)from[i] - zero);
    } else {
        for (int64_t i = 0; i < count; i++)
            words[i] = (int16_t)(from[i] - zero);
    }
}

/* Weights of a step as qn_mac_kernels.pack has them: row `row` is `step` bytes below the one before. */
Q_INLINE int32_t wide_weight(const uint8_t *from, int64_t i, const qn_mac_source *source)
{
    const uint16_t *wide = (const uint16_t *)(const void *)from;
    if (source->wide)
        return (source->is_signed ? (int16_t)wide[i] : wide[i]) - source->zero;
    return (source->is_signed ? (int8_t)from[i] : from[i]) - source->zero;
}

static void wide_pack_bytes(uint8_t *to, const uint8_t *from, int64_t row, int64_t count,
                            const qn_mac_source *source)
{
    for (int64_t i = 0; i < count; i++) {
        to[2 * i] = (uint8_t)wide_weight(from, i, source);
        to[2 * i + 1] = (uint8_t)wide_weight(from + row, i, source);
    }
}

/* All of one vector: low bytes, then high ones. */
static void wide_pack_split(uint8_t *to, const uint8_t *from, int64_t row, int64_t count,
                            const qn_mac_source *source)
{
    int16_t *low = (int16_t *)(void *)to, *high = low + 2 * QI_LANES;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t d = 0; d < 2; d++) {
            const int32_t w = wide_weight(from + d * row, i, source);
            low[2 * i + d] = (int16_t)(w & 255);
            high[2 * i + d] = (int16_t)((w - (w & 255)) / 256);
        }
    }
}

const qn_mac_kernels Q_NAME(qn_wide_kernels)[3] = {
    {.lanes = QI_LANES,
     .dot = 2,
     .weight_bytes = 2,
     .vectors = QN_MAC_VECTORS,
     .windows = MAC_WINDOWS,
     .few = MAC_FEW,
     .is_wide = true,
     .by_runs = WIDE_RUNS,
     .copy = wide_copy,
     .pack = wide_pack_bytes,
     .depth = wide_depth_bytes,
     .depth_block = WIDE_DEPTH_VECTORS * QI_LANES,
     .tiles = WIDE_BYTES_TILES},
    {.lanes = QI_LANES,
     .dot = 2,
     .weight_bytes = 4,
     .vectors = WIDE_WORDS_VECTORS,
     .windows = MAC_WINDOWS,
     .few = WIDE_WORDS_FEW,
     .is_wide = true,
     .by_runs = WIDE_RUNS,
     .copy = wide_copy,
     .depth = wide_depth_words,
     .depth_block = WIDE_DEPTH_VECTORS * QI_LANES,
     .tiles = WIDE_WORDS_TILES},
    {.lanes = QI_LANES,
     .dot = 2,
     .weight_bytes = 8,
     .vectors = 1,
     .windows = MAC_WINDOWS,
     .few = MAC_WINDOWS,
     .is_wide = true,
     .copy = wide_copy,
     .pack = wide_pack_split,
     .tiles = {wide_split_1, NULL, NULL}},
};

#endif
