/* ops/qfunction.h in vectors: the same operations in the same order. */
#ifndef QN_Q_FUNCTION_KERNELS_H
#define QN_Q_FUNCTION_KERNELS_H

#include "backend/cpu/q_elem_vec.h"
#include "backend/cpu/q_finish.h"

Q_INLINE qf function_sigmoid(qf x)
{
    const qf u = qf_clamp(qf_mul(qf_abs(x), qf_set(QN_SIGMOID_PER_UNIT)), qf_set(0),
                          qf_set(QN_SIGMOID_MOST));
    const qi i = qf_truncate(u);
    const qf t = qf_add(u, qf_mul(qi_float(i), qf_set(-1)));
    const qf p = qf_mul(
        qf_add(qf_mul(qf_pick(qn_sigmoid_terms[0], i), t), qf_pick(qn_sigmoid_terms[1], i)), t);
    const qf above = qf_add(p, qf_pick(qn_sigmoid_terms[2], i));
    return qf_by_sign(x, qf_add(qf_set(1), qf_mul(above, qf_set(-1))), above);
}

Q_INLINE qf function_gate(const qn_qfunction_attrs *f, qf x)
{
    return qf_clamp(qf_add(qf_mul(x, qf_set(f->alpha)), qf_set(f->beta)), qf_set(0), qf_set(1));
}

Q_INLINE qf function_leaky(const qn_qfunction_attrs *f, qf x)
{
    const qf zero = qf_set(0), end = qf_set(INFINITY);
    const qf below = qf_clamp(x, qf_set(-INFINITY), zero);
    return qf_add(qf_clamp(x, zero, end), qf_mul(below, qf_set(f->alpha)));
}

/* Of the results, in registers. */
typedef struct function_ends {
    qf gain, offset, low, high;
} function_ends;

Q_INLINE qf function_end(const function_ends *e, qf f)
{
    return qf_clamp(qf_add(qf_mul(f, e->gain), e->offset), e->low, e->high);
}

/* What is rounded, limited to the results' range, for `count` vectors. */
Q_INLINE void function_lanes(qf *x, int count, const qn_q_finish *finish)
{
    const qn_qfunction_attrs *f = &finish->function;
    const function_ends e = {qf_set(f->gain), qf_set(f->offset), qf_set(finish->first.low),
                             qf_set(finish->first.high)};
    const qf alpha = qf_set(f->alpha);
#define EACH(expression)                                                                           \
    for (int i = 0; i < count; i++)                                                                \
        x[i] = function_end(&e, (expression));                                                     \
    break
    switch ((qn_qfunction_kind)f->kind) {
    case QN_QFUNCTION_SWISH: EACH(qf_mul(x[i], function_sigmoid(qf_mul(x[i], alpha))));
    case QN_QFUNCTION_SIGMOID: EACH(function_sigmoid(x[i]));
    case QN_QFUNCTION_HARD_SWISH: EACH(qf_mul(x[i], function_gate(f, x[i])));
    case QN_QFUNCTION_HARD_SIGMOID: EACH(function_gate(f, x[i]));
    case QN_QFUNCTION_LEAKY_RELU: EACH(function_leaky(f, x[i]));
    }
#undef EACH
}

static void function_one(qf *x, const qn_q_finish *finish)
{
    function_lanes(x, 1, finish);
}

static void function_four(qf *x, const qn_q_finish *finish)
{
    qf four[4] = {x[0], x[1], x[2], x[3]};
    function_lanes(four, 4, finish);
    for (int i = 0; i < 4; i++)
        x[i] = four[i];
}

#endif
