/* Choices: of numbers by conditions, of boxes by scores; and lists that are made or searched. */
#include "import/tflite/tflite.h"

enum { BUCKET_BOUNDARIES = 0 };

/* A condition of one axis chooses whole rows of what has more. */
static qn_status choose_rows(tfl_layer *l)
{
    int64_t dims[QN_MAX_RANK];
    qn_value *condition, *x, *y, *chosen;
    QN_TRY(qn_tfl_raw(&condition, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_take(&x, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_take(&y, l, 2, QN_ORDER_OWN));
    const int32_t rank = qn_tfl_rank(x);
    for (int32_t i = 0; i < rank; i++)
        dims[i] = i == 0 ? -1 : 1;
    QN_TRY(qn_tfl_reshape(&condition, l, condition, dims, (size_t)rank));
    QN_TRY(qn_graph_build(&chosen, l->b, &qn_op_Where, QN_INPUTS(condition, x, y), QN_PLAIN));
    return qn_tfl_put(l, 0, chosen, QN_ORDER_OWN);
}

qn_status qn_tfl_select(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[3], *y;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_raw(&x[0], l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_raw(&x[1], l, 1, QN_ORDER_OWN));
    if (l->row->code == 64 && qn_tfl_rank(x[0]) == 1 && qn_tfl_rank(x[1]) > 1)
        return choose_rows(l);
    QN_TRY(qn_tfl_take_agreed(x, &order, l, 3));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Where, QN_INPUTS(x[0], x[1], x[2]), QN_PLAIN));
    return qn_tfl_put(l, 0, y, order);
}

/* Places of what is not 0: [count, rank]. */
qn_status qn_tfl_where(tfl_layer *l)
{
    static const int64_t swapped[] = {1, 0};
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_raw(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_NonZero, x));
    QN_TRY(qn_tfl_transpose(&y, l, y, swapped, 2));
    return qn_tfl_give_raw(l, 0, y, QN_ORDER_OWN);
}

/* In the order in which they come, and for each number which one it is. */
qn_status qn_tfl_unique(tfl_layer *l)
{
    qn_value *x, *y[3];
    QN_TRY(qn_tfl_expect(l, 1, 2));
    QN_TRY(qn_tfl_raw(&x, l, 0, QN_ORDER_OWN));
    const qn_dtype dtype = x->type.dtype;
    if (dtype == QN_INT32)
        QN_TRY(qn_tfl_cast(&x, l, x, QN_INT64)); /* which all engines have */
    QN_TRY(qn_graph_build_several(y, 3, l->b, &qn_op_Unique, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT("sorted", 0))));
    QN_TRY(qn_tfl_cast(&y[0], l, y[0], dtype));
    QN_TRY(qn_tfl_cast(&y[2], l, y[2], l->out[1]->dtype == QN_INT64 ? QN_INT64 : QN_INT32));
    QN_TRY(qn_tfl_give_raw(l, 0, y[0], QN_ORDER_OWN));
    return qn_tfl_give_raw(l, 1, y[2], QN_ORDER_OWN);
}

static qn_status take_scalar(qn_value **out, tfl_layer *l, size_t i)
{
    QN_TRY(qn_tfl_take(out, l, i, QN_ORDER_OWN));
    return qn_tfl_rank(*out) == 0 ? QN_OK : qn_tfl_reshape(out, l, *out, NULL, 0);
}

qn_status qn_tfl_range(tfl_layer *l)
{
    qn_value *x[3], *y;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    for (size_t i = 0; i < 3; i++)
        QN_TRY(take_scalar(&x[i], l, i));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Range, QN_INPUTS(x[0], x[1], x[2]), QN_PLAIN));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* The shape that two shapes broadcast to: that of a sum of zeros. */
qn_status qn_tfl_broadcast_args(tfl_layer *l)
{
    qn_value *shape[2], *zero, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_number(&zero, l, QN_INT64, 0));
    for (size_t i = 0; i < 2; i++) {
        QN_TRY(qn_tfl_indices(&shape[i], l, i));
        QN_TRY(qn_tfl_binary(&shape[i], l, &qn_op_Expand, zero, shape[i]));
    }
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Add, shape[0], shape[1]));
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_Shape, y));
    QN_TRY(qn_tfl_cast(&y, l, y, l->out[0]->dtype == QN_INT64 ? QN_INT64 : QN_INT32));
    return qn_tfl_give_raw(l, 0, y, QN_ORDER_OWN);
}

