/* Layers of Faster R-CNN: Proposal, in C++ or as Python's layer, and ROIPooling. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/caffe/caffe.h"

/* ---- Proposal -------------------------------------------------------------------------------- */

enum { MOST_ANCHORS = 256, MOST_BOXES = 1 << 22 };

typedef struct proposal {
    int64_t stride, base, before, after;
    double smallest, overlap;
    double ratios[MOST_ANCHORS], scales[MOST_ANCHORS];
    size_t n_ratios, n_scales;
    int64_t height, width, anchors, boxes;
} proposal;

static qn_status read_reals(double *out, size_t *count, qn_caffe_net *net,
                            const qn_proto_message *param, uint32_t number)
{
    qn_proto_numbers list = qn_proto_numbers_of(param, number);
    const size_t given = qn_proto_count(param, number);
    if (given > MOST_ANCHORS)
        return QN_CAFFE_FAIL(net, "%zu ratios or scales", given);
    if (given)
        *count = 0;
    while (*count < MOST_ANCHORS && qn_proto_next_real(&out[*count], &list)) {
        if (!(out[(*count)++] > 0))
            return QN_CAFFE_FAIL(net, "a ratio or scale that is not positive");
    }
    return QN_OK;
}

/* Python's layer has its parameters in a text: "'feat_stride': 16". */
static int64_t stride_of(const qn_caffe_layer *layer)
{
    static const char key[] = "feat_stride";
    const qn_string text =
        qn_proto_string(qn_caffe_param(layer, QN_CAFFE_LAYER_PYTHON), QN_CAFFE_PYTHON_STRING);
    int64_t stride = 0;
    for (size_t i = 0; i + strlen(key) < text.length; i++) {
        if (memcmp(text.text + i, key, strlen(key)) != 0)
            continue;
        for (i += strlen(key); i < text.length && stride < 1 << 16; i++) {
            const char c = text.text[i];
            if (c >= '0' && c <= '9')
                stride = 10 * stride + (c - '0');
            else if (stride)
                break;
        }
        return stride;
    }
    return 16;
}

static qn_status read_proposal(proposal *p, qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_PROPOSAL);
    *p = (proposal){.ratios = {0.5, 1, 2}, .scales = {8, 16, 32}, .n_ratios = 3, .n_scales = 3};
    p->stride = qn_proto_int(param, QN_CAFFE_PROPOSAL_FEAT_STRIDE, stride_of(layer));
    p->base = qn_proto_int(param, QN_CAFFE_PROPOSAL_BASE_SIZE, 16);
    p->smallest = (double)qn_proto_int(param, QN_CAFFE_PROPOSAL_MIN_SIZE, 16);
    p->before = qn_proto_int(param, QN_CAFFE_PROPOSAL_PRE_NMS, 6000);
    p->after = qn_proto_int(param, QN_CAFFE_PROPOSAL_POST_NMS, 300);
    p->overlap = qn_proto_real(param, QN_CAFFE_PROPOSAL_NMS_THRESH, 0.7F);
    QN_TRY(read_reals(p->ratios, &p->n_ratios, net, param, QN_CAFFE_PROPOSAL_RATIO));
    QN_TRY(read_reals(p->scales, &p->n_scales, net, param, QN_CAFFE_PROPOSAL_SCALE));
    p->anchors = (int64_t)(p->n_ratios * p->n_scales);
    QN_TRY(qn_caffe_check(net, "feat_stride", p->stride, 1, 1 << 16));
    QN_TRY(qn_caffe_check(net, "base_size", p->base, 1, 1 << 16));
    QN_TRY(qn_caffe_check(net, "pre_nms_topn", p->before, 1, MOST_BOXES));
    return qn_caffe_check(net, "post_nms_topn", p->after, 1, MOST_BOXES);
}

/* The middles and sizes of all anchors, [boxes, 2] each: at each place, for each ratio, each scale.
 * Sizes of a ratio are rounded before they are scaled. */
