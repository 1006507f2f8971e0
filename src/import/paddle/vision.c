/* Sampling of pictures. */
#include <string.h>

#include "import/paddle/paddle.h"

qn_status qn_paddle_grid_sample(qn_paddle_layer *l)
{
    const char *mode = qn_paddle_text(l, "mode", "bilinear");
    qn_value *x, *grid;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&grid, l, "Grid"));
    QN_TRY(qn_graph_build(
        &x, l->b, &qn_op_GridSample, QN_INPUTS(x, grid),
        QN_WITH(QN_A_TEXT("mode", strcmp(mode, "nearest") == 0 ? "nearest" : "linear"),
                QN_A_TEXT("padding_mode", qn_paddle_text(l, "padding_mode", "zeros")),
                QN_A_INT("align_corners", qn_paddle_int(l, "align_corners", 1)))));
    return qn_paddle_out(l, "Output", x);
}

qn_status qn_paddle_affine_grid(qn_paddle_layer *l)
{
    qn_value *theta, *size;
    QN_TRY(qn_paddle_in(&theta, l, "Theta"));
    QN_TRY(qn_paddle_shape(&size, l, "OutputShape output_shape"));
    if (!size)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no shape");
    QN_TRY(
        qn_graph_build(&theta, l->b, &qn_op_AffineGrid, QN_INPUTS(theta, size),
                       QN_WITH(QN_A_INT("align_corners", qn_paddle_int(l, "align_corners", 1)))));
    return qn_paddle_out(l, "Output", theta);
}

/* Which picture each box is of: as many times each number as RoisNum says, counted by how many sums
 * of it a box's place has passed. */
qn_status qn_paddle_pictures_of(qn_value **out, const qn_paddle_layer *l, qn_value *boxes,
                                qn_value *counts)
{
    static const int64_t last[] = {-1}, first[] = {0};
    qn_value *zero, *one, *count, *places, *sums, *axes;
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_paddle_number_of(&one, l, QN_INT64, 1));
    QN_TRY(qn_paddle_dim(&count, l, boxes, 0));
    QN_TRY(qn_paddle_squeeze(&count, l, count, first, 1));
    QN_TRY(qn_graph_build(&places, l->b, &qn_op_Range, QN_INPUTS(zero, count, one), QN_PLAIN));
    QN_TRY(qn_paddle_unsqueeze(&places, l, places, last, 1));
    QN_TRY(qn_paddle_cast(&counts, l, counts, QN_INT64));
    QN_TRY(qn_graph_build(&sums, l->b, &qn_op_CumSum, QN_INPUTS(counts, zero), QN_PLAIN));
    QN_TRY(qn_paddle_make2(&sums, l, &qn_op_GreaterOrEqual, places, sums));
    QN_TRY(qn_paddle_cast(&sums, l, sums, QN_INT64));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    return qn_graph_build(out, l->b, &qn_op_ReduceSum, QN_INPUTS(sums, axes),
                          QN_WITH(QN_A_INT("keepdims", 0)));
}

qn_status qn_paddle_count_pictures(qn_value **out, const qn_paddle_layer *l, qn_value *pictures,
                                   qn_value *count)
{
    static const int64_t last[] = {-1}, first[] = {0};
    qn_value *zero, *one, *all, *axes, *parts[2] = {NULL, pictures};
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_paddle_number_of(&one, l, QN_INT64, 1));
    QN_TRY(qn_paddle_squeeze(&count, l, count, first, 1));
    QN_TRY(qn_graph_build(&all, l->b, &qn_op_Range, QN_INPUTS(zero, count, one), QN_PLAIN));
    QN_TRY(qn_paddle_unsqueeze(&all, l, all, last, 1));
    /* One that no picture has stands in front: ONNX Runtime's sums of nothing have another
     * shape. */
    QN_TRY(qn_graph_build_ints(&parts[0], l->b, last, 1));
    QN_TRY(qn_paddle_concat(&pictures, l, parts, 2, 0));
    QN_TRY(qn_paddle_make2(&all, l, &qn_op_Equal, all, pictures));
    QN_TRY(qn_paddle_cast(&all, l, all, QN_INT64));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    return qn_graph_build(out, l->b, &qn_op_ReduceSum, QN_INPUTS(all, axes),
                          QN_WITH(QN_A_INT("keepdims", 0)));
}

qn_status qn_paddle_roi_align(qn_paddle_layer *l)
{
    const bool aligned = qn_paddle_int(l, "aligned", 0) != 0;
    const int64_t samples = qn_paddle_int(l, "sampling_ratio", -1);
    qn_value *x, *boxes, *counts, *pictures;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&boxes, l, "ROIs"));
    QN_TRY(qn_paddle_maybe(&counts, l, "RoisNum"));
    if (!counts)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "boxes without their number per picture");
    QN_TRY(qn_paddle_pictures_of(&pictures, l, boxes, counts));
    QN_TRY(qn_graph_build(
        &x, l->b, &qn_op_RoiAlign, QN_INPUTS(x, boxes, pictures),
        QN_WITH(QN_A_INT("output_height", qn_paddle_int(l, "pooled_height", 1)),
                QN_A_INT("output_width", qn_paddle_int(l, "pooled_width", 1)),
                QN_A_INT("sampling_ratio", samples > 0 ? samples : 0),
                QN_A_REAL("spatial_scale", (float)qn_paddle_real(l, "spatial_scale", 1)),
                QN_A_TEXT("coordinate_transformation_mode",
                          aligned ? "half_pixel" : "output_half_pixel"))));
    return qn_paddle_out(l, "Out", x);
}
