/* Pictures of other sizes. */
#include "import/tensorflow/tensorflow.h"

/* How the centers of pixels are found: by the two attributes that have said so. */
static const char *centers(const qn_tf_node *node)
{
    if (qn_tf_attr_bool(node, "align_corners", false))
        return "align_corners";
    return qn_tf_attr_bool(node, "half_pixel_centers", false) ? "half_pixel" : "asymmetric";
}

/* [N, C] of the input, then the two sizes. */
static qn_status sizes_of(qn_value **out, const qn_tf_node *node, qn_value *x)
{
    qn_value *size, *shape;
    qn_tf_import *import = node->import;
    QN_TRY(qn_tf_in(&size, node, 1));
    QN_TRY(qn_tf_cast(&size, import, QN_INT64));
    QN_TRY(qn_tf_shape_of(&shape, import, x));
    QN_TRY(qn_tf_part(&shape, import, 0, 0, 2));
    QN_TRY(qn_graph_build(out, &import->builder, &qn_op_Concat, QN_INPUTS(shape, size),
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_tf_fold(out, import);
}

/* Sizes that are known, with an open batch: how much larger. Exact where the sizes are
 * multiples. */
static qn_status scales_of(qn_value **out, const qn_tf_node *node, const qn_value *x)
{
    int64_t size[2];
    size_t count;
    float scales[4] = {1, 1};
    *out = NULL;
    if (!qn_tf_has_ints(node, 1) || x->type.rank != 4)
        return QN_OK;
    QN_TRY(qn_tf_ints(size, &count, node, 1, 2));
    for (size_t i = 0; i < 2 && count == 2; i++) {
        const int64_t own = x->type.dims[2 + i].value;
        if (own < 1 || size[i] < 1 || size[i] % own || size[i] / own > 1 << 20)
            return QN_OK;
        scales[2 + i] = (float)(size[i] / own);
    }
    return count == 2 ? qn_graph_build_reals(out, &node->import->builder, scales, 4) : QN_OK;
}

/* `nearest`: how a place between two pixels is rounded. */
static qn_status resize(qn_value **out, const qn_tf_node *node, qn_value *x, const char *mode,
                        const char *nearest)
{
    qn_value *sizes = NULL, *scales;
    QN_TRY(scales_of(&scales, node, x));
    if (!scales)
        QN_TRY(sizes_of(&sizes, node, x));
    return qn_graph_build(
        out, &node->import->builder, &qn_op_Resize, QN_INPUTS(x, NULL, scales, sizes),
        QN_WITH(QN_A_TEXT("mode", mode), QN_A_TEXT("coordinate_transformation_mode", centers(node)),
                QN_A_TEXT("nearest_mode", nearest)));
}

qn_status qn_tf_resize_bilinear(qn_tf_node *node)
{
    qn_value *x, *y;
    QN_TRY(qn_tf_in_order(&x, node, 0, QN_ORDER_CHANNELS_FIRST));
    if (!qn_dtype_is_float(x->type.dtype))
        QN_TRY(qn_tf_cast(&x, node->import, QN_FLOAT32));
    QN_TRY(resize(&y, node, x, "linear", "floor"));
    return qn_tf_out(node, 0, y, QN_ORDER_CHANNELS_FIRST);
}

/* Places are rounded down, with half_pixel_centers those of the half pixels: (i + 0.5) scale, which
 * is ONNX's half_pixel rounded up at .5; at aligned corners they are rounded to the nearest. */
qn_status qn_tf_resize_nearest(qn_tf_node *node)
{
    qn_value *x, *y;
    const bool aligned = qn_tf_attr_bool(node, "align_corners", false);
    const bool half = qn_tf_attr_bool(node, "half_pixel_centers", false);
    QN_TRY(qn_tf_in_order(&x, node, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(resize(&y, node, x, "nearest", aligned || half ? "round_prefer_ceil" : "floor"));
    return qn_tf_out(node, 0, y, QN_ORDER_CHANNELS_FIRST);
}
