/* Steps of optimizers: new weights from weights and their gradient. */
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/grad_attrs.h"
#include "ops/infer.h"

/* Inputs from 1 to `last` have the shape of input 0, and the `n_out` outputs too; the inputs behind
 * them are single numbers. */
static qn_status infer_like(qn_infer *self, int32_t last, int32_t n_out)
{
    const qn_type *w = self->in[0];
    qn_dim merged;
    for (int32_t o = 0; o < n_out; o++)
        qn_infer_copy(self, o, 0);
    for (int32_t i = 1; i < self->n_in; i++) {
        const qn_type *t = self->in[i];
        if (!t || t->rank < 0 || (i <= last && w->rank < 0))
            continue;
        bool fits = i > last || t->rank == w->rank;
        for (int32_t d = 0; fits && d < t->rank; d++)
            fits = qn_dim_merge(&merged, t->dims[d], i > last ? qn_dim_of(1) : w->dims[d]);
        if (!fits)
            return qn_infer_fail(self, "input %d has the wrong shape", i);
    }
    return QN_OK;
}

static double number_of(const qn_eval *self, int32_t i, double standard)
{
    const qn_tensor *t = qn_eval_in(self, i);
    return t ? qn_tensor_f64(t, 0) : standard;
}

static void store_one(const qn_eval *self, int32_t o, int64_t i, double x)
{
    const qn_tensor *out = qn_eval_out(self, o);
    if (out)
        qn_store_f64(out->data, out->dtype, i, &x, 1);
}

/* ---- SgdStep ---------------------------------------------------------------------------------
 * g = G factor + decay W, M' = momentum M + g, W' = W - rate (g + momentum M') with Nesterov's
 * momentum, else W - rate M'. */

static const qn_attr_spec sgd_specs[] = {QN_FLOAT_ATTR(qn_sgd_attrs, momentum, 0),
                                         QN_FLOAT_ATTR(qn_sgd_attrs, decay, 0),
                                         QN_INT_ATTR(qn_sgd_attrs, nesterov, 0)};
