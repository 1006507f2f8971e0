/* Depthwise: runs of outputs (qn_depthwise_run in q_mac.h) of bytes, tiles (qn_depthwise_parity) of
 * what is widened. */
#ifndef QN_CPU_Q_DEPTHWISE_KERNELS_H
#define QN_CPU_Q_DEPTHWISE_KERNELS_H

#include "backend/cpu/int/epilogue/q_epilogue_kernels.h"
#include "backend/cpu/int/epilogue/q_full_tile_kernels.h"

#if defined(__AVX512VNNI__)
/* A block is 64 channels. Four taps are mixed so that a lane has all four bytes of one channel;
 * vector v has channels 4v..4v+3 of every 16, just as packing wants them back. */
enum { DEPTH_VECTORS = 4 };

Q_INLINE void depth_sums(qi *sums, const qn_depthwise_run *d, const uint8_t *x, int64_t block)
{
    const int64_t groups = d->n_taps / 4;
    const uint8_t *w = d->weights + block * groups * DEPTH_VECTORS * QI_BYTES;
    for (int v = 0; v < 4; v++)
        sums[v] = qi_load(d->start + (block * 4 + v) * QI_LANES);
    for (int64_t g = 0; g < groups; g++, w += DEPTH_VECTORS * QI_BYTES) {
        const int64_t *tap = d->taps + g * 4;
        const qi a = qi_load(x + tap[0]), b = qi_load(x + tap[1]);
        const qi c = qi_load(x + tap[2]), e = qi_load(x + tap[3]);
        const qi ab = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
        const qi ce = _mm512_unpacklo_epi8(c, e), ce_high = _mm512_unpackhi_epi8(c, e);
        sums[0] = qi_dot(sums[0], qi_mix_low(ab, ce), qi_load(w));
        sums[1] = qi_dot(sums[1], qi_mix_high(ab, ce), qi_load(w + QI_BYTES));
        sums[2] = qi_dot(sums[2], qi_mix_low(ab_high, ce_high), qi_load(w + 2 * QI_BYTES));
        sums[3] = qi_dot(sums[3], qi_mix_high(ab_high, ce_high), qi_load(w + 3 * QI_BYTES));
    }
}

Q_INLINE void depth_epilogue(const qn_depthwise_run *d, uint8_t *y, const qi *sums, int64_t block,
                             int64_t count)
{
    const qi_limits limits = epilogue_limits(&d->epilogue);
    qi a[4];
    if (d->epilogue.has_function)
        epilogue_functions(a, &d->epilogue, sums, block * 4 * QI_LANES);
    for (int v = 0; v < 4 && !d->epilogue.has_function; v++) {
        const int64_t param = (block * 4 + v) * QI_LANES;
        a[v] = d->epilogue.bounded ? epilogue_one(&d->epilogue, sums[v], param)
                                   : epilogue_one_limited(&d->epilogue, sums[v], param);
    }
    const qi bytes = qi_pack_lanes(a[0], a[1], a[2], a[3], &limits);
    if (count >= 64)
        qi_store(y, bytes);
    else
        _mm512_mask_storeu_epi8(y, (1ull << count) - 1, bytes);
}

static void depth_run(const qn_depthwise_run *d, uint8_t *y, const uint8_t *x)
{
    const int64_t size = DEPTH_VECTORS * QI_LANES;
    int64_t block = 0;
    for (int64_t at = 0; at < d->count; at += size) {
        qi sums[DEPTH_VECTORS];
        depth_sums(sums, d, x + at, block);
        for (int v = 0; d->epilogue.exact && v < DEPTH_VECTORS; v++)
            sums[v] =
                epilogue_fixed_point(&d->epilogue, sums[v], (block * DEPTH_VECTORS + v) * QI_LANES);
        depth_epilogue(d, y + at, sums, block, d->count - at);
        block = block + 1 == d->period ? 0 : block + 1;
    }
}

#else
/* Blocks of two vectors of channels, or one at last. */
enum { DEPTH_VECTORS = 2, DEPTH_PATCHES = 4 };

