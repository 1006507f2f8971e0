/* Windows, Fourier transforms and the mel filter bank. */
#include <math.h>

#include "ops/fft.h"
#include "ops/infer.h"
#include "ops/move.h"
#include "ops/versions.h"

#define PI 3.14159265358979323846

static const qn_port float_out[] = {{"output", 0, QN_SET_NUMBER, 0}};

/* ---- HannWindow, HammingWindow, BlackmanWindow ----------------------------------------------- */

typedef struct window_attrs {
    int64_t output_datatype, periodic;
} window_attrs;
static const qn_attr_spec window_specs[] = {QN_INT_ATTR(window_attrs, output_datatype, QN_FLOAT32),
                                            QN_INT_ATTR(window_attrs, periodic, 1)};
static const qn_port window_in[] = {{"size", 0, QN_SET_INDEX, 0}};

/* An element type named by an attribute. */
static bool is_number_type(int64_t dtype)
{
    return dtype > 0 && dtype < QN_SEQUENCE && (QN_SET(dtype) & QN_SET_NUMBER);
}

static qn_status window_infer(qn_infer *self)
{
    const int64_t dtype = ((const window_attrs *)self->attrs)->output_datatype;
    int64_t size;
    size_t count;
    qn_dim length = qn_dim_unknown();
    if (!is_number_type(dtype))
        return qn_infer_fail(self, "output_datatype %lld is no number type", (long long)dtype);
    if (qn_infer_ints(self, 0, &size, 1, &count)) {
        if (count != 1 || size < 0)
            return qn_infer_fail(self, "size must be one number, not negative");
        length = qn_dim_of(size);
    } else if (self->data[0])
        return qn_infer_fail(self, "size must be one number");
    qn_infer_set(self, 0, (qn_dtype)dtype, 1, &length);
    return QN_OK;
}

/* a0 - a1 * cos(2 pi n / N) + a2 * cos(4 pi n / N); N is the size, or one less when symmetric. */
static qn_status window_fill(qn_eval *self, double a0, double a1, double a2)
{
    const qn_tensor *out = self->out[0];
    const int64_t size = out->dims[0];
    const bool periodic = ((const window_attrs *)self->attrs)->periodic != 0;
    const double period = (double)(periodic ? size : size - 1);
    for (int64_t n = 0; n < size; n++) {
        const double angle = period > 0 ? 2 * PI * (double)n / period : 0;
        const double value = a0 - a1 * cos(angle) + a2 * cos(2 * angle);
        qn_store_f64(out->data, out->dtype, n, &value, 1);
    }
    return QN_OK;
}

static qn_status hann_eval(qn_eval *self)
{
    return window_fill(self, 0.5, 0.5, 0);
}

static qn_status hamming_eval(qn_eval *self)
{
    return window_fill(self, 25.0 / 46, 21.0 / 46, 0);
}

static qn_status blackman_eval(qn_eval *self)
{
    return window_fill(self, 0.42, 0.5, 0.08);
}

#define WINDOW(Name, EVAL, BRIEF)                                                                  \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 17,                                                       \
                                QN_PORTS(in, window_in),                                           \
                                QN_PORTS(out, float_out),                                          \
                                QN_ATTRS(window_specs, window_attrs),                              \
                                .quant = QN_QUANT_FLOAT,                                           \
                                .infer = window_infer,                                             \
                                .eval = EVAL,                                                      \
                                .brief = BRIEF};

WINDOW(BlackmanWindow, blackman_eval, "Blackman's window")
WINDOW(HammingWindow, hamming_eval, "Hamming's window")
WINDOW(HannWindow, hann_eval, "Hann's window")

/* ---- DFT ------------------------------------------------------------------------------------- */

typedef struct dft_attrs {
    int64_t axis, inverse, onesided;
} dft_attrs;
static const qn_attr_spec dft_specs[] = {QN_INT_ATTR(dft_attrs, axis, 1, .until = 20),
                                         QN_INT_ATTR(dft_attrs, inverse, 0),
                                         QN_INT_ATTR(dft_attrs, onesided, 0)};
