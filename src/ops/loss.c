/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/versions.h"

enum { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN };
static const char *const reductions[] = {"none", "sum", "mean", NULL};
typedef struct loss_attrs {
    int64_t ignore_index, reduction;
} loss_attrs;
static const qn_attr_spec specs[] = {QN_INT_ATTR(loss_attrs, ignore_index, QN_ABSENT),
                                     QN_ENUM_ATTR(loss_attrs, reduction, REDUCE_MEAN, reductions)};

static const qn_port ports_in[] = {{"input", 'T', QN_SET_FLOAT, 0},
                                   {"target", '\0', QN_SET_INDEX, 0},
                                   {"weight", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port likelihood_out[] = {{"loss", 'T', QN_SET_FLOAT, 0}};
static const qn_port entropy_out[] = {{"output", 'T', QN_SET_FLOAT, 0},
                                      {"log_prob", 'T', QN_SET_FLOAT, QN_OPTIONAL}};

/* ---- Inference ------------------------------------------------------------------------------- */

/* Scores [N, C, ...], targets [N, ...]. */
static qn_status infer(qn_infer *self)
{
    const loss_attrs *a = self->attrs;
    const qn_type *x = self->in[0], *target = self->in[1];
    qn_dim dims[QN_MAX_RANK], merged;
    qn_infer_set_dtype(self, 0, x->dtype);
    qn_infer_copy(self, 1, 0);
    if (x->rank >= 0 && x->rank < 2)
        return qn_infer_fail(self, "the scores need at least 2 dimensions");
    if (x->rank >= 0 && target->rank >= 0 && target->rank != x->rank - 1)
        return qn_infer_fail(self, "the targets have %d dimensions instead of %d", target->rank,
                             x->rank - 1);
    const int32_t rank = x->rank >= 0 ? x->rank - 1 : target->rank;
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = x->rank >= 0 ? x->dims[d ? d + 1 : 0] : qn_dim_unknown();
        if (target->rank >= 0 && !qn_dim_merge(&dims[d], dims[d], target->dims[d]))
            return qn_infer_fail(self, "dimension %d of the targets is %lld instead of %lld", d,
                                 (long long)target->dims[d].value, (long long)dims[d].value);
    }
    if (qn_infer_rank(self, 2) >= 0 &&
        (self->in[2]->rank != 1 ||
         (x->rank >= 0 && !qn_dim_merge(&merged, self->in[2]->dims[0], x->dims[1]))))
        return qn_infer_fail(self, "there must be one weight per class");
    if (a->reduction == REDUCE_NONE)
        qn_infer_set(self, 0, x->dtype, rank, dims);
    else
        qn_infer_set(self, 0, x->dtype, 0, NULL);
    return QN_OK;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

/* The scores as [batch, classes, area]. */
typedef struct shape {
    int64_t batch, classes, area;
} shape;

static shape shape_of(const qn_tensor *x)
{
    shape s = {x->dims[0], x->dims[1], 1};
    for (int32_t d = 2; d < x->rank; d++)
        s.area *= x->dims[d];
    return s;
}

static qn_status eval_loss(qn_eval *self, const double *x)
{
    const loss_attrs *a = self->attrs;
    const qn_tensor *target = self->in[1], *weight = qn_eval_in(self, 2),
                    *out = qn_eval_out(self, 0);
    const shape s = shape_of(self->in[0]);
    const int64_t count = qn_tensor_count(target);
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = qn_tensor_i64(target, i);
        double loss = 0, w = 0;
        if (a->ignore_index == QN_ABSENT || c != a->ignore_index) {
            if (c < 0 || c >= s.classes)
                return qn_eval_fail(self, "target %lld is %lld, there are %lld classes",
                                    (long long)i, (long long)c, (long long)s.classes);
            w = weight ? qn_tensor_f64(weight, c) : 1;
            loss = -x[(i / s.area * s.classes + c) * s.area + i % s.area] * w;
        }
        sum += loss;
        weights += w;
        if (out && a->reduction == REDUCE_NONE)
            qn_store_f64(out->data, out->dtype, i, &loss, 1);
    }
    if (a->reduction == REDUCE_MEAN)
        sum /= weights;
    if (out && a->reduction != REDUCE_NONE)
        qn_store_f64(out->data, out->dtype, 0, &sum, 1);
    return QN_OK;
}

static qn_status likelihood_eval(qn_eval *self)
{
    double *x;
    QN_TRY(qn_eval_doubles(self, &x, self->in[0]));
    return eval_loss(self, x);
}

/* x - max - log(sum(e^(x - max))) over the classes at one place. */
static void log_softmax(double *x, const shape *s)
{
    double max = x[0], sum = 0;
    for (int64_t c = 1; c < s->classes; c++)
        max = fmax(max, x[c * s->area]);
    for (int64_t c = 0; c < s->classes; c++)
        sum += exp(x[c * s->area] - max);
    for (int64_t c = 0; c < s->classes; c++)
        x[c * s->area] -= max + log(sum);
}

static qn_status entropy_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *log_prob = qn_eval_out(self, 1);
    const shape s = shape_of(in);
    const int64_t count = qn_tensor_count(in);
    double *x;
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t i = 0; count && i < s.batch * s.area; i++)
        log_softmax(x + i / s.area * s.classes * s.area + i % s.area, &s);
    if (log_prob)
        qn_store_f64(log_prob->data, log_prob->dtype, 0, x, count);
    return eval_loss(self, x);
}

#define LOSS(Name, f, RULES, BRIEF)                                                                \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 12,                                                       \
                                QN_PORTS(in, ports_in),                                            \
                                QN_PORTS(out, f##_out),                                            \
                                QN_ATTRS(specs, loss_attrs),                                       \
                                RULES,                                                             \
                                .quant = QN_QUANT_FLOAT,                                           \
                                .infer = infer,                                                    \
                                .eval = f##_eval,                                                  \
                                .brief = BRIEF};

LOSS(NegativeLogLikelihoodLoss, likelihood, QN_TYPE_RULES(qn_bfloat16_22),
     "minus the log-probability of the target class")
LOSS(SoftmaxCrossEntropyLoss, entropy, .n_type_rules = 0,
     "cross entropy of softmax(scores) and the target class")
