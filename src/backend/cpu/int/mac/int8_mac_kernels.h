/* The tiles of q_mac.h for maps and weights of 8 bits. */
#ifndef QN_CPU_INT8_MAC_KERNELS_H
#define QN_CPU_INT8_MAC_KERNELS_H

#include "backend/cpu/int/epilogue/q_full_tile_kernels.h"
#include "backend/cpu/int/mac/q_tile_kernels.h"

/* Patches that a segment leaves out: none, or the outermost of a row or of two. */
typedef enum mac_skip { MAC_ALL, MAC_FIRST, MAC_LAST, MAC_FIRSTS, MAC_LASTS } mac_skip;

typedef struct mac_size {
    int patches, vectors;
    mac_skip skip;
} mac_size;

Q_INLINE bool mac_skips(mac_size size, int i)
{
    const int half = mac_half(size.patches), last = size.patches - 1;
    const bool first = size.skip == MAC_FIRST || size.skip == MAC_FIRSTS;
    const bool end = size.skip == MAC_LAST || size.skip == MAC_LASTS;
    return (first && i == 0) || (size.skip == MAC_FIRSTS && i == half) || (end && i == last) ||
           (size.skip == MAC_LASTS && i == half - 1);
}

/* One segment. Weights are fetched ahead: they come from far away, and the processor by itself does
 * not look beyond a page. */
Q_INLINE void mac_segment(qi *sum, mac_groups g, const uint8_t *weights, const int64_t steps[2],
                          mac_size size)
{
    enum { AHEAD = 4096, LINE = 64 };
    const int patches = size.patches, vectors = size.vectors;
    const int64_t step = steps[1];
    for (int64_t k = steps[0]; k > 0; k--) {
        qi w[QN_MAC_VECTORS];
        for (int v = 0; v < vectors; v++) {
            w[v] = qi_load(weights + v * QI_BYTES);
            if (v * QI_BYTES % LINE == 0)
                qi_fetch(weights + v * QI_BYTES, AHEAD);
        }
#pragma GCC unroll 14
        for (int i = 0; i < patches; i++) {
            if (mac_skips(size, i))
                continue;
            const qi x = qi_broadcast(mac_patch(&g, step, patches, i));
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[i * vectors + v] = qi_dot(sum[i * vectors + v], x, w[v]);
        }
        weights += vectors * QI_BYTES;
        for (int i = 0; i < 4; i++)
            g.at[i] += 4;
    }
}

/* The sums of a tile, [patches][vectors]. */
Q_INLINE void mac_sums(qi *sums, const qn_mac *m, const qn_mac_tile *t, int patches, int vectors)
{
    qi sum[QN_MAC_PATCHES * 2];
    const uint8_t *weights = t->weights;
#pragma GCC unroll 28
    for (int i = 0; i < patches * vectors; i++)
        sum[i] = qi_load(m->start + t->param + i % vectors * QI_LANES);
    for (int64_t s = 0; s < t->n_segments; s++) {
        const qn_mac_segment *at = &t->segments[s];
        const mac_groups g = mac_begin(m, t, at->offset, patches);
        const int64_t steps[2] = {at->steps, m->x_step};
        const int edge = MAC_SKIPS(patches, vectors) ? at->edge & t->edges : 0;
        if (edge == 0)
            mac_segment(sum, g, weights, steps, (mac_size){patches, vectors, MAC_ALL});
        else if (edge == QN_MAC_LEFT && !t->two)
            mac_segment(sum, g, weights, steps, (mac_size){patches, vectors, MAC_FIRST});
        else if (edge == QN_MAC_RIGHT && !t->two)
            mac_segment(sum, g, weights, steps, (mac_size){patches, vectors, MAC_LAST});
        else if (edge == QN_MAC_LEFT)
            mac_segment(sum, g, weights, steps, (mac_size){patches, vectors, MAC_FIRSTS});
        else
            mac_segment(sum, g, weights, steps, (mac_size){patches, vectors, MAC_LASTS});
        weights += at->steps * vectors * QI_BYTES;
    }
#pragma GCC unroll 28
    for (int i = 0; i < patches * vectors; i++)
        sums[i] = sum[i];
}

static void mac_epilogue_floats(const qi *sums, const qn_mac *m, const qn_mac_tile *t, int patches,
                                int vectors)
{
    qf floats[QN_MAC_PATCHES * 2];
    for (int i = 0; i < patches * vectors; i++)
        floats[i] = qi_float(sums[i]);
    mac_epilogue(floats, m, t, patches, vectors);
}

/* The commonest ends. */
typedef enum mac_direct { MAC_USUAL, MAC_LIMITED, MAC_TWICE } mac_direct;

Q_INLINE qi mac_rounded(qi sum, const q_twice *m, mac_direct kind)
{
    const qf x = qi_float(sum);
    return qf_round(kind == MAC_TWICE ? twice_rounded(x, m) : qf_mul(x, m->multiplier));
}

