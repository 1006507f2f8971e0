/* Suppression of boxes that overlap, as ONNX's NonMaxSuppression and what surrounds it. */
#include "import/paddle/paddle.h"

typedef struct detections {
    /* Boxes [N, M, 4] and scores [N, C, M] */
    qn_value *boxes, *scores;
    /* int64[n, 3]: picture, class and box of each detection */
    qn_value *chosen;
    /* Their scores, [n] */
    qn_value *found;
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
    QN_TRY(qn_graph_build(&d->chosen, l->b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, most, overlap, score), QN_PLAIN));
    return qn_paddle_make2(&d->found, l, &qn_op_GatherND, d->scores, d->chosen);
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

/* int64[N]: how many detections each picture has */
static qn_status count_of_pictures(qn_value **out, const qn_paddle_layer *l, const detections *d,
                                   qn_value *pictures)
{
    qn_value *n;
    QN_TRY(qn_paddle_dim(&n, l, d->boxes, 0));
    return qn_paddle_count_pictures(out, l, pictures, n);
}

/* The place of each detection among those of its picture, by score: sorted by score, then (in which
 * ties stay in their order) by picture, they stand one picture behind the other; `order` is
 * that. */
static qn_status ranks_of(qn_value **ranks, qn_value **order, const qn_paddle_layer *l,
                          const detections *d, qn_value *pictures)
{
    qn_value *by_score, *by_picture, *sorted, *n, *counts, *zero, *starts;
    QN_TRY(qn_paddle_order(&by_score, l, d->found, true));
    QN_TRY(qn_paddle_rows(&sorted, l, pictures, by_score));
    /* picture * n + place: all different, so that no ties are left */
    QN_TRY(qn_paddle_make(&n, l, &qn_op_Size, sorted));
    QN_TRY(qn_paddle_make2(&by_picture, l, &qn_op_Mul, sorted, n));
    QN_TRY(places(&starts, l, sorted));
    QN_TRY(qn_paddle_make2(&by_picture, l, &qn_op_Add, by_picture, starts));
    QN_TRY(qn_paddle_order(&by_picture, l, by_picture, false));
    QN_TRY(qn_paddle_rows(order, l, by_score, by_picture));
    QN_TRY(qn_paddle_rows(&sorted, l, sorted, by_picture));
    QN_TRY(count_of_pictures(&counts, l, d, pictures));
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_graph_build(&counts, l->b, &qn_op_CumSum, QN_INPUTS(counts, zero),
                          QN_WITH(QN_A_INT("exclusive", 1))));
    QN_TRY(qn_paddle_rows(&counts, l, counts, sorted));
    return qn_paddle_make2(ranks, l, &qn_op_Sub, starts, counts);
}

/* Detections of these numbers alone, in their order. */
static qn_status pick(detections *d, const qn_paddle_layer *l, qn_value *numbers)
{
    QN_TRY(qn_paddle_rows(&d->chosen, l, d->chosen, numbers));
    return qn_paddle_rows(&d->found, l, d->found, numbers);
}

/* The numbers of the keep_top_k best of each picture, by score. */
static qn_status best_of_pictures(qn_value **out, const detections *d, const qn_paddle_layer *l)
{
    const int64_t most = qn_paddle_int(l, "keep_top_k", -1);
    qn_value *pictures, *ranks, *kept, *limit;
    QN_TRY(column(&pictures, l, d->chosen, 0));
    QN_TRY(ranks_of(&ranks, out, l, d, pictures));
    if (most < 0)
        return QN_OK;
    QN_TRY(qn_paddle_number_of(&limit, l, QN_INT64, (double)most));
    QN_TRY(qn_paddle_make2(&kept, l, &qn_op_Less, ranks, limit));
    QN_TRY(qn_paddle_where_true(&kept, l, kept));
    return qn_paddle_rows(out, l, *out, kept);
}

