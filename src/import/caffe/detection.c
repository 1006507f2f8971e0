/* DetectionOutput of SSD: boxes of priors and offsets, the best of each class without those that
 * overlap, and of these the best of each picture: [1, 1, detections, 7] of picture, class, score
 * and corners, by picture, class and falling score. */
#include <float.h>

#include "import/caffe/caffe.h"

typedef struct detection {
    int64_t classes, background, top_k, keep, code;
    bool is_shared, is_in_target, clips;
    float overlap, confidence;
    int64_t batch, boxes;
} detection;

static qn_status read_parameters(detection *d, qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_DETECTION);
    const qn_proto_message *nms = qn_proto_get_message(param, QN_CAFFE_DETECTION_NMS);
    d->classes = qn_proto_int(param, QN_CAFFE_DETECTION_NUM_CLASSES, 0);
    d->background = qn_proto_int(param, QN_CAFFE_DETECTION_BACKGROUND, 0);
    d->is_shared = qn_proto_int(param, QN_CAFFE_DETECTION_SHARE_LOCATION, 1) != 0;
    d->is_in_target = qn_proto_int(param, QN_CAFFE_DETECTION_VARIANCE_IN_TARGET, 0) != 0;
    d->clips = qn_proto_int(param, QN_CAFFE_DETECTION_CLIP, 0) != 0;
    d->code = qn_proto_int(param, QN_CAFFE_DETECTION_CODE_TYPE, QN_CAFFE_CORNER);
    d->keep = qn_proto_int(param, QN_CAFFE_DETECTION_KEEP_TOP_K, -1);
    d->confidence = (float)qn_proto_real(param, QN_CAFFE_DETECTION_CONFIDENCE, -FLT_MAX);
    d->overlap = (float)qn_proto_real(nms, QN_CAFFE_NMS_THRESHOLD, 0.3F);
    d->top_k = qn_proto_int(nms, QN_CAFFE_NMS_TOP_K, -1);
    QN_TRY(qn_caffe_check(net, "num_classes", d->classes, 1, 1 << 16));
    QN_TRY(qn_caffe_check(net, "keep_top_k", d->keep, -1, 1 << 20));
    QN_TRY(qn_caffe_check(net, "code_type", d->code, QN_CAFFE_CORNER, QN_CAFFE_CORNER_SIZE));
    if (qn_proto_real(nms, QN_CAFFE_NMS_ETA, 1) != 1)
        return QN_CAFFE_REFUSE(net, "an overlap that falls with each box (eta)");
    if (layer->bottoms.count > 3)
        return QN_CAFFE_REFUSE(net, "the second stage of RefineDet (%zu bottoms)",
                               layer->bottoms.count);
    return QN_OK;
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

/* One of the two rows of [1, 2, 4 * boxes] as [1, boxes, 1, 4]. */
static qn_status prior_row(qn_value **out, qn_caffe_net *net, const detection *d, qn_value *priors,
                           int64_t row)
{
    const int64_t dims[] = {1, d->boxes, 1, 4};
    QN_TRY(qn_caffe_slice(out, net, priors, 1, row, row + 1));
    return qn_caffe_reshape(out, net, *out, 4, dims);
}

/* Offsets move the centre by parts of the size, and stretch the size by their powers of e. */
static qn_status decode_centres(qn_value **out, qn_caffe_net *net, qn_value *prior, qn_value *loc)
{
    qn_value *low, *high, *size, *centre, *move, *stretch, *ends[2];
    QN_TRY(qn_caffe_slice(&low, net, prior, 3, 0, 2));
    QN_TRY(qn_caffe_slice(&high, net, prior, 3, 2, 4));
    QN_TRY(qn_caffe_slice(&move, net, loc, 3, 0, 2));
    QN_TRY(qn_caffe_slice(&stretch, net, loc, 3, 2, 4));
    QN_TRY(qn_caffe_op2(&size, net, &qn_op_Sub, high, low));
    QN_TRY(qn_caffe_op2(&centre, net, &qn_op_Add, low, high));
    QN_TRY(qn_caffe_op_real(&centre, net, &qn_op_Mul, centre, 0.5));
    QN_TRY(qn_caffe_op2(&move, net, &qn_op_Mul, move, size));
    QN_TRY(qn_caffe_op2(&centre, net, &qn_op_Add, move, centre));
    QN_TRY(qn_caffe_op_real(&size, net, &qn_op_Mul, size, 0.5));
    QN_TRY(qn_caffe_op1(&stretch, net, &qn_op_Exp, stretch));
    QN_TRY(qn_caffe_op2(&size, net, &qn_op_Mul, stretch, size));
    QN_TRY(qn_caffe_op2(&ends[0], net, &qn_op_Sub, centre, size));
    QN_TRY(qn_caffe_op2(&ends[1], net, &qn_op_Add, centre, size));
    return qn_caffe_concat(out, net, ends, 2, 3);
}

