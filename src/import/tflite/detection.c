/* TFLite_Detection_PostProcess: boxes out of distances from anchors, and the best of them. */
#include "import/tflite/flexbuffer.h"
#include "import/tflite/tflite.h"

typedef struct tfl_detection {
    int64_t most, classes, of_class;
    double least, overlap, scales[4];
    bool regular;
} tfl_detection;

static qn_status read_options(tfl_detection *d, const tfl_layer *l)
{
    const qn_string o = l->custom;
    static const char *const scales[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
    const double most = qn_flex_number(o, "max_detections", 0);
    const double classes = qn_flex_number(o, "num_classes", 0);
    const double of_class = qn_flex_number(o, "detections_per_class", 100);
    if (!(most >= 1 && most <= 1 << 20) || !(classes >= 1 && classes <= 1 << 20) ||
        !(of_class >= 1 && of_class <= 1 << 20))
        return qn_tfl_wrong(l, "%g detections of %g classes", most, classes);
    *d = (tfl_detection){.most = (int64_t)most,
                         .classes = (int64_t)classes,
                         .of_class = (int64_t)of_class,
                         .least = qn_flex_number(o, "nms_score_threshold", 0),
                         .overlap = qn_flex_number(o, "nms_iou_threshold", 0),
                         .regular = qn_flex_number(o, "use_regular_nms", 0) > 0};
    for (size_t i = 0; i < 4; i++) {
        d->scales[i] = qn_flex_number(o, scales[i], 0);
        if (!(d->scales[i] > 0))
            return qn_tfl_wrong(l, "%s is %g", scales[i], d->scales[i]);
    }
    if (!d->regular && qn_flex_number(o, "max_classes_per_detection", 1) > 1)
        return qn_tfl_unsupported(l, "several classes of a box");
    return QN_OK;
}

static qn_status columns_of(qn_value **out, tfl_layer *l, qn_value *x)
{
    return qn_graph_build_several(out, 4, l->b, &qn_op_Split, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT("axis", 1), QN_A_INT("num_outputs", 4)));
}

/* center = x / scale * size of the anchor + its center; half = exp(x / scale) * size / 2. */
static qn_status along_side(qn_value **low, qn_value **high, tfl_layer *l, qn_value *const *from,
                            const double scales[2])
{
    qn_value *center, *half;
    QN_TRY(qn_tfl_with(&center, l, &qn_op_Div, from[0], scales[0]));
    QN_TRY(qn_tfl_binary(&center, l, &qn_op_Mul, center, from[3]));
    QN_TRY(qn_tfl_binary(&center, l, &qn_op_Add, center, from[2]));
    QN_TRY(qn_tfl_with(&half, l, &qn_op_Div, from[1], scales[1]));
    QN_TRY(qn_tfl_unary(&half, l, &qn_op_Exp, half));
    QN_TRY(qn_tfl_binary(&half, l, &qn_op_Mul, half, from[3]));
    QN_TRY(qn_tfl_with(&half, l, &qn_op_Mul, half, 0.5));
    QN_TRY(qn_tfl_binary(low, l, &qn_op_Sub, center, half));
    return qn_tfl_binary(high, l, &qn_op_Add, center, half);
}

/* [n, 4]: y and x of two corners. Boxes and anchors are y, x, height, width. */
static qn_status decode(qn_value **boxes, tfl_layer *l, const tfl_detection *d)
{
    qn_value *x, *anchors, *p[4], *a[4], *side[4];
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(&anchors, l, 2, QN_ORDER_OWN));
    if (qn_tfl_rank(x) != 3 || qn_tfl_dim(x, 0) != 1 || qn_tfl_dim(x, 2) != 4)
        return qn_tfl_unsupported(l, "boxes that are not [1, n, 4]");
    QN_TRY(qn_tfl_reshape(&x, l, x, (const int64_t[]){-1, 4}, 2));
    QN_TRY(columns_of(p, l, x));
    QN_TRY(columns_of(a, l, anchors));
    const double vertical[] = {d->scales[0], d->scales[2]};
    const double horizontal[] = {d->scales[1], d->scales[3]};
    QN_TRY(along_side(&side[0], &side[2], l, (qn_value *[]){p[0], p[2], a[0], a[2]}, vertical));
    QN_TRY(along_side(&side[1], &side[3], l, (qn_value *[]){p[1], p[3], a[1], a[3]}, horizontal));
    return qn_graph_build(boxes, l->b, &qn_op_Concat, QN_INPUTS(side[0], side[1], side[2], side[3]),
                          QN_WITH(QN_A_INT("axis", 1)));
}

