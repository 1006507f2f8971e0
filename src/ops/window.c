/* The geometry of windows: convolutions and pools. */
#include "ops/window.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

const char *const qn_auto_pad_words[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};

/* Sizes beyond this are refused, so that sums and products of two never overflow. */
#define LARGEST INT32_MAX

static bool problem(qn_window *w, const char *format, ...) QN_PRINTF(2, 3);
static bool problem(qn_window *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(w->problem, sizeof w->problem, format, args);
    va_end(args);
    return false;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

/* One number per spatial dimension into out[], or `standard` where the attribute is absent. */
static bool read_list(qn_window *w, int64_t *out, const qn_ints *list, const char *name,
                      int64_t least)
{
    if (list->at && list->count != (size_t)w->rank)
        return problem(w, "%s has %zu numbers for %d spatial dimensions", name, list->count,
                       w->rank);
    for (int32_t d = 0; d < w->rank; d++) {
        out[d] = list->at ? list->at[d] : least;
        if (out[d] < least || out[d] > LARGEST)
            return problem(w, "%s holds %lld, which is not possible", name, (long long)out[d]);
    }
    return true;
}

static bool read_pads(qn_window *w, const qn_window_attrs *a)
{
    const bool given = a->pads.at && a->auto_pad == QN_AUTO_PAD_NOTSET;
    if (given && a->pads.count != 2 * (size_t)w->rank)
        return problem(w, "pads has %zu numbers for %d spatial dimensions", a->pads.count, w->rank);
    for (int32_t d = 0; d < w->rank; d++) {
        w->pad_begin[d] = given ? a->pads.at[d] : 0;
        w->pad_end[d] = given ? a->pads.at[w->rank + d] : 0;
        if (w->pad_begin[d] < 0 || w->pad_begin[d] > LARGEST || w->pad_end[d] < 0 ||
            w->pad_end[d] > LARGEST)
            return problem(w, "pads must be between 0 and %d", LARGEST);
    }
    return true;
}

static bool read_attrs(qn_window *w, const qn_window_attrs *a, int32_t rank, const qn_dim *in,
                       const int64_t *kernel)
{
    w->rank = rank;
    w->problem[0] = 0;
    if (rank < 1 || rank > QN_MAX_SPATIAL)
        return problem(w, "the input needs at least one spatial dimension");
    for (int32_t d = 0; d < rank; d++) {
        w->in[d] = in[d];
        if (in[d].value > LARGEST)
            return problem(w, "dimension %d of the input is too large", d + 2);
    }
    if (!read_list(w, w->kernel, &a->kernel_shape, "kernel_shape", 1) ||
        !read_list(w, w->stride, &a->strides, "strides", 1) ||
        !read_list(w, w->dilation, &a->dilations, "dilations", 1) || !read_pads(w, a))
        return false;
    for (int32_t d = 0; kernel && d < rank; d++) {
        if (a->kernel_shape.at && w->kernel[d] != kernel[d])
            return problem(w, "kernel_shape is %lld where the weights have %lld",
                           (long long)w->kernel[d], (long long)kernel[d]);
        w->kernel[d] = kernel[d];
        if (kernel[d] < 1 || kernel[d] > LARGEST)
            return problem(w, "dimension %d of the weights is %lld", d + 2, (long long)kernel[d]);
    }
    return true;
}

/* ---- Sliding over the input ------------------------------------------------------------------ */

/* From the first to the last element that the kernel touches. */
static int64_t extent(const qn_window *w, int32_t d)
{
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static void split_pads(qn_window *w, int32_t d, int64_t total, bool more_at_end)
{
    const int64_t less = total / 2;
    w->pad_begin[d] = more_at_end ? less : total - less;
    w->pad_end[d] = total - w->pad_begin[d];
}

static bool slide(qn_window *w, const qn_window_attrs *a, int32_t d)
{
    const int64_t in = w->in[d].value, stride = w->stride[d];
    w->out[d] = stride == 1 && a->auto_pad != QN_AUTO_PAD_NOTSET && a->auto_pad != QN_AUTO_PAD_VALID
                    ? w->in[d]
                    : qn_dim_unknown();
    if (in < 0)
        return true;
    if (a->auto_pad == QN_AUTO_PAD_SAME_UPPER || a->auto_pad == QN_AUTO_PAD_SAME_LOWER) {
        const int64_t out = divide_up(in, stride);
        split_pads(w, d, QN_MAX((out - 1) * stride + extent(w, d) - in, 0),
                   a->auto_pad == QN_AUTO_PAD_SAME_UPPER);
        w->out[d] = qn_dim_of(out);
        return true;
    }
    const int64_t room = in + w->pad_begin[d] + w->pad_end[d] - extent(w, d);
    if (room < 0 && in > 0)
        return problem(w, "the kernel spans %lld elements, dimension %d has %lld with its pads",
                       (long long)extent(w, d), d + 2,
                       (long long)(in + w->pad_begin[d] + w->pad_end[d]));
    int64_t out = room < 0 ? 0 : room / stride + 1;
    /* Rounded up, unless the last window would begin behind the input. */
    const bool up = a->ceil_mode && a->auto_pad == QN_AUTO_PAD_NOTSET && room > 0;
    if (up && room % stride && out * stride < in + w->pad_begin[d])
        out++;
    w->out[d] = qn_dim_of(out);
    return true;
}

bool qn_window_resolve(qn_window *w, const qn_window_attrs *attrs, int32_t rank, const qn_dim *in,
                       const int64_t *kernel)
{
    if (!read_attrs(w, attrs, rank, in, kernel))
        return false;
    if (!kernel && !attrs->kernel_shape.at)
        return problem(w, "kernel_shape is missing");
    for (int32_t d = 0; d < rank; d++) {
        if (!slide(w, attrs, d))
            return false;
    }
    return true;
}

/* ---- Spreading over the output --------------------------------------------------------------- */

/* `wanted` output elements (-1: as many as there are) of a dimension. */
static bool spread(qn_window *w, const qn_window_attrs *a, int32_t d, int64_t wanted, int64_t extra)
{
    const int64_t in = w->in[d].value;
    const bool same =
        a->auto_pad == QN_AUTO_PAD_SAME_UPPER || a->auto_pad == QN_AUTO_PAD_SAME_LOWER;
    w->out[d] = wanted >= 0 ? qn_dim_of(wanted) : qn_dim_unknown();
    if (in < 0)
        return true;
    const int64_t whole = in ? (in - 1) * w->stride[d] + extent(w, d) + extra : 0;
    /* As onnx infers it: pads only take away, so a stride beyond the kernel gives less. */
    if (wanted < 0 && same)
        wanted = QN_MIN(in * w->stride[d], whole);
    if (wanted >= 0)
        split_pads(w, d, QN_MAX(whole - wanted, 0), a->auto_pad == QN_AUTO_PAD_SAME_UPPER);
    else
        wanted = whole - w->pad_begin[d] - w->pad_end[d];
    if (wanted < 0 && in > 0)
        return problem(w, "dimension %d of the output would be %lld", d + 2, (long long)wanted);
    w->out[d] = qn_dim_of(QN_MAX(wanted, 0));
    return true;
}

bool qn_window_resolve_transposed(qn_window *w, const qn_window_attrs *attrs, int32_t rank,
                                  const qn_dim *in, const int64_t *kernel)
{
    int64_t extra[QN_MAX_SPATIAL], shape[QN_MAX_SPATIAL];
    /* The whole shape, batch and channels included, is accepted as well. */
    qn_ints wanted = attrs->output_shape;
    if (wanted.at && wanted.count == (size_t)rank + 2)
        wanted = (qn_ints){wanted.at + 2, (size_t)rank};
    if (!read_attrs(w, attrs, rank, in, kernel) ||
        !read_list(w, extra, &attrs->output_padding, "output_padding", 0) ||
        !read_list(w, shape, &wanted, "output_shape", 0))
        return false;
    if (!kernel && !attrs->kernel_shape.at)
        return problem(w, "kernel_shape is missing");
    for (int32_t d = 0; d < rank; d++) {
        if (!spread(w, attrs, d, wanted.at ? shape[d] : -1, extra[d]))
            return false;
    }
    return true;
}

/* ---- Positions ------------------------------------------------------------------------------- */

int64_t qn_window_kernel_size(const qn_window *w)
{
    int64_t size = 1;
    for (int32_t d = 0; d < w->rank; d++) {
        if (!qn_mul_int64(&size, size, w->kernel[d]))
            return INT64_MAX;
    }
    return size;
}

int64_t qn_window_in_size(const qn_window *w)
{
    int64_t size = 1;
    for (int32_t d = 0; d < w->rank; d++)
        size *= w->in[d].value;
    return size;
}

int64_t qn_window_out_size(const qn_window *w)
{
    int64_t size = 1;
    for (int32_t d = 0; d < w->rank; d++)
        size *= w->out[d].value;
    return size;
}

int64_t qn_window_most_taps(const qn_window *w)
{
    int64_t count = 1;
    for (int32_t d = 0; d < w->rank; d++)
        count *= QN_MIN(w->kernel[d], w->in[d].value);
    return count;
}

/* The kernel's elements that lie inside the input in one dimension: [first, end). */
typedef struct span {
    /* The place of the window, in the input */
    int64_t start;
    int64_t first, end;
} span;

static span span_of(const qn_window *w, int32_t d, int64_t at)
{
    span s = {.start = at * w->stride[d] - w->pad_begin[d], .end = w->kernel[d]};
    const int64_t step = w->dilation[d], room = w->in[d].value - s.start;
    s.first = s.start < 0 ? divide_up(-s.start, step) : 0;
    if (room < (s.end - 1) * step + 1)
        s.end = room > 0 ? divide_up(room, step) : 0;
    return s;
}

int64_t qn_window_taps(const qn_window *w, int64_t at, int64_t *positions, int64_t *elements)
{
    span spans[QN_MAX_SPATIAL];
    int64_t index[QN_MAX_SPATIAL], total = 1;
    for (int32_t d = w->rank - 1; d >= 0; d--) {
        spans[d] = span_of(w, d, at % w->out[d].value);
        index[d] = spans[d].first;
        total *= QN_MAX(spans[d].end - spans[d].first, 0);
        at /= w->out[d].value;
    }
    for (int64_t t = 0; t < total; t++) {
        positions[t] = elements[t] = 0;
        for (int32_t d = 0; d < w->rank; d++) {
            const int64_t x = spans[d].start + index[d] * w->dilation[d];
            positions[t] = positions[t] * w->in[d].value + x;
            elements[t] = elements[t] * w->kernel[d] + index[d];
        }
        for (int32_t d = w->rank - 1; d >= 0 && ++index[d] == spans[d].end; d--)
            index[d] = spans[d].first;
    }
    return total;
}

int64_t qn_window_padded_taps(const qn_window *w, int64_t at)
{
    int64_t count = 1;
    for (int32_t d = w->rank - 1; d >= 0; d--) {
        const int64_t start = at % w->out[d].value * w->stride[d] - w->pad_begin[d];
        const int64_t room = w->in[d].value + w->pad_end[d] - start;
        const int64_t fit = room > 0 ? (room - 1) / w->dilation[d] + 1 : 0;
        if (!qn_mul_int64(&count, count, QN_MIN(w->kernel[d], fit)))
            return INT64_MAX; /* only ever a divisor */
        at /= w->out[d].value;
    }
    return count;
}

/* ---- p of LpPool and GlobalLpPool ------------------------------------------------------------ */

qn_status qn_lp_upgrade(qn_node **node)
{
    qn_window_attrs *a = (*node)->attrs;
    if (a->p_float != rintf(a->p_float) || !(fabsf(a->p_float) < 1000))
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "p must be a whole number");
    a->p = (int64_t)a->p_float;
    a->p_float = 2;
    return QN_OK;
}

qn_status qn_lp_downgrade(qn_node **node)
{
    qn_window_attrs *a = (*node)->attrs;
    a->p_float = (float)a->p;
    a->p = 2;
    return QN_OK;
}

const qn_version_rule qn_lp_versions[1] = {{2, qn_lp_upgrade, qn_lp_downgrade}};