static const qn_port sgd_in[] = {{"W", 'T', QN_SET_FLOAT, 0},
                                 {"G", 'T', QN_SET_FLOAT, 0},
                                 {"M", 'T', QN_SET_FLOAT, 0},
                                 {"rate", 'T', QN_SET_FLOAT, 0},
                                 {"factor", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port sgd_out[] = {{"W_new", 'T', QN_SET_FLOAT, 0}, {"M_new", 'T', QN_SET_FLOAT, 0}};

static qn_status sgd_infer(qn_infer *self)
{
    return infer_like(self, 2, 2);
}

static qn_status sgd_eval(qn_eval *self)
{
    const qn_sgd_attrs *a = self->attrs;
    const double rate = number_of(self, 3, 0), factor = number_of(self, 4, 1);
    const double momentum = (double)a->momentum, decay = (double)a->decay;
    for (int64_t i = 0; i < qn_tensor_count(self->in[0]); i++) {
        const double w = qn_tensor_f64(self->in[0], i);
        const double g = qn_tensor_f64(self->in[1], i) * factor + decay * w;
        const double m = momentum * qn_tensor_f64(self->in[2], i) + g;
        store_one(self, 0, i, w - rate * (a->nesterov ? g + momentum * m : m));
        store_one(self, 1, i, m);
    }
    return QN_OK;
}

const qn_op qn_op_qn_SgdStep = {.name = "SgdStep",
                                .domain = "quench",
                                .since = 1,
                                QN_PORTS(in, sgd_in),
                                QN_PORTS(out, sgd_out),
                                QN_ATTRS(sgd_specs, qn_sgd_attrs),
                                .quant = QN_QUANT_FLOAT,
                                .infer = sgd_infer,
                                .eval = sgd_eval,
                                .brief = "a step of gradient descent with momentum"};

/* ---- AdamStep --------------------------------------------------------------------------------
 * g = G factor (+ decay W where the decay is coupled), M' = b1 M + (1 - b1) g,
 * V' = b2 V + (1 - b2) g^2, and with the bias of step t taken out
 * W' = W (1 - rate decay where it is decoupled) - rate m / (sqrt(v) + epsilon). */

static const qn_attr_spec adam_specs[] = {
    QN_FLOAT_ATTR(qn_adam_attrs, beta1, .9f), QN_FLOAT_ATTR(qn_adam_attrs, beta2, .999f),
    QN_FLOAT_ATTR(qn_adam_attrs, epsilon, 1e-8f), QN_FLOAT_ATTR(qn_adam_attrs, decay, 0),
    QN_INT_ATTR(qn_adam_attrs, decoupled, 0)};
static const qn_port adam_in[] = {{"W", 'T', QN_SET_FLOAT, 0},
                                  {"G", 'T', QN_SET_FLOAT, 0},
                                  {"M", 'T', QN_SET_FLOAT, 0},
                                  {"V", 'T', QN_SET_FLOAT, 0},
                                  {"rate", 'T', QN_SET_FLOAT, 0},
                                  {"step", 'T', QN_SET_FLOAT, 0},
                                  {"factor", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port adam_out[] = {{"W_new", 'T', QN_SET_FLOAT, 0},
                                   {"M_new", 'T', QN_SET_FLOAT, 0},
                                   {"V_new", 'T', QN_SET_FLOAT, 0}};

static qn_status adam_infer(qn_infer *self)
{
    return infer_like(self, 3, 3);
}

static qn_status adam_eval(qn_eval *self)
{
    const qn_adam_attrs *a = self->attrs;
    const double rate = number_of(self, 4, 0), step = number_of(self, 5, 1);
    const double factor = number_of(self, 6, 1), decay = (double)a->decay;
    const double b1 = (double)a->beta1, b2 = (double)a->beta2;
    const double unbias1 = 1 - pow(b1, step), unbias2 = 1 - pow(b2, step);
    for (int64_t i = 0; i < qn_tensor_count(self->in[0]); i++) {
        const double w = qn_tensor_f64(self->in[0], i);
        const double g = qn_tensor_f64(self->in[1], i) * factor + (a->decoupled ? 0 : decay * w);
        const double m = b1 * qn_tensor_f64(self->in[2], i) + (1 - b1) * g;
        const double v = b2 * qn_tensor_f64(self->in[3], i) + (1 - b2) * g * g;
        const double kept = a->decoupled ? w * (1 - rate * decay) : w;
        const double root = sqrt(v / unbias2) + (double)a->epsilon;
        store_one(self, 0, i, kept - rate * (m / unbias1) / root);
        store_one(self, 1, i, m);
        store_one(self, 2, i, v);
    }
    return QN_OK;
}

const qn_op qn_op_qn_AdamStep = {.name = "AdamStep",
                                 .domain = "quench",
                                 .since = 1,
                                 QN_PORTS(in, adam_in),
                                 QN_PORTS(out, adam_out),
                                 QN_ATTRS(adam_specs, qn_adam_attrs),
                                 .quant = QN_QUANT_FLOAT,
                                 .infer = adam_infer,
                                 .eval = adam_eval,
                                 .brief = "a step of Adam or AdamW"};

/* ---- GradientScale ---------------------------------------------------------------------------
 * min(1, max_norm / norm) over the norm of all gradients together. */

static const qn_attr_spec norm_specs[] = {QN_FLOAT_ATTR(qn_gradient_scale_attrs, max_norm, 1)};
static const qn_port norm_in[] = {{"G", 'T', QN_SET_FLOAT, QN_VARIADIC}};
static const qn_port norm_out[] = {{"factor", 'T', QN_SET_FLOAT, 0}};

static qn_status norm_infer(qn_infer *self)
{
    qn_infer_set(self, 0, self->in[0]->dtype, 0, NULL);
    return QN_OK;
}

static qn_status norm_eval(qn_eval *self)
{
    const qn_gradient_scale_attrs *a = self->attrs;
    double squares = 0;
    for (int32_t k = 0; k < self->n_in; k++) {
        for (int64_t i = 0; i < qn_tensor_count(self->in[k]); i++) {
            const double g = qn_tensor_f64(self->in[k], i);
            squares += g * g;
        }
    }
    const double norm = sqrt(squares), most = (double)a->max_norm;
    store_one(self, 0, 0, norm > most ? most / norm : 1);
    return QN_OK;
}

const qn_op qn_op_qn_GradientScale = {.name = "GradientScale",
                                      .domain = "quench",
                                      .since = 1,
                                      QN_PORTS(in, norm_in),
                                      QN_PORTS(out, norm_out),
                                      QN_ATTRS(norm_specs, qn_gradient_scale_attrs),
                                      .quant = QN_QUANT_FLOAT,
                                      .infer = norm_infer,
                                      .eval = norm_eval,
                                      .brief = "the factor that limits the norm of gradients"};