/* How many boundaries are not above each number. */
qn_status qn_tfl_bucketize(tfl_layer *l)
{
    static const int64_t last[] = {-1};
    const qn_flat_list list = qn_flat_items(&l->options, BUCKET_BOUNDARIES, 4);
    float *numbers = qn_arena_array(&l->b->model->arena, list.count, sizeof *numbers);
    qn_value *x, *limits, *axes, *y;
    QN_TRY_ALLOC(l->b->ctx, numbers);
    QN_TRY(qn_tfl_expect(l, 1, 1));
    for (size_t i = 0; i < list.count; i++)
        numbers[i] = qn_flat_item_real(&list, i);
    QN_TRY(qn_graph_build_reals(&limits, l->b, numbers, list.count));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(&x, l, x, QN_FLOAT32));
    QN_TRY(qn_tfl_along(&x, l, &qn_op_Unsqueeze, x, last, 1));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_GreaterOrEqual, x, limits));
    QN_TRY(qn_tfl_cast(&y, l, y, QN_INT32));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_ReduceSum, QN_INPUTS(y, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    return qn_tfl_give_raw(l, 0, y, QN_ORDER_OWN);
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

/* As many of a list as `most` says: what is missing is 0. */
static qn_status fill_up(qn_value **x, tfl_layer *l, qn_value *count, qn_value *most)
{
    qn_value *missing, *pads, *zero, *filling;
    QN_TRY(qn_tfl_binary(&missing, l, &qn_op_Sub, most, count));
    QN_TRY(qn_graph_build_ints(&zero, l->b, (const int64_t[]){0}, 1));
    QN_TRY(qn_graph_build(&pads, l->b, &qn_op_Concat, QN_INPUTS(zero, missing),
                          QN_WITH(QN_A_INT("axis", 0))));
    QN_TRY(qn_tfl_number(&filling, l, (*x)->type.dtype, 0));
    return qn_graph_build(x, l->b, &qn_op_Pad, QN_INPUTS(*x, pads, filling), QN_PLAIN);
}

/* Boxes [n, 4], scores [n], how many at most, thresholds -> places of the boxes that are left. */
static qn_status suppress(qn_value **chosen, qn_value **scores, tfl_layer *l)
{
    static const int64_t first[] = {0}, two[] = {0, 1};
    qn_value *boxes, *all, *most, *overlap, *least, *place;
    QN_TRY(qn_tfl_real(&boxes, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(scores, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_along(&boxes, l, &qn_op_Unsqueeze, boxes, first, 1));
    QN_TRY(qn_tfl_along(&all, l, &qn_op_Unsqueeze, *scores, two, 2));
    QN_TRY(qn_tfl_indices(&most, l, 2));
    QN_TRY(take_scalar(&overlap, l, 3));
    QN_TRY(take_scalar(&least, l, 4));
    QN_TRY(qn_graph_build(chosen, l->b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, all, most, overlap, least), QN_PLAIN));
    QN_TRY(qn_tfl_number(&place, l, QN_INT64, 2));
    QN_TRY(qn_graph_build(chosen, l->b, &qn_op_Gather, QN_INPUTS(*chosen, place),
                          QN_WITH(QN_A_INT("axis", 1))));
    return QN_OK;
}

static qn_status put_count(tfl_layer *l, size_t o, qn_value *count)
{
    QN_TRY(qn_tfl_cast(&count, l, count, QN_INT32));
    QN_TRY(qn_tfl_reshape(&count, l, count, NULL, 0));
    return qn_tfl_give_raw(l, o, count, QN_ORDER_OWN);
}

/* Version 4 gives places and their number, version 5 the scores between them. */
qn_status qn_tfl_suppression(tfl_layer *l)
{
    const bool scored = l->row->code == 121;
    qn_value *chosen, *scores, *count, *most;
    QN_TRY(qn_tfl_expect(l, scored ? 6 : 5, scored ? 3 : 2));
    if (scored) {
        qn_value *sigma;
        QN_TRY(qn_tfl_raw(&sigma, l, 5, QN_ORDER_OWN));
        if (!sigma->data || sigma->data->dtype != QN_FLOAT32 || qn_tensor_count(sigma->data) != 1 ||
            *(const float *)sigma->data->data > 0)
            return qn_tfl_unsupported(l, "scores that overlaps make smaller (soft_nms_sigma)");
    }
    QN_TRY(suppress(&chosen, &scores, l));
    QN_TRY(qn_tfl_unary(&count, l, &qn_op_Shape, chosen));
    QN_TRY(qn_tfl_indices(&most, l, 2));
    if (scored) {
        qn_value *left;
        QN_TRY(qn_tfl_binary(&left, l, &qn_op_Gather, scores, chosen));
        QN_TRY(fill_up(&left, l, count, most));
        QN_TRY(qn_tfl_put(l, 1, left, QN_ORDER_OWN));
    }
    QN_TRY(put_count(l, scored ? 2 : 1, count));
    QN_TRY(fill_up(&chosen, l, count, most));
    QN_TRY(qn_tfl_cast(&chosen, l, chosen, QN_INT32));
    return qn_tfl_give_raw(l, 0, chosen, QN_ORDER_OWN);
}
