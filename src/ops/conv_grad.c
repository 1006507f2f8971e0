/* Gradients of Conv by its input and by its weights. */
#include <string.h>

#include "ops/conv.h"
#include "ops/grad_shape.h"

static const qn_attr_spec specs[] = {QN_CONV_ATTRS, QN_ATTR(qn_window_grad_attrs, shape, INTS)};

/* ---- Inference ------------------------------------------------------------------------------- */

/* The convolution of x by w gives what the gradient dy is of. */
static qn_status check(const qn_infer *self, const qn_type *x, const qn_type *w, const qn_type *dy)
{
    const qn_window_grad_attrs *a = self->attrs;
    int64_t kernel[QN_MAX_RANK];
    qn_window window;
    if (x->rank < 0 || w->rank < 0 || dy->rank < 0 || !qn_conv_kernel(kernel, w))
        return QN_OK;
    if (x->rank < 3 || w->rank != x->rank || dy->rank != x->rank)
        return qn_infer_fail(self, "input, weights and gradient have %d, %d and %d dimensions",
                             x->rank, w->rank, dy->rank);
    if (!qn_window_resolve(&window, &a->window, x->rank - 2, x->dims + 2, kernel))
        return qn_infer_fail(self, "%s", window.problem);
    const int64_t group = a->window.group, each = w->dims[1].value, filters = w->dims[0].value;
    if (group < 1 || filters < 0 || each < 0 || filters % group ||
        (x->dims[1].value >= 0 && x->dims[1].value != each * group))
        return qn_infer_fail(self, "channels, filters and groups do not go together");
    qn_dim merged;
    bool fits = qn_dim_merge(&merged, dy->dims[0], x->dims[0]) &&
                qn_dim_merge(&merged, dy->dims[1], w->dims[0]);
    for (int32_t d = 0; d < window.rank; d++)
        fits = fits && qn_dim_merge(&merged, dy->dims[d + 2], window.out[d]);
    return fits ? QN_OK : qn_infer_fail(self, "the gradient has another shape than the output");
}

static qn_status input_infer(qn_infer *self)
{
    const qn_window_grad_attrs *a = self->attrs;
    QN_TRY(qn_infer_grad_shape(self, &a->shape));
    const qn_tensor x = qn_grad_tensor(self->in[0]->dtype, &a->shape);
    const qn_type type = qn_type_of(&x);
    return check(self, &type, self->in[1], self->in[0]);
}

static qn_status weights_infer(qn_infer *self)
{
    const qn_window_grad_attrs *a = self->attrs;
    QN_TRY(qn_infer_grad_shape(self, &a->shape));
    const qn_tensor w = qn_grad_tensor(self->in[0]->dtype, &a->shape);
    const qn_type type = qn_type_of(&w);
    if (w.rank < 3)
        return qn_infer_fail(self, "weights have at least 3 dimensions");
    qn_infer_set(self, 1, self->in[0]->dtype, 1, type.dims);
    return check(self, self->in[0], &type, self->in[1]);
}

/* As many as the convolution itself has: a product of every weight with every output. */
static int64_t macs_of(const qn_type *dy, const qn_type *w)
{
    int64_t y[QN_MAX_RANK], weights[QN_MAX_RANK], macs;
    if (!qn_type_is_static(dy, y) || !qn_type_is_static(w, weights) ||
        !qn_dims_count(&macs, dy->rank, y))
        return 0;
    for (int32_t d = 1; d < w->rank; d++) {
        if (!qn_mul_int64(&macs, macs, weights[d]))
            return 0;
    }
    return macs;
}

static int64_t input_macs(const qn_infer *self)
{
    return macs_of(self->in[0], self->in[1]);
}

static int64_t weights_macs(const qn_infer *self)
{
    return self->out[0] ? macs_of(self->in[1], self->out[0]) : 0;
}

/* ---- Kernels ------------------------------------------------------------------------------------
 * y[n, m, at] = sum over c, t of x[n, c, positions[t]] * w[m, c, elements[t]], differentiated. */

typedef struct walk {
    qn_conv conv;
    /* Elements of a plane of x, of y, and of a kernel */
    int64_t plane, area, size;
    int64_t *positions, *elements;
    const double *dy;
} walk;

static qn_status walk_make(walk *w, qn_eval *self, const qn_tensor *x, const qn_tensor *weights,
                           const qn_tensor *dy)
{
    void *positions, *elements;
    double *gradient;
    QN_TRY(qn_conv_make(&w->conv, self, x, weights));
    w->plane = qn_window_in_size(&w->conv.window);
    w->area = qn_window_out_size(&w->conv.window);
    w->size = qn_window_kernel_size(&w->conv.window);
    const int64_t most = qn_window_most_taps(&w->conv.window);
    QN_TRY(qn_eval_scratch(self, &positions, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &elements, most, sizeof(int64_t)));
    QN_TRY(qn_eval_doubles(self, &gradient, dy));
    w->positions = positions;
    w->elements = elements;
    w->dy = gradient;
    return QN_OK;
}

/* All pairs of a window and a filter: `image` and `weights` point to the first channel of the
 * filter's group and to its weights. */
typedef void tap_fn(const walk *w, double *image, double *weights, double dy, int64_t taps);

