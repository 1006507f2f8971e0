/* The choice of boxes, and what pictures have in them. */
#include <float.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

static qn_status two(qn_value **out, qn_tf_import *import, const qn_op *op, qn_value *a,
                     qn_value *b)
{
    return qn_graph_build(out, &import->builder, op, QN_INPUTS(a, b), QN_PLAIN);
}

static qn_status scalar(qn_value **out, const qn_tf_node *node, size_t i, qn_dtype dtype)
{
    QN_TRY(qn_tf_in(out, node, i));
    QN_TRY(qn_tf_cast(out, node->import, dtype));
    QN_TRY(qn_tf_reshape(out, node->import, (const int64_t[]){1}, 1));
    return qn_tf_fold(out, node->import);
}

/* ---- One picture of one class ---------------------------------------------------------------- */

/* The thresholds: inputs, or in the first version an attribute. Without one for scores all boxes
 * take part. */
static qn_status thresholds(qn_value **overlap, qn_value **least, qn_tf_node *node)
{
    static const int64_t one[] = {1};
    qn_tf_import *import = node->import;
    *least = NULL;
    if (node->n_in > 3) {
        QN_TRY(scalar(overlap, node, 3, QN_FLOAT32));
    } else {
        QN_TRY(
            qn_tf_number(overlap, import, qn_tf_attr_real(node, "iou_threshold", .5), QN_FLOAT32));
        QN_TRY(qn_tf_reshape(overlap, import, one, 1));
        QN_TRY(qn_tf_fold(overlap, import));
    }
    return node->n_in > 4 ? scalar(least, node, 4, QN_FLOAT32) : QN_OK;
}

/* Boxes [N, 4] and scores [N] are one picture of one class for ONNX, whose result has three
 * columns: picture, class, box. */
static qn_status suppress(qn_value **chosen, qn_tf_node *node)
{
    static const int64_t first[] = {0}, both[] = {0, 1}, last[] = {1};
    qn_value *boxes, *scores, *most, *overlap, *least;
    qn_tf_import *import = node->import;
    QN_TRY(qn_tf_in(&boxes, node, 0));
    QN_TRY(qn_tf_in(&scores, node, 1));
    QN_TRY(qn_tf_cast(&boxes, import, QN_FLOAT32));
    QN_TRY(qn_tf_cast(&scores, import, QN_FLOAT32));
    QN_TRY(qn_tf_unsqueeze(&boxes, import, first, 1));
    QN_TRY(qn_tf_unsqueeze(&scores, import, both, 2));
    QN_TRY(scalar(&most, node, 2, QN_INT64));
    QN_TRY(thresholds(&overlap, &least, node));
    const qn_graph_build_inputs inputs = QN_INPUTS(boxes, scores, most, overlap, least);
    QN_TRY(qn_graph_build(chosen, &import->builder, &qn_op_NonMaxSuppression,
                          (qn_graph_build_inputs){inputs.at, least ? 5 : 4}, QN_PLAIN));
    QN_TRY(qn_tf_part(chosen, import, 1, 2, 3));
    return qn_tf_squeeze(chosen, import, last, 1);
}

/* As many of a list as `most` says: what is missing is 0. */
static qn_status fill_up(qn_value **x, qn_tf_node *node, qn_value *count)
{
    qn_value *most, *pads, *zero, *filling;
    qn_tf_import *import = node->import;
    if (!qn_tf_attr_bool(node, "pad_to_max_output_size", false))
        return QN_OK;
    QN_TRY(scalar(&most, node, 2, QN_INT64));
    QN_TRY(two(&most, import, &qn_op_Sub, most, count));
    QN_TRY(qn_graph_build_ints(&zero, &import->builder, (const int64_t[]){0}, 1));
    QN_TRY(qn_graph_build(&pads, &import->builder, &qn_op_Concat, QN_INPUTS(zero, most),
                          QN_WITH(QN_A_INT("axis", 0))));
    QN_TRY(qn_tf_number(&filling, import, 0, (*x)->type.dtype));
    return qn_graph_build(x, &import->builder, &qn_op_Pad, QN_INPUTS(*x, pads, filling), QN_PLAIN);
}

