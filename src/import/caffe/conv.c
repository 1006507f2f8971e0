/* Layers that multiply with weights: Convolution, Deconvolution, InnerProduct, Embed. */
#include <string.h>

#include "import/caffe/window.h"

/* ---- Convolution and Deconvolution ----------------------------------------------------------- */

typedef struct convolution {
    qn_caffe_window window;
    int64_t outputs, group;
    bool has_bias, is_transposed;
    qn_value *weights, *bias;
} convolution;

/* The types that convolve each channel with its own kernel say nothing of groups. */
static bool is_depthwise(const qn_caffe_layer *layer)
{
    return strcmp(layer->type, "ConvolutionDepthwise") == 0 ||
           strcmp(layer->type, "DepthwiseConvolution") == 0;
}

static qn_status read_convolution(convolution *c, qn_caffe_net *net, const qn_caffe_layer *layer,
                                  const qn_value *x)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_CONVOLUTION);
    int64_t axis = qn_proto_int(param, QN_CAFFE_CONVOLUTION_AXIS, 1);
    QN_TRY(qn_caffe_axis(&axis, net, x->type.rank));
    if (axis != 1 || x->type.rank < 3)
        return QN_CAFFE_REFUSE(net, "channels are to be axis 1, with at least one axis behind");
    QN_TRY(qn_caffe_read_window(&c->window, net, param, &qn_caffe_convolution_fields,
                                x->type.rank - 2));
    for (int32_t i = 0; i < c->window.count; i++)
        QN_TRY(qn_caffe_check(net, "kernel_size", c->window.kernel[i], 1, QN_CAFFE_MOST));
    const int64_t channels = qn_caffe_dim(x, 1);
    c->outputs = qn_proto_int(param, QN_CAFFE_CONVOLUTION_NUM_OUTPUT, 0);
    c->group = qn_proto_int(param, QN_CAFFE_CONVOLUTION_GROUP, is_depthwise(layer) ? channels : 1);
    c->has_bias = qn_proto_int(param, QN_CAFFE_CONVOLUTION_BIAS_TERM, 1) != 0;
    QN_TRY(qn_caffe_check(net, "the number of channels", channels, 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "num_output", c->outputs, 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "group", c->group, 1, QN_MIN(channels, c->outputs)));
    if (channels % c->group || c->outputs % c->group)
        return QN_CAFFE_FAIL(net, "%lld groups of %lld channels and %lld outputs",
                             (long long)c->group, (long long)channels, (long long)c->outputs);
    return QN_OK;
}

static qn_status read_weights(convolution *c, qn_caffe_net *net, const qn_caffe_layer *layer,
                              const qn_value *x)
{
    int64_t dims[QN_MAX_RANK];
    const int64_t channels = qn_caffe_dim(x, 1);
    dims[0] = c->is_transposed ? channels : c->outputs;
    dims[1] = (c->is_transposed ? c->outputs : channels) / c->group;
    for (int32_t i = 0; i < c->window.count; i++)
        dims[2 + i] = c->window.kernel[i];
    QN_TRY(qn_caffe_constant(&c->weights, net, layer, 0, c->window.count + 2, dims));
    return c->has_bias ? qn_caffe_constant(&c->bias, net, layer, 1, 1, &c->outputs) : QN_OK;
}

static qn_status convolve(qn_caffe_net *net, const qn_caffe_layer *layer, bool is_transposed)
{
    convolution c = {.is_transposed = is_transposed};
    int64_t pads[2 * QN_MAX_RANK];
    qn_value *x, *y;
    for (size_t i = 0; i < QN_MAX(layer->bottoms.count, (size_t)1); i++) {
        QN_TRY(qn_caffe_in(&x, net, layer, i));
        QN_TRY(read_convolution(&c, net, layer, x));
        if (i == 0)
            QN_TRY(read_weights(&c, net, layer, x));
        const qn_caffe_window *w = &c.window;
        const size_t n = (size_t)w->count;
        for (size_t k = 0; k < n; k++)
            pads[k] = pads[n + k] = w->pad[k];
        QN_TRY(qn_graph_build(
            &y, &net->builder, is_transposed ? &qn_op_ConvTranspose : &qn_op_Conv,
            (qn_graph_build_inputs){(qn_value *[]){x, c.weights, c.bias}, c.has_bias ? 3 : 2},
            QN_WITH(QN_A_INT_LIST("kernel_shape", w->kernel, n),
                    QN_A_INT_LIST("strides", w->stride, n), QN_A_INT_LIST("pads", pads, 2 * n),
                    QN_A_INT_LIST("dilations", w->dilation, n), QN_A_INT("group", c.group))));
        QN_TRY(qn_caffe_out(net, layer, i, y));
    }
    return QN_OK;
}

qn_status qn_caffe_convolution(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    return convolve(net, layer, false);
}

qn_status qn_caffe_deconvolution(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    return convolve(net, layer, true);
}

