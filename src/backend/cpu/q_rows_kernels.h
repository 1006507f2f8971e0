/* Softmax and normalization of rows of bytes. */
#ifndef QN_Q_ROWS_KERNELS_H
#define QN_Q_ROWS_KERNELS_H

#include "backend/cpu/q_elem.h"
#include "backend/cpu/q_elem_vec.h"
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

/* e[i] = table[most - x[i]] */
Q_INLINE void row_exponentials(uint32_t *e, const uint8_t *x, int64_t n, const qn_q_softmax *s,
                               uint8_t flip, uint8_t most)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    const qi top = qi_set(most), turn = qi_set(flip);
    for (; i + QI_LANES <= n; i += QI_LANES) {
        const qi v = qi_xor(qi_load_bytes(x + i, false, QI_LANES), turn);
        qi_store(e + i, _mm512_i32gather_epi32(_mm512_sub_epi32(top, v), s->table, 4));
    }
#endif
    for (; i < n; i++)
        e[i] = s->table[most - (x[i] ^ flip)];
}

/* Dividing by a power of two is multiplying by its inverse. */
Q_INLINE bool is_power2(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7fffffu) == 0 && x > 1e-30f && x < 1e30f;
}

static void softmax(uint8_t *y, const uint8_t *x, int64_t n, const qn_q_softmax *s, uint32_t *e)
{
    const uint8_t flip = s->is_signed ? 128 : 0;
    uint64_t sum = 0;
    row_exponentials(e, x, n, s, flip, row_largest(x, n, flip));
    for (int64_t i = 0; i < n; i++)
        sum += e[i];
    const bool halves = is_power2(s->y_scale);
    const qf total = qf_set((float)sum), scale = qf_set(halves ? 1 / s->y_scale : s->y_scale);
    const qn_q_round round = s->round, *r = &round;
    Q_VECTORS(i, n, {
        uint32_t part[QI_LANES] = {0};
        if (lanes < QI_LANES)
            memcpy(part, e + i, (size_t)lanes * sizeof *e);
        const qf v = qf_div(qi_float(qi_load(lanes < QI_LANES ? part : e + i)), total);
        const qf w = halves ? qf_mul(v, scale) : qf_div(v, scale);
        const qi q = qf_round(qf_clamp(w, qf_set(r->low), qf_set(r->high)));
        qi_store_bytes(y + i, qi_add(q, qi_set(r->zero)), lanes);
    });
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
