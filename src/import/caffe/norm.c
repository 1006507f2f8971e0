/* Layers that normalize and scale: LRN, BatchNorm, BN, Scale, Bias, MVN, Normalize. */
#include <string.h>

#include "import/caffe/caffe.h"

/* ---- LRN ------------------------------------------------------------------------------------- */

/* x / (1 + alpha * mean of x^2 in the window) ^ beta, where the padding counts. */
static qn_status within_channel(qn_value **out, qn_caffe_net *net, qn_value *x,
                                const qn_proto_message *param)
{
    const int64_t size = qn_proto_int(param, QN_CAFFE_LRN_LOCAL_SIZE, 5), pad = size / 2;
    const int64_t sizes[] = {size, size}, pads[] = {pad, pad, pad, pad};
    qn_value *y;
    if (x->type.rank != 4)
        return QN_CAFFE_REFUSE(net, "within channels, of a blob of rank %d", x->type.rank);
    QN_TRY(qn_caffe_op2(&y, net, &qn_op_Mul, x, x));
    QN_TRY(
        qn_graph_build(&y, &net->builder, &qn_op_AveragePool, QN_INPUTS(y),
                       QN_WITH(QN_A_INT_LIST("kernel_shape", sizes, 2),
                               QN_A_INT_LIST("pads", pads, 4), QN_A_INT("count_include_pad", 1))));
    QN_TRY(qn_caffe_op_real(&y, net, &qn_op_Mul, y, qn_proto_real(param, QN_CAFFE_LRN_ALPHA, 1)));
    QN_TRY(qn_caffe_op_real(&y, net, &qn_op_Add, y, 1));
    QN_TRY(qn_caffe_op_real(&y, net, &qn_op_Pow, y, qn_proto_real(param, QN_CAFFE_LRN_BETA, 0.75)));
    return qn_caffe_op2(out, net, &qn_op_Div, x, y);
}

qn_status qn_caffe_lrn(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_LRN);
    const int64_t size = qn_proto_int(param, QN_CAFFE_LRN_LOCAL_SIZE, 5);
    qn_value *x, *y;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_check(net, "local_size", size, 1, QN_CAFFE_MOST));
    if (size % 2 == 0)
        return QN_CAFFE_FAIL(net, "local_size is %lld; it is to be odd", (long long)size);
    if (qn_proto_int(param, QN_CAFFE_LRN_NORM_REGION, 0) == QN_CAFFE_WITHIN_CHANNEL) {
        QN_TRY(within_channel(&y, net, x, param));
        return qn_caffe_out(net, layer, 0, y);
    }
    QN_TRY(qn_graph_build(
        &y, &net->builder, &qn_op_LRN, QN_INPUTS(x),
        QN_WITH(QN_A_INT("size", size),
                QN_A_REAL("alpha", (float)qn_proto_real(param, QN_CAFFE_LRN_ALPHA, 1)),
                QN_A_REAL("beta", (float)qn_proto_real(param, QN_CAFFE_LRN_BETA, 0.75)),
                QN_A_REAL("bias", (float)qn_proto_real(param, QN_CAFFE_LRN_K, 1)))));
    return qn_caffe_out(net, layer, 0, y);
}

/* ---- BatchNorm ------------------------------------------------------------------------------- */

/* ONNX's four vectors, of the file or of ones and zeros. */
typedef struct batch_norm {
    int64_t channels;
    float *scale, *bias, *mean, *variance;
    float eps;
} batch_norm;

static qn_status fill(float **out, qn_caffe_net *net, int64_t count, float value)
{
    *out = qn_arena_array(&net->builder.model->arena, (size_t)count, sizeof **out);
    QN_TRY_ALLOC(net->ctx, *out);
    for (int64_t i = 0; i < count; i++)
        (*out)[i] = value;
    return QN_OK;
}