/* [n, classes] without what stands for the background, which comes first. */
static qn_status take_scores(qn_value **scores, tfl_layer *l, const tfl_detection *d)
{
    qn_value *x, *from, *to, *axis;
    QN_TRY(qn_tfl_real(&x, l, 1, QN_ORDER_OWN));
    const int64_t columns = qn_tfl_dim(x, qn_tfl_rank(x) - 1), first = columns - d->classes;
    if (qn_tfl_rank(x) != 3 || first < 0 || first > 1)
        return qn_tfl_wrong(l, "%lld scores for %lld classes", (long long)columns,
                            (long long)d->classes);
    QN_TRY(qn_tfl_reshape(&x, l, x, (const int64_t[]){-1, columns}, 2));
    QN_TRY(qn_graph_build_ints(&from, l->b, &first, 1));
    QN_TRY(qn_graph_build_ints(&to, l->b, &columns, 1));
    QN_TRY(qn_graph_build_ints(&axis, l->b, (const int64_t[]){1}, 1));
    return qn_graph_build(scores, l->b, &qn_op_Slice, QN_INPUTS(x, from, to, axis), QN_PLAIN);
}

/* Box, class and score of each detection: [k], sorted by score. */
typedef struct tfl_found {
    qn_value *box, *class, *score;
} tfl_found;

static qn_status suppress(qn_value **box, qn_value **class, tfl_layer *l, const tfl_detection *d,
                          qn_value *const boxes_scores[2])
{
    static const int64_t first[] = {0}, swapped[] = {1, 0};
    qn_value *boxes, *scores, *most, *overlap, *least, *chosen, *place;
    const int64_t limit = d->regular ? d->of_class : d->most;
    QN_TRY(qn_tfl_along(&boxes, l, &qn_op_Unsqueeze, boxes_scores[0], first, 1));
    QN_TRY(qn_tfl_transpose(&scores, l, boxes_scores[1], swapped, 2));
    QN_TRY(qn_tfl_along(&scores, l, &qn_op_Unsqueeze, scores, first, 1));
    QN_TRY(qn_graph_build_ints(&most, l->b, &limit, 1));
    QN_TRY(qn_tfl_number(&overlap, l, QN_FLOAT32, d->overlap));
    QN_TRY(qn_tfl_number(&least, l, QN_FLOAT32, d->least));
    QN_TRY(qn_graph_build(&chosen, l->b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, most, overlap, least), QN_PLAIN));
    QN_TRY(qn_tfl_number(&place, l, QN_INT64, 2));
    QN_TRY(qn_graph_build(box, l->b, &qn_op_Gather, QN_INPUTS(chosen, place),
                          QN_WITH(QN_A_INT("axis", 1))));
    QN_TRY(qn_tfl_number(&place, l, QN_INT64, 1));
    return qn_graph_build(class, l->b, &qn_op_Gather, QN_INPUTS(chosen, place),
                          QN_WITH(QN_A_INT("axis", 1)));
}

/* Each box has its best class, and boxes of all classes suppress each other. */
static qn_status find_fast(tfl_found *f, tfl_layer *l, const tfl_detection *d, qn_value *boxes,
                           qn_value *scores)
{
    qn_value *best, *which, *axes, *unused;
    QN_TRY(qn_graph_build_ints(&axes, l->b, (const int64_t[]){1}, 1));
    QN_TRY(qn_tfl_binary(&best, l, &qn_op_ReduceMax, scores, axes));
    QN_TRY(qn_graph_build(&which, l->b, &qn_op_ArgMax, QN_INPUTS(scores),
                          QN_WITH(QN_A_INT("axis", 1), QN_A_INT("keepdims", 0))));
    QN_TRY(suppress(&f->box, &unused, l, d, (qn_value *const[]){boxes, best}));
    QN_TRY(qn_tfl_binary(&f->class, l, &qn_op_Gather, which, f->box));
    QN_TRY(qn_tfl_reshape(&best, l, best, (const int64_t[]){-1}, 1));
    return qn_tfl_binary(&f->score, l, &qn_op_Gather, best, f->box);
}