static const qn_port dft_in[] = {{"input", 'T', QN_SET_FLOAT, 0},
                                 {"dft_length", 0, QN_SET_INDEX, QN_OPTIONAL},
                                 {"axis", 0, QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port dft_out[] = {{"output", 'T', QN_SET_FLOAT, 0}};

/* Opset 20: the axis became an input, and its default another. */
static qn_status dft_upgrade(qn_node **node)
{
    dft_attrs *a = (*node)->attrs;
    qn_value *axis;
    QN_TRY(qn_value_number(&axis, (*node)->graph, QN_INT64, (double)a->axis));
    a->axis = 1;
    QN_TRY(qn_node_resize_inputs(*node, 3));
    return qn_node_set_input(*node, 2, axis);
}

static qn_status dft_downgrade(qn_node **node)
{
    double axis = -2;
    if ((*node)->n_in > 2 && (*node)->in[2])
        QN_TRY(qn_downgrade_number(&axis, *node, 2));
    ((dft_attrs *)(*node)->attrs)->axis = (int64_t)axis;
    return QN_OK;
}

static const qn_version_rule dft_versions[] = {{20, dft_upgrade, dft_downgrade}};

/* Transform length and axis from inputs 1 and 2; *known false when one is not constant. */
static qn_status dft_request(bool *known, qn_infer *self, int64_t *axis, int64_t *length)
{
    const qn_type *in = self->in[0];
    size_t count = 1;
    *axis = -2;
    *known = !qn_infer_has(self, 2) || qn_infer_ints(self, 2, axis, 1, &count);
    if (!*known)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, axis, in->rank, "axis"));
    if (count != 1 || *axis == in->rank - 1)
        return qn_infer_fail(self, "the last dimension holds real and imaginary parts");
    const dft_attrs *a = self->attrs;
    const bool half = a->inverse && a->onesided; /* half a spectrum of an even length, by default */
    *length = in->dims[*axis].value;
    if (half && *length > 0)
        *length = 2 * (*length - 1);
    if (qn_infer_has(self, 1) && !qn_infer_ints(self, 1, length, 1, &count))
        *length = -1;
    if (qn_infer_has(self, 1) && self->data[1] && (*length < 1 || count != 1))
        return qn_infer_fail(self, "dft_length must be one positive number");
    return QN_OK;
}

static qn_status dft_infer(qn_infer *self)
{
    const dft_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    int64_t axis, length = -1;
    bool known;
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    const int64_t parts = in->rank >= 2 ? in->dims[in->rank - 1].value : 0;
    if (parts >= 0 && parts != 1 && parts != 2)
        return qn_infer_fail(self, "the last dimension must be 1 (real) or 2 (complex)");
    QN_TRY(dft_request(&known, self, &axis, &length));
    for (int32_t d = 0; d < in->rank - 1; d++) {
        if (!known || (d == axis && length < 0))
            out.dims[d] = qn_dim_unknown();
        else if (d == axis)
            out.dims[d] = qn_dim_of(a->onesided && !a->inverse ? length / 2 + 1 : length);
    }
    out.dims[in->rank - 1] = qn_dim_of(a->onesided && a->inverse ? 1 : 2);
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    return QN_OK;
}

/* Transforms of one length. Element k is read at in[start + k * step] while k < filled; zeros
 * follow. */
typedef struct line {
    const qn_tensor *in;
    int64_t start, step, filled, length;
    bool complex, inverse;
    /* The spectrum of a real signal, given up to bin length / 2 */
    bool half;
    /* NULL: all ones */
    const double *window;
    qn_fft fft;
    /* [length] */
    qn_complex *from, *to;
} line;

static qn_status line_open(line *l, qn_eval *self)
{
    void *from, *to;
    QN_TRY(qn_fft_make(&l->fft, self, l->length));
    QN_TRY(qn_eval_scratch(self, &from, l->length, sizeof *l->from));
    QN_TRY(qn_eval_scratch(self, &to, l->length, sizeof *l->to));
    l->from = from;
    l->to = to;
    return QN_OK;
}

