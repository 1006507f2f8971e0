/* Reductions, softmax, sums along an axis, sorting. */
#include <string.h>

#include "import/pytorch/aten.h"

static qn_status reduce(qn_value **out, qn_aten_call *c, const qn_op *op, qn_value *x, bool keepdim)
{
    int64_t axes[QN_MAX_RANK];
    qn_value *list;
    size_t count;
    int32_t rank;
    QN_TRY(qn_torch_rank(&rank, c->t, x));
    QN_TRY(qn_aten_axes(axes, &count, c, "dim", rank));
    *out = x;
    if (rank == 0)
        return QN_OK;
    QN_TRY(qn_graph_build_ints(&list, c->b, axes, count));
    return qn_graph_build(out, c->b, op, QN_INPUTS(x, list),
                          QN_WITH(QN_A_INT("keepdims", keepdim)));
}

/* Sums and products of integers and truths are int64; the mean is one of reals. */
qn_status qn_aten_reduce(qn_aten_call *c)
{
    const qn_op *op = c->op->onnx;
    const bool adds = op == &qn_op_ReduceSum || op == &qn_op_ReduceProd;
    qn_value *x;
    qn_dtype dtype;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    dtype = adds && !qn_dtype_is_float(qn_dtype_of(x)) ? QN_INT64 : qn_dtype_of(x);
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype", dtype));
    QN_TRY(qn_aten_cast(&x, c, x, dtype));
    QN_TRY(reduce(&x, c, op, x, qn_aten_flag(c, "keepdim")));
    return qn_aten_return(c, x);
}

static qn_status arg_of(qn_value **out, qn_aten_call *c, const qn_op *op, qn_value *x, int64_t axis)
{
    return qn_graph_build(
        out, c->b, op, QN_INPUTS(x),
        QN_WITH(QN_A_INT("axis", axis), QN_A_INT("keepdims", qn_aten_flag(c, "keepdim"))));
}

/* The larger of two tensors, the largest of all, or the largest along an axis and its place. */
qn_status qn_aten_extreme(qn_aten_call *c)
{
    const bool max = strcmp(c->op->name, "max") == 0;
    const qn_torch_value *second = qn_aten_value(c, "dim");
    qn_value *x, *y[2];
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    if (second->kind == QN_TORCH_TENSOR) {
        QN_TRY(qn_torch_tensor_value(&y[0], c->t, second->tensor));
        QN_TRY(qn_aten_binary_node(&x, c, max ? &qn_op_Max : &qn_op_Min, x, y[0]));
        return qn_aten_return(c, x);
    }
    QN_TRY(
        reduce(&y[0], c, max ? &qn_op_ReduceMax : &qn_op_ReduceMin, x, qn_aten_flag(c, "keepdim")));
    if (qn_torch_is_none(second))
        return qn_aten_return(c, y[0]);
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(arg_of(&y[1], c, max ? &qn_op_ArgMax : &qn_op_ArgMin, x, axis));
    return qn_aten_return_tuple(c, y, 2);
}

/* Max and Min of two tensors. */
qn_status qn_aten_pairwise(qn_aten_call *c)
{
    static const char *const operands[] = {"self", "other"};
    qn_value *v[2];
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    QN_TRY(qn_aten_binary_node(&v[0], c, c->op->onnx, v[0], v[1]));
    return qn_aten_return(c, v[0]);
}

qn_status qn_aten_arg(qn_aten_call *c)
{
    qn_value *x;
    int64_t axis = 0;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    if (qn_aten_has(c, "dim"))
        QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    else
        QN_TRY(qn_aten_reshape(&x, c, x, (const int64_t[]){-1}, 1));
    QN_TRY(arg_of(&x, c, c->op->onnx, x, axis));
    return qn_aten_return(c, x);
}

/* Truths as 0 and 1. */
qn_status qn_aten_any(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_cast(&x, c, x, QN_BOOL));
    QN_TRY(qn_aten_cast(&x, c, x, QN_INT32));
    QN_TRY(reduce(&x, c, c->op->onnx, x, qn_aten_flag(c, "keepdim")));
    QN_TRY(qn_aten_cast(&x, c, x, QN_BOOL));
    return qn_aten_return(c, x);
}

/* ---- Variances ------------------------------------------------------------------------------- */

/* Elements of the axes, less the correction. */
static qn_status degrees(qn_value **out, qn_aten_call *c, qn_value *x, const int64_t *axes,
                         size_t count)
{
    const qn_torch_value *flag = qn_aten_value(c, "unbiased"), *first = qn_aten_value(c, "dim");
    qn_torch_value all = qn_torch_int(1);
    double correction = 1;
    if (flag->kind == QN_TORCH_BOOL)
        correction = flag->truth;
    else if (first->kind == QN_TORCH_BOOL)
        correction = first->truth;
    else if (qn_aten_has(c, "unbiased"))
        QN_TRY(qn_aten_real(&correction, c, "unbiased"));
    for (size_t i = 0; i < count; i++) {
        qn_torch_value pair[2] = {all};
        bool done;
        QN_TRY(qn_torch_dim(&pair[1], c->t, x, (int32_t)axes[i]));
        QN_TRY(qn_torch_arithmetic(&all, &done, c->t, "mul", pair, 2));
    }
    if (all.kind == QN_TORCH_INT)
        return qn_aten_number_like(out, c, x, (double)all.number - correction);
    QN_TRY(qn_torch_value_of(out, c->t, &all));
    QN_TRY(qn_aten_cast(out, c, *out, qn_dtype_of(x)));
    return qn_aten_with_number(out, c, &qn_op_Sub, *out, correction);
}

