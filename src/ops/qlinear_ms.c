/* Quantized operators of com.microsoft by the formulas of docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/qlinear.h"
#include "ops/window.h"

#define SCALE QN_SET(QN_FLOAT32)

/* ---- QLinearAdd, QLinearMul ------------------------------------------------------------------ */

static const qn_port binary_in[] = {{"A", 'A', QN_SET_QUANTIZED, 0},
                                    {"A_scale", '\0', SCALE, 0},
                                    {"A_zero_point", 'A', QN_SET_QUANTIZED, QN_OPTIONAL},
                                    {"B", 'B', QN_SET_QUANTIZED, 0},
                                    {"B_scale", '\0', SCALE, 0},
                                    {"B_zero_point", 'B', QN_SET_QUANTIZED, QN_OPTIONAL},
                                    {"C_scale", '\0', SCALE, 0},
                                    {"C_zero_point", '\0', QN_SET_QUANTIZED, QN_OPTIONAL}};
static const qn_port same_out[] = {{"C", '\0', QN_SET_QUANTIZED, 0}};

static qn_status binary_infer(qn_infer *self)
{
    static const int32_t singles[] = {1, 2, 4, 5, 6, 7, -1};
    const qn_type *const pair[2] = {self->in[0], self->in[3]};
    qn_infer two = *self;
    QN_TRY(qn_infer_singles(self, singles));
    two.in = pair;
    two.n_in = 2;
    return qn_infer_broadcast(&two, 0, qn_infer_result_type(self, 7), 0, 2);
}

typedef struct binary {
    qn_qparams a, b, c;
} binary;
typedef int64_t combine_fn(int64_t a, int64_t b, const binary *p, qn_limits range);

static int64_t add_fixed_point(int64_t a, int64_t b, const binary *p, qn_limits range)
{
    qn_normal f[2];
    qn_normal_pair(f, (double)(p->a.scale / p->c.scale), (double)(p->b.scale / p->c.scale));
    const int64_t sum = (a - p->a.zero) * f[0].multiplier + (b - p->b.zero) * f[1].multiplier;
    const int64_t y = qn_normal_shift(sum, f[0].shift) + p->c.zero;
    return QN_MIN(QN_MAX(y, range.min), range.max);
}

/* Two fused multiply-adds over what the zero points amount to. */
static int64_t add(int64_t a, int64_t b, const binary *p, qn_limits range)
{
    const float ratios[2] = {p->a.scale / p->c.scale, p->b.scale / p->c.scale};
    if (qn_qparams_is_fixed_point(&p->c))
        return add_fixed_point(a, b, p, range);
    const float offset = qn_sum_offset(ratios, (const int64_t[3]){p->a.zero, p->b.zero, p->c.zero});
    const float inner = fmaf((float)b, ratios[1], offset);
    return qn_round_clamp((double)fmaf((float)a, ratios[0], inner), 0, range);
}

static int64_t multiply(int64_t a, int64_t b, const binary *p, qn_limits range)
{
    const int64_t product = (a - p->a.zero) * (b - p->b.zero);
    const float multiplier = qn_multiplier(p->a.scale, p->b.scale, p->c.scale);
    return qn_requantize_to(product, multiplier, &p->c, range);
}

static qn_status eval_binary(qn_eval *self, combine_fn *combine)
{
    const qn_tensor *a = self->in[0], *b = self->in[3], *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    const qn_limits range = qn_limits_of(out->dtype);
    int64_t a_strides[QN_MAX_RANK], b_strides[QN_MAX_RANK];
    binary p;
    QN_TRY(qn_eval_qparams(&p.a, self, 1, 2));
    QN_TRY(qn_eval_qparams(&p.b, self, 4, 5));
    QN_TRY(qn_eval_qparams(&p.c, self, 6, 7));
    qn_broadcast_strides(a_strides, a, out->rank, out->dims);
    qn_broadcast_strides(b_strides, b, out->rank, out->dims);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = qn_tensor_i64(a, qn_offset_of(i, out->rank, out->dims, a_strides));
        const int64_t y = qn_tensor_i64(b, qn_offset_of(i, out->rank, out->dims, b_strides));
        const int64_t q = combine(x, y, &p, range);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

static qn_status add_eval(qn_eval *self)
{
    return eval_binary(self, add);
}

static qn_status multiply_eval(qn_eval *self)
{
    return eval_binary(self, multiply);
}

#define MICROSOFT(Name, IN, ATTRS, INFER, EVAL, BRIEF)                                             \
    const qn_op qn_op_ms_##Name = {.name = #Name,                                                  \
                                   .domain = "com.microsoft",                                      \
                                   .since = 1,                                                     \
                                   QN_PORTS(in, IN),                                               \
                                   QN_PORTS(out, same_out),                                        \
                                   ATTRS,                                                          \
                                   QN_VERSIONS(qn_same_type_versions),                             \
                                   QN_TYPE_RULES(qn_int16_type_rules),                             \
                                   .quant = QN_QUANT_ALREADY,                                      \
                                   .infer = INFER,                                                 \
                                   .eval = EVAL,                                                   \
                                   .brief = BRIEF};