static qn_status make_anchors(qn_value *out[2], qn_caffe_net *net, const proposal *p)
{
    const int64_t dims[] = {p->boxes, 2};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 2, dims);
    qn_tensor *middles, *sizes;
    QN_TRY(qn_model_tensor(&middles, net->builder.model, &type));
    QN_TRY(qn_model_tensor(&sizes, net->builder.model, &type));
    for (int64_t i = 0; i < p->boxes; i++) {
        const int64_t place = i / p->anchors, k = i % p->anchors;
        const double ratio = p->ratios[(size_t)k / p->n_scales];
        const double scale = p->scales[(size_t)k % p->n_scales];
        const double w = nearbyint(sqrt((double)(p->base * p->base) / ratio));
        const double size[2] = {w * scale, nearbyint(w * ratio) * scale};
        const int64_t at[2] = {place % p->width, place / p->width};
        for (int64_t c = 0; c < 2; c++) {
            /* Pixels are counted: the last one is the size less 1, and the middle half of the size
             * behind the first. */
            const double first = (double)(p->base - 1) / 2 - (size[c] - 1) / 2;
            ((float *)sizes->data)[2 * i + c] = (float)size[c];
            ((float *)middles->data)[2 * i + c] =
                (float)((double)(at[c] * p->stride) + first + size[c] / 2);
        }
    }
    QN_TRY(qn_value_constant(&out[0], net->builder.graph, NULL, middles));
    return qn_value_constant(&out[1], net->builder.graph, NULL, sizes);
}

/* [1, anchors * numbers, height, width] to [boxes, numbers] */
static qn_status by_box(qn_value **out, qn_caffe_net *net, const proposal *p, qn_value *x,
                        int64_t numbers)
{
    const int64_t perm[] = {0, 2, 3, 1}, dims[] = {p->boxes, numbers};
    QN_TRY(qn_caffe_transpose(out, net, x, perm));
    return qn_caffe_reshape(out, net, *out, 2, dims);
}

/* Numbers of im_info (height, width, scale) as [1, count]. */
static qn_status image_numbers(qn_value **out, qn_caffe_net *net, qn_value *info,
                               const int64_t *places, size_t count)
{
    const int64_t flat[] = {-1}, row[] = {1, (int64_t)count};
    qn_value *list;
    QN_TRY(qn_caffe_reshape(out, net, info, 1, flat));
    QN_TRY(qn_graph_build_ints(&list, &net->builder, places, count));
    QN_TRY(qn_caffe_op2(out, net, &qn_op_Gather, *out, list));
    return qn_caffe_reshape(out, net, *out, 2, row);
}

/* The corners of the boxes, moved and stretched anchors within the picture: [boxes, 2] each. */
static qn_status decode(qn_value *out[2], qn_caffe_net *net, const proposal *p,
                        qn_value *const in[2])
{
    const int64_t places[] = {1, 0};
    qn_value *anchors[2], *move, *stretch, *limit, *half;
    QN_TRY(make_anchors(anchors, net, p));
    QN_TRY(qn_caffe_slice(&move, net, in[0], 1, 0, 2));
    QN_TRY(qn_caffe_slice(&stretch, net, in[0], 1, 2, 4));
    QN_TRY(qn_caffe_op2(&move, net, &qn_op_Mul, move, anchors[1]));
    QN_TRY(qn_caffe_op2(&move, net, &qn_op_Add, move, anchors[0]));
    QN_TRY(qn_caffe_op1(&half, net, &qn_op_Exp, stretch));
    QN_TRY(qn_caffe_op2(&half, net, &qn_op_Mul, half, anchors[1]));
    QN_TRY(qn_caffe_op_real(&half, net, &qn_op_Mul, half, 0.5));
    QN_TRY(qn_caffe_op2(&out[0], net, &qn_op_Sub, move, half));
    QN_TRY(qn_caffe_op2(&out[1], net, &qn_op_Add, move, half));
    QN_TRY(image_numbers(&limit, net, in[1], places, 2));
    QN_TRY(qn_caffe_op_real(&limit, net, &qn_op_Sub, limit, 1));
    for (int i = 0; i < 2; i++) {
        QN_TRY(qn_caffe_op_real(&out[i], net, &qn_op_Max, out[i], 0));
        QN_TRY(qn_caffe_op2(&out[i], net, &qn_op_Min, out[i], limit));
    }
    return QN_OK;
}