Q_INLINE void depth_sums(qi *sums, const qn_mac *m, const qn_mac_tile *t, int patches, int vectors)
{
    const int64_t step = m->x_step;
    const uint8_t *w = t->weights;
    qi sum[DEPTH_PATCHES * DEPTH_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < patches * vectors; i++)
        sum[i] = qi_load(m->start + t->param + i % vectors * QI_LANES);
    for (int64_t s = 0; s < t->n_segments; s++, w += vectors * QI_BYTES) {
        const uint8_t *x = t->x[0] + t->segments[s].offset;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const qi weight = qi_load(w + v * QI_BYTES);
#pragma GCC unroll 4
            for (int i = 0; i < patches; i++)
                sum[i * vectors + v] =
                    qi_dot(sum[i * vectors + v], qi_load(x + i * step + v * QI_BYTES), weight);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < patches * vectors; i++)
        sums[i] = sum[i];
}

Q_INLINE void depth_block(const qn_mac *m, const qn_mac_tile *t, int patches, int vectors)
{
    qi sum[DEPTH_PATCHES * DEPTH_VECTORS];
    depth_sums(sum, m, t, patches, vectors);
    mac_end(sum, m, t, patches, vectors);
}

Q_INLINE void depth_tile(const qn_mac *m, const qn_mac_tile *all, int patches)
{
    const int64_t y_size = qn_q_epilogue_y_bytes(&m->epilogue),
                  r_size = qn_q_epilogue_r_bytes(&m->epilogue);
    const int64_t size = DEPTH_VECTORS * QI_LANES;
    qn_mac_tile t = *all;
    for (int64_t rest = all->filters; rest > 0; rest -= size) {
        t.filters = rest < size ? rest : size;
        if (rest > QI_LANES)
            depth_block(m, &t, patches, DEPTH_VECTORS);
        else
            depth_block(m, &t, patches, 1);
        for (int h = 0; h < 2; h++) {
            t.x[h] += size * 4;
            t.y[h] += size * y_size;
            t.r[h] += size * r_size;
        }
        t.param += size;
        t.weights += t.n_segments * DEPTH_VECTORS * QI_BYTES;
    }
}

#define DEPTH_TILE(n)                                                                              \
    static void depth_tile_##n(const qn_mac *m, const qn_mac_tile *t)                              \
    {                                                                                              \
        depth_tile(m, t, n);                                                                       \
    }
DEPTH_TILE(1)
DEPTH_TILE(2)
DEPTH_TILE(3)
DEPTH_TILE(4)
static qn_mac_fn *const depth_tiles[] = {depth_tile_1, depth_tile_2, depth_tile_3, depth_tile_4};

/* Interleaves the first elements; returns how many. */
Q_INLINE int64_t depth_pair_vectors(int16_t *to, const uint8_t *const rows[2], int64_t count,
                                    const qn_mac_source *source)
{
    int64_t i = 0;
#if defined(__AVX2__) && !defined(__AVX512F__)
    const __m128i none = _mm_set1_epi8((char)source->zero);
    const __m128i flip = _mm_set1_epi8((char)(source->is_signed ? 0x80 : 0));
    const __m256i zero = _mm256_set1_epi16((int16_t)(source->zero + (source->is_signed ? 128 : 0)));
    for (; i + 16 <= count; i += 16) {
        const __m128i a = rows[0] ? _mm_loadu_si128((const __m128i *)(rows[0] + i)) : none;
        const __m128i b = rows[1] ? _mm_loadu_si128((const __m128i *)(rows[1] + i)) : none;
        const __m128i low = _mm_xor_si128(_mm_unpacklo_epi8(a, b), flip);
        const __m128i high = _mm_xor_si128(_mm_unpackhi_epi8(a, b), flip);
        qi_store(to + 2 * i, _mm256_sub_epi16(_mm256_cvtepu8_epi16(low), zero));
        qi_store(to + 2 * i + 16, _mm256_sub_epi16(_mm256_cvtepu8_epi16(high), zero));
    }
#else
    (void)to, (void)rows, (void)count, (void)source;
#endif
    return i;
}

static void depth_pair(uint8_t *to, const uint8_t *const rows[2], int64_t count,
                       const qn_mac_source *source)
{
    const int16_t flip = source->is_signed ? 0x80 : 0; /* (x ^ 0x80) - 0x80 of signed bytes */
    const int16_t zero = (int16_t)(source->zero + flip);
    const uint8_t none = (uint8_t)source->zero;
    int16_t *as_int16 = (int16_t *)(void *)to;
    for (int64_t i = depth_pair_vectors(as_int16, rows, count, source); i < count; i++) {
        for (int half = 0; half < 2; half++)
            as_int16[2 * i + half] = (int16_t)(((rows[half] ? rows[half][i] : none) ^ flip) - zero);
    }
}
#endif

#endif
