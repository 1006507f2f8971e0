/* Convolutions and pools, whose inputs are brought to [N, C, spatial...]. */
#include <math.h>
#include <string.h>

#include "import/tflite/tflite.h"
#include "ops/numerics.h"

enum { MAX_SPATIAL = 3 };
enum {
    CONV_PADDING = 0,
    CONV_STRIDE_W = 1,
    CONV_STRIDE_H = 2,
    CONV_ACTIVATION = 3,
    CONV_DILATION_W = 4,
    CONV_DILATION_H = 5
};
enum { DEPTHWISE_ACTIVATION = 4, DEPTHWISE_DILATION_W = 5, DEPTHWISE_DILATION_H = 6 };
enum {
    CONV3D_PADDING = 0,
    CONV3D_STRIDE_D = 1,
    CONV3D_STRIDE_W = 2,
    CONV3D_STRIDE_H = 3,
    CONV3D_ACTIVATION = 4,
    CONV3D_DILATION_D = 5,
    CONV3D_DILATION_W = 6,
    CONV3D_DILATION_H = 7
};
enum { POOL_FILTER_W = 3, POOL_FILTER_H = 4, POOL_ACTIVATION = 5 };

/* A window over `rank` spatial axes. */
typedef struct tfl_window {
    size_t rank;
    bool same;
    int64_t kernel[MAX_SPATIAL], strides[MAX_SPATIAL], dilations[MAX_SPATIAL];
    /* All begins, then all ends. */
    int64_t pads[2 * MAX_SPATIAL];
    /* SAME of a size that is open. */
    bool open;
    int64_t activation;
} tfl_window;

static qn_status check_window(const tfl_layer *l, const tfl_window *w)
{
    for (size_t i = 0; i < w->rank; i++) {
        const int64_t most = INT32_MAX;
        if (w->kernel[i] < 1 || w->strides[i] < 1 || w->dilations[i] < 1 || w->kernel[i] > most ||
            w->strides[i] > most || w->dilations[i] > most)
            return qn_tfl_wrong(l, "a window of %lld with stride %lld and dilation %lld",
                                (long long)w->kernel[i], (long long)w->strides[i],
                                (long long)w->dilations[i]);
    }
    return QN_OK;
}

static qn_status pad_window(tfl_window *w, const tfl_layer *l, const qn_value *x)
{
    QN_TRY(check_window(l, w));
    if (qn_tfl_rank(x) != (int32_t)w->rank + 2)
        return qn_tfl_wrong(l, "its input has %d axes", (int)qn_tfl_rank(x));
    for (size_t i = 0; i < w->rank && w->same; i++) {
        const qn_slide slide = {qn_tfl_dim(x, (int64_t)i + 2), w->kernel[i], w->strides[i],
                                w->dilations[i]};
        w->open = w->open || slide.size < 0;
        if (!w->open)
            qn_same_padding(&w->pads[i], &w->pads[w->rank + i], &slide);
    }
    return QN_OK;
}