static qn_status put_count(qn_tf_node *node, size_t port, qn_value *count)
{
    QN_TRY(qn_tf_cast(&count, node->import, QN_INT32));
    QN_TRY(qn_tf_reshape(&count, node->import, NULL, 0));
    return qn_tf_out(node, port, count, QN_ORDER_OWN);
}

/* Version 5 gives the scores too, and could make them smaller. */
static qn_status put_scores(qn_tf_node *node, qn_value *chosen, qn_value *count)
{
    double sigma;
    qn_value *scores;
    QN_TRY(qn_tf_real(&sigma, node, 5));
    if (sigma > 0)
        return qn_tf_fail(node, QN_E_UNSUPPORTED,
                          "scores that overlaps make smaller (soft_nms_sigma)");
    QN_TRY(qn_tf_in(&scores, node, 1));
    QN_TRY(two(&scores, node->import, &qn_op_Gather, scores, chosen));
    QN_TRY(fill_up(&scores, node, count));
    return qn_tf_out(node, 1, scores, QN_ORDER_OWN);
}

qn_status qn_tf_non_max_suppression(qn_tf_node *node)
{
    qn_value *chosen, *count;
    const bool scored = strcmp(node->type, "NonMaxSuppressionV5") == 0;
    QN_TRY(suppress(&chosen, node));
    QN_TRY(
        qn_graph_build(&count, &node->import->builder, &qn_op_Shape, QN_INPUTS(chosen), QN_PLAIN));
    if (scored)
        QN_TRY(put_scores(node, chosen, count));
    if (scored || strcmp(node->type, "NonMaxSuppressionV4") == 0)
        QN_TRY(put_count(node, scored ? 2 : 1, count));
    QN_TRY(fill_up(&chosen, node, count));
    QN_TRY(qn_tf_cast(&chosen, node->import, QN_INT32));
    return qn_tf_out(node, 0, chosen, QN_ORDER_OWN);
}

/* ---- Many pictures of many classes ----------------------------------------------------------- */

/* B pictures of N boxes and C classes. Where each class has boxes of its own, B C pictures of one
 * class take part. */
typedef struct combined {
    int64_t n, classes, most;
    bool own;
    /* [B, N, 4] and [B, C, N], or [B C, N, 4] and [B C, 1, N] */
    qn_value *boxes, *scores;
    /* [B, most]: scores, and the places among C N. */
    qn_value *best, *where;
} combined;

static qn_status combined_inputs(combined *c, qn_tf_node *node)
{
    static const int64_t turned[] = {0, 2, 1}, apart[] = {0, 2, 1, 3}, third[] = {2};
    qn_tf_import *import = node->import;
    int64_t most, of_class;
    QN_TRY(qn_tf_in(&c->boxes, node, 0));
    QN_TRY(qn_tf_in(&c->scores, node, 1));
    QN_TRY(qn_tf_int(&of_class, node, 2));
    QN_TRY(qn_tf_int(&most, node, 3));
    const qn_type *boxes = &c->boxes->type, *scores = &c->scores->type;
    if (boxes->rank != 4 || scores->rank != 3 || scores->dims[1].value < 1 ||
        scores->dims[2].value < 1 || scores->dims[1].value > INT32_MAX / scores->dims[2].value ||
        most < 1 || most > INT32_MAX || of_class < 1 || of_class > INT32_MAX)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "numbers of boxes that are not known");
    c->n = scores->dims[1].value;
    c->classes = scores->dims[2].value;
    c->own = boxes->dims[2].value != 1;
    c->most =
        qn_tf_attr_bool(node, "pad_per_class", false) ? QN_MIN(most, of_class * c->classes) : most;
    QN_TRY(qn_tf_permute(&c->scores, import, turned, 3));
    if (!c->own)
        return qn_tf_squeeze(&c->boxes, import, third, 1);
    QN_TRY(qn_tf_permute(&c->boxes, import, apart, 4));
    QN_TRY(qn_tf_reshape(&c->boxes, import, (const int64_t[]){-1, c->n, 4}, 3));
    return qn_tf_reshape(&c->scores, import, (const int64_t[]){-1, 1, c->n}, 3);
}

