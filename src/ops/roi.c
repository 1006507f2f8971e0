/* MaxRoiPool and RoiAlign: a grid of numbers for each region of interest. */
#include "ops/roi.h"

#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/versions.h"

static const qn_port float_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

/* X is [N, C, H, W], rois [R, columns]; the result [R, C, height, width]. */
static qn_status infer_regions(qn_infer *self, int64_t columns, int64_t height, int64_t width)
{
    const qn_type *x = self->in[0], *rois = self->in[1];
    qn_dim merged;
    if (height < 1 || width < 1)
        return qn_infer_fail(self, "the grid of %lld by %lld is empty", (long long)height,
                             (long long)width);
    if ((x->rank >= 0 && x->rank != 4) || (rois->rank >= 0 && rois->rank != 2))
        return qn_infer_fail(self, "the image needs 4 dimensions and the regions 2");
    if (rois->rank == 2 && !qn_dim_merge(&merged, rois->dims[1], qn_dim_of(columns)))
        return qn_infer_fail(self, "a region has %lld numbers instead of %lld",
                             (long long)rois->dims[1].value, (long long)columns);
    const qn_dim dims[4] = {rois->rank == 2 ? rois->dims[0] : qn_dim_unknown(),
                            x->rank == 4 ? x->dims[1] : qn_dim_unknown(), qn_dim_of(height),
                            qn_dim_of(width)};
    qn_infer_set(self, 0, x->dtype, 4, dims);
    return QN_OK;
}

/* ---- MaxRoiPool ------------------------------------------------------------------------------ */

typedef struct max_attrs {
    float spatial_scale;
    qn_ints pooled_shape;
} max_attrs;
static const qn_attr_spec max_specs[] = {QN_FLOAT_ATTR(max_attrs, spatial_scale, 1),
                                         QN_ATTR(max_attrs, pooled_shape, INTS, .required = true)};
static const qn_port max_in[] = {{"X", 'T', QN_SET_FLOAT, 0}, {"rois", 'T', QN_SET_FLOAT, 0}};

static qn_status max_infer(qn_infer *self)
{
    const max_attrs *a = self->attrs;
    if (a->pooled_shape.count != 2)
        return qn_infer_fail(self, "pooled_shape has %zu numbers instead of 2",
                             a->pooled_shape.count);
    return infer_regions(self, 5, a->pooled_shape.at[0], a->pooled_shape.at[1]);
}

/* A coordinate of the file as a whole number that arithmetic cannot overflow. */
static int64_t whole(double x)
{
    return isnan(x) ? 0 : (int64_t)fmin(fmax(round(x), -1e9), 1e9);
}

/* From the first to behind the last row (or column) of cell i of n, within [0, size). */
typedef struct interval {
    int64_t first, end;
} interval;

static interval cell(int64_t start, int64_t end, int64_t i, int64_t n, int64_t size)
{
    const double step = (double)QN_MAX(end - start + 1, 1) / (double)n;
    const int64_t first = (int64_t)floor((double)i * step) + start;
    const int64_t last = (int64_t)ceil((double)(i + 1) * step) + start;
    return (interval){QN_MIN(QN_MAX(first, 0), size), QN_MIN(QN_MAX(last, 0), size)};
}

/* The largest element of a plane's rows and columns; 0 where there is none. */
static double plane_max(const double *plane, interval rows, interval columns, int64_t width)
{
    double max = 0;
    bool any = false;
    for (int64_t y = rows.first; y < rows.end; y++) {
        for (int64_t x = columns.first; x < columns.end; x++) {
            const double v = plane[y * width + x];
            max = !any || v > max ? v : max;
            any = true;
        }
    }
    return max;
}

