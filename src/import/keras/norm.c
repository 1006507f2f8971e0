/* Normalizations. */
#include <math.h>
#include <string.h>

#include "import/keras/keras.h"

/* The only axis that the layer names, counted from the begin. */
static qn_status axis_of(int64_t *axis, const qn_keras_call *call, int32_t rank)
{
    size_t count = 1;
    *axis = -1;
    if (qn_keras_int_list(axis, &count, call, "axis", 1) && count != 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "several axes");
    *axis += *axis < 0 ? rank : 0;
    if (*axis < 0 || *axis >= rank)
        return qn_keras_fail(call, QN_E_FORMAT, "axis %lld of %d", (long long)*axis, rank);
    return QN_OK;
}

/* A constant of as many numbers of this. */
static qn_status constant(qn_value **out, qn_keras_call *call, int64_t count, float number)
{
    qn_value *shape, *one;
    qn_keras_import *import = call->import;
    QN_TRY(qn_graph_build_ints(&shape, &import->builder, &count, 1));
    QN_TRY(qn_keras_number(&one, import, (double)number, QN_FLOAT32));
    return qn_keras_two(out, import, &qn_op_Expand, one, shape);
}

/* gamma and beta, or what stands for them; *next is the weight behind them. */
static qn_status affine(qn_value **scale, qn_value **offset, qn_keras_call *call, int64_t channels,
                        size_t *next)
{
    *next = 0;
    if (qn_keras_bool(call, "scale", true))
        QN_TRY(qn_keras_own_weight(scale, call, (*next)++));
    else
        QN_TRY(constant(scale, call, channels, 1));
    if (qn_keras_bool(call, "center", true))
        return qn_keras_own_weight(offset, call, (*next)++);
    return constant(offset, call, channels, 0);
}

/* The order in which the channels, at this axis, come second. */
static qn_status order_for(qn_axis_order *order, const qn_keras_call *call, int32_t rank,
                           int64_t axis)
{
    *order = axis == 1 || rank < 3 ? QN_ORDER_OWN : QN_ORDER_CHANNELS_FIRST;
    if (axis != 1 && axis != rank - 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "axis %lld of %d", (long long)axis, rank);
    return QN_OK;
}

