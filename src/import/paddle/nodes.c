/* Nodes and constants that converters need all the time. */
#include <math.h>
#include <string.h>

#include "import/paddle/paddle.h"

qn_status qn_paddle_make(qn_value **out, const qn_paddle_layer *l, const qn_op *op, qn_value *x)
{
    return qn_graph_build(out, l->b, op, QN_INPUTS(x), QN_PLAIN);
}

qn_status qn_paddle_make2(qn_value **out, const qn_paddle_layer *l, const qn_op *op, qn_value *x,
                          qn_value *y)
{
    return qn_graph_build(out, l->b, op, QN_INPUTS(x, y), QN_PLAIN);
}

static qn_dtype dtype_of(const qn_value *x)
{
    const bool known = x->type.kind == QN_TYPE_TENSOR && x->type.dtype != QN_UNDEFINED;
    return known ? x->type.dtype : QN_FLOAT32;
}

qn_status qn_paddle_with(qn_value **out, const qn_paddle_layer *l, const qn_op *op, qn_value *x,
                         double number)
{
    qn_value *constant;
    QN_TRY(qn_paddle_number_of(&constant, l, dtype_of(x), number));
    return qn_paddle_make2(out, l, op, x, constant);
}

qn_status qn_paddle_cast(qn_value **out, const qn_paddle_layer *l, qn_value *x, qn_dtype to)
{
    *out = x;
    if (x->type.kind == QN_TYPE_TENSOR && x->type.dtype == to)
        return QN_OK;
    return qn_graph_build(out, l->b, &qn_op_Cast, QN_INPUTS(x), QN_WITH(QN_A_INT("to", to)));
}

qn_status qn_paddle_reshape(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                            const int64_t *dims, size_t count)
{
    qn_value *shape;
    QN_TRY(qn_graph_build_ints(&shape, l->b, dims, count));
    return qn_paddle_make2(out, l, &qn_op_Reshape, x, shape);
}

/* x itself where there are no axes. */
static qn_status change_axes(qn_value **out, const qn_paddle_layer *l, const qn_op *op, qn_value *x,
                             const int64_t *axes, size_t count)
{
    qn_value *list;
    *out = x;
    if (count == 0)
        return QN_OK;
    QN_TRY(qn_graph_build_ints(&list, l->b, axes, count));
    return qn_paddle_make2(out, l, op, x, list);
}

qn_status qn_paddle_unsqueeze(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                              const int64_t *axes, size_t count)
{
    return change_axes(out, l, &qn_op_Unsqueeze, x, axes, count);
}

qn_status qn_paddle_squeeze(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                            const int64_t *axes, size_t count)
{
    return change_axes(out, l, &qn_op_Squeeze, x, axes, count);
}

qn_status qn_paddle_transpose(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                              const int64_t *perm, size_t count)
{
    return qn_graph_build(out, l->b, &qn_op_Transpose, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("perm", perm, count)));
}

qn_status qn_paddle_slice(qn_value **out, const qn_paddle_layer *l, qn_value *x, int64_t axis,
                          int64_t from, int64_t to)
{
    qn_value *starts, *ends, *axes;
    QN_TRY(qn_graph_build_ints(&starts, l->b, &from, 1));
    QN_TRY(qn_graph_build_ints(&ends, l->b, &to, 1));
    QN_TRY(qn_graph_build_ints(&axes, l->b, &axis, 1));
    return qn_graph_build(out, l->b, &qn_op_Slice, QN_INPUTS(x, starts, ends, axes), QN_PLAIN);
}

qn_status qn_paddle_concat(qn_value **out, const qn_paddle_layer *l, qn_value *const *parts,
                           size_t count, int64_t axis)
{
    return qn_graph_build(out, l->b, &qn_op_Concat, (qn_graph_build_inputs){parts, count},
                          QN_WITH(QN_A_INT("axis", axis)));
}

qn_status qn_paddle_dim(qn_value **out, const qn_paddle_layer *l, qn_value *x, int64_t axis)
{
    return qn_graph_build(out, l->b, &qn_op_Shape, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("start", axis), QN_A_INT("end", axis + 1)));
}

