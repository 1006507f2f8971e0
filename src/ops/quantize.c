/* QuantizeLinear, DequantizeLinear (ONNX's and com.microsoft's) and DynamicQuantizeLinear. */
#include "ops/quantize.h"

#include "ops/nn_attrs.h"
#include "ops/versions.h"

/* ---- Parameters of one scale ----------------------------------------------------------------- */

qn_status qn_infer_single(const qn_infer *self, int32_t i)
{
    for (int32_t d = 0; d < qn_infer_rank(self, i); d++) {
        if (self->in[i]->dims[d].value >= 0 && self->in[i]->dims[d].value != 1)
            return qn_infer_fail(self, "input %d must be a single number", i);
    }
    return QN_OK;
}

qn_status qn_infer_singles(const qn_infer *self, const int32_t *list)
{
    for (; *list >= 0; list++)
        QN_TRY(qn_infer_single(self, *list));
    return QN_OK;
}

qn_dtype qn_infer_result_type(const qn_infer *self, int32_t zero)
{
    return self->in[qn_infer_has(self, zero) ? zero : 0]->dtype;
}

const qn_type_rule qn_int16_type_rules[1] = {{QN_NO_OPSET, QN_SET_QUANTIZED_WIDE}};

static qn_status downgrade_same_type(qn_node **node)
{
    const qn_value *out = (*node)->n_out ? (*node)->out[0] : NULL;
    for (int32_t i = 0; out && i < (*node)->n_explicit; i++) {
        const qn_value *in = (*node)->in[i];
        if (in && in->type.dtype != QN_FLOAT32 && in->type.dtype != out->type.dtype)
            return qn_node_fail(*node, QN_E_UNSUPPORTED, "'%s' and '%s' have different types",
                                in->name, out->name);
    }
    return QN_OK;
}

const qn_version_rule qn_same_type_versions[1] = {{QN_NO_OPSET, NULL, downgrade_same_type}};

qn_status qn_eval_qparams(qn_qparams *out, qn_eval *self, int32_t scale, int32_t zero)
{
    const qn_tensor *s = qn_eval_in(self, scale), *z = qn_eval_in(self, zero);
    *out = qn_qparams_of_type(z ? z->dtype : self->in[0] ? self->in[0]->dtype : QN_UINT8);
    out->requantization = qn_node_requantization(self->node);
    if ((s && qn_tensor_count(s) != 1) || (z && qn_tensor_count(z) != 1))
        return qn_eval_fail(self, "inputs %d and %d must be single numbers", scale, zero);
    if (s)
        out->scale = (float)qn_tensor_f64(s, 0);
    if (z)
        out->zero = qn_tensor_i64(z, 0);
    return QN_OK;
}

float qn_mac_sum(double products, const qn_tensor *bias, int64_t at, bool is_int64)
{
    const int64_t b = bias ? qn_tensor_i64(bias, at) : 0;
    int64_t sum;
    if (!is_int64)
        return (float)products + (float)b;
    if (!qn_add_int64(&sum, (int64_t)products, b))
        return (float)(products + (double)b);
    return (float)sum;
}

int64_t qn_mac_requantize(const qn_mac_end *end, double products, int64_t at, float scale)
{
    const float multiplier = scale / end->y.scale;
    if (!qn_qparams_is_fixed_point(&end->y))
        return qn_requantize(qn_mac_sum(products, end->bias, at, end->is_int64), multiplier,
                             end->y.zero, end->range);
    const int64_t bias = end->bias ? qn_tensor_i64(end->bias, at) : 0;
    int64_t sum;
    if (!qn_add_int64(&sum, (int64_t)products, bias))
        sum = bias; /* which is near a limit of int64 then */
    return qn_requantize_to(sum, multiplier, &end->y, end->range);
}

qn_twice qn_twice_of(float x, float w, float y, bool is_signed)
{
    const double product = is_signed ? (double)x * (double)w : (double)(x * w);
    const double ratio = product / (double)y;
    int exponent = 0;
    if (!isfinite(ratio))
        return (qn_twice){.multiplier = (float)ratio};
    const double part = nearbyint(frexp(ratio, &exponent) * 0x1p31) / 0x1p31;
    const double multiplier = ldexp(part, exponent);
    const float high = (float)multiplier;
    return (qn_twice){.multiplier = high,
                      .rest = (float)(multiplier - (double)high),
                      .first = exponent < 0 ? ldexpf(1, exponent - 1) : 0};
}