MICROSOFT(QLinearAdd, binary_in, .n_attrs = 0, binary_infer, add_eval, "a + b of quantized tensors")
MICROSOFT(QLinearMul, binary_in, .n_attrs = 0, binary_infer, multiply_eval,
          "a * b of quantized tensors")

/* ---- QLinearSigmoid, QLinearLeakyRelu -------------------------------------------------------- */

static const qn_port unary_in[] = {{"X", 'X', QN_SET_QUANTIZED, 0},
                                   {"X_scale", '\0', SCALE, 0},
                                   {"X_zero_point", 'X', QN_SET_QUANTIZED, QN_OPTIONAL},
                                   {"Y_scale", '\0', SCALE, 0},
                                   {"Y_zero_point", '\0', QN_SET_QUANTIZED, QN_OPTIONAL}};
static const qn_attr_spec leaky_specs[] = {QN_FLOAT_ATTR(qn_activation_attrs, alpha, 0.01f)};
static const int32_t unary_singles[] = {1, 2, 3, 4, -1};

static qn_status unary_infer(qn_infer *self)
{
    QN_TRY(qn_infer_singles(self, unary_singles));
    qn_infer_copy_dims(self, 0, 0, qn_infer_result_type(self, 4));
    return QN_OK;
}

static double sigmoid(double x, const void *attrs)
{
    (void)attrs;
    return qn_real_sigmoid(x);
}

static double leaky_relu(double x, const void *attrs)
{
    return x >= 0 ? x : (double)((const qn_activation_attrs *)attrs)->alpha * x;
}

