/* What products of 8- and 16-bit integers begin with and what may stand behind them, at random. */
#ifndef QN_INT8_FOLLOW_H
#define QN_INT8_FOLLOW_H

#include "int8_test.h"
#include "ops/qfunction.h"

static inline bool has_int16(qn_dtype x, qn_dtype w)
{
    return qn_dtype_size(x) == 2 || qn_dtype_size(w) == 2;
}

/* Biases of sums of such numbers. */
static inline qn_value *biases(fixture *f, int64_t count, qn_dtype x, qn_dtype w)
{
    const bool wide = has_int16(x, w);
    qn_tensor *t = constant_tensor(f, wide && pick(f, 4) ? QN_INT64 : QN_INT32, 1, &count);
    const int64_t size =
        pick(f, 4) ? 2000 : 1 << 23; /* beyond what floats hold exactly, sometimes */
    for (int64_t i = 0; i < count; i++) {
        const int64_t b = (pick(f, 2 * size) - size) * (pick(f, 8) ? 1 : 200);
        if (t->dtype == QN_INT64)
            ((int64_t *)t->data)[i] = b * (1 + pick(f, 1 << 16));
        else
            ((int32_t *)t->data)[i] = (int32_t)b;
    }
    return constant_value(f, t);
}

static inline qn_value *clip(fixture *f, qn_value *x)
{
    qn_value *const in[] = {x, pick(f, 4) ? add_zero(f, x->type.dtype) : NULL,
                            pick(f, 4) ? add_zero(f, x->type.dtype) : NULL};
    return result_of(add_node(f, &qn_op_Clip, 3, in));
}

static inline qn_value *sum(fixture *f, qn_value *x)
{
    int64_t dims[QN_MAX_RANK];
    const qn_dtype dtype = x->type.dtype;
    assert_true(qn_type_is_static(&x->type, dims));
    const qn_dtype other = pick_width(f, pick_byte(f)), result = pick_width(f, pick_byte(f));
    qn_value *r = add_byte_input(f, other, x->type.rank, dims);
    if (pick(f, 2)) /* a tensor whose memory may be reused */
        r = clip(f, r);
    qn_value *const zeros[] = {add_zero(f, dtype), add_zero(f, other)};
    const int first = pick(f, 4) == 0; /* the other way round it is not the same */
    qn_value *const sides[] = {x, r};
    qn_value *in[] = {sides[first],
                      add_scales(f, 0, 0.01 * unit_of(sides[first]->type.dtype)),
                      zeros[first],
                      sides[!first],
                      add_scales(f, 0, 0.01 * unit_of(sides[!first]->type.dtype)),
                      zeros[!first],
                      add_scales(f, 0, 0.02 * unit_of(result)),
                      add_zero(f, result)};
    return result_of(add_wide_node(f, &qn_op_ms_QLinearAdd, 8, in));
}

static inline qn_value *table(fixture *f, qn_value *x)
{
    const int64_t size = 256;
    if (qn_dtype_size(x->type.dtype) == 2)
        return x;
    return apply(f, &qn_op_qn_QTable, x, add_bytes(f, pick_byte(f), 1, &size));
}

/* A function of a float result that makes bytes of it. */
static inline qn_value *function(fixture *f, qn_value *x)
{
    const qn_dtype dtype = pick_byte(f);
    qn_value *const in[] = {x, add_scales(f, 0, 0.01), add_zero(f, dtype)};
    qn_node *node = add_wide_node(f, &qn_op_qn_QFunction, 3, in);
    qn_qfunction_attrs *a = node->attrs;
    a->kind = pick(f, QN_QFUNCTION_LEAKY_RELU + 1);
    a->alpha = (float)(1 + pick(f, 100)) / 60;
    a->beta = (float)pick(f, 100) / 100;
    a->gain = (float)(1 + pick(f, 200)) / 100;
    a->offset = pick(f, 2) ? (float)pick(f, 100) / 100 : 0;
    return result_of(node);
}

static inline qn_value *follow(fixture *f, qn_value *x)
{
    static qn_value *(*const ways[])(fixture * f, qn_value * x) = {clip, sum, table};
    const int64_t steps = pick(f, 4);
    for (int64_t i = 0; i < steps; i++)
        x = ways[pick(f, 3)](f, x);
    return x;
}

#endif
