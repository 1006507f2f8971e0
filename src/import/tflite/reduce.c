/* What runs along axes: sums and means, softmax, norms, places of extremes. */
#include "import/tflite/tflite.h"

enum { REDUCE_KEEP = 0, SOFTMAX_BETA = 0, NORM_ACTIVATION = 0, ARG_TYPE = 0 };
enum { LRN_RADIUS = 0, LRN_BIAS = 1, LRN_ALPHA = 2, LRN_BETA = 3 };
enum { CUMSUM_EXCLUSIVE = 0, CUMSUM_REVERSE = 1 };

/* ---- Reductions ------------------------------------------------------------------------------ */

/* Where a value stands with its channels first, whether its axes stand as in the file, or with
 * channels first again, once these are gone. */
static bool stays_ordered(qn_axis_order *order, const bool *gone, int32_t rank)
{
    int32_t left = 0;
    if (*order == QN_ORDER_OWN)
        return true;
    for (int32_t i = 0; i < rank; i++)
        left += !gone[i];
    /* Without channels the others stand in the file's order, as few axes always do. */
    if (gone[rank - 1] || left < 2 || (left == 2 && !gone[0])) {
        *order = QN_ORDER_OWN;
        return true;
    }
    return !gone[0];
}

static qn_status reduce(qn_value **y, tfl_layer *l, qn_value *x, const int64_t *axes, size_t count,
                        bool keeps)
{
    qn_value *list;
    if (count == 0)
        return qn_tfl_unary(y, l, &qn_op_Identity, x);
    QN_TRY(qn_graph_build_ints(&list, l->b, axes, count));
    return qn_graph_build(y, l->b, l->row->op, QN_INPUTS(x, list),
                          QN_WITH(QN_A_INT("keepdims", keeps)));
}

qn_status qn_tfl_reduction(tfl_layer *l)
{
    int64_t axes[QN_TFL_MAX_INTS];
    size_t count;
    bool gone[QN_MAX_RANK] = {false};
    qn_axis_order order;
    qn_value *x, *y;
    const bool keeps = qn_tfl_byte(l, REDUCE_KEEP) != 0;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_known_ints(axes, &count, l, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    const int32_t rank = qn_tfl_rank(x);
    if (rank < 0)
        return qn_tfl_unsupported(l, "the rank of its input is not known");
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_tfl_axis(&axes[i], l, rank));
        gone[axes[i]] = true;
    }
    qn_axis_order after = order;
    if (!keeps && !stays_ordered(&after, gone, rank)) {
        order = after = QN_ORDER_OWN;
        QN_TRY(qn_tfl_take(&x, l, 0, order));
    }
    count = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (gone[i])
            axes[count++] = qn_layout_axis(order, rank, i);
    }
    if (x->type.dtype == QN_BOOL)
        QN_TRY(qn_tfl_cast(&x, l, x, QN_INT32));
    QN_TRY(reduce(&y, l, x, axes, count, keeps));
    if (l->out[0]->dtype == QN_BOOL)
        QN_TRY(qn_tfl_cast(&y, l, y, QN_BOOL));
    return qn_tfl_put(l, 0, y, after);
}

/* ---- Softmax --------------------------------------------------------------------------------- */

static qn_status softmax(tfl_layer *l, float beta)
{
    qn_axis_order order;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    const int32_t rank = qn_tfl_rank(x);
    if (rank < 1)
        return qn_tfl_unsupported(l, "the rank of its input is not known");
    if (beta < 1 || beta > 1)
        QN_TRY(qn_tfl_with(&x, l, &qn_op_Mul, x, (double)beta));
    QN_TRY(qn_graph_build(&y, l->b, l->row->op, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("axis", qn_layout_axis(order, rank, rank - 1)))));
    return qn_tfl_put(l, 0, y, order);
}

qn_status qn_tfl_soft_maximum(tfl_layer *l)
{
    return softmax(l, qn_flat_real(&l->options, SOFTMAX_BETA, 0));
}

qn_status qn_tfl_log_soft_maximum(tfl_layer *l)
{
    return softmax(l, 1);
}

/* ---- Norms ----------------------------------------------------------------------------------- */

