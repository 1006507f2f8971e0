/* Layers that change the size of pictures: Interp, Upsample. */
#include "import/caffe/caffe.h"

static qn_status resize(qn_value **out, qn_caffe_net *net, qn_value *x, int64_t height,
                        int64_t width, bool is_linear)
{
    const int64_t dims[] = {qn_caffe_dim(x, 0), qn_caffe_dim(x, 1), height, width};
    qn_value *sizes;
    QN_TRY(qn_caffe_check(net, "the height", height, 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "the width", width, 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "the number of pictures", dims[0], 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "the number of channels", dims[1], 1, QN_CAFFE_MOST));
    QN_TRY(qn_graph_build_ints(&sizes, &net->builder, dims, 4));
    return qn_graph_build(
        out, &net->builder, &qn_op_Resize, QN_INPUTS(x, NULL, NULL, sizes),
        QN_WITH(
            QN_A_TEXT("mode", is_linear ? "linear" : "nearest"),
            QN_A_TEXT("coordinate_transformation_mode", is_linear ? "align_corners" : "asymmetric"),
            QN_A_TEXT("nearest_mode", is_linear ? "round_prefer_floor" : "floor")));
}

static qn_status read_picture(qn_value **x, qn_caffe_net *net, const qn_caffe_layer *layer)
{
    int64_t count;
    QN_TRY(qn_caffe_in(x, net, layer, 0));
    if ((*x)->type.rank != 4)
        return QN_CAFFE_REFUSE(net, "a blob of rank %d is no picture", (*x)->type.rank);
    return qn_caffe_count(&count, net, *x, 2, 4);
}

/* Bilinear between the corners. Negative paddings cut the picture first; then it shrinks, grows, or
 * gets a size of its own or that of the second bottom. */
qn_status qn_caffe_interp(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    static const uint32_t fields[] = {QN_CAFFE_INTERP_HEIGHT, QN_CAFFE_INTERP_WIDTH};
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_INTERP);
    const int64_t begin = -qn_proto_int(param, QN_CAFFE_INTERP_PAD_BEG, 0);
    const int64_t end = -qn_proto_int(param, QN_CAFFE_INTERP_PAD_END, 0);
    const int64_t zoom = qn_proto_int(param, QN_CAFFE_INTERP_ZOOM_FACTOR, 1);
    const int64_t shrink = qn_proto_int(param, QN_CAFFE_INTERP_SHRINK_FACTOR, 1);
    int64_t sizes[2];
    qn_value *x, *like = NULL;
    QN_TRY(read_picture(&x, net, layer));
    QN_TRY(qn_caffe_check(net, "zoom_factor", zoom, 1, 1 << 16));
    QN_TRY(qn_caffe_check(net, "shrink_factor", shrink, 1, QN_CAFFE_MOST));
    if (layer->bottoms.count > 1) {
        QN_TRY(qn_caffe_in(&like, net, layer, 1));
        QN_TRY(qn_caffe_check(net, "the rank of the second bottom", like->type.rank, 4, 4));
    }
    for (int64_t i = 0; i < 2; i++) {
        const int64_t size = qn_caffe_dim(x, 2 + i);
        QN_TRY(qn_caffe_check(net, "-pad_beg", begin, 0, size - 1));
        QN_TRY(qn_caffe_check(net, "-pad_end", end, 0, size - 1 - begin));
        if (begin || end)
            QN_TRY(qn_caffe_slice(&x, net, x, 2 + i, begin, size - end));
        sizes[i] = (size - begin - end - 1) / shrink + 1;
        sizes[i] += (sizes[i] - 1) * (zoom - 1);
        if (qn_proto_int(param, fields[i], 0))
            sizes[i] = qn_proto_int(param, fields[i], 0);
        if (like)
            sizes[i] = qn_caffe_dim(like, 2 + i);
    }
    QN_TRY(resize(&x, net, x, sizes[0], sizes[1], true));
    return qn_caffe_out(net, layer, 0, x);
}

/* SegNet: each number goes to the place that the second bottom has for it, within its channel. */
static qn_status unpool(qn_caffe_net *net, const qn_caffe_layer *layer, qn_value *x,
                        const int64_t sizes[2])
{
    const int64_t start[] = {qn_caffe_dim(x, 0), qn_caffe_dim(x, 1), 1, 1};
    /* With a stride of 1 the window says how large the top is. */
    const int64_t kernel[] = {sizes[0] - qn_caffe_dim(x, 2) + 1, sizes[1] - qn_caffe_dim(x, 3) + 1};
    const qn_type type = qn_type_tensor(QN_INT64, 4, start);
    qn_tensor *starts;
    qn_value *places, *shape;
    int64_t planes, all;
    QN_TRY(qn_caffe_in(&places, net, layer, 1));
    QN_TRY(qn_caffe_check(net, "the height", sizes[0], qn_caffe_dim(x, 2), QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "the width", sizes[1], qn_caffe_dim(x, 3), QN_CAFFE_MOST));
    QN_TRY(qn_caffe_count(&planes, net, x, 0, 2));
    if (!qn_mul_int64(&all, planes, sizes[0] * sizes[1]) || all > INT64_C(1) << 40 ||
        planes > 1 << 24)
        return QN_CAFFE_FAIL(net, "its top has too many elements");
    QN_TRY(qn_model_tensor(&starts, net->builder.model, &type));
    for (int64_t i = 0; i < planes; i++)
        ((int64_t *)starts->data)[i] = i * sizes[0] * sizes[1];
    QN_TRY(qn_value_constant(&shape, net->builder.graph, NULL, starts));
    QN_TRY(qn_caffe_cast(&places, net, places, QN_INT64));
    QN_TRY(qn_caffe_op2(&places, net, &qn_op_Add, places, shape));
    QN_TRY(qn_graph_build(&x, &net->builder, &qn_op_MaxUnpool, QN_INPUTS(x, places),
                          QN_WITH(QN_A_INT_LIST("kernel_shape", kernel, 2))));
    return qn_caffe_out(net, layer, 0, x);
}

/* Each number becomes a block of equal ones. */
qn_status qn_caffe_upsample(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    static const uint32_t scales[] = {QN_CAFFE_UPSAMPLE_SCALE_H, QN_CAFFE_UPSAMPLE_SCALE_W};
    static const uint32_t fields[] = {QN_CAFFE_UPSAMPLE_H, QN_CAFFE_UPSAMPLE_W};
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_UPSAMPLE);
    const int64_t both = qn_proto_int(param, QN_CAFFE_UPSAMPLE_SCALE, 2);
    int64_t sizes[2];
    qn_value *x;
    QN_TRY(read_picture(&x, net, layer));
    for (int64_t i = 0; i < 2; i++) {
        const int64_t scale = qn_proto_int(param, scales[i], both);
        QN_TRY(qn_caffe_check(net, "scale", scale, 1, 1 << 16));
        sizes[i] = qn_proto_int(param, fields[i], qn_caffe_dim(x, 2 + i) * scale);
    }
    if (layer->bottoms.count > 1)
        return unpool(net, layer, x, sizes);
    QN_TRY(resize(&x, net, x, sizes[0], sizes[1], false));
    return qn_caffe_out(net, layer, 0, x);
}
