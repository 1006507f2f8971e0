/* The first stage of detectors with two: boxes of anchors, shared out among the levels of a pyramid
 * and joined again. */
#include <math.h>

#include "import/paddle/paddle.h"

typedef struct proposals {
    /* The best of each picture, falling: scores [N, K], boxes [N, K, 4] */
    qn_value *scores, *boxes;
    /* Height and width of each picture, [N, 2] */
    qn_value *sizes;
    /* 1: the last pixel of a box lies within it. */
    int64_t within;
} proposals;

/* ---- Boxes of anchors ------------------------------------------------------------------------ */

/* [N, A * size, H, W] as rows of `size` numbers, or one, of each anchor: [N, H * W * A, size] */
static qn_status rows_of_anchors(qn_value **out, const qn_paddle_layer *l, const char *slot,
                                 int64_t size)
{
    static const int64_t last[] = {0, 2, 3, 1};
    const int64_t dims[] = {0, -1, size};
    QN_TRY(qn_paddle_in(out, l, slot));
    QN_TRY(qn_paddle_transpose(out, l, *out, last, 4));
    return qn_paddle_reshape(out, l, *out, dims, size > 1 ? 3 : 2);
}

/* The anchors of these numbers, out of a table of all: [N, K, 4] */
static qn_status of_anchors(qn_value **out, const qn_paddle_layer *l, const char *slot,
                            qn_value *numbers)
{
    static const int64_t dims[] = {-1, 4};
    QN_TRY(qn_paddle_in(out, l, slot));
    QN_TRY(qn_paddle_reshape(out, l, *out, dims, 2));
    return qn_paddle_rows(out, l, *out, numbers);
}

/* Corners, or differences of corners: x and y, [..., 2] */
static qn_status half(qn_value **out, const qn_paddle_layer *l, qn_value *x, int64_t i)
{
    return qn_paddle_slice(out, l, x, -1, 2 * i, 2 * i + 2);
}

/* Where a difference, in sides of the anchor and its variance, puts the center. */
static qn_status center_of(qn_value **out, const qn_paddle_layer *l, qn_value *anchor,
                           qn_value *side, qn_value *moved)
{
    qn_value *middle, *low;
    QN_TRY(half(&low, l, anchor, 0));
    QN_TRY(qn_paddle_with(&middle, l, &qn_op_Mul, side, 0.5));
    QN_TRY(qn_paddle_make2(&middle, l, &qn_op_Add, middle, low));
    QN_TRY(qn_paddle_make2(&moved, l, &qn_op_Mul, moved, side));
    return qn_paddle_make2(out, l, &qn_op_Add, moved, middle);
}

/* Boxes of anchors and what the network says of them, times the variances. */
static qn_status decode(proposals *p, const qn_paddle_layer *l, qn_value *anchor, qn_value *delta)
{
    qn_value *low, *high, *side, *center, *ends[2];
    QN_TRY(half(&low, l, anchor, 0));
    QN_TRY(half(&high, l, anchor, 1));
    QN_TRY(qn_paddle_make2(&side, l, &qn_op_Sub, high, low));
    QN_TRY(qn_paddle_with(&side, l, &qn_op_Add, side, (double)p->within));
    QN_TRY(half(&low, l, delta, 0));
    QN_TRY(center_of(&center, l, anchor, side, low));
    QN_TRY(half(&high, l, delta, 1));
    QN_TRY(qn_paddle_with(&high, l, &qn_op_Min, high, log(1000.0 / 16)));
    QN_TRY(qn_paddle_make(&high, l, &qn_op_Exp, high));
    QN_TRY(qn_paddle_make2(&side, l, &qn_op_Mul, side, high));
    QN_TRY(qn_paddle_with(&side, l, &qn_op_Mul, side, 0.5));
    QN_TRY(qn_paddle_make2(&ends[0], l, &qn_op_Sub, center, side));
    QN_TRY(qn_paddle_make2(&ends[1], l, &qn_op_Add, center, side));
    QN_TRY(qn_paddle_with(&ends[1], l, &qn_op_Sub, ends[1], (double)p->within));
    return qn_paddle_concat(&p->boxes, l, ends, 2, -1);
}

/* Width and height of the pictures, [N, 1, 2] */
static qn_status widths(qn_value **out, const qn_paddle_layer *l, const proposals *p)
{
    static const int64_t middle[] = {1};
    qn_value *parts[2];
    QN_TRY(qn_paddle_slice(&parts[1], l, p->sizes, 1, 0, 1));
    QN_TRY(qn_paddle_slice(&parts[0], l, p->sizes, 1, 1, 2));
    QN_TRY(qn_paddle_concat(out, l, parts, 2, 1));
    return qn_paddle_unsqueeze(out, l, *out, middle, 1);
}

