/* Fake quantization with a learned scale, and its straight-through gradients. */
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/grad_attrs.h"
#include "ops/infer.h"

static const qn_attr_spec specs[] = {
    QN_INT_ATTR(qn_fake_quant_attrs, axis, 0), QN_INT_ATTR(qn_fake_quant_attrs, qmin, -128),
    QN_INT_ATTR(qn_fake_quant_attrs, qmax, 127), QN_INT_ATTR(qn_fake_quant_attrs, limits_only, 0),
    QN_FLOAT_ATTR(qn_fake_quant_attrs, factor, 1)};
static const qn_port plain_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"scale", 'T', QN_SET_FLOAT, 0},
                                   {"offset", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port plain_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};
static const qn_port grad_in[] = {{"dY", 'T', QN_SET_FLOAT, 0},
                                  {"X", 'T', QN_SET_FLOAT, 0},
                                  {"scale", 'T', QN_SET_FLOAT, 0},
                                  {"offset", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port grad_out[] = {{"dX", 'T', QN_SET_FLOAT, 0},
                                   {"dScale", 'T', QN_SET_FLOAT, QN_OPTIONAL},
                                   {"dOffset", 'T', QN_SET_FLOAT, QN_OPTIONAL}};

/* ---- Inference ------------------------------------------------------------------------------- */

/* Input i is a single number, or a list of one number for each place along the axis of input x. */
static qn_status check_list(const qn_infer *self, int32_t x, int32_t i)
{
    const qn_fake_quant_attrs *a = self->attrs;
    const int32_t rank = qn_infer_rank(self, i), of = qn_infer_rank(self, x);
    qn_dim merged;
    if (rank < 1)
        return QN_OK;
    if (rank != 1)
        return qn_infer_fail(self, "input %d must be a number or a list", i);
    if (of < 0 || self->in[i]->dims[0].value == 1)
        return QN_OK;
    if (a->axis < 0 || a->axis >= of ||
        !qn_dim_merge(&merged, self->in[i]->dims[0], self->in[x]->dims[a->axis]))
        return qn_infer_fail(self, "input %d must have one number for each place along axis %lld",
                             i, (long long)a->axis);
    return QN_OK;
}

static qn_status check(const qn_infer *self, int32_t x)
{
    const qn_fake_quant_attrs *a = self->attrs;
    if (a->qmin >= a->qmax || a->qmin < -(1 << 20) || a->qmax > 1 << 20)
        return qn_infer_fail(self, "there are no integers between %lld and %lld",
                             (long long)a->qmin, (long long)a->qmax);
    QN_TRY(check_list(self, x, x + 1));
    return qn_infer_has(self, x + 2) ? check_list(self, x, x + 2) : QN_OK;
}

static qn_status plain_infer(qn_infer *self)
{
    qn_infer_copy(self, 0, 0);
    return check(self, 0);
}

static qn_status grad_infer(qn_infer *self)
{
    const qn_type *dy = self->in[0], *x = self->in[1];
    qn_dim merged;
    qn_infer_copy(self, 0, 1);
    qn_infer_copy(self, 1, 2);
    if (qn_infer_has(self, 3))
        qn_infer_copy(self, 2, 3);
    else if (qn_infer_wants(self, 2))
        return qn_infer_fail(self, "there is no offset that could have a gradient");
    bool fits = dy->rank < 0 || x->rank < 0 || dy->rank == x->rank;
    for (int32_t d = 0; fits && dy->rank >= 0 && d < x->rank; d++)
        fits = qn_dim_merge(&merged, dy->dims[d], x->dims[d]);
    return fits ? check(self, 1)
                : qn_infer_fail(self, "the gradient has another shape than the input");
}

/* ---- Kernels ------------------------------------------------------------------------------------
 * z = rint(-offset / s), q = clamp(rint(x / s), qmin - z, qmax - z), y = q s: what QuantizeLinear
 * and DequantizeLinear do, with the same rounding of the quotient to a float. */

typedef struct channels {
    const qn_fake_quant_attrs *attrs;
    const qn_tensor *scale, *offset;
    bool is_float;
    /* Elements between two places along the axis, and places; 0: one scale for all */
    int64_t step, count;
} channels;

static channels channels_of(const qn_eval *self, int32_t x)
{
    const qn_tensor *in = self->in[x];
    channels c = {.attrs = self->attrs,
                  .scale = self->in[x + 1],
                  .offset = qn_eval_in(self, x + 2),
                  .is_float = in->dtype == QN_FLOAT32,
                  .step = 1};
    if (qn_tensor_count(c.scale) == 1)
        return c;
    c.count = in->dims[c.attrs->axis];
    for (int32_t d = (int32_t)c.attrs->axis + 1; d < in->rank; d++)
        c.step *= in->dims[d];
    return c;
}

static int64_t channel_at(const channels *c, int64_t i)
{
    return c->count ? i / c->step % c->count : 0;
}

static double quotient(const channels *c, double x, double s)
{
    return c->is_float ? (double)((float)x / (float)s) : x / s;
}

typedef struct element {
    /* The quotient, the integer, and where the quotient lies: -1 below the integers, 1 above */
    double v, q;
    int side;
    double s;
} element;

static element element_of(const channels *c, double x, int64_t k)
{
    element e = {.s = qn_tensor_f64(c->scale, k)};
    double z = 0;
    if (c->offset)
        z = rint(
            -quotient(c, qn_tensor_f64(c->offset, qn_tensor_count(c->offset) == 1 ? 0 : k), e.s));
    const double low = (double)c->attrs->qmin - z, high = (double)c->attrs->qmax - z;
    e.v = quotient(c, x, e.s);
    e.side = e.v < low ? -1 : e.v > high ? 1 : 0;
    e.q = e.side < 0 ? low : e.side > 0 ? high : rint(e.v);
    return e;
}

static qn_status plain_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const channels c = channels_of(self, 0);
    for (int64_t i = 0; i < qn_tensor_count(in); i++) {
        const element e = element_of(&c, qn_tensor_f64(in, i), channel_at(&c, i));
        const double y = e.q * e.s;
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

/* d y / d s: what was rounded away, and the limit (without the part that is the offset) beyond it.
 * With `limits_only` the rounding does not count: PACT. */
static double by_scale(const channels *c, const element *e)
{
    if (e->side == 0)
        return c->attrs->limits_only ? 0 : e->q - e->v;
    return e->side < 0 ? (double)c->attrs->qmin : (double)c->attrs->qmax;
}

static void store_sums(const qn_eval *self, int32_t o, const double *sums, double factor)
{
    const qn_tensor *out = qn_eval_out(self, o);
    for (int64_t k = 0; out && k < qn_tensor_count(out); k++) {
        const double sum = sums[k] * factor;
        qn_store_f64(out->data, out->dtype, k, &sum, 1);
    }
}

static qn_status grad_eval(qn_eval *self)
{
    const qn_tensor *dy = self->in[0], *in = self->in[1], *out = qn_eval_out(self, 0);
    const channels c = channels_of(self, 1);
    const int64_t lists = qn_tensor_count(c.scale);
    const bool one_offset = c.offset && qn_tensor_count(c.offset) == 1;
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, 2 * lists, sizeof(double)));
    memset(block, 0, (size_t)(2 * lists) * sizeof(double));
    double *scales = block, *offsets = scales + lists;
    for (int64_t i = 0; i < qn_tensor_count(in); i++) {
        const int64_t k = channel_at(&c, i);
        const element e = element_of(&c, qn_tensor_f64(in, i), k);
        const double g = qn_tensor_f64(dy, i), dx = e.side == 0 ? g : 0;
        scales[k] += g * by_scale(&c, &e);
        offsets[one_offset ? 0 : k] += e.side == 0 ? 0 : g;
        if (out)
            qn_store_f64(out->data, out->dtype, i, &dx, 1);
    }
    store_sums(self, 1, scales, (double)c.attrs->factor);
    store_sums(self, 2, offsets, (double)c.attrs->factor);
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

const qn_op qn_op_qn_FakeQuant = {.name = "FakeQuant",
                                  .domain = "quench",
                                  .since = 1,
                                  QN_PORTS(in, plain_in),
                                  QN_PORTS(out, plain_out),
                                  QN_ATTRS(specs, qn_fake_quant_attrs),
                                  .quant = QN_QUANT_FLOAT,
                                  .infer = plain_infer,
                                  .eval = plain_eval,
                                  .brief = "floats rounded as integers with a learned scale are"};

const qn_op qn_op_qn_FakeQuantGrad = {.name = "FakeQuantGrad",
                                      .domain = "quench",
                                      .since = 1,
                                      QN_PORTS(in, grad_in),
                                      QN_PORTS(out, grad_out),
                                      QN_ATTRS(specs, qn_fake_quant_attrs),
                                      .quant = QN_QUANT_FLOAT,
                                      .infer = grad_infer,
                                      .eval = grad_eval,
                                      .brief = "the straight-through gradient of FakeQuant"};