static qn_status eval_unary(qn_eval *self, qn_unary_f64 *f)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(in);
    const qn_limits range = qn_limits_of(out->dtype);
    qn_qparams x, y;
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 3, 4));
    for (int64_t i = 0; i < count; i++) {
        const double real = (double)qn_dequantize(qn_tensor_i64(in, i), &x);
        const int64_t q = qn_quantize((float)f(real, self->attrs), &y, range);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

static qn_status sigmoid_eval(qn_eval *self)
{
    return eval_unary(self, sigmoid);
}

static qn_status leaky_eval(qn_eval *self)
{
    return eval_unary(self, leaky_relu);
}

MICROSOFT(QLinearSigmoid, unary_in, .n_attrs = 0, unary_infer, sigmoid_eval,
          "Sigmoid of a quantized tensor")
MICROSOFT(QLinearLeakyRelu, unary_in, QN_ATTRS(leaky_specs, qn_activation_attrs), unary_infer,
          leaky_eval, "LeakyRelu of a quantized tensor")

/* ---- QLinearConcat: Y_scale, Y_zero_point, then (tensor, scale, zero point) for each part ---- */

static const qn_attr_spec concat_specs[] = {
    QN_INT_ATTR(qn_qconcat_attrs, axis, QN_ABSENT, .required = true)};
static const qn_port concat_in[] = {{"Y_scale", '\0', SCALE, 0},
                                    {"Y_zero_point", '\0', QN_SET_QUANTIZED, 0},
                                    {"inputs", '\0', QN_SET_QUANTIZED | SCALE, QN_VARIADIC}};

static qn_status concat_part(const qn_infer *self, int32_t i, int64_t axis, qn_dim *dims)
{
    const qn_type *part = self->in[i], *first = self->in[2];
    if (part->rank != first->rank || part->dtype == QN_FLOAT32)
        return qn_infer_fail(self, "input %d has another rank than the first, or is float", i);
    for (int32_t d = 0; d < part->rank && i > 2; d++) {
        if (d == axis)
            dims[d] = qn_dim_add(dims[d], part->dims[d]);
        else if (!qn_dim_merge(&dims[d], dims[d], part->dims[d]))
            return qn_infer_fail(self, "dimension %d of input %d differs", d, i);
    }
    return QN_OK;
}

static qn_status concat_infer(qn_infer *self)
{
    int64_t axis = ((const qn_qconcat_attrs *)self->attrs)->axis;
    qn_dim dims[QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, self->in[1]->dtype);
    if (self->n_in < 5 || (self->n_in - 2) % 3)
        return qn_infer_fail(self, "the parts must come as tensor, scale and zero point");
    QN_TRY(qn_infer_single(self, 0));
    QN_TRY(qn_infer_single(self, 1));
    for (int32_t i = 2; i < self->n_in; i++) {
        if (!qn_infer_has(self, i))
            return qn_infer_fail(self, "input %d is missing", i);
        if (i % 3 != 2)
            QN_TRY(qn_infer_single(self, i));
        else if (self->in[i]->rank < 0)
            return QN_OK;
    }
    QN_TRY(qn_infer_axis(self, &axis, self->in[2]->rank, "axis"));
    memcpy(dims, self->in[2]->dims, sizeof dims);
    for (int32_t i = 2; i < self->n_in; i += 3)
        QN_TRY(concat_part(self, i, axis, dims));
    qn_infer_set(self, 0, self->in[1]->dtype, self->in[2]->rank, dims);
    return QN_OK;
}

static qn_status concat_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const qn_limits range = qn_limits_of(out->dtype);
    int64_t axis = ((const qn_qconcat_attrs *)self->attrs)->axis, strides[QN_MAX_RANK], start = 0;
    qn_qparams x, y;
    axis += axis < 0 ? out->rank : 0;
    qn_dims_strides(strides, out->rank, out->dims);
    QN_TRY(qn_eval_qparams(&y, self, 0, 1));
    for (int32_t p = 2; p < self->n_in; p += 3) {
        const qn_tensor *part = self->in[p];
        const int64_t count = qn_tensor_count(part);
        QN_TRY(qn_eval_qparams(&x, self, p + 1, p + 2));
        for (int64_t i = 0; i < count; i++) {
            const int64_t q = qn_requantize_copy(qn_tensor_i64(part, i), &x, &y, range);
            const int64_t to = start + qn_offset_of(i, part->rank, part->dims, strides);
            qn_store_i64(out->data, out->dtype, to, &q, 1);
        }
        start += part->dims[axis] * strides[axis];
    }
    return QN_OK;
}

MICROSOFT(QLinearConcat, concat_in, QN_ATTRS(concat_specs, qn_qconcat_attrs), concat_infer,
          concat_eval, "Concat of quantized tensors with scales of their own")

/* ---- QLinearAveragePool, QLinearGlobalAveragePool -------------------------------------------- */

#define CHANNELS_LAST QN_INT_ATTR(qn_qpool_attrs, channels_last, 0)
static const qn_attr_spec global_specs[] = {CHANNELS_LAST};
static const qn_attr_spec pool_specs[] = {QN_KERNEL_SHAPE_ATTR(.required = true), QN_WINDOW_ATTRS,
                                          QN_INT_ATTR(qn_window_attrs, ceil_mode, 0),
                                          QN_INT_ATTR(qn_window_attrs, count_include_pad, 0),
                                          CHANNELS_LAST};

/* Dimension of the first spatial one; the channels are the other side. */
static int32_t first_spatial(const void *attrs)
{
    return ((const qn_qpool_attrs *)attrs)->channels_last ? 1 : 2;
}

static qn_status check_pool(const qn_infer *self)
{
    QN_TRY(qn_infer_singles(self, unary_singles));
    if (self->in[0]->rank >= 0 && self->in[0]->rank < 3)
        return qn_infer_fail(self, "the input has %d dimensions, 3 are the least",
                             self->in[0]->rank);
    return QN_OK;
}

