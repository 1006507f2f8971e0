/* GlobalAveragePool, GlobalLpPool, GlobalMaxPool: one number for each channel. */
#include <math.h>

#include "ops/versions.h"
#include "ops/window.h"

static const qn_port global_in[] = {{"X", 'T', QN_SET_FLOAT, 0}};
static const qn_port global_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

static qn_status global_infer(qn_infer *self)
{
    const qn_type *x = self->in[0];
    qn_dim dims[QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, x->dtype);
    if (x->rank < 0)
        return QN_OK;
    if (x->rank < 2)
        return qn_infer_fail(self, "the input has %d dimensions, 2 are the least", x->rank);
    for (int32_t d = 0; d < x->rank; d++)
        dims[d] = d < 2 ? x->dims[d] : qn_dim_of(1);
    qn_infer_set(self, 0, x->dtype, x->rank, dims);
    return QN_OK;
}

typedef double plane_fn(const double *x, int64_t count, const void *attrs);

static double plane_mean(const double *x, int64_t count, const void *attrs)
{
    double sum = 0;
    (void)attrs;
    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    return sum / (double)count;
}

static double plane_max(const double *x, int64_t count, const void *attrs)
{
    double max = -(double)INFINITY;
    (void)attrs;
    for (int64_t i = 0; i < count; i++)
        max = x[i] > max || isnan(x[i]) ? x[i] : max;
    return max;
}

static double plane_norm(const double *x, int64_t count, const void *attrs)
{
    const double power = (double)((const qn_window_attrs *)attrs)->p;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += pow(fabs(x[i]), power);
    return pow(sum, 1 / power);
}

static qn_status eval_planes(qn_eval *self, plane_fn *reduce)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t planes = in->dims[0] * in->dims[1];
    int64_t count = 1;
    double *x;
    for (int32_t d = 2; d < in->rank; d++)
        count *= in->dims[d];
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t i = 0; i < planes; i++) {
        const double y = reduce(x + i * count, count, self->attrs);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

#define GLOBAL(Name, REDUCE, ATTRS, QUANT, BRIEF)                                                  \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return eval_planes(self, REDUCE);                                                          \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                QN_PORTS(in, global_in),                                           \
                                QN_PORTS(out, global_out),                                         \
                                ATTRS,                                                             \
                                QN_TYPE_RULES(qn_bfloat16_22),                                     \
                                .quant = QUANT,                                                    \
                                .infer = global_infer,                                             \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

static const qn_attr_spec lp_specs[] = {QN_LP_ATTRS};

GLOBAL(GlobalAveragePool, plane_mean, .n_attrs = 0, QN_QUANT_ELEMENT, "the mean of each channel")
#define LP QN_ATTRS(lp_specs, qn_window_attrs), QN_VERSIONS(qn_lp_versions)
GLOBAL(GlobalLpPool, plane_norm, LP, QN_QUANT_FLOAT, "the p-norm of each channel")
GLOBAL(GlobalMaxPool, plane_max, .n_attrs = 0, QN_QUANT_PASS, "the largest element of each channel")
