/* GridSample and AffineGrid, over two or three spatial dimensions. */
#include "ops/grid_sample.h"

#include <math.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/versions.h"

/* ---- GridSample ------------------------------------------------------------------------------ */

static const char *const mode_words[] = {"linear", "nearest", "cubic", "bilinear", "bicubic", NULL};
static const char *const pad_words[] = {"zeros", "border", "reflection", NULL};

static const qn_attr_spec grid_specs[] = {
    QN_ENUM_ATTR(qn_grid_attrs, mode, QN_GRID_LINEAR, mode_words),
    QN_ENUM_ATTR(qn_grid_attrs, padding_mode, QN_GRID_ZEROS, pad_words),
    QN_INT_ATTR(qn_grid_attrs, align_corners, 0)};
static const qn_port grid_in[] = {{"X", 0, QN_SET_NUMBER | QN_SET_BOOL, 0},
                                  {"grid", 0, QN_SET_FLOAT, 0}};
static const qn_port grid_out[] = {{"Y", 0, QN_SET_NUMBER | QN_SET_BOOL, 0}};

/* Opset 20 renamed bilinear and bicubic. */
static qn_status grid_upgrade(qn_node **node)
{
    qn_grid_attrs *a = (*node)->attrs;
    a->mode = a->mode == QN_GRID_BILINEAR  ? QN_GRID_LINEAR
              : a->mode == QN_GRID_BICUBIC ? QN_GRID_CUBIC
                                           : a->mode;
    return QN_OK;
}

static qn_status grid_downgrade(qn_node **node)
{
    qn_grid_attrs *a = (*node)->attrs;
    if ((*node)->in[0]->type.rank > 4)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "volumes need opset 20");
    a->mode = a->mode == QN_GRID_LINEAR  ? QN_GRID_BILINEAR
              : a->mode == QN_GRID_CUBIC ? QN_GRID_BICUBIC
                                         : a->mode;
    return QN_OK;
}

static const qn_version_rule grid_versions[] = {{20, grid_upgrade, grid_downgrade}};

/* X [N, C, in..], grid [N, out.., r] -> [N, C, out..] */
static qn_status grid_infer(qn_infer *self)
{
    const qn_type *in = self->in[0], *grid = self->in[1];
    qn_dim dims[QN_MAX_RANK], same;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0 || grid->rank < 0)
        return QN_OK;
    if (in->rank < 3 || in->rank != grid->rank)
        return qn_infer_fail(self, "X has %d dimensions, the grid %d", in->rank, grid->rank);
    if (!qn_dim_merge(&same, grid->dims[grid->rank - 1], qn_dim_of(in->rank - 2)))
        return qn_infer_fail(self, "the grid must have %d coordinates a point", in->rank - 2);
    if (!qn_dim_merge(&dims[0], in->dims[0], grid->dims[0]))
        return qn_infer_fail(self, "X and grid differ in their batch");
    dims[1] = in->dims[1];
    for (int32_t d = 2; d < in->rank; d++)
        dims[d] = grid->dims[d - 1];
    qn_infer_set(self, 0, in->dtype, in->rank, dims);
    return QN_OK;
}

/* Mirrored between low and high as often as needed. */
static double reflect(double x, double low, double high)
{
    const double span = high - low;
    if (span <= 0)
        return low;
    const double from = fabs(x - low), turns = floor(from / span), rest = from - turns * span;
    return fmod(turns, 2) == 0 ? low + rest : high - rest;
}

static double place(const qn_grid_attrs *a, double x, int64_t dim)
{
    const double n = (double)dim;
    return a->align_corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
}

/* Back into the axis, as the padding says: clamped or mirrored. */
static double pad(const qn_grid_attrs *a, double x, int64_t dim)
{
    if (a->padding_mode == QN_GRID_BORDER)
        return fmin(fmax(x, 0), (double)(dim - 1));
    if (a->padding_mode == QN_GRID_REFLECTION)
        return a->align_corners ? reflect(x, 0, (double)(dim - 1))
                                : reflect(x, -0.5, (double)dim - 0.5);
    return x;
}

