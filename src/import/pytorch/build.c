/* What converters build again and again: casts, numbers, views, results. */
#include <string.h>

#include "import/pytorch/aten.h"

qn_status qn_aten_return(qn_aten_call *c, qn_value *value)
{
    return qn_torch_make(&c->result, c->t, value);
}

static qn_status return_items(qn_aten_call *c, qn_torch_kind kind, qn_value *const *values,
                              size_t count)
{
    QN_TRY(qn_torch_new_list(&c->result, c->t->ctx, c->t->arena, kind));
    for (size_t i = 0; i < count; i++) {
        qn_torch_value item = QN_TORCH_NOTHING;
        if (values[i])
            QN_TRY(qn_torch_make(&item, c->t, values[i]));
        QN_TRY(qn_torch_push(c->result.list, c->t->ctx, c->t->arena, &item));
    }
    return QN_OK;
}

qn_status qn_aten_return_tuple(qn_aten_call *c, qn_value *const *values, size_t count)
{
    return return_items(c, QN_TORCH_TUPLE, values, count);
}

qn_status qn_aten_return_list(qn_aten_call *c, qn_value *const *values, size_t count)
{
    return return_items(c, QN_TORCH_LIST, values, count);
}

qn_status qn_aten_unary_node(qn_value **out, qn_aten_call *c, const qn_op *op, qn_value *x)
{
    return qn_graph_build(out, c->b, op, QN_INPUTS(x), QN_PLAIN);
}

qn_status qn_aten_binary_node(qn_value **out, qn_aten_call *c, const qn_op *op, qn_value *x,
                              qn_value *y)
{
    return qn_graph_build(out, c->b, op, QN_INPUTS(x, y), QN_PLAIN);
}

qn_status qn_aten_number_like(qn_value **out, qn_aten_call *c, const qn_value *x, double number)
{
    return qn_torch_number(out, c->t, qn_dtype_of(x), number, (int64_t)number);
}

qn_status qn_aten_with_number(qn_value **out, qn_aten_call *c, const qn_op *op, qn_value *x,
                              double number)
{
    qn_value *y;
    QN_TRY(qn_aten_number_like(&y, c, x, number));
    return qn_aten_binary_node(out, c, op, x, y);
}

qn_status qn_aten_cast(qn_value **out, qn_aten_call *c, qn_value *x, qn_dtype to)
{
    *out = x;
    if (x->type.dtype == to)
        return QN_OK;
    return qn_graph_build(out, c->b, &qn_op_Cast, QN_INPUTS(x), QN_WITH(QN_A_INT("to", to)));
}

/* ---- The type that several arguments are computed in ----------------------------------------- */

/* Truths, integers, reals. */
static int class_of(qn_dtype dtype)
{
    return dtype == QN_BOOL ? 0 : qn_dtype_is_float(dtype) ? 2 : 1;
}

/* The wider of two types of one class: the larger one; of two of 16 bits (half and bfloat16)
 * float32. */
static qn_dtype wider(qn_dtype a, qn_dtype b)
{
    const uint8_t size_a = qn_dtype_get(a)->size, size_b = qn_dtype_get(b)->size;
    if (a == b || class_of(a) != class_of(b))
        return class_of(a) >= class_of(b) ? a : b;
    if (size_a == size_b)
        return qn_dtype_is_float(a) ? QN_FLOAT32 : size_a == 1 ? QN_INT16 : a;
    return size_a > size_b ? a : b;
}

/* Tensors with axes come first, those without next, numbers last: what comes later decides only
 * where its class is a higher one. */
static int priority_of(const qn_torch_value *value, const qn_value *tensor)
{
    return value->kind != QN_TORCH_TENSOR ? 0 : tensor->type.rank == 0 ? 1 : 2;
}

static qn_dtype own_dtype(const qn_torch_value *value, const qn_value *tensor)
{
    if (value->kind == QN_TORCH_TENSOR)
        return qn_dtype_of(tensor);
    return value->kind == QN_TORCH_REAL   ? QN_FLOAT32
           : value->kind == QN_TORCH_BOOL ? QN_BOOL
                                          : QN_INT64;
}

