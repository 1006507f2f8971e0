/* ops/qfunction.h in vectors: the same operations in the same order. */
#ifndef QN_CPU_Q_FUNCTION_KERNELS_H
#define QN_CPU_Q_FUNCTION_KERNELS_H

#include "backend/cpu/int/epilogue/q_epilogue.h"
#include "backend/cpu/simd/vec_quantized.h"

/* |x| in pieces of the sigmoid. */
Q_INLINE qf function_pieces(qf x)
{
    return qf_clamp(qf_mul(qf_abs(x), qf_set(QN_SIGMOID_PER_UNIT)), qf_set(0),
                    qf_set(QN_SIGMOID_MOST));
}

/* sigmoid(|x|) of that. */
Q_INLINE qf function_above(qf u)
{
    const qi i = qf_truncate(u);
    const qf t = qf_add(u, qf_mul(qi_float(i), qf_set(-1)));
    const qf p = qf_mul(
        qf_add(qf_mul(qf_pick(qn_sigmoid_terms[0], i), t), qf_pick(qn_sigmoid_terms[1], i)), t);
    return qf_add(p, qf_pick(qn_sigmoid_terms[2], i));
}

Q_INLINE qf function_signed(qf x, qf above)
{
    return qf_by_sign(x, qf_add(qf_set(1), qf_mul(above, qf_set(-1))), above);
}

Q_INLINE qf function_sigmoid(qf x)
{
    return function_signed(x, function_above(function_pieces(x)));
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

/* `kind` is a number that the compiler knows. */
Q_INLINE qf function_value(const qn_qfunction_attrs *f, qn_qfunction_kind kind, qf x)
{
    switch (kind) {
    case QN_QFUNCTION_SWISH: return qf_mul(x, function_sigmoid(qf_mul(x, qf_set(f->alpha))));
    case QN_QFUNCTION_SIGMOID: return function_sigmoid(x);
    case QN_QFUNCTION_HARD_SWISH: return qf_mul(x, function_gate(f, x));
    case QN_QFUNCTION_HARD_SIGMOID: return function_gate(f, x);
    case QN_QFUNCTION_LEAKY_RELU: break;
    }
    return function_leaky(f, x);
}

/* CALL with every kind, of which the one that `f` has is done. */
#define FUNCTION_KINDS(f, CALL)                                                                    \
    switch ((qn_qfunction_kind)(f)->kind) {                                                        \
    case QN_QFUNCTION_SWISH: CALL(QN_QFUNCTION_SWISH); break;                                      \
    case QN_QFUNCTION_SIGMOID: CALL(QN_QFUNCTION_SIGMOID); break;                                  \
    case QN_QFUNCTION_HARD_SWISH: CALL(QN_QFUNCTION_HARD_SWISH); break;                            \
    case QN_QFUNCTION_HARD_SIGMOID: CALL(QN_QFUNCTION_HARD_SIGMOID); break;                        \
    case QN_QFUNCTION_LEAKY_RELU:                                                                  \
    default: CALL(QN_QFUNCTION_LEAKY_RELU); break;                                                 \
    }

/* What is rounded, limited to the results' range. */
Q_INLINE qf function_end(const qn_q_epilogue *epilogue, qf x)
{
    const qn_qfunction_attrs *f = &epilogue->function;
    return qf_clamp(qf_add(qf_mul(x, qf_set(f->gain)), qf_set(f->offset)),
                    qf_set(epilogue->first.low), qf_set(epilogue->first.high));
}

static void function_one(qf *x, const qn_q_epilogue *epilogue)
{
    const qn_qfunction_attrs *f = &epilogue->function;
#define ONE(kind) *x = function_end(epilogue, function_value(f, kind, *x))
    FUNCTION_KINDS(f, ONE)
#undef ONE
}

enum { FUNCTION_VECTORS = 28 }; /* the most of a tile */

/* A sigmoid goes step by step for all vectors: as one chain of operations for each they would wait
 * for themselves, since no processor looks ahead far enough to begin the next but one. */
Q_INLINE void function_steps(qi *to, const qf *x, int count, const qn_q_epilogue *epilogue,
                             bool is_swish)
{
    const qn_q_epilogue f =
        *epilogue; /* the compiler cannot know that results do not overwrite it */
    const qf alpha = qf_set(f.function.alpha);
    qf u[FUNCTION_VECTORS];
    for (int i = 0; i < count; i++)
        u[i] = function_pieces(is_swish ? qf_mul(x[i], alpha) : x[i]);
    for (int i = 0; i < count; i++)
        u[i] = function_above(u[i]);
    for (int i = 0; i < count; i++) {
        const qf y = function_signed(is_swish ? qf_mul(x[i], alpha) : x[i], u[i]);
        to[i] = qf_round(function_end(&f, is_swish ? qf_mul(x[i], y) : y));
    }
}

Q_INLINE void function_all(qi *to, const qf *x, int count, const qn_q_epilogue *epilogue,
                           qn_qfunction_kind kind)
{
    const qn_q_epilogue f = *epilogue;
    if (kind == QN_QFUNCTION_SWISH || kind == QN_QFUNCTION_SIGMOID) {
        function_steps(to, x, count, epilogue, kind == QN_QFUNCTION_SWISH);
        return;
    }
    for (int i = 0; i < count; i++)
        to[i] = qf_round(function_end(&f, function_value(&f.function, kind, x[i])));
}

/* Rounds the functions of up to FUNCTION_VECTORS vectors to whole numbers less the zero point. */
static void function_rounded(qi *to, const qf *x, int count, const qn_q_epilogue *epilogue)
{
#define ALL(kind) function_all(to, x, count, epilogue, kind)
    FUNCTION_KINDS(&epilogue->function, ALL)
#undef ALL
}

#endif