static qn_status cut_to_picture(proposals *p, const qn_paddle_layer *l)
{
    qn_value *limits[2], *both;
    QN_TRY(widths(&limits[0], l, p));
    limits[1] = limits[0];
    QN_TRY(qn_paddle_concat(&both, l, limits, 2, -1));
    QN_TRY(qn_paddle_with(&both, l, &qn_op_Sub, both, (double)p->within));
    QN_TRY(qn_paddle_make2(&p->boxes, l, &qn_op_Min, p->boxes, both));
    return qn_paddle_with(&p->boxes, l, &qn_op_Max, p->boxes, 0);
}

/* Boxes that are too small, or lie outside, get a score that nothing passes. */
static qn_status drop_small(proposals *p, const qn_paddle_layer *l)
{
    static const int64_t last[] = {-1};
    const double least = fmax(qn_paddle_real(l, "min_size", 0.1), 1);
    qn_value *low, *side, *good, *inside, *axes, *none;
    QN_TRY(half(&low, l, p->boxes, 0));
    QN_TRY(half(&side, l, p->boxes, 1));
    QN_TRY(qn_paddle_make2(&side, l, &qn_op_Sub, side, low));
    QN_TRY(qn_paddle_with(&side, l, &qn_op_Add, side, (double)p->within));
    QN_TRY(qn_paddle_with(&good, l, &qn_op_GreaterOrEqual, side, least));
    if (p->within) {
        QN_TRY(qn_paddle_with(&side, l, &qn_op_Mul, side, 0.5));
        QN_TRY(qn_paddle_make2(&side, l, &qn_op_Add, side, low));
        QN_TRY(widths(&inside, l, p));
        QN_TRY(qn_paddle_make2(&inside, l, &qn_op_LessOrEqual, side, inside));
        QN_TRY(qn_paddle_make2(&good, l, &qn_op_And, good, inside));
    }
    QN_TRY(qn_paddle_cast(&good, l, good, QN_FLOAT32));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    QN_TRY(qn_graph_build(&good, l->b, &qn_op_ReduceMin, QN_INPUTS(good, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    QN_TRY(qn_paddle_cast(&good, l, good, QN_BOOL));
    QN_TRY(qn_paddle_number_of(&none, l, QN_FLOAT32, -0x1p127));
    return qn_graph_build(&p->scores, l->b, &qn_op_Where, QN_INPUTS(good, p->scores, none),
                          QN_PLAIN);
}

/* The pre_nms_topN best anchors of each picture and their boxes. */
static qn_status propose(proposals *p, const qn_paddle_layer *l)
{
    static const int64_t last[] = {-1};
    const int64_t most = qn_paddle_int(l, "pre_nms_topN pre_nms_top_n", 6000);
    qn_value *count, *best[2], *deltas, *numbers, *anchors, *variances;
    QN_TRY(rows_of_anchors(&p->scores, l, "Scores", 1));
    QN_TRY(rows_of_anchors(&deltas, l, "BboxDeltas", 4));
    QN_TRY(qn_paddle_dim(&count, l, p->scores, 1));
    if (most > 0)
        QN_TRY(qn_paddle_with(&count, l, &qn_op_Min, count, (double)most));
    QN_TRY(qn_graph_build_several(best, 2, l->b, &qn_op_TopK, QN_INPUTS(p->scores, count),
                                  QN_WITH(QN_A_INT("axis", 1))));
    p->scores = best[0];
    QN_TRY(qn_paddle_unsqueeze(&numbers, l, best[1], last, 1));
    QN_TRY(qn_graph_build(&deltas, l->b, &qn_op_GatherND, QN_INPUTS(deltas, numbers),
                          QN_WITH(QN_A_INT("batch_dims", 1))));
    QN_TRY(of_anchors(&anchors, l, "Anchors", best[1]));
    QN_TRY(of_anchors(&variances, l, "Variances", best[1]));
    QN_TRY(qn_paddle_make2(&deltas, l, &qn_op_Mul, deltas, variances));
    QN_TRY(decode(p, l, anchors, deltas));
    QN_TRY(cut_to_picture(p, l));
    return drop_small(p, l);
}

/* int64[n, 3]: picture, 0 and box of each that no better one overlaps */
static qn_status suppress(qn_value **chosen, const qn_paddle_layer *l, const proposals *p)
{
    static const double ends[] = {0, 0, 1, 1};
    static const int64_t four[] = {4}, middle[] = {1};
    const int64_t most = qn_paddle_int(l, "post_nms_topN post_nms_top_n", 1000);
    const double threshold = qn_paddle_real(l, "nms_thresh", 0.5);
    qn_value *boxes = p->boxes, *scores, *count, *overlap, *least, *pixel;
    if (p->within) {
        QN_TRY(qn_paddle_numbers(&pixel, l, QN_FLOAT32, ends, 1, four));
        QN_TRY(qn_paddle_make2(&boxes, l, &qn_op_Add, boxes, pixel));
    }
    QN_TRY(qn_paddle_unsqueeze(&scores, l, p->scores, middle, 1));
    QN_TRY(qn_paddle_number_of(&count, l, QN_INT64, most > 0 ? (double)most : INT32_MAX));
    QN_TRY(qn_paddle_number_of(&overlap, l, QN_FLOAT32, threshold > 0 ? threshold : 1));
    QN_TRY(qn_paddle_number_of(&least, l, QN_FLOAT32, -0x1p126));
    return qn_graph_build(chosen, l->b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, count, overlap, least), QN_PLAIN);
}

/* int32[N] */
static qn_status count_pictures(qn_value **out, const qn_paddle_layer *l, qn_value *pictures,
                                qn_value *count)
{
    QN_TRY(qn_paddle_count_pictures(out, l, pictures, count));
    return qn_paddle_cast(out, l, *out, QN_INT32);
}

qn_status qn_paddle_generate_proposals(qn_paddle_layer *l)
{
    static const int64_t last[] = {-1};
    proposals p = {.within = qn_paddle_int(l, "pixel_offset", 1) != 0};
    qn_value *parts[2], *where, *out, *count, *chosen;
    if (qn_paddle_real(l, "eta", 1) < 1)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "a threshold that changes (eta)");
    QN_TRY(qn_paddle_in(&p.sizes, l, "ImShape"));
    QN_TRY(propose(&p, l));
    QN_TRY(suppress(&chosen, l, &p));
    QN_TRY(qn_paddle_slice(&parts[0], l, chosen, 1, 0, 1));
    QN_TRY(qn_paddle_slice(&parts[1], l, chosen, 1, 2, 3));
    QN_TRY(qn_paddle_concat(&where, l, parts, 2, 1));
    QN_TRY(qn_paddle_make2(&out, l, &qn_op_GatherND, p.boxes, where));
    QN_TRY(qn_paddle_out(l, "RpnRois", out));
    QN_TRY(qn_paddle_make2(&out, l, &qn_op_GatherND, p.scores, where));
    QN_TRY(qn_paddle_unsqueeze(&out, l, out, last, 1));
    QN_TRY(qn_paddle_out(l, "RpnRoiProbs", out));
    QN_TRY(qn_paddle_squeeze(&out, l, parts[0], last, 1));
    QN_TRY(qn_paddle_dim(&count, l, p.boxes, 0));
    QN_TRY(count_pictures(&out, l, out, count));
    return qn_paddle_out(l, "RpnRoisNum", out);
}

/* ---- Levels of a pyramid --------------------------------------------------------------------- */

/* The level of each box by its size, float[n] */
static qn_status level_of(qn_value **out, const qn_paddle_layer *l, qn_value *boxes)
{
    static const int64_t last[] = {-1};
    const double scale = (double)qn_paddle_int(l, "refer_scale", 224);
    qn_value *low, *high, *axes, *x;
    if (!(scale > 0))
        return qn_paddle_fail(l, QN_E_FORMAT, "its refer_scale is %g", scale);
    QN_TRY(half(&low, l, boxes, 0));
    QN_TRY(half(&high, l, boxes, 1));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Sub, high, low));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Add, x, (double)qn_paddle_int(l, "pixel_offset", 1)));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Max, x, 0));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_ReduceProd, QN_INPUTS(x, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Sqrt, x));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Div, x, scale));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Add, x, 1e-8));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Log, x));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Div, x, log(2)));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Add, x, (double)qn_paddle_int(l, "refer_level", 4)));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Floor, x));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Max, x, (double)qn_paddle_int(l, "min_level", 2)));
    return qn_paddle_with(out, l, &qn_op_Min, x, (double)qn_paddle_int(l, "max_level", 5));
}

