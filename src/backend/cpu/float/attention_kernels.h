/* softmax(Q K' * scale + mask) V of one head. Keys are transposed once, so that scores of
 * neighbouring keys are neighbouring lanes; four queries at a time share every load. */
#ifndef QN_CPU_ATTENTION_KERNELS_H
#define QN_CPU_ATTENTION_KERNELS_H

#include "backend/cpu/copy/transpose_kernels.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/float/softmax_norm_kernels.h"

enum { QUERIES = 4 };

/* transposed[d][s] = k[s][d], rows padded to whole vectors with zeros */
static void transpose_keys(float *transposed, const qn_attention_head *h, int64_t padded)
{
    for (int64_t s = 0; s < h->keys; s += VEC_WIDTH) {
        for (int64_t d = 0; d < h->size; d += VEC_WIDTH) {
            const qn_transpose_tile tile = {.y = transposed + d * padded + s,
                                            .x = h->k + s * h->k_stride + d,
                                            .y_step = padded,
                                            .x_step = h->k_stride,
                                            .rows = QN_MIN(VEC_WIDTH, h->keys - s),
                                            .columns = QN_MIN(VEC_WIDTH, h->size - d),
                                            .fill = true};
            transpose(&tile);
        }
    }
}

/* scores[r][s] = q[r] . k[s] * scale of `vectors` vectors of keys: as many sums as hide the time
 * that one multiply-add takes */
VEC_INLINE void score_block(float *scores, const float *keys, const float *const *q,
                            const qn_attention_head *h, int64_t padded, int vectors)
{
    vec sum[QUERIES * 2];
    for (int i = 0; i < QUERIES * vectors; i++)
        sum[i] = vec_set(0);
    for (int64_t d = 0; d < h->size; d++) {
        const vec first = vec_load(keys + d * padded);
        const vec second = vectors > 1 ? vec_load(keys + d * padded + VEC_WIDTH) : first;
#pragma GCC unroll 4
        for (int r = 0; r < QUERIES; r++) {
            const vec x = vec_set(q[r][d]);
            sum[r * vectors] = vec_fma(x, first, sum[r * vectors]);
            if (vectors > 1)
                sum[r * vectors + 1] = vec_fma(x, second, sum[r * vectors + 1]);
        }
    }
    for (int i = 0; i < QUERIES * vectors; i++)
        vec_store(scores + i / vectors * padded + i % vectors * VEC_WIDTH,
                  vec_mul(sum[i], vec_set(h->scale)));
}

/* The scores of up to QUERIES queries. */
static void score_rows(float *scores, const float *transposed, const qn_attention_head *h,
                       int64_t first, int64_t padded)
{
    const float *q[QUERIES];
    int64_t s = 0;
    for (int64_t r = 0; r < QUERIES; r++)
        q[r] = h->q + QN_MIN(first + r, h->queries - 1) * h->q_stride;
    for (; s + 2 * VEC_WIDTH <= padded; s += 2 * VEC_WIDTH)
        score_block(scores + s, transposed + s, q, h, padded, 2);
    if (s < padded)
        score_block(scores + s, transposed + s, q, h, padded, 1);
}

/* Adds the mask of one query to its scores. */
static void mask_row(float *scores, const qn_attention_head *h, int64_t query)
{
    const qn_attention_mask *m = h->mask;
    const int64_t step = m->key_step, at = query * m->query_step;
    const int64_t from = m->before < 0 ? 0 : QN_MIN(QN_MAX(query - m->before, 0), h->keys);
    int64_t end = m->data ? QN_MIN(m->keys, h->keys) : h->keys;
    if (m->behind >= 0)
        end = QN_MIN(end, query + m->behind + 1);
    for (int64_t s = 0; s < from; s++)
        scores[s] = -INFINITY;
    for (int64_t s = QN_MAX(end, from); s < h->keys; s++)
        scores[s] = -INFINITY;
    const uint8_t *shown = (const uint8_t *)m->data + at;
    const float *added = (const float *)m->data + at;
    for (int64_t s = from; s < end && m->data && m->is_bool; s++)
        scores[s] = shown[s * step] ? scores[s] : -INFINITY;
    for (int64_t s = from; s < end && m->data && !m->is_bool; s++)
        scores[s] += added[s * step];
}