static qn_complex line_element(const line *l, int64_t k)
{
    const int64_t at = (l->start + k * l->step) * (l->complex ? 2 : 1);
    const double weight = l->window ? l->window[k] : 1;
    if (k >= l->filled)
        return (qn_complex){0, 0};
    return (qn_complex){weight * qn_tensor_f64(l->in, at),
                        l->complex ? weight * qn_tensor_f64(l->in, at + 1) : 0};
}

/* The other half of a real signal's spectrum mirrors the first; the bins that are their own mirror
 * are real. */
static void line_mirror(const line *l)
{
    for (int64_t k = 0; 2 * k <= l->length; k++) {
        qn_complex *here = &l->from[k], *there = &l->from[(l->length - k) % l->length];
        if (here == there)
            here->im = 0;
        *there = (qn_complex){here->re, here == there ? 0 : -here->im};
    }
}

/* l->to[0, length) = the transform; an inverse one is that of the conjugates, conjugated and
 * divided. */
static void line_run(const line *l)
{
    const int64_t given = l->half ? l->length / 2 + 1 : l->length;
    for (int64_t k = 0; k < given; k++)
        l->from[k] = line_element(l, k);
    if (l->half)
        line_mirror(l);
    for (int64_t k = 0; l->inverse && k < l->length; k++)
        l->from[k].im = -l->from[k].im;
    qn_fft_run(&l->fft, l->to, l->from);
    for (int64_t k = 0; l->inverse && k < l->length; k++)
        l->to[k] = (qn_complex){l->to[k].re / (double)l->length, -l->to[k].im / (double)l->length};
}

static qn_status dft_eval(qn_eval *self)
{
    const dft_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0], *given = qn_eval_in(self, 1);
    int64_t axis = qn_eval_in(self, 2) ? qn_tensor_i64(self->in[2], 0) : -2;
    axis += axis < 0 ? in->rank : 0;
    const int64_t outer = qn_dims_product(in->dims, 0, (int32_t)axis), dim = in->dims[axis];
    const int64_t inner = qn_dims_product(in->dims, (int32_t)axis + 1, in->rank - 1);
    const int64_t bins = out->dims[axis], parts = out->dims[out->rank - 1];
    line l = {.in = in, .step = inner, .filled = dim, .complex = in->dims[in->rank - 1] == 2};
    l.length = given ? qn_tensor_i64(given, 0) : a->inverse && a->onesided ? bins : dim;
    l.inverse = a->inverse != 0;
    l.half = parts == 1;
    if (l.length < 1 || outer * inner == 0) { /* of no element, or of no line, however long */
        qn_fill(out->data, qn_tensor_count(out), NULL, qn_dtype_size(out->dtype));
        return QN_OK;
    }
    QN_TRY(line_open(&l, self));
    for (int64_t i = 0; i < outer * inner; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        l.start = i / inner * dim * inner + i % inner;
        line_run(&l);
        for (int64_t b = 0; b < bins; b++) {
            const int64_t to = (i / inner * bins + b) * inner + i % inner;
            qn_store_f64(out->data, out->dtype, to * parts, (const double *)&l.to[b], parts);
        }
    }
    return QN_OK;
}

const qn_op qn_op_DFT = {.name = "DFT",
                         .domain = "",
                         .since = 17,
                         QN_PORTS(in, dft_in),
                         QN_PORTS(out, dft_out),
                         QN_ATTRS(dft_specs, dft_attrs),
                         QN_VERSIONS(dft_versions),
                         .quant = QN_QUANT_FLOAT,
                         .infer = dft_infer,
                         .eval = dft_eval,
                         .brief = "discrete Fourier transform along an axis"};

/* ---- STFT ------------------------------------------------------------------------------------ */