/* Boxes that are too small lose their scores; [boxes, 1] */
static qn_status mask_small(qn_value **scores, qn_caffe_net *net, const proposal *p,
                            qn_value *const corners[2], qn_value *info)
{
    const int64_t place = 2, range[2] = {1, 2};
    qn_value *size, *least, *is_large, *nothing;
    QN_TRY(qn_caffe_op2(&size, net, &qn_op_Sub, corners[1], corners[0]));
    QN_TRY(qn_caffe_op_real(&size, net, &qn_op_Add, size, 1));
    QN_TRY(qn_caffe_reduce(&size, net, &qn_op_ReduceMin, size, range, true));
    QN_TRY(image_numbers(&least, net, info, &place, 1));
    QN_TRY(qn_caffe_op_real(&least, net, &qn_op_Mul, least, p->smallest));
    QN_TRY(qn_caffe_op2(&is_large, net, &qn_op_GreaterOrEqual, size, least));
    QN_TRY(qn_graph_build_real(&nothing, &net->builder, -1));
    return qn_graph_build(scores, &net->builder, &qn_op_Where,
                          QN_INPUTS(is_large, *scores, nothing), QN_PLAIN);
}

/* The best boxes before the suppression: [count, 4], and their scores. */
static qn_status take_best(qn_value *out[2], qn_caffe_net *net, const proposal *p,
                           qn_value *const corners[2])
{
    const int64_t flat[] = {-1}, count = QN_MIN(p->before, p->boxes);
    qn_value *k, *best[2], *scores;
    QN_TRY(qn_caffe_concat(&out[0], net, corners, 2, 1));
    QN_TRY(qn_caffe_reshape(&scores, net, out[1], 1, flat));
    QN_TRY(qn_graph_build_ints(&k, &net->builder, &count, 1));
    QN_TRY(qn_graph_build_several(best, 2, &net->builder, &qn_op_TopK, QN_INPUTS(scores, k),
                                  QN_PLAIN));
    out[1] = best[0];
    return qn_caffe_op2(&out[0], net, &qn_op_Gather, out[0], best[1]);
}

/* The numbers of the boxes that remain. Pixels are counted, so that a box ends one behind its last
 * corner. */
static qn_status suppress(qn_value **out, qn_caffe_net *net, const proposal *p,
                          qn_value *const in[2])
{
    const float last[] = {0, 0, 1, 1};
    const int64_t one[] = {1, -1, 4}, row[] = {1, 1, -1}, flat[] = {-1};
    qn_value *boxes, *scores, *most, *overlap, *threshold;
    QN_TRY(qn_graph_build_reals(&boxes, &net->builder, last, 4));
    QN_TRY(qn_caffe_op2(&boxes, net, &qn_op_Add, in[0], boxes));
    QN_TRY(qn_caffe_reshape(&boxes, net, boxes, 3, one));
    QN_TRY(qn_caffe_reshape(&scores, net, in[1], 3, row));
    QN_TRY(qn_graph_build_ints(&most, &net->builder, &p->after, 1));
    QN_TRY(qn_graph_build_real(&overlap, &net->builder, (float)p->overlap));
    QN_TRY(qn_graph_build_real(&threshold, &net->builder, -0.5F));
    QN_TRY(qn_graph_build(out, &net->builder, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, most, overlap, threshold), QN_PLAIN));
    QN_TRY(qn_caffe_slice(out, net, *out, 1, 2, 3));
    return qn_caffe_reshape(out, net, *out, 1, flat);
}