qn_status qn_paddle_order(qn_value **out, const qn_paddle_layer *l, qn_value *x, bool down)
{
    qn_value *count, *made[2];
    QN_TRY(qn_paddle_dim(&count, l, x, 0));
    QN_TRY(qn_graph_build_several(made, 2, l->b, &qn_op_TopK, QN_INPUTS(x, count),
                                  QN_WITH(QN_A_INT("axis", 0), QN_A_INT("largest", down))));
    *out = made[1];
    return QN_OK;
}

qn_status qn_paddle_rows(qn_value **out, const qn_paddle_layer *l, qn_value *x, qn_value *index)
{
    return qn_graph_build(out, l->b, &qn_op_Gather, QN_INPUTS(x, index),
                          QN_WITH(QN_A_INT("axis", 0)));
}

qn_status qn_paddle_where_true(qn_value **out, const qn_paddle_layer *l, qn_value *x)
{
    static const int64_t flat[] = {-1};
    QN_TRY(qn_paddle_make(out, l, &qn_op_NonZero, x));
    return qn_paddle_reshape(out, l, *out, flat, 1);
}

/* ---- Constants ------------------------------------------------------------------------------- */

/* Reals beyond a type's range become its ends. */
static void store(qn_tensor *tensor, int64_t i, double number)
{
    if (!qn_dtype_is_integer(tensor->dtype)) {
        qn_store_f64(tensor->data, tensor->dtype, i, &number, 1);
        return;
    }
    const int64_t whole = isnan(number)       ? 0
                          : number >= 9.2e18  ? INT64_MAX
                          : number <= -9.2e18 ? INT64_MIN
                                              : (int64_t)number;
    qn_store_i64(tensor->data, tensor->dtype, i, &whole, 1);
}

qn_status qn_paddle_numbers(qn_value **out, const qn_paddle_layer *l, qn_dtype dtype,
                            const double *numbers, int32_t rank, const int64_t *dims)
{
    const qn_type type = qn_type_tensor(dtype, rank, dims);
    qn_tensor *tensor;
    int64_t count;
    if (!qn_dtype_is_integer(dtype) && !qn_dtype_is_float(dtype))
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "its elements are of a type without numbers");
    if (!qn_dims_count(&count, rank, dims))
        return qn_paddle_fail(l, QN_E_FORMAT, "its shape is none of a tensor");
    QN_TRY(qn_tensor_create(&tensor, l->b->ctx, &l->b->model->arena, &type));
    for (int64_t i = 0; i < count; i++)
        store(tensor, i, numbers[i]);
    return qn_value_constant(out, l->b->graph, NULL, tensor);
}

qn_status qn_paddle_number_of(qn_value **out, const qn_paddle_layer *l, qn_dtype dtype,
                              double number)
{
    return qn_paddle_numbers(out, l, dtype, &number, 0, NULL);
}

/* ---- Channels last --------------------------------------------------------------------------- */

bool qn_paddle_is_last(const qn_paddle_layer *l)
{
    const char *format = qn_paddle_text(l, "data_format data_layout", "");
    const size_t length = strlen(format);
    return length > 1 && format[0] == 'N' && format[length - 1] == 'C' && format[1] != 'C';
}

qn_status qn_paddle_to_first(qn_value **x, const qn_paddle_layer *l)
{
    int64_t perm[QN_MAX_RANK];
    int32_t rank;
    if (!qn_paddle_is_last(l))
        return QN_OK;
    QN_TRY(qn_paddle_rank(&rank, l, *x));
    if (rank < 3)
        return QN_OK;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
    return qn_paddle_transpose(x, l, *x, perm, (size_t)rank);
}

qn_status qn_paddle_from_first(qn_value **x, const qn_paddle_layer *l)
{
    int64_t perm[QN_MAX_RANK];
    int32_t rank;
    if (!qn_paddle_is_last(l))
        return QN_OK;
    QN_TRY(qn_paddle_rank(&rank, l, *x));
    if (rank < 3)
        return QN_OK;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    return qn_paddle_transpose(x, l, *x, perm, (size_t)rank);
}
