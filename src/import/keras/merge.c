/* Layers that join several inputs. */
#include <string.h>

#include "import/keras/keras.h"

static qn_status agreed(qn_value ***in, qn_axis_order *order, qn_keras_call *call)
{
    qn_keras_import *import = call->import;
    *in = qn_arena_array(&import->arena, call->n_in + 1, sizeof(qn_value *));
    QN_TRY_ALLOC(import->ctx, *in);
    if (call->n_in == 0)
        return qn_keras_fail(call, QN_E_FORMAT, "it has no input");
    return qn_layout_agree(*in, order, &import->layouts, call->in, call->n_in);
}

static qn_status joined(qn_value **y, qn_axis_order *order, qn_keras_call *call, const qn_op *op)
{
    qn_value **in;
    QN_TRY(agreed(&in, order, call));
    *y = in[0];
    for (size_t i = 1; i < call->n_in; i++)
        QN_TRY(qn_keras_two(y, call->import, op, *y, in[i]));
    return QN_OK;
}

qn_status qn_keras_merge(qn_keras_call *call)
{
    qn_value *y;
    qn_axis_order order;
    if (call->n_in < 2)
        return qn_keras_binary(call); /* functions have the names of layers, and numbers */
    QN_TRY(joined(&y, &order, call, call->layer->op->as));
    return qn_keras_out(call, y, order);
}

qn_status qn_keras_average(qn_keras_call *call)
{
    qn_value *y, *count;
    qn_axis_order order;
    QN_TRY(joined(&y, &order, call, &qn_op_Add));
    QN_TRY(qn_keras_number(&count, call->import, (double)call->n_in, y->type.dtype));
    QN_TRY(qn_keras_two(&y, call->import, &qn_op_Div, y, count));
    return qn_keras_out(call, y, order);
}

qn_status qn_keras_concatenate(qn_keras_call *call)
{
    qn_value **in, *y;
    qn_axis_order order;
    const int64_t axis = qn_keras_int(call, "axis", -1);
    QN_TRY(agreed(&in, &order, call));
    const int32_t rank = in[0]->type.rank;
    if (axis < -rank || axis >= rank)
        return qn_keras_fail(call, QN_E_FORMAT, "axis %lld of %d", (long long)axis, rank);
    QN_TRY(qn_graph_build(&y, &call->import->builder, &qn_op_Concat,
                          (qn_graph_build_inputs){in, call->n_in},
                          QN_WITH(QN_A_INT("axis", qn_layout_axis(order, rank, axis)))));
    return qn_keras_out(call, y, order);
}

/* Length 1 along an axis, as Keras makes it. */
static qn_status unit(qn_value **x, qn_keras_import *import, int64_t axis)
{
    qn_value *length, *least, *over;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_graph_build_ints(&over, b, &axis, 1));
    QN_TRY(qn_keras_two(&length, import, &qn_op_ReduceL2, *x, over));
    QN_TRY(qn_keras_number(&least, import, 1e-6, (*x)->type.dtype));
    QN_TRY(qn_keras_two(&length, import, &qn_op_Max, length, least));
    return qn_keras_two(x, import, &qn_op_Div, *x, length);
}

/* Sums of products along one axis of each, of tensors of two or three axes. */
qn_status qn_keras_dot(qn_keras_call *call)
{
    int64_t axes[2];
    static const int64_t turned[] = {0, 2, 1};
    qn_value *in[2], *y;
    qn_keras_import *import = call->import;
    if (!qn_keras_ints(axes, 2, call, "axes"))
        return qn_keras_fail(call, QN_E_FORMAT, "its axes are missing");
    for (size_t i = 0; i < 2; i++) {
        QN_TRY(qn_keras_in(&in[i], call, i, QN_ORDER_OWN));
        const int32_t rank = in[i]->type.rank;
        axes[i] += axes[i] < 0 ? rank : 0;
        if (rank < 2 || rank > 3 || rank != in[0]->type.rank || axes[i] < 1 || axes[i] >= rank)
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "ranks %d and %d", in[0]->type.rank, rank);
        if (qn_keras_bool(call, "normalize", false))
            QN_TRY(unit(&in[i], import, axes[i]));
    }
    if (in[0]->type.rank == 2) {
        const int64_t one = 1;
        QN_TRY(qn_keras_two(&y, import, &qn_op_Mul, in[0], in[1]));
        QN_TRY(qn_keras_with_ints(&y, import, &qn_op_ReduceSum, &one, 1));
        return qn_keras_out(call, y, QN_ORDER_OWN);
    }
    if (axes[0] == 1)
        QN_TRY(qn_keras_permute(&in[0], import, turned, 3));
    if (axes[1] == 2)
        QN_TRY(qn_keras_permute(&in[1], import, turned, 3));
    QN_TRY(qn_keras_two(&y, import, &qn_op_MatMul, in[0], in[1]));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

qn_status qn_keras_unit_norm(qn_keras_call *call)
{
    int64_t axis = -1;
    size_t count;
    qn_value *x;
    if (qn_keras_int_list(&axis, &count, call, "axis", 1) && count != 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "several axes");
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(unit(&x, call->import, axis));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}
