/* ConvTranspose, and what the quantized one shares with it: the input spread over a larger output,
 * as the gradient of a convolution is. */
#include <string.h>

#include "ops/conv.h"
#include "ops/versions.h"

const qn_attr_spec qn_conv_transpose_specs[QN_CONV_TRANSPOSE_SPECS] = {
    QN_CONV_ATTRS, QN_ATTR(qn_window_attrs, output_padding, INTS),
    QN_ATTR(qn_window_attrs, output_shape, INTS)};
static const qn_port ports_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"W", 'T', QN_SET_FLOAT, 0},
                                   {"B", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port ports_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

/* ---- Inference ------------------------------------------------------------------------------- */

/* X [N, C, ...], W [C, filters / group, ...]; input b is the bias. */
static qn_status check_channels(const qn_infer *self, const qn_type *x, const qn_type *w, int32_t b,
                                qn_dim *filters)
{
    const int64_t group = ((const qn_window_attrs *)self->attrs)->group;
    qn_dim merged;
    if (group < 1)
        return qn_infer_fail(self, "group is %lld", (long long)group);
    *filters = w->rank >= 0 ? qn_dim_mul(w->dims[1], qn_dim_of(group)) : qn_dim_unknown();
    if (x->rank >= 0 && w->rank >= 0 && !qn_dim_merge(&merged, x->dims[1], w->dims[0]))
        return qn_infer_fail(self, "the input has %lld channels, the weights take %lld",
                             (long long)x->dims[1].value, (long long)w->dims[0].value);
    if (w->rank >= 0 && w->dims[0].value >= 0 && w->dims[0].value % group)
        return qn_infer_fail(self, "%lld channels cannot be split into %lld groups",
                             (long long)w->dims[0].value, (long long)group);
    return qn_infer_conv_bias(self, b, *filters);
}

qn_status qn_infer_conv_transpose(qn_infer *self, int32_t x_at, int32_t w_at, int32_t b,
                                  qn_dtype dtype)
{
    const qn_window_attrs *a = self->attrs;
    const qn_type *x = self->in[x_at], *w = self->in[w_at];
    qn_dim dims[QN_MAX_RANK];
    int64_t kernel[QN_MAX_RANK];
    qn_window window;
    qn_infer_set_dtype(self, 0, dtype);
    const int32_t rank = x->rank >= 0 ? x->rank : w->rank;
    if (rank < 0)
        return QN_OK;
    if (rank < 3 || (w->rank >= 0 && w->rank != rank))
        return qn_infer_fail(self,
                             "input and weights need the same 3 or more dimensions, not %d and %d",
                             x->rank, w->rank);
    QN_TRY(check_channels(self, x, w, b, &dims[1]));
    dims[0] = x->rank >= 0 ? x->dims[0] : qn_dim_unknown();
    for (int32_t d = 2; d < rank; d++)
        dims[d] = qn_dim_unknown();
    const bool known = qn_conv_kernel(kernel, w);
    if (x->rank >= 0 && (known || a->kernel_shape.at)) {
        if (!qn_window_resolve_transposed(&window, a, rank - 2, x->dims + 2, known ? kernel : NULL))
            return qn_infer_fail(self, "%s", window.problem);
        memcpy(dims + 2, window.out, (size_t)(rank - 2) * sizeof *dims);
    }
    qn_infer_set(self, 0, dtype, rank, dims);
    return QN_OK;
}

int64_t qn_conv_transpose_macs(const qn_infer *self, int32_t w_at)
{
    int64_t x[QN_MAX_RANK], w[QN_MAX_RANK], count;
    if (!qn_type_is_static(self->in[0], x) || !qn_type_is_static(self->in[w_at], w) ||
        !qn_dims_count(&count, self->in[0]->rank, x))
        return 0;
    for (int32_t d = 1; d < self->in[w_at]->rank; d++) {
        if (!qn_mul_int64(&count, count, w[d]))
            return 0;
    }
    return count;
}

/* ---- Kernel -------------------------------------------------------------------------------------
 * Every input element adds its multiple of the kernel to the output. A window that slides over the
 * output finds where: its "output" positions are the input's. */

typedef struct spread {
    /* Over the output: in and out changed places */
    qn_window window;
    int64_t channels, filters, group;
    int64_t *positions, *elements;
} spread;

static qn_status spread_make(spread *s, qn_eval *self, const qn_tensor *x, const qn_tensor *w)
{
    const qn_window_attrs *a = self->attrs;
    qn_dim in[QN_MAX_RANK];
    void *positions, *elements;
    for (int32_t d = 0; d < x->rank; d++)
        in[d] = qn_dim_of(x->dims[d]);
    if (!qn_window_resolve_transposed(&s->window, a, x->rank - 2, in + 2, w->dims + 2))
        return qn_eval_fail(self, "%s", s->window.problem);
    for (int32_t d = 0; d < s->window.rank; d++) {
        const qn_dim out = s->window.out[d];
        s->window.out[d] = s->window.in[d];
        s->window.in[d] = out;
    }
    s->channels = x->dims[1];
    s->filters = w->dims[1] * a->group;
    s->group = a->group;
    const int64_t most = qn_window_most_taps(&s->window);
    QN_TRY(qn_eval_scratch(self, &positions, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &elements, most, sizeof(int64_t)));
    s->positions = positions;
    s->elements = elements;
    return QN_OK;
}

/* Adds what input position `at` of one image gives: x [channels, in...], y [filters, out...]. */
static void spread_position(const spread *s, double *y, const double *x, const double *w,
                            int64_t at)
{
    const int64_t taps = qn_window_taps(&s->window, at, s->positions, s->elements);
    const int64_t plane = qn_window_out_size(&s->window), area = qn_window_in_size(&s->window);
    const int64_t size = qn_window_kernel_size(&s->window), each = s->filters / s->group;
    for (int64_t c = 0; c < s->channels; c++) {
        const int64_t g = c / (s->channels / s->group);
        for (int64_t m = 0; m < each; m++) {
            double *to = y + (g * each + m) * area;
            const double *kernel = w + (c * each + m) * size;
            for (int64_t t = 0; t < taps; t++)
                to[s->positions[t]] += x[c * plane + at] * kernel[s->elements[t]];
        }
    }
}

qn_status qn_conv_transpose_f64(double *y, qn_eval *self, int32_t w_at, const double *x,
                                const double *w)
{
    spread s;
    QN_TRY(spread_make(&s, self, self->in[0], self->in[w_at]));
    const int64_t plane = qn_window_out_size(&s.window), area = qn_window_in_size(&s.window);
    for (int64_t n = 0; n < self->in[0]->dims[0]; n++) {
        for (int64_t at = 0; at < plane; at++) {
            QN_TRY(qn_check_cancel(self->ctx));
            spread_position(&s, y + n * s.filters * area, x + n * s.channels * plane, w, at);
        }
    }
    return QN_OK;
}

/* ---- ConvTranspose --------------------------------------------------------------------------- */

static qn_status infer(qn_infer *self)
{
    return qn_infer_conv_transpose(self, 0, 1, 2, self->in[0]->dtype);
}

static int64_t macs(const qn_infer *self)
{
    return qn_conv_transpose_macs(self, 1);
}

static qn_status eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *bias = qn_eval_in(self, 2);
    const int64_t count = qn_tensor_count(out);
    double *x, *w;
    void *block;
    QN_TRY(qn_eval_doubles(self, &x, self->in[0]));
    QN_TRY(qn_eval_doubles(self, &w, self->in[1]));
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(double)));
    double *y = block;
    const int64_t filters = out->dims[1];
    const int64_t area = count ? count / out->dims[0] / filters : 1;
    for (int64_t i = 0; i < count; i++)
        y[i] = bias ? qn_tensor_f64(bias, i / area % filters) : 0;
    QN_TRY(qn_conv_transpose_f64(y, self, 1, x, w));
    qn_store_f64(out->data, out->dtype, 0, y, count);
    return QN_OK;
}

const qn_op qn_op_ConvTranspose = {
    .name = "ConvTranspose",
    .domain = "",
    .since = 1,
    QN_PORTS(in, ports_in),
    QN_PORTS(out, ports_out),
    QN_ATTRS(qn_conv_transpose_specs, qn_window_attrs),
    QN_TYPE_RULES(qn_bfloat16_22),
    .quant = QN_QUANT_MAC,
    .infer = infer,
    .eval = eval,
    .macs = macs,
    .brief = "transposed convolution: spreads the input over a larger output"};
