/* Quantized operators that look at many elements at once: QLinearSoftmax, QLinearReduceMean,
 * QLayerNormalization. Formulas: docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/qlinear.h"

#define SCALE QN_SET(QN_FLOAT32)
#define QUANTIZED_PORTS(x, y)                                                                      \
    {x, 'X', QN_SET_QUANTIZED, 0}, {x "_scale", '\0', SCALE, 0},                                   \
        {x "_zero_point", 'X', QN_SET_QUANTIZED, QN_OPTIONAL}, {y "_scale", '\0', SCALE, 0},       \
    {                                                                                              \
        y "_zero_point", '\0', QN_SET_QUANTIZED, QN_OPTIONAL                                       \
    }
static const int32_t singles[] = {1, 2, 3, 4, -1};

static void store(const qn_tensor *out, int64_t i, int64_t q)
{
    qn_store_i64(out->data, out->dtype, i, &q, 1);
}

/* ---- QLinearSoftmax -------------------------------------------------------------------------- */

static const qn_port softmax_in[] = {QUANTIZED_PORTS("X", "y")};
static const qn_port softmax_out[] = {{"Y", '\0', QN_SET_QUANTIZED, 0}};
static const qn_attr_spec softmax_specs[] = {
    QN_INT_ATTR(qn_qsoftmax_attrs, axis, -1),
    QN_INT_ATTR(qn_qsoftmax_attrs, opset, QN_ABSENT, .required = true)};

static qn_status softmax_infer(qn_infer *self)
{
    int64_t axis = ((const qn_qsoftmax_attrs *)self->attrs)->axis;
    QN_TRY(qn_infer_singles(self, singles));
    if (self->in[0]->rank > 0)
        QN_TRY(qn_infer_axis(self, &axis, self->in[0]->rank, "axis"));
    qn_infer_copy_dims(self, 0, 0, qn_infer_result_type(self, 4));
    return QN_OK;
}

void qn_qsoftmax_shape(int64_t *outer, int64_t *n, int64_t *inner, const qn_qsoftmax_attrs *attrs,
                       const qn_tensor *x)
{
    const int64_t axis = attrs->axis < 0 ? attrs->axis + x->rank : attrs->axis;
    *outer = *n = *inner = 1;
    for (int32_t d = 0; d < x->rank; d++)
        *(d < axis ? outer : d == axis || attrs->opset < 13 ? n : inner) *= x->dims[d];
}

void qn_qsoftmax_table(uint32_t *table, float scale, int64_t entries)
{
    for (int64_t d = 0; d < entries; d++)
        table[d] = (uint32_t)nearbyint(qn_real_exp((double)-d * (double)scale) * 0x1p23);
}

typedef struct line {
    /* Elements */
    int64_t first, n, step;
    const uint32_t *table;
} line;

static void softmax_line(const qn_tensor *out, const qn_tensor *in, const line *l,
                         const qn_qparams *y)
{
    const qn_limits range = qn_limits_of(out->dtype);
    int64_t most = INT64_MIN, sum = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t x = qn_tensor_i64(in, l->first + i * l->step);
        most = QN_MAX(most, x);
    }
    for (int64_t i = 0; i < l->n; i++)
        sum += l->table[most - qn_tensor_i64(in, l->first + i * l->step)];
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = l->first + i * l->step;
        const float e = (float)l->table[most - qn_tensor_i64(in, at)];
        store(out, at, qn_quantize(e / (float)sum, y, range));
    }
}

static qn_status softmax_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    int64_t outer, inner;
    qn_qparams x, y;
    void *table = NULL;
    line l;
    const int64_t entries = qn_qsoftmax_entries(in->dtype);
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 3, 4));
    qn_qsoftmax_shape(&outer, &l.n, &inner, self->attrs, in);
    QN_TRY(qn_eval_scratch(self, &table, entries, sizeof(uint32_t)));
    qn_qsoftmax_table(table, x.scale, entries);
    l.table = table;
    l.step = inner;
    for (int64_t i = 0; i < outer * inner && l.n; i++) {
        l.first = i / inner * l.n * inner + i % inner;
        softmax_line(out, in, &l, &y);
    }
    return QN_OK;
}

