/* finish.h of integers for one tile of sums. */
#ifndef QN_Q_FINISH_KERNELS_H
#define QN_Q_FINISH_KERNELS_H

#include "backend/cpu/q_finish.h"
#include "backend/cpu/q_vec.h"

/* `count` vectors of the same lanes, at sums, sums + step, ...; results and residual lie `y_step` and
 * `r_step` bytes apart. */
typedef struct q_finish_lanes {
    const qi *sums;
    int count, step;
    uint8_t *y;
    const uint8_t *r;
    int64_t y_step, r_step;
    int64_t param, lanes; /* index into bias and scale; how many lanes are real */
} q_finish_lanes;

Q_INLINE qf finish_scaled(const qn_q_finish *f, const q_finish_lanes *l, int i)
{
    return qf_mul(qf_add(qi_float(l->sums[i * l->step]), qf_load(f->bias + l->param)),
                  qf_load(f->scale + l->param));
}

/* Without the zero point. */
Q_INLINE qi finish_round(qf x, const qn_q_round *r)
{
    return qf_round(qf_clamp(x, qf_set(r->low), qf_set(r->high)));
}

Q_INLINE qi finish_sum(const qn_q_finish *f, qi a, const uint8_t *r, int64_t lanes)
{
    const qf x = qi_float(qi_add(a, qi_set(f->a_shift)));
    const qf b = qi_float(qi_add(qi_load_bytes(r, f->r_signed, lanes), qi_set(-f->b_zero)));
    return finish_round(qf_fma(b, qf_set(f->b_scale), qf_mul(x, qf_set(f->a_scale))), &f->second);
}

static void finish_floats(const qn_q_finish *f, const q_finish_lanes *l)
{
    for (int i = 0; i < l->count; i++) {
        float *y = (float *)(void *)(l->y + i * l->y_step);
        qf_store(y, finish_scaled(f, l, i), l->lanes);
    }
}

static void finish_sums(const qn_q_finish *f, const q_finish_lanes *l)
{
    for (int i = 0; i < l->count; i++) {
        const qi a = finish_round(finish_scaled(f, l, i), &f->first);
        const qi y = finish_sum(f, a, l->r + i * l->r_step, l->lanes);
        qi_store_bytes(l->y + i * l->y_step, qi_add(y, qi_set(f->second.zero)), l->lanes);
    }
}

static void finish_bytes(const qn_q_finish *f, const q_finish_lanes *l)
{
    for (int i = 0; i < l->count; i++) {
        const qi a = finish_round(finish_scaled(f, l, i), &f->first);
        qi_store_bytes(l->y + i * l->y_step, qi_add(a, qi_set(f->first.zero)), l->lanes);
    }
}

static void finish_lanes(const qn_q_finish *f, const q_finish_lanes *l)
{
    if (f->floats) {
        finish_floats(f, l);
        return;
    }
    (f->has_sum ? finish_sums : finish_bytes)(f, l);
    const int64_t lanes = l->lanes < QI_LANES ? l->lanes : QI_LANES;
    for (int i = 0; i < l->count && f->table; i++) {
        for (int64_t k = 0; k < lanes; k++)
            l->y[i * l->y_step + k] = f->table[l->y[i * l->y_step + k]];
    }
}

#endif
