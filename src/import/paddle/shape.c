/* Operators that give tensors another shape. */
#include <string.h>

#include "import/paddle/paddle.h"

qn_status qn_paddle_reshape_op(qn_paddle_layer *l)
{
    qn_value *x, *shape;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_shape(&shape, l, "Shape ShapeTensor shape"));
    if (!shape)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no shape");
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Reshape, x, shape));
    return qn_paddle_out(l, "Out", x);
}

/* Axes of other sizes than 1 stay. */
qn_status qn_paddle_squeeze_op(qn_paddle_layer *l)
{
    int64_t kept[QN_MAX_RANK], axis;
    size_t count = 0;
    qn_value *x, *y;
    qn_ints axes;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_list(&axes, l, "axes axis"));
    for (size_t i = 0; i < axes.count && count < QN_MAX_RANK; i++) {
        axis = axes.at[i];
        QN_TRY(qn_paddle_axis(&axis, l, rank));
        if (x->type.dims[axis].value < 0 || x->type.dims[axis].value == 1)
            kept[count++] = axis;
    }
    if (axes.count == 0)
        QN_TRY(qn_paddle_make(&y, l, &qn_op_Squeeze, x));
    else
        QN_TRY(qn_paddle_squeeze(&y, l, x, kept, count));
    return qn_paddle_out(l, "Out", y);
}

/* Axes are inserted one after the other, each into what those before it have made. */
qn_status qn_paddle_unsqueeze_op(qn_paddle_layer *l)
{
    int64_t added[QN_MAX_RANK];
    size_t count = 0;
    qn_value *x, *y;
    qn_ints axes;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_list(&axes, l, "AxesTensor AxesTensorList axes axis"));
    for (size_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.at[i];
        if (rank == QN_MAX_RANK)
            return qn_paddle_fail(l, QN_E_UNSUPPORTED, "more than %d dimensions", QN_MAX_RANK);
        QN_TRY(qn_paddle_axis(&axis, l, ++rank));
        for (size_t k = 0; k < count; k++)
            added[k] += added[k] >= axis;
        added[count++] = axis;
    }
    QN_TRY(qn_paddle_unsqueeze(&y, l, x, added, count));
    return qn_paddle_out(l, "Out", y);
}

qn_status qn_paddle_transpose_op(qn_paddle_layer *l)
{
    const qn_ints axes = qn_paddle_ints(l, "axis perm");
    int64_t perm[QN_MAX_RANK];
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    if (axes.count > QN_MAX_RANK)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu axes", axes.count);
    for (size_t i = 0; i < axes.count; i++) {
        perm[i] = axes.at[i];
        QN_TRY(qn_paddle_axis(&perm[i], l, (int32_t)axes.count));
    }
    QN_TRY(qn_paddle_transpose(&x, l, x, perm, axes.count));
    return qn_paddle_out(l, "Out", x);
}

/* Two axes: those before `axis`, and the rest. */
qn_status qn_paddle_flatten2(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Flatten, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("axis", qn_paddle_int(l, "axis", 1)))));
    return qn_paddle_out(l, "Out", x);
}

static qn_status flatten_range(qn_value **x, const qn_paddle_layer *l, int64_t first, int64_t last,
                               int32_t rank)
{
    int64_t dims[QN_MAX_RANK] = {0};
    const int64_t one = -1;
    const size_t count = (size_t)(rank - (last - first));
    bool known = true;
    for (int64_t i = last + 1; i < rank; i++) {
        dims[i - (last - first)] = (*x)->type.dims[i].value;
        known = known && (*x)->type.dims[i].value >= 0;
    }
    dims[first] = -1;
    if (known)
        return qn_paddle_reshape(x, l, *x, dims, count);
    qn_value *parts[3], *shape;
    QN_TRY(qn_graph_build(&parts[0], l->b, &qn_op_Shape, QN_INPUTS(*x),
                          QN_WITH(QN_A_INT("end", first))));
    QN_TRY(qn_graph_build_ints(&parts[1], l->b, &one, 1));
    QN_TRY(qn_graph_build(&parts[2], l->b, &qn_op_Shape, QN_INPUTS(*x),
                          QN_WITH(QN_A_INT("start", last + 1))));
    QN_TRY(qn_paddle_concat(&shape, l, parts + (first == 0), first == 0 ? 2 : 3, 0));
    return qn_paddle_make2(x, l, &qn_op_Reshape, *x, shape);
}

/* The axes from start to stop become one. */
qn_status qn_paddle_flatten(qn_paddle_layer *l)
{
    static const int64_t one[] = {1};
    int64_t first = qn_paddle_int(l, "start_axis", 1), last = qn_paddle_int(l, "stop_axis", 1);
    qn_value *x;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (rank == 0) {
        QN_TRY(qn_paddle_reshape(&x, l, x, one, 1));
        return qn_paddle_out(l, "Out", x);
    }
    QN_TRY(qn_paddle_axis(&first, l, rank));
    QN_TRY(qn_paddle_axis(&last, l, rank));
    if (last < first)
        return qn_paddle_fail(l, QN_E_FORMAT, "axes %lld to %lld", (long long)first,
                              (long long)last);
    QN_TRY(flatten_range(&x, l, first, last, rank));
    return qn_paddle_out(l, "Out", x);
}

/* -1 keeps a dimension, as 1 does for ONNX. */
qn_status qn_paddle_expand(qn_paddle_layer *l)
{
    qn_value *x, *shape;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_shape(&shape, l, "Shape expand_shapes_tensor shape"));
    if (!shape)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no shape");
    QN_TRY(qn_paddle_with(&shape, l, &qn_op_Max, shape, 1));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Expand, x, shape));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_expand_as(qn_paddle_layer *l)
{
    qn_value *x, *y, *shape;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_maybe(&y, l, "Y"));
    if (y)
        QN_TRY(qn_paddle_make(&shape, l, &qn_op_Shape, y));
    else
        QN_TRY(qn_paddle_shape(&shape, l, "target_shape"));
    if (!shape)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no shape");
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Expand, x, shape));
    return qn_paddle_out(l, "Out", x);
}

/* As many repeats as axes: the shorter of both gets ones in front. */
qn_status qn_paddle_tile(qn_paddle_layer *l)
{
    int64_t times[QN_MAX_RANK], axes[QN_MAX_RANK];
    qn_value *x, *repeats;
    qn_ints given;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_list(&given, l,
                          "RepeatTimes repeat_times_tensor repeat_times ExpandTimes expand_times"));
    if (given.count > QN_MAX_RANK)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu repeats", given.count);
    const size_t wide = QN_MAX(given.count, (size_t)rank);
    for (size_t i = 0; i < wide; i++) {
        axes[i] = (int64_t)i;
        times[i] = i < wide - given.count ? 1 : given.at[i - (wide - given.count)];
    }
    QN_TRY(qn_paddle_unsqueeze(&x, l, x, axes, wide - (size_t)rank));
    QN_TRY(qn_graph_build_ints(&repeats, l->b, times, wide));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Tile, x, repeats));
    return qn_paddle_out(l, "Out", x);
}

/* int32 in PaddlePaddle, but for shape64 */
qn_status qn_paddle_shape_op(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Shape, x));
    if (strcmp(l->op->type, "shape64") != 0)
        QN_TRY(qn_paddle_cast(&x, l, x, QN_INT32));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_size(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Size, x));
    return qn_paddle_out(l, "Out", x);
}
