/* DeformConv: a convolution whose taps are moved by learned offsets, in two dimensions. */
#include <math.h>
#include <string.h>

#include "ops/versions.h"
#include "ops/window.h"

static const qn_attr_spec specs[] = {
    QN_ATTR(qn_window_attrs, kernel_shape, INTS), QN_ATTR(qn_window_attrs, strides, INTS),
    QN_ATTR(qn_window_attrs, pads, INTS),         QN_ATTR(qn_window_attrs, dilations, INTS),
    QN_INT_ATTR(qn_window_attrs, group, 1),       QN_INT_ATTR(qn_window_attrs, offset_group, 1)};
static const qn_port ports_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"W", 'T', QN_SET_FLOAT, 0},
                                   {"offset", 'T', QN_SET_FLOAT, 0},
                                   {"B", 'T', QN_SET_FLOAT, QN_OPTIONAL},
                                   {"mask", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port ports_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

/* ---- Inference ------------------------------------------------------------------------------- */

/* X [N, C, H, W], W [filters, C / group, kh, kw], all known. */
static qn_status check_groups(const qn_infer *self, const int64_t *x, const int64_t *w)
{
    const qn_window_attrs *a = self->attrs;
    if (a->group < 1 || a->offset_group < 1 || w[0] % a->group || x[1] % a->group ||
        x[1] / a->group != w[1] || x[1] % a->offset_group)
        return qn_infer_fail(self,
                             "%lld channels and %lld filters do not fit %lld groups and %lld "
                             "offset groups",
                             (long long)x[1], (long long)w[0], (long long)a->group,
                             (long long)a->offset_group);
    return QN_OK;
}

static qn_status check_dims(const qn_infer *self, int32_t i, int32_t rank, const qn_dim *dims)
{
    qn_dim merged;
    for (int32_t d = 0; d < qn_infer_rank(self, i); d++) {
        if (self->in[i]->rank != rank || !qn_dim_merge(&merged, self->in[i]->dims[d], dims[d]))
            return qn_infer_fail(self, "input %d does not fit the others", i);
    }
    return QN_OK;
}

/* [N, M, H', W'] from x [N, ...], w [M, ...] and offset [N, ..., H', W'], where each is known. */
static void set_open_dims(qn_infer *self)
{
    const qn_type *x = self->in[0], *w = self->in[1], *offset = self->in[2];
    qn_dim dims[4] = {{-1, NULL}, {-1, NULL}, {-1, NULL}, {-1, NULL}};
    if (x->rank == 4)
        dims[0] = x->dims[0];
    if (w->rank == 4)
        dims[1] = w->dims[0];
    for (int32_t i = 2; i < 4 && offset->rank == 4; i++)
        dims[i] = offset->dims[i];
    qn_infer_set(self, 0, x->dtype, 4, dims);
}

static qn_status infer(qn_infer *self)
{
    const qn_window_attrs *a = self->attrs;
    int64_t x[QN_MAX_RANK], w[QN_MAX_RANK];
    qn_window window;
    qn_infer_set_dtype(self, 0, self->in[0]->dtype);
    for (int32_t i = 0; i < 3; i++) {
        if (self->in[i]->rank >= 0 && self->in[i]->rank != 4)
            return qn_infer_fail(self,
                                 "input %d has %d dimensions; only images of two are possible", i,
                                 self->in[i]->rank);
    }
    if (!qn_type_is_static(self->in[0], x) || !qn_type_is_static(self->in[1], w)) {
        set_open_dims(self);
        return QN_OK;
    }
    QN_TRY(check_groups(self, x, w));
    if (!qn_window_resolve(&window, a, 2, self->in[0]->dims + 2, w + 2))
        return qn_infer_fail(self, "%s", window.problem);
    const int64_t taps = a->offset_group * w[2] * w[3];
    const qn_dim offsets[4] = {qn_dim_of(x[0]), qn_dim_of(2 * taps), window.out[0], window.out[1]};
    const qn_dim masks[4] = {qn_dim_of(x[0]), qn_dim_of(taps), window.out[0], window.out[1]};
    const qn_dim dims[4] = {qn_dim_of(x[0]), qn_dim_of(w[0]), window.out[0], window.out[1]};
    QN_TRY(check_dims(self, 2, 4, offsets));
    QN_TRY(check_dims(self, 3, 1, &dims[1]));
    QN_TRY(check_dims(self, 4, 4, masks));
    qn_infer_set(self, 0, self->in[0]->dtype, 4, dims);
    return QN_OK;
}

static int64_t macs(const qn_infer *self)
{
    int64_t w[QN_MAX_RANK], out[QN_MAX_RANK], count;
    if (!self->out[0] || !qn_type_is_static(self->out[0], out) ||
        !qn_type_is_static(self->in[1], w) || !qn_dims_count(&count, 4, out) ||
        !qn_mul_int64(&count, count, w[1]) || !qn_mul_int64(&count, count, w[2]) ||
        !qn_mul_int64(&count, count, w[3]))
        return 0;
    return count;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

typedef struct deform {
    qn_window window;
    const qn_window_attrs *attrs;
    /* Mask NULL: all 1 */
    const double *x, *w, *offset, *mask;
    int64_t channels, filters;
} deform;

/* Between the four elements around (y, x); those outside the plane count as 0. */
static double bilinear(const double *plane, double y, double x, int64_t height, int64_t width)
{
    double sum = 0;
    if (!(y > -1 && y < (double)height && x > -1 && x < (double)width))
        return 0;
    const double top = floor(y), left = floor(x);
    for (int k = 0; k < 4; k++) {
        const int64_t row = (int64_t)top + k / 2, column = (int64_t)left + k % 2;
        const double down = k / 2 ? y - top : 1 - (y - top);
        const double across = k % 2 ? x - left : 1 - (x - left);
        if (row >= 0 && row < height && column >= 0 && column < width)
            sum += down * across * plane[row * width + column];
    }
    return sum;
}

/* What tap `t` of the kernel sees at output position `at` of image n in channel c. */
static double tap(const deform *d, int64_t n, int64_t c, int64_t t, int64_t at)
{
    const qn_window *w = &d->window;
    const int64_t area = qn_window_out_size(w), taps = qn_window_kernel_size(w);
    const int64_t groups = d->attrs->offset_group, g = c / (d->channels / groups);
    const double *moved = d->offset + ((n * groups + g) * taps + t) * 2 * area + at;
    const int64_t row =
        at / w->out[1].value * w->stride[0] - w->pad_begin[0] + t / w->kernel[1] * w->dilation[0];
    const int64_t column =
        at % w->out[1].value * w->stride[1] - w->pad_begin[1] + t % w->kernel[1] * w->dilation[1];
    const double seen = bilinear(d->x + (n * d->channels + c) * w->in[0].value * w->in[1].value,
                                 (double)row + moved[0], (double)column + moved[area],
                                 w->in[0].value, w->in[1].value);
    return d->mask ? seen * d->mask[((n * groups + g) * taps + t) * area + at] : seen;
}

static double position(const deform *d, int64_t n, int64_t m, int64_t at)
{
    const int64_t each = d->channels / d->attrs->group, taps = qn_window_kernel_size(&d->window);
    const int64_t first = m / (d->filters / d->attrs->group) * each;
    double sum = 0;
    for (int64_t c = 0; c < each; c++) {
        for (int64_t t = 0; t < taps; t++)
            sum += tap(d, n, first + c, t, at) * d->w[(m * each + c) * taps + t];
    }
    return sum;
}

static qn_status deform_make(deform *d, qn_eval *self)
{
    const qn_tensor *x = self->in[0], *w = self->in[1];
    const qn_dim in[2] = {qn_dim_of(x->dims[2]), qn_dim_of(x->dims[3])};
    double *values[5] = {NULL};
    d->attrs = self->attrs;
    d->channels = x->dims[1];
    d->filters = w->dims[0];
    if (!qn_window_resolve(&d->window, d->attrs, 2, in, w->dims + 2))
        return qn_eval_fail(self, "%s", d->window.problem);
    for (int32_t i = 0; i < 5; i++) {
        if (i != 3 && qn_eval_in(self, i))
            QN_TRY(qn_eval_doubles(self, &values[i], self->in[i]));
    }
    d->x = values[0];
    d->w = values[1];
    d->offset = values[2];
    d->mask = values[4];
    return QN_OK;
}

static qn_status eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *bias = qn_eval_in(self, 3);
    const int64_t count = qn_tensor_count(out);
    deform d;
    QN_TRY(deform_make(&d, self));
    const int64_t area = qn_window_out_size(&d.window);
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t m = i / area % d.filters;
        const double y =
            position(&d, i / area / d.filters, m, i % area) + (bias ? qn_tensor_f64(bias, m) : 0);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

const qn_op qn_op_DeformConv = {.name = "DeformConv",
                                .domain = "",
                                .since = 19,
                                QN_PORTS(in, ports_in),
                                QN_PORTS(out, ports_out),
                                QN_ATTRS(specs, qn_window_attrs),
                                QN_TYPE_RULES(qn_bfloat16_22),
                                .quant = QN_QUANT_FLOAT,
                                .infer = infer,
                                .eval = eval,
                                .macs = macs,
                                .brief = "convolution with taps moved by offsets"};