/* Offsets move the corners, by parts of the size where the code says so. */
static qn_status decode_corners(qn_value **out, qn_caffe_net *net, const detection *d,
                                qn_value *prior, qn_value *loc)
{
    qn_value *low, *high, *sizes[2];
    if (d->code == QN_CAFFE_CORNER_SIZE) {
        QN_TRY(qn_caffe_slice(&low, net, prior, 3, 0, 2));
        QN_TRY(qn_caffe_slice(&high, net, prior, 3, 2, 4));
        QN_TRY(qn_caffe_op2(&sizes[0], net, &qn_op_Sub, high, low));
        sizes[1] = sizes[0];
        QN_TRY(qn_caffe_concat(&low, net, sizes, 2, 3));
        QN_TRY(qn_caffe_op2(&loc, net, &qn_op_Mul, loc, low));
    }
    return qn_caffe_op2(out, net, &qn_op_Add, prior, loc);
}

/* [batch, boxes, 1 or classes, 4] of corners. */
static qn_status decode(qn_value **out, qn_caffe_net *net, const detection *d, qn_value *loc,
                        qn_value *priors)
{
    const int64_t dims[] = {d->batch, d->boxes, d->is_shared ? 1 : d->classes, 4};
    qn_value *prior, *variance, *low, *high;
    QN_TRY(qn_caffe_reshape(&loc, net, loc, 4, dims));
    QN_TRY(prior_row(&prior, net, d, priors, 0));
    if (!d->is_in_target) {
        QN_TRY(prior_row(&variance, net, d, priors, 1));
        QN_TRY(qn_caffe_op2(&loc, net, &qn_op_Mul, loc, variance));
    }
    QN_TRY(d->code == QN_CAFFE_CENTER_SIZE ? decode_centres(out, net, prior, loc)
                                           : decode_corners(out, net, d, prior, loc));
    if (!d->clips)
        return QN_OK;
    QN_TRY(qn_graph_build_real(&low, &net->builder, 0));
    QN_TRY(qn_graph_build_real(&high, &net->builder, 1));
    return qn_graph_build(out, &net->builder, &qn_op_Clip, QN_INPUTS(*out, low, high), QN_PLAIN);
}

/* ---- The best -------------------------------------------------------------------------------- */

/* Only the top_k best boxes of a class are looked at: the others lose their scores. */
static qn_status mask(qn_value **scores, qn_caffe_net *net, const detection *d)
{
    qn_value *k, *best[2], *is_best, *nothing;
    if (d->top_k < 1 || d->top_k >= d->boxes)
        return QN_OK;
    QN_TRY(qn_graph_build_ints(&k, &net->builder, &d->top_k, 1));
    QN_TRY(qn_graph_build_several(best, 2, &net->builder, &qn_op_TopK, QN_INPUTS(*scores, k),
                                  QN_WITH(QN_A_INT("axis", 2))));
    QN_TRY(qn_caffe_slice(&k, net, best[0], 2, d->top_k - 1, d->top_k));
    QN_TRY(qn_caffe_op2(&is_best, net, &qn_op_GreaterOrEqual, *scores, k));
    QN_TRY(qn_graph_build_real(&nothing, &net->builder, -FLT_MAX));
    return qn_graph_build(scores, &net->builder, &qn_op_Where, QN_INPUTS(is_best, *scores, nothing),
                          QN_PLAIN);
}

static qn_status suppress(qn_value **out, qn_caffe_net *net, const detection *d, qn_value *boxes,
                          qn_value *scores)
{
    qn_value *most, *overlap, *confidence;
    QN_TRY(qn_graph_build_ints(&most, &net->builder, &d->boxes, 1));
    QN_TRY(qn_graph_build_real(&overlap, &net->builder, d->overlap));
    QN_TRY(qn_graph_build_real(&confidence, &net->builder, d->confidence));
    return qn_graph_build(out, &net->builder, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, most, overlap, confidence), QN_PLAIN);
}

/* A group of classes that have their boxes in common, of one picture. */
typedef struct group {
    int64_t picture, place;
    float *labels;
    int64_t *classes;
    int64_t count;
} group;