/* x / max(sqrt(sum of squares), 1e-6) along the channels. */
qn_status qn_tfl_l2_normalization(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    const int32_t rank = qn_tfl_rank(x);
    if (rank < 1)
        return qn_tfl_unsupported(l, "the rank of its input is not known");
    const int64_t axis = qn_layout_axis(order, rank, rank - 1);
    QN_TRY(qn_tfl_along(&y, l, &qn_op_ReduceL2, x, &axis, 1));
    QN_TRY(qn_tfl_with(&y, l, &qn_op_Max, y, 1e-6));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Div, x, y));
    return qn_tfl_put_active(l, y, order, qn_tfl_byte(l, NORM_ACTIVATION));
}

/* ONNX divides alpha by the size of the window. */
qn_status qn_tfl_local_response(tfl_layer *l)
{
    qn_value *x, *y;
    const int64_t radius = qn_tfl_int(l, LRN_RADIUS, 0);
    if (radius < 0 || radius > 1 << 20)
        return qn_tfl_wrong(l, "a radius of %lld", (long long)radius);
    const int64_t size = 2 * radius + 1;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_graph_build(
        &y, l->b, &qn_op_LRN, QN_INPUTS(x),
        QN_WITH(QN_A_INT("size", size), QN_A_REAL("bias", qn_flat_real(&l->options, LRN_BIAS, 0)),
                QN_A_REAL("alpha", qn_flat_real(&l->options, LRN_ALPHA, 0) * (float)size),
                QN_A_REAL("beta", qn_flat_real(&l->options, LRN_BETA, 0)))));
    return qn_tfl_put(l, 0, y, QN_ORDER_CHANNELS_FIRST);
}

/* ---- Places and running sums ----------------------------------------------------------------- */

/* The one axis that input i names. */
static qn_status take_axis(int64_t *axis, tfl_layer *l, size_t i, int32_t rank)
{
    int64_t list[QN_TFL_MAX_INTS];
    size_t count;
    QN_TRY(qn_tfl_known_ints(list, &count, l, i));
    if (count != 1)
        return qn_tfl_wrong(l, "%zu axes", count);
    *axis = list[0];
    return qn_tfl_axis(axis, l, rank);
}

/* Real numbers have the order of the integers that they come from, and engines have it faster. */
qn_status qn_tfl_arg_extreme(tfl_layer *l)
{
    int64_t axis;
    bool gone[QN_MAX_RANK] = {false};
    qn_axis_order order;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    const int32_t rank = qn_tfl_rank(x);
    QN_TRY(take_axis(&axis, l, 1, rank));
    gone[axis] = true;
    qn_axis_order after = order;
    if (!stays_ordered(&after, gone, rank)) {
        order = after = QN_ORDER_OWN;
        QN_TRY(qn_tfl_take(&x, l, 0, order));
    }
    QN_TRY(qn_graph_build(
        &y, l->b, l->row->op, QN_INPUTS(x),
        QN_WITH(QN_A_INT("axis", qn_layout_axis(order, rank, axis)), QN_A_INT("keepdims", 0))));
    QN_TRY(qn_tfl_cast(&y, l, y, l->out[0]->dtype == QN_INT64 ? QN_INT64 : QN_INT32));
    return qn_tfl_give_raw(l, 0, y, after);
}

/* The largest of the last axis, and where they stand. */
qn_status qn_tfl_top_k(tfl_layer *l)
{
    qn_value *x, *k, *y[2];
    QN_TRY(qn_tfl_expect(l, 2, 2));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_indices(&k, l, 1));
    QN_TRY(qn_graph_build_several(y, 2, l->b, &qn_op_TopK, QN_INPUTS(x, k), QN_PLAIN));
    QN_TRY(qn_tfl_cast(&y[1], l, y[1], l->out[1]->dtype == QN_INT64 ? QN_INT64 : QN_INT32));
    QN_TRY(qn_tfl_put(l, 0, y[0], QN_ORDER_OWN));
    return qn_tfl_give_raw(l, 1, y[1], QN_ORDER_OWN);
}

qn_status qn_tfl_running_sum(tfl_layer *l)
{
    int64_t axis;
    qn_value *x, *at, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(take_axis(&axis, l, 1, qn_tfl_rank(x)));
    QN_TRY(qn_tfl_number(&at, l, QN_INT64, (double)axis));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_CumSum, QN_INPUTS(x, at),
                          QN_WITH(QN_A_INT("exclusive", qn_tfl_byte(l, CUMSUM_EXCLUSIVE)),
                                  QN_A_INT("reverse", qn_tfl_byte(l, CUMSUM_REVERSE)))));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}