/* The scores of boxes that are left; those of the others are below all. */
static qn_status combined_suppress(combined *c, qn_tf_node *node)
{
    qn_value *most, *overlap, *least, *chosen, *left, *shape;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(scalar(&most, node, 2, QN_INT64));
    QN_TRY(scalar(&overlap, node, 4, QN_FLOAT32));
    QN_TRY(scalar(&least, node, 5, QN_FLOAT32));
    QN_TRY(qn_graph_build(&chosen, b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(c->boxes, c->scores, most, overlap, least), QN_PLAIN));
    QN_TRY(two(&left, import, &qn_op_GatherND, c->scores, chosen));
    QN_TRY(qn_tf_shape_of(&shape, import, c->scores));
    QN_TRY(qn_graph_build_real(&c->best, b, -FLT_MAX));
    QN_TRY(two(&c->best, import, &qn_op_Expand, c->best, shape));
    QN_TRY(
        qn_graph_build(&c->best, b, &qn_op_ScatterND, QN_INPUTS(c->best, chosen, left), QN_PLAIN));
    return qn_tf_reshape(&c->best, import, (const int64_t[]){-1, c->classes * c->n}, 2);
}

static qn_status combined_sort(combined *c, qn_tf_node *node)
{
    const int64_t all = c->classes * c->n, count = QN_MIN(c->most, all);
    const int64_t pads[] = {0, 0, 0, c->most - count};
    qn_value *list, *made[2], *filling;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_graph_build_ints(&list, b, &count, 1));
    QN_TRY(qn_graph_build_several(made, 2, b, &qn_op_TopK, QN_INPUTS(c->best, list), QN_PLAIN));
    c->best = made[0];
    c->where = made[1];
    if (count == c->most)
        return QN_OK;
    QN_TRY(qn_graph_build_ints(&list, b, pads, 4));
    QN_TRY(qn_graph_build_real(&filling, b, -FLT_MAX));
    QN_TRY(qn_graph_build(&c->best, b, &qn_op_Pad, QN_INPUTS(c->best, list, filling), QN_PLAIN));
    return qn_graph_build(&c->where, b, &qn_op_Pad, QN_INPUTS(c->where, list), QN_PLAIN);
}

/* The boxes of the places, [B, most, 4]. */
static qn_status combined_boxes(qn_value **out, const combined *c, qn_tf_node *node)
{
    static const int64_t last[] = {-1};
    qn_value *where = c->where, *count;
    qn_tf_import *import = node->import;
    *out = c->boxes;
    if (c->own) {
        QN_TRY(qn_tf_reshape(out, import, (const int64_t[]){-1, c->classes * c->n, 4}, 3));
    } else {
        QN_TRY(qn_tf_number(&count, import, (double)c->n, QN_INT64));
        QN_TRY(two(&where, import, &qn_op_Mod, where, count));
    }
    QN_TRY(qn_tf_unsqueeze(&where, import, last, 1));
    QN_TRY(qn_graph_build(out, &import->builder, &qn_op_GatherND, QN_INPUTS(*out, where),
                          QN_WITH(QN_A_INT("batch_dims", 1))));
    if (!qn_tf_attr_bool(node, "clip_boxes", true))
        return QN_OK;
    QN_TRY(qn_graph_build_real(&where, &import->builder, 0));
    QN_TRY(qn_graph_build_real(&count, &import->builder, 1));
    return qn_graph_build(out, &import->builder, &qn_op_Clip, QN_INPUTS(*out, where, count),
                          QN_PLAIN);
}

/* What stands where no box is left is 0. */
static qn_status put_found(qn_tf_node *node, size_t port, qn_value *x, qn_value *found)
{
    static const int64_t last[] = {-1};
    qn_value *zero;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_cast(&x, node->import, QN_FLOAT32));
    if (port == 0)
        QN_TRY(qn_tf_unsqueeze(&found, node->import, last, 1));
    QN_TRY(qn_graph_build_real(&zero, b, 0));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Where, QN_INPUTS(found, x, zero), QN_PLAIN));
    return qn_tf_out(node, port, x, QN_ORDER_OWN);
}