static qn_status max_eval(qn_eval *self)
{
    const max_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *rois = self->in[1], *out = self->out[0];
    const int64_t channels = in->dims[1], height = in->dims[2], width = in->dims[3];
    const int64_t count = qn_tensor_count(out), rows = out->dims[2], columns = out->dims[3];
    double *x;
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t r = i / columns / rows / channels, c = i / columns / rows % channels;
        const int64_t n = whole(qn_tensor_f64(rois, r * 5));
        int64_t box[4]; /* x1, y1, x2, y2 */
        for (int64_t k = 0; k < 4; k++)
            box[k] = whole(qn_tensor_f64(rois, r * 5 + 1 + k) * (double)a->spatial_scale);
        if (n < 0 || n >= in->dims[0])
            return qn_eval_fail(self, "region %lld is of image %lld, there are %lld", (long long)r,
                                (long long)n, (long long)in->dims[0]);
        const interval down = cell(box[1], box[3], i / columns % rows, rows, height);
        const interval across = cell(box[0], box[2], i % columns, columns, width);
        const double y = plane_max(x + (n * channels + c) * height * width, down, across, width);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

const qn_op qn_op_MaxRoiPool = {.name = "MaxRoiPool",
                                .domain = "",
                                .since = 1,
                                QN_PORTS(in, max_in),
                                QN_PORTS(out, float_out),
                                QN_ATTRS(max_specs, max_attrs),
                                QN_TYPE_RULES(qn_bfloat16_22),
                                .quant = QN_QUANT_FLOAT,
                                .infer = max_infer,
                                .eval = max_eval,
                                .brief = "the largest element of each cell of each region"};

/* ---- RoiAlign -------------------------------------------------------------------------------- */

static const char *const transformations[] = {"half_pixel", "output_half_pixel", NULL};
static const char *const modes[] = {"avg", "max", NULL};
static const qn_attr_spec align_specs[] = {
    QN_ENUM_ATTR(qn_roi_attrs, coordinate_transformation_mode, QN_ROI_HALF_PIXEL, transformations,
                 .since = 16),
    QN_ENUM_ATTR(qn_roi_attrs, mode, QN_ROI_AVG, modes),
    QN_INT_ATTR(qn_roi_attrs, output_height, 1),
    QN_INT_ATTR(qn_roi_attrs, output_width, 1),
    QN_INT_ATTR(qn_roi_attrs, sampling_ratio, 0),
    QN_FLOAT_ATTR(qn_roi_attrs, spatial_scale, 1)};
static const qn_port align_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"rois", 'T', QN_SET_FLOAT, 0},
                                   {"batch_indices", '\0', QN_SET(QN_INT64), 0}};

static qn_status align_upgrade(qn_node **node)
{
    ((qn_roi_attrs *)(*node)->attrs)->coordinate_transformation_mode = QN_ROI_OUTPUT_HALF_PIXEL;
    return QN_OK;
}

static qn_status align_downgrade(qn_node **node)
{
    qn_roi_attrs *a = (*node)->attrs;
    if (a->coordinate_transformation_mode != QN_ROI_OUTPUT_HALF_PIXEL)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "half_pixel came with opset 16");
    a->coordinate_transformation_mode = QN_ROI_HALF_PIXEL; /* the default, which is not written */
    return QN_OK;
}

static const qn_version_rule align_versions[] = {{16, align_upgrade, align_downgrade}};

static qn_status align_infer(qn_infer *self)
{
    const qn_roi_attrs *a = self->attrs;
    const qn_type *rois = self->in[1], *images = self->in[2];
    qn_dim merged;
    if (a->sampling_ratio < 0)
        return qn_infer_fail(self, "sampling_ratio is negative");
    if (images->rank >= 0 &&
        (images->rank != 1 ||
         (rois->rank == 2 && !qn_dim_merge(&merged, images->dims[0], rois->dims[0]))))
        return qn_infer_fail(self, "there must be one batch index per region");
    return infer_regions(self, 4, a->output_height, a->output_width);
}

bool qn_roi_samples_of(qn_roi_samples *out, const qn_roi_attrs *a, double low, double high,
                       int64_t cells)
{
    const double shift = a->coordinate_transformation_mode == QN_ROI_HALF_PIXEL ? 0.5 : 0;
    const double start = low * (double)a->spatial_scale - shift;
    double size = high * (double)a->spatial_scale - shift - start;
    if (a->coordinate_transformation_mode == QN_ROI_OUTPUT_HALF_PIXEL)
        size = fmax(size, 1);
    const double cell_size = size / (double)cells;
    const double count = a->sampling_ratio > 0 ? (double)a->sampling_ratio : ceil(cell_size);
    if (!(count < 1e6) || isnan(start))
        return false;
    *out = (qn_roi_samples){.start = start,
                            .cell = cell_size,
                            .step = cell_size / count,
                            .count = (int64_t)fmax(count, 0)};
    return true;
}

bool qn_roi_pair_of(qn_roi_pair *out, const qn_roi_samples *s, int64_t cell, int64_t k,
                    int64_t size)
{
    double x = s->start + (double)cell * s->cell + 0.5 * s->step + (double)k * s->step;
    if (!(x >= -1 && x <= (double)size))
        return false;
    x = fmin(fmax(x, 0), (double)(size - 1));
    const int64_t low = (int64_t)x;
    const double rest = x - (double)low;
    *out = (qn_roi_pair){{low, QN_MIN(low + 1, size - 1)}, {1 - rest, rest}};
    return true;
}

/* The samples of one cell along one axis. */
typedef struct pairs {
    int64_t count;
    qn_roi_pair *at;
    bool *inside;
} pairs;