/* Boxes of a class suppress each other, then all are sorted. */
static qn_status find_regular(tfl_found *f, tfl_layer *l, const tfl_detection *d, qn_value *boxes,
                              qn_value *scores)
{
    static const int64_t last[] = {1};
    qn_value *pairs, *count, *most, *top[2], *column[2];
    QN_TRY(suppress(&f->box, &f->class, l, d, (qn_value *const[]){boxes, scores}));
    QN_TRY(qn_tfl_along(&column[0], l, &qn_op_Unsqueeze, f->box, last, 1));
    QN_TRY(qn_tfl_along(&column[1], l, &qn_op_Unsqueeze, f->class, last, 1));
    QN_TRY(qn_graph_build(&pairs, l->b, &qn_op_Concat, QN_INPUTS(column[0], column[1]),
                          QN_WITH(QN_A_INT("axis", 1))));
    QN_TRY(qn_tfl_binary(&f->score, l, &qn_op_GatherND, scores, pairs));
    QN_TRY(qn_tfl_unary(&count, l, &qn_op_Shape, f->score));
    QN_TRY(qn_tfl_with(&most, l, &qn_op_Min, count, (double)d->most));
    QN_TRY(qn_graph_build_several(top, 2, l->b, &qn_op_TopK, QN_INPUTS(f->score, most), QN_PLAIN));
    f->score = top[0];
    QN_TRY(qn_tfl_binary(&f->box, l, &qn_op_Gather, f->box, top[1]));
    return qn_tfl_binary(&f->class, l, &qn_op_Gather, f->class, top[1]);
}

/* Rows of 0 up to `most`: [1, most, ...]. */
static qn_status put_filled(tfl_layer *l, size_t o, qn_value *x, const tfl_detection *d)
{
    static const int64_t first[] = {0};
    const int64_t dims[] = {d->most, 4};
    qn_value *zero, *from, *to;
    QN_TRY(qn_tfl_cast(&x, l, x, QN_FLOAT32));
    QN_TRY(qn_tfl_number(&zero, l, QN_FLOAT32, 0));
    QN_TRY(qn_graph_build_ints(&to, l->b, dims, (size_t)QN_MAX(qn_tfl_rank(x), 1)));
    QN_TRY(qn_tfl_binary(&zero, l, &qn_op_Expand, zero, to));
    QN_TRY(
        qn_graph_build(&x, l->b, &qn_op_Concat, QN_INPUTS(x, zero), QN_WITH(QN_A_INT("axis", 0))));
    QN_TRY(qn_graph_build_ints(&from, l->b, first, 1));
    QN_TRY(qn_graph_build_ints(&to, l->b, dims, 1));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Slice, QN_INPUTS(x, from, to), QN_PLAIN));
    QN_TRY(qn_tfl_along(&x, l, &qn_op_Unsqueeze, x, first, 1));
    return qn_tfl_put(l, o, x, QN_ORDER_OWN);
}

/* Boxes, class predictions, anchors -> boxes, classes, scores and the number of detections. */
qn_status qn_tfl_detection(tfl_layer *l)
{
    tfl_detection d;
    tfl_found f;
    qn_value *boxes, *scores, *count;
    QN_TRY(qn_tfl_expect(l, 3, 4));
    QN_TRY(read_options(&d, l));
    QN_TRY(decode(&boxes, l, &d));
    QN_TRY(take_scores(&scores, l, &d));
    QN_TRY(d.regular ? find_regular(&f, l, &d, boxes, scores)
                     : find_fast(&f, l, &d, boxes, scores));
    QN_TRY(qn_tfl_unary(&count, l, &qn_op_Shape, f.score));
    QN_TRY(qn_tfl_cast(&count, l, count, QN_FLOAT32));
    QN_TRY(qn_tfl_binary(&boxes, l, &qn_op_Gather, boxes, f.box));
    QN_TRY(put_filled(l, 0, boxes, &d));
    QN_TRY(put_filled(l, 1, f.class, &d));
    QN_TRY(put_filled(l, 2, f.score, &d));
    return qn_tfl_put(l, 3, count, QN_ORDER_OWN);
}