/* The keep_top_k best of each picture, in the order that they have: by class, then by score. */
static qn_status limit(detections *d, const qn_paddle_layer *l)
{
    qn_value *kept, *again;
    if (qn_paddle_int(l, "keep_top_k", -1) < 0)
        return QN_OK;
    QN_TRY(best_of_pictures(&kept, d, l));
    QN_TRY(qn_paddle_order(&again, l, kept, false));
    QN_TRY(qn_paddle_rows(&kept, l, kept, again));
    return pick(d, l, kept);
}

/* Rows of class, score and box. */
static qn_status rows_of(qn_value **out, const qn_paddle_layer *l, const detections *d,
                         qn_value *where)
{
    static const int64_t last[] = {-1};
    qn_value *parts[3];
    QN_TRY(qn_paddle_slice(&parts[0], l, d->chosen, 1, 1, 2));
    QN_TRY(qn_paddle_cast(&parts[0], l, parts[0], QN_FLOAT32));
    QN_TRY(qn_paddle_unsqueeze(&parts[1], l, d->found, last, 1));
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

/* Picture and box of each detection, int64[n, 2] */
static qn_status boxes_of(qn_value **where, const qn_paddle_layer *l, const detections *d)
{
    qn_value *ends[2];
    QN_TRY(qn_paddle_slice(&ends[0], l, d->chosen, 1, 0, 1));
    QN_TRY(qn_paddle_slice(&ends[1], l, d->chosen, 1, 2, 3));
    return qn_paddle_concat(where, l, ends, 2, 1);
}

static qn_status give(qn_paddle_layer *l, const detections *d, const char *count)
{
    qn_value *where, *out, *pictures;
    QN_TRY(boxes_of(&where, l, d));
    QN_TRY(rows_of(&out, l, d, where));
    QN_TRY(qn_paddle_out(l, "Out", out));
    QN_TRY(index_of(&out, l, d, where));
    QN_TRY(qn_paddle_out(l, "Index", out));
    QN_TRY(column(&pictures, l, d->chosen, 0));
    QN_TRY(count_of_pictures(&out, l, d, pictures));
    QN_TRY(qn_paddle_cast(&out, l, out, QN_INT32));
    return qn_paddle_out(l, count, out);
}

qn_status qn_paddle_multiclass_nms(qn_paddle_layer *l)
{
    detections d;
    QN_TRY(qn_paddle_in(&d.boxes, l, "BBoxes"));
    QN_TRY(qn_paddle_in(&d.scores, l, "Scores"));
    if (qn_paddle_has(l, "RoisNum") || d.scores->type.rank != 3 || d.boxes->type.rank != 3)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "boxes of their own for each class");
    if (qn_paddle_real(l, "nms_eta", 1) < 1)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "a threshold that changes (nms_eta)");
    QN_TRY(suppress(&d, l));
    QN_TRY(limit(&d, l));
    return give(l, &d, "NmsRoisNum");
}

/* ---- Matrix NMS: scores fall by how much better boxes of the class overlap ------------------- */

/* All boxes whose score passes the threshold, the best first. */
static qn_status choose(detections *d, const qn_paddle_layer *l)
{
    static const int64_t turned[] = {1, 0};
    qn_value *scores = d->scores, *passes, *order;
    QN_TRY(hide_background(&scores, l));
    QN_TRY(keep_best(&scores, l));
    QN_TRY(qn_paddle_with(&passes, l, &qn_op_Greater, scores,
                          qn_paddle_real(l, "score_threshold", 0)));
    QN_TRY(qn_paddle_make(&d->chosen, l, &qn_op_NonZero, passes));
    QN_TRY(qn_paddle_transpose(&d->chosen, l, d->chosen, turned, 2));
    QN_TRY(qn_paddle_make2(&d->found, l, &qn_op_GatherND, d->scores, d->chosen));
    QN_TRY(qn_paddle_order(&order, l, d->found, true));
    return pick(d, l, order);
}

