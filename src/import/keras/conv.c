/* Convolutions and pools. */
#include <string.h>

#include "import/keras/keras.h"

/* "Conv2DTranspose" has two spatial axes: the digit in the name says so. */
static int32_t spatial_of(const qn_keras_call *call)
{
    const char *digit = strpbrk(call->layer->type, "123");
    return digit ? *digit - '0' : 2;
}

static qn_status window_of(qn_tf_window *w, const qn_keras_call *call, const char *kernel)
{
    const size_t n = (size_t)spatial_of(call);
    *w = qn_tf_window_of((int32_t)n);
    (void)qn_keras_ints(w->kernel, n, call, kernel);
    (void)qn_keras_ints(w->stride, n, call, "strides");
    (void)qn_keras_ints(w->dilation, n, call, "dilation_rate");
    for (size_t i = 0; i < n; i++) {
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1)
            return qn_keras_fail(call, QN_E_FORMAT, "a window, stride or dilation below 1");
    }
    return QN_OK;
}

/* `causal`: all of the padding at the begin. */
static qn_status pad(qn_tf_window *w, const qn_keras_call *call, const qn_value *x)
{
    if (qn_keras_is(call, "padding", "same"))
        qn_tf_window_same(w, x);
    else if (qn_keras_is(call, "padding", "causal"))
        w->pads[0] = (w->kernel[0] - 1) * w->dilation[0];
    else if (!qn_keras_is(call, "padding", "valid") && !qn_keras_is(call, "padding", ""))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "its padding is not known");
    return QN_OK;
}

/* Weights and window have to be of one layer. */
static qn_status check_kernel(const qn_tf_window *w, const qn_keras_call *call,
                              const qn_value *weights)
{
    char shape[128];
    qn_tf_window found = *w;
    QN_TRY(qn_tf_window_kernel(&found, &call->import->builder, weights));
    if (memcmp(found.kernel, w->kernel, sizeof found.kernel) == 0)
        return QN_OK;
    qn_type_format(shape, sizeof shape, &weights->type);
    return qn_keras_fail(call, QN_E_FORMAT,
                         "its weights are %s, its window is %lld wide: those of another model",
                         shape, (long long)w->kernel[0]);
}

/* The bias is weight number i, where there is one. */
static qn_status bias_of(qn_value **out, const qn_keras_call *call, size_t i)
{
    *out = NULL;
    return qn_keras_bool(call, "use_bias", true) ? qn_keras_own_weight(out, call, i) : QN_OK;
}

static qn_status finish(qn_keras_call *call, qn_value *y)
{
    QN_TRY(qn_keras_activate(&y, call, "activation", 1));
    return qn_keras_out(call, y, qn_keras_order(call));
}

/* Makes the node of one kernel: a plain convolution, or one for each channel. */
typedef qn_status conv_fn(qn_value **out, qn_graph_builder *b, const qn_tf_window *w, qn_value *x,
                          qn_value *weights, qn_value *bias);

static qn_status convolve(qn_keras_call *call, conv_fn *make)
{
    qn_value *x, *weights, *bias, *y;
    qn_tf_window w;
    QN_TRY(window_of(&w, call, "kernel_size"));
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    QN_TRY(qn_keras_own_weight(&weights, call, 0));
    QN_TRY(check_kernel(&w, call, weights));
    QN_TRY(bias_of(&bias, call, 1));
    QN_TRY(pad(&w, call, x));
    QN_TRY(make(&y, &call->import->builder, &w, x, weights, bias));
    return finish(call, y);
}

qn_status qn_keras_conv(qn_keras_call *call)
{
    return convolve(call, qn_tf_conv);
}

qn_status qn_keras_depthwise(qn_keras_call *call)
{
    return convolve(call, qn_tf_depthwise);
}

qn_status qn_keras_separable(qn_keras_call *call)
{
    qn_value *x, *deep, *points, *bias, *y;
    qn_tf_window w;
    qn_graph_builder *b = &call->import->builder;
    QN_TRY(window_of(&w, call, "kernel_size"));
    const qn_tf_window one = qn_tf_window_of(w.spatial);
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    QN_TRY(qn_keras_own_weight(&deep, call, 0));
    QN_TRY(check_kernel(&w, call, deep));
    QN_TRY(qn_keras_own_weight(&points, call, 1));
    QN_TRY(check_kernel(&one, call, points));
    QN_TRY(bias_of(&bias, call, 2));
    QN_TRY(pad(&w, call, x));
    QN_TRY(qn_tf_depthwise(&y, b, &w, x, deep, NULL));
    QN_TRY(qn_tf_conv(&y, b, &one, y, points, bias));
    return finish(call, y);
}

/* [C] to [C, 1, ...]. */
static qn_status add_bias(qn_value **y, qn_keras_call *call, int32_t spatial)
{
    static const int64_t axes[] = {1, 2, 3};
    qn_value *bias;
    QN_TRY(bias_of(&bias, call, 1));
    if (!bias)
        return QN_OK;
    QN_TRY(qn_keras_with_ints(&bias, call->import, &qn_op_Unsqueeze, axes, (size_t)spatial));
    return qn_keras_two(y, call->import, &qn_op_Add, *y, bias);
}