/* The column `at` of the chosen as a list. */
static qn_status column(qn_value **out, qn_caffe_net *net, qn_value *chosen, int64_t at)
{
    const int64_t dims[] = {-1};
    QN_TRY(qn_caffe_slice(out, net, chosen, 1, at, at + 1));
    return qn_caffe_reshape(out, net, *out, 1, dims);
}

/* [chosen, 7] */
static qn_status rows_of(qn_value **out, qn_caffe_net *net, const group *g, qn_value *const in[3])
{
    const int64_t tall[] = {-1, 1};
    qn_value *const boxes = in[0], *const scores = in[1], *const chosen = in[2];
    qn_value *parts[4], *labels, *places;
    QN_TRY(qn_graph_build_reals(&labels, &net->builder, g->labels, (size_t)g->count));
    QN_TRY(column(&places, net, chosen, 1));
    QN_TRY(qn_caffe_op2(&labels, net, &qn_op_Gather, labels, places));
    QN_TRY(qn_caffe_reshape(&parts[1], net, labels, 2, tall));
    QN_TRY(qn_caffe_op_real(&parts[0], net, &qn_op_Mul, parts[1], 0));
    QN_TRY(qn_caffe_op_real(&parts[0], net, &qn_op_Add, parts[0], (double)g->picture));
    QN_TRY(qn_caffe_slice(&places, net, chosen, 1, 1, 3));
    QN_TRY(qn_caffe_op2(&parts[2], net, &qn_op_GatherND, scores, places));
    QN_TRY(qn_caffe_reshape(&parts[2], net, parts[2], 2, tall));
    QN_TRY(column(&places, net, chosen, 2));
    QN_TRY(qn_caffe_op2(&parts[3], net, &qn_op_Gather, boxes, places));
    return qn_caffe_concat(out, net, parts, 4, 1);
}

/* boxes [batch, boxes, 1 or classes, 4], scores [batch, classes, boxes] */
static qn_status detect_group(qn_value **out, qn_caffe_net *net, const detection *d, const group *g,
                              qn_value *const in[2])
{
    const int64_t one[] = {1, d->boxes, 4}, flat[] = {d->boxes, 4}, table[] = {g->count, d->boxes};
    qn_value *boxes, *scores, *classes, *chosen;
    QN_TRY(qn_caffe_slice(&boxes, net, in[0], 0, g->picture, g->picture + 1));
    QN_TRY(qn_caffe_slice(&boxes, net, boxes, 2, g->place, g->place + 1));
    QN_TRY(qn_caffe_reshape(&boxes, net, boxes, 3, one));
    QN_TRY(qn_caffe_slice(&scores, net, in[1], 0, g->picture, g->picture + 1));
    QN_TRY(qn_graph_build_ints(&classes, &net->builder, g->classes, (size_t)g->count));
    QN_TRY(qn_graph_build(&scores, &net->builder, &qn_op_Gather, QN_INPUTS(scores, classes),
                          QN_WITH(QN_A_INT("axis", 1))));
    QN_TRY(mask(&scores, net, d));
    QN_TRY(suppress(&chosen, net, d, boxes, scores));
    QN_TRY(qn_caffe_reshape(&boxes, net, boxes, 2, flat));
    QN_TRY(qn_caffe_reshape(&scores, net, scores, 2, table));
    return rows_of(out, net, g, (qn_value *[]){boxes, scores, chosen});
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static qn_status constant(qn_value **out, qn_caffe_net *net, int32_t rank, const int64_t *dims,
                          float value)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_tensor *tensor;
    int64_t count;
    QN_TRY(qn_model_tensor(&tensor, net->builder.model, &type));
    if (!qn_dims_count(&count, rank, dims))
        return QN_CAFFE_FAIL(net, "keep_top_k is too large");
    for (int64_t i = 0; i < count; i++)
        ((float *)tensor->data)[i] = value;
    return qn_value_constant(out, net->builder.graph, NULL, tensor);
}

/* The `count` rows with the best scores. */
static qn_status best_of(qn_value **rows, qn_caffe_net *net, qn_value *scores, qn_value *count)
{
    qn_value *best[2];
    QN_TRY(qn_graph_build_several(best, 2, &net->builder, &qn_op_TopK, QN_INPUTS(scores, count),
                                  QN_PLAIN));
    return qn_caffe_op2(rows, net, &qn_op_Gather, *rows, best[1]);
}

/* All of a picture's rows. Where there are none, one that Caffe has then: of -1, but for the
 * picture. */
