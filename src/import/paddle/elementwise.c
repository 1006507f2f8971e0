/* Operators of two tensors, element by element. */
#include <string.h>

#include "import/paddle/paddle.h"

/* The smaller one's first axis is number `axis` of the larger one's; what follows it is 1. */
static qn_status widen(qn_value **small, const qn_paddle_layer *l, int32_t rank)
{
    int64_t axes[QN_MAX_RANK], axis = qn_paddle_int(l, "axis", -1);
    int32_t own;
    QN_TRY(qn_paddle_rank(&own, l, *small));
    if (axis == -1)
        return QN_OK;
    if (axis < 0 || axis > rank)
        return qn_paddle_fail(l, QN_E_FORMAT, "axis %lld in rank %d", (long long)axis, rank);
    int32_t missing = rank - own - (int32_t)axis;
    /* [C, 1, 1] at the last axes but one means [C]. */
    if (missing < 0) {
        int32_t extra = -missing;
        if (extra > own)
            return qn_paddle_fail(l, QN_E_FORMAT, "axis %lld in rank %d", (long long)axis, rank);
        for (int32_t i = 0; i < extra; i++)
            axes[i] = own - extra + i;
        return qn_paddle_squeeze(small, l, *small, axes, (size_t)extra);
    }
    for (int32_t i = 0; i < missing; i++)
        axes[i] = own + i;
    return qn_paddle_unsqueeze(small, l, *small, axes, (size_t)missing);
}

static bool is_number(const qn_value *x)
{
    return x->type.kind == QN_TYPE_TENSOR && x->type.dtype != QN_UNDEFINED;
}

/* The floating one of two element types counts, else the wider one. */
static qn_status agree(qn_value **x, qn_value **y, const qn_paddle_layer *l)
{
    if (!is_number(*x) || !is_number(*y) || (*x)->type.dtype == (*y)->type.dtype)
        return QN_OK;
    const qn_dtype a = (*x)->type.dtype, b = (*y)->type.dtype;
    const bool wider = qn_dtype_is_float(a) == qn_dtype_is_float(b)
                           ? qn_dtype_get(a)->bits >= qn_dtype_get(b)->bits
                           : qn_dtype_is_float(a);
    return wider ? qn_paddle_cast(y, l, *y, a) : qn_paddle_cast(x, l, *x, b);
}

static qn_status read_pair(qn_value **x, qn_value **y, const qn_paddle_layer *l)
{
    int32_t rank_x, rank_y;
    QN_TRY(qn_paddle_in(x, l, "X"));
    QN_TRY(qn_paddle_in(y, l, "Y"));
    QN_TRY(agree(x, y, l));
    if (qn_paddle_int(l, "axis", -1) == -1)
        return QN_OK;
    QN_TRY(qn_paddle_rank(&rank_x, l, *x));
    QN_TRY(qn_paddle_rank(&rank_y, l, *y));
    if (rank_y < rank_x)
        return widen(y, l, rank_x);
    return rank_x < rank_y ? widen(x, l, rank_y) : QN_OK;
}

qn_status qn_paddle_elementwise(qn_paddle_layer *l)
{
    qn_value *x, *y, *out;
    QN_TRY(read_pair(&x, &y, l));
    QN_TRY(qn_paddle_make2(&out, l, l->op->row->onnx, x, y));
    return qn_paddle_out(l, "Out", out);
}

qn_status qn_paddle_not_equal(qn_paddle_layer *l)
{
    qn_value *x, *y, *out;
    QN_TRY(read_pair(&x, &y, l));
    QN_TRY(qn_paddle_make2(&out, l, &qn_op_Equal, x, y));
    QN_TRY(qn_paddle_make(&out, l, &qn_op_Not, out));
    return qn_paddle_out(l, "Out", out);
}

/* x - floor(x / y) * y; of integers ONNX's Mod, which has the sign of y as well. */
static qn_status remainder_of(qn_value **out, const qn_paddle_layer *l, qn_value *x, qn_value *y)
{
    if (is_number(x) && qn_dtype_is_integer(x->type.dtype))
        return qn_paddle_make2(out, l, &qn_op_Mod, x, y);
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Div, x, y));
    QN_TRY(qn_paddle_make(out, l, &qn_op_Floor, *out));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Mul, *out, y));
    return qn_paddle_make2(out, l, &qn_op_Sub, x, *out);
}

qn_status qn_paddle_remainder(qn_paddle_layer *l)
{
    qn_value *x, *y, *out;
    QN_TRY(read_pair(&x, &y, l));
    QN_TRY(remainder_of(&out, l, x, y));
    return qn_paddle_out(l, "Out", out);
}

/* Integers are divided as (x - remainder) / y, since ONNX's Div rounds towards 0. */
qn_status qn_paddle_floor_divide(qn_paddle_layer *l)
{
    qn_value *x, *y, *out;
    QN_TRY(read_pair(&x, &y, l));
    if (is_number(x) && qn_dtype_is_integer(x->type.dtype)) {
        QN_TRY(remainder_of(&out, l, x, y));
        QN_TRY(qn_paddle_make2(&out, l, &qn_op_Sub, x, out));
        QN_TRY(qn_paddle_make2(&out, l, &qn_op_Div, out, y));
    } else {
        QN_TRY(qn_paddle_make2(&out, l, &qn_op_Div, x, y));
        QN_TRY(qn_paddle_make(&out, l, &qn_op_Floor, out));
    }
    return qn_paddle_out(l, "Out", out);
}

/* Bits of bools are bools. */
qn_status qn_paddle_bitwise(qn_paddle_layer *l)
{
    static const struct {
        const qn_op *bits, *bools;
    } twins[] = {{&qn_op_BitwiseAnd, &qn_op_And},
                 {&qn_op_BitwiseOr, &qn_op_Or},
                 {&qn_op_BitwiseXor, &qn_op_Xor}};
    const qn_op *op = l->op->row->onnx;
    qn_value *x, *y, *out;
    QN_TRY(read_pair(&x, &y, l));
    for (size_t i = 0; i < QN_COUNT_OF(twins); i++) {
        if (twins[i].bits == op && x->type.dtype == QN_BOOL)
            op = twins[i].bools;
    }
    QN_TRY(qn_paddle_make2(&out, l, op, x, y));
    return qn_paddle_out(l, "Out", out);
}

qn_status qn_paddle_bitwise_not(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&x, l, x->type.dtype == QN_BOOL ? &qn_op_Not : &qn_op_BitwiseNot, x));
    return qn_paddle_out(l, "Out", x);
}

/* A sum of any number of tensors. */
qn_status qn_paddle_add_n(qn_paddle_layer *l)
{
    const size_t count = qn_paddle_in_count(l, "X");
    qn_value *sum, *x;
    QN_TRY(qn_paddle_in(&sum, l, "X"));
    for (size_t i = 1; i < count; i++) {
        QN_TRY(qn_paddle_in_at(&x, l, "X", i));
        QN_TRY(qn_paddle_make2(&sum, l, &qn_op_Add, sum, x));
    }
    return qn_paddle_out(l, "Out", sum);
}
