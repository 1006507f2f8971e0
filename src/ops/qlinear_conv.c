/* ConvInteger; QLinearConv, QLinearConvTranspose and those with a float result. Products are summed
 * in doubles, exactly: 2^53 holds 2^37 products of 8-bit and 2^19 of 16-bit numbers. */
#include <string.h>

#include "ops/conv.h"
#include "ops/quantize.h"

#define BYTES (QN_SET(QN_INT8) | QN_SET(QN_UINT8))
#define SCALE QN_SET(QN_FLOAT32)
#define BIAS (QN_SET(QN_INT32) | QN_SET(QN_INT64))

static qn_status zeroed(qn_eval *self, double **out, int64_t count)
{
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(double)));
    memset(block, 0, (size_t)count * sizeof(double));
    *out = block;
    return QN_OK;
}

/* ---- ConvInteger ----------------------------------------------------------------------------- */

static const qn_attr_spec conv_specs[] = {QN_CONV_ATTRS};
static const qn_port int32_out[] = {{"y", '\0', QN_SET(QN_INT32), 0}};
static const qn_port conv_integer_in[] = {{"x", 'X', BYTES, 0},
                                          {"w", 'W', BYTES, 0},
                                          {"x_zero_point", 'X', BYTES, QN_OPTIONAL},
                                          {"w_zero_point", 'W', BYTES, QN_OPTIONAL}};

/* Input p is a single number or one for each filter of the weights w. */
static qn_status check_filters(const qn_infer *self, int32_t p, int32_t w)
{
    const qn_type *weights = self->in[w];
    qn_dim merged;
    if (qn_infer_rank(self, p) < 1 || (self->in[p]->rank == 1 && self->in[p]->dims[0].value == 1))
        return QN_OK;
    if (self->in[p]->rank != 1 ||
        (weights->rank > 0 && !qn_dim_merge(&merged, self->in[p]->dims[0], weights->dims[0])))
        return qn_infer_fail(self, "input %d must be a single number or one per filter", p);
    return QN_OK;
}

static double per_filter(const qn_tensor *p, int64_t filter)
{
    return qn_tensor_f64(p, qn_tensor_count(p) == 1 ? 0 : filter);
}

/* Sums of products of inputs x and w without their zero points (x[1], w[1]). */
static qn_status conv_sums(double **out, qn_conv *conv, qn_eval *self, const int32_t x[2],
                           const int32_t w[2])
{
    const qn_tensor *in = self->in[x[0]], *weights = self->in[w[0]];
    const qn_tensor *x_zero = qn_eval_in(self, x[1]), *w_zero = qn_eval_in(self, w[1]);
    const int64_t in_count = qn_tensor_count(in), w_count = qn_tensor_count(weights);
    double *a, *b;
    QN_TRY(qn_conv_make(conv, self, in, weights));
    QN_TRY(qn_eval_doubles(self, &a, in));
    QN_TRY(qn_eval_doubles(self, &b, weights));
    for (int64_t i = 0; x_zero && i < in_count; i++)
        a[i] -= qn_tensor_f64(x_zero, 0);
    for (int64_t i = 0; w_zero && i < w_count; i++)
        b[i] -= per_filter(w_zero, i / (w_count / conv->filters));
    QN_TRY(zeroed(self, out, qn_tensor_count(self->out[0])));
    return qn_conv_f64(*out, self, conv, a, b);
}

static qn_status conv_integer_infer(qn_infer *self)
{
    QN_TRY(qn_infer_single(self, 2));
    QN_TRY(check_filters(self, 3, 1));
    return qn_infer_conv(self, 0, 1, -1, QN_INT32);
}

static int64_t conv_integer_macs(const qn_infer *self)
{
    return qn_conv_macs(self, 1);
}

static qn_status conv_integer_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    qn_conv conv;
    double *sums;
    QN_TRY(conv_sums(&sums, &conv, self, (const int32_t[2]){0, 2}, (const int32_t[2]){1, 3}));
    qn_store_f64(out->data, out->dtype, 0, sums, qn_tensor_count(out));
    return QN_OK;
}

const qn_op qn_op_ConvInteger = {.name = "ConvInteger",
                                 .domain = "",
                                 .since = 10,
                                 QN_PORTS(in, conv_integer_in),
                                 QN_PORTS(out, int32_out),
                                 QN_ATTRS(conv_specs, qn_window_attrs),
                                 .quant = QN_QUANT_ALREADY,
                                 .infer = conv_integer_infer,
                                 .eval = conv_integer_eval,
                                 .macs = conv_integer_macs,
                                 .brief = "convolution of 8-bit integers into int32"};

/* ---- QLinearConv, ConvIntegerToFloat, QLinearConvTranspose ----------------------------------- */