int64_t qn_mac_requantize_twice(const qn_mac_end *end, double products, int64_t at,
                                const qn_twice *m)
{
    return qn_requantize_twice(qn_mac_sum(products, end->bias, at, end->is_int64), m, end->y.zero,
                               end->range);
}

void qn_store_quantized(const qn_tensor *out, int64_t i, double x, double zero, bool saturate)
{
    const qn_minifloat *small = qn_dtype_get(out->dtype)->minifloat;
    if (small) {
        ((uint8_t *)out->data)[i] = (uint8_t)qn_minifloat_encode(small, x + zero, saturate);
        return;
    }
    const int64_t q = qn_round_clamp(x, (int64_t)zero, qn_limits_of(out->dtype));
    qn_store_i64(out->data, out->dtype, i, &q, 1);
}

/* ---- Which scale serves which element: one for all, one per index of an axis, or blocks along */

/* One zero point for each scale; a single one may have one dimension or none. */
static bool fits(const qn_type *zero, const qn_type *scale)
{
    qn_dim merged;
    if (!zero || zero->rank < 0 || scale->rank < 0)
        return true;
    if (zero->rank != scale->rank) {
        const qn_type *wider = zero->rank > scale->rank ? zero : scale;
        return zero->rank + scale->rank == 1 &&
               (wider->dims[0].value < 0 || wider->dims[0].value == 1);
    }
    for (int32_t d = 0; d < zero->rank; d++) {
        if (!qn_dim_merge(&merged, zero->dims[d], scale->dims[d]))
            return false;
    }
    return true;
}

/* Input 1 (and 2) have the right shape for input 0. */
static qn_status check_shapes(const qn_infer *self)
{
    const qn_quantize_attrs *a = self->attrs;
    const qn_type *x = self->in[0], *scale = self->in[1];
    int64_t axis = a->axis;
    qn_dim merged;
    if (a->block_size < 0)
        return qn_infer_fail(self, "block_size is %lld", (long long)a->block_size);
    if (!fits(qn_infer_has(self, 2) ? self->in[2] : NULL, scale))
        return qn_infer_fail(self, "scale and zero point have different shapes");
    if (x->rank < 0 || scale->rank <= 0)
        return QN_OK;
    if (scale->rank == 1 && scale->dims[0].value == 1 && !a->block_size)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, &axis, x->rank, "axis"));
    if (!a->block_size) {
        if (scale->rank != 1 || !qn_dim_merge(&merged, scale->dims[0], x->dims[axis]))
            return qn_infer_fail(
                self, "there must be one scale, or one for each of the %lld of axis %lld",
                (long long)x->dims[axis].value, (long long)axis);
        return QN_OK;
    }
    if (scale->rank != x->rank)
        return qn_infer_fail(self, "scales of blocks need the %d dimensions of the input", x->rank);
    for (int32_t d = 0; d < x->rank; d++) {
        const int64_t dim = x->dims[d].value;
        const qn_dim wanted = d == axis && dim >= 0
                                  ? qn_dim_of(dim / a->block_size + (dim % a->block_size != 0))
                              : d == axis ? qn_dim_unknown()
                                          : x->dims[d];
        if (!qn_dim_merge(&merged, scale->dims[d], wanted))
            return qn_infer_fail(self, "dimension %d of the scales is %lld instead of %lld", d,
                                 (long long)scale->dims[d].value, (long long)wanted.value);
    }
    return QN_OK;
}

typedef struct grid {
    /* Elements behind one index of the axis */
    int64_t inner;
    /* The size of the axis; 1 where one scale serves all */
    int64_t dim;
    /* Indices of the axis that share a scale */
    int64_t block;
    /* The blocks of the axis */
    int64_t n_blocks;
    /* Flat: the scale is a list along the axis */
    bool single, flat;
} grid;

