/* Resize in all modes.
 *
 * Each resized axis is a sum of its own: out[x] = sum over taps of weight * in[tap]. The taps of
 * every output position are computed once per axis; the kernel multiplies them over the axes. */
#include "ops/resize.h"

#include <math.h>
#include <string.h>

#include "ops/infer.h"
#include "ops/versions.h"

static const char *const mode_words[] = {"nearest", "linear", "cubic", NULL};
static const char *const coordinate_words[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", NULL};
static const char *const nearest_words[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
static const char *const policy_words[] = {"stretch", "not_larger", "not_smaller", NULL};

const qn_attr_spec qn_resize_specs[QN_RESIZE_SPECS] = {
    QN_ENUM_ATTR(qn_resize_attrs, mode, QN_RESIZE_NEAREST, mode_words),
    QN_ENUM_ATTR(qn_resize_attrs, coordinate_transformation_mode, QN_COORD_HALF_PIXEL,
                 coordinate_words, .since = 11),
    QN_ENUM_ATTR(qn_resize_attrs, nearest_mode, QN_NEAREST_PREFER_FLOOR, nearest_words,
                 .since = 11),
    QN_ENUM_ATTR(qn_resize_attrs, keep_aspect_ratio_policy, QN_ASPECT_STRETCH, policy_words,
                 .since = 18),
    QN_FLOAT_ATTR(qn_resize_attrs, cubic_coeff_a, -0.75f, .since = 11),
    QN_FLOAT_ATTR(qn_resize_attrs, extrapolation_value, 0, .since = 11),
    QN_INT_ATTR(qn_resize_attrs, exclude_outside, 0, .since = 11),
    QN_INT_ATTR(qn_resize_attrs, antialias, 0, .since = 18),
    QN_ATTR(qn_resize_attrs, axes, INTS, .since = 18)};

#define NUMERIC (QN_SET_NUMBER | QN_SET_BOOL | QN_SET_STRING)
static const qn_port resize_in[] = {{"X", 0, NUMERIC, 0},
                                    {"roi", 0, QN_SET_FLOAT, QN_OPTIONAL},
                                    {"scales", 0, QN_SET(QN_FLOAT32), QN_OPTIONAL},
                                    {"sizes", 0, QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port resize_out[] = {{"Y", 0, NUMERIC, 0}};

/* Whether constant scales make an axis longer, and whether they make one shorter; neither is known
 * of others. */
typedef struct change {
    bool grows, shrinks;
} change;

static change change_of(const qn_value *scales)
{
    const qn_tensor *data = scales ? scales->data : NULL;
    change c = {0};
    for (int64_t i = 0; data && i < qn_tensor_count(data); i++) {
        c.grows = c.grows || qn_tensor_f64(data, i) > 1;
        c.shrinks = c.shrinks || qn_tensor_f64(data, i) < 1;
    }
    return c;
}

/* Opset 11 put roi before scales and named what opset 10 did: asymmetric coordinates, and rounding
 * down, but up where an axis gets shorter. */
static qn_status resize_upgrade(qn_node **node)
{
    qn_resize_attrs *a = (*node)->attrs;
    qn_value *scales = (*node)->n_in > 1 ? (*node)->in[1] : NULL;
    const change c = change_of(scales);
    if (a->mode == QN_RESIZE_NEAREST && c.grows && c.shrinks)
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "scales of opset 10 on both sides of 1 are not supported: export with "
                            "opset 11 or later");
    a->coordinate_transformation_mode = QN_COORD_ASYMMETRIC;
    a->nearest_mode = c.shrinks ? QN_NEAREST_CEIL : QN_NEAREST_FLOOR;
    QN_TRY(qn_node_resize_inputs(*node, 3));
    QN_TRY(qn_node_set_input(*node, 1, NULL));
    return qn_node_set_input(*node, 2, scales);
}

static bool is_told_by_opset_10(const qn_resize_attrs *a, const qn_value *scales)
{
    const change c = change_of(scales);
    if (!scales || a->coordinate_transformation_mode != QN_COORD_ASYMMETRIC)
        return false;
    if (a->mode == QN_RESIZE_NEAREST)
        return a->nearest_mode == QN_NEAREST_CEIL
                   ? scales->data && !c.grows
                   : a->nearest_mode == QN_NEAREST_FLOOR && !c.shrinks;
    return a->mode == QN_RESIZE_LINEAR;
}

static qn_status resize_downgrade(qn_node **node)
{
    qn_resize_attrs *a = (*node)->attrs;
    qn_value *scales = (*node)->n_in > 2 ? (*node)->in[2] : NULL;
    if (!is_told_by_opset_10(a, scales))
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "before opset 11 only asymmetric coordinates and scales exist, and the "
                            "nearest element below, or above where axes get shorter");
    a->coordinate_transformation_mode = QN_COORD_HALF_PIXEL;
    a->nearest_mode = QN_NEAREST_PREFER_FLOOR;
    QN_TRY(qn_node_resize_inputs(*node, 2));
    return qn_node_set_input(*node, 1, scales);
}

/* Before opset 13 roi and scales could be empty, not left out. */
static qn_status resize_downgrade_13(qn_node **node)
{
    const int64_t none[1] = {0};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 1, none);
    qn_graph *graph = (*node)->graph;
    for (int32_t i = 1; i < 3; i++) {
        qn_tensor *empty;
        qn_value *value;
        if (i < (*node)->n_in && (*node)->in[i])
            continue;
        QN_TRY(qn_tensor_create(&empty, graph->ctx, graph->arena, &type));
        QN_TRY(qn_value_constant(&value, graph, "empty", empty));
        if ((*node)->n_in <= i)
            QN_TRY(qn_node_resize_inputs(*node, i + 1));
        QN_TRY(qn_node_set_input(*node, i, value));
    }
    return QN_OK;
}

static const qn_version_rule resize_versions[] = {{11, resize_upgrade, resize_downgrade},
                                                  {13, NULL, resize_downgrade_13}};

/* ---- Scales and sizes ------------------------------------------------------------------------ */

/* What the inputs ask of each axis of X. */
typedef struct request {
    /* 1 where the axis is left alone */
    double scale[QN_MAX_RANK];
    int64_t size[QN_MAX_RANK];
} request;

static int64_t axis_at(const qn_resize_attrs *a, size_t i, int32_t rank)
{
    const int64_t axis = a->axes.at ? a->axes.at[i] : (int64_t)i;
    return axis < 0 ? axis + rank : axis;
}

static size_t axis_count(const qn_resize_attrs *a, int32_t rank)
{
    return a->axes.at ? a->axes.count : (size_t)rank;
}

/* round(x) with halves away from zero, as the policies have it. */
static int64_t policy_size(double scale, int64_t dim)
{
    return (int64_t)floor(scale * (double)dim + 0.5);
}

static void request_sizes(request *r, const qn_resize_attrs *a, const qn_tensor *x,
                          const int64_t *sizes, size_t count)
{
    double common = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t axis = axis_at(a, i, x->rank);
        const double scale = (double)sizes[i] / (double)x->dims[axis];
        const bool smaller = a->keep_aspect_ratio_policy == QN_ASPECT_NOT_LARGER;
        r->size[axis] = sizes[i];
        r->scale[axis] = scale;
        common = i == 0 ? scale : smaller ? fmin(common, scale) : fmax(common, scale);
    }
    for (size_t i = 0; i < count && a->keep_aspect_ratio_policy != QN_ASPECT_STRETCH; i++) {
        const int64_t axis = axis_at(a, i, x->rank);
        r->scale[axis] = common;
        r->size[axis] = policy_size(common, x->dims[axis]);
    }
}