static qn_status normalize(qn_value **out, qn_caffe_net *net, qn_value *x, const batch_norm *n)
{
    const float *const lists[] = {n->scale, n->bias, n->mean, n->variance};
    qn_value *in[5] = {x};
    for (size_t i = 0; i < QN_COUNT_OF(lists); i++)
        QN_TRY(qn_graph_build_reals(&in[1 + i], &net->builder, lists[i], (size_t)n->channels));
    return qn_graph_build(out, &net->builder, &qn_op_BatchNormalization,
                          (qn_graph_build_inputs){in, QN_COUNT_OF(in)},
                          QN_WITH(QN_A_REAL("epsilon", n->eps)));
}

/* The file has sums, and in its third blob what they are to be divided by; 0 makes them 0. */
static qn_status read_statistics(batch_norm *n, qn_caffe_net *net, const qn_caffe_layer *layer)
{
    float *factor;
    QN_TRY(qn_caffe_floats(&n->mean, net, layer, 0, n->channels));
    QN_TRY(qn_caffe_floats(&n->variance, net, layer, 1, n->channels));
    if (!qn_caffe_has_blob(layer, 2))
        return QN_OK;
    QN_TRY(qn_caffe_floats(&factor, net, layer, 2, 1));
    const float scale = *factor == 0 ? 0 : 1 / *factor;
    for (int64_t i = 0; i < n->channels; i++) {
        n->mean[i] *= scale;
        n->variance[i] *= scale;
    }
    return QN_OK;
}

/* (x - mean) / sqrt(variance + eps) of the numbers of each channel that are there. */
static qn_status normalize_locally(qn_value **out, qn_caffe_net *net, qn_value *x, double eps)
{
    int64_t axes[QN_MAX_RANK];
    qn_value *list, *mean, *square;
    size_t count = 0;
    for (int64_t i = 0; i < x->type.rank; i++) {
        if (i != 1)
            axes[count++] = i;
    }
    QN_TRY(qn_graph_build_ints(&list, &net->builder, axes, count));
    QN_TRY(qn_caffe_op2(&mean, net, &qn_op_ReduceMean, x, list));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Sub, x, mean));
    QN_TRY(qn_caffe_op2(&square, net, &qn_op_Mul, x, x));
    QN_TRY(qn_caffe_op2(&square, net, &qn_op_ReduceMean, square, list));
    QN_TRY(qn_caffe_op_real(&square, net, &qn_op_Add, square, eps));
    QN_TRY(qn_caffe_op1(&square, net, &qn_op_Sqrt, square));
    return qn_caffe_op2(out, net, &qn_op_Div, x, square);
}

qn_status qn_caffe_batch_norm(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_BATCH_NORM);
    const bool has_scale = qn_proto_int(param, QN_CAFFE_BATCH_NORM_SCALE_BIAS, 0) != 0;
    batch_norm n = {.eps = (float)qn_proto_real(param, QN_CAFFE_BATCH_NORM_EPS, 1e-5)};
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    if (x->type.rank < 2)
        return QN_CAFFE_REFUSE(net, "a blob of rank %d has no channels", x->type.rank);
    QN_TRY(qn_caffe_count(&n.channels, net, x, 1, 2));
    if (!qn_proto_int(param, QN_CAFFE_BATCH_NORM_USE_GLOBAL_STATS, 1)) {
        if (has_scale)
            return QN_CAFFE_REFUSE(net, "scale_bias with the statistics of the batch");
        QN_TRY(normalize_locally(&x, net, x, n.eps));
        return qn_caffe_out(net, layer, 0, x);
    }
    QN_TRY(read_statistics(&n, net, layer));
    if (has_scale) {
        QN_TRY(qn_caffe_floats(&n.scale, net, layer, 3, n.channels));
        QN_TRY(qn_caffe_floats(&n.bias, net, layer, 4, n.channels));
    } else {
        QN_TRY(fill(&n.scale, net, n.channels, 1));
        QN_TRY(fill(&n.bias, net, n.channels, 0));
    }
    QN_TRY(normalize(&x, net, x, &n));
    return qn_caffe_out(net, layer, 0, x);
}

/* The BN of PSPNet (slope, bias, mean, variance), and that of SegNet, made for use (scale,
 * shift). */