static qn_status grid_make(grid *g, qn_eval *self)
{
    const qn_quantize_attrs *a = self->attrs;
    const qn_tensor *x = self->in[0], *scale = self->in[1], *zero = qn_eval_in(self, 2);
    if (zero && qn_tensor_count(zero) != qn_tensor_count(scale))
        return qn_eval_fail(self, "scale and zero point have different shapes");
    *g = (grid){.inner = 1, .dim = 1, .block = 1, .n_blocks = 1};
    g->single = scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1 && !a->block_size);
    if (g->single)
        return QN_OK;
    const int32_t axis = (int32_t)(a->axis < 0 ? a->axis + x->rank : a->axis);
    for (int32_t d = axis + 1; d < x->rank; d++)
        g->inner *= x->dims[d];
    g->dim = x->dims[axis];
    g->block = QN_MAX(a->block_size, 1);
    g->n_blocks = g->dim / g->block + (g->dim % g->block != 0);
    g->flat = !a->block_size;
    return QN_OK;
}

static int64_t scale_of(const grid *g, int64_t i)
{
    if (g->single)
        return 0;
    const int64_t at = i / g->inner % g->dim;
    if (g->flat)
        return at;
    const int64_t outer = i / g->inner / g->dim;
    return (outer * g->n_blocks + at / g->block) * g->inner + i % g->inner;
}

/* ---- QuantizeLinear -------------------------------------------------------------------------- */

#define WIDE_SET (QN_SET(QN_FLOAT32) | QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16) | QN_SET(QN_INT32))
#define SCALE_SET (QN_SET(QN_FLOAT32) | QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16))
#define NARROW_SET                                                                                 \
    (QN_SET(QN_INT8) | QN_SET(QN_UINT8) | QN_SET(QN_INT16) | QN_SET(QN_UINT16) |                   \
     QN_SET_SMALL_INT | QN_SET_FLOAT8)

static const qn_port quantize_in[] = {{"x", '\0', WIDE_SET, 0},
                                      {"y_scale", '\0', WIDE_SET | QN_SET(QN_FLOAT8E8M0), 0},
                                      {"y_zero_point", '\0', NARROW_SET, QN_OPTIONAL}};
static const qn_port quantize_out[] = {{"y", '\0', NARROW_SET, 0}};

/* The zero point has the type of the result; without it output_dtype counts, else it is uint8. */
static qn_status quantize_infer(qn_infer *self)
{
    const qn_quantize_attrs *a = self->attrs;
    const int64_t asked = a->output_dtype;
    if (asked && (asked < 0 || asked > 31 || !(QN_SET(asked) & NARROW_SET)))
        return qn_infer_fail(self, "output_dtype %lld is no type to quantize to", (long long)asked);
    if (a->precision &&
        (a->precision < 0 || a->precision > 31 || !(QN_SET(a->precision) & SCALE_SET)))
        return qn_infer_fail(self, "precision %lld is no float type", (long long)a->precision);
    const qn_dtype zero = qn_infer_has(self, 2) ? self->in[2]->dtype : QN_UNDEFINED;
    if (asked && zero != QN_UNDEFINED && (int64_t)zero != asked)
        return qn_infer_fail(self, "output_dtype is %s, the zero point is %s",
                             qn_dtype_name((qn_dtype)asked), qn_dtype_name(zero));
    QN_TRY(check_shapes(self));
    const bool unknown = qn_infer_has(self, 2) && zero == QN_UNDEFINED && !asked;
    qn_infer_copy_dims(self, 0, 0,
                       zero != QN_UNDEFINED ? zero
                       : asked              ? (qn_dtype)asked
                       : unknown            ? QN_UNDEFINED
                                            : QN_UINT8);
    return QN_OK;
}

/* The number as a float type would hold it. */
static double round_to(qn_dtype dtype, double x)
{
    uint64_t element;
    if (dtype == QN_FLOAT32)
        return (double)(float)x;
    qn_store_f64(&element, dtype, 0, &x, 1);
    qn_load_f64(&x, dtype, &element, 0, 1);
    return x;
}