static const qn_type_rule int16_types[] = {{QN_NO_OPSET, QN_SET_QUANTIZED_WIDE | QN_SET(QN_INT64)}};
#define PRODUCT_PORTS                                                                              \
    {"x", 'X', QN_SET_QUANTIZED, 0}, {"x_scale", '\0', SCALE, 0},                                  \
        {"x_zero_point", 'X', QN_SET_QUANTIZED, 0}, {"w", 'W', QN_SET_QUANTIZED, 0},               \
        {"w_scale", '\0', SCALE, 0},                                                               \
    {                                                                                              \
        "w_zero_point", 'W', QN_SET_QUANTIZED, 0                                                   \
    }
static const qn_port qlinear_conv_in[] = {PRODUCT_PORTS,
                                          {"y_scale", '\0', SCALE, 0},
                                          {"y_zero_point", 'Y', QN_SET_QUANTIZED, 0},
                                          {"B", '\0', BIAS, QN_OPTIONAL}};
static const qn_port qlinear_conv_out[] = {{"y", 'Y', QN_SET_QUANTIZED, 0}};
static const qn_port to_float_in[] = {PRODUCT_PORTS, {"B", '\0', BIAS, QN_OPTIONAL}};
static const qn_port to_float_out[] = {{"y", '\0', SCALE, 0}};

/* x has one scale; the weights have one, or one per filter. */
static qn_status check_products(const qn_infer *self)
{
    QN_TRY(qn_infer_single(self, 1));
    QN_TRY(qn_infer_single(self, 2));
    QN_TRY(check_filters(self, 4, 3));
    return check_filters(self, 5, 3);
}

static qn_status qlinear_conv_infer(qn_infer *self)
{
    QN_TRY(check_products(self));
    QN_TRY(qn_infer_single(self, 6));
    QN_TRY(qn_infer_single(self, 7));
    return qn_infer_conv(self, 0, 3, 8, self->in[7]->dtype);
}

static qn_status to_float_infer(qn_infer *self)
{
    QN_TRY(check_products(self));
    return qn_infer_conv(self, 0, 3, 6, QN_FLOAT32);
}

static int64_t qlinear_conv_macs(const qn_infer *self)
{
    return qn_conv_macs(self, 3);
}