typedef struct stft_attrs {
    int64_t onesided;
} stft_attrs;
static const qn_attr_spec stft_specs[] = {QN_INT_ATTR(stft_attrs, onesided, 1)};
static const qn_port stft_in[] = {{"signal", 'T', QN_SET_FLOAT, 0},
                                  {"frame_step", 0, QN_SET_INDEX, 0},
                                  {"window", 'T', QN_SET_FLOAT, QN_OPTIONAL},
                                  {"frame_length", 0, QN_SET_INDEX, QN_OPTIONAL}};

/* signal [batch, n, 1 or 2] -> [batch, frames, bins, 2] */
static qn_status stft_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t step, length = -1;
    size_t count;
    qn_dim dims[4] = {qn_dim_unknown(), qn_dim_unknown(), qn_dim_unknown(), qn_dim_of(2)};
    if (in->rank >= 0 && in->rank != 3)
        return qn_infer_fail(self, "the signal must be [batch, length, 1 or 2]");
    if (in->rank == 3 && in->dims[2].value >= 0 && in->dims[2].value != 1 && in->dims[2].value != 2)
        return qn_infer_fail(self, "the signal must be real (1) or complex (2)");
    dims[0] = in->rank == 3 ? in->dims[0] : qn_dim_unknown();
    if (qn_infer_has(self, 2) && self->in[2]->rank == 1)
        length = self->in[2]->dims[0].value;
    const bool has_length = qn_infer_has(self, 3);
    if (has_length && !qn_infer_ints(self, 3, &length, 1, &count))
        length = -1;
    if (!has_length && !qn_infer_has(self, 2))
        return qn_infer_fail(self, "needs a window or frame_length");
    if (qn_infer_has(self, 2) && self->in[2]->rank == 1 && length >= 0 &&
        self->in[2]->dims[0].value >= 0 && self->in[2]->dims[0].value != length)
        return qn_infer_fail(self, "window and frame_length differ");
    if (length >= 0)
        dims[2] = qn_dim_of(((const stft_attrs *)self->attrs)->onesided ? length / 2 + 1 : length);
    if (qn_infer_ints(self, 1, &step, 1, &count) && length >= 0 && in->rank == 3 &&
        in->dims[1].value >= 0) {
        if (count != 1 || step < 1 || length < 1 || length > in->dims[1].value)
            return qn_infer_fail(self, "frame_step or frame_length does not fit the signal");
        dims[1] = qn_dim_of((in->dims[1].value - length) / step + 1);
    }
    qn_infer_set(self, 0, in->dtype, 4, dims);
    return QN_OK;
}

static qn_status stft_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0], *window = qn_eval_in(self, 2);
    const int64_t step = qn_tensor_i64(self->in[1], 0), frames = out->dims[1], bins = out->dims[2];
    double *weights = NULL;
    if (in->dims[0] * frames == 0)
        return QN_OK;
    line l = {.in = in, .step = 1, .complex = in->dims[2] == 2};
    l.length = qn_eval_in(self, 3) ? qn_tensor_i64(self->in[3], 0) : qn_tensor_count(window);
    l.filled = l.length;
    if (window)
        QN_TRY(qn_eval_doubles(self, &weights, window));
    l.window = weights;
    QN_TRY(line_open(&l, self));
    for (int64_t i = 0; i < in->dims[0] * frames; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        l.start = i / frames * in->dims[1] + i % frames * step;
        line_run(&l);
        qn_store_f64(out->data, out->dtype, i * bins * 2, (const double *)l.to, bins * 2);
    }
    return QN_OK;
}

const qn_op qn_op_STFT = {.name = "STFT",
                          .domain = "",
                          .since = 17,
                          QN_PORTS(in, stft_in),
                          QN_PORTS(out, dft_out),
                          QN_ATTRS(stft_specs, stft_attrs),
                          .quant = QN_QUANT_FLOAT,
                          .infer = stft_infer,
                          .eval = stft_eval,
                          .brief = "Fourier transforms of overlapping frames"};

/* ---- MelWeightMatrix ------------------------------------------------------------------------- */