static qn_status reduce_last(qn_value **out, const qn_paddle_layer *l, const qn_op *op, qn_value *x)
{
    static const int64_t last[] = {-1};
    qn_value *axes;
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    return qn_graph_build(out, l->b, op, QN_INPUTS(x, axes), QN_WITH(QN_A_INT("keepdims", 0)));
}

/* Products of sides, 0 where one is negative; a last pixel of `within` belongs to them. */
static qn_status area(qn_value **out, const qn_paddle_layer *l, qn_value *sides)
{
    qn_value *none, *least;
    QN_TRY(reduce_last(&least, l, &qn_op_ReduceMin, sides));
    QN_TRY(qn_paddle_with(&none, l, &qn_op_Less, least, 0));
    QN_TRY(qn_paddle_with(&sides, l, &qn_op_Add, sides, !qn_paddle_int(l, "normalized", 1)));
    QN_TRY(reduce_last(out, l, &qn_op_ReduceProd, sides));
    QN_TRY(qn_paddle_with(&least, l, &qn_op_Mul, least, 0));
    return qn_graph_build(out, l->b, &qn_op_Where, QN_INPUTS(none, least, *out), QN_PLAIN);
}

/* x as a column and as a row, [n, 1, ...] and [1, n, ...] */
static qn_status both_ways(qn_value *out[2], const qn_paddle_layer *l, qn_value *x)
{
    for (int64_t i = 0; i < 2; i++) {
        const int64_t axis = 1 - i;
        QN_TRY(qn_paddle_unsqueeze(&out[i], l, x, &axis, 1));
    }
    return QN_OK;
}

/* Intersection over union of all pairs, [n, n] */
static qn_status overlaps(qn_value **out, const qn_paddle_layer *l, qn_value *boxes)
{
    qn_value *low, *high, *lows[2], *highs[2], *areas[2], *inner, *whole;
    QN_TRY(qn_paddle_slice(&low, l, boxes, 1, 0, 2));
    QN_TRY(qn_paddle_slice(&high, l, boxes, 1, 2, 4));
    QN_TRY(both_ways(lows, l, low));
    QN_TRY(both_ways(highs, l, high));
    QN_TRY(qn_paddle_make2(&low, l, &qn_op_Max, lows[0], lows[1]));
    QN_TRY(qn_paddle_make2(&high, l, &qn_op_Min, highs[0], highs[1]));
    QN_TRY(qn_paddle_make2(&inner, l, &qn_op_Sub, high, low));
    QN_TRY(area(&inner, l, inner));
    for (int i = 0; i < 2; i++) {
        QN_TRY(qn_paddle_make2(&areas[i], l, &qn_op_Sub, highs[i], lows[i]));
        QN_TRY(area(&areas[i], l, areas[i]));
    }
    QN_TRY(qn_paddle_make2(&whole, l, &qn_op_Add, areas[0], areas[1]));
    QN_TRY(qn_paddle_make2(&whole, l, &qn_op_Sub, whole, inner));
    return qn_paddle_make2(out, l, &qn_op_Div, inner, whole);
}

/* bool[n, n]: the column is a better box of the row's class and picture. */
static qn_status rivals(qn_value **out, const qn_paddle_layer *l, const detections *d)
{
    qn_value *group[2], *place[2], *same, *first;
    QN_TRY(qn_paddle_slice(&same, l, d->chosen, 1, 0, 2));
    QN_TRY(both_ways(group, l, same));
    QN_TRY(qn_paddle_make2(&same, l, &qn_op_Equal, group[0], group[1]));
    QN_TRY(qn_paddle_cast(&same, l, same, QN_FLOAT32));
    QN_TRY(reduce_last(&same, l, &qn_op_ReduceMin, same));
    QN_TRY(qn_paddle_cast(&same, l, same, QN_BOOL));
    QN_TRY(places(&first, l, d->found));
    QN_TRY(both_ways(place, l, first));
    QN_TRY(qn_paddle_make2(&first, l, &qn_op_Greater, place[0], place[1]));
    return qn_paddle_make2(out, l, &qn_op_And, same, first);
}

