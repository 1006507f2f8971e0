/* MaxRoiPool and RoiAlign: a grid of numbers for each region of interest. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"

static const qn_type_rule bfloat16_22[] = {{22, QN_SET(QN_BFLOAT16)}};
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

/* ---- MaxRoiPool --------------------------------------------------------------------------------------------- */

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
                                QN_TYPE_RULES(bfloat16_22),
                                .quant = QN_QUANT_FLOAT,
                                .infer = max_infer,
                                .eval = max_eval,
                                .brief = "the largest element of each cell of each region"};

/* ---- RoiAlign -------------------------------------------------------------------------------------------------- */

enum { HALF_PIXEL, OUTPUT_HALF_PIXEL };
enum { MODE_AVG, MODE_MAX };
typedef struct align_attrs {
    int64_t coordinate_transformation_mode, mode;
    int64_t output_height, output_width, sampling_ratio;
    float spatial_scale;
} align_attrs;
static const char *const transformations[] = {"half_pixel", "output_half_pixel", NULL};
static const char *const modes[] = {"avg", "max", NULL};
static const qn_attr_spec align_specs[] = {QN_ENUM_ATTR(align_attrs, coordinate_transformation_mode,
                                                        HALF_PIXEL, transformations, .since = 16),
                                           QN_ENUM_ATTR(align_attrs, mode, MODE_AVG, modes),
                                           QN_INT_ATTR(align_attrs, output_height, 1),
                                           QN_INT_ATTR(align_attrs, output_width, 1),
                                           QN_INT_ATTR(align_attrs, sampling_ratio, 0),
                                           QN_FLOAT_ATTR(align_attrs, spatial_scale, 1)};
static const qn_port align_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"rois", 'T', QN_SET_FLOAT, 0},
                                   {"batch_indices", '\0', QN_SET(QN_INT64), 0}};

static qn_status align_upgrade(qn_node **node)
{
    ((align_attrs *)(*node)->attrs)->coordinate_transformation_mode = OUTPUT_HALF_PIXEL;
    return QN_OK;
}

static qn_status align_lower(qn_node **node)
{
    align_attrs *a = (*node)->attrs;
    if (a->coordinate_transformation_mode != OUTPUT_HALF_PIXEL)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "half_pixel came with opset 16");
    a->coordinate_transformation_mode = HALF_PIXEL; /* the default, which is not written */
    return QN_OK;
}

static const qn_version_rule align_versions[] = {{16, align_upgrade, align_lower}};

static qn_status align_infer(qn_infer *self)
{
    const align_attrs *a = self->attrs;
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

/* A sample between four elements of a plane: their places and weights. */
typedef struct corners {
    int64_t at[4];
    double weight[4];
} corners;

/* False where the sample lies outside the plane and counts as 0. */
static bool find_corners(corners *out, double y, double x, int64_t height, int64_t width)
{
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width))
        return false;
    y = fmin(fmax(y, 0), (double)(height - 1));
    x = fmin(fmax(x, 0), (double)(width - 1));
    const int64_t top = (int64_t)y, left = (int64_t)x;
    const int64_t bottom = QN_MIN(top + 1, height - 1), right = QN_MIN(left + 1, width - 1);
    const double down = y - (double)top, across = x - (double)left;
    *out = (corners){
        {top * width + left, top * width + right, bottom * width + left, bottom * width + right},
        {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across}};
    return true;
}

/* A cell of a region: where its samples begin, how far apart they are and how many. */
typedef struct samples {
    double start, step;
    int64_t count;
} samples;

static bool samples_make(samples *s, double low, double high, int64_t i, int64_t n,
                         const align_attrs *a)
{
    const double shift = a->coordinate_transformation_mode == HALF_PIXEL ? 0.5 : 0;
    const double start = low * (double)a->spatial_scale - shift;
    double size = high * (double)a->spatial_scale - shift - start;
    if (a->coordinate_transformation_mode == OUTPUT_HALF_PIXEL)
        size = fmax(size, 1);
    const double cell_size = size / (double)n;
    const double count = a->sampling_ratio > 0 ? (double)a->sampling_ratio : ceil(cell_size);
    if (!(count < 1e6) || isnan(start))
        return false;
    s->count = (int64_t)fmax(count, 0);
    s->step = cell_size / count;
    s->start = start + (double)i * cell_size + 0.5 * s->step;
    return true;
}

/* The mean of the samples, or the largest weighted corner of any of them. */
static double sample_cell(const double *plane, const qn_tensor *in, const samples *down,
                          const samples *across, int64_t mode)
{
    double sum = 0, max = -(double)INFINITY;
    for (int64_t i = 0; i < down->count; i++) {
        for (int64_t j = 0; j < across->count; j++) {
            corners c = {.at = {0}};
            const bool inside =
                find_corners(&c, down->start + (double)i * down->step,
                             across->start + (double)j * across->step, in->dims[2], in->dims[3]);
            for (int k = 0; k < 4; k++) {
                const double v = inside ? plane[c.at[k]] * c.weight[k] : 0;
                sum += v;
                max = fmax(max, v);
            }
        }
    }
    const int64_t count = down->count * across->count;
    if (mode == MODE_MAX)
        return count ? max : 0;
    return sum / (double)QN_MAX(count, 1);
}

static qn_status align_eval(qn_eval *self)
{
    const align_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *rois = self->in[1], *out = self->out[0];
    const int64_t *images = self->in[2]->data;
    const int64_t count = qn_tensor_count(out), rows = out->dims[2], columns = out->dims[3];
    const int64_t channels = in->dims[1], plane = in->dims[2] * in->dims[3];
    double *x;
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t r = i / columns / rows / channels, c = i / columns / rows % channels;
        double box[4]; /* x1, y1, x2, y2 */
        samples down, across;
        for (int64_t k = 0; k < 4; k++)
            box[k] = qn_tensor_f64(rois, r * 4 + k);
        if (images[r] < 0 || images[r] >= in->dims[0])
            return qn_eval_fail(self, "region %lld is of image %lld, there are %lld", (long long)r,
                                (long long)images[r], (long long)in->dims[0]);
        if (!samples_make(&down, box[1], box[3], i / columns % rows, rows, a) ||
            !samples_make(&across, box[0], box[2], i % columns, columns, a))
            return qn_eval_fail(self, "region %lld is too large", (long long)r);
        const double *from = x + (images[r] * channels + c) * plane;
        const double y = plane ? sample_cell(from, in, &down, &across, a->mode) : 0;
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

const qn_op qn_op_RoiAlign = {.name = "RoiAlign",
                              .domain = "",
                              .since = 10,
                              QN_PORTS(in, align_in),
                              QN_PORTS(out, float_out),
                              QN_ATTRS(align_specs, align_attrs),
                              QN_VERSIONS(align_versions),
                              QN_TYPE_RULES(bfloat16_22),
                              .quant = QN_QUANT_FLOAT,
                              .infer = align_infer,
                              .eval = align_eval,
                              .brief = "interpolated samples of each cell of each region"};
