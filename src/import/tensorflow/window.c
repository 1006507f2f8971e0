/* Convolutions and pools over values with channels first. */
#include "import/tensorflow/window.h"

#include <string.h>

qn_tf_window qn_tf_window_of(int32_t spatial)
{
    qn_tf_window w = {.spatial = spatial};
    for (int i = 0; i < QN_TF_SPATIAL; i++)
        w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
    return w;
}

void qn_tf_window_same(qn_tf_window *w, const qn_value *x)
{
    w->automatic = false;
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t size = x->type.rank == w->spatial + 2 ? x->type.dims[i + 2].value : -1;
        /* With a stride of 1 the size does not matter. */
        const qn_slide slide = {size < 0 ? w->kernel[i] : size, w->kernel[i], w->stride[i],
                                w->dilation[i]};
        if (size < 0 && w->stride[i] != 1) {
            w->automatic = true;
            return;
        }
        if (size < 0) {
            const int64_t total = (w->kernel[i] - 1) * w->dilation[i];
            w->pads[i] = total / 2;
            w->pads[w->spatial + i] = total - total / 2;
            continue;
        }
        qn_same_padding(&w->pads[i], &w->pads[w->spatial + i], &slide);
    }
}

qn_status qn_tf_window_kernel(qn_tf_window *w, const qn_graph_builder *b, const qn_value *weights)
{
    int64_t dims[QN_MAX_RANK];
    if (weights->type.kind != QN_TYPE_TENSOR || weights->type.rank != w->spatial + 2 ||
        !qn_type_is_static(&weights->type, dims))
        return qn_graph_builder_fail(b, QN_E_UNSUPPORTED,
                                     "the weights have to be of rank %d and of a known shape",
                                     w->spatial + 2);
    for (int32_t i = 0; i < w->spatial + 2; i++) {
        if (dims[i] < 1 || dims[i] > INT32_MAX)
            return qn_graph_builder_fail(b, QN_E_FORMAT, "the weights have an axis of %lld",
                                         (long long)dims[i]);
    }
    memcpy(w->kernel, dims, (size_t)w->spatial * sizeof *dims);
    return QN_OK;
}

/* [spatial..., a, b] to [b, a, spatial...]. */
static qn_status turn(qn_value **weights, qn_graph_builder *b, int32_t spatial)
{
    int64_t perm[QN_TF_SPATIAL + 2] = {spatial + 1, spatial};
    for (int32_t i = 0; i < spatial; i++)
        perm[2 + i] = i;
    return qn_graph_build(weights, b, &qn_op_Transpose, QN_INPUTS(*weights),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)spatial + 2)));
}

static qn_status convolve(qn_value **out, qn_graph_builder *b, const qn_tf_window *w,
                          const qn_graph_build_inputs in, int64_t group)
{
    const size_t n = (size_t)w->spatial;
    const qn_graph_build_attr attrs[] = {
        QN_A_INT_LIST("kernel_shape", w->kernel, n), QN_A_INT_LIST("strides", w->stride, n),
        QN_A_INT_LIST("dilations", w->dilation, n), QN_A_INT("group", group),
        QN_A_INT_LIST("pads", w->pads, 2 * n)};
    qn_graph_build_attr own[QN_COUNT_OF(attrs)];
    memcpy(own, attrs, sizeof attrs);
    if (w->automatic)
        own[4] = (qn_graph_build_attr)QN_A_TEXT("auto_pad", "SAME_UPPER");
    return qn_graph_build(out, b, &qn_op_Conv, in, (qn_graph_build_attrs){own, QN_COUNT_OF(own)});
}

qn_status qn_tf_conv(qn_value **out, qn_graph_builder *b, const qn_tf_window *w, qn_value *x,
                     qn_value *weights, qn_value *bias)
{
    const int64_t in = weights->type.dims[w->spatial].value;
    const int64_t channels = x->type.rank == w->spatial + 2 ? x->type.dims[1].value : in;
    const int64_t group = channels < 0 ? 1 : channels / in;
    if (group < 1 || group * in != QN_MAX(channels, in))
        return qn_graph_builder_fail(b, QN_E_FORMAT, "%lld channels come to weights for %lld",
                                     (long long)channels, (long long)in);
    QN_TRY(turn(&weights, b, w->spatial));
    return convolve(out, b, w, QN_INPUTS(x, weights, bias), group);
}