static qn_status build_window(qn_value **y, tfl_layer *l, const qn_op *op,
                              qn_graph_build_inputs inputs, const tfl_window *w, int64_t group)
{
    const bool pooled = op == &qn_op_MaxPool || op == &qn_op_AveragePool || op == &qn_op_LpPool;
    const size_t count = inputs.at[inputs.count - 1] ? inputs.count : inputs.count - 1;
    const qn_graph_build_attr attrs[] = {
        QN_A_INT_LIST("kernel_shape", w->kernel, w->rank),
        QN_A_INT_LIST("strides", w->strides, w->rank),
        w->open ? (qn_graph_build_attr)QN_A_TEXT("auto_pad", "SAME_UPPER")
                : (qn_graph_build_attr)QN_A_INT_LIST("pads", w->pads, 2 * w->rank),
        QN_A_INT_LIST("dilations", w->dilations, w->rank),
        QN_A_INT("group", group),
    };
    return qn_graph_build(y, l->b, op, (qn_graph_build_inputs){inputs.at, count},
                          (qn_graph_build_attrs){attrs, QN_COUNT_OF(attrs) - (pooled ? 2 : 0)});
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* The bias counts in steps of input scale times filter scale, whatever the file says of it: LiteRT
 * adds its integers to the sum of products. */
static qn_status integer_bias(qn_value **out, tfl_layer *l, const tfl_tensor *bias,
                              const tfl_tensor *x, const tfl_tensor *w)
{
    qn_value *raw = *out, *scale;
    const size_t count = w->scales.count;
    const int64_t dims[] = {(int64_t)count};
    const qn_type type = qn_type_tensor(QN_FLOAT32, count > 1, dims);
    float *scales = qn_arena_array(&l->b->model->arena, count, sizeof *scales);
    QN_TRY_ALLOC(l->b->ctx, scales);
    for (size_t i = 0; i < count; i++)
        scales[i] = qn_tfl_scale(x, 0) * qn_tfl_scale(w, i);
    QN_TRY(qn_graph_build_constant(&scale, l->b, NULL, &type,
                                   (qn_string){(const char *)scales, count * sizeof *scales}));
    if (bias->dtype == QN_INT32)
        return qn_graph_build(out, l->b, &qn_op_DequantizeLinear, QN_INPUTS(raw, scale),
                              QN_WITH(QN_A_INT("axis", 0)));
    /* DequantizeLinear knows no int64, which biases of 16-bit activations have. */
    QN_TRY(qn_tfl_cast(&raw, l, raw, QN_FLOAT32));
    return qn_tfl_binary(out, l, &qn_op_Mul, raw, scale);
}

qn_status qn_tfl_bias(qn_value **out, tfl_layer *l, size_t i, size_t x, size_t w)
{
    *out = NULL;
    if (!qn_tfl_has(l, i))
        return QN_OK;
    QN_TRY(qn_tfl_raw(out, l, i, QN_ORDER_OWN));
    if (!qn_dtype_is_integer(l->in[i]->dtype))
        return QN_OK;
    if (!qn_tfl_is_quantized(l->in[x]) || !qn_tfl_is_quantized(l->in[w]))
        return qn_tfl_wrong(l, "its bias '%s' has integers, its input has none", l->in[i]->name);
    return integer_bias(out, l, l->in[i], l->in[x], l->in[w]);
}

qn_status qn_tfl_bias_by_scale(qn_value **out, tfl_layer *l, size_t i)
{
    const tfl_tensor *t = l->in[i];
    QN_TRY(qn_tfl_raw(out, l, i, QN_ORDER_OWN));
    if (!qn_dtype_is_integer(t->dtype))
        return QN_OK;
    if (t->scales.count != 1)
        return qn_tfl_wrong(l, "its bias '%s' has no scale", t->name);
    QN_TRY(qn_tfl_cast(out, l, *out, QN_FLOAT32));
    return qn_tfl_with(out, l, &qn_op_Mul, *out, (double)qn_tfl_scale(t, 0));
}

/* Filters in ONNX's order: `perm` of the file's, whose channels that have scales go to the
 * front. */
static qn_status take_filter(qn_value **out, tfl_layer *l, size_t i, const int64_t *perm,
                             size_t rank)
{
    QN_TRY(qn_tfl_expect(l, i + 1, 1));
    const tfl_tensor *t = l->in[i];
    int64_t axis = 0;
    QN_TRY(qn_tfl_raw(out, l, i, QN_ORDER_OWN));
    if (qn_tfl_rank(*out) != (int32_t)rank)
        return qn_tfl_wrong(l, "its filter has %d axes", (int)qn_tfl_rank(*out));
    QN_TRY(qn_tfl_turn(out, l, l->in[i], *out, perm));
    while (axis < (int64_t)rank && perm[axis] != t->axis)
        axis++;
    return qn_tfl_dequantize(out, l, *out, t, axis);
}

/* The reference kernels round sums of 8-bit products twice. */
static qn_status keep_rounding(tfl_layer *l, const tfl_tensor *x)
{
    const bool bytes = qn_tfl_is_quantized(x) && qn_dtype_size(x->dtype) == 1;
    return bytes ? qn_model_set_numerics(l->b->model, QN_NUMERICS_DOUBLE_ROUNDING, 1) : QN_OK;
}

/* `group` 0: every input channel has its own filters. */
static qn_status finish_conv(tfl_layer *l, tfl_window *w, qn_value *filter, int64_t group)
{
    qn_value *x, *bias, *y;
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_tfl_round_input(&x, l, x, 1, group == 0 || l->in[1]->scales.count > 1));
    QN_TRY(keep_rounding(l, l->in[0]));
    QN_TRY(qn_tfl_bias(&bias, l, 2, 0, 1));
    for (size_t i = 0; i < w->rank; i++)
        w->kernel[i] = qn_tfl_dim(filter, (int64_t)i + 2);
    QN_TRY(pad_window(w, l, x));
    const int64_t channels = qn_tfl_dim(x, 1), of_each = qn_tfl_dim(filter, 1);
    if (channels < 1 || of_each < 1)
        return qn_tfl_unsupported(l, "its channels are not known");
    if (channels % of_each || (group == 0 && of_each != 1))
        return qn_tfl_wrong(l, "filters of %lld channels for %lld", (long long)of_each,
                            (long long)channels);
    QN_TRY(build_window(&y, l, &qn_op_Conv, QN_INPUTS(x, filter, bias), w, channels / of_each));
    return qn_tfl_put_active(l, y, QN_ORDER_CHANNELS_FIRST, w->activation);
}