/* Some key is seen: a query without any has no softmax, and its result is zeros. */
static bool sees_any(const float *scores, int64_t keys)
{
    for (int64_t s = 0; s < keys; s++) {
        if (scores[s] > -INFINITY || isnan(scores[s]))
            return true;
    }
    return false;
}

/* softcap * tanh(x / softcap) */
static void cap_row(float *scores, const qn_attention_head *h)
{
    const vec cap = vec_set(h->softcap);
    for (int64_t s = 0; s < h->keys; s += VEC_WIDTH)
        vec_store(scores + s, vec_mul(cap, vec_tanh(vec_div(vec_load(scores + s), cap))));
}

static void weigh_row(float *scores, const qn_attention_head *h, int64_t query)
{
    if (h->softcap > 0)
        cap_row(scores, h);
    if (h->mask)
        mask_row(scores, h, query);
    if (h->mask && !sees_any(scores, h->keys))
        memset(scores, 0, (size_t)h->keys * sizeof *scores);
    else
        softmax_row(scores, scores, h->keys);
}

/* y[r][lane..] = sum over s of p[r][s] * v[s][lane..] for so many vectors of lanes, of which the
 * last has `count` */
VEC_INLINE void mix_block(const float *p, const qn_attention_head *h, int64_t first, int64_t padded,
                          int64_t lane, int vectors)
{
    const int64_t rows = QN_MIN(QUERIES, h->queries - first);
    const int64_t count = vectors > 1 ? VEC_WIDTH : QN_MIN(VEC_WIDTH, h->value_size - lane);
    vec sum[QUERIES * 2];
    for (int i = 0; i < QUERIES * vectors; i++)
        sum[i] = vec_set(0);
    for (int64_t s = 0; s < h->keys; s++) {
        const float *v = h->v + s * h->v_stride + lane;
        const vec low = vectors > 1 ? vec_load(v) : vec_load_first(v, count);
        const vec high = vectors > 1 ? vec_load(v + VEC_WIDTH) : low;
#pragma GCC unroll 4
        for (int r = 0; r < QUERIES; r++) {
            const vec x = vec_set(p[r * padded + s]);
            sum[r * vectors] = vec_fma(x, low, sum[r * vectors]);
            if (vectors > 1)
                sum[r * vectors + 1] = vec_fma(x, high, sum[r * vectors + 1]);
        }
    }
    for (int64_t i = 0; i < rows * vectors; i++)
        vec_store_first(h->y + (first + i / vectors) * h->y_stride + lane + i % vectors * VEC_WIDTH,
                        sum[i], count);
}

static void mix_rows(const float *p, const qn_attention_head *h, int64_t first, int64_t padded)
{
    int64_t lane = 0;
    for (; lane + 2 * VEC_WIDTH <= h->value_size; lane += 2 * VEC_WIDTH)
        mix_block(p, h, first, padded, lane, 2);
    for (; lane < h->value_size; lane += VEC_WIDTH)
        mix_block(p, h, first, padded, lane, 1);
}

static void attend(const qn_attention_head *h)
{
    const int64_t padded = (h->keys + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    float *transposed = h->scratch, *scores = transposed + h->size * padded;
    transpose_keys(transposed, h, padded);
    for (int64_t first = 0; first < h->queries; first += QUERIES) {
        score_rows(scores, transposed, h, first, padded);
        for (int64_t r = 0; r < QUERIES; r++)
            weigh_row(scores + r * padded, h, QN_MIN(first + r, h->queries - 1));
        mix_rows(scores, h, first, padded);
    }
}

#endif