/* Sums of products [batch, filters, area] to the output; `bias` names the input that has it. */
static qn_status finish(qn_eval *self, const double *sums, int64_t filters, int32_t bias)
{
    const qn_tensor *out = self->out[0], *b = qn_eval_in(self, bias);
    const int64_t count = qn_tensor_count(out);
    const bool integers = out->dtype != QN_FLOAT32, is_int64 = qn_mac_is_int64(self, 0, 3);
    qn_qparams x, y = qn_qparams_of_type(QN_UINT8);
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    if (integers)
        QN_TRY(qn_eval_qparams(&y, self, 6, 7));
    const qn_mac_end end = {b, is_int64, y, qn_limits_of(out->dtype)};
    const bool twice = y.requantization == QN_REQUANTIZE_TWICE;
    const bool is_signed = qn_dtype_get(self->in[0]->dtype)->kind == QN_KIND_INT;
    const int64_t area = count ? count / out->dims[0] / filters : 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t filter = i / area % filters;
        const float w = (float)per_filter(self->in[4], filter), scale = x.scale * w;
        if (!integers) {
            ((float *)out->data)[i] = qn_mac_sum(sums[i], b, filter, is_int64) * scale;
            continue;
        }
        const qn_twice m = twice ? qn_twice_of(x.scale, w, y.scale, is_signed) : (qn_twice){0};
        const int64_t q = twice ? qn_mac_requantize_twice(&end, sums[i], filter, &m)
                                : qn_mac_requantize(&end, sums[i], filter, scale);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

static qn_status eval_conv(qn_eval *self, int32_t bias)
{
    qn_conv conv;
    double *sums;
    QN_TRY(conv_sums(&sums, &conv, self, (const int32_t[2]){0, 2}, (const int32_t[2]){3, 5}));
    return finish(self, sums, conv.filters, bias);
}

static qn_status qlinear_conv_eval(qn_eval *self)
{
    return eval_conv(self, 8);
}

static qn_status to_float_eval(qn_eval *self)
{
    return eval_conv(self, 6);
}

const qn_op qn_op_QLinearConv = {.name = "QLinearConv",
                                 .domain = "",
                                 .since = 10,
                                 QN_PORTS(in, qlinear_conv_in),
                                 QN_PORTS(out, qlinear_conv_out),
                                 QN_ATTRS(conv_specs, qn_window_attrs),
                                 QN_TYPE_RULES(int16_types),
                                 .quant = QN_QUANT_ALREADY,
                                 .infer = qlinear_conv_infer,
                                 .eval = qlinear_conv_eval,
                                 .macs = qlinear_conv_macs,
                                 .brief = "convolution of quantized tensors"};

const qn_op qn_op_qn_ConvIntegerToFloat = {.name = "ConvIntegerToFloat",
                                           .domain = "quench",
                                           .since = 1,
                                           QN_PORTS(in, to_float_in),
                                           QN_PORTS(out, to_float_out),
                                           QN_ATTRS(conv_specs, qn_window_attrs),
                                           .quant = QN_QUANT_ALREADY,
                                           .infer = to_float_infer,
                                           .eval = to_float_eval,
                                           .macs = qlinear_conv_macs,
                                           .brief =
                                               "convolution of quantized tensors into float32"};

/* ---- Transposed: scales of the weights [C, filters / group, ...] belong to filters ----------- */

/* Input p is a single number or one for each filter. */
static qn_status check_transposed(const qn_infer *self, int32_t p)
{
    const int64_t group = ((const qn_window_attrs *)self->attrs)->group;
    const qn_type *w = self->in[3];
    qn_dim merged;
    if (qn_infer_rank(self, p) < 1 || (self->in[p]->rank == 1 && self->in[p]->dims[0].value == 1))
        return QN_OK;
    if (self->in[p]->rank != 1 ||
        (w->rank > 1 &&
         !qn_dim_merge(&merged, self->in[p]->dims[0], qn_dim_mul(w->dims[1], qn_dim_of(group)))))
        return qn_infer_fail(self, "input %d must be a single number or one per filter", p);
    return QN_OK;
}

static qn_status transpose_infer(qn_infer *self)
{
    static const int32_t singles[] = {1, 2, 6, 7, -1};
    QN_TRY(qn_infer_singles(self, singles));
    QN_TRY(check_transposed(self, 4));
    QN_TRY(check_transposed(self, 5));
    return qn_infer_conv_transpose(self, 0, 3, 8, self->in[7]->dtype);
}

static qn_status transpose_float_infer(qn_infer *self)
{
    static const int32_t singles[] = {1, 2, -1};
    QN_TRY(qn_infer_singles(self, singles));
    QN_TRY(check_transposed(self, 4));
    QN_TRY(check_transposed(self, 5));
    return qn_infer_conv_transpose(self, 0, 3, 6, QN_FLOAT32);
}

static int64_t transpose_macs(const qn_infer *self)
{
    return qn_conv_transpose_macs(self, 3);
}

static qn_status eval_transposed(qn_eval *self, int32_t bias)
{
    const qn_tensor *in = self->in[0], *weights = self->in[3];
    const int64_t in_count = qn_tensor_count(in), w_count = qn_tensor_count(weights);
    const int64_t group = ((const qn_window_attrs *)self->attrs)->group;
    double *x, *w, *sums;
    QN_TRY(qn_eval_doubles(self, &x, in));
    QN_TRY(qn_eval_doubles(self, &w, weights));
    for (int64_t i = 0; i < in_count; i++)
        x[i] -= qn_tensor_f64(self->in[2], 0);
    for (int64_t i = 0; i < w_count; i++) { /* channel c belongs to group c / (C / group) */
        const int64_t row = i / (w_count / weights->dims[0] / weights->dims[1]);
        const int64_t g = row / weights->dims[1] / (weights->dims[0] / group);
        w[i] -= per_filter(self->in[5], g * weights->dims[1] + row % weights->dims[1]);
    }
    QN_TRY(zeroed(self, &sums, qn_tensor_count(self->out[0])));
    QN_TRY(qn_conv_transpose_f64(sums, self, 3, x, w));
    return finish(self, sums, self->out[0]->dims[1], bias);
}

static qn_status transpose_eval(qn_eval *self)
{
    return eval_transposed(self, 8);
}

static qn_status transpose_float_eval(qn_eval *self)
{
    return eval_transposed(self, 6);
}

const qn_op qn_op_qn_QLinearConvTranspose = {.name = "QLinearConvTranspose",
                                             .domain = "quench",
                                             .since = 1,
                                             QN_PORTS(in, qlinear_conv_in),
                                             QN_PORTS(out, qlinear_conv_out),
                                             QN_ATTRS(qn_conv_transpose_specs, qn_window_attrs),
                                             .quant = QN_QUANT_ALREADY,
                                             .infer = transpose_infer,
                                             .eval = transpose_eval,
                                             .macs = transpose_macs,
                                             .brief =
                                                 "transposed convolution of quantized tensors"};

const qn_op qn_op_qn_ConvTransposeIntegerToFloat = {
    .name = "ConvTransposeIntegerToFloat",
    .domain = "quench",
    .since = 1,
    QN_PORTS(in, to_float_in),
    QN_PORTS(out, to_float_out),
    QN_ATTRS(qn_conv_transpose_specs, qn_window_attrs),
    .quant = QN_QUANT_ALREADY,
    .infer = transpose_float_infer,
    .eval = transpose_float_eval,
    .macs = transpose_macs,
    .brief = "transposed convolution of quantized tensors into float32"};