/* What a pair leaves of a score: by its overlap, and the largest of the better box. */
static qn_status decay(qn_value **out, const qn_paddle_layer *l, qn_value *overlap, qn_value *most)
{
    qn_value *rest;
    if (qn_paddle_int(l, "use_gaussian", 0)) {
        QN_TRY(qn_paddle_make2(&most, l, &qn_op_Mul, most, most));
        QN_TRY(qn_paddle_make2(&rest, l, &qn_op_Mul, overlap, overlap));
        QN_TRY(qn_paddle_make2(&rest, l, &qn_op_Sub, most, rest));
        QN_TRY(qn_paddle_with(&rest, l, &qn_op_Mul, rest, qn_paddle_real(l, "gaussian_sigma", 2)));
        return qn_paddle_make(out, l, &qn_op_Exp, rest);
    }
    /* Where both are 1 the score stays what it is. */
    QN_TRY(qn_paddle_with(&overlap, l, &qn_op_Sub, overlap, 1));
    QN_TRY(qn_paddle_with(&overlap, l, &qn_op_Min, overlap, -1e-30));
    QN_TRY(qn_paddle_with(&most, l, &qn_op_Sub, most, 1));
    QN_TRY(qn_paddle_with(&most, l, &qn_op_Min, most, -1e-30));
    return qn_paddle_make2(out, l, &qn_op_Div, overlap, most);
}

static qn_status lower_scores(detections *d, const qn_paddle_layer *l)
{
    static const int64_t row[] = {0};
    qn_value *where, *boxes, *overlap, *better, *none, *all, *most, *left;
    QN_TRY(boxes_of(&where, l, d));
    QN_TRY(qn_paddle_make2(&boxes, l, &qn_op_GatherND, d->boxes, where));
    QN_TRY(overlaps(&overlap, l, boxes));
    QN_TRY(rivals(&better, l, d));
    QN_TRY(qn_paddle_number_of(&none, l, QN_FLOAT32, 0));
    QN_TRY(qn_paddle_number_of(&all, l, QN_FLOAT32, 1));
    QN_TRY(
        qn_graph_build(&overlap, l->b, &qn_op_Where, QN_INPUTS(better, overlap, none), QN_PLAIN));
    QN_TRY(reduce_last(&most, l, &qn_op_ReduceMax, overlap));
    QN_TRY(qn_paddle_unsqueeze(&most, l, most, row, 1));
    QN_TRY(decay(&left, l, overlap, most));
    QN_TRY(qn_graph_build(&left, l->b, &qn_op_Where, QN_INPUTS(better, left, all), QN_PLAIN));
    QN_TRY(reduce_last(&left, l, &qn_op_ReduceMin, left));
    QN_TRY(qn_paddle_with(&left, l, &qn_op_Min, left, 1));
    return qn_paddle_make2(&d->found, l, &qn_op_Mul, d->found, left);
}

qn_status qn_paddle_matrix_nms(qn_paddle_layer *l)
{
    qn_value *kept;
    detections d;
    QN_TRY(qn_paddle_in(&d.boxes, l, "BBoxes"));
    QN_TRY(qn_paddle_in(&d.scores, l, "Scores"));
    if (d.scores->type.rank != 3 || d.boxes->type.rank != 3)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "boxes of their own for each class");
    QN_TRY(choose(&d, l));
    QN_TRY(lower_scores(&d, l));
    QN_TRY(
        qn_paddle_with(&kept, l, &qn_op_Greater, d.found, qn_paddle_real(l, "post_threshold", 0)));
    QN_TRY(qn_paddle_where_true(&kept, l, kept));
    QN_TRY(pick(&d, l, kept));
    QN_TRY(best_of_pictures(&kept, &d, l));
    QN_TRY(pick(&d, l, kept));
    return give(l, &d, "RoisNum");
}