qn_status qn_keras_batch_norm(qn_keras_call *call)
{
    int64_t axis;
    size_t next;
    qn_value *x, *scale, *offset, *mean, *variance, *y;
    qn_axis_order order;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(axis_of(&axis, call, x->type.rank));
    QN_TRY(order_for(&order, call, x->type.rank, axis));
    QN_TRY(qn_keras_in(&x, call, 0, order));
    const int64_t channels = x->type.dims[1].value;
    if (channels < 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the channels are not known");
    QN_TRY(affine(&scale, &offset, call, channels, &next));
    QN_TRY(qn_keras_own_weight(&mean, call, next));
    QN_TRY(qn_keras_own_weight(&variance, call, next + 1));
    QN_TRY(
        qn_graph_build(&y, &call->import->builder, &qn_op_BatchNormalization,
                       QN_INPUTS(x, scale, offset, mean, variance),
                       QN_WITH(QN_A_REAL("epsilon", (float)qn_keras_real(call, "epsilon", 1e-3)))));
    return qn_keras_out(call, y, order);
}

qn_status qn_keras_layer_norm(qn_keras_call *call)
{
    int64_t axis;
    size_t next;
    qn_value *x, *scale, *offset, *y;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    const int32_t rank = x->type.rank;
    QN_TRY(axis_of(&axis, call, rank));
    if (axis != rank - 1 || x->type.dims[axis].value < 1 ||
        qn_keras_bool(call, "rms_scaling", false))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "another axis than the last, or rms_scaling");
    QN_TRY(affine(&scale, &offset, call, x->type.dims[axis].value, &next));
    QN_TRY(qn_graph_build(
        &y, &call->import->builder, &qn_op_LayerNormalization, QN_INPUTS(x, scale, offset),
        QN_WITH(QN_A_INT("axis", -1),
                QN_A_REAL("epsilon", (float)qn_keras_real(call, "epsilon", 1e-3)))));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

qn_status qn_keras_group_norm(qn_keras_call *call)
{
    int64_t axis, groups = qn_keras_int(call, "groups", 32);
    size_t next;
    qn_value *x, *scale, *offset, *y;
    qn_axis_order order;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(axis_of(&axis, call, x->type.rank));
    QN_TRY(order_for(&order, call, x->type.rank, axis));
    QN_TRY(qn_keras_in(&x, call, 0, order));
    const int64_t channels = x->type.dims[1].value;
    if (channels < 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the channels are not known");
    groups = groups == -1 ? channels : groups;
    QN_TRY(affine(&scale, &offset, call, channels, &next));
    QN_TRY(qn_graph_build(
        &y, &call->import->builder, &qn_op_GroupNormalization, QN_INPUTS(x, scale, offset),
        QN_WITH(QN_A_INT("num_groups", groups),
                QN_A_REAL("epsilon", (float)qn_keras_real(call, "epsilon", 1e-3)))));
    return qn_keras_out(call, y, order);
}

/* ---- Numbers of the data --------------------------------------------------------------------- */

/* Numbers for the last axis, or one for all, in the order that x is held in. */
static qn_status channel_numbers(qn_value **out, const qn_keras_call *call, const char *key,
                                 double fallback, const qn_value *x, qn_axis_order order)
{
    enum { MOST = 4096 };
    float numbers[MOST];
    int64_t dims[QN_MAX_RANK];
    size_t count;
    qn_keras_import *import = call->import;
    if (!qn_keras_real_list(numbers, &count, call, key, MOST))
        return qn_keras_number(out, import, qn_keras_real(call, key, fallback), QN_FLOAT32);
    QN_TRY(qn_graph_build_reals(out, &import->builder, numbers, count));
    for (int32_t i = 0; i < x->type.rank; i++)
        dims[i] = 1;
    if (order == QN_ORDER_OWN || x->type.rank < 3)
        return QN_OK;
    dims[1] = (int64_t)count;
    return qn_keras_with_ints(out, import, &qn_op_Reshape, dims, (size_t)x->type.rank);
}

static qn_status as_float(qn_value **x, qn_keras_import *import)
{
    if (qn_dtype_is_float((*x)->type.dtype))
        return QN_OK;
    return qn_graph_build(x, &import->builder, &qn_op_Cast, QN_INPUTS(*x),
                          QN_WITH(QN_A_INT("to", QN_FLOAT32)));
}

qn_status qn_keras_rescaling(qn_keras_call *call)
{
    qn_value *x, *scale, *offset;
    qn_axis_order order;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(as_float(&x, call->import));
    QN_TRY(channel_numbers(&scale, call, "scale", 1, x, order));
    QN_TRY(channel_numbers(&offset, call, "offset", 0, x, order));
    QN_TRY(qn_keras_two(&x, call->import, &qn_op_Mul, x, scale));
    QN_TRY(qn_keras_two(&x, call->import, &qn_op_Add, x, offset));
    return qn_keras_out(call, x, order);
}

/* Mean and variance as weights, which are there unless the configuration has them. */
static qn_status statistic(qn_value **out, qn_keras_call *call, const char *key, size_t i,
                           double fallback)
{
    qn_json_place place;
    float numbers[4096];
    size_t count;
    qn_graph_builder *b = &call->import->builder;
    if (!qn_keras_find(&place, &call->layer->config, key))
        return qn_keras_own_weight(out, call, i);
    if (qn_keras_real_list(numbers, &count, call, key, QN_COUNT_OF(numbers)))
        return qn_graph_build_reals(out, b, numbers, count);
    return qn_keras_number(out, call->import, qn_keras_real(call, key, fallback), QN_FLOAT32);
}

/* (x - mean) / max(sqrt(variance), epsilon), or the other way round. */
qn_status qn_keras_normalization(qn_keras_call *call)
{
    qn_value *x, *mean, *spread, *least;
    qn_keras_import *import = call->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(as_float(&x, import));
    QN_TRY(statistic(&mean, call, "mean", 0, 0));
    QN_TRY(statistic(&spread, call, "variance", 1, 1));
    QN_TRY(qn_graph_build(&spread, b, &qn_op_Sqrt, QN_INPUTS(spread), QN_PLAIN));
    QN_TRY(qn_keras_number(&least, import, 1e-7, QN_FLOAT32));
    QN_TRY(qn_keras_two(&spread, import, &qn_op_Max, spread, least));
    if (qn_keras_bool(call, "invert", false)) {
        QN_TRY(qn_keras_two(&x, import, &qn_op_Mul, x, spread));
        QN_TRY(qn_keras_two(&x, import, &qn_op_Add, x, mean));
    } else {
        QN_TRY(qn_keras_two(&x, import, &qn_op_Sub, x, mean));
        QN_TRY(qn_keras_two(&x, import, &qn_op_Div, x, spread));
    }
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

/* A number for each channel. */
qn_status qn_keras_layer_scale(qn_keras_call *call)
{
    qn_value *x, *scale, *y;
    qn_axis_order order;
    int64_t dims[QN_MAX_RANK] = {-1};
    qn_keras_import *import = call->import;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(qn_keras_own_weight(&scale, call, 0));
    const int32_t behind = order == QN_ORDER_OWN ? 0 : x->type.rank - 2;
    for (int32_t i = 1; i <= behind; i++)
        dims[i] = 1;
    if (behind > 0)
        QN_TRY(qn_keras_with_ints(&scale, import, &qn_op_Reshape, dims, (size_t)behind + 1));
    QN_TRY(qn_keras_two(&y, import, &qn_op_Mul, x, scale));
    return qn_keras_out(call, y, order);
}

/* x / sqrt(mean(x^2) + epsilon) along the last axis, times weights. */
qn_status qn_keras_rms_norm(qn_keras_call *call)
{
    int64_t axis;
    qn_value *x, *scale, *y;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(axis_of(&axis, call, x->type.rank));
    if (axis != x->type.rank - 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "another axis than the last");
    QN_TRY(qn_keras_own_weight(&scale, call, 0));
    QN_TRY(
        qn_graph_build(&y, &call->import->builder, &qn_op_RMSNormalization, QN_INPUTS(x, scale),
                       QN_WITH(QN_A_INT("axis", -1),
                               QN_A_REAL("epsilon", (float)qn_keras_real(call, "epsilon", 1e-6)))));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}
