/* Taps of Resize along one axis, worked out when a plan is made. */
#include "backend/cpu/float/resize_axis.h"

static const qn_value *input(const qn_node *node, int32_t i)
{
    return i < node->n_in ? node->in[i] : NULL;
}

bool qn_resize_is_plain(const qn_node *node, int32_t roi, const qn_tensor *in, const qn_tensor *out)
{
    const qn_resize_attrs *a = node->attrs;
    const qn_value *scales = input(node, roi + 1), *sizes = input(node, roi + 2);
    return in->rank == 4 && in->dims[0] == out->dims[0] && in->dims[1] == out->dims[1] &&
           qn_tensor_count(in) > 0 && qn_tensor_count(out) > 0 && a->mode != QN_RESIZE_CUBIC &&
           !a->antialias && !a->exclude_outside &&
           a->coordinate_transformation_mode != QN_COORD_TF_CROP_AND_RESIZE &&
           a->keep_aspect_ratio_policy == QN_ASPECT_STRETCH && (!scales || scales->data) &&
           (!sizes || sizes->data);
}

/* The scale of an axis as the node gives it. */
static double scale_of(const qn_node *node, const qn_value *scales, int32_t axis, double otherwise)
{
    const qn_resize_attrs *a = node->attrs;
    const bool given = scales && scales->data && qn_tensor_count(scales->data) > 0;
    if (!given)
        return otherwise;
    if (!a->axes.at)
        return qn_tensor_f64(scales->data, axis);
    for (size_t i = 0; i < a->axes.count; i++) {
        const int64_t named = a->axes.at[i] < 0 ? a->axes.at[i] + 4 : a->axes.at[i];
        if (named == axis)
            return qn_tensor_f64(scales->data, (int64_t)i);
    }
    return 1;
}

static qn_resize_axis axis_of(const qn_claim *claim, int32_t roi, int32_t axis)
{
    const qn_node *node = claim->node;
    const qn_resize_attrs *a = node->attrs;
    qn_tensor in, out;
    (void)qn_build_shape(&in, claim->builder, node->in[0]);
    (void)qn_build_shape(&out, claim->builder, node->out[0]);
    qn_resize_axis how = {.in = in.dims[axis],
                          .out = out.dims[axis],
                          .coordinates = a->coordinate_transformation_mode,
                          .roi_end = 1};
    how.scale = scale_of(node, input(node, roi + 1), axis, (double)how.out / (double)how.in);
    const bool alone = how.scale == 1 && how.in == how.out;
    how.taps = alone ? 1 : qn_resize_tap_count(a, how.scale);
    return how;
}

qn_status qn_resize_axis_make(qn_resize_taps_of *out, const qn_claim *claim, int32_t roi,
                              int32_t axis)
{
    const qn_resize_axis how = axis_of(claim, roi, axis);
    qn_resize_attrs attrs = *(const qn_resize_attrs *)claim->node->attrs;
    const size_t count = (size_t)(how.out * how.taps);
    double *wide = qn_build_alloc(claim->builder, count * sizeof *wide);
    out->taps = (int32_t)how.taps;
    out->index = qn_build_alloc(claim->builder, count * sizeof *out->index);
    out->weight = qn_build_alloc(claim->builder, count * sizeof *out->weight);
    if (!wide || !out->index || !out->weight)
        return qn_fail_nomem(qn_build_context(claim->builder));
    if (how.taps == 1)
        attrs.mode = QN_RESIZE_NEAREST;
    qn_resize_taps(out->index, wide, &attrs, &how);
    for (size_t i = 0; i < count; i++)
        out->weight[i] = (float)wide[i];
    return QN_OK;
}