qn_status qn_caffe_bn(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_BN);
    const bool has_statistics = qn_caffe_has_blob(layer, 2);
    batch_norm n = {
        .eps = has_statistics ? (float)qn_proto_real(param, QN_CAFFE_BATCH_NORM_EPS, 1e-5) : 0};
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    if (x->type.rank < 2)
        return QN_CAFFE_REFUSE(net, "a blob of rank %d has no channels", x->type.rank);
    QN_TRY(qn_caffe_count(&n.channels, net, x, 1, 2));
    QN_TRY(qn_caffe_floats(&n.scale, net, layer, 0, n.channels));
    QN_TRY(qn_caffe_floats(&n.bias, net, layer, 1, n.channels));
    if (has_statistics) {
        QN_TRY(qn_caffe_floats(&n.mean, net, layer, 2, n.channels));
        QN_TRY(qn_caffe_floats(&n.variance, net, layer, 3, n.channels));
    } else {
        QN_TRY(fill(&n.mean, net, n.channels, 0));
        QN_TRY(fill(&n.variance, net, n.channels, 1));
    }
    QN_TRY(normalize(&x, net, x, &n));
    return qn_caffe_out(net, layer, 0, x);
}

/* ---- Scale and Bias -------------------------------------------------------------------------- */

/* The axes from `axis` on that the second blob or the weights have; -1: all. */
typedef struct span {
    int64_t axis, count;
} span;

static qn_status read_span(span *s, qn_caffe_net *net, const qn_proto_message *param,
                           const qn_value *x, const qn_value *other)
{
    s->axis = qn_proto_int(param, QN_CAFFE_SCALE_AXIS, 1);
    s->count = other ? other->type.rank : qn_proto_int(param, QN_CAFFE_SCALE_NUM_AXES, 1);
    if (s->count == 0)
        s->axis = 0;
    else
        QN_TRY(qn_caffe_axis(&s->axis, net, x->type.rank));
    if (s->count == -1)
        s->count = x->type.rank - s->axis;
    return qn_caffe_check(net, "num_axes", s->count, 0, x->type.rank - s->axis);
}

/* Blob i with its axes where the span has them in x: axes of 1 behind it. */
static qn_status span_constant(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer,
                               size_t i, const qn_value *x, const span *s)
{
    int64_t dims[QN_MAX_RANK];
    const int32_t behind = (int32_t)(x->type.rank - s->axis);
    for (int32_t k = 0; k < behind; k++)
        dims[k] = k < s->count ? qn_caffe_dim(x, s->axis + k) : 1;
    const qn_type stored = qn_type_tensor(QN_FLOAT32, (int32_t)s->count, dims);
    const qn_type wanted = qn_type_tensor(QN_FLOAT32, s->count ? behind : 0, dims);
    return qn_caffe_constant_as(out, net, layer, i, &stored, &wanted);
}

static qn_status span_operand(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer,
                              const qn_value *x, span *s)
{
    const bool is_bias = strcmp(layer->type, "Bias") == 0;
    const qn_proto_message *param =
        qn_caffe_param(layer, is_bias ? QN_CAFFE_LAYER_BIAS : QN_CAFFE_LAYER_SCALE);
    int64_t dims[QN_MAX_RANK], known = 0;
    qn_value *other = NULL;
    if (layer->bottoms.count > 1)
        QN_TRY(qn_caffe_in(&other, net, layer, 1));
    QN_TRY(read_span(s, net, param, x, other));
    if (!other)
        return span_constant(out, net, layer, 0, x, s);
    *out = other;
    if (s->axis + s->count == x->type.rank || s->count == 0)
        return QN_OK;
    for (int32_t k = 0; k < x->type.rank - s->axis; k++) {
        dims[k] = k < s->count ? qn_caffe_dim(other, k) : 1;
        known += dims[k] >= 0;
    }
    if (known < x->type.rank - s->axis)
        return QN_CAFFE_REFUSE(net, "the shape of '%s' depends on the data", other->name);
    return qn_caffe_reshape(out, net, other, (int32_t)(x->type.rank - s->axis), dims);
}

