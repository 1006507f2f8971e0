/* Convolutions, pools and what is added to them. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"
#include "import/tensorflow/window.h"

/* ---- Windows from attributes ----------------------------------------------------------------- */

static bool is_channels_first(const qn_tf_node *node)
{
    return qn_tf_attr_is(node, "data_format", "NCHW") ||
           qn_tf_attr_is(node, "data_format", "NCDHW");
}

/* What brings the node's values into [N, C, spatial...]. */
static qn_axis_order order_of(const qn_tf_node *node)
{
    return is_channels_first(node) ? QN_ORDER_OWN : QN_ORDER_CHANNELS_FIRST;
}

/* An attribute with a number for each axis: those of the spatial ones, the others must be 1. */
static qn_status spatial(int64_t *out, const qn_tf_node *node, const char *name, int32_t count)
{
    int64_t all[QN_TF_SPATIAL + 2];
    size_t n;
    const int32_t first = is_channels_first(node) ? 2 : 1;
    if (!qn_tf_attr_ints(all, &n, node, name, QN_COUNT_OF(all)))
        return QN_OK;
    if (n != (size_t)count + 2)
        return qn_tf_fail(node, QN_E_FORMAT, "%s has %zu numbers", name, n);
    for (int32_t i = 0; i < count + 2; i++) {
        const bool inside = i >= first && i < first + count;
        if (all[i] < 1 || all[i] > INT32_MAX)
            return qn_tf_fail(node, QN_E_FORMAT, "%s has %lld", name, (long long)all[i]);
        if (!inside && all[i] != 1)
            return qn_tf_fail(node, QN_E_UNSUPPORTED, "%s over the batch or the channels", name);
        if (inside)
            out[i - first] = all[i];
    }
    return QN_OK;
}

static qn_status explicit_pads(qn_tf_window *w, const qn_tf_node *node)
{
    int64_t all[2 * (QN_TF_SPATIAL + 2)];
    size_t n;
    const int32_t first = is_channels_first(node) ? 2 : 1;
    if (!qn_tf_attr_ints(all, &n, node, "explicit_paddings", QN_COUNT_OF(all)) ||
        n != 2 * ((size_t)w->spatial + 2))
        return qn_tf_fail(node, QN_E_FORMAT, "explicit_paddings are missing");
    for (int32_t i = 0; i < w->spatial; i++) {
        w->pads[i] = all[2 * (first + i)];
        w->pads[w->spatial + i] = all[2 * (first + i) + 1];
        if (w->pads[i] < 0 || w->pads[w->spatial + i] < 0)
            return qn_tf_fail(node, QN_E_FORMAT, "negative padding");
    }
    return QN_OK;
}

/* What the padding makes of a window whose kernel is known. */
static qn_status pad(qn_tf_window *w, const qn_tf_node *node, const qn_value *x)
{
    if (qn_tf_attr_is(node, "padding", "VALID"))
        return QN_OK;
    if (qn_tf_attr_is(node, "padding", "EXPLICIT"))
        return explicit_pads(w, node);
    if (!qn_tf_attr_is(node, "padding", "SAME"))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "its padding is not known");
    qn_tf_window_same(w, x);
    return QN_OK;
}

