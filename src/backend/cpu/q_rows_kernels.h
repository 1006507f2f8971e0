/* Softmax and normalization of rows of bytes. */
#ifndef QN_Q_ROWS_KERNELS_H
#define QN_Q_ROWS_KERNELS_H

#include "backend/cpu/q_elem.h"
#include "backend/cpu/q_elem_vec.h"
#include "ops/qlinear.h"

static void softmax(uint8_t *y, const uint8_t *x, int64_t n, const qn_q_softmax *s, uint32_t *e)
{
    const uint8_t flip = s->is_signed ? 128 : 0;
    uint8_t most = 0;
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t v = x[i] ^ flip;
        most = v > most ? v : most;
    }
    for (int64_t i = 0; i < n; i++)
        e[i] = s->table[most - (x[i] ^ flip)];
    for (int64_t i = 0; i < n; i++)
        sum += e[i];
    const qf total = qf_set((float)sum), scale = qf_set(s->y_scale);
    const qn_q_round *r = &s->round;
    Q_VECTORS(i, n, {
        uint32_t part[QI_LANES] = {0};
        if (lanes < QI_LANES)
            memcpy(part, e + i, (size_t)lanes * sizeof *e);
        const qi whole = qi_load(lanes < QI_LANES ? part : e + i);
        const qf v = qf_div(qf_div(qi_float(whole), total), scale);
        const qi q = qf_round(qf_clamp(v, qf_set(r->low), qf_set(r->high)));
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
    const qn_q_round *r = &p->round;
    Q_VECTORS(i, n, {
        const qi a =
            qi_add(qi_xor(qi_load_bytes(x + i, false, lanes), qi_set(flip)), qi_set(-zero));
        qf v = qf_mul(qf_mul(qi_float(qi_add(qi_mul(a, count), less)), k),
                      qf_load_first(p->gamma + i, lanes));
        if (p->beta)
            v = qf_add(v, qf_load_first(p->beta + i, lanes));
        const qi q = qf_round(qf_clamp(qf_div(v, scale), qf_set(r->low), qf_set(r->high)));
        qi_store_bytes(y + i, qi_add(q, qi_set(r->zero)), lanes);
    });
}

#endif