/* What `output_padding` makes of a size; -1: as the strides make it. */
static void sizes_of(int64_t *sizes, const qn_tf_window *w, const qn_keras_call *call,
                     const qn_value *x)
{
    int64_t more[QN_TF_SPATIAL];
    const bool given = qn_keras_ints(more, (size_t)w->spatial, call, "output_padding");
    for (int32_t i = 0; i < w->spatial; i++) {
        const int64_t in = x->type.rank == w->spatial + 2 ? x->type.dims[2 + i].value : -1;
        const int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t edges = qn_keras_is(call, "padding", "same") ? 2 * (span / 2) : 0;
        sizes[i] = given && in > 0 ? (in - 1) * w->stride[i] + span - edges + more[i] : -1;
    }
}

qn_status qn_keras_conv_transpose(qn_keras_call *call)
{
    int64_t sizes[QN_TF_SPATIAL];
    qn_value *x, *weights, *y;
    qn_tf_window w;
    const qn_tf_transposed how = {sizes, qn_keras_is(call, "padding", "same")};
    QN_TRY(window_of(&w, call, "kernel_size"));
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    QN_TRY(qn_keras_own_weight(&weights, call, 0));
    QN_TRY(check_kernel(&w, call, weights));
    sizes_of(sizes, &w, call, x);
    QN_TRY(qn_tf_conv_transpose(&y, &call->import->builder, &w, &how, x, weights));
    QN_TRY(add_bias(&y, call, w.spatial));
    return finish(call, y);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

qn_status qn_keras_pool(qn_keras_call *call)
{
    qn_value *x, *y;
    qn_tf_window w;
    QN_TRY(window_of(&w, call, "pool_size"));
    if (!qn_keras_ints(w.stride, (size_t)w.spatial, call, "strides"))
        memcpy(w.stride, w.kernel, sizeof w.stride);
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    QN_TRY(pad(&w, call, x));
    QN_TRY(qn_tf_pool(&y, &call->import->builder, call->layer->op->as, &w, x));
    return qn_keras_out(call, y, qn_keras_order(call));
}

/* The mean of the steps that count. */
static qn_status mean_of_steps(qn_keras_call *call, qn_value *mask)
{
    static const int64_t steps[] = {1}, last[] = {-1};
    qn_value *x, *zero, *one, *count, *over;
    qn_keras_import *import = call->import;
    qn_graph_builder *b = &import->builder;
    const qn_graph_build_attr keep = QN_A_INT("keepdims", qn_keras_bool(call, "keepdims", false));
    const qn_graph_build_attrs attrs = {&keep, 1};
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(qn_keras_with_ints(&mask, import, &qn_op_Unsqueeze, last, 1));
    QN_TRY(qn_keras_number(&zero, import, 0, QN_FLOAT32));
    QN_TRY(qn_keras_number(&one, import, 1, QN_FLOAT32));
    QN_TRY(qn_graph_build(&count, b, &qn_op_Where, QN_INPUTS(mask, one, zero), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Where, QN_INPUTS(mask, x, zero), QN_PLAIN));
    QN_TRY(qn_graph_build_ints(&over, b, steps, 1));
    QN_TRY(qn_graph_build(&x, b, &qn_op_ReduceSum, QN_INPUTS(x, over), attrs));
    QN_TRY(qn_graph_build(&count, b, &qn_op_ReduceSum, QN_INPUTS(count, over), attrs));
    QN_TRY(qn_keras_two(&x, import, &qn_op_Div, x, count));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

qn_status qn_keras_pool_global(qn_keras_call *call)
{
    int64_t axes[] = {2, 3, 4};
    qn_value *x, *over, *y;
    const bool keep = qn_keras_bool(call, "keepdims", false);
    qn_graph_builder *b = &call->import->builder;
    if (qn_keras_mask(call, 0) && call->layer->op->as == &qn_op_ReduceMean)
        return mean_of_steps(call, qn_keras_mask(call, 0));
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    QN_TRY(qn_graph_build_ints(&over, b, axes, (size_t)spatial_of(call)));
    QN_TRY(qn_graph_build(&y, b, call->layer->op->as, QN_INPUTS(x, over),
                          QN_WITH(QN_A_INT("keepdims", keep))));
    return qn_keras_out(call, y, keep ? qn_keras_order(call) : QN_ORDER_OWN);
}

/* ---- Edges ----------------------------------------------------------------------------------- */

/* Begin and end of each spatial axis: of a number for all, one for each axis, or two. */
static qn_status edges_of(int64_t *out, const qn_keras_call *call, const char *key, size_t n)
{
    size_t found;
    int64_t values[2 * QN_TF_SPATIAL];
    if (!qn_keras_int_list(values, &found, call, key, QN_COUNT_OF(values)) ||
        (found != 1 && found != n && found != 2 * n))
        return qn_keras_fail(call, QN_E_FORMAT, "its %s is missing", key);
    const bool pairs = found == 2 * n;
    for (size_t i = 0; i < n; i++) {
        out[i] = values[found == 1 ? 0 : pairs ? 2 * i : i];
        out[n + i] = values[found == 1 ? 0 : pairs ? 2 * i + 1 : i];
        if (out[i] < 0 || out[n + i] < 0)
            return qn_keras_fail(call, QN_E_FORMAT, "its %s is negative", key);
    }
    return QN_OK;
}

qn_status qn_keras_zero_padding(qn_keras_call *call)
{
    int64_t edges[2 * QN_TF_SPATIAL], pads[2 * (QN_TF_SPATIAL + 2)] = {0};
    const size_t n = (size_t)spatial_of(call);
    qn_value *x;
    QN_TRY(edges_of(edges, call, "padding", n));
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    for (size_t i = 0; i < n; i++) {
        pads[2 + i] = edges[i];
        pads[n + 4 + i] = edges[n + i];
    }
    QN_TRY(qn_keras_with_ints(&x, call->import, &qn_op_Pad, pads, 2 * (n + 2)));
    return qn_keras_out(call, x, qn_keras_order(call));
}

qn_status qn_keras_cropping(qn_keras_call *call)
{
    int64_t edges[2 * QN_TF_SPATIAL];
    const size_t n = (size_t)spatial_of(call);
    qn_value *x;
    QN_TRY(edges_of(edges, call, "cropping", n));
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    for (size_t i = 0; i < n; i++)
        QN_TRY(qn_keras_part(&x, call->import, 2 + (int64_t)i, edges[i],
                             edges[n + i] ? -edges[n + i] : INT64_MAX));
    return qn_keras_out(call, x, qn_keras_order(call));
}

/* The middle of a picture, which is no smaller. */
qn_status qn_keras_center_crop(qn_keras_call *call)
{
    static const char *const sides[] = {"height", "width"};
    qn_value *x;
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    for (int64_t i = 0; i < 2; i++) {
        const int64_t wanted = qn_keras_int(call, sides[i], 0);
        const int64_t own = x->type.rank == 4 ? x->type.dims[2 + i].value : -1;
        if (wanted < 1 || own < wanted)
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "the middle %lld of %lld",
                                 (long long)wanted, (long long)own);
        const int64_t begin = (own - wanted) / 2;
        QN_TRY(qn_keras_part(&x, call->import, 2 + i, begin, begin + wanted));
    }
    return qn_keras_out(call, x, qn_keras_order(call));
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static qn_status resize(qn_value **out, qn_keras_call *call, qn_value *x, qn_value *scales,
                        qn_value *sizes)
{
    const bool linear = qn_keras_is(call, "interpolation", "bilinear");
    if (!linear && !qn_keras_is(call, "interpolation", "nearest") &&
        !qn_keras_is(call, "interpolation", ""))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the interpolation is not known");
    return qn_graph_build(out, &call->import->builder, &qn_op_Resize,
                          QN_INPUTS(x, NULL, scales, sizes),
                          QN_WITH(QN_A_TEXT("mode", linear ? "linear" : "nearest"),
                                  QN_A_TEXT("coordinate_transformation_mode", "half_pixel"),
                                  QN_A_TEXT("nearest_mode", "round_prefer_ceil")));
}

qn_status qn_keras_up_sampling(qn_keras_call *call)
{
    int64_t factors[QN_TF_SPATIAL];
    float scales[QN_TF_SPATIAL + 2] = {1, 1};
    const size_t n = (size_t)spatial_of(call);
    qn_value *x, *list, *y;
    if (!qn_keras_ints(factors, n, call, "size"))
        return qn_keras_fail(call, QN_E_FORMAT, "its size is missing");
    for (size_t i = 0; i < n; i++)
        scales[2 + i] = (float)factors[i];
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    QN_TRY(qn_graph_build_reals(&list, &call->import->builder, scales, n + 2));
    QN_TRY(resize(&y, call, x, list, NULL));
    return qn_keras_out(call, y, qn_keras_order(call));
}

qn_status qn_keras_resizing(qn_keras_call *call)
{
    const int64_t size[2] = {qn_keras_int(call, "height", 0), qn_keras_int(call, "width", 0)};
    float scales[4] = {1, 1};
    qn_value *x, *list, *y;
    QN_TRY(qn_keras_in(&x, call, 0, qn_keras_order(call)));
    for (int i = 0; i < 2; i++) {
        const int64_t own = x->type.rank == 4 ? x->type.dims[2 + i].value : -1;
        if (own < 1 || size[i] < 1 || qn_keras_bool(call, "crop_to_aspect_ratio", false))
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "sizes that are not known, or cropping");
        scales[2 + i] = (float)size[i] / (float)own;
    }
    QN_TRY(qn_graph_build_reals(&list, &call->import->builder, scales, 4));
    QN_TRY(resize(&y, call, x, list, NULL));
    return qn_keras_out(call, y, qn_keras_order(call));
}