static qn_status strides(qn_tf_window *w, const qn_tf_node *node, int32_t count)
{
    *w = qn_tf_window_of(count);
    QN_TRY(spatial(w->stride, node, "strides", count));
    return spatial(w->dilation, node, "dilations", count);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

static bool is_type(const qn_tf_node *node, const char *type)
{
    return node && strcmp(node->type, type) == 0;
}

static qn_status convolve(qn_value **out, const qn_tf_node *node, const qn_tf_window *w,
                          qn_value *x, qn_value *weights)
{
    qn_graph_builder *b = &node->import->builder;
    return is_type(node, "DepthwiseConv2dNative") ? qn_tf_depthwise(out, b, w, x, weights, NULL)
                                                  : qn_tf_conv(out, b, w, x, weights, NULL);
}

static qn_status conv_of(qn_tf_node *node, int32_t count)
{
    qn_value *x, *weights, *y;
    qn_tf_window w;
    const qn_axis_order order = order_of(node);
    QN_TRY(strides(&w, node, count));
    QN_TRY(qn_tf_in_order(&x, node, 0, order));
    QN_TRY(qn_tf_in(&weights, node, 1));
    QN_TRY(qn_tf_window_kernel(&w, &node->import->builder, weights));
    QN_TRY(pad(&w, node, x));
    QN_TRY(convolve(&y, node, &w, x, weights));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_conv2d(qn_tf_node *node)
{
    return conv_of(node, 2);
}

qn_status qn_tf_conv3d(qn_tf_node *node)
{
    return conv_of(node, 3);
}

/* Sizes that a shape names for the spatial axes; -1 where they are not known. */
static qn_status sizes_of(int64_t *out, const qn_tf_node *node, int32_t count)
{
    qn_value *shape;
    const int32_t first = is_channels_first(node) ? 2 : 1;
    QN_TRY(qn_tf_in(&shape, node, 0));
    for (int32_t i = 0; i < count; i++)
        out[i] = -1;
    const qn_type *type = &shape->type;
    if (shape->data && qn_dtype_is_integer(shape->data->dtype)) {
        const int64_t n = qn_tensor_count(shape->data);
        for (int32_t i = 0; i < count; i++) {
            const int64_t at = n == count ? i : first + i;
            if (at < n)
                qn_load_i64(&out[i], shape->data->dtype, shape->data->data, at, 1);
        }
    } else if (type->elements && type->rank == 1 && type->dims[0].value == count + 2) {
        for (int32_t i = 0; i < count; i++)
            out[i] = QN_MAX(type->elements[first + i].value, INT64_C(-1));
    }
    return QN_OK;
}

static qn_status transposed(qn_tf_node *node, int32_t count)
{
    int64_t sizes[QN_TF_SPATIAL];
    qn_value *x, *weights, *y;
    qn_tf_window w;
    const qn_axis_order order = order_of(node);
    const qn_tf_transposed how = {sizes, qn_tf_attr_is(node, "padding", "SAME")};
    QN_TRY(strides(&w, node, count));
    QN_TRY(sizes_of(sizes, node, count));
    QN_TRY(qn_tf_in_order(&x, node, 2, order));
    QN_TRY(qn_tf_in(&weights, node, 1));
    QN_TRY(qn_tf_window_kernel(&w, &node->import->builder, weights));
    if (qn_tf_attr_is(node, "padding", "EXPLICIT"))
        QN_TRY(explicit_pads(&w, node));
    QN_TRY(qn_tf_conv_transpose(&y, &node->import->builder, &w, &how, x, weights));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_conv2d_backprop(qn_tf_node *node)
{
    return transposed(node, 2);
}

qn_status qn_tf_conv3d_backprop(qn_tf_node *node)
{
    return transposed(node, 3);
}

/* ---- Bias ------------------------------------------------------------------------------------ */

qn_status qn_tf_bias_add(qn_tf_node *node)
{
    qn_value *in[2], *y;
    qn_axis_order order;
    qn_graph_builder *b = &node->import->builder;
    if (!qn_tf_attr_is(node, "data_format", "NCHW")) {
        QN_TRY(qn_tf_in_agreed(in, &order, node, 0, 2));
    } else {
        int64_t axes[QN_MAX_RANK];
        order = QN_ORDER_OWN;
        QN_TRY(qn_tf_in(&in[0], node, 0));
        QN_TRY(qn_tf_in(&in[1], node, 1));
        const int32_t behind = in[0]->type.rank - 2;
        for (int32_t i = 0; i < behind; i++)
            axes[i] = i + 1;
        if (behind > 0)
            QN_TRY(qn_tf_unsqueeze(&in[1], node->import, axes, (size_t)behind));
    }
    QN_TRY(qn_graph_build(&y, b, &qn_op_Add, QN_INPUTS(in[0], in[1]), QN_PLAIN));
    return qn_tf_out(node, 0, y, order);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static qn_status pool_window(qn_tf_window *w, qn_value **x, const qn_tf_node *node, int32_t count)
{
    QN_TRY(strides(w, node, count));
    QN_TRY(spatial(w->kernel, node, "ksize", count));
    QN_TRY(qn_tf_in_order(x, node, 0, order_of(node)));
    return pad(w, node, *x);
}

static qn_status pool_of(qn_tf_node *node, int32_t count)
{
    qn_value *x, *y;
    qn_tf_window w;
    QN_TRY(pool_window(&w, &x, node, count));
    QN_TRY(qn_tf_pool(&y, &node->import->builder, node->op->as, &w, x));
    return qn_tf_out(node, 0, y, order_of(node));
}

qn_status qn_tf_pool2d(qn_tf_node *node)
{
    return pool_of(node, 2);
}

qn_status qn_tf_pool3d(qn_tf_node *node)
{
    return pool_of(node, 3);
}

/* Numbers to places in a tensor of zeros that has the shape of another one, both flat. */
static qn_status scatter_flat(qn_value **out, qn_tf_import *import, qn_value *like,
                              qn_value *places, qn_value *numbers)
{
    static const int64_t flat[] = {-1};
    qn_value *shape, *zeros;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_shape_of(&shape, import, like));
    QN_TRY(qn_tf_number(&zeros, import, 0, numbers->type.dtype));
    QN_TRY(qn_graph_build(&zeros, b, &qn_op_Expand, QN_INPUTS(zeros, shape), QN_PLAIN));
    QN_TRY(qn_tf_reshape(&zeros, import, flat, 1));
    QN_TRY(qn_tf_reshape(&places, import, flat, 1));
    QN_TRY(qn_tf_reshape(&numbers, import, flat, 1));
    QN_TRY(qn_graph_build(out, b, &qn_op_ScatterElements, QN_INPUTS(zeros, places, numbers),
                          QN_PLAIN));
    return qn_graph_build(out, b, &qn_op_Reshape, QN_INPUTS(*out, shape), QN_PLAIN);
}

/* Gradients go back to where the maxima were. */
qn_status qn_tf_max_pool_grad(qn_tf_node *node)
{
    qn_value *x, *grad, *found[2], *y;
    qn_tf_window w;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(pool_window(&w, &x, node, 2));
    QN_TRY(qn_tf_in_order(&grad, node, 2, order_of(node)));
    if (w.automatic || w.stride[0] < w.kernel[0] || w.stride[1] < w.kernel[1])
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "windows that overlap");
    QN_TRY(qn_graph_build_several(found, 2, b, &qn_op_MaxPool, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT_LIST("kernel_shape", w.kernel, 2),
                                          QN_A_INT_LIST("strides", w.stride, 2),
                                          QN_A_INT_LIST("pads", w.pads, 4))));
    QN_TRY(scatter_flat(&y, node->import, x, found[1], grad));
    return qn_tf_out(node, 0, y, order_of(node));
}