static qn_status read_features(proposal *p, qn_value *in[3], qn_caffe_net *net,
                               const qn_caffe_layer *layer)
{
    for (size_t i = 0; i < 3; i++)
        QN_TRY(qn_caffe_in(&in[i], net, layer, i));
    QN_TRY(qn_caffe_check(net, "the rank of the scores", in[0]->type.rank, 4, 4));
    QN_TRY(qn_caffe_check(net, "the rank of the offsets", in[1]->type.rank, 4, 4));
    p->height = qn_caffe_dim(in[0], 2);
    p->width = qn_caffe_dim(in[0], 3);
    QN_TRY(qn_caffe_check(net, "the number of pictures", qn_caffe_dim(in[0], 0), 1, 1));
    QN_TRY(qn_caffe_check(net, "the height", p->height, 1, 1 << 12));
    QN_TRY(qn_caffe_check(net, "the width", p->width, 1, 1 << 12));
    QN_TRY(qn_caffe_check(net, "the channels of the scores", qn_caffe_dim(in[0], 1), 2 * p->anchors,
                          2 * p->anchors));
    QN_TRY(qn_caffe_check(net, "the channels of the offsets", qn_caffe_dim(in[1], 1),
                          4 * p->anchors, 4 * p->anchors));
    p->boxes = p->height * p->width * p->anchors;
    return qn_caffe_check(net, "the number of boxes", p->boxes, 1, MOST_BOXES);
}

/* [boxes, 5]: the picture, which is 0, and the corners; a second top has the scores. */
qn_status qn_caffe_proposal(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const int64_t tall[] = {-1, 1};
    proposal p;
    qn_value *in[3], *corners[2], *best[2], *kept, *rows[2];
    QN_TRY(read_proposal(&p, net, layer));
    QN_TRY(read_features(&p, in, net, layer));
    QN_TRY(by_box(&in[1], net, &p, in[1], 4));
    QN_TRY(decode(corners, net, &p, in + 1));
    QN_TRY(qn_caffe_slice(&best[1], net, in[0], 1, p.anchors, 2 * p.anchors));
    QN_TRY(by_box(&best[1], net, &p, best[1], 1));
    QN_TRY(mask_small(&best[1], net, &p, corners, in[2]));
    QN_TRY(take_best(best, net, &p, corners));
    QN_TRY(suppress(&kept, net, &p, best));
    QN_TRY(qn_caffe_op2(&rows[1], net, &qn_op_Gather, best[0], kept));
    QN_TRY(qn_caffe_op2(&best[1], net, &qn_op_Gather, best[1], kept));
    QN_TRY(qn_caffe_reshape(&best[1], net, best[1], 2, tall));
    QN_TRY(qn_caffe_op_real(&rows[0], net, &qn_op_Mul, best[1], 0));
    QN_TRY(qn_caffe_concat(&rows[0], net, rows, 2, 1));
    QN_TRY(qn_caffe_out(net, layer, 0, rows[0]));
    return qn_caffe_out(net, layer, 1, best[1]);
}

/* ---- ROIPooling ------------------------------------------------------------------------------ */

qn_status qn_caffe_roi_pooling(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_ROI_POOLING);
    const int64_t sizes[] = {qn_proto_int(param, QN_CAFFE_ROI_POOLED_H, 0),
                             qn_proto_int(param, QN_CAFFE_ROI_POOLED_W, 0)};
    const int64_t rows[] = {-1, 5};
    qn_value *x, *boxes;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_in(&boxes, net, layer, 1));
    QN_TRY(qn_caffe_check(net, "pooled_h", sizes[0], 1, 1 << 16));
    QN_TRY(qn_caffe_check(net, "pooled_w", sizes[1], 1, 1 << 16));
    QN_TRY(qn_caffe_check(net, "the rank of its bottom", x->type.rank, 4, 4));
    if (boxes->type.rank != 2)
        QN_TRY(qn_caffe_reshape(&boxes, net, boxes, 2, rows));
    QN_TRY(qn_graph_build(
        &x, &net->builder, &qn_op_MaxRoiPool, QN_INPUTS(x, boxes),
        QN_WITH(QN_A_INT_LIST("pooled_shape", sizes, 2),
                QN_A_REAL("spatial_scale",
                          (float)qn_proto_real(param, QN_CAFFE_ROI_SPATIAL_SCALE, 1)))));
    return qn_caffe_out(net, layer, 0, x);
}