static void find_pairs(pairs *out, const qn_roi_samples *s, int64_t cell, int64_t size)
{
    out->count = s->count;
    for (int64_t k = 0; k < s->count; k++)
        out->inside[k] = qn_roi_pair_of(&out->at[k], s, cell, k, size);
}

/* The mean of the samples, or the largest weighted corner of any of them. */
static double sample_cell(const double *plane, int64_t width, const pairs *down,
                          const pairs *across, int64_t mode)
{
    double sum = 0, max = -(double)INFINITY;
    for (int64_t i = 0; i < down->count; i++) {
        for (int64_t j = 0; j < across->count; j++) {
            const bool inside = down->inside[i] && across->inside[j];
            const qn_roi_pair *y = &down->at[i], *x = &across->at[j];
            for (int k = 0; k < 4; k++) {
                const double v = inside ? plane[y->at[k / 2] * width + x->at[k % 2]] *
                                              (y->weight[k / 2] * x->weight[k % 2])
                                        : 0;
                sum += v;
                max = fmax(max, v);
            }
        }
    }
    const int64_t count = down->count * across->count;
    if (mode == QN_ROI_MAX)
        return count ? max : 0;
    return sum / (double)QN_MAX(count, 1);
}

/* What regions have along one axis: the samples of each, and room for those of one cell. */
typedef struct region_axis {
    /* One per region */
    qn_roi_samples *samples;
    pairs cell;
} region_axis;

/* Axis 0 is y, 1 is x. */
static qn_status axis_make(region_axis *out, qn_eval *self, int axis)
{
    const qn_roi_attrs *a = self->attrs;
    const qn_tensor *rois = self->in[1];
    const int64_t regions = rois->dims[0], cells = axis ? a->output_width : a->output_height;
    int64_t most = 0;
    void *samples, *at, *inside;
    QN_TRY(qn_eval_scratch(self, &samples, regions, sizeof *out->samples));
    out->samples = samples;
    for (int64_t r = 0; r < regions; r++) { /* x1, y1, x2, y2 */
        const double low = qn_tensor_f64(rois, r * 4 + 1 - axis);
        const double high = qn_tensor_f64(rois, r * 4 + 3 - axis);
        if (!qn_roi_samples_of(&out->samples[r], a, low, high, cells))
            return qn_eval_fail(self, "region %lld is too large", (long long)r);
        most = QN_MAX(most, out->samples[r].count);
    }
    QN_TRY(qn_eval_scratch(self, &at, most, sizeof *out->cell.at));
    QN_TRY(qn_eval_scratch(self, &inside, most, sizeof *out->cell.inside));
    out->cell.at = at;
    out->cell.inside = inside;
    return QN_OK;
}

static qn_status align_eval(qn_eval *self)
{
    const qn_roi_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t *images = self->in[2]->data;
    const int64_t channels = in->dims[1], height = in->dims[2], width = in->dims[3];
    const int64_t columns = out->dims[3], cells = out->dims[2] * columns, area = height * width;
    region_axis down, across;
    double *x;
    QN_TRY(qn_eval_doubles(self, &x, in));
    QN_TRY(axis_make(&down, self, 0));
    QN_TRY(axis_make(&across, self, 1));
    for (int64_t r = 0; r < out->dims[0]; r++) {
        if (images[r] < 0 || images[r] >= in->dims[0])
            return qn_eval_fail(self, "region %lld is of image %lld, there are %lld", (long long)r,
                                (long long)images[r], (long long)in->dims[0]);
        for (int64_t i = 0; i < cells; i++) {
            QN_TRY(qn_check_cancel(self->ctx));
            find_pairs(&down.cell, &down.samples[r], i / columns, height);
            find_pairs(&across.cell, &across.samples[r], i % columns, width);
            for (int64_t c = 0; c < channels; c++) {
                const double *plane = x + (images[r] * channels + c) * area;
                const double y =
                    area ? sample_cell(plane, width, &down.cell, &across.cell, a->mode) : 0;
                qn_store_f64(out->data, out->dtype, (r * channels + c) * cells + i, &y, 1);
            }
        }
    }
    return QN_OK;
}

const qn_op qn_op_RoiAlign = {.name = "RoiAlign",
                              .domain = "",
                              .since = 10,
                              QN_PORTS(in, align_in),
                              QN_PORTS(out, float_out),
                              QN_ATTRS(align_specs, qn_roi_attrs),
                              QN_VERSIONS(align_versions),
                              QN_TYPE_RULES(qn_bfloat16_22),
                              .quant = QN_QUANT_FLOAT,
                              .infer = align_infer,
                              .eval = align_eval,
                              .brief = "interpolated samples of each cell of each region"};
