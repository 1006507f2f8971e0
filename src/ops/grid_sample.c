/* GridSample and AffineGrid, over two or three spatial dimensions. */
#include <math.h>

#include "ops/infer.h"
#include "ops/move.h"

/* ---- GridSample ------------------------------------------------------------------------------------------ */

enum { MODE_LINEAR, MODE_NEAREST, MODE_CUBIC, MODE_BILINEAR, MODE_BICUBIC };
static const char *const mode_words[] = {"linear", "nearest", "cubic", "bilinear", "bicubic", NULL};
enum { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };
static const char *const pad_words[] = {"zeros", "border", "reflection", NULL};

typedef struct grid_attrs {
    int64_t mode, padding_mode, align_corners;
} grid_attrs;
static const qn_attr_spec grid_specs[] = {
    QN_ENUM_ATTR(grid_attrs, mode, MODE_LINEAR, mode_words),
    QN_ENUM_ATTR(grid_attrs, padding_mode, PAD_ZEROS, pad_words),
    QN_INT_ATTR(grid_attrs, align_corners, 0)};
static const qn_port grid_in[] = {{"X", 0, QN_SET_NUMBER | QN_SET_BOOL, 0},
                                  {"grid", 0, QN_SET_FLOAT, 0}};
static const qn_port grid_out[] = {{"Y", 0, QN_SET_NUMBER | QN_SET_BOOL, 0}};

/* Opset 20 renamed bilinear and bicubic. */
static qn_status grid_upgrade(qn_node **node)
{
    grid_attrs *a = (*node)->attrs;
    a->mode = a->mode == MODE_BILINEAR  ? MODE_LINEAR
              : a->mode == MODE_BICUBIC ? MODE_CUBIC
                                        : a->mode;
    return QN_OK;
}

static qn_status grid_lower(qn_node **node)
{
    grid_attrs *a = (*node)->attrs;
    if ((*node)->in[0]->type.rank > 4)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "volumes need opset 20");
    a->mode = a->mode == MODE_LINEAR  ? MODE_BILINEAR
              : a->mode == MODE_CUBIC ? MODE_BICUBIC
                                      : a->mode;
    return QN_OK;
}

static const qn_version_rule grid_versions[] = {{20, grid_upgrade, grid_lower}};

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

static double place(const grid_attrs *a, double x, int64_t dim)
{
    const double n = (double)dim;
    return a->align_corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
}

/* Where a coordinate outside shows something inside; -1: zero. */
static int64_t tap_at(const grid_attrs *a, double x, int64_t dim)
{
    if (a->padding_mode == PAD_BORDER)
        x = fmin(fmax(x, 0), (double)(dim - 1));
    else if (a->padding_mode == PAD_REFLECTION)
        x = a->align_corners ? reflect(x, 0, (double)(dim - 1))
                             : reflect(x, -0.5, (double)dim - 0.5);
    /* NaN fails both comparisons. */
    if (!(x >= 0 && x <= (double)(dim - 1)))
        return a->padding_mode == PAD_REFLECTION ? (x > 0 ? dim - 1 : 0) : -1;
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

typedef struct sample {
    const grid_attrs *attrs;
    const qn_tensor *x;
    int64_t strides[QN_MAX_RANK];
    double at[QN_MAX_RANK]; /* per spatial dim */
} sample;

static double tap_weight(const sample *s, double distance)
{
    return s->attrs->mode == MODE_CUBIC ? cubic(distance) : 1 - fabs(distance);
}

/* Sum over the taps of spatial dims d.. */
static double interpolate(const sample *s, int32_t d, int64_t offset)
{
    if (d == s->x->rank - 2)
        return qn_tensor_f64(s->x, offset);
    const int64_t dim = s->x->dims[d + 2];
    const double at = s->at[d];
    if (s->attrs->mode == MODE_NEAREST) {
        const int64_t tap = tap_at(s->attrs, rint(at), dim);
        return tap < 0 ? 0 : interpolate(s, d + 1, offset + tap * s->strides[d + 2]);
    }
    const int first = s->attrs->mode == MODE_CUBIC ? -1 : 0, count = first < 0 ? 4 : 2;
    double sum = 0;
    for (int k = first; k < first + count; k++) {
        const double x = floor(at) + k;
        const int64_t tap = tap_at(s->attrs, x, dim);
        if (tap >= 0)
            sum += tap_weight(s, at - x) * interpolate(s, d + 1, offset + tap * s->strides[d + 2]);
    }
    return sum;
}

/* Coordinates of point p: the last in the grid is the first spatial dim. */
static void read_point(sample *s, const qn_tensor *grid, int64_t p)
{
    const int32_t spatial = s->x->rank - 2;
    for (int32_t d = 0; d < spatial; d++) {
        const int64_t dim = s->x->dims[d + 2];
        const double x = qn_tensor_f64(grid, p * spatial + (spatial - 1 - d));
        s->at[d] = place(s->attrs, x, dim);
        const bool linear = s->attrs->mode != MODE_CUBIC;
        if (s->attrs->padding_mode == PAD_BORDER && linear)
            s->at[d] = fmin(fmax(s->at[d], 0), (double)(dim - 1));
        else if (s->attrs->padding_mode == PAD_REFLECTION && linear)
            s->at[d] = s->attrs->align_corners ? reflect(s->at[d], 0, (double)(dim - 1))
                                               : reflect(s->at[d], -0.5, (double)dim - 0.5);
    }
}

static qn_status grid_eval(qn_eval *self)
{
    const qn_tensor *x = self->in[0], *grid = self->in[1], *y = self->out[0];
    const int64_t points = qn_dims_product(y->dims, 2, y->rank), channels = y->dims[1];
    sample s = {.attrs = self->attrs, .x = x};
    qn_dims_strides(s.strides, x->rank, x->dims);
    if (qn_tensor_count(y) > 0 && qn_tensor_count(x) == 0)
        return qn_eval_fail(self, "X is empty");
    for (int64_t n = 0; n < y->dims[0]; n++) {
        for (int64_t p = 0; p < points; p++) {
            QN_TRY(qn_check_cancel(self->ctx));
            read_point(&s, grid, n * points + p);
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
                                QN_ATTRS(grid_specs, grid_attrs),
                                QN_VERSIONS(grid_versions),
                                .quant = QN_QUANT_FLOAT,
                                .infer = grid_infer,
                                .eval = grid_eval,
                                .brief = "elements interpolated at the points of a grid"};

/* ---- AffineGrid ------------------------------------------------------------------------------------------- */

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
static double cell(int64_t i, int64_t dim, bool corners)
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
            at[spatial - 1 - d] = cell(rest % out->dims[d + 1], out->dims[d + 1], corners);
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