static qn_status for_each(const walk *w, qn_eval *self, double *x, double *weights, tap_fn *fn)
{
    const qn_conv *c = &w->conv;
    const int64_t each = c->channels / c->group, filters = c->filters / c->group;
    for (int64_t at = 0; at < w->area; at++) {
        const int64_t taps = qn_window_taps(&c->window, at, w->positions, w->elements);
        for (int64_t n = 0; n < c->batch; n++) {
            QN_TRY(qn_check_cancel(self->ctx));
            for (int64_t m = 0; m < c->filters; m++)
                fn(w, x + (n * c->channels + m / filters * each) * w->plane,
                   weights + m * each * w->size, w->dy[(n * c->filters + m) * w->area + at], taps);
        }
    }
    return QN_OK;
}

static void add_to_image(const walk *w, double *image, double *weights, double dy, int64_t taps)
{
    for (int64_t c = 0; c < w->conv.channels / w->conv.group; c++) {
        for (int64_t t = 0; t < taps; t++)
            image[c * w->plane + w->positions[t]] += dy * weights[c * w->size + w->elements[t]];
    }
}

static void add_to_weights(const walk *w, double *image, double *weights, double dy, int64_t taps)
{
    for (int64_t c = 0; c < w->conv.channels / w->conv.group; c++) {
        for (int64_t t = 0; t < taps; t++)
            weights[c * w->size + w->elements[t]] += dy * image[c * w->plane + w->positions[t]];
    }
}

static qn_status zeros(double **out, qn_eval *self, int64_t count)
{
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof **out));
    *out = block;
    memset(block, 0, (size_t)count * sizeof **out);
    return QN_OK;
}

static qn_status input_eval(qn_eval *self)
{
    const qn_window_grad_attrs *a = self->attrs;
    const qn_tensor x = qn_grad_tensor(QN_FLOAT32, &a->shape), *out = self->out[0];
    double *sums, *weights;
    walk w;
    QN_TRY(walk_make(&w, self, &x, self->in[1], self->in[0]));
    QN_TRY(qn_eval_doubles(self, &weights, self->in[1]));
    QN_TRY(zeros(&sums, self, qn_tensor_count(out)));
    QN_TRY(for_each(&w, self, sums, weights, add_to_image));
    qn_store_f64(out->data, out->dtype, 0, sums, qn_tensor_count(out));
    return QN_OK;
}

/* The bias's: the sum of the gradient of each filter's outputs. */
static void store_bias(const qn_eval *self, const walk *w)
{
    const qn_tensor *out = qn_eval_out(self, 1);
    for (int64_t m = 0; out && m < w->conv.filters; m++) {
        double sum = 0;
        for (int64_t n = 0; n < w->conv.batch; n++) {
            for (int64_t i = 0; i < w->area; i++)
                sum += w->dy[(n * w->conv.filters + m) * w->area + i];
        }
        qn_store_f64(out->data, out->dtype, m, &sum, 1);
    }
}

static qn_status weights_eval(qn_eval *self)
{
    const qn_window_grad_attrs *a = self->attrs;
    const qn_tensor weights = qn_grad_tensor(QN_FLOAT32, &a->shape), *out = qn_eval_out(self, 0);
    const int64_t count = qn_tensor_count(&weights);
    double *sums, *x;
    walk w;
    QN_TRY(walk_make(&w, self, self->in[0], &weights, self->in[1]));
    QN_TRY(qn_eval_doubles(self, &x, self->in[0]));
    QN_TRY(zeros(&sums, self, count));
    QN_TRY(for_each(&w, self, x, sums, add_to_weights));
    if (out)
        qn_store_f64(out->data, out->dtype, 0, sums, count);
    store_bias(self, &w);
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const qn_port input_in[] = {{"dY", 'T', QN_SET_FLOAT, 0}, {"W", 'T', QN_SET_FLOAT, 0}};
static const qn_port input_out[] = {{"dX", 'T', QN_SET_FLOAT, 0}};
static const qn_port weights_in[] = {{"X", 'T', QN_SET_FLOAT, 0}, {"dY", 'T', QN_SET_FLOAT, 0}};
static const qn_port weights_out[] = {{"dW", 'T', QN_SET_FLOAT, 0},
                                      {"dB", 'T', QN_SET_FLOAT, QN_OPTIONAL}};

const qn_op qn_op_qn_ConvGradInput = {.name = "ConvGradInput",
                                      .domain = "quench",
                                      .since = 1,
                                      QN_PORTS(in, input_in),
                                      QN_PORTS(out, input_out),
                                      QN_ATTRS(specs, qn_window_grad_attrs),
                                      .quant = QN_QUANT_FLOAT,
                                      .infer = input_infer,
                                      .eval = input_eval,
                                      .macs = input_macs,
                                      .brief = "the gradient of Conv by its input"};

const qn_op qn_op_qn_ConvGradWeights = {.name = "ConvGradWeights",
                                        .domain = "quench",
                                        .since = 1,
                                        QN_PORTS(in, weights_in),
                                        QN_PORTS(out, weights_out),
                                        QN_ATTRS(specs, qn_window_grad_attrs),
                                        .quant = QN_QUANT_FLOAT,
                                        .infer = weights_infer,
                                        .eval = weights_eval,
                                        .macs = weights_macs,
                                        .brief = "the gradient of Conv by its weights and bias"};