/* The same of two vectors, from the registers that the sums are in. */
Q_INLINE void mac_epilogue_direct(const qi *sum, const qn_mac *m, const qn_mac_tile *t, int patches,
                                  mac_direct kind)
{
    const q_twice low = twice_load(&m->epilogue, t->param);
    const q_twice high = twice_load(&m->epilogue, t->param + QI_LANES);
    const qi_limits limits = epilogue_limits(&m->epilogue);
    const int first = mac_half(patches);
    uint8_t *y = t->y[0];
#pragma GCC unroll 7
    for (int i = 0; i < patches; i += 2) {
        const int k = i + 1 < patches ? i + 1 : i; /* the last of an odd number goes twice */
        const qi a[4] = {
            mac_rounded(sum[2 * i], &low, kind), mac_rounded(sum[2 * i + 1], &high, kind),
            mac_rounded(sum[2 * k], &low, kind), mac_rounded(sum[2 * k + 1], &high, kind)};
        uint8_t *at = i == first ? t->y[1] : y;
        uint8_t *next = k == i ? at : k == first ? t->y[1] : at + m->y_step;
        qi_store_halves(at, next, whole_pack(a, &limits, kind == MAC_USUAL));
        y = next + m->y_step;
    }
}

/* The filters of two vectors: those with tiny weights have biases too large for a sum of integers,
 * others of the same layer do not. */
Q_INLINE bool mac_is_unbiased(const qn_q_epilogue *f, int64_t param)
{
    const int64_t v = param / QI_LANES;
    return !f->biased || (!f->biased[v] && !f->biased[v + 1]);
}

static void mac_fixed_point(qi *sums, const qn_q_epilogue *f, int64_t param, int count, int vectors)
{
    for (int i = 0; i < count; i++)
        sums[i] = epilogue_fixed_point(f, sums[i], param + i % vectors * QI_LANES);
}

/* From the sums of a tile, [patches][vectors], to its results. */
Q_INLINE void mac_end(const qi *sum, const qn_mac *m, const qn_mac_tile *t, int patches,
                      int vectors)
{
    const qn_q_epilogue *f = &m->epilogue;
    const bool is_whole = t->filters == vectors * QI_LANES;
    const whole w = {m, t, patches, mac_half(patches)};
    qi sums[QN_MAC_PATCHES * 2];
    if (vectors == 2 && is_whole && f->path == QN_Q_EPILOGUE_IN_REGISTERS &&
        mac_is_unbiased(f, t->param)) {
        if (f->first_rounding)
            mac_epilogue_direct(sum, m, t, patches, MAC_TWICE);
        else if (f->usual)
            mac_epilogue_direct(sum, m, t, patches, MAC_USUAL);
        else
            mac_epilogue_direct(sum, m, t, patches, MAC_LIMITED);
        return;
    }
#pragma GCC unroll 28
    for (int i = 0; i < patches * vectors; i++)
        sums[i] = sum[i];
    if (f->exact)
        mac_fixed_point(sums, f, t->param, patches * vectors, vectors);
    if (!is_whole || f->path == QN_Q_EPILOGUE_BY_LANE)
        mac_epilogue_floats(sums, m, t, patches, vectors);
    else if (vectors == 1)
        whole_epilogue_1(sums, &w);
    else if (vectors == 2)
        whole_epilogue_2(sums, &w);
    else
        whole_epilogue_4(sums, &w);
}

Q_INLINE void mac_tile(const qn_mac *m, const qn_mac_tile *t, int patches, int vectors)
{
    qi sums[QN_MAC_PATCHES * 2];
    mac_sums(sums, m, t, patches, vectors);
    mac_end(sums, m, t, patches, vectors);
}

#define MAC_TILE(n, v)                                                                             \
    static void mac_tile_##n##_##v(const qn_mac *m, const qn_mac_tile *t)                          \
    {                                                                                              \
        mac_tile(m, t, n, v);                                                                      \
    }
MAC_TILES(MAC_TILE, 1)
MAC_TILES(MAC_TILE, 2)
MAC_TILES_BY_4(MAC_TILE, 4)

#define MAC_ROW(n, v) mac_tile_##n##_##v,
static qn_mac_fn *const mac_tiles_1[] = {MAC_TILES(MAC_ROW, 1)};
static qn_mac_fn *const mac_tiles_2[] = {MAC_TILES(MAC_ROW, 2)};
static qn_mac_fn *const mac_tiles_4[] = {MAC_TILES_BY_4(MAC_ROW, 4)};

#include "backend/cpu/int/mac/q_depthwise_kernels.h" /* whose tiles end like these */
#if !defined(__AVX512VNNI__)
#include "backend/cpu/int/mac/q_winograd_kernels.h"
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
#include "backend/cpu/int/mac/int8_inner_product_kernels.h"
#endif