/* A convolution of each channel with as many kernels as a window has places: each takes one. */
qn_status qn_caffe_im2col(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_CONVOLUTION);
    qn_caffe_window w;
    int64_t pads[4], places;
    qn_tensor *kernels;
    qn_value *x, *weights;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_check(net, "the rank of its bottom", x->type.rank, 4, 4));
    QN_TRY(qn_caffe_read_window(&w, net, param, &qn_caffe_convolution_fields, 2));
    for (int32_t i = 0; i < 2; i++) {
        QN_TRY(qn_caffe_check(net, "kernel_size", w.kernel[i], 1, 64));
        pads[i] = pads[2 + i] = w.pad[i];
    }
    QN_TRY(qn_caffe_count(&places, net, x, 1, 2));
    QN_TRY(qn_caffe_check(net, "the number of channels", places, 1, 1 << 12));
    const int64_t channels = places, size = w.kernel[0] * w.kernel[1];
    const int64_t dims[] = {channels * size, 1, w.kernel[0], w.kernel[1]};
    QN_TRY(qn_caffe_check(net, "the size of its windows", channels * size * size, 1, 1 << 24));
    const qn_type type = qn_type_tensor(QN_FLOAT32, 4, dims);
    QN_TRY(qn_model_tensor(&kernels, net->builder.model, &type));
    for (int64_t i = 0; i < dims[0] * size; i++)
        ((float *)kernels->data)[i] = i / size % size == i % size;
    QN_TRY(qn_value_constant(&weights, net->builder.graph, NULL, kernels));
    QN_TRY(qn_graph_build(
        &x, &net->builder, &qn_op_Conv, QN_INPUTS(x, weights),
        QN_WITH(QN_A_INT_LIST("kernel_shape", w.kernel, 2), QN_A_INT_LIST("strides", w.stride, 2),
                QN_A_INT_LIST("pads", pads, 4), QN_A_INT_LIST("dilations", w.dilation, 2),
                QN_A_INT("group", channels))));
    return qn_caffe_out(net, layer, 0, x);
}

/* ---- InnerProduct ---------------------------------------------------------------------------- */

/* The axes before `axis` are kept: [batch..., inputs] * weights. */
static qn_status unflatten(qn_value **y, qn_caffe_net *net, const qn_value *x, int64_t axis)
{
    int64_t dims[QN_MAX_RANK];
    if (axis == 1)
        return QN_OK;
    for (int64_t i = 0; i < axis; i++) {
        dims[i] = qn_caffe_dim(x, i);
        if (dims[i] < 0)
            return QN_CAFFE_REFUSE(net, "axis %lld depends on the data", (long long)i);
    }
    dims[axis] = qn_caffe_dim(*y, 1);
    return qn_caffe_reshape(y, net, *y, (int32_t)axis + 1, dims);
}

qn_status qn_caffe_inner_product(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_INNER_PRODUCT);
    const int64_t outputs = qn_proto_int(param, QN_CAFFE_INNER_PRODUCT_NUM_OUTPUT, 0);
    const bool is_transposed = qn_proto_int(param, QN_CAFFE_INNER_PRODUCT_TRANSPOSE, 0) != 0;
    const bool has_bias = qn_proto_int(param, QN_CAFFE_INNER_PRODUCT_BIAS_TERM, 1) != 0;
    int64_t axis = qn_proto_int(param, QN_CAFFE_INNER_PRODUCT_AXIS, 1), inputs;
    qn_value *x, *y, *weights, *bias = NULL;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_axis(&axis, net, x->type.rank));
    QN_TRY(qn_caffe_check(net, "num_output", outputs, 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_count(&inputs, net, x, axis, x->type.rank));
    const int64_t dims[] = {is_transposed ? inputs : outputs, is_transposed ? outputs : inputs};
    QN_TRY(qn_caffe_constant(&weights, net, layer, 0, 2, dims));
    if (has_bias)
        QN_TRY(qn_caffe_constant(&bias, net, layer, 1, 1, &outputs));
    y = x;
    if (x->type.rank != 2 || axis != 1)
        QN_TRY(qn_graph_build(&y, &net->builder, &qn_op_Flatten, QN_INPUTS(x),
                              QN_WITH(QN_A_INT("axis", axis))));
    QN_TRY(
        qn_graph_build(&y, &net->builder, &qn_op_Gemm,
                       (qn_graph_build_inputs){(qn_value *[]){y, weights, bias}, has_bias ? 3 : 2},
                       QN_WITH(QN_A_INT("transB", !is_transposed))));
    QN_TRY(unflatten(&y, net, x, axis));
    return qn_caffe_out(net, layer, 0, y);
}

/* The layer's blob is its top. */
qn_status qn_caffe_parameter(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *shape = qn_proto_get_message(
        qn_caffe_param(layer, QN_CAFFE_LAYER_PARAMETER), QN_CAFFE_RESHAPE_SHAPE);
    qn_proto_numbers list = qn_proto_numbers_of(shape, QN_CAFFE_SHAPE_DIM);
    int64_t dims[QN_MAX_RANK];
    int32_t rank = 0;
    qn_value *y;
    QN_TRY(qn_caffe_check(net, "the number of axes",
                          (int64_t)qn_proto_count(shape, QN_CAFFE_SHAPE_DIM), 0, QN_MAX_RANK));
    while (rank < QN_MAX_RANK && qn_proto_next_int(&dims[rank], &list))
        QN_TRY(qn_caffe_check(net, "a dim", dims[rank++], 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_constant(&y, net, layer, 0, rank, dims));
    return qn_caffe_out(net, layer, 0, y);
}

/* ---- Embed ----------------------------------------------------------------------------------- */

qn_status qn_caffe_embed(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_EMBED);
    const int64_t dims[] = {qn_proto_int(param, QN_CAFFE_EMBED_INPUT_DIM, 0),
                            qn_proto_int(param, QN_CAFFE_EMBED_NUM_OUTPUT, 0)};
    qn_value *x, *weights, *bias;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_check(net, "input_dim", dims[0], 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "num_output", dims[1], 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_constant(&weights, net, layer, 0, 2, dims));
    QN_TRY(qn_caffe_cast(&x, net, x, QN_INT64));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Gather, weights, x));
    if (qn_proto_int(param, QN_CAFFE_EMBED_BIAS_TERM, 1)) {
        QN_TRY(qn_caffe_constant(&bias, net, layer, 1, 1, &dims[1]));
        QN_TRY(qn_caffe_op2(&x, net, &qn_op_Add, x, bias));
    }
    return qn_caffe_out(net, layer, 0, x);
}
