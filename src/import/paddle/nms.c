/* Suppression of boxes that overlap, as ONNX's NonMaxSuppression and what surrounds it. */
#include "import/paddle/paddle.h"

typedef struct detections {
    /* Boxes [N, M, 4] and scores [N, C, M] */
    qn_value *boxes, *scores;
    /* int64[n, 3]: picture, class and box of each detection */
    qn_value *chosen;
} detections;

/* Column i of `chosen`, [n]. */
static qn_status column(qn_value **out, const qn_paddle_layer *l, qn_value *chosen, int64_t i)
{
    static const int64_t last[] = {1};
    QN_TRY(qn_paddle_slice(out, l, chosen, 1, i, i + 1));
    return qn_paddle_squeeze(out, l, *out, last, 1);
}

/* A number that no score passes. */
static double nothing(const qn_paddle_layer *l)
{
    return qn_paddle_real(l, "score_threshold", 0) - 1;
}

/* Scores of the background become too small. */
static qn_status hide_background(qn_value **scores, const qn_paddle_layer *l)
{
    const int64_t background = qn_paddle_int(l, "background_label", 0);
    qn_value *parts[3];
    const int64_t classes = (*scores)->type.rank == 3 ? (*scores)->type.dims[1].value : -1;
    if (background < 0)
        return QN_OK;
    if (background > INT16_MAX || (classes >= 0 && background >= classes))
        return QN_OK;
    QN_TRY(qn_paddle_slice(&parts[0], l, *scores, 1, 0, background));
    QN_TRY(qn_paddle_slice(&parts[1], l, *scores, 1, background, background + 1));
    QN_TRY(qn_paddle_slice(&parts[2], l, *scores, 1, background + 1, INT64_MAX));
    QN_TRY(qn_paddle_with(&parts[1], l, &qn_op_Mul, parts[1], 0));
    QN_TRY(qn_paddle_with(&parts[1], l, &qn_op_Add, parts[1], nothing(l)));
    return qn_paddle_concat(scores, l, parts, 3, 1);
}

/* Only the nms_top_k best boxes of each class take part. */
static qn_status keep_best(qn_value **scores, const qn_paddle_layer *l)
{
    const int64_t most = qn_paddle_int(l, "nms_top_k", -1);
    const qn_type *type = &(*scores)->type;
    qn_value *count, *best[2], *low;
    if (most < 0 || (type->rank == 3 && type->dims[2].value >= 0 && type->dims[2].value <= most))
        return QN_OK;
    QN_TRY(qn_paddle_dim(&count, l, *scores, 2));
    QN_TRY(qn_paddle_with(&count, l, &qn_op_Min, count, (double)most));
    QN_TRY(qn_graph_build_several(best, 2, l->b, &qn_op_TopK, QN_INPUTS(*scores, count),
                                  QN_WITH(QN_A_INT("axis", 2))));
    QN_TRY(qn_paddle_with(&low, l, &qn_op_Mul, *scores, 0));
    QN_TRY(qn_paddle_with(&low, l, &qn_op_Add, low, nothing(l)));
    return qn_graph_build(scores, l->b, &qn_op_ScatterElements, QN_INPUTS(low, best[1], best[0]),
                          QN_WITH(QN_A_INT("axis", 2)));
}

/* The last pixel of a box that is not normalized lies within it. */
static qn_status widen(qn_value **boxes, const qn_paddle_layer *l)
{
    static const double within[] = {0, 0, 1, 1};
    static const int64_t four[] = {4};
    qn_value *ends;
    if (qn_paddle_int(l, "normalized", 1))
        return QN_OK;
    QN_TRY(qn_paddle_numbers(&ends, l, QN_FLOAT32, within, 1, four));
    return qn_paddle_make2(boxes, l, &qn_op_Add, *boxes, ends);
}

static qn_status suppress(detections *d, const qn_paddle_layer *l)
{
    qn_value *boxes = d->boxes, *scores = d->scores, *most, *overlap, *score;
    QN_TRY(hide_background(&scores, l));
    QN_TRY(keep_best(&scores, l));
    QN_TRY(widen(&boxes, l));
    QN_TRY(qn_paddle_number_of(&most, l, QN_INT64, INT32_MAX));
    QN_TRY(qn_paddle_number_of(&overlap, l, QN_FLOAT32, qn_paddle_real(l, "nms_threshold", 0.3)));
    QN_TRY(qn_paddle_number_of(&score, l, QN_FLOAT32, qn_paddle_real(l, "score_threshold", 0)));
    return qn_graph_build(&d->chosen, l->b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, most, overlap, score), QN_PLAIN);
}