/* Where each box went among all levels, one behind the other: int32[n, 1] */
static qn_status restore(qn_paddle_layer *l, qn_value *const *numbers, size_t count)
{
    static const int64_t last[] = {-1};
    qn_value *out;
    QN_TRY(qn_paddle_concat(&out, l, numbers, count, 0));
    QN_TRY(qn_paddle_order(&out, l, out, false));
    QN_TRY(qn_paddle_cast(&out, l, out, QN_INT32));
    QN_TRY(qn_paddle_unsqueeze(&out, l, out, last, 1));
    return qn_paddle_out(l, "RestoreIndex", out);
}

qn_status qn_paddle_distribute_fpn_proposals(qn_paddle_layer *l)
{
    enum { MOST = 32 };
    const int64_t least = qn_paddle_int(l, "min_level", 2);
    const int64_t levels = qn_paddle_int(l, "max_level", 5) - least + 1;
    qn_value *boxes, *counts, *level, *pictures = NULL, *count = NULL, *numbers[MOST], *out;
    if (levels < 1 || levels > MOST || (uint64_t)levels != qn_paddle_out_count(l, "MultiFpnRois"))
        return qn_paddle_fail(l, QN_E_FORMAT, "its levels and its outputs do not agree");
    QN_TRY(qn_paddle_in(&boxes, l, "FpnRois"));
    QN_TRY(qn_paddle_maybe(&counts, l, "RoisNum"));
    if (counts) {
        QN_TRY(qn_paddle_pictures_of(&pictures, l, boxes, counts));
        QN_TRY(qn_paddle_dim(&count, l, counts, 0));
    }
    QN_TRY(level_of(&level, l, boxes));
    for (int64_t i = 0; i < levels; i++) {
        QN_TRY(qn_paddle_with(&out, l, &qn_op_Equal, level, (double)(least + i)));
        QN_TRY(qn_paddle_where_true(&numbers[i], l, out));
        QN_TRY(qn_paddle_rows(&out, l, boxes, numbers[i]));
        QN_TRY(qn_paddle_out_at(l, "MultiFpnRois", (size_t)i, out));
        if (!counts)
            continue;
        QN_TRY(qn_paddle_rows(&out, l, pictures, numbers[i]));
        QN_TRY(count_pictures(&out, l, out, count));
        QN_TRY(qn_paddle_out_at(l, "MultiLevelRoIsNum", (size_t)i, out));
    }
    return restore(l, numbers, (size_t)levels);
}