/* ---- Maps as the tiles want them ------------------------------------------------------------- */

/* uint8 for VNNI, where int8 is shifted up by 128 and so is its zero point; else 16 bits without
 * it. */
static void mac_copy(uint8_t *to, const uint8_t *from, int64_t count, const qn_mac_source *source)
{
#if defined(__AVX512VNNI__)
    const uint8_t flip = source->is_signed ? 0x80 : 0;
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] ^ flip;
#else
    int16_t *as_int16 = (int16_t *)(void *)to;
    const int16_t zero = (int16_t)source->zero;
    if (source->is_signed) {
        for (int64_t i = 0; i < count; i++)
            as_int16[i] = (int16_t)((int8_t)from[i] - zero);
    } else {
        for (int64_t i = 0; i < count; i++)
            as_int16[i] = (int16_t)(from[i] - zero);
    }
#endif
}

#if defined(__AVX512VNNI__)
/* The numbers of four rows that stand below each other, side by side: 16 of each. */
Q_INLINE void mac_pack_16(uint8_t *to, const uint8_t *from, int64_t row, __m128i flip)
{
    __m128i r[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(from + i * row)), flip);
    const __m128i low[2] = {_mm_unpacklo_epi8(r[0], r[1]), _mm_unpacklo_epi8(r[2], r[3])};
    const __m128i high[2] = {_mm_unpackhi_epi8(r[0], r[1]), _mm_unpackhi_epi8(r[2], r[3])};
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(low[0], low[1]));
    _mm_storeu_si128((__m128i *)(to + 16), _mm_unpackhi_epi16(low[0], low[1]));
    _mm_storeu_si128((__m128i *)(to + 32), _mm_unpacklo_epi16(high[0], high[1]));
    _mm_storeu_si128((__m128i *)(to + 48), _mm_unpackhi_epi16(high[0], high[1]));
}
#endif

static void mac_pack(uint8_t *to, const uint8_t *from, int64_t row, int64_t count,
                     const qn_mac_source *source)
{
#if defined(__AVX512VNNI__)
    const uint8_t flip = source->is_signed ? 0 : 0x80; /* the zero point is 0, or 128 */
    int64_t i = 0;
    for (; i + QI_LANES <= count; i += QI_LANES)
        mac_pack_16(to + 4 * i, from + i, row, _mm_set1_epi8((char)flip));
    for (; i < count; i++) {
        to[4 * i] = from[i] ^ flip;
        to[4 * i + 1] = from[row + i] ^ flip;
        to[4 * i + 2] = from[2 * row + i] ^ flip;
        to[4 * i + 3] = from[3 * row + i] ^ flip;
    }
#else
    int16_t *as_int16 = (int16_t *)(void *)to;
    const int16_t flip = source->is_signed ? 0x80 : 0; /* (x ^ 0x80) - 0x80 of signed bytes */
    const int16_t zero = (int16_t)(source->zero + flip);
    for (int64_t i = 0; i < count; i++) {
        as_int16[2 * i] = (int16_t)((from[i] ^ flip) - zero);
        as_int16[2 * i + 1] = (int16_t)((from[row + i] ^ flip) - zero);
    }
#endif
}

/* The weights' sums, as a map of nothing but ones has them. */
static void mac_sum_weights(int32_t *sums, const uint8_t *weights, int64_t steps, int vectors)
{
#if defined(__AVX512VNNI__)
    const qi ones = qi_set(0x01010101);
#else
    const qi ones = qi_set(0x00010001);
#endif
    for (int v = 0; v < vectors; v++) {
        qi sum = qi_set(0);
        for (int64_t k = 0; k < steps; k++)
            sum = qi_dot(sum, ones, qi_load(weights + (k * vectors + v) * QI_BYTES));
        qi_store(sums + v * QI_LANES, sum);
    }
}

const qn_mac_kernels Q_NAME(qn_int8_mac_kernels) = {
    .lanes = QI_LANES,
    .dot = QI_DOT,
    .weight_bytes = 4,
    .vectors = QN_MAC_VECTORS,
    .patches = MAC_PATCHES,
    .patches_by_4 = MAC_PATCHES_BY_4,
    .reads_int16 = QI_DOT == 2,
    .copy = mac_copy,
    .pack = mac_pack,
    .sum_weights = mac_sum_weights,
    .depth_block = DEPTH_VECTORS * QI_LANES,
#if defined(__AVX512VNNI__)
    .depth = depth_run,
#else
    .depth_tiles = depth_tiles,
    .depth_patches = DEPTH_PATCHES,
    .pair = depth_pair,
#endif
    .tiles = {mac_tiles_1, mac_tiles_2, mac_tiles_4},
#if !defined(__AVX512VNNI__)
    .wino = &wino_kernels,
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
    .inner_product = inner_product_tiles,
    .inner_product_patches = INNER_PRODUCT_PATCHES,
    .pair_sums = half_less,
#endif
};

#endif
