/* Nodes that several converters make. */
#include <math.h>
#include <string.h>

#include "import/tflite/tflite.h"
#include "ir/qparams.h"

qn_status qn_tfl_unary(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *x)
{
    return qn_graph_build(y, l->b, op, QN_INPUTS(x), QN_PLAIN);
}

qn_status qn_tfl_binary(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *a, qn_value *b)
{
    return qn_graph_build(y, l->b, op, QN_INPUTS(a, b), QN_PLAIN);
}

qn_status qn_tfl_number(qn_value **y, tfl_layer *l, qn_dtype dtype, double number)
{
    const qn_type type = qn_type_tensor(dtype, 0, NULL);
    const size_t size = qn_dtype_get(dtype)->size;
    char *bytes = qn_arena_alloc(&l->b->model->arena, QN_MAX(size, 1u));
    QN_TRY_ALLOC(l->b->ctx, bytes);
    if (dtype == QN_FLOAT32)
        return qn_graph_build_real(y, l->b, (float)number);
    qn_store_f64(bytes, dtype, 0, &number, 1);
    return qn_graph_build_constant(y, l->b, NULL, &type, (qn_string){bytes, size});
}

qn_status qn_tfl_with(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *x, double number)
{
    qn_value *second;
    QN_TRY(qn_tfl_number(&second, l, x->type.dtype, number));
    return qn_tfl_binary(y, l, op, x, second);
}

qn_status qn_tfl_cast(qn_value **y, tfl_layer *l, qn_value *x, qn_dtype dtype)
{
    *y = x;
    if (x->type.kind == QN_TYPE_TENSOR && x->type.dtype == dtype)
        return QN_OK;
    return qn_graph_build(y, l->b, &qn_op_Cast, QN_INPUTS(x), QN_WITH(QN_A_INT("to", dtype)));
}

qn_status qn_tfl_transpose(qn_value **y, tfl_layer *l, qn_value *x, const int64_t *perm,
                           size_t rank)
{
    return qn_graph_build(y, l->b, &qn_op_Transpose, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("perm", perm, rank)));
}

/* Rows along the last axis, one after the other; `at` counts along the others. */
static void copy_turned(const qn_tensor *to, const qn_tensor *from, const int64_t *perm)
{
    int64_t strides[QN_MAX_RANK], at[QN_MAX_RANK] = {0};
    const size_t size = qn_dtype_get(to->dtype)->size;
    const int32_t last = to->rank - 1;
    const int64_t count = qn_tensor_count(to);
    char *y = to->data;
    qn_dims_strides(strides, from->rank, from->dims);
    const size_t step = (size_t)strides[perm[last]] * size;
    for (int64_t done = 0; done < count; done += to->dims[last]) {
        const char *x = from->data;
        for (int32_t d = 0; d < last; d++)
            x += (size_t)(at[d] * strides[perm[d]]) * size;
        for (int64_t i = 0; i < to->dims[last]; i++, y += size, x += step)
            memcpy(y, x, size);
        for (int32_t d = last - 1; d >= 0 && ++at[d] == to->dims[d]; d--)
            at[d] = 0;
    }
}

qn_status qn_tfl_turn(qn_value **y, tfl_layer *l, tfl_tensor *t, qn_value *x, const int64_t *perm)
{
    qn_tensor *tensor;
    const qn_tensor *from = x->data;
    if (t->turned && t->turned_first == perm[0]) {
        *y = t->turned;
        return QN_OK;
    }
    if (!from || t->turned || qn_tensor_count(from) == 0)
        return qn_tfl_transpose(y, l, x, perm, (size_t)qn_tfl_rank(x));
    qn_type type = x->type;
    for (int32_t d = 0; d < from->rank; d++)
        type.dims[d] = qn_dim_of(from->dims[perm[d]]);
    QN_TRY(qn_model_tensor(&tensor, l->b->model, &type));
    copy_turned(tensor, from, perm);
    qn_model_release(l->b->model, from);
    t->turned_first = perm[0];
    QN_TRY(qn_value_rename(x, t->name)); /* a taken name gets a number */
    QN_TRY(qn_value_constant(&t->turned, l->b->graph, t->name, tensor));
    *y = t->turned;
    return QN_OK;
}

qn_status qn_tfl_reshape(qn_value **y, tfl_layer *l, qn_value *x, const int64_t *dims, size_t rank)
{
    qn_value *shape;
    QN_TRY(qn_graph_build_ints(&shape, l->b, dims, rank));
    return qn_tfl_binary(y, l, &qn_op_Reshape, x, shape);
}

qn_status qn_tfl_clip(qn_value **y, tfl_layer *l, qn_value *x, double low, double high)
{
    qn_value *from, *to;
    QN_TRY(qn_tfl_number(&from, l, x->type.dtype, low));
    QN_TRY(qn_tfl_number(&to, l, x->type.dtype, high));
    return qn_graph_build(y, l->b, &qn_op_Clip, QN_INPUTS(x, from, to), QN_PLAIN);
}

qn_status qn_tfl_along(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *x,
                       const int64_t *axes, size_t count)
{
    qn_value *list;
    QN_TRY(qn_graph_build_ints(&list, l->b, axes, count));
    return qn_tfl_binary(y, l, op, x, list);
}

/* ---- Activations that operators have --------------------------------------------------------- */

qn_status qn_tfl_activate(qn_value **y, tfl_layer *l, qn_value *x, int64_t activation)
{
    switch (activation) {
    case QN_TFL_NO_ACTIVATION: *y = x; return QN_OK;
    case QN_TFL_RELU: return qn_tfl_unary(y, l, &qn_op_Relu, x);
    case QN_TFL_RELU_N1_TO_1: return qn_tfl_clip(y, l, x, -1, 1);
    case QN_TFL_RELU6: return qn_tfl_clip(y, l, x, 0, 6);
    case QN_TFL_TANH: return qn_tfl_unary(y, l, &qn_op_Tanh, x);
    case QN_TFL_SIGN_BIT: return qn_tfl_unary(y, l, &qn_op_Sign, x);
    }
    return qn_tfl_unsupported(l, "activation %lld is not known", (long long)activation);
}

/* What the tensor's integers can stand for lies within the limits of the activation. */
static bool is_implied(const tfl_tensor *t, int64_t activation)
{
    const double low = activation == QN_TFL_RELU_N1_TO_1 ? -1 : 0;
    const double high = activation == QN_TFL_RELU    ? (double)INFINITY
                        : activation == QN_TFL_RELU6 ? 6
                                                     : 1;
    const qn_qparams whole = qn_qparams_of_type(t->dtype);
    const double scale = (double)qn_tfl_scale(t, 0), zero = (double)qn_tfl_zero(t, 0);
    return activation >= QN_TFL_RELU && activation <= QN_TFL_RELU6 &&
           rint(low / scale) + zero <= (double)whole.qmin &&
           rint(high / scale) + zero >= (double)whole.qmax;
}

qn_status qn_tfl_put_active(tfl_layer *l, qn_value *value, qn_axis_order order, int64_t activation)
{
    if (!(l->n_out && l->out[0] && qn_tfl_is_quantized(l->out[0]) &&
          is_implied(l->out[0], activation)))
        QN_TRY(qn_tfl_activate(&value, l, value, activation));
    return qn_tfl_put(l, 0, value, order);
}