static qn_status keep_all(qn_value **rows, qn_caffe_net *net, int64_t picture)
{
    const float none[] = {(float)picture, -1, -1, -1, -1, -1, -1};
    const int64_t wide[] = {1, 7}, one = 1;
    qn_value *parts[2] = {*rows}, *count, *number, *scores;
    QN_TRY(qn_caffe_op1(&count, net, &qn_op_Shape, *rows));
    QN_TRY(qn_caffe_slice(&count, net, count, 0, 0, 1));
    QN_TRY(qn_graph_build_ints(&number, &net->builder, &one, 1));
    QN_TRY(qn_caffe_op2(&count, net, &qn_op_Max, count, number));
    QN_TRY(qn_graph_build_reals(&parts[1], &net->builder, none, 7));
    QN_TRY(qn_caffe_reshape(&parts[1], net, parts[1], 2, wide));
    QN_TRY(qn_caffe_concat(rows, net, parts, 2, 0));
    QN_TRY(column(&scores, net, *rows, 2));
    return best_of(rows, net, scores, count);
}

/* The rows of a picture with the best scores, and rows of zeros behind them: [keep_top_k, 7]
 * whatever is found. */
static qn_status keep_best(qn_value **rows, qn_caffe_net *net, const detection *d)
{
    const int64_t dims[] = {d->keep, 7};
    qn_value *parts[2] = {*rows}, *scores[2], *count;
    QN_TRY(column(&scores[0], net, *rows, 2));
    QN_TRY(constant(&scores[1], net, 1, dims, -FLT_MAX));
    QN_TRY(constant(&parts[1], net, 2, dims, 0));
    QN_TRY(qn_caffe_concat(rows, net, parts, 2, 0));
    QN_TRY(qn_caffe_concat(&scores[0], net, scores, 2, 0));
    QN_TRY(qn_graph_build_ints(&count, &net->builder, &d->keep, 1));
    return best_of(rows, net, scores[0], count);
}

static qn_status detect_picture(qn_value **out, qn_caffe_net *net, const detection *d,
                                int64_t picture, qn_value *const in[2])
{
    qn_arena *arena = &net->builder.model->arena;
    float *labels = qn_arena_array(arena, (size_t)d->classes, sizeof *labels);
    int64_t *classes = qn_arena_array(arena, (size_t)d->classes, sizeof *classes), count = 0;
    qn_value **rows = qn_arena_array(arena, (size_t)d->classes, sizeof(qn_value *));
    QN_TRY_ALLOC(net->ctx, labels);
    QN_TRY_ALLOC(net->ctx, classes);
    QN_TRY_ALLOC(net->ctx, rows);
    for (int64_t c = 0; c < d->classes; c++) {
        if (c == d->background)
            continue;
        labels[count] = (float)c;
        classes[count++] = c;
    }
    if (count == 0)
        return QN_CAFFE_FAIL(net, "there is no class but the background");
    const int64_t groups = d->is_shared ? 1 : count;
    for (int64_t i = 0; i < groups; i++) {
        const group g = {picture, d->is_shared ? 0 : classes[i], labels + i, classes + i,
                         d->is_shared ? count : 1};
        QN_TRY(detect_group(&rows[i], net, d, &g, in));
    }
    *out = rows[0];
    if (groups > 1)
        QN_TRY(qn_caffe_concat(out, net, rows, (size_t)groups, 0));
    return d->keep < 1 ? keep_all(out, net, picture) : keep_best(out, net, d);
}

/* Pictures without a detection have a row only where none has one. */
static qn_status drop_empty(qn_value **rows, qn_caffe_net *net)
{
    const int64_t range[2] = {0, 1};
    qn_value *is_found, *any, *none;
    QN_TRY(column(&is_found, net, *rows, 1));
    QN_TRY(qn_caffe_reduce(&any, net, &qn_op_ReduceMax, is_found, range, true));
    QN_TRY(qn_caffe_op_real(&none, net, &qn_op_Less, any, 0));
    QN_TRY(qn_caffe_op_real(&is_found, net, &qn_op_GreaterOrEqual, is_found, 0));
    QN_TRY(qn_caffe_op2(&is_found, net, &qn_op_Or, is_found, none));
    return qn_graph_build(rows, &net->builder, &qn_op_Compress, QN_INPUTS(*rows, is_found),
                          QN_WITH(QN_A_INT("axis", 0)));
}

/* The rows of zeros of all pictures go to the end: a place there is larger by the number of
 * rows. */
