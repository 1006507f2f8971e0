/* Softmax and normalization of rows of bytes. */
#ifndef QN_CPU_INT8_SOFTMAX_NORM_KERNELS_H
#define QN_CPU_INT8_SOFTMAX_NORM_KERNELS_H

#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/simd/vec_quantized.h"
#include "ops/qlinear.h"

Q_INLINE uint8_t row_largest(const uint8_t *x, int64_t n, uint8_t flip)
{
    uint8_t lanes[QB_BYTES], most = 0;
    qb all = qb_set(0);
    int64_t i = 0;
    for (; i + QB_BYTES <= n; i += QB_BYTES)
        all = qb_max(all, qb_xor(qb_load(x + i, QB_BYTES), qb_set(flip)));
    qb_store(lanes, all, QB_BYTES);
    for (int k = 0; k < QB_BYTES; k++)
        most = lanes[k] > most ? lanes[k] : most;
    for (; i < n; i++) {
        const uint8_t v = x[i] ^ flip;
        most = v > most ? v : most;
    }
    return most;
}

/* table[d] by lane */
Q_INLINE qi look_up_lanes(const uint32_t *table, qi d)
{
#if defined(__AVX512F__)
    return _mm512_i32gather_epi32(d, table, 4);
#else
    uint32_t at[QI_LANES];
    qi_store(at, d);
    for (int k = 0; k < QI_LANES; k++)
        at[k] = table[at[k]];
    return qi_load(at);
#endif
}

/* e[i] = table[most - x[i]] */
Q_INLINE void row_exponentials(uint32_t *e, const uint8_t *x, int64_t n, const uint32_t *table,
                               uint8_t flip, uint8_t most)
{
    /* most - (x ^ flip) = ~(x ^ flip) + most + 1 */
    const qi inverted = qi_set(~(int32_t)flip), top = qi_set(most + 1);
    int64_t i = 0;
    for (; i + QI_LANES <= n; i += QI_LANES)
        qi_store(e + i,
                 look_up_lanes(
                     table, qi_add(qi_xor(qi_load_bytes(x + i, false, QI_LANES), inverted), top)));
    for (; i < n; i++)
        e[i] = table[most - (x[i] ^ flip)];
}

/* Dividing by a power of two is multiplying by its inverse. */
Q_INLINE bool is_power2(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7fffffu) == 0 && x > 1e-30f && x < 1e30f;
}

/* e / total / scale, rounded */
Q_INLINE void write_share(uint8_t *y, qi e, qf total, const qn_q_softmax *s, bool halves,
                          int64_t lanes)
{
    const qf v = qf_div(qi_float(e), total);
    const qf w = halves ? qf_mul(v, qf_set(1 / s->y_scale)) : qf_div(v, qf_set(s->y_scale));
    const qi q = qf_round(qf_clamp(w, qf_set(s->round.low), qf_set(s->round.high)));
    qi_store_bytes(y, qi_add(q, qi_set(s->round.zero)), lanes);
}

static void softmax(uint8_t *y, const uint8_t *x, int64_t n, const qn_q_softmax *softmax_of,
                    uint32_t *e)
{
    const qn_q_softmax s = *softmax_of;
    const uint8_t flip = s.is_signed ? 128 : 0;
    const bool halves = is_power2(s.y_scale);
    uint64_t sum = 0;
    row_exponentials(e, x, n, s.table, flip, row_largest(x, n, flip));
    for (int64_t i = 0; i < n; i++)
        sum += e[i];
    const qf total = qf_set((float)sum);
    Q_VECTORS(i, n, {
        uint32_t part[QI_LANES] = {0};
        if (lanes < QI_LANES)
            memcpy(part, e + i, (size_t)lanes * sizeof *e);
        write_share(y + i, qi_load(lanes < QI_LANES ? part : e + i), total, &s, halves, lanes);
    });
}

/* At most QI_LANES of the columns. Lanes beyond the last one read zeros, whose largest is zero as
 * well. */
Q_INLINE void softmax_vector(uint8_t *y, const uint8_t *x, const qn_q_columns *columns,
                             const qn_q_softmax *s, uint32_t *e, int64_t lanes)
{
    const int64_t n = columns->n, stride = columns->stride;
    const uint8_t flip = s->is_signed ? 128 : 0;
    const bool halves = is_power2(s->y_scale);
    uint8_t largest_of_column[QB_BYTES];
    qb most = qb_set(0);
    for (int64_t k = 0; k < n; k++)
        most = qb_max(most, qb_xor(qb_load(x + k * stride, lanes), qb_set(flip)));
    qb_store(largest_of_column, most, QB_BYTES);
    const qi inverted = qi_set(~(int32_t)flip);
    const qi top = qi_add(qi_load_bytes(largest_of_column, false, QI_LANES), qi_set(1));
    qi sum = qi_set(0);
    for (int64_t k = 0; k < n; k++) {
        const qi v = qi_xor(qi_load_bytes(x + k * stride, false, lanes), inverted);
        const qi part = look_up_lanes(s->table, qi_add(v, top));
        qi_store(e + k * QI_LANES, part);
        sum = qi_add(sum, part);
    }
    const qf total = qi_float(sum);
    for (int64_t k = 0; k < n; k++)
        write_share(y + k * stride, qi_load(e + k * QI_LANES), total, s, halves, lanes);
}

static void softmax_columns(uint8_t *y, const uint8_t *x, const qn_q_columns *columns,
                            const qn_q_softmax *softmax_of, uint32_t *e)
{
    const qn_q_softmax s = *softmax_of;
    const qn_q_columns all = *columns;
    Q_VECTORS(i, all.count, softmax_vector(y + i, x + i, &all, &s, e, lanes));
}

static void norm(uint8_t *y, const uint8_t *x, int64_t n, const qn_q_norm *p)
{
    const int32_t flip = p->from.flip, zero = p->from.zero;
    int32_t s1 = 0, s2 = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t a = (x[i] ^ flip) - zero;
        s1 += a;
        s2 += a * a;
    }
    const qf k = qf_set(qn_qnorm_factor(n, s1, s2, p->x_scale, p->epsilon)),
             scale = qf_set(p->y_scale);
    const qi count = qi_set((int32_t)n), less = qi_set(-s1);
    const qn_q_round round = p->round, *r = &round;
    const float *gamma = p->gamma, *beta = p->beta;
    Q_VECTORS(i, n, {
        const qi a =
            qi_add(qi_xor(qi_load_bytes(x + i, false, lanes), qi_set(flip)), qi_set(-zero));
        qf v = qf_mul(qf_mul(qi_float(qi_add(qi_mul(a, count), less)), k),
                      qf_load_first(gamma + i, lanes));
        if (beta)
            v = qf_add(v, qf_load_first(beta + i, lanes));
        const qi q = qf_round(qf_clamp(qf_div(v, scale), qf_set(r->low), qf_set(r->high)));
        qi_store_bytes(y + i, qi_add(q, qi_set(r->zero)), lanes);
    });
}

#endif