/* False where a number makes no sense; the caller has checked axes and counts. */
static bool request_scales(request *r, const qn_resize_attrs *a, const qn_tensor *x,
                           const float *scales, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t axis = axis_at(a, i, x->rank);
        const double size = floor((double)x->dims[axis] * (double)scales[i]);
        if (!(scales[i] > 0) || !(size < 0x1p40))
            return false;
        r->scale[axis] = (double)scales[i];
        r->size[axis] = (int64_t)size;
    }
    return true;
}

static bool axes_valid(const qn_resize_attrs *a, int32_t rank)
{
    for (size_t i = 0; i < axis_count(a, rank); i++) {
        const int64_t axis = axis_at(a, i, rank);
        if (axis < 0 || axis >= rank)
            return false;
    }
    return axis_count(a, rank) <= (size_t)rank;
}

/* From the contents of scales or sizes (one of them NULL). */
static bool request_make(request *r, const qn_resize_attrs *a, const qn_tensor *x,
                         const qn_tensor *scales, const qn_tensor *sizes)
{
    const size_t count = axis_count(a, x->rank);
    for (int32_t d = 0; d < x->rank; d++) {
        r->scale[d] = 1;
        r->size[d] = x->dims[d];
    }
    const qn_tensor *given = sizes ? sizes : scales;
    if (!given || (size_t)qn_tensor_count(given) != count)
        return false;
    if (scales)
        return request_scales(r, a, x, scales->data, count);
    for (size_t i = 0; i < count; i++) {
        const int64_t size = ((const int64_t *)sizes->data)[i];
        if (size < 0 || size > INT64_C(1) << 40 || x->dims[axis_at(a, i, x->rank)] == 0)
            return false;
    }
    request_sizes(r, a, x, sizes->data, count);
    return true;
}

