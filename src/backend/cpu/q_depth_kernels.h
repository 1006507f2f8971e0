/* Runs of depthwise outputs (qn_depth in q_mac.h). */
#ifndef QN_Q_DEPTH_KERNELS_H
#define QN_Q_DEPTH_KERNELS_H

#include "backend/cpu/q_finish_kernels.h"
#include "backend/cpu/q_mac.h"

#if defined(__AVX512VNNI__)
/* A block is 64 channels. Four taps are mixed so that a lane has all four bytes of one channel; vector v has
 * channels 4v..4v+3 of every 16, just as packing wants them back. */
enum { DEPTH_VECTORS = 4 };

Q_INLINE void depth_sums(qi *sums, const qn_depth *d, const uint8_t *x, int64_t block)
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

Q_INLINE void depth_finish(const qn_depth *d, uint8_t *y, const qi *sums, int64_t block,
                           int64_t count)
{
    const qi_limits limits = finish_limits(&d->finish);
    qi a[4];
    if (d->finish.has_function)
        finish_functions(a, &d->finish, sums, block * 4 * QI_LANES);
    for (int v = 0; v < 4 && !d->finish.has_function; v++) {
        const int64_t param = (block * 4 + v) * QI_LANES;
        a[v] = d->finish.bounded ? finish_one(&d->finish, sums[v], param)
                                 : finish_one_limited(&d->finish, sums[v], param);
    }
    const qi bytes = qi_pack_lanes(a[0], a[1], a[2], a[3], &limits);
    if (count >= 64)
        qi_store(y, bytes);
    else
        _mm512_mask_storeu_epi8(y, (1ull << count) - 1, bytes);
}

#else
/* A block is two vectors of 16 bits: two taps are mixed so that a lane has both numbers of one channel. */
enum { DEPTH_VECTORS = 2 };

Q_INLINE void depth_sums(qi *sums, const qn_depth *d, const uint8_t *x, int64_t block)
{
    const int64_t groups = d->n_taps / 2;
    const uint8_t *w = d->weights + block * groups * DEPTH_VECTORS * QI_BYTES;
    sums[0] = qi_load(d->start + block * 2 * QI_LANES);
    sums[1] = qi_load(d->start + (block * 2 + 1) * QI_LANES);
    for (int64_t g = 0; g < groups; g++, w += DEPTH_VECTORS * QI_BYTES) {
        const qi a = qi_load(x + d->taps[2 * g]), b = qi_load(x + d->taps[2 * g + 1]);
        sums[0] = qi_dot(sums[0], qi_mix_low(a, b), qi_load(w));
        sums[1] = qi_dot(sums[1], qi_mix_high(a, b), qi_load(w + QI_BYTES));
    }
    qi_unmix(&sums[0], &sums[1]);
}

Q_INLINE void depth_finish(const qn_depth *d, uint8_t *y, const qi *sums, int64_t block,
                           int64_t count)
{
    for (int v = 0; v < 2 && v * QI_LANES < count; v++) {
        const qf sum = qi_float(sums[v]);
        const q_finish_lanes lanes = {.sums = &sum,
                                      .count = 1,
                                      .y = y + v * QI_LANES,
                                      .param = (block * 2 + v) * QI_LANES,
                                      .lanes = count - v * QI_LANES};
        finish_lanes(&d->finish, &lanes);
    }
}
#endif

static void depth_run(const qn_depth *d, uint8_t *y, const uint8_t *x)
{
    const int64_t size = DEPTH_VECTORS * QI_LANES, bytes = QI_DOT == 2 ? 2 : 1;
    int64_t block = 0;
    for (int64_t at = 0; at < d->count; at += size) {
        qi sums[DEPTH_VECTORS];
        depth_sums(sums, d, x + at * bytes, block);
        for (int v = 0; d->finish.exact && v < DEPTH_VECTORS; v++)
            sums[v] = finish_fixed(&d->finish, sums[v], (block * DEPTH_VECTORS + v) * QI_LANES);
        depth_finish(d, y + at, sums, block, d->count - at);
        block = block + 1 == d->period ? 0 : block + 1;
    }
}

#endif
