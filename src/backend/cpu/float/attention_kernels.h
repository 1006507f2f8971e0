/* softmax(Q K' * scale + mask) V of one head. Keys are transposed once, so that scores of
 * neighbouring keys are neighbouring lanes; four queries at a time share every load. */
#ifndef QN_CPU_ATTENTION_KERNELS_H
#define QN_CPU_ATTENTION_KERNELS_H

#include "backend/cpu/float/kernels.h"
#include "backend/cpu/float/softmax_norm_kernels.h"

enum { QUERIES = 4 };

/* transposed[d][s] = k[s][d] * scale, rows padded to whole vectors with zeros */
static void transpose_keys(float *transposed, const qn_attention_head *h, int64_t padded)
{
    memset(transposed, 0, (size_t)(h->size * padded) * sizeof *transposed);
    for (int64_t s = 0; s < h->keys; s++) {
        for (int64_t d = 0; d < h->size; d++)
            transposed[d * padded + s] = h->k[s * h->k_stride + d] * h->scale;
    }
}

/* scores[r][s] = q[r] . k[s] for `rows` queries */
static void score_rows(float *scores, const float *transposed, const qn_attention_head *h,
                       int64_t first, int64_t padded)
{
    const int64_t rows = QN_MIN(QUERIES, h->queries - first);
    const float *q[QUERIES];
    for (int64_t r = 0; r < QUERIES; r++)
        q[r] = h->q + QN_MIN(first + r, first + rows - 1) * h->q_stride;
    for (int64_t s = 0; s < padded; s += VEC_WIDTH) {
        vec a = vec_set(0), b = a, c = a, e = a;
        for (int64_t d = 0; d < h->size; d++) {
            const vec key = vec_load(transposed + d * padded + s);
            a = vec_fma(vec_set(q[0][d]), key, a);
            b = vec_fma(vec_set(q[1][d]), key, b);
            c = vec_fma(vec_set(q[2][d]), key, c);
            e = vec_fma(vec_set(q[3][d]), key, e);
        }
        vec_store(scores + s, a);
        vec_store(scores + padded + s, b);
        vec_store(scores + 2 * padded + s, c);
        vec_store(scores + 3 * padded + s, e);
    }
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

static void weigh_row(float *scores, const qn_attention_head *h, int64_t query)
{
    if (h->mask)
        mask_row(scores, h, query);
    if (h->mask && !sees_any(scores, h->keys))
        memset(scores, 0, (size_t)h->keys * sizeof *scores);
    else
        softmax_row(scores, scores, h->keys);
}

/* y[r][lane..] = sum over s of p[r][s] * v[s][lane..] for one vector of lanes */
static void mix_lanes(const float *p, const qn_attention_head *h, int64_t first, int64_t padded,
                      int64_t lane)
{
    const int64_t rows = QN_MIN(QUERIES, h->queries - first);
    const int64_t count = QN_MIN(VEC_WIDTH, h->value_size - lane);
    vec a = vec_set(0), b = a, c = a, e = a;
    for (int64_t s = 0; s < h->keys; s++) {
        const vec v = vec_load_first(h->v + s * h->v_stride + lane, count);
        a = vec_fma(vec_set(p[s]), v, a);
        b = vec_fma(vec_set(p[padded + s]), v, b);
        c = vec_fma(vec_set(p[2 * padded + s]), v, c);
        e = vec_fma(vec_set(p[3 * padded + s]), v, e);
    }
    const vec y[QUERIES] = {a, b, c, e};
    for (int64_t r = 0; r < rows; r++)
        vec_store_first(h->y + (first + r) * h->y_stride + lane, y[r], count);
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
        for (int64_t lane = 0; lane < h->value_size; lane += VEC_WIDTH)
            mix_lanes(scores, h, first, padded, lane);
    }
}

#endif
