/* Conv, and what the quantized convolutions share with it. */
#include "ops/conv.h"
#include "ops/versions.h"

#include <string.h>

static const qn_attr_spec conv_specs[] = {QN_CONV_ATTRS};

/* ---- Inference ------------------------------------------------------------------------------- */

/* Channels, filters and groups go together. */
static qn_status check_channels(const qn_infer *self, const qn_type *x, const qn_type *w,
                                int64_t group)
{
    if (group < 1)
        return qn_infer_fail(self, "group is %lld", (long long)group);
    const int64_t filters = w->rank >= 0 ? w->dims[0].value : -1;
    if (filters >= 0 && filters % group)
        return qn_infer_fail(self, "%lld filters cannot be split into %lld groups",
                             (long long)filters, (long long)group);
    const int64_t channels = x->rank >= 0 ? x->dims[1].value : -1;
    const int64_t each = w->rank >= 0 ? w->dims[1].value : -1;
    if (channels >= 0 && each >= 0 && (channels % group || channels / group != each))
        return qn_infer_fail(self,
                             "the input has %lld channels, the weights take %lld in %lld groups",
                             (long long)channels, (long long)each, (long long)group);
    return QN_OK;
}

qn_status qn_infer_conv_bias(const qn_infer *self, int32_t b, qn_dim filters)
{
    if (b < 0 || qn_infer_rank(self, b) < 0)
        return QN_OK;
    const qn_type *bias = self->in[b];
    qn_dim merged;
    if (bias->rank != 1 || !qn_dim_merge(&merged, bias->dims[0], filters))
        return qn_infer_fail(self, "the bias must be a list of one number per filter");
    return QN_OK;
}

bool qn_conv_kernel(int64_t *kernel, const qn_type *w)
{
    for (int32_t d = 2; d < w->rank; d++) {
        kernel[d - 2] = w->dims[d].value;
        if (kernel[d - 2] < 0)
            return false;
    }
    return w->rank > 2;
}

qn_status qn_infer_conv(qn_infer *self, int32_t x, int32_t w, int32_t b, qn_dtype dtype)
{
    const qn_window_attrs *a = self->attrs;
    const qn_type *in = self->in[x], *weights = self->in[w];
    qn_dim dims[QN_MAX_RANK];
    int64_t kernel[QN_MAX_RANK];
    qn_window window;
    qn_infer_set_dtype(self, 0, dtype);
    const int32_t rank = in->rank >= 0 ? in->rank : weights->rank;
    if (rank < 0)
        return QN_OK;
    if (rank < 3 || (weights->rank >= 0 && weights->rank != rank))
        return qn_infer_fail(self,
                             "input and weights need the same 3 or more dimensions, not %d and %d",
                             in->rank, weights->rank);
    QN_TRY(check_channels(self, in, weights, a->group));
    dims[0] = in->rank >= 0 ? in->dims[0] : qn_dim_unknown();
    dims[1] = weights->rank >= 0 ? weights->dims[0] : qn_dim_unknown();
    QN_TRY(qn_infer_conv_bias(self, b, dims[1]));
    for (int32_t d = 2; d < rank; d++)
        dims[d] = qn_dim_unknown();
    const bool known = qn_conv_kernel(kernel, weights);
    if (in->rank >= 0 && (known || a->kernel_shape.at)) {
        if (!qn_window_resolve(&window, a, rank - 2, in->dims + 2, known ? kernel : NULL))
            return qn_infer_fail(self, "%s", window.problem);
        memcpy(dims + 2, window.out, (size_t)(rank - 2) * sizeof *dims);
    }
    qn_infer_set(self, 0, dtype, rank, dims);
    return QN_OK;
}