/* The order that sorts [n], upwards or downwards; ties stay in their order. */
static qn_status order_of(qn_value **out, const qn_paddle_layer *l, qn_value *x, bool down)
{
    qn_value *count, *made[2];
    QN_TRY(qn_paddle_dim(&count, l, x, 0));
    QN_TRY(qn_graph_build_several(made, 2, l->b, &qn_op_TopK, QN_INPUTS(x, count),
                                  QN_WITH(QN_A_INT("axis", 0), QN_A_INT("largest", down))));
    *out = made[1];
    return QN_OK;
}

static qn_status gather(qn_value **out, const qn_paddle_layer *l, qn_value *x, qn_value *index)
{
    return qn_graph_build(out, l->b, &qn_op_Gather, QN_INPUTS(x, index),
                          QN_WITH(QN_A_INT("axis", 0)));
}

/* [0, 1, ..., n - 1], of [n] */
static qn_status places(qn_value **out, const qn_paddle_layer *l, qn_value *x)
{
    qn_value *zero, *one, *n;
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_paddle_number_of(&one, l, QN_INT64, 1));
    QN_TRY(qn_paddle_make(&n, l, &qn_op_Size, x));
    return qn_graph_build(out, l->b, &qn_op_Range, QN_INPUTS(zero, n, one), QN_PLAIN);
}

/* int64[N]: how many detections each picture has, by comparing all numbers of pictures. */
static qn_status count_of_pictures(qn_value **out, const qn_paddle_layer *l, const detections *d,
                                   qn_value *pictures)
{
    static const int64_t last[] = {-1}, first[] = {0};
    qn_value *zero, *one, *n, *all, *axes;
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_paddle_number_of(&one, l, QN_INT64, 1));
    QN_TRY(qn_paddle_dim(&n, l, d->boxes, 0));
    QN_TRY(qn_paddle_squeeze(&n, l, n, first, 1));
    QN_TRY(qn_graph_build(&all, l->b, &qn_op_Range, QN_INPUTS(zero, n, one), QN_PLAIN));
    QN_TRY(qn_paddle_unsqueeze(&all, l, all, last, 1));
    QN_TRY(qn_paddle_make2(&all, l, &qn_op_Equal, all, pictures));
    QN_TRY(qn_paddle_cast(&all, l, all, QN_INT64));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    return qn_graph_build(out, l->b, &qn_op_ReduceSum, QN_INPUTS(all, axes),
                          QN_WITH(QN_A_INT("keepdims", 0)));
}

/* The place of each detection among those of its picture, by score: sorted by score, then (in which
 * ties stay in their order) by picture, they stand one picture behind the other; `order` is
 * that. */
static qn_status ranks_of(qn_value **ranks, qn_value **order, const qn_paddle_layer *l,
                          const detections *d, qn_value *pictures)
{
    qn_value *scores, *by_score, *by_picture, *sorted, *n, *counts, *zero, *starts;
    QN_TRY(qn_paddle_make2(&scores, l, &qn_op_GatherND, d->scores, d->chosen));
    QN_TRY(order_of(&by_score, l, scores, true));
    QN_TRY(gather(&sorted, l, pictures, by_score));
    /* picture * n + place: all different, so that no ties are left */
    QN_TRY(qn_paddle_make(&n, l, &qn_op_Size, sorted));
    QN_TRY(qn_paddle_make2(&by_picture, l, &qn_op_Mul, sorted, n));
    QN_TRY(places(&starts, l, sorted));
    QN_TRY(qn_paddle_make2(&by_picture, l, &qn_op_Add, by_picture, starts));
    QN_TRY(order_of(&by_picture, l, by_picture, false));
    QN_TRY(gather(order, l, by_score, by_picture));
    QN_TRY(gather(&sorted, l, sorted, by_picture));
    QN_TRY(count_of_pictures(&counts, l, d, pictures));
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_graph_build(&counts, l->b, &qn_op_CumSum, QN_INPUTS(counts, zero),
                          QN_WITH(QN_A_INT("exclusive", 1))));
    QN_TRY(gather(&counts, l, counts, sorted));
    return qn_paddle_make2(ranks, l, &qn_op_Sub, starts, counts);
}