qn_status qn_tf_combined_suppression(qn_tf_node *node)
{
    static const int64_t last[] = {-1};
    combined c;
    qn_value *found, *x, *axes;
    qn_tf_import *import = node->import;
    QN_TRY(combined_inputs(&c, node));
    QN_TRY(combined_suppress(&c, node));
    QN_TRY(combined_sort(&c, node));
    QN_TRY(qn_graph_build_real(&x, &import->builder, -FLT_MAX));
    QN_TRY(two(&found, import, &qn_op_Greater, c.best, x));
    QN_TRY(combined_boxes(&x, &c, node));
    QN_TRY(put_found(node, 0, x, found));
    QN_TRY(put_found(node, 1, c.best, found));
    QN_TRY(qn_tf_number(&x, import, (double)c.n, QN_INT64));
    QN_TRY(two(&x, import, &qn_op_Div, c.where, x));
    QN_TRY(put_found(node, 2, x, found));
    QN_TRY(qn_tf_cast(&found, import, QN_INT32));
    QN_TRY(qn_graph_build_ints(&axes, &import->builder, last, 1));
    QN_TRY(qn_graph_build(&x, &import->builder, &qn_op_ReduceSum, QN_INPUTS(found, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    return qn_tf_out(node, 3, x, QN_ORDER_OWN);
}

/* ---- Parts of pictures ----------------------------------------------------------------------- */

/* One side of the parts: H or W, from low to high in parts of the picture. */
typedef struct side {
    int64_t count;
    /* Where the points of RoiAlign's window begin and end, [n, 1]; which points lie within the
     * picture, [n, count]. */
    qn_value *begin, *end, *inside;
} side;

/* The largest place along an axis of a picture. */
static qn_status last_place(qn_value **out, qn_tf_import *import, qn_value *picture, int64_t axis)
{
    qn_value *one;
    QN_TRY(qn_tf_shape_of(out, import, picture));
    QN_TRY(qn_tf_part(out, import, 0, axis, axis + 1));
    QN_TRY(qn_tf_fold(out, import));
    QN_TRY(qn_tf_cast(out, import, QN_FLOAT32));
    QN_TRY(qn_graph_build_real(&one, &import->builder, 1));
    return two(out, import, &qn_op_Sub, *out, one);
}

/* low + i (high - low) / (count - 1) has to be in [0, last]; a single point is the middle. */
static qn_status points(side *s, qn_tf_import *import, qn_value *low, qn_value *step,
                        qn_value *last)
{
    qn_value *place, *zero, *other;
    qn_graph_builder *b = &import->builder;
    float *numbers = qn_arena_array(&import->arena, (size_t)s->count, sizeof *numbers);
    QN_TRY_ALLOC(import->ctx, numbers);
    for (int64_t i = 0; i < s->count; i++)
        numbers[i] = s->count > 1 ? (float)i : .5f;
    QN_TRY(qn_graph_build_reals(&place, b, numbers, (size_t)s->count));
    QN_TRY(two(&place, import, &qn_op_Mul, step, place));
    QN_TRY(two(&place, import, &qn_op_Add, low, place));
    QN_TRY(qn_graph_build_real(&zero, b, 0));
    QN_TRY(two(&other, import, &qn_op_LessOrEqual, place, last));
    QN_TRY(two(&s->inside, import, &qn_op_GreaterOrEqual, place, zero));
    return two(&s->inside, import, &qn_op_And, s->inside, other);
}

/* RoiAlign looks at the middles of `count` pieces, half a pixel less: the window begins half a
 * piece before the first point, and ends half a piece behind the last. */
static qn_status side_of(side *s, qn_tf_node *node, qn_value *boxes, int64_t axis,
                         qn_value *picture)
{
    qn_value *low = boxes, *high = boxes, *last, *step, *number;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(last_place(&last, import, picture, axis + 2));
    QN_TRY(qn_tf_part(&low, import, 1, axis, axis + 1));
    QN_TRY(qn_tf_part(&high, import, 1, axis + 2, axis + 3));
    QN_TRY(two(&low, import, &qn_op_Mul, low, last));
    QN_TRY(two(&high, import, &qn_op_Mul, high, last));
    QN_TRY(two(&step, import, &qn_op_Sub, high, low));
    QN_TRY(qn_graph_build_real(&number, b, (float)QN_MAX(s->count - 1, INT64_C(1))));
    QN_TRY(two(&step, import, &qn_op_Div, step, number));
    QN_TRY(points(s, import, low, step, last));
    QN_TRY(qn_graph_build_real(&number, b, s->count > 1 ? .5f : 0));
    QN_TRY(two(&step, import, &qn_op_Mul, step, number));
    QN_TRY(qn_graph_build_real(&number, b, .5f));
    QN_TRY(two(&low, import, &qn_op_Add, low, number));
    QN_TRY(two(&high, import, &qn_op_Add, high, number));
    QN_TRY(two(&s->begin, import, &qn_op_Sub, low, step));
    return two(&s->end, import, &qn_op_Add, high, step);
}

/* [n, 1, height, width]: what lies in the picture. */
static qn_status inside_of(qn_value **out, qn_tf_import *import, const side sides[2])
{
    static const int64_t rows[] = {1, 3}, columns[] = {1, 2};
    qn_value *y = sides[0].inside, *x = sides[1].inside;
    QN_TRY(qn_tf_unsqueeze(&y, import, rows, 2));
    QN_TRY(qn_tf_unsqueeze(&x, import, columns, 2));
    return two(out, import, &qn_op_And, y, x);
}

/* Pictures, boxes (y, x, y, x from 0 to 1), the number of the picture of each, the size of the
 * parts. */
qn_status qn_tf_crop_and_resize(qn_tf_node *node)
{
    int64_t size[2];
    size_t count;
    side sides[2] = {{.count = 0}};
    qn_value *picture, *boxes, *numbers, *windows, *y, *inside, *outside;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_in_order(&picture, node, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_tf_in(&boxes, node, 1));
    QN_TRY(qn_tf_in(&numbers, node, 2));
    QN_TRY(qn_tf_ints(size, &count, node, 3, 2));
    if (count != 2 || size[0] < 1 || size[1] < 1 || size[0] > 1 << 14 || size[1] > 1 << 14)
        return qn_tf_fail(node, QN_E_FORMAT, "a size of parts that is none");
    if (qn_tf_attr_is(node, "method", "nearest"))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "the nearest pixels of parts");
    QN_TRY(qn_tf_cast(&picture, import, QN_FLOAT32));
    QN_TRY(qn_tf_cast(&numbers, import, QN_INT64));
    for (int i = 0; i < 2; i++) {
        sides[i].count = size[i];
        QN_TRY(side_of(&sides[i], node, boxes, i, picture));
    }
    QN_TRY(qn_graph_build(&windows, b, &qn_op_Concat,
                          QN_INPUTS(sides[1].begin, sides[0].begin, sides[1].end, sides[0].end),
                          QN_WITH(QN_A_INT("axis", 1))));
    QN_TRY(
        qn_graph_build(&y, b, &qn_op_RoiAlign, QN_INPUTS(picture, windows, numbers),
                       QN_WITH(QN_A_TEXT("coordinate_transformation_mode", "half_pixel"),
                               QN_A_INT("output_height", size[0]),
                               QN_A_INT("output_width", size[1]), QN_A_INT("sampling_ratio", 1))));
    QN_TRY(inside_of(&inside, import, sides));
    QN_TRY(
        qn_graph_build_real(&outside, b, (float)qn_tf_attr_real(node, "extrapolation_value", 0)));
    QN_TRY(qn_graph_build(&y, b, &qn_op_Where, QN_INPUTS(inside, y, outside), QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_CHANNELS_FIRST);
}
