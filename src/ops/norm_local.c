/* LRN, LpNormalization, MeanVarianceNormalization. */
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/versions.h"

static const qn_port float_in[] = {{"X", 'T', QN_SET_FLOAT, 0}};
static const qn_port float_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

/* ---- LRN ------------------------------------------------------------------------------------- */

static const qn_attr_spec lrn_specs[] = {
    QN_FLOAT_ATTR(qn_lrn_attrs, alpha, 1e-4f), QN_FLOAT_ATTR(qn_lrn_attrs, beta, 0.75f),
    QN_FLOAT_ATTR(qn_lrn_attrs, bias, 1), QN_INT_ATTR(qn_lrn_attrs, size, 0, .required = true)};

static qn_status lrn_infer(qn_infer *self)
{
    const qn_lrn_attrs *a = self->attrs;
    if (a->size < 1)
        return qn_infer_fail(self, "size is %lld", (long long)a->size);
    if (self->in[0]->rank >= 0 && self->in[0]->rank < 2)
        return qn_infer_fail(self, "the input has no channels");
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* y = x / (bias + alpha / size * sum of x^2 over `size` channels around)^beta */
static qn_status lrn_eval(qn_eval *self)
{
    const qn_lrn_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(in), channels = in->dims[1];
    double *x;
    if (count == 0)
        return QN_OK;
    const int64_t area = count / in->dims[0] / channels;
    const int64_t before = (a->size - 1) / 2, after = a->size - 1 - before;
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t c = i / area % channels;
        double squares = 0;
        const int64_t first = c > before ? c - before : 0;
        const int64_t last = channels - 1 - c > after ? c + after : channels - 1;
        for (int64_t k = first; k <= last; k++) {
            const double v = x[i + (k - c) * area];
            squares += v * v;
        }
        const double y = x[i] / pow((double)a->bias + (double)a->alpha / (double)a->size * squares,
                                    (double)a->beta);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

const qn_op qn_op_LRN = {.name = "LRN",
                         .domain = "",
                         .since = 1,
                         QN_PORTS(in, float_in),
                         QN_PORTS(out, float_out),
                         QN_ATTRS(lrn_specs, qn_lrn_attrs),
                         .quant = QN_QUANT_FLOAT,
                         .infer = lrn_infer,
                         .eval = lrn_eval,
                         .brief = "scaled down by the squares of neighbouring channels"};

/* ---- LpNormalization ------------------------------------------------------------------------- */

static const qn_attr_spec lp_specs[] = {QN_INT_ATTR(qn_lp_attrs, axis, -1),
                                        QN_INT_ATTR(qn_lp_attrs, p, 2)};

static qn_status lp_infer(qn_infer *self)
{
    const qn_lp_attrs *a = self->attrs;
    int64_t axis = a->axis;
    if (a->p != 1 && a->p != 2)
        return qn_infer_fail(self, "p is %lld instead of 1 or 2", (long long)a->p);
    if (self->in[0]->rank >= 0)
        QN_TRY(qn_infer_axis(self, &axis, self->in[0]->rank, "axis"));
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* Zeros stay zeros. */
static void lp_line(double *x, int64_t count, int64_t stride, int64_t p)
{
    double norm = 0;
    for (int64_t i = 0; i < count; i++)
        norm += p == 1 ? fabs(x[i * stride]) : x[i * stride] * x[i * stride];
    norm = p == 1 ? norm : sqrt(norm);
    for (int64_t i = 0; i < count && norm != 0; i++)
        x[i * stride] /= norm;
}

static qn_status lp_eval(qn_eval *self)
{
    const qn_lp_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t total = qn_tensor_count(in), axis = a->axis < 0 ? a->axis + in->rank : a->axis;
    int64_t inner = 1;
    double *x;
    if (total == 0)
        return QN_OK;
    for (int64_t d = axis + 1; d < in->rank; d++)
        inner *= in->dims[d];
    const int64_t count = in->dims[axis];
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t at = 0; at < total / count; at++)
        lp_line(x + at / inner * count * inner + at % inner, count, inner, a->p);
    qn_store_f64(out->data, out->dtype, 0, x, total);
    return QN_OK;
}

const qn_op qn_op_LpNormalization = {.name = "LpNormalization",
                                     .domain = "",
                                     .since = 1,
                                     QN_PORTS(in, float_in),
                                     QN_PORTS(out, float_out),
                                     QN_ATTRS(lp_specs, qn_lp_attrs),
                                     QN_TYPE_RULES(qn_bfloat16_22),
                                     .quant = QN_QUANT_FLOAT,
                                     .infer = lp_infer,
                                     .eval = lp_eval,
                                     .brief = "divided by the norm along an axis"};

/* ---- MeanVarianceNormalization --------------------------------------------------------------- */

static const qn_attr_spec mvn_specs[] = {QN_ATTR(qn_mvn_attrs, axes, INTS)};

bool qn_mvn_mark(bool *marked, const qn_mvn_attrs *a, int32_t rank)
{
    static const int64_t standard[] = {0, 2, 3};
    return qn_axes_mark(marked, rank, a->axes.at ? a->axes : (qn_ints){standard, 3});
}

static qn_status mvn_infer(qn_infer *self)
{
    bool reduced[QN_MAX_RANK];
    const int32_t rank = self->in[0]->rank;
    if (rank >= 0 && !qn_mvn_mark(reduced, self->attrs, rank))
        return qn_infer_fail(self, "an axis is outside [-%d, %d) or stands there twice", rank,
                             rank);
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* Sums over the reduced axes: stats has the input's dims with those axes at stride 0. */
static qn_status mvn_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t total = qn_tensor_count(in);
    bool reduced[QN_MAX_RANK];
    int64_t strides[QN_MAX_RANK], groups = 1;
    double *x;
    void *block;
    if (total == 0 || !qn_mvn_mark(reduced, self->attrs, in->rank))
        return QN_OK;
    for (int32_t d = in->rank - 1; d >= 0; d--) {
        strides[d] = reduced[d] ? 0 : groups;
        groups *= reduced[d] ? 1 : in->dims[d];
    }
    const double size = (double)(total / groups);
    QN_TRY(qn_eval_doubles(self, &x, in));
    QN_TRY(qn_eval_scratch(self, &block, 2 * groups, sizeof(double)));
    double *mean = block, *spread = mean + groups;
    memset(block, 0, (size_t)(2 * groups) * sizeof(double));
    for (int64_t i = 0; i < total; i++)
        mean[qn_offset_of(i, in->rank, in->dims, strides)] += x[i] / size;
    for (int64_t i = 0; i < total; i++) {
        const int64_t g = qn_offset_of(i, in->rank, in->dims, strides);
        spread[g] += (x[i] - mean[g]) * (x[i] - mean[g]) / size;
    }
    for (int64_t i = 0; i < total; i++) {
        const int64_t g = qn_offset_of(i, in->rank, in->dims, strides);
        x[i] = (x[i] - mean[g]) / (sqrt(spread[g]) + 1e-9);
    }
    qn_store_f64(out->data, out->dtype, 0, x, total);
    return QN_OK;
}

const qn_op qn_op_MeanVarianceNormalization = {.name = "MeanVarianceNormalization",
                                               .domain = "",
                                               .since = 9,
                                               QN_PORTS(in, float_in),
                                               QN_PORTS(out, float_out),
                                               QN_ATTRS(mvn_specs, qn_mvn_attrs),
                                               .quant = QN_QUANT_FLOAT,
                                               .infer = mvn_infer,
                                               .eval = mvn_eval,
                                               .brief = "to mean 0 and variance 1 over some axes"};