/* Filters [F, H, W, C]. */
qn_status qn_tfl_conv_2d(tfl_layer *l)
{
    static const int64_t perm[] = {0, 3, 1, 2};
    qn_value *filter;
    tfl_window w = {
        .rank = 2,
        .same = qn_tfl_byte(l, CONV_PADDING) == QN_TFL_SAME,
        .strides = {qn_tfl_int(l, CONV_STRIDE_H, 0), qn_tfl_int(l, CONV_STRIDE_W, 0)},
        .dilations = {qn_tfl_int(l, CONV_DILATION_H, 1), qn_tfl_int(l, CONV_DILATION_W, 1)},
        .activation = qn_tfl_byte(l, CONV_ACTIVATION)};
    QN_TRY(take_filter(&filter, l, 1, perm, 4));
    return finish_conv(l, &w, filter, 1);
}

/* Filters [1, H, W, C * multiplier]. */
qn_status qn_tfl_depthwise_conv_2d(tfl_layer *l)
{
    static const int64_t perm[] = {3, 0, 1, 2};
    qn_value *filter;
    tfl_window w = {.rank = 2,
                    .same = qn_tfl_byte(l, CONV_PADDING) == QN_TFL_SAME,
                    .strides = {qn_tfl_int(l, CONV_STRIDE_H, 0), qn_tfl_int(l, CONV_STRIDE_W, 0)},
                    .dilations = {qn_tfl_int(l, DEPTHWISE_DILATION_H, 1),
                                  qn_tfl_int(l, DEPTHWISE_DILATION_W, 1)},
                    .activation = qn_tfl_byte(l, DEPTHWISE_ACTIVATION)};
    QN_TRY(take_filter(&filter, l, 1, perm, 4));
    return finish_conv(l, &w, filter, 0);
}

/* Filters [D, H, W, C, F]. */
qn_status qn_tfl_conv_3d(tfl_layer *l)
{
    static const int64_t perm[] = {4, 3, 0, 1, 2};
    qn_value *filter;
    tfl_window w = {
        .rank = 3,
        .same = qn_tfl_byte(l, CONV3D_PADDING) == QN_TFL_SAME,
        .strides = {qn_tfl_int(l, CONV3D_STRIDE_D, 0), qn_tfl_int(l, CONV3D_STRIDE_H, 0),
                    qn_tfl_int(l, CONV3D_STRIDE_W, 0)},
        .dilations = {qn_tfl_int(l, CONV3D_DILATION_D, 1), qn_tfl_int(l, CONV3D_DILATION_H, 1),
                      qn_tfl_int(l, CONV3D_DILATION_W, 1)},
        .activation = qn_tfl_byte(l, CONV3D_ACTIVATION)};
    QN_TRY(take_filter(&filter, l, 1, perm, 5));
    return finish_conv(l, &w, filter, 1);
}

/* ---- Transposed convolutions ----------------------------------------------------------------- */

/* What the sizes of input and output ask for: outputs that a convolution of the output's size would
 * pad are cut off, those that no window reaches are added. */
static void unpad_window(tfl_window *w, int64_t *added, const qn_value *x, const int64_t *sizes)
{
    for (size_t i = 0; i < w->rank; i++) {
        const int64_t whole = (qn_tfl_dim(x, (int64_t)i + 2) - 1) * w->strides[i] +
                              (w->kernel[i] - 1) * w->dilations[i] + 1;
        const int64_t cut = QN_MAX(whole - sizes[i], INT64_C(0));
        w->pads[i] = cut / 2;
        w->pads[w->rank + i] = cut - cut / 2;
        added[i] = QN_MAX(sizes[i] - whole, INT64_C(0));
    }
}