/* An empty tensor counts as left out: older files write it so. */
static const qn_tensor *given(const qn_tensor *tensor)
{
    return tensor && qn_tensor_count(tensor) > 0 ? tensor : NULL;
}

qn_status qn_infer_resize(qn_infer *self)
{
    const qn_resize_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    const qn_tensor *scales = qn_infer_has(self, 2) ? given(self->data[2]) : NULL;
    const qn_tensor *sizes = qn_infer_has(self, 3) ? given(self->data[3]) : NULL;
    qn_dim dims[QN_MAX_RANK];
    qn_tensor x = {.rank = in->rank};
    request r;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->dtype == QN_STRING && a->mode != QN_RESIZE_NEAREST)
        return qn_infer_fail(self, "strings can only be resized by nearest");
    if (in->rank < 0)
        return QN_OK;
    if (!axes_valid(a, in->rank))
        return qn_infer_fail(self, "axes do not fit %d dimensions", in->rank);
    for (int32_t d = 0; d < in->rank; d++) {
        dims[d] = qn_dim_unknown();
        x.dims[d] = in->dims[d].value < 0 ? 1 : in->dims[d].value;
    }
    if (scales && sizes)
        return qn_infer_fail(self, "scales and sizes exclude each other");
    if ((scales || sizes) && !request_make(&r, a, &x, scales, sizes))
        return qn_infer_fail(self, "scales or sizes do not fit the input");
    for (int32_t d = 0; (scales || sizes) && d < in->rank; d++) {
        const bool open = in->dims[d].value < 0;
        if (!open || (sizes && a->keep_aspect_ratio_policy == QN_ASPECT_STRETCH && r.scale[d] != 1))
            dims[d] = qn_dim_of(r.size[d]);
        else if (r.scale[d] == 1 && scales)
            dims[d] = in->dims[d];
    }
    qn_infer_set(self, 0, in->dtype, in->rank, dims);
    return QN_OK;
}

/* ---- Taps ------------------------------------------------------------------------------------ */

double qn_resize_coordinate(const qn_resize_axis *axis, int64_t x)
{
    const double in = (double)axis->in, out = (double)axis->out, s = axis->scale;
    switch (axis->coordinates) {
    case QN_COORD_HALF_PIXEL_SYMMETRIC: {
        /* The size that was asked for and the one that is there differ by rounding. */
        const double adjustment = out / (s * in), centre = in / 2;
        return centre * (1 - adjustment) + ((double)x + 0.5) / s - 0.5;
    }
    case QN_COORD_PYTORCH_HALF_PIXEL: return axis->out > 1 ? ((double)x + 0.5) / s - 0.5 : 0;
    case QN_COORD_ALIGN_CORNERS: return s * in == 1 ? 0 : (double)x * (in - 1) / (s * in - 1);
    case QN_COORD_ASYMMETRIC: return (double)x / s;
    case QN_COORD_TF_CROP_AND_RESIZE:
        return axis->out > 1
                   ? axis->roi_start * (in - 1) +
                         (double)x * (axis->roi_end - axis->roi_start) * (in - 1) / (s * in - 1)
                   : 0.5 * (axis->roi_start + axis->roi_end) * (in - 1);
    case QN_COORD_TF_HALF_PIXEL_FOR_NN: return ((double)x + 0.5) / s;
    default: return ((double)x + 0.5) / s - 0.5;
    }
}

static int64_t nearest_tap(int64_t how, double x)
{
    switch (how) {
    case QN_NEAREST_PREFER_CEIL: return (int64_t)floor(x + 0.5);
    case QN_NEAREST_FLOOR: return (int64_t)floor(x);
    case QN_NEAREST_CEIL: return (int64_t)ceil(x);
    default: return (int64_t)ceil(x - 0.5);
    }
}