const qn_op qn_op_ms_QLinearSoftmax = {.name = "QLinearSoftmax",
                                       .domain = "com.microsoft",
                                       .since = 1,
                                       QN_PORTS(in, softmax_in),
                                       QN_PORTS(out, softmax_out),
                                       QN_ATTRS(softmax_specs, qn_qsoftmax_attrs),
                                       QN_VERSIONS(qn_same_type_versions),
                                       QN_TYPE_RULES(qn_int16_type_rules),
                                       .quant = QN_QUANT_ALREADY,
                                       .infer = softmax_infer,
                                       .eval = softmax_eval,
                                       .brief = "Softmax of a quantized tensor"};

/* ---- QLinearReduceMean ----------------------------------------------------------------------- */

static const qn_port reduce_in[] = {QUANTIZED_PORTS("data", "reduced")};
static const qn_port reduce_out[] = {{"reduced", '\0', QN_SET_QUANTIZED, 0}};
static const qn_attr_spec reduce_specs[] = {QN_ATTR(qn_reduce_attrs, axes, INTS),
                                            QN_INT_ATTR(qn_reduce_attrs, keepdims, 1)};

bool qn_qreduce_axes(bool *reduced, const qn_reduce_attrs *attrs, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++)
        reduced[d] = attrs->axes.count == 0;
    for (size_t i = 0; i < attrs->axes.count; i++) {
        const int64_t axis = attrs->axes.at[i] < 0 ? attrs->axes.at[i] + rank : attrs->axes.at[i];
        if (axis < 0 || axis >= rank || reduced[axis])
            return false;
        reduced[axis] = true;
    }
    return true;
}

static qn_status reduce_infer(qn_infer *self)
{
    const qn_reduce_attrs *a = self->attrs;
    const qn_type *x = self->in[0];
    qn_dim dims[QN_MAX_RANK];
    bool reduced[QN_MAX_RANK];
    int32_t rank = 0;
    QN_TRY(qn_infer_singles(self, singles));
    qn_infer_set_dtype(self, 0, qn_infer_result_type(self, 4));
    if (x->rank < 0)
        return QN_OK;
    if (!qn_qreduce_axes(reduced, a, x->rank))
        return qn_infer_fail(self, "an axis is outside [-%d, %d) or stands there twice", x->rank,
                             x->rank);
    for (int32_t d = 0; d < x->rank; d++) {
        if (!reduced[d] || a->keepdims)
            dims[rank++] = reduced[d] ? qn_dim_of(1) : x->dims[d];
    }
    qn_infer_set(self, 0, qn_infer_result_type(self, 4), rank, dims);
    return QN_OK;
}

static qn_status reduce_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(in), n_out = qn_tensor_count(out);
    int64_t strides[QN_MAX_RANK] = {0}, next = 1;
    bool reduced[QN_MAX_RANK];
    void *block;
    qn_qparams x, y;
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 3, 4));
    if (!qn_qreduce_axes(reduced, self->attrs, in->rank))
        return qn_eval_fail(self, "an axis is wrong or stands there twice");
    for (int32_t d = in->rank - 1; d >= 0; d--) {
        if (!reduced[d]) {
            strides[d] = next;
            next *= in->dims[d];
        }
    }
    QN_TRY(qn_eval_scratch(self, &block, n_out, sizeof(int64_t)));
    int64_t *sums = block;
    memset(sums, 0, (size_t)n_out * sizeof *sums);
    for (int64_t i = 0; i < count; i++)
        sums[qn_offset_of(i, in->rank, in->dims, strides)] += qn_tensor_i64(in, i) - x.zero;
    for (int64_t i = 0; i < n_out; i++)
        store(out, i, qn_mean(sums[i], count / n_out, &x, &y, qn_limits_of(out->dtype)));
    return QN_OK;
}

const qn_op qn_op_ms_QLinearReduceMean = {.name = "QLinearReduceMean",
                                          .domain = "com.microsoft",
                                          .since = 1,
                                          QN_PORTS(in, reduce_in),
                                          QN_PORTS(out, reduce_out),
                                          QN_ATTRS(reduce_specs, qn_reduce_attrs),
                                          QN_VERSIONS(qn_same_type_versions),
                                          QN_TYPE_RULES(qn_int16_type_rules),
                                          .quant = QN_QUANT_ALREADY,
                                          .infer = reduce_infer,
                                          .eval = reduce_eval,
                                          .brief = "ReduceMean of a quantized tensor"};

/* ---- QLayerNormalization --------------------------------------------------------------------- */