/* The keep_top_k best of each picture, in the order that they have: by class, then by score. */
static qn_status limit(detections *d, const qn_paddle_layer *l)
{
    const int64_t most = qn_paddle_int(l, "keep_top_k", -1);
    static const int64_t flat[] = {-1};
    qn_value *pictures, *ranks, *order, *kept, *limit, *again;
    if (most < 0)
        return QN_OK;
    QN_TRY(column(&pictures, l, d->chosen, 0));
    QN_TRY(ranks_of(&ranks, &order, l, d, pictures));
    QN_TRY(qn_paddle_number_of(&limit, l, QN_INT64, (double)most));
    QN_TRY(qn_paddle_make2(&kept, l, &qn_op_Less, ranks, limit));
    QN_TRY(qn_paddle_make(&kept, l, &qn_op_NonZero, kept));
    QN_TRY(qn_paddle_reshape(&kept, l, kept, flat, 1));
    QN_TRY(gather(&kept, l, order, kept));
    QN_TRY(order_of(&again, l, kept, false));
    QN_TRY(gather(&kept, l, kept, again));
    return gather(&d->chosen, l, d->chosen, kept);
}

/* Rows of class, score and box. */
static qn_status rows_of(qn_value **out, const qn_paddle_layer *l, const detections *d,
                         qn_value *where)
{
    static const int64_t last[] = {-1};
    qn_value *parts[3];
    QN_TRY(qn_paddle_slice(&parts[0], l, d->chosen, 1, 1, 2));
    QN_TRY(qn_paddle_cast(&parts[0], l, parts[0], QN_FLOAT32));
    QN_TRY(qn_paddle_make2(&parts[1], l, &qn_op_GatherND, d->scores, d->chosen));
    QN_TRY(qn_paddle_unsqueeze(&parts[1], l, parts[1], last, 1));
    QN_TRY(qn_paddle_make2(&parts[2], l, &qn_op_GatherND, d->boxes, where));
    return qn_paddle_concat(out, l, parts, 3, 1);
}

/* The place of each box among all of all pictures: picture * M + box, int32[n, 1] */
static qn_status index_of(qn_value **out, const qn_paddle_layer *l, const detections *d,
                          qn_value *where)
{
    qn_value *picture, *box, *count;
    QN_TRY(qn_paddle_slice(&picture, l, where, 1, 0, 1));
    QN_TRY(qn_paddle_slice(&box, l, where, 1, 1, 2));
    QN_TRY(qn_paddle_dim(&count, l, d->boxes, 1));
    QN_TRY(qn_paddle_make2(&picture, l, &qn_op_Mul, picture, count));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Add, picture, box));
    return qn_paddle_cast(out, l, *out, QN_INT32);
}

qn_status qn_paddle_multiclass_nms(qn_paddle_layer *l)
{
    qn_value *ends[2], *where, *out, *pictures;
    detections d;
    QN_TRY(qn_paddle_in(&d.boxes, l, "BBoxes"));
    QN_TRY(qn_paddle_in(&d.scores, l, "Scores"));
    if (qn_paddle_has(l, "RoisNum") || d.scores->type.rank != 3 || d.boxes->type.rank != 3)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "boxes of their own for each class");
    if (qn_paddle_real(l, "nms_eta", 1) < 1)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "a threshold that changes (nms_eta)");
    QN_TRY(suppress(&d, l));
    QN_TRY(limit(&d, l));
    QN_TRY(qn_paddle_slice(&ends[0], l, d.chosen, 1, 0, 1));
    QN_TRY(qn_paddle_slice(&ends[1], l, d.chosen, 1, 2, 3));
    QN_TRY(qn_paddle_concat(&where, l, ends, 2, 1));
    QN_TRY(rows_of(&out, l, &d, where));
    QN_TRY(qn_paddle_out(l, "Out", out));
    QN_TRY(index_of(&out, l, &d, where));
    QN_TRY(qn_paddle_out(l, "Index", out));
    QN_TRY(column(&pictures, l, d.chosen, 0));
    QN_TRY(count_of_pictures(&out, l, &d, pictures));
    QN_TRY(qn_paddle_cast(&out, l, out, QN_INT32));
    return qn_paddle_out(l, "NmsRoisNum", out);
}