/* All values of a list, one behind the other; `flat`: as one row. */
static qn_status joined(qn_value **out, const qn_paddle_layer *l, const char *slot, bool flat)
{
    static const int64_t row[] = {-1};
    const size_t count = qn_paddle_in_count(l, slot);
    qn_value **parts = qn_arena_array(&l->b->model->arena, count + 1, sizeof(qn_value *));
    QN_TRY_ALLOC(l->b->ctx, parts);
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_paddle_in_at(&parts[i], l, slot, i));
        if (flat)
            QN_TRY(qn_paddle_reshape(&parts[i], l, parts[i], row, 1));
    }
    return qn_paddle_concat(out, l, parts, count, 0);
}

/* The picture of each box of all levels, int64[n], and int64[1]: how many there are */
static qn_status pictures_of_levels(qn_value **out, qn_value **count, const qn_paddle_layer *l)
{
    const size_t levels = qn_paddle_in_count(l, "MultiLevelRois");
    qn_value **parts = qn_arena_array(&l->b->model->arena, levels + 1, sizeof(qn_value *));
    QN_TRY_ALLOC(l->b->ctx, parts);
    for (size_t i = 0; i < levels; i++) {
        qn_value *boxes, *counts;
        QN_TRY(qn_paddle_in_at(&boxes, l, "MultiLevelRois", i));
        QN_TRY(qn_paddle_in_at(&counts, l, "MultiLevelRoIsNum", i));
        QN_TRY(qn_paddle_pictures_of(&parts[i], l, boxes, counts));
        QN_TRY(qn_paddle_dim(count, l, counts, 0));
    }
    return qn_paddle_concat(out, l, parts, levels, 0);
}

/* The best of all, by picture and then by score. */
qn_status qn_paddle_collect_fpn_proposals(qn_paddle_layer *l)
{
    const double most = (double)qn_paddle_int(l, "post_nms_topN post_nms_topn", 1000);
    qn_value *boxes, *scores, *pictures, *count, *n, *best[2], *order, *out;
    const size_t levels = qn_paddle_in_count(l, "MultiLevelRois");
    if (levels == 0 || qn_paddle_in_count(l, "MultiLevelRoIsNum") != levels)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "boxes without their number per picture");
    QN_TRY(joined(&boxes, l, "MultiLevelRois", false));
    QN_TRY(joined(&scores, l, "MultiLevelScores", true));
    QN_TRY(pictures_of_levels(&pictures, &count, l));
    QN_TRY(qn_paddle_dim(&n, l, scores, 0));
    QN_TRY(qn_paddle_with(&n, l, &qn_op_Min, n, most));
    QN_TRY(qn_graph_build_several(best, 2, l->b, &qn_op_TopK, QN_INPUTS(scores, n),
                                  QN_WITH(QN_A_INT("axis", 0))));
    QN_TRY(qn_paddle_rows(&pictures, l, pictures, best[1]));
    QN_TRY(qn_paddle_order(&order, l, pictures, false));
    QN_TRY(qn_paddle_rows(&order, l, best[1], order));
    QN_TRY(qn_paddle_rows(&out, l, boxes, order));
    QN_TRY(qn_paddle_out(l, "FpnRois", out));
    QN_TRY(count_pictures(&out, l, pictures, count));
    return qn_paddle_out(l, "RoisNum", out);
}