static const qn_port norm_in[] = {{"X", 'X', QN_SET_QUANTIZED, 0},
                                  {"X_scale", '\0', SCALE, 0},
                                  {"X_zero_point", 'X', QN_SET_QUANTIZED, 0},
                                  {"Scale", '\0', SCALE, 0},
                                  {"B", '\0', SCALE, QN_OPTIONAL},
                                  {"Y_scale", '\0', SCALE, 0},
                                  {"Y_zero_point", '\0', QN_SET_QUANTIZED, 0}};
static const qn_port norm_out[] = {{"Y", '\0', QN_SET_QUANTIZED, 0}};
static const qn_attr_spec norm_specs[] = {QN_FLOAT_ATTR(qn_norm_attrs, epsilon, 1e-5f),
                                          QN_INT_ATTR(qn_norm_attrs, axis, -1)};

static qn_status norm_infer(qn_infer *self)
{
    static const int32_t list[] = {1, 2, 5, 6, -1};
    int64_t axis = ((const qn_norm_attrs *)self->attrs)->axis;
    const qn_type *x = self->in[0];
    QN_TRY(qn_infer_singles(self, list));
    if (x->rank >= 0) {
        QN_TRY(qn_infer_axis(self, &axis, x->rank, "axis"));
        QN_TRY(qn_infer_broadcast_to(self, 3, x->rank, x->dims));
        QN_TRY(qn_infer_broadcast_to(self, 4, x->rank, x->dims));
    }
    qn_infer_copy_dims(self, 0, 0, self->in[6]->dtype);
    return QN_OK;
}

float qn_qnorm_factor(int64_t n, int64_t s1, int64_t s2, float scale, float epsilon)
{
    const double count = (double)n, x = (double)scale;
    const double spread = n <= QN_QNORM_EXACT ? (double)(n * s2 - s1 * s1)
                                              : count * (double)s2 - (double)s1 * (double)s1;
    const double variance = spread / (count * count) * x * x;
    return (float)(x / (count * sqrt(variance + (double)epsilon)));
}

/* Elements [first, first + n) of x: one row. */
static void norm_row(const qn_eval *self, int64_t first, int64_t n, const qn_qparams *q)
{
    const qn_tensor *in = self->in[0], *out = self->out[0], *shift = qn_eval_in(self, 4);
    const qn_limits range = qn_limits_of(out->dtype);
    int64_t gammas[QN_MAX_RANK], betas[QN_MAX_RANK], s1 = 0, s2 = 0;
    for (int64_t i = first; i < first + n; i++) {
        const int64_t a = qn_tensor_i64(in, i) - q[0].zero;
        s1 += a;
        s2 += a * a;
    }
    const float k =
        qn_qnorm_factor(n, s1, s2, q[0].scale, ((const qn_norm_attrs *)self->attrs)->epsilon);
    qn_broadcast_strides(gammas, self->in[3], in->rank, in->dims);
    if (shift)
        qn_broadcast_strides(betas, shift, in->rank, in->dims);
    for (int64_t i = first; i < first + n; i++) {
        const int64_t a = qn_tensor_i64(in, i) - q[0].zero;
        const float *gamma = self->in[3]->data;
        float y = (float)(n * a - s1) * k * gamma[qn_offset_of(i, in->rank, in->dims, gammas)];
        if (shift)
            y += ((const float *)shift->data)[qn_offset_of(i, in->rank, in->dims, betas)];
        store(out, i, qn_quantize(y, &q[1], range));
    }
}

static qn_status norm_eval(qn_eval *self)
{
    const qn_norm_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0];
    const int64_t count = qn_tensor_count(in), axis = a->axis < 0 ? a->axis + in->rank : a->axis;
    int64_t n = 1;
    qn_qparams q[2];
    QN_TRY(qn_eval_qparams(&q[0], self, 1, 2));
    QN_TRY(qn_eval_qparams(&q[1], self, 5, 6));
    for (int64_t d = axis; d < in->rank; d++)
        n *= in->dims[d];
    for (int64_t first = 0; first < count; first += n)
        norm_row(self, first, n, q);
    return QN_OK;
}

const qn_op qn_op_qn_QLayerNormalization = {.name = "QLayerNormalization",
                                            .domain = "quench",
                                            .since = 1,
                                            QN_PORTS(in, norm_in),
                                            QN_PORTS(out, norm_out),
                                            QN_ATTRS(norm_specs, qn_norm_attrs),
                                            .quant = QN_QUANT_ALREADY,
                                            .infer = norm_infer,
                                            .eval = norm_eval,
                                            .brief = "LayerNormalization of a quantized tensor"};