/* Where a coordinate outside shows something inside; -1: zero. */
static int64_t tap_at(const qn_grid_attrs *a, double x, int64_t dim)
{
    x = pad(a, x, dim);
    /* NaN fails both comparisons. */
    if (!(x >= 0 && x <= (double)(dim - 1)))
        return a->padding_mode == QN_GRID_REFLECTION ? (x > 0 ? dim - 1 : 0) : -1;
    return (int64_t)rint(x);
}

static double cubic(double d)
{
    const double a = -0.75;
    d = fabs(d);
    return d <= 1  ? ((a + 2) * d - (a + 3)) * d * d + 1
           : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                   : 0;
}

static double weight_of(const qn_grid_attrs *a, double distance)
{
    return a->mode == QN_GRID_CUBIC ? cubic(distance) : 1 - fabs(distance);
}

static void add_tap(qn_grid_taps *out, int64_t at, double weight)
{
    if (at < 0)
        return;
    out->at[out->count] = at;
    out->weight[out->count++] = weight;
}

void qn_grid_taps_of(qn_grid_taps *out, const qn_grid_attrs *a, double x, int64_t dim)
{
    const int first = a->mode == QN_GRID_CUBIC ? -1 : 0, count = first < 0 ? 4 : 2;
    double at = place(a, x, dim);
    out->count = 0;
    if (a->mode != QN_GRID_CUBIC)
        at = pad(a, at, dim);
    if (a->mode == QN_GRID_NEAREST) {
        add_tap(out, tap_at(a, rint(at), dim), 1);
        return;
    }
    if (at >= -first && at < (double)(dim - 1 + first)) { /* most are inside */
        const int64_t low = (int64_t)at + first;
        out->count = count;
        for (int k = 0; k < count; k++) {
            out->at[k] = low + k;
            out->weight[k] = weight_of(a, at - (double)(low + k));
        }
        return;
    }
    const double low = floor(at) + first;
    for (int k = 0; k < count; k++)
        add_tap(out, tap_at(a, low + k, dim), weight_of(a, at - (low + k)));
}

typedef struct sample {
    const qn_tensor *x;
    int64_t strides[QN_MAX_RANK];
    /* Per spatial dim */
    qn_grid_taps taps[QN_MAX_RANK];
} sample;

/* Sum over the taps of spatial dims d.. */
static double interpolate(const sample *s, int32_t d, int64_t offset)
{
    if (d == s->x->rank - 2)
        return qn_tensor_f64(s->x, offset);
    const qn_grid_taps *taps = &s->taps[d];
    double sum = 0;
    for (int k = 0; k < taps->count; k++)
        sum += taps->weight[k] * interpolate(s, d + 1, offset + taps->at[k] * s->strides[d + 2]);
    return sum;
}

static qn_status grid_eval(qn_eval *self)
{
    const qn_tensor *x = self->in[0], *grid = self->in[1], *y = self->out[0];
    const int64_t points = qn_dims_product(y->dims, 2, y->rank), channels = y->dims[1];
    const int32_t spatial = x->rank - 2;
    sample s = {.x = x};
    qn_dims_strides(s.strides, x->rank, x->dims);
    if (qn_tensor_count(y) > 0 && qn_tensor_count(x) == 0)
        return qn_eval_fail(self, "X is empty");
    for (int64_t n = 0; n < y->dims[0]; n++) {
        for (int64_t p = 0; p < points; p++) {
            QN_TRY(qn_check_cancel(self->ctx));
            /* The last number of a point is for the first spatial dim. */
            for (int32_t d = 0; d < spatial; d++)
                qn_grid_taps_of(&s.taps[d], self->attrs,
                                qn_tensor_f64(grid, (n * points + p + 1) * spatial - 1 - d),
                                x->dims[d + 2]);
            for (int64_t c = 0; c < channels; c++) {
                const double value = interpolate(&s, 0, n * s.strides[0] + c * s.strides[1]);
                qn_store_f64(y->data, y->dtype, (n * channels + c) * points + p, &value, 1);
            }
        }
    }
    return QN_OK;
}

const qn_op qn_op_GridSample = {.name = "GridSample",
                                .domain = "",
                                .since = 16,
                                QN_PORTS(in, grid_in),
                                QN_PORTS(out, grid_out),
                                QN_ATTRS(grid_specs, qn_grid_attrs),
                                QN_VERSIONS(grid_versions),
                                QN_TYPE_RULES(qn_bfloat16_22),
                                .quant = QN_QUANT_FLOAT,
                                .infer = grid_infer,
                                .eval = grid_eval,
                                .brief = "elements interpolated at the points of a grid"};