/* A number is made in the type at once. */
static qn_status bring(qn_value **out, qn_aten_call *c, const qn_torch_value *value, qn_dtype dtype)
{
    const double real = value->kind == QN_TORCH_REAL ? value->real : (double)value->number;
    if (value->kind == QN_TORCH_REAL || value->kind == QN_TORCH_INT)
        return qn_torch_number(out, c->t, dtype, real, value->number);
    QN_TRY(qn_torch_value_of(out, c->t, value));
    return qn_aten_cast(out, c, *out, dtype);
}

qn_status qn_aten_promote(qn_value **out, qn_dtype *dtype, qn_aten_call *c,
                          const char *const *names, size_t count)
{
    *dtype = QN_UNDEFINED;
    for (size_t i = 0; i < count; i++) {
        const qn_torch_value *value = qn_aten_value(c, names[i]);
        out[i] = NULL;
        if (qn_torch_is_none(value))
            return qn_aten_unsupported(c, "it has no '%s'", names[i]);
        if (value->kind == QN_TORCH_TENSOR)
            QN_TRY(qn_torch_tensor_value(&out[i], c->t, value->tensor));
    }
    for (int priority = 2; priority >= 0; priority--) {
        qn_dtype own = QN_UNDEFINED;
        for (size_t i = 0; i < count; i++) {
            const qn_torch_value *value = qn_aten_value(c, names[i]);
            if (priority_of(value, out[i]) == priority)
                own = own == QN_UNDEFINED ? own_dtype(value, out[i])
                                          : wider(own, own_dtype(value, out[i]));
        }
        if (own != QN_UNDEFINED && (*dtype == QN_UNDEFINED || class_of(own) > class_of(*dtype)))
            *dtype = own;
    }
    for (size_t i = 0; i < count; i++)
        QN_TRY(bring(&out[i], c, qn_aten_value(c, names[i]), *dtype));
    return QN_OK;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

qn_status qn_aten_unsqueeze(qn_value **out, qn_aten_call *c, qn_value *x, int64_t axis)
{
    qn_value *axes;
    QN_TRY(qn_graph_build_ints(&axes, c->b, &axis, 1));
    return qn_aten_binary_node(out, c, &qn_op_Unsqueeze, x, axes);
}

qn_status qn_aten_squeeze(qn_value **out, qn_aten_call *c, qn_value *x, int64_t axis)
{
    qn_value *axes;
    QN_TRY(qn_graph_build_ints(&axes, c->b, &axis, 1));
    return qn_aten_binary_node(out, c, &qn_op_Squeeze, x, axes);
}

qn_status qn_aten_reshape(qn_value **out, qn_aten_call *c, qn_value *x, const int64_t *shape,
                          size_t count)
{
    qn_value *dims;
    QN_TRY(qn_graph_build_ints(&dims, c->b, shape, count));
    return qn_aten_binary_node(out, c, &qn_op_Reshape, x, dims);
}

qn_status qn_aten_slice(qn_value **out, qn_aten_call *c, qn_value *x, int64_t axis, int64_t start,
                        int64_t end)
{
    qn_value *from, *to, *axes;
    QN_TRY(qn_graph_build_ints(&from, c->b, &start, 1));
    QN_TRY(qn_graph_build_ints(&to, c->b, &end, 1));
    QN_TRY(qn_graph_build_ints(&axes, c->b, &axis, 1));
    return qn_graph_build(out, c->b, &qn_op_Slice, QN_INPUTS(x, from, to, axes), QN_PLAIN);
}

qn_status qn_aten_transpose(qn_value **out, qn_aten_call *c, qn_value *x, int64_t a, int64_t b)
{
    int64_t perm[QN_MAX_RANK];
    int32_t rank;
    QN_TRY(qn_torch_rank(&rank, c->t, x));
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    return qn_graph_build(out, c->b, &qn_op_Transpose, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)rank)));
}