qn_status qn_tf_depthwise(qn_value **out, qn_graph_builder *b, const qn_tf_window *w, qn_value *x,
                          qn_value *weights, qn_value *bias)
{
    int64_t dims[QN_TF_SPATIAL + 2];
    const int64_t channels = weights->type.dims[w->spatial].value;
    qn_value *shape;
    for (int32_t i = 0; i < w->spatial + 2; i++)
        dims[i] = weights->type.dims[i].value;
    dims[w->spatial] = 1;
    if (!qn_mul_int64(&dims[w->spatial + 1], dims[w->spatial + 1], channels))
        return qn_graph_builder_fail(b, QN_E_FORMAT, "the weights are too large");
    if (channels != 1) {
        QN_TRY(qn_graph_build_ints(&shape, b, dims, (size_t)w->spatial + 2));
        QN_TRY(qn_graph_build(&weights, b, &qn_op_Reshape, QN_INPUTS(weights, shape), QN_PLAIN));
    }
    QN_TRY(turn(&weights, b, w->spatial));
    return convolve(out, b, w, QN_INPUTS(x, weights, bias), channels);
}

/* ---- Transposed ------------------------------------------------------------------------------ */

/* The padding of one axis, and what is missing behind it. */
static qn_status transposed_axis(int64_t *missing, const qn_graph_builder *b, qn_tf_window *w,
                                 const qn_tf_transposed *how, int32_t i, int64_t size)
{
    int64_t *begin = &w->pads[i], *end = &w->pads[w->spatial + i];
    const int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
    const int64_t in = size < 0 ? 1 : size;
    int64_t wanted = how->sizes && size >= 0 ? how->sizes[i] : -1;
    if (wanted < 0)
        wanted =
            how->same ? in * w->stride[i] : (in - 1) * w->stride[i] + QN_MAX(span, w->stride[i]);
    if (how->same) {
        const int64_t total = QN_MAX((in - 1) * w->stride[i] + span - wanted, INT64_C(0));
        *begin = total / 2;
        *end = total - total / 2;
    }
    *missing = wanted - ((in - 1) * w->stride[i] + span - *begin - *end);
    if (*missing < 0 || *missing > INT32_MAX)
        return qn_graph_builder_fail(b, QN_E_FORMAT, "its output cannot have the size %lld",
                                     (long long)wanted);
    return QN_OK;
}

qn_status qn_tf_conv_transpose(qn_value **out, qn_graph_builder *b, qn_tf_window *w,
                               const qn_tf_transposed *how, qn_value *x, qn_value *weights)
{
    const size_t n = (size_t)w->spatial;
    int64_t missing[QN_TF_SPATIAL];
    const int64_t in = weights->type.dims[w->spatial + 1].value;
    const int64_t channels = x->type.rank == w->spatial + 2 ? x->type.dims[1].value : in;
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t size = x->type.rank == w->spatial + 2 ? x->type.dims[i + 2].value : -1;
        QN_TRY(transposed_axis(&missing[i], b, w, how, i, size));
    }
    if (channels >= 0 && channels != in)
        return qn_graph_builder_fail(b, QN_E_FORMAT, "%lld channels come to weights for %lld",
                                     (long long)channels, (long long)in);
    QN_TRY(turn(&weights, b, w->spatial));
    return qn_graph_build(
        out, b, &qn_op_ConvTranspose, QN_INPUTS(x, weights),
        QN_WITH(QN_A_INT_LIST("kernel_shape", w->kernel, n), QN_A_INT_LIST("strides", w->stride, n),
                QN_A_INT_LIST("dilations", w->dilation, n), QN_A_INT_LIST("pads", w->pads, 2 * n),
                QN_A_INT_LIST("output_padding", missing, n), QN_A_INT("group", 1)));
}

/* ---- Pools ----------------------------------------------------------------------------------- */

qn_status qn_tf_pool(qn_value **out, qn_graph_builder *b, const qn_op *op, const qn_tf_window *w,
                     qn_value *x)
{
    const size_t n = (size_t)w->spatial;
    const qn_graph_build_attr attrs[] = {
        QN_A_INT_LIST("kernel_shape", w->kernel, n), QN_A_INT_LIST("strides", w->stride, n),
        QN_A_INT_LIST("dilations", w->dilation, n), QN_A_INT_LIST("pads", w->pads, 2 * n)};
    qn_graph_build_attr own[QN_COUNT_OF(attrs)];
    memcpy(own, attrs, sizeof attrs);
    if (w->automatic)
        own[3] = (qn_graph_build_attr)QN_A_TEXT("auto_pad", "SAME_UPPER");
    return qn_graph_build(out, b, op, QN_INPUTS(x), (qn_graph_build_attrs){own, QN_COUNT_OF(own)});
}