/* ---- AffineGrid ------------------------------------------------------------------------------ */

typedef struct affine_attrs {
    int64_t align_corners;
} affine_attrs;
static const qn_attr_spec affine_specs[] = {QN_INT_ATTR(affine_attrs, align_corners, 0)};
static const qn_port affine_in[] = {{"theta", 'T', QN_SET_FLOAT, 0},
                                    {"size", 0, QN_SET(QN_INT64), 0}};
static const qn_port affine_out[] = {{"grid", 'T', QN_SET_FLOAT, 0}};

/* theta [N, r, r + 1], size (N, C, out..) -> [N, out.., r] */
static qn_status affine_infer(qn_infer *self)
{
    const qn_type *theta = self->in[0];
    int64_t size[QN_MAX_RANK];
    size_t count;
    qn_dim dims[QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, theta->dtype);
    if (!qn_infer_ints(self, 1, size, QN_MAX_RANK, &count))
        return QN_OK;
    qn_dim same;
    const int64_t spatial = (int64_t)count - 2;
    if (count != 4 && count != 5)
        return qn_infer_fail(self, "size must have four or five numbers");
    if (theta->rank >= 0 &&
        (theta->rank != 3 || !qn_dim_merge(&same, theta->dims[0], qn_dim_of(size[0])) ||
         !qn_dim_merge(&same, theta->dims[1], qn_dim_of(spatial)) ||
         !qn_dim_merge(&same, theta->dims[2], qn_dim_of(spatial + 1))))
        return qn_infer_fail(self, "theta does not fit the size");
    for (size_t d = 0; d < count; d++) {
        if (size[d] < 0)
            return qn_infer_fail(self, "size has a negative number");
    }
    dims[0] = qn_dim_of(size[0]);
    for (int64_t d = 0; d < spatial; d++)
        dims[d + 1] = qn_dim_of(size[d + 2]);
    dims[spatial + 1] = qn_dim_of(spatial);
    qn_infer_set(self, 0, theta->dtype, (int32_t)count, dims);
    return QN_OK;
}

/* Places of 0..dim-1 in [-1, 1]: on the corners, or in the middle of each cell. */
static double place_of(int64_t i, int64_t dim, bool corners)
{
    if (corners)
        return dim > 1 ? -1 + 2 * (double)i / (double)(dim - 1) : -1;
    return -1 + (2 * (double)i + 1) / (double)dim;
}

static qn_status affine_eval(qn_eval *self)
{
    const qn_tensor *theta = self->in[0], *out = self->out[0];
    const bool corners = ((const affine_attrs *)self->attrs)->align_corners != 0;
    const int32_t spatial = out->rank - 2;
    const int64_t points = qn_dims_product(out->dims, 1, out->rank - 1);
    for (int64_t i = 0; i < out->dims[0] * points; i++) {
        double at[QN_MAX_RANK];
        int64_t rest = i % points;
        for (int32_t d = spatial - 1; d >= 0; d--) {
            /* The last spatial dim is x, the first coordinate. */
            at[spatial - 1 - d] = place_of(rest % out->dims[d + 1], out->dims[d + 1], corners);
            rest /= out->dims[d + 1];
        }
        for (int32_t r = 0; r < spatial; r++) {
            const int64_t row = (i / points * spatial + r) * (spatial + 1);
            double sum = qn_tensor_f64(theta, row + spatial);
            for (int32_t k = 0; k < spatial; k++)
                sum += qn_tensor_f64(theta, row + k) * at[k];
            qn_store_f64(out->data, out->dtype, i * spatial + r, &sum, 1);
        }
    }
    return QN_OK;
}

const qn_op qn_op_AffineGrid = {.name = "AffineGrid",
                                .domain = "",
                                .since = 20,
                                QN_PORTS(in, affine_in),
                                QN_PORTS(out, affine_out),
                                QN_ATTRS(affine_specs, affine_attrs),
                                .quant = QN_QUANT_FLOAT,
                                .infer = affine_infer,
                                .eval = affine_eval,
                                .brief = "a grid of points under an affine map"};