static qn_status global_infer(qn_infer *self)
{
    const qn_type *x = self->in[0];
    const int32_t first = first_spatial(self->attrs);
    qn_dim dims[QN_MAX_RANK];
    QN_TRY(check_pool(self));
    for (int32_t d = 0; d < x->rank; d++)
        dims[d] = d >= first && d < first + x->rank - 2 ? qn_dim_of(1) : x->dims[d];
    qn_infer_set(self, 0, qn_infer_result_type(self, 4), x->rank, dims);
    return QN_OK;
}

static qn_status pool_infer(qn_infer *self)
{
    const qn_type *x = self->in[0];
    const int32_t first = first_spatial(self->attrs);
    qn_dim dims[QN_MAX_RANK];
    qn_window window;
    QN_TRY(check_pool(self));
    qn_infer_set_dtype(self, 0, qn_infer_result_type(self, 4));
    if (x->rank < 0)
        return QN_OK;
    if (!qn_window_resolve(&window, self->attrs, x->rank - 2, x->dims + first, NULL))
        return qn_infer_fail(self, "%s", window.problem);
    memcpy(dims, x->dims, sizeof dims);
    memcpy(dims + first, window.out, (size_t)window.rank * sizeof *dims);
    qn_infer_set(self, 0, qn_infer_result_type(self, 4), x->rank, dims);
    return QN_OK;
}

/* Mean of the taps of each window, in the shape of the tensors. */
static qn_status average(qn_eval *self, const qn_window *w, bool with_pads)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const qn_limits range = qn_limits_of(out->dtype);
    const bool last = first_spatial(self->attrs) == 1;
    const int64_t most = qn_window_most_taps(w), area = qn_window_out_size(w);
    const int64_t plane = qn_window_in_size(w), channels = in->dims[last ? in->rank - 1 : 1];
    void *positions, *elements;
    qn_qparams x, y;
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 3, 4));
    QN_TRY(qn_eval_scratch(self, &positions, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &elements, most, sizeof(int64_t)));
    for (int64_t at = 0; at < area; at++) {
        const int64_t taps = qn_window_taps(w, at, positions, elements);
        for (int64_t i = 0; i < in->dims[0] * channels; i++) {
            const int64_t n = i / channels, c = i % channels;
            int64_t sum = 0;
            for (int64_t t = 0; t < taps; t++) {
                const int64_t p = ((const int64_t *)positions)[t];
                sum += qn_tensor_i64(in, last ? (n * plane + p) * channels + c : i * plane + p);
            }
            const int64_t divisor = with_pads ? qn_window_padded_taps(w, at) : taps;
            const int64_t q = qn_mean(sum - taps * x.zero, divisor, &x, &y, range);
            qn_store_i64(out->data, out->dtype,
                         last ? (n * area + at) * channels + c : i * area + at, &q, 1);
        }
    }
    return QN_OK;
}

static void spatial_dims(qn_dim *dims, const qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    for (int32_t d = 0; d < in->rank - 2; d++)
        dims[d] = qn_dim_of(in->dims[first_spatial(self->attrs) + d]);
}

static qn_status pool_eval(qn_eval *self)
{
    const qn_window_attrs *a = self->attrs;
    qn_dim dims[QN_MAX_RANK];
    qn_window window;
    spatial_dims(dims, self);
    if (!qn_window_resolve(&window, a, self->in[0]->rank - 2, dims, NULL))
        return qn_eval_fail(self, "%s", window.problem);
    return average(self, &window, a->count_include_pad);
}

/* One window as large as the image. */
static qn_status global_eval(qn_eval *self)
{
    qn_window window = {.rank = self->in[0]->rank - 2};
    spatial_dims(window.in, self);
    for (int32_t d = 0; d < window.rank; d++) {
        window.kernel[d] = window.in[d].value;
        window.stride[d] = window.dilation[d] = 1;
        window.out[d] = qn_dim_of(1);
    }
    return average(self, &window, false);
}

MICROSOFT(QLinearAveragePool, unary_in, QN_ATTRS(pool_specs, qn_qpool_attrs), pool_infer, pool_eval,
          "AveragePool of a quantized tensor")
MICROSOFT(QLinearGlobalAveragePool, unary_in, QN_ATTRS(global_specs, qn_qpool_attrs), global_infer,
          global_eval, "GlobalAveragePool of a quantized tensor")
