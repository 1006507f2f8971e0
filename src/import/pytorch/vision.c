/* Operators of torchvision: suppression of boxes, regions of maps, deformable convolution. */
#include "import/pytorch/aten.h"

/* ONNX wants boxes [1, N, 4] and scores [1, 1, N], and gives rows of batch, class and box. */
qn_status qn_aten_nms(qn_aten_call *c)
{
    static const int64_t all = INT32_MAX, last = 2;
    qn_value *boxes, *scores, *most, *overlap, *rows, *at;
    double threshold;
    QN_TRY(qn_aten_tensor(&boxes, c, "dets"));
    QN_TRY(qn_aten_tensor(&scores, c, "scores"));
    QN_TRY(qn_aten_real(&threshold, c, "iou_threshold"));
    QN_TRY(qn_aten_unsqueeze(&boxes, c, boxes, 0));
    QN_TRY(qn_aten_unsqueeze(&scores, c, scores, 0));
    QN_TRY(qn_aten_unsqueeze(&scores, c, scores, 0));
    QN_TRY(qn_graph_build_ints(&most, c->b, &all, 1));
    QN_TRY(qn_graph_build_real(&overlap, c->b, (float)threshold));
    QN_TRY(qn_graph_build(&rows, c->b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, most, overlap), QN_PLAIN));
    QN_TRY(qn_torch_number(&at, c->t, QN_INT64, 0, last));
    QN_TRY(qn_graph_build(&rows, c->b, &qn_op_Gather, QN_INPUTS(rows, at),
                          QN_WITH(QN_A_INT("axis", 1))));
    return qn_aten_return(c, rows);
}

/* Rows of the image's number and four corners. */
qn_status qn_aten_roi_align(qn_aten_call *c)
{
    qn_value *x, *rois, *boxes, *images, *y;
    int64_t height, width, samples;
    double scale;
    QN_TRY(qn_aten_tensor(&x, c, "input"));
    QN_TRY(qn_aten_tensor(&rois, c, "rois"));
    QN_TRY(qn_aten_real(&scale, c, "spatial_scale"));
    QN_TRY(qn_aten_int(&height, c, "pooled_height"));
    QN_TRY(qn_aten_int(&width, c, "pooled_width"));
    QN_TRY(qn_aten_int(&samples, c, "sampling_ratio"));
    QN_TRY(qn_aten_slice(&boxes, c, rois, 1, 1, 5));
    QN_TRY(qn_aten_slice(&images, c, rois, 1, 0, 1));
    QN_TRY(qn_aten_squeeze(&images, c, images, 1));
    QN_TRY(qn_aten_cast(&images, c, images, QN_INT64));
    const char *way = qn_aten_flag(c, "aligned") ? "half_pixel" : "output_half_pixel";
    QN_TRY(
        qn_graph_build(&y, c->b, &qn_op_RoiAlign, QN_INPUTS(x, boxes, images),
                       QN_WITH(QN_A_INT("output_height", height), QN_A_INT("output_width", width),
                               QN_A_INT("sampling_ratio", QN_MAX(samples, INT64_C(0))),
                               QN_A_REAL("spatial_scale", (float)scale),
                               QN_A_TEXT("coordinate_transformation_mode", way))));
    return qn_aten_return(c, y);
}

qn_status qn_aten_roi_pool(qn_aten_call *c)
{
    qn_value *x, *rois, *results[2] = {NULL, NULL};
    int64_t size[2];
    double scale;
    QN_TRY(qn_aten_tensor(&x, c, "input"));
    QN_TRY(qn_aten_tensor(&rois, c, "rois"));
    QN_TRY(qn_aten_real(&scale, c, "spatial_scale"));
    QN_TRY(qn_aten_int(&size[0], c, "pooled_height"));
    QN_TRY(qn_aten_int(&size[1], c, "pooled_width"));
    QN_TRY(qn_graph_build(
        &results[0], c->b, &qn_op_MaxRoiPool, QN_INPUTS(x, rois),
        QN_WITH(QN_A_INT_LIST("pooled_shape", size, 2), QN_A_REAL("spatial_scale", (float)scale))));
    return qn_aten_return_tuple(c, results, 2);
}

/* Two arguments of the names that end in "_h" and "_w". */
static qn_status read_pair(int64_t *out, qn_aten_call *c, const char *high, const char *wide)
{
    QN_TRY(qn_aten_int(&out[0], c, high));
    return qn_aten_int(&out[1], c, wide);
}

qn_status qn_aten_deform_conv(qn_aten_call *c)
{
    qn_value *inputs[5] = {NULL}, *y;
    int64_t strides[2], pads[4], dilations[2], groups, offset_groups;
    QN_TRY(qn_aten_tensor(&inputs[0], c, "input"));
    QN_TRY(qn_aten_tensor(&inputs[1], c, "weight"));
    QN_TRY(qn_aten_tensor(&inputs[2], c, "offset"));
    QN_TRY(qn_aten_optional(&inputs[3], c, "bias"));
    if (qn_aten_flag(c, "use_mask"))
        QN_TRY(qn_aten_tensor(&inputs[4], c, "mask"));
    QN_TRY(read_pair(strides, c, "stride_h", "stride_w"));
    QN_TRY(read_pair(pads, c, "pad_h", "pad_w"));
    QN_TRY(read_pair(dilations, c, "dilation_h", "dilation_w"));
    QN_TRY(qn_aten_int(&groups, c, "groups"));
    QN_TRY(qn_aten_int(&offset_groups, c, "offset_groups"));
    pads[2] = pads[0];
    pads[3] = pads[1];
    QN_TRY(qn_graph_build(
        &y, c->b, &qn_op_DeformConv, (qn_graph_build_inputs){inputs, inputs[4] ? 5 : 4},
        QN_WITH(QN_A_INT_LIST("strides", strides, 2), QN_A_INT_LIST("pads", pads, 4),
                QN_A_INT_LIST("dilations", dilations, 2), QN_A_INT("group", groups),
                QN_A_INT("offset_group", offset_groups))));
    return qn_aten_return(c, y);
}
