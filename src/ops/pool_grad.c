/* Gradients of MaxPool and AveragePool. */
#include <math.h>
#include <string.h>

#include "ops/grad_shape.h"
#include "ops/window.h"

static const qn_attr_spec specs[] = {QN_KERNEL_SHAPE_ATTR(.required = true),
                                     QN_WINDOW_ATTRS,
                                     QN_INT_ATTR(qn_window_attrs, ceil_mode, 0),
                                     QN_ATTR(qn_window_attrs, dilations, INTS),
                                     QN_INT_ATTR(qn_window_attrs, count_include_pad, 0),
                                     QN_ATTR(qn_window_grad_attrs, shape, INTS)};

/* ---- Inference ------------------------------------------------------------------------------- */

/* The window over an input of the attribute's shape gives what input 0 is the gradient of. */
static qn_status infer(qn_infer *self)
{
    const qn_window_grad_attrs *a = self->attrs;
    const qn_type *dy = self->in[0];
    qn_window window;
    qn_dim merged;
    QN_TRY(qn_infer_grad_shape(self, &a->shape));
    const qn_tensor x = qn_grad_tensor(dy->dtype, &a->shape);
    const qn_type type = qn_type_of(&x);
    if (x.rank < 3 || (dy->rank >= 0 && dy->rank != x.rank))
        return qn_infer_fail(self, "input and gradient have %d and %d dimensions", x.rank,
                             dy->rank);
    if (!qn_window_resolve(&window, &a->window, x.rank - 2, type.dims + 2, NULL))
        return qn_infer_fail(self, "%s", window.problem);
    for (int32_t d = 0; dy->rank >= 0 && d < x.rank; d++) {
        if (!qn_dim_merge(&merged, dy->dims[d], d < 2 ? type.dims[d] : window.out[d - 2]))
            return qn_infer_fail(self, "the gradient has another shape than the output");
    }
    return QN_OK;
}

static qn_status max_infer(qn_infer *self)
{
    const qn_window_grad_attrs *a = self->attrs;
    const qn_type *x = self->in[1];
    QN_TRY(infer(self));
    if (x->rank >= 0 && (size_t)x->rank != a->shape.count)
        return qn_infer_fail(self, "X has another shape than the attribute says");
    for (int32_t d = 0; d < x->rank; d++) {
        if (x->dims[d].value >= 0 && x->dims[d].value != a->shape.at[d])
            return qn_infer_fail(self, "X has another shape than the attribute says");
    }
    return QN_OK;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

typedef struct pool {
    qn_window window;
    bool counts_pads;
    int64_t *positions, *elements;
    /* All of X (max only), dY, and the sums */
    double *x, *dy, *dx;
} pool;

static qn_status pool_make(pool *p, qn_eval *self)
{
    const qn_window_grad_attrs *a = self->attrs;
    const qn_tensor shape = qn_grad_tensor(QN_FLOAT32, &a->shape);
    const qn_type type = qn_type_of(&shape);
    const int64_t count = qn_tensor_count(&shape);
    void *positions, *elements, *dx;
    if (!qn_window_resolve(&p->window, &a->window, shape.rank - 2, type.dims + 2, NULL))
        return qn_eval_fail(self, "%s", p->window.problem);
    const int64_t most = qn_window_most_taps(&p->window);
    QN_TRY(qn_eval_scratch(self, &positions, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &elements, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &dx, count, sizeof(double)));
    memset(dx, 0, (size_t)count * sizeof(double));
    p->positions = positions;
    p->elements = elements;
    p->dx = dx;
    p->counts_pads = a->window.count_include_pad != 0;
    return qn_eval_doubles(self, &p->dy, self->in[0]);
}

/* Gives what one window got to the elements that it came from. */
typedef void spread_fn(const pool *p, int64_t plane, int64_t taps, int64_t at, double dy);

static qn_status for_each(qn_eval *self, pool *p, spread_fn *spread)
{
    const qn_tensor *out = self->out[0];
    const int64_t area = qn_window_out_size(&p->window);
    const int64_t planes = out->dims[0] * out->dims[1];
    for (int64_t at = 0; at < area; at++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t taps = qn_window_taps(&p->window, at, p->positions, p->elements);
        for (int64_t i = 0; taps && i < planes; i++)
            spread(p, i * qn_window_in_size(&p->window), taps, at, p->dy[i * area + at]);
    }
    qn_store_f64(out->data, out->dtype, 0, p->dx, qn_tensor_count(out));
    return QN_OK;
}

static void spread_average(const pool *p, int64_t plane, int64_t taps, int64_t at, double dy)
{
    const int64_t divisor = p->counts_pads ? qn_window_padded_taps(&p->window, at) : taps;
    for (int64_t t = 0; t < taps; t++)
        p->dx[plane + p->positions[t]] += dy / (double)divisor;
}

/* The first of the largest has it all, as MaxPool's Indices say. */
static void spread_max(const pool *p, int64_t plane, int64_t taps, int64_t at, double dy)
{
    const double *x = p->x + plane;
    int64_t best = 0;
    (void)at;
    for (int64_t t = 1; t < taps; t++) {
        const double now = x[p->positions[t]], most = x[p->positions[best]];
        if (now > most || (isnan(now) && !isnan(most)))
            best = t;
    }
    p->dx[plane + p->positions[best]] += dy;
}

static qn_status average_eval(qn_eval *self)
{
    pool p;
    QN_TRY(pool_make(&p, self));
    return for_each(self, &p, spread_average);
}

static qn_status max_eval(qn_eval *self)
{
    pool p;
    QN_TRY(pool_make(&p, self));
    QN_TRY(qn_eval_doubles(self, &p.x, self->in[1]));
    return for_each(self, &p, spread_max);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const qn_port average_in[] = {{"dY", 'T', QN_SET_FLOAT, 0}};
static const qn_port max_in[] = {{"dY", 'T', QN_SET_FLOAT, 0}, {"X", 'T', QN_SET_FLOAT, 0}};
static const qn_port ports_out[] = {{"dX", 'T', QN_SET_FLOAT, 0}};

const qn_op qn_op_qn_AveragePoolGrad = {.name = "AveragePoolGrad",
                                        .domain = "quench",
                                        .since = 1,
                                        QN_PORTS(in, average_in),
                                        QN_PORTS(out, ports_out),
                                        QN_ATTRS(specs, qn_window_grad_attrs),
                                        .quant = QN_QUANT_FLOAT,
                                        .infer = infer,
                                        .eval = average_eval,
                                        .brief = "the gradient of AveragePool"};

const qn_op qn_op_qn_MaxPoolGrad = {.name = "MaxPoolGrad",
                                    .domain = "quench",
                                    .since = 1,
                                    QN_PORTS(in, max_in),
                                    QN_PORTS(out, ports_out),
                                    QN_ATTRS(specs, qn_window_grad_attrs),
                                    .quant = QN_QUANT_FLOAT,
                                    .infer = max_infer,
                                    .eval = max_eval,
                                    .brief = "the gradient of MaxPool"};
