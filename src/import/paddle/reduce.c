/* Operators along axes: reductions, arguments of extremes, sorting, sums on the way. */
#include <math.h>

#include "import/paddle/paddle.h"

/* The axes of a reduction; empty: all of them. */
static qn_status read_axes(qn_ints *axes, const qn_paddle_layer *l, const char *names)
{
    *axes = (qn_ints){NULL, 0};
    if (qn_paddle_int(l, "reduce_all", 0) || qn_paddle_int(l, "asvector", 0))
        return QN_OK;
    return qn_paddle_list(axes, l, names);
}

static qn_status reduce(qn_value **out, const qn_paddle_layer *l, const qn_op *op, qn_value *x,
                        qn_ints axes)
{
    const int64_t keep = qn_paddle_int(l, "keep_dim keepdim keepdims", 0);
    qn_value *list = NULL;
    if (axes.count)
        QN_TRY(qn_graph_build_ints(&list, l->b, axes.at, axes.count));
    return qn_graph_build(out, l->b, op, QN_INPUTS(x, list), QN_WITH(QN_A_INT("keepdims", keep)));
}

/* Sums of small integers are int64 where nothing else is said. */
qn_status qn_paddle_reduce(qn_paddle_layer *l)
{
    const qn_op *op = l->op->row->onnx;
    qn_value *x;
    qn_ints axes;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(read_axes(&axes, l, "dim axis"));
    const bool small = x->type.dtype == QN_BOOL || x->type.dtype == QN_INT32;
    const qn_dtype dtype = qn_paddle_dtype(
        l, "out_dtype dtype", op == &qn_op_ReduceSum && small ? QN_INT64 : x->type.dtype);
    if (dtype != QN_UNDEFINED)
        QN_TRY(qn_paddle_cast(&x, l, x, dtype));
    QN_TRY(reduce(&x, l, op, x, axes));
    return qn_paddle_out(l, "Out", x);
}

/* All truth values are true where the smallest is, one is where the largest is. */
qn_status qn_paddle_reduce_bool(qn_paddle_layer *l)
{
    qn_value *x;
    qn_ints axes;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(read_axes(&axes, l, "dim axis"));
    QN_TRY(qn_paddle_cast(&x, l, x, QN_BOOL));
    QN_TRY(qn_paddle_cast(&x, l, x, QN_INT32));
    QN_TRY(reduce(&x, l, l->op->row->onnx, x, axes));
    QN_TRY(qn_paddle_cast(&x, l, x, QN_BOOL));
    return qn_paddle_out(l, "Out", x);
}

/* The mean of everything. */
qn_status qn_paddle_mean_all(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(reduce(&x, l, &qn_op_ReduceMean, x, (qn_ints){NULL, 0}));
    return qn_paddle_out(l, "Out", x);
}

/* (sum of |x|^p)^(1/p) */
qn_status qn_paddle_p_norm(qn_paddle_layer *l)
{
    const double p = qn_paddle_real(l, "porder", 2);
    qn_value *x;
    qn_ints axes;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(read_axes(&axes, l, "axis"));
    if (p == 1 || p == 2) {
        QN_TRY(reduce(&x, l, p == 1 ? &qn_op_ReduceL1 : &qn_op_ReduceL2, x, axes));
        return qn_paddle_out(l, "Out", x);
    }
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Abs, x));
    if (isinf(p)) {
        QN_TRY(reduce(&x, l, p > 0 ? &qn_op_ReduceMax : &qn_op_ReduceMin, x, axes));
        return qn_paddle_out(l, "Out", x);
    }
    if (p == 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "norms of order 0");
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Pow, x, p));
    QN_TRY(reduce(&x, l, &qn_op_ReduceSum, x, axes));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Pow, x, 1 / p));
    return qn_paddle_out(l, "Out", x);
}

/* ---- Softmax --------------------------------------------------------------------------------- */

qn_status qn_paddle_softmax(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build(&x, l->b, l->op->row->onnx, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("axis", qn_paddle_int(l, "axis", -1)))));
    return qn_paddle_out(l, "Out", x);
}

/* ---- Places of extremes ---------------------------------------------------------------------- */

qn_status qn_paddle_arg(qn_paddle_layer *l)
{
    static const int64_t all[] = {-1};
    const bool flat = qn_paddle_int(l, "flatten", 0) != 0;
    int64_t axis, keep = qn_paddle_int(l, "keepdims", 0), ones[QN_MAX_RANK];
    qn_value *x;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_number(&axis, l, "axis", -1));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (flat) {
        QN_TRY(qn_paddle_reshape(&x, l, x, all, 1));
        axis = 0;
    }
    QN_TRY(qn_graph_build(&x, l->b, l->op->row->onnx, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("axis", axis), QN_A_INT("keepdims", flat ? 0 : keep))));
    for (int32_t i = 0; i < rank; i++)
        ones[i] = 1;
    if (flat && keep)
        QN_TRY(qn_paddle_reshape(&x, l, x, ones, (size_t)rank));
    QN_TRY(qn_paddle_cast(&x, l, x, qn_paddle_dtype(l, "dtype", QN_INT64)));
    return qn_paddle_out(l, "Out", x);
}

static qn_status top(qn_paddle_layer *l, qn_value *x, qn_value *count, int64_t axis, bool largest)
{
    qn_value *made[2];
    QN_TRY(qn_graph_build_several(made, 2, l->b, &qn_op_TopK, QN_INPUTS(x, count),
                                  QN_WITH(QN_A_INT("axis", axis), QN_A_INT("largest", largest))));
    QN_TRY(qn_paddle_out(l, "Indices", made[1]));
    return qn_paddle_out(l, "Out", made[0]);
}

qn_status qn_paddle_top_k(qn_paddle_layer *l)
{
    qn_value *x, *count;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_shape(&count, l, "K k"));
    if (!count)
        return qn_paddle_fail(l, QN_E_FORMAT, "it does not say how many");
    return top(l, x, count, qn_paddle_int(l, "axis", -1), qn_paddle_int(l, "largest", 1) != 0);
}

qn_status qn_paddle_argsort(qn_paddle_layer *l)
{
    int64_t axis = qn_paddle_int(l, "axis", -1);
    qn_value *x, *count;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_axis(&axis, l, rank));
    QN_TRY(qn_paddle_dim(&count, l, x, axis));
    return top(l, x, count, axis, qn_paddle_int(l, "descending", 0) != 0);
}

qn_status qn_paddle_cumsum(qn_paddle_layer *l)
{
    static const int64_t all[] = {-1};
    qn_value *x, *where;
    int64_t axis;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_number(&axis, l, "axis", -1));
    if (qn_paddle_int(l, "flatten", 0)) {
        QN_TRY(qn_paddle_reshape(&x, l, x, all, 1));
        axis = 0;
    }
    QN_TRY(qn_paddle_number_of(&where, l, QN_INT64, (double)axis));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_CumSum, QN_INPUTS(x, where),
                          QN_WITH(QN_A_INT("exclusive", qn_paddle_int(l, "exclusive", 0)),
                                  QN_A_INT("reverse", qn_paddle_int(l, "reverse", 0)))));
    return qn_paddle_out(l, "Out", x);
}