static qn_status quantize_eval(qn_eval *self)
{
    const qn_quantize_attrs *a = self->attrs;
    const qn_tensor *x = self->in[0], *out = self->out[0], *scale = self->in[1];
    const qn_tensor *zero = qn_eval_in(self, 2);
    const int64_t count = qn_tensor_count(x);
    const bool small = scale->dtype == QN_FLOAT16 || scale->dtype == QN_BFLOAT16;
    const qn_dtype type = a->precision ? (qn_dtype)a->precision : small ? scale->dtype : QN_FLOAT32;
    grid g;
    QN_TRY(grid_make(&g, self));
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = scale_of(&g, i);
        const double divisor = round_to(type, qn_tensor_f64(scale, at));
        const double quotient = round_to(type, round_to(type, qn_tensor_f64(x, i)) / divisor);
        qn_store_quantized(out, i, quotient, zero ? qn_tensor_f64(zero, at) : 0, a->saturate);
    }
    return QN_OK;
}

/* ---- DequantizeLinear ------------------------------------------------------------------------ */

static const qn_port dequantize_in[] = {
    {"x", 'T', NARROW_SET | QN_SET(QN_INT32), 0},
    {"x_scale", '\0', SCALE_SET | QN_SET(QN_FLOAT8E8M0), 0},
    {"x_zero_point", 'T', NARROW_SET | QN_SET(QN_INT32), QN_OPTIONAL}};
static const qn_port dequantize_out[] = {{"y", '\0', SCALE_SET, 0}};

static qn_status dequantize_infer(qn_infer *self)
{
    const qn_quantize_attrs *a = self->attrs;
    const int64_t asked = a->output_dtype;
    if (asked && (asked < 0 || asked > 31 || !(QN_SET(asked) & SCALE_SET)))
        return qn_infer_fail(self, "output_dtype %lld is no float type", (long long)asked);
    QN_TRY(check_shapes(self));
    const qn_dtype scale = self->in[1]->dtype == QN_FLOAT8E8M0 ? QN_FLOAT32 : self->in[1]->dtype;
    qn_infer_copy_dims(self, 0, 0, asked ? (qn_dtype)asked : scale);
    return QN_OK;
}

static qn_status dequantize_eval(qn_eval *self)
{
    const qn_tensor *x = self->in[0], *out = self->out[0], *scale = self->in[1];
    const qn_tensor *zero = qn_eval_in(self, 2);
    const int64_t count = qn_tensor_count(x);
    grid g;
    QN_TRY(grid_make(&g, self));
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = scale_of(&g, i);
        const double shift = zero ? qn_tensor_f64(zero, at) : 0;
        const double y = (double)(float)(qn_tensor_f64(x, i) - shift) * qn_tensor_f64(scale, at);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const qn_attr_spec quantize_specs[] = {
    QN_INT_ATTR(qn_quantize_attrs, axis, 1, .since = 13),
    QN_INT_ATTR(qn_quantize_attrs, saturate, 1, .since = 19),
    QN_INT_ATTR(qn_quantize_attrs, block_size, 0, .since = 21),
    QN_INT_ATTR(qn_quantize_attrs, output_dtype, 0, .since = 21),
    QN_INT_ATTR(qn_quantize_attrs, precision, 0, .since = 23)};
static const qn_attr_spec dequantize_specs[] = {
    QN_INT_ATTR(qn_quantize_attrs, axis, 1, .since = 13),
    QN_INT_ATTR(qn_quantize_attrs, block_size, 0, .since = 21),
    QN_INT_ATTR(qn_quantize_attrs, output_dtype, 0, .since = 23)};
static const qn_attr_spec microsoft_specs[] = {QN_INT_ATTR(qn_quantize_attrs, axis, 1),
                                               QN_INT_ATTR(qn_quantize_attrs, block_size, 0)};
static const qn_type_rule type_rules[] = {{19, QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16)},
                                          {21, QN_SET(QN_INT16) | QN_SET(QN_UINT16)}};

/* Before opset 13 there was one scale for the whole tensor. */
static qn_status downgrade_13(qn_node **node)
{
    const qn_type *scale = &(*node)->in[1]->type;
    const bool single = scale->rank == 0 || (scale->rank == 1 && scale->dims[0].value == 1);
    if (!single)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "a scale per channel came with opset 13");
    ((qn_quantize_attrs *)(*node)->attrs)->axis = 1;
    return QN_OK;
}