int64_t qn_conv_macs(const qn_infer *self, int32_t w)
{
    int64_t out[QN_MAX_RANK], weights[QN_MAX_RANK], macs;
    const qn_type *type = self->in[w];
    if (!self->out[0] || !qn_type_is_static(self->out[0], out) ||
        !qn_type_is_static(type, weights) || !qn_dims_count(&macs, self->out[0]->rank, out))
        return 0;
    for (int32_t d = 1; d < type->rank; d++) {
        if (!qn_mul_int64(&macs, macs, weights[d]))
            return 0;
    }
    return macs;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

qn_status qn_conv_make(qn_conv *out, qn_eval *self, const qn_tensor *x, const qn_tensor *w)
{
    const qn_window_attrs *a = self->attrs;
    qn_dim in[QN_MAX_RANK];
    for (int32_t d = 0; d < x->rank; d++)
        in[d] = qn_dim_of(x->dims[d]);
    if (!qn_window_resolve(&out->window, a, x->rank - 2, in + 2, w->dims + 2))
        return qn_eval_fail(self, "%s", out->window.problem);
    out->batch = x->dims[0];
    out->channels = x->dims[1];
    out->filters = w->dims[0];
    out->group = a->group;
    return QN_OK;
}

/* What stands at one output position of one filter, from the taps there. */
static double filter_sum(const double *x, const double *w, const qn_conv *conv, int64_t taps,
                         const int64_t *positions, const int64_t *elements)
{
    const int64_t plane = qn_window_in_size(&conv->window);
    const int64_t size = qn_window_kernel_size(&conv->window);
    double sum = 0;
    for (int64_t c = 0; c < conv->channels / conv->group; c++) {
        for (int64_t t = 0; t < taps; t++)
            sum += x[c * plane + positions[t]] * w[c * size + elements[t]];
    }
    return sum;
}

qn_status qn_conv_f64(double *y, qn_eval *self, const qn_conv *conv, const double *x,
                      const double *w)
{
    const qn_window *window = &conv->window;
    const int64_t plane = qn_window_in_size(window), area = qn_window_out_size(window);
    const int64_t size = qn_window_kernel_size(window), each = conv->channels / conv->group;
    const int64_t most = qn_window_most_taps(window);
    void *positions, *elements;
    QN_TRY(qn_eval_scratch(self, &positions, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &elements, most, sizeof(int64_t)));
    for (int64_t at = 0; at < area; at++) {
        const int64_t taps = qn_window_taps(window, at, positions, elements);
        for (int64_t n = 0; n < conv->batch; n++) {
            QN_TRY(qn_check_cancel(self->ctx));
            for (int64_t m = 0; m < conv->filters; m++) {
                const int64_t g = m / (conv->filters / conv->group);
                const double *from = x + (n * conv->channels + g * each) * plane;
                y[(n * conv->filters + m) * area + at] =
                    filter_sum(from, w + m * each * size, conv, taps, positions, elements);
            }
        }
    }
    return QN_OK;
}

/* ---- Conv ------------------------------------------------------------------------------------ */

static const qn_port conv_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                  {"W", 'T', QN_SET_FLOAT, 0},
                                  {"B", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port conv_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

static qn_status conv_infer(qn_infer *self)
{
    return qn_infer_conv(self, 0, 1, 2, self->in[0]->dtype);
}

static int64_t conv_macs(const qn_infer *self)
{
    return qn_conv_macs(self, 1);
}

static qn_status conv_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *bias = qn_eval_in(self, 2);
    const int64_t count = qn_tensor_count(out);
    qn_conv conv;
    double *x, *w;
    void *block;
    QN_TRY(qn_conv_make(&conv, self, self->in[0], self->in[1]));
    QN_TRY(qn_eval_doubles(self, &x, self->in[0]));
    QN_TRY(qn_eval_doubles(self, &w, self->in[1]));
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(double)));
    double *y = block;
    QN_TRY(qn_conv_f64(y, self, &conv, x, w));
    const int64_t area = qn_window_out_size(&conv.window);
    for (int64_t i = 0; bias && i < count; i++)
        y[i] += qn_tensor_f64(bias, i / area % conv.filters);
    qn_store_f64(out->data, out->dtype, 0, y, count);
    return QN_OK;
}

const qn_op qn_op_Conv = {.name = "Conv",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, conv_in),
                          QN_PORTS(out, conv_out),
                          QN_ATTRS(conv_specs, qn_window_attrs),
                          QN_TYPE_RULES(qn_bfloat16_22),
                          .quant = QN_QUANT_MAC,
                          .infer = conv_infer,
                          .eval = conv_eval,
                          .macs = conv_macs,
                          .brief = "convolution of any number of dimensions, in groups"};
