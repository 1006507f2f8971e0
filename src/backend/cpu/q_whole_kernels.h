/* The end of tiles whose filters fill all their vectors: sums to bytes or floats, four vectors at a time, with
 * the numbers that all windows share in registers. */
#ifndef QN_Q_WHOLE_KERNELS_H
#define QN_Q_WHOLE_KERNELS_H

#include "backend/cpu/q_finish_kernels.h"
#include "backend/cpu/q_mac.h"

typedef struct whole {
    const qn_mac *m;
    const qn_mac_tile *t;
    int windows, first; /* first: of them, from y[0] and r[0] on */
} whole;

Q_INLINE uint8_t *whole_y(const whole *w, int i)
{
    return i < w->first ? w->t->y[0] + i * w->m->y_step
                        : w->t->y[1] + (i - w->first) * w->m->y_step;
}
Q_INLINE const uint8_t *whole_r(const whole *w, int i)
{
    return i < w->first ? w->t->r[0] + i * w->m->r_step
                        : w->t->r[1] + (i - w->first) * w->m->r_step;
}

typedef struct whole_scales {
    qf bias[4], scale[4]; /* by vector */
} whole_scales;

Q_INLINE whole_scales whole_load(const qn_q_finish *f, int64_t param, int vectors)
{
    whole_scales s;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        s.bias[v] = qf_load(f->bias + param + v * QI_LANES);
        s.scale[v] = qf_load(f->scale + param + v * QI_LANES);
    }
    return s;
}

Q_INLINE qf whole_scaled(const whole_scales *s, qi sum, int v, bool biased)
{
    const qf x = qi_float(sum);
    return qf_mul(biased ? qf_add(x, s->bias[v]) : x, s->scale[v]);
}

/* Four vectors from window i on. */
Q_INLINE void whole_store(const whole *w, qi bytes, int i, int vectors)
{
    const int last = w->windows - 1;
    if (vectors == 4)
        qi_store_halves(whole_y(w, i), whole_y(w, i) + 2 * QI_LANES, bytes);
    else if (vectors == 2)
        qi_store_halves(whole_y(w, i), whole_y(w, QN_MIN(i + 1, last)), bytes);
    else
        qi_store_quarters((uint8_t *const[4]){whole_y(w, i), whole_y(w, QN_MIN(i + 1, last)),
                                              whole_y(w, QN_MIN(i + 2, last)),
                                              whole_y(w, QN_MIN(i + 3, last))},
                          bytes);
}

/* The window behind the last one is the last one once more. */
Q_INLINE void whole_alone(const whole *w, const qi *sums, int vectors, bool biased)
{
    const qn_q_finish *f = &w->m->finish;
    const whole_scales s = whole_load(f, w->t->param, vectors);
    const qi_limits limits = finish_limits(f);
    for (int i = 0; i < w->windows; i += 4 / vectors) {
        qi a[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const int at = QN_MIN(i + k / vectors, w->windows - 1), v = k % vectors;
            a[k] = qf_round(whole_scaled(&s, sums[at * vectors + v], v, biased));
        }
        whole_store(w, qi_pack(a[0], a[1], a[2], a[3], &limits), i, vectors);
    }
}

Q_INLINE void whole_sum(const whole *w, const qi *sums, int vectors, bool biased, bool a_first)
{
    const qn_q_finish *f = &w->m->finish;
    const whole_scales s = whole_load(f, w->t->param, vectors);
    const q_finish_constants c = finish_load(f, w->t->param);
    const qi_limits limits = finish_limits(f);
    const qi bits = qi_set(f->r_signed ? -1 : 255);
    for (int i = 0; i < w->windows; i += 4 / vectors) {
        qi a[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const int at = QN_MIN(i + k / vectors, w->windows - 1), v = k % vectors;
            const qf x = whole_scaled(&s, sums[at * vectors + v], v, biased);
            const qi r = qi_and(qi_load_bytes(whole_r(w, at) + v * QI_LANES, true, QI_LANES), bits);
            a[k] =
                qf_round(finish_add(&c, qf_rint(qf_clamp(x, c.low, c.high)), qi_float(r), a_first));
        }
        whole_store(w, qi_pack(a[0], a[1], a[2], a[3], &limits), i, vectors);
    }
}

Q_INLINE void whole_floats(const whole *w, const qi *sums, int vectors)
{
    const qn_q_finish *f = &w->m->finish;
    const whole_scales s = whole_load(f, w->t->param, vectors);
    const qf low = qf_set(f->first.low), high = qf_set(f->first.high);
    for (int i = 0; i < w->windows; i++) {
        float *y = (float *)(void *)whole_y(w, i);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            qf_store(y + v * QI_LANES,
                     qf_clamp(whole_scaled(&s, sums[i * vectors + v], v, true), low, high),
                     QI_LANES);
    }
}

Q_INLINE void whole_finish(const qi *sums, const whole *w, int vectors)
{
    const qn_q_finish *f = &w->m->finish;
    if (f->floats)
        whole_floats(w, sums, vectors);
    else if (f->has_sum && f->a_first)
        whole_sum(w, sums, vectors, !f->unbiased, true);
    else if (f->has_sum)
        whole_sum(w, sums, vectors, !f->unbiased, false);
    else if (f->unbiased)
        whole_alone(w, sums, vectors, false);
    else
        whole_alone(w, sums, vectors, true);
}

/* sums: [windows][vectors] */
static void whole_finish_1(const qi *sums, const whole *w)
{
    whole_finish(sums, w, 1);
}
static void whole_finish_2(const qi *sums, const whole *w)
{
    whole_finish(sums, w, 2);
}
static void whole_finish_4(const qi *sums, const whole *w)
{
    whole_finish(sums, w, 4);
}

#endif