static double cubic_weight(double distance, double a)
{
    const double d = fabs(distance);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static double linear_weight(double distance)
{
    return fmax(0, 1 - fabs(distance));
}

int64_t qn_resize_tap_count(const qn_resize_attrs *a, double scale)
{
    const int64_t reach = a->mode == QN_RESIZE_CUBIC ? 2 : 1;
    if (a->mode == QN_RESIZE_NEAREST)
        return 1;
    /* Antialiasing stretches the filter over what one output element covers. */
    return a->antialias && scale < 1 ? 2 * (int64_t)ceil((double)reach / scale) + 2 : 2 * reach;
}

/* Weights of the taps from `first` on, their sum 1 where elements outside are excluded or the
 * filter is stretched. */
static void filter_taps(double *weights, const qn_resize_attrs *a, const qn_resize_axis *axis,
                        double x, int64_t first)
{
    const double stretch = a->antialias && axis->scale < 1 ? axis->scale : 1;
    double sum = 0;
    for (int64_t k = 0; k < axis->taps; k++) {
        const double distance = (x - (double)(first + k)) * stretch;
        const bool outside = first + k < 0 || first + k >= axis->in;
        weights[k] = a->mode == QN_RESIZE_CUBIC ? cubic_weight(distance, (double)a->cubic_coeff_a)
                                                : linear_weight(distance);
        if (outside && a->exclude_outside)
            weights[k] = 0;
        sum += weights[k];
    }
    const bool normalize = a->exclude_outside || stretch != 1;
    for (int64_t k = 0; k < axis->taps && normalize && sum != 0; k++)
        weights[k] /= sum;
}

void qn_resize_taps(int64_t *index, double *weight, const qn_resize_attrs *a,
                    const qn_resize_axis *axis)
{
    for (int64_t x = 0; x < axis->out; x++) {
        int64_t *at = index + x * axis->taps;
        double *w = weight + x * axis->taps;
        double from = axis->scale == 1 && axis->in == axis->out &&
                              axis->coordinates != QN_COORD_TF_CROP_AND_RESIZE
                          ? (double)x
                          : qn_resize_coordinate(axis, x);
        from = isnan(from) ? 0 : fmin(fmax(from, -1e15), 1e15); /* regions come from data */
        int64_t first = nearest_tap(a->nearest_mode, from);
        w[0] = 1;
        if (a->mode != QN_RESIZE_NEAREST) {
            first = (int64_t)floor(from) - axis->taps / 2 + 1;
            filter_taps(w, a, axis, from, first);
        }
        for (int64_t k = 0; k < axis->taps; k++)
            at[k] = QN_MIN(QN_MAX(first + k, 0), axis->in - 1);
        /* Coordinates outside the input show the extrapolation value: marked by the index. */
        if (axis->coordinates == QN_COORD_TF_CROP_AND_RESIZE &&
            (from < 0 || from > (double)(axis->in - 1)))
            at[0] = -1;
    }
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

static qn_status run_axis(qn_eval *self, qn_resize_run *r, int32_t d, double scale)
{
    const qn_resize_attrs *a = self->attrs;
    const qn_tensor *roi = given(qn_eval_in(self, 1));
    void *index, *weight;
    qn_resize_axis *axis = &r->axes[d];
    *axis = (qn_resize_axis){.in = r->in->dims[d],
                             .out = r->out->dims[d],
                             .scale = scale,
                             .coordinates = a->coordinate_transformation_mode,
                             .roi_end = 1};
    const bool alone = scale == 1 && axis->in == axis->out;
    axis->taps = alone ? 1 : qn_resize_tap_count(a, scale);
    const size_t n = axis_count(a, r->in->rank);
    for (size_t i = 0; roi && i < n; i++) {
        if (axis_at(a, i, r->in->rank) != d || (size_t)qn_tensor_count(roi) != 2 * n)
            continue;
        axis->roi_start = qn_tensor_f64(roi, (int64_t)i);
        axis->roi_end = qn_tensor_f64(roi, (int64_t)(n + i));
        const bool crops = a->coordinate_transformation_mode == QN_COORD_TF_CROP_AND_RESIZE &&
                           (axis->roi_start != 0 || axis->roi_end != 1);
        axis->taps = crops ? qn_resize_tap_count(a, scale) : axis->taps;
    }
    if (axis->taps > INT32_MAX)
        return qn_eval_fail(self, "the scale of dimension %d is too small", d);
    QN_TRY(qn_eval_scratch(self, &index, axis->out * axis->taps + 1, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &weight, axis->out * axis->taps + 1, sizeof(double)));
    r->index[d] = index;
    r->weight[d] = weight;
    qn_resize_attrs how = *a;
    if (axis->taps == 1)
        how.mode = QN_RESIZE_NEAREST; /* one tap at the place itself */
    qn_resize_taps(index, weight, &how, axis);
    return QN_OK;
}

/* Sum over the taps of dims d.. of the element whose earlier coordinates lead to `from`. */
static double weighted(const qn_resize_run *r, const int64_t *x, int32_t d, int64_t from)
{
    if (d == r->in->rank)
        return qn_tensor_f64(r->in, from);
    const int64_t taps = r->axes[d].taps;
    const int64_t *index = r->index[d] + x[d] * taps;
    const double *weight = r->weight[d] + x[d] * taps;
    double sum = 0;
    for (int64_t k = 0; k < taps; k++) {
        if (weight[k] != 0)
            sum += weight[k] * weighted(r, x, d + 1, from + index[k] * r->strides[d]);
    }
    return sum;
}

bool qn_resize_at(int64_t *x, const qn_resize_run *r, int64_t i)
{
    bool inside = true;
    for (int32_t d = r->out->rank - 1; d >= 0; d--) {
        x[d] = i % r->out->dims[d];
        i /= r->out->dims[d];
        inside = inside && r->index[d][x[d] * r->axes[d].taps] >= 0;
    }
    return inside;
}

static void resize_element(const qn_eval *self, const qn_resize_run *r, int64_t i)
{
    const qn_resize_attrs *a = self->attrs;
    const size_t size = qn_dtype_size(r->out->dtype);
    int64_t x[QN_MAX_RANK], from = 0;
    const bool inside = qn_resize_at(x, r, i);
    if (a->mode == QN_RESIZE_NEAREST && inside) {
        for (int32_t d = 0; d < r->out->rank; d++)
            from += r->index[d][x[d] * r->axes[d].taps] * r->strides[d];
        memcpy((char *)r->out->data + (size_t)i * size,
               (const char *)r->in->data + (size_t)from * size, size);
        return;
    }
    const double value = inside ? weighted(r, x, 0, 0) : r->outside;
    qn_store_f64(r->out->data, r->out->dtype, i, &value, 1);
}

qn_status qn_resize_run_make(qn_resize_run *r, qn_eval *self)
{
    const qn_resize_attrs *a = self->attrs;
    request wanted;
    *r = (qn_resize_run){.in = self->in[0], .out = self->out[0]};
    r->outside = (double)a->extrapolation_value;
    if (!request_make(&wanted, a, r->in, given(qn_eval_in(self, 2)), given(qn_eval_in(self, 3))))
        return qn_eval_fail(self, "scales or sizes do not fit the input");
    const int64_t count = qn_tensor_count(r->out);
    if (count > 0 && qn_tensor_count(r->in) == 0)
        return qn_eval_fail(self, "the input is empty");
    qn_dims_strides(r->strides, r->in->rank, r->in->dims);
    for (int32_t d = 0; d < r->in->rank && count; d++)
        QN_TRY(run_axis(self, r, d, wanted.scale[d]));
    return QN_OK;
}

qn_status qn_eval_resize(qn_eval *self)
{
    qn_resize_run r;
    QN_TRY(qn_resize_run_make(&r, self));
    const int64_t count = qn_tensor_count(r.out);
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        resize_element(self, &r, i);
    }
    return QN_OK;
}

bool qn_moves_numbers(const qn_node *node)
{
    const qn_resize_attrs *a = node->op == &qn_op_Resize ? node->attrs : NULL;
    if (node->op->quant != QN_QUANT_PASS || node->op == &qn_op_CenterCropPad)
        return false; /* that one fills up with zeros */
    return !a || (a->mode == QN_RESIZE_NEAREST &&
                  a->coordinate_transformation_mode != QN_COORD_TF_CROP_AND_RESIZE);
}

const qn_op qn_op_Resize = {.name = "Resize",
                            .domain = "",
                            .since = 10,
                            QN_PORTS(in, resize_in),
                            QN_PORTS(out, resize_out),
                            QN_ATTRS(qn_resize_specs, qn_resize_attrs),
                            QN_VERSIONS(resize_versions),
                            .quant = QN_QUANT_PASS,
                            .infer = qn_infer_resize,
                            .eval = qn_eval_resize,
                            .brief = "other sizes by nearest, linear or cubic interpolation"};