qn_status qn_caffe_scale(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_SCALE);
    span s;
    qn_value *x, *operand;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(span_operand(&operand, net, layer, x, &s));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Mul, x, operand));
    if (qn_proto_int(param, QN_CAFFE_SCALE_BIAS_TERM, 0)) {
        QN_TRY(span_constant(&operand, net, layer, layer->bottoms.count > 1 ? 0 : 1, x, &s));
        QN_TRY(qn_caffe_op2(&x, net, &qn_op_Add, x, operand));
    }
    return qn_caffe_out(net, layer, 0, x);
}

qn_status qn_caffe_bias(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    span s;
    qn_value *x, *operand;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(span_operand(&operand, net, layer, x, &s));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Add, x, operand));
    return qn_caffe_out(net, layer, 0, x);
}

/* ---- MVN and Normalize ----------------------------------------------------------------------- */

/* x - mean, divided by the deviation + eps, of each channel or of all of a picture. */
qn_status qn_caffe_mvn(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_MVN);
    const bool is_across = qn_proto_int(param, QN_CAFFE_MVN_ACROSS_CHANNELS, 0) != 0;
    qn_value *x, *y;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    const int64_t range[2] = {is_across ? 1 : 2, x->type.rank};
    if (range[0] >= range[1])
        return QN_CAFFE_REFUSE(net, "a blob of rank %d", x->type.rank);
    QN_TRY(qn_caffe_reduce(&y, net, &qn_op_ReduceMean, x, range, true));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Sub, x, y));
    if (qn_proto_int(param, QN_CAFFE_MVN_NORMALIZE_VARIANCE, 1)) {
        QN_TRY(qn_caffe_op2(&y, net, &qn_op_Mul, x, x));
        QN_TRY(qn_caffe_reduce(&y, net, &qn_op_ReduceMean, y, range, true));
        QN_TRY(qn_caffe_op1(&y, net, &qn_op_Sqrt, y));
        QN_TRY(
            qn_caffe_op_real(&y, net, &qn_op_Add, y, qn_proto_real(param, QN_CAFFE_MVN_EPS, 1e-9)));
        QN_TRY(qn_caffe_op2(&x, net, &qn_op_Div, x, y));
    }
    return qn_caffe_out(net, layer, 0, x);
}

/* x / sqrt(sum of x^2 + eps) * scale, of the whole picture or at each place. */
qn_status qn_caffe_normalize(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_NORM);
    const bool is_shared = qn_proto_int(param, QN_CAFFE_NORMALIZE_CHANNEL_SHARED, 1) != 0;
    int64_t dims[QN_MAX_RANK];
    qn_value *x, *y, *scale;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    if (x->type.rank < 2)
        return QN_CAFFE_REFUSE(net, "a blob of rank %d has no channels", x->type.rank);
    const bool is_across = qn_proto_int(param, QN_CAFFE_NORMALIZE_ACROSS_SPATIAL, 1) != 0;
    const int64_t range[2] = {1, is_across ? x->type.rank : 2};
    dims[0] = is_shared ? 1 : qn_caffe_dim(x, 1);
    for (int32_t i = 1; i < x->type.rank - 1; i++)
        dims[i] = 1;
    const qn_type stored = qn_type_tensor(QN_FLOAT32, 1, dims);
    const qn_type wanted = qn_type_tensor(QN_FLOAT32, x->type.rank - 1, dims);
    QN_TRY(qn_caffe_constant_as(&scale, net, layer, 0, &stored, &wanted));
    QN_TRY(qn_caffe_op2(&y, net, &qn_op_Mul, x, x));
    QN_TRY(qn_caffe_reduce(&y, net, &qn_op_ReduceSum, y, range, true));
    QN_TRY(qn_caffe_op_real(&y, net, &qn_op_Add, y,
                            qn_proto_real(param, QN_CAFFE_NORMALIZE_EPS, 1e-10)));
    QN_TRY(qn_caffe_op1(&y, net, &qn_op_Sqrt, y));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Div, x, y));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Mul, x, scale));
    return qn_caffe_out(net, layer, 0, x);
}
