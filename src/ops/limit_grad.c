/* Gradients of Relu and Clip: what came in where the element was not limited. */
#include "ops/elementwise.h"

/* ---- ReluGrad -------------------------------------------------------------------------------- */

static const qn_port relu_in[] = {{"dY", 'T', QN_SET_FLOAT, 0}, {"Y", 'T', QN_SET_FLOAT, 0}};
static const qn_port relu_out[] = {{"dX", 'T', QN_SET_FLOAT, 0}};

static qn_status same_shapes(qn_infer *self, int32_t other)
{
    const qn_type *a = self->in[0], *b = self->in[other];
    qn_dim merged;
    qn_infer_copy(self, 0, other);
    bool fits = a->rank < 0 || b->rank < 0 || a->rank == b->rank;
    for (int32_t d = 0; fits && b->rank >= 0 && d < a->rank; d++)
        fits = qn_dim_merge(&merged, a->dims[d], b->dims[d]);
    return fits ? QN_OK : qn_infer_fail(self, "the gradient has another shape than the output");
}

static qn_status relu_infer(qn_infer *self)
{
    return same_shapes(self, 1);
}

static double relu_f64(double dy, double y, const void *attrs)
{
    (void)attrs;
    return y > 0 ? dy : 0;
}

static qn_status relu_eval(qn_eval *self)
{
    return qn_eval_binary(self, relu_f64, NULL);
}

const qn_op qn_op_qn_ReluGrad = {.name = "ReluGrad",
                                 .domain = "quench",
                                 .since = 1,
                                 QN_PORTS(in, relu_in),
                                 QN_PORTS(out, relu_out),
                                 .flags = QN_OP_ELEMENTWISE,
                                 .quant = QN_QUANT_FLOAT,
                                 .infer = relu_infer,
                                 .eval = relu_eval,
                                 .brief = "dY where Y > 0, else 0"};

/* ---- ClipGrad -------------------------------------------------------------------------------- */

static const qn_port clip_in[] = {{"dY", 'T', QN_SET_FLOAT, 0},
                                  {"X", 'T', QN_SET_FLOAT, 0},
                                  {"min", 'T', QN_SET_FLOAT, QN_OPTIONAL},
                                  {"max", 'T', QN_SET_FLOAT, QN_OPTIONAL}};

static qn_status clip_infer(qn_infer *self)
{
    return same_shapes(self, 1);
}

static qn_status clip_eval(qn_eval *self)
{
    const qn_tensor *dy = self->in[0], *x = self->in[1], *out = self->out[0];
    const qn_tensor *min = qn_eval_in(self, 2), *max = qn_eval_in(self, 3);
    if ((min && qn_tensor_count(min) != 1) || (max && qn_tensor_count(max) != 1))
        return qn_eval_fail(self, "min and max must be single numbers");
    const double low = min ? qn_tensor_f64(min, 0) : 0, high = max ? qn_tensor_f64(max, 0) : 0;
    for (int64_t i = 0; i < qn_tensor_count(out); i++) {
        const double at = qn_tensor_f64(x, i);
        const bool inside = (!min || at >= low) && (!max || at <= high);
        const double dx = inside ? qn_tensor_f64(dy, i) : 0;
        qn_store_f64(out->data, out->dtype, i, &dx, 1);
    }
    return QN_OK;
}

const qn_op qn_op_qn_ClipGrad = {.name = "ClipGrad",
                                 .domain = "quench",
                                 .since = 1,
                                 QN_PORTS(in, clip_in),
                                 QN_PORTS(out, relu_out),
                                 .quant = QN_QUANT_FLOAT,
                                 .infer = clip_infer,
                                 .eval = clip_eval,
                                 .brief = "dY where X is in [min, max], else 0"};