static qn_status variance_axes(int64_t *axes, size_t *count, qn_aten_call *c, int32_t rank)
{
    if (qn_aten_value(c, "dim")->kind != QN_TORCH_BOOL)
        return qn_aten_axes(axes, count, c, "dim", rank);
    *count = (size_t)rank;
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    return QN_OK;
}

/* sum((x - mean)^2) / (n - correction), its root, and the mean beside it. */
qn_status qn_aten_variance(qn_aten_call *c)
{
    const bool pair = strstr(c->op->name, "mean") != NULL,
               root = strncmp(c->op->name, "std", 3) == 0;
    const bool keep = qn_aten_flag(c, "keepdim");
    int64_t axes[QN_MAX_RANK];
    qn_value *x, *y[2], *list, *n;
    size_t count;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(variance_axes(axes, &count, c, rank));
    QN_TRY(degrees(&n, c, x, axes, count));
    QN_TRY(qn_graph_build_ints(&list, c->b, axes, count));
    QN_TRY(qn_graph_build(&y[1], c->b, &qn_op_ReduceMean, QN_INPUTS(x, list),
                          QN_WITH(QN_A_INT("keepdims", 1))));
    QN_TRY(qn_aten_binary_node(&y[0], c, &qn_op_Sub, x, y[1]));
    QN_TRY(qn_aten_binary_node(&y[0], c, &qn_op_Mul, y[0], y[0]));
    QN_TRY(qn_graph_build(&y[0], c->b, &qn_op_ReduceSum, QN_INPUTS(y[0], list),
                          QN_WITH(QN_A_INT("keepdims", keep))));
    QN_TRY(qn_aten_binary_node(&y[0], c, &qn_op_Div, y[0], n));
    if (root)
        QN_TRY(qn_aten_unary_node(&y[0], c, &qn_op_Sqrt, y[0]));
    if (!pair)
        return qn_aten_return(c, y[0]);
    if (!keep)
        QN_TRY(qn_aten_binary_node(&y[1], c, &qn_op_Squeeze, y[1], list));
    return qn_aten_return_tuple(c, y, 2);
}

/* ---- Along an axis --------------------------------------------------------------------------- */

qn_status qn_aten_softmax(qn_aten_call *c)
{
    qn_value *x, *y;
    qn_dtype dtype;
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype", qn_dtype_of(x)));
    QN_TRY(qn_aten_cast(&x, c, x, dtype));
    QN_TRY(qn_graph_build(&y, c->b, c->op->onnx, QN_INPUTS(x), QN_WITH(QN_A_INT("axis", axis))));
    return qn_aten_return(c, y);
}

qn_status qn_aten_cumsum(qn_aten_call *c)
{
    qn_value *x, *at;
    qn_dtype dtype;
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    dtype = qn_dtype_is_float(qn_dtype_of(x)) ? qn_dtype_of(x) : QN_INT64;
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype", dtype));
    QN_TRY(qn_aten_cast(&x, c, x, dtype));
    QN_TRY(qn_torch_number(&at, c->t, QN_INT64, 0, axis));
    QN_TRY(qn_aten_binary_node(&x, c, c->op->onnx, x, at));
    return qn_aten_return(c, x);
}

static qn_status top(qn_value **out, qn_aten_call *c, qn_value *x, qn_value *k, int64_t axis,
                     bool largest)
{
    return qn_graph_build_several(
        out, 2, c->b, &qn_op_TopK, QN_INPUTS(x, k),
        QN_WITH(QN_A_INT("axis", axis), QN_A_INT("largest", largest), QN_A_INT("sorted", 1)));
}

qn_status qn_aten_topk(qn_aten_call *c)
{
    qn_value *x, *k, *y[2];
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_torch_shape(&k, c->t, qn_aten_value(c, "k"), 1));
    QN_TRY(top(y, c, x, k, axis, qn_aten_flag(c, "largest")));
    return qn_aten_return_tuple(c, y, 2);
}

/* Sorting is to take as many as there are. */
qn_status qn_aten_sort(qn_aten_call *c)
{
    qn_torch_value size;
    qn_value *x, *k, *y[2];
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_torch_dim(&size, c->t, x, (int32_t)axis));
    QN_TRY(qn_torch_shape(&k, c->t, &size, 1));
    QN_TRY(top(y, c, x, k, axis, qn_aten_flag(c, "descending")));
    return strcmp(c->op->name, "argsort") == 0 ? qn_aten_return(c, y[1])
                                               : qn_aten_return_tuple(c, y, 2);
}
