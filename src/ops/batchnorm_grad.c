/* The gradient of BatchNormalization, with statistics of the batch or with fixed ones. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"

static const qn_attr_spec specs[] = {QN_FLOAT_ATTR(qn_batchnorm_attrs, epsilon, 1e-5f),
                                     QN_INT_ATTR(qn_batchnorm_attrs, training_mode, 0)};
static const qn_port ports_in[] = {{"dY", 'T', QN_SET_FLOAT, 0},
                                   {"X", 'T', QN_SET_FLOAT, 0},
                                   {"scale", 'T', QN_SET_FLOAT, 0},
                                   /* The statistics that X was normalized with */
                                   {"mean", 'T', QN_SET_FLOAT, 0},
                                   {"var", 'T', QN_SET_FLOAT, 0}};
static const qn_port ports_out[] = {
    {"dX", 'T', QN_SET_FLOAT, 0}, {"dScale", 'T', QN_SET_FLOAT, 0}, {"dB", 'T', QN_SET_FLOAT, 0}};

static qn_status infer(qn_infer *self)
{
    const qn_type *dy = self->in[0], *x = self->in[1];
    qn_dim merged;
    qn_infer_copy(self, 0, 1);
    if (x->rank < 0)
        return QN_OK;
    if (x->rank == 0 || (dy->rank >= 0 && dy->rank != x->rank))
        return qn_infer_fail(self, "input and gradient have %d and %d dimensions", x->rank,
                             dy->rank);
    for (int32_t d = 0; d < dy->rank; d++) {
        if (!qn_dim_merge(&merged, dy->dims[d], x->dims[d]))
            return qn_infer_fail(self, "the gradient has another shape than the input");
    }
    qn_dim channels = x->rank > 1 ? x->dims[1] : qn_dim_of(1);
    for (int32_t i = 2; i < 5; i++) {
        const qn_type *p = self->in[i];
        if (p->rank >= 0 && (p->rank != 1 || !qn_dim_merge(&channels, channels, p->dims[0])))
            return qn_infer_fail(self, "input %d must be a list of one number per channel", i);
    }
    qn_infer_set(self, 1, x->dtype, 1, &channels);
    qn_infer_set(self, 2, x->dtype, 1, &channels);
    return QN_OK;
}

/* One channel: xh = (x - mean) r, r = 1 / sqrt(var + epsilon),
 *   dB = sum dy, dScale = sum dy xh,
 *   dx = scale r (dy - dB / n - xh dScale / n) where the statistics are those of x,
 *   dx = scale r dy                            where they are fixed. */
typedef struct channel {
    int64_t first, batch, area, step;
    double mean, r, scale;
    double sum, products;
} channel;

static void add_up(channel *c, const double *dy, const double *x)
{
    c->sum = c->products = 0;
    for (int64_t n = 0; n < c->batch; n++) {
        for (int64_t i = 0; i < c->area; i++) {
            const int64_t at = c->first + n * c->step + i;
            c->sum += dy[at];
            c->products += dy[at] * (x[at] - c->mean) * c->r;
        }
    }
}

/* dx takes the place of x. */
static void spread(const channel *c, double *x, const double *dy, bool training)
{
    const double share = training ? 1 / (double)(c->batch * c->area) : 0;
    for (int64_t n = 0; n < c->batch; n++) {
        for (int64_t i = 0; i < c->area; i++) {
            const int64_t at = c->first + n * c->step + i;
            const double xh = (x[at] - c->mean) * c->r;
            x[at] = c->scale * c->r * (dy[at] - share * (c->sum + xh * c->products));
        }
    }
}

static void store_one(const qn_tensor *out, int64_t i, double x)
{
    if (out)
        qn_store_f64(out->data, out->dtype, i, &x, 1);
}

static qn_status eval(qn_eval *self)
{
    const qn_batchnorm_attrs *a = self->attrs;
    const qn_tensor *in = self->in[1], *out = qn_eval_out(self, 0);
    const int64_t channels = in->rank > 1 ? in->dims[1] : 1;
    int64_t area = 1;
    double *x, *dy;
    for (int32_t d = 2; d < in->rank; d++)
        area *= in->dims[d];
    QN_TRY(qn_eval_doubles(self, &dy, self->in[0]));
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t i = 0; i < channels; i++) {
        channel c = {.first = i * area, .batch = in->dims[0], .area = area};
        c.step = channels * area;
        c.mean = qn_tensor_f64(self->in[3], i);
        c.r = 1 / sqrt(qn_tensor_f64(self->in[4], i) + (double)a->epsilon);
        c.scale = qn_tensor_f64(self->in[2], i);
        add_up(&c, dy, x);
        spread(&c, x, dy, a->training_mode != 0);
        store_one(qn_eval_out(self, 1), i, c.products);
        store_one(qn_eval_out(self, 2), i, c.sum);
    }
    if (out)
        qn_store_f64(out->data, out->dtype, 0, x, qn_tensor_count(out));
    return QN_OK;
}

const qn_op qn_op_qn_BatchNormGrad = {.name = "BatchNormGrad",
                                      .domain = "quench",
                                      .since = 1,
                                      QN_PORTS(in, ports_in),
                                      QN_PORTS(out, ports_out),
                                      QN_ATTRS(specs, qn_batchnorm_attrs),
                                      .quant = QN_QUANT_FLOAT,
                                      .infer = infer,
                                      .eval = eval,
                                      .brief = "the gradient of BatchNormalization"};