static qn_status move_empty(qn_value **rows, qn_caffe_net *net, int64_t count)
{
    qn_arena *arena = &net->builder.model->arena;
    int64_t *places = qn_arena_array(arena, (size_t)count, 2 * sizeof *places);
    qn_value *is_found, *here, *there, *number, *order[2];
    QN_TRY_ALLOC(net->ctx, places);
    for (int64_t i = 0; i < count; i++) {
        places[i] = i;
        places[count + i] = count + i;
    }
    QN_TRY(qn_graph_build_ints(&here, &net->builder, places, (size_t)count));
    QN_TRY(qn_graph_build_ints(&there, &net->builder, places + count, (size_t)count));
    QN_TRY(column(&is_found, net, *rows, 2));
    QN_TRY(qn_caffe_op_real(&is_found, net, &qn_op_Greater, is_found, 0));
    QN_TRY(qn_graph_build(&here, &net->builder, &qn_op_Where, QN_INPUTS(is_found, here, there),
                          QN_PLAIN));
    QN_TRY(qn_graph_build_ints(&number, &net->builder, &count, 1));
    QN_TRY(qn_graph_build_several(order, 2, &net->builder, &qn_op_TopK, QN_INPUTS(here, number),
                                  QN_WITH(QN_A_INT("largest", 0))));
    return qn_caffe_op2(rows, net, &qn_op_Gather, *rows, order[1]);
}

static qn_status join(qn_value **out, qn_caffe_net *net, const detection *d, qn_value *const *rows)
{
    *out = rows[0];
    if (d->batch == 1)
        return QN_OK;
    QN_TRY(qn_caffe_concat(out, net, rows, (size_t)d->batch, 0));
    return d->keep < 1 ? drop_empty(out, net) : move_empty(out, net, d->batch * d->keep);
}

static qn_status read_bottoms(qn_value *in[2], qn_caffe_net *net, const qn_caffe_layer *layer,
                              detection *d)
{
    const int64_t perm[] = {0, 2, 1};
    int64_t n_loc, n_scores;
    qn_value *loc, *scores, *priors;
    QN_TRY(qn_caffe_in(&loc, net, layer, 0));
    QN_TRY(qn_caffe_in(&scores, net, layer, 1));
    QN_TRY(qn_caffe_in(&priors, net, layer, 2));
    QN_TRY(qn_caffe_check(net, "the rank of the priors", priors->type.rank, 3, 3));
    QN_TRY(qn_caffe_check(net, "axis 1 of the priors", qn_caffe_dim(priors, 1), 2, 2));
    QN_TRY(qn_caffe_count(&d->boxes, net, priors, 2, 3));
    QN_TRY(qn_caffe_count(&d->batch, net, loc, 0, 1));
    QN_TRY(qn_caffe_check(net, "the number of pictures", d->batch, 1, 256));
    QN_TRY(qn_caffe_count(&n_loc, net, loc, 1, loc->type.rank));
    QN_TRY(qn_caffe_count(&n_scores, net, scores, 1, scores->type.rank));
    QN_TRY(qn_caffe_check(net, "keep_top_k of all pictures", d->batch * QN_MAX(d->keep, INT64_C(1)),
                          1, 1 << 20));
    if (!d->is_shared)
        QN_TRY(
            qn_caffe_check(net, "num_classes of all pictures", d->batch * d->classes, 1, 1 << 12));
    d->boxes /= 4;
    if (n_loc != 4 * d->boxes * (d->is_shared ? 1 : d->classes) ||
        n_scores != d->boxes * d->classes)
        return QN_CAFFE_FAIL(net, "%lld offsets and %lld scores for %lld boxes", (long long)n_loc,
                             (long long)n_scores, (long long)d->boxes);
    const int64_t dims[] = {d->batch, d->boxes, d->classes};
    QN_TRY(qn_caffe_reshape(&scores, net, scores, 3, dims));
    QN_TRY(qn_caffe_transpose(&in[1], net, scores, perm));
    return decode(&in[0], net, d, loc, priors);
}

qn_status qn_caffe_detection_output(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    detection d = {.classes = 0};
    qn_value *in[2], *y;
    QN_TRY(read_parameters(&d, net, layer));
    QN_TRY(read_bottoms(in, net, layer, &d));
    qn_value **rows =
        qn_arena_array(&net->builder.model->arena, (size_t)d.batch, sizeof(qn_value *));
    QN_TRY_ALLOC(net->ctx, rows);
    for (int64_t i = 0; i < d.batch; i++)
        QN_TRY(detect_picture(&rows[i], net, &d, i, in));
    QN_TRY(join(&y, net, &d, rows));
    const int64_t dims[] = {1, 1, d.keep < 1 ? -1 : d.batch * d.keep, 7};
    QN_TRY(qn_caffe_reshape(&y, net, y, 4, dims));
    return qn_caffe_out(net, layer, 0, y);
}