static qn_status build_transposed(qn_value **y, tfl_layer *l, qn_graph_build_inputs inputs,
                                  const tfl_window *w, const int64_t *added)
{
    const size_t count = inputs.at[2] ? 3 : 2;
    return qn_graph_build(y, l->b, &qn_op_ConvTranspose, (qn_graph_build_inputs){inputs.at, count},
                          QN_WITH(QN_A_INT_LIST("kernel_shape", w->kernel, w->rank),
                                  QN_A_INT_LIST("strides", w->strides, w->rank),
                                  QN_A_INT_LIST("dilations", w->dilations, w->rank),
                                  QN_A_INT_LIST("pads", w->pads, 2 * w->rank),
                                  QN_A_INT_LIST("output_padding", added, w->rank)));
}

/* `sizes`: the output's shape in the file's order, [N, spatial..., C]. */
static qn_status finish_transposed(tfl_layer *l, tfl_window *w, size_t first, const int64_t *sizes)
{
    static const int64_t perms[][5] = {{3, 0, 1, 2}, {4, 3, 0, 1, 2}};
    int64_t added[MAX_SPATIAL];
    qn_value *x, *filter, *bias, *y;
    QN_TRY(take_filter(&filter, l, first - 1, perms[w->rank - 2], w->rank + 2));
    QN_TRY(qn_tfl_real(&x, l, first, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_tfl_round_input(&x, l, x, first - 1, true));
    QN_TRY(keep_rounding(l, l->in[first]));
    QN_TRY(qn_tfl_bias(&bias, l, first + 1, first, first - 1));
    for (size_t i = 0; i < w->rank; i++)
        w->kernel[i] = qn_tfl_dim(filter, (int64_t)i + 2);
    w->same = false;
    QN_TRY(pad_window(w, l, x));
    for (size_t i = 0; i < w->rank; i++) {
        if (qn_tfl_dim(x, (int64_t)i + 2) < 0)
            return qn_tfl_unsupported(l, "the size of its input is not known");
        if (sizes[i] < 0 || sizes[i] > INT32_MAX)
            return qn_tfl_wrong(l, "an output of %lld", (long long)sizes[i]);
    }
    unpad_window(w, added, x, sizes);
    QN_TRY(build_transposed(&y, l, QN_INPUTS(x, filter, bias), w, added));
    return qn_tfl_put_active(l, y, QN_ORDER_CHANNELS_FIRST, w->activation);
}

/* The output's shape, filters [F, H, W, C], the input, a bias. */
qn_status qn_tfl_transpose_conv(tfl_layer *l)
{
    int64_t shape[QN_TFL_MAX_INTS];
    size_t count;
    tfl_window w = {.rank = 2,
                    .strides = {qn_tfl_int(l, CONV_STRIDE_H, 0), qn_tfl_int(l, CONV_STRIDE_W, 0)},
                    .dilations = {1, 1},
                    .activation = qn_tfl_byte(l, CONV_ACTIVATION)};
    QN_TRY(qn_tfl_sizes(shape, &count, l, 0));
    if (count != 4)
        return qn_tfl_wrong(l, "an output of %zu axes", count);
    return finish_transposed(l, &w, 2, shape + 1);
}

/* Filters [D, H, W, F, C]. */
qn_status qn_tfl_conv_3d_transpose(tfl_layer *l)
{
    int64_t shape[QN_TFL_MAX_INTS];
    size_t count;
    tfl_window w = {
        .rank = 3,
        .strides = {qn_tfl_int(l, CONV3D_STRIDE_D, 0), qn_tfl_int(l, CONV3D_STRIDE_H, 0),
                    qn_tfl_int(l, CONV3D_STRIDE_W, 0)},
        .dilations = {qn_tfl_int(l, CONV3D_DILATION_D, 1), qn_tfl_int(l, CONV3D_DILATION_H, 1),
                      qn_tfl_int(l, CONV3D_DILATION_W, 1)},
        .activation = qn_tfl_byte(l, CONV3D_ACTIVATION)};
    QN_TRY(qn_tfl_sizes(shape, &count, l, 0));
    if (count != 5)
        return qn_tfl_wrong(l, "an output of %zu axes", count);
    return finish_transposed(l, &w, 2, shape + 1);
}

/* MediaPipe's: the input, filters [F, H, W, C], a bias; the options are those of TensorFlow Lite's
 * C interface, padding (1: SAME, 2: VALID), stride over width, over height. */
qn_status qn_tfl_transpose_conv_bias(tfl_layer *l)
{
    int32_t options[3];
    int64_t sizes[2];
    qn_value *x;
    if (l->custom.length < sizeof options)
        return qn_tfl_wrong(l, "%zu bytes of options", l->custom.length);
    memcpy(options, l->custom.text, sizeof options);
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    tfl_tensor *in[] = {l->in[1], l->in[0], l->in[2]};
    tfl_window w = {.rank = 2, .strides = {options[2], options[1]}, .dilations = {1, 1}};
    for (size_t i = 0; i < 2; i++) {
        const int64_t size = qn_tfl_dim(x, (int64_t)i + 2);
        const int64_t kernel = l->in[1]->rank == 4 ? l->in[1]->dims[i + 1] : 0;
        sizes[i] = options[0] == 1 ? size * w.strides[i] : (size - 1) * w.strides[i] + kernel;
    }
    l->in = in;
    return finish_transposed(l, &w, 1, sizes);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static qn_status pool_window(qn_value **y, tfl_layer *l, tfl_window *w, qn_value *x)
{
    *w = (tfl_window){.rank = 2,
                      .same = qn_tfl_byte(l, CONV_PADDING) == QN_TFL_SAME,
                      .kernel = {qn_tfl_int(l, POOL_FILTER_H, 0), qn_tfl_int(l, POOL_FILTER_W, 0)},
                      .strides = {qn_tfl_int(l, CONV_STRIDE_H, 0), qn_tfl_int(l, CONV_STRIDE_W, 0)},
                      .dilations = {1, 1},
                      .activation = qn_tfl_byte(l, POOL_ACTIVATION)};
    QN_TRY(pad_window(w, l, x));
    bool whole = l->row->op == &qn_op_AveragePool && !w->open;
    for (size_t i = 0; i < w->rank; i++)
        whole = whole && w->kernel[i] == qn_tfl_dim(x, (int64_t)i + 2) && !w->pads[i] &&
                !w->pads[w->rank + i];
    return whole ? qn_tfl_unary(y, l, &qn_op_GlobalAveragePool, x)
                 : build_window(y, l, l->row->op, QN_INPUTS(x), w, 1);
}

/* LiteRT's mean of integers is their own, with halves rounded away from 0: integers of scale 1,
 * which come to one a little smaller. */
static qn_status average_integers(tfl_layer *l)
{
    tfl_window w;
    qn_value *x, *y, *scale, *zero;
    QN_TRY(qn_tfl_raw(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_graph_build_real(&scale, l->b, 1));
    QN_TRY(qn_tfl_number(&zero, l, x->type.dtype, 0));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_DequantizeLinear, QN_INPUTS(x, scale, zero), QN_PLAIN));
    QN_TRY(pool_window(&y, l, &w, x));
    QN_TRY(qn_graph_build_real(&scale, l->b, 1 - 0x1p-20f));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_QuantizeLinear, QN_INPUTS(y, scale, zero), QN_PLAIN));
    return qn_tfl_give_raw(l, 0, y, QN_ORDER_CHANNELS_FIRST);
}

qn_status qn_tfl_pool_2d(tfl_layer *l)
{
    tfl_window w;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    if (l->row->op == &qn_op_AveragePool && qn_tfl_is_quantized(l->in[0]) &&
        qn_tfl_is_alike(l->in[0], l->out[0]) && qn_tfl_byte(l, POOL_ACTIVATION) == 0)
        return average_integers(l);
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(pool_window(&y, l, &w, x));
    return qn_tfl_put_active(l, y, QN_ORDER_CHANNELS_FIRST, w.activation);
}

/* The root of the mean of squares, over what of a window lies inside. */
qn_status qn_tfl_l2_pool_2d(tfl_layer *l)
{
    tfl_window w;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_tfl_binary(&x, l, &qn_op_Mul, x, x));
    QN_TRY(pool_window(&y, l, &w, x));
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_Sqrt, y));
    return qn_tfl_put_active(l, y, QN_ORDER_CHANNELS_FIRST, w.activation);
}