static qn_status quantize_downgrade_19(qn_node **node)
{
    if ((*node)->in[1]->type.dtype == QN_INT32)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "integer scales came with opset 19");
    return QN_OK;
}

static qn_status quantize_downgrade_23(qn_node **node)
{
    return qn_downgrade_one_type(*node, 1, 23);
}

static const qn_version_rule quantize_versions[] = {
    {13, NULL, downgrade_13}, {19, NULL, quantize_downgrade_19}, {23, NULL, quantize_downgrade_23}};
static const qn_version_rule dequantize_versions[] = {{13, NULL, downgrade_13}};

#define LINEAR(id, NAME, DOMAIN, SINCE, f, SPECS, OLDER, BRIEF)                                    \
    const qn_op qn_op_##id = {.name = NAME,                                                        \
                              .domain = DOMAIN,                                                    \
                              .since = SINCE,                                                      \
                              QN_PORTS(in, f##_in),                                                \
                              QN_PORTS(out, f##_out),                                              \
                              QN_ATTRS(SPECS, qn_quantize_attrs),                                  \
                              OLDER,                                                               \
                              .quant = QN_QUANT_ALREADY,                                           \
                              .infer = f##_infer,                                                  \
                              .eval = f##_eval,                                                    \
                              .brief = BRIEF};
#define HISTORY(f) QN_VERSIONS(f##_versions), QN_TYPE_RULES(type_rules)
#define QUANTIZE_BRIEF "clamp(round(x / scale) + zero point)"
#define DEQUANTIZE_BRIEF "(x - zero point) * scale"

LINEAR(QuantizeLinear, "QuantizeLinear", "", 10, quantize, quantize_specs, HISTORY(quantize),
       QUANTIZE_BRIEF)
LINEAR(DequantizeLinear, "DequantizeLinear", "", 10, dequantize, dequantize_specs,
       HISTORY(dequantize), DEQUANTIZE_BRIEF)
LINEAR(ms_QuantizeLinear, "QuantizeLinear", "com.microsoft", 1, quantize, microsoft_specs,
       .until = 0, QUANTIZE_BRIEF)
LINEAR(ms_DequantizeLinear, "DequantizeLinear", "com.microsoft", 1, dequantize, microsoft_specs,
       .until = 0, DEQUANTIZE_BRIEF)

/* ---- DynamicQuantizeLinear ------------------------------------------------------------------- */

static const qn_port dynamic_in[] = {{"x", '\0', QN_SET(QN_FLOAT32), 0}};
static const qn_port dynamic_out[] = {{"y", '\0', QN_SET(QN_UINT8), 0},
                                      {"y_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                      {"y_zero_point", '\0', QN_SET(QN_UINT8), 0}};

static qn_status dynamic_infer(qn_infer *self)
{
    qn_infer_copy_dims(self, 0, 0, QN_UINT8);
    qn_infer_set(self, 1, QN_FLOAT32, 0, NULL);
    qn_infer_set(self, 2, QN_UINT8, 0, NULL);
    return QN_OK;
}

qn_qparams qn_dynamic_quant(const float *x, int64_t count)
{
    float low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return qn_dynamic_ends(low, high);
}

static qn_status dynamic_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *y = qn_eval_out(self, 0);
    const float *x = in->data;
    const int64_t count = qn_tensor_count(in);
    const qn_qparams q = qn_dynamic_quant(x, count);
    for (int64_t i = 0; y && i < count; i++)
        ((uint8_t *)y->data)[i] = (uint8_t)qn_quantize(x[i], &q, qn_limits_of(QN_UINT8));
    if (qn_eval_out(self, 1))
        *(float *)self->out[1]->data = q.scale;
    if (qn_eval_out(self, 2))
        *(uint8_t *)self->out[2]->data = (uint8_t)q.zero;
    return QN_OK;
}

const qn_op qn_op_DynamicQuantizeLinear = {.name = "DynamicQuantizeLinear",
                                           .domain = "",
                                           .since = 11,
                                           QN_PORTS(in, dynamic_in),
                                           QN_PORTS(out, dynamic_out),
                                           .quant = QN_QUANT_ALREADY,
                                           .infer = dynamic_infer,
                                           .eval = dynamic_eval,
                                           .brief =
                                               "quantizes to uint8 with a scale from the contents"};