typedef struct mel_attrs {
    int64_t output_datatype;
} mel_attrs;
static const qn_attr_spec mel_specs[] = {QN_INT_ATTR(mel_attrs, output_datatype, QN_FLOAT32)};
static const qn_port mel_in[] = {{"num_mel_bins", 0, QN_SET_INDEX, 0},
                                 {"dft_length", 0, QN_SET_INDEX, 0},
                                 {"sample_rate", 0, QN_SET_INDEX, 0},
                                 {"lower_edge_hertz", 0, QN_SET_FLOAT, 0},
                                 {"upper_edge_hertz", 0, QN_SET_FLOAT, 0}};

static qn_status mel_infer(qn_infer *self)
{
    const int64_t dtype = ((const mel_attrs *)self->attrs)->output_datatype;
    int64_t bins, length;
    size_t n_bins, n_length;
    qn_dim dims[2] = {qn_dim_unknown(), qn_dim_unknown()};
    if (!is_number_type(dtype))
        return qn_infer_fail(self, "output_datatype %lld is no number type", (long long)dtype);
    if (qn_infer_ints(self, 0, &bins, 1, &n_bins) &&
        qn_infer_ints(self, 1, &length, 1, &n_length)) {
        if (n_bins != 1 || n_length != 1 || bins < 0 || length < 0 || bins > INT32_MAX)
            return qn_infer_fail(self, "num_mel_bins or dft_length makes no sense");
        dims[0] = qn_dim_of(length / 2 + 1);
        dims[1] = qn_dim_of(bins);
    }
    qn_infer_set(self, 0, (qn_dtype)dtype, 2, dims);
    return QN_OK;
}

static double to_mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* Spectrogram bin in which edge i of the triangles lies. */
static int64_t mel_edge(const qn_eval *self, int64_t i, int64_t bins)
{
    const double low = to_mel(qn_tensor_f64(self->in[3], 0));
    const double high = to_mel(qn_tensor_f64(self->in[4], 0));
    const double mel = low + (double)i * (high - low) / (double)(bins + 2);
    const double hertz = 700 * (pow(10, mel / 2595) - 1);
    const double length = (double)qn_tensor_i64(self->in[1], 0);
    const double bin = floor((length + 1) * hertz / (double)qn_tensor_i64(self->in[2], 0));
    return bin >= 0 && bin < 0x1p53 ? (int64_t)bin : 0;
}

static void mel_put(const qn_tensor *out, int64_t row, int64_t column, double value)
{
    if (row < out->dims[0])
        qn_store_f64(out->data, out->dtype, row * out->dims[1] + column, &value, 1);
}

/* Column i is a triangle from edge i over edge i + 1 to edge i + 2. */
static qn_status mel_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const int64_t bins = out->dims[1], rows = out->dims[0];
    qn_fill(out->data, qn_tensor_count(out), NULL, qn_dtype_size(out->dtype));
    if (qn_tensor_i64(self->in[2], 0) == 0)
        return qn_eval_fail(self, "sample_rate is 0");
    for (int64_t i = 0; i < bins; i++) {
        const int64_t low = mel_edge(self, i, bins), top = mel_edge(self, i + 1, bins);
        const int64_t high = mel_edge(self, i + 2, bins);
        if (top == low)
            mel_put(out, top, i, 1);
        for (int64_t j = low; top > low && j <= QN_MIN(top, rows); j++)
            mel_put(out, j, i, (double)(j - low) / (double)(top - low));
        for (int64_t j = top; high > top && j < QN_MIN(high, rows); j++)
            mel_put(out, j, i, (double)(high - j) / (double)(high - top));
    }
    return QN_OK;
}

const qn_op qn_op_MelWeightMatrix = {.name = "MelWeightMatrix",
                                     .domain = "",
                                     .since = 17,
                                     QN_PORTS(in, mel_in),
                                     QN_PORTS(out, float_out),
                                     QN_ATTRS(mel_specs, mel_attrs),
                                     .quant = QN_QUANT_FLOAT,
                                     .infer = mel_infer,
                                     .eval = mel_eval,
                                     .brief = "triangular filters on the mel scale"};
