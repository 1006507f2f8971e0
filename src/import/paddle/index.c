/* Operators that pick elements by position. */
#include <string.h>

#include "import/paddle/paddle.h"

/* ---- Slices ---------------------------------------------------------------------------------- */

/* Bounds are attributes, or values where the program computes them. */
static qn_status read_bounds(qn_value **bounds, const qn_paddle_layer *l)
{
    static const char *const names[] = {
        "StartsTensor StartsTensorList starts", "EndsTensor EndsTensorList ends",
        "StridesTensor StridesTensorList StepsTensorList strides steps"};
    for (size_t i = 0; i < QN_COUNT_OF(names); i++) {
        QN_TRY(qn_paddle_shape(&bounds[i], l, names[i]));
        if (!bounds[i] && i < 2)
            return qn_paddle_fail(l, QN_E_FORMAT, "it has no %s", i ? "ends" : "starts");
    }
    return QN_OK;
}

static qn_status cut(qn_value **out, const qn_paddle_layer *l, qn_value *x)
{
    const qn_ints axes = qn_paddle_ints(l, "axes");
    qn_value *bounds[3], *list;
    QN_TRY(read_bounds(bounds, l));
    QN_TRY(qn_graph_build_ints(&list, l->b, axes.at, axes.count));
    return qn_graph_build(out, l->b, &qn_op_Slice,
                          QN_INPUTS(x, bounds[0], bounds[1], list, bounds[2]), QN_PLAIN);
}

/* An index of a single number takes its axis away. */
qn_status qn_paddle_slice_op(qn_paddle_layer *l)
{
    const qn_ints gone = qn_paddle_ints(l, "decrease_axis");
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(cut(&x, l, x));
    QN_TRY(qn_paddle_squeeze(&x, l, x, gone.at, gone.count));
    return qn_paddle_out(l, "Out", x);
}

/* The places of x's elements, [0, 1, 2, ...] in its shape, and those that the slice has, in a row;
 * `shape` is that of the slice. */
static qn_status places_of(qn_value **places, qn_value **shape, const qn_paddle_layer *l,
                           qn_value *x)
{
    static const int64_t flat[] = {-1};
    qn_value *zero, *one, *size, *dims;
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_paddle_number_of(&one, l, QN_INT64, 1));
    QN_TRY(qn_paddle_make(&size, l, &qn_op_Size, x));
    QN_TRY(qn_paddle_make(&dims, l, &qn_op_Shape, x));
    QN_TRY(qn_graph_build(places, l->b, &qn_op_Range, QN_INPUTS(zero, size, one), QN_PLAIN));
    QN_TRY(qn_paddle_make2(places, l, &qn_op_Reshape, *places, dims));
    QN_TRY(cut(places, l, *places));
    QN_TRY(qn_paddle_make(shape, l, &qn_op_Shape, *places));
    return qn_paddle_reshape(places, l, *places, flat, 1);
}

/* What is put into the slice: a tensor, or numbers of the attributes. */
static qn_status new_numbers(qn_value **out, const qn_paddle_layer *l, const qn_value *x)
{
    const qn_ints gone = qn_paddle_ints(l, "decrease_axes"), shape = qn_paddle_ints(l, "shape");
    const double *numbers;
    size_t count;
    int64_t wanted;
    QN_TRY(qn_paddle_maybe(out, l, "ValueTensor"));
    if (!*out) {
        QN_TRY(qn_paddle_reals(&numbers, &count, l,
                               "values fp32_values int32_values int64_values bool_values"));
        if (shape.count > QN_MAX_RANK || !qn_dims_count(&wanted, (int32_t)shape.count, shape.at) ||
            (size_t)wanted != count)
            return qn_paddle_fail(l, QN_E_FORMAT, "%zu values for its shape", count);
        return qn_paddle_numbers(out, l, x->type.dtype, numbers, (int32_t)shape.count, shape.at);
    }
    if ((*out)->type.kind == QN_TYPE_TENSOR && (*out)->type.rank > 0)
        QN_TRY(qn_paddle_unsqueeze(out, l, *out, gone.at, gone.count));
    return qn_paddle_cast(out, l, *out, x->type.dtype);
}

/* x with a slice of it set. */
qn_status qn_paddle_set_value(qn_paddle_layer *l)
{
    static const int64_t flat[] = {-1};
    qn_value *x, *y, *places, *shape, *numbers, *dims;
    if (qn_paddle_ints(l, "none_axes").count)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "an index of None");
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(places_of(&places, &shape, l, x));
    QN_TRY(new_numbers(&numbers, l, x));
    QN_TRY(qn_paddle_make2(&numbers, l, &qn_op_Expand, numbers, shape));
    QN_TRY(qn_paddle_reshape(&numbers, l, numbers, flat, 1));
    QN_TRY(qn_paddle_make(&dims, l, &qn_op_Shape, x));
    QN_TRY(qn_paddle_reshape(&y, l, x, flat, 1));
    QN_TRY(
        qn_graph_build(&y, l->b, &qn_op_ScatterElements, QN_INPUTS(y, places, numbers), QN_PLAIN));
    QN_TRY(qn_paddle_make2(&y, l, &qn_op_Reshape, y, dims));
    return qn_paddle_out(l, "Out", y);
}

/* ---- Gathering ------------------------------------------------------------------------------- */

/* [n, 1] as [n] */
static qn_status flat_index(qn_value **index, const qn_paddle_layer *l)
{
    static const int64_t flat[] = {-1};
    if ((*index)->type.rank < 2)
        return QN_OK;
    return qn_paddle_reshape(index, l, *index, flat, 1);
}

qn_status qn_paddle_gather(qn_paddle_layer *l)
{
    qn_value *x, *index;
    int64_t axis;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&index, l, "Index"));
    QN_TRY(flat_index(&index, l));
    QN_TRY(qn_paddle_number(&axis, l, "Axis axis dim", 0));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Gather, QN_INPUTS(x, index),
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_gather_nd(qn_paddle_layer *l)
{
    qn_value *x, *index;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&index, l, "Index"));
    QN_TRY(qn_paddle_cast(&index, l, index, QN_INT64));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_GatherND, x, index));
    return qn_paddle_out(l, "Out", x);
}

/* Each row's index picks within that row. */
qn_status qn_paddle_index_sample(qn_paddle_layer *l)
{
    qn_value *x, *index;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&index, l, "Index"));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_GatherElements, QN_INPUTS(x, index),
                          QN_WITH(QN_A_INT("axis", 1))));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_take_along_axis(qn_paddle_layer *l)
{
    qn_value *x, *index;
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(qn_paddle_in(&index, l, "Index"));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_GatherElements, QN_INPUTS(x, index),
                          QN_WITH(QN_A_INT("axis", qn_paddle_int(l, "Axis axis", 0)))));
    return qn_paddle_out(l, "Result", x);
}

qn_status qn_paddle_put_along_axis(qn_paddle_layer *l)
{
    static const struct {
        const char *word, *onnx;
    } kinds[] = {{"assign", "none"},  {"add", "add"},  {"mul", "mul"},
                 {"multiply", "mul"}, {"amax", "max"}, {"amin", "min"}};
    const char *word = qn_paddle_text(l, "Reduce reduce", "assign"), *onnx = NULL;
    qn_value *x, *index, *value;
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].word, word) == 0)
            onnx = kinds[i].onnx;
    }
    if (!onnx || !qn_paddle_int(l, "Include_self include_self", 1))
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "reduce '%s'", word);
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(qn_paddle_in(&index, l, "Index"));
    QN_TRY(qn_paddle_in(&value, l, "Value"));
    QN_TRY(qn_graph_build(
        &x, l->b, &qn_op_ScatterElements, QN_INPUTS(x, index, value),
        QN_WITH(QN_A_INT("axis", qn_paddle_int(l, "Axis axis", 0)), QN_A_TEXT("reduction", onnx))));
    return qn_paddle_out(l, "Result", x);
}

/* The rows of the table W; that of padding_idx counts as zeros. */
static qn_status look_up(qn_value **out, const qn_paddle_layer *l, qn_value *ids)
{
    const int64_t padding = qn_paddle_int(l, "padding_idx", -1), last = -1;
    qn_value *table, *is_padding, *zero;
    QN_TRY(qn_paddle_in(&table, l, "W"));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Gather, table, ids));
    if (padding < 0)
        return QN_OK;
    QN_TRY(qn_paddle_with(&is_padding, l, &qn_op_Equal, ids, (double)padding));
    QN_TRY(qn_paddle_unsqueeze(&is_padding, l, is_padding, &last, 1));
    QN_TRY(qn_paddle_number_of(&zero, l, table->type.dtype, 0));
    return qn_graph_build(out, l->b, &qn_op_Where, QN_INPUTS(is_padding, zero, *out), QN_PLAIN);
}

qn_status qn_paddle_embedding(qn_paddle_layer *l)
{
    qn_value *ids, *out;
    QN_TRY(qn_paddle_in(&ids, l, "Ids"));
    QN_TRY(look_up(&out, l, ids));
    return qn_paddle_out(l, "Out", out);
}

/* The numbers have a last axis of 1. */
qn_status qn_paddle_lookup_table(qn_paddle_layer *l)
{
    static const int64_t last[] = {-1};
    qn_value *ids, *out;
    QN_TRY(qn_paddle_in(&ids, l, "Ids"));
    QN_TRY(qn_paddle_squeeze(&ids, l, ids, last, 1));
    QN_TRY(look_up(&out, l, ids));
    return qn_paddle_out(l, "Out", out);
}

/* ---- Scattering ------------------------------------------------------------------------------ */

static qn_status scatter_rows(qn_value **x, const qn_paddle_layer *l, qn_value *index,
                              qn_value *rows, const char *reduction)
{
    return qn_graph_build(x, l->b, &qn_op_ScatterND, QN_INPUTS(*x, index, rows),
                          QN_WITH(QN_A_TEXT("reduction", reduction)));
}

/* Rows are set; or what they were is forgotten, then all updates of a row are added. */
qn_status qn_paddle_scatter(qn_paddle_layer *l)
{
    static const int64_t last[] = {-1};
    const bool overwrites = qn_paddle_int(l, "overwrite", 1) != 0;
    qn_value *x, *index, *rows, *zeros;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&index, l, "Ids"));
    QN_TRY(qn_paddle_in(&rows, l, "Updates"));
    QN_TRY(flat_index(&index, l));
    QN_TRY(qn_paddle_cast(&index, l, index, QN_INT64));
    QN_TRY(qn_paddle_unsqueeze(&index, l, index, last, 1));
    if (!overwrites) {
        QN_TRY(qn_paddle_with(&zeros, l, &qn_op_Mul, rows, 0));
        QN_TRY(scatter_rows(&x, l, index, zeros, "none"));
    }
    QN_TRY(scatter_rows(&x, l, index, rows, overwrites ? "none" : "add"));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_scatter_nd_add(qn_paddle_layer *l)
{
    qn_value *x, *index, *rows;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&index, l, "Index"));
    QN_TRY(qn_paddle_in(&rows, l, "Updates"));
    QN_TRY(qn_paddle_cast(&index, l, index, QN_INT64));
    QN_TRY(scatter_rows(&x, l, index, rows, "add"));
    return qn_paddle_out(l, "Out", x);
}

/* ---- Choosing -------------------------------------------------------------------------------- */

qn_status qn_paddle_where(qn_paddle_layer *l)
{
    qn_value *condition, *x, *y;
    QN_TRY(qn_paddle_in(&condition, l, "Condition"));
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&y, l, "Y"));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Where, QN_INPUTS(condition, x, y), QN_PLAIN));
    return qn_paddle_out(l, "Out", x);
}

/* [places, axes] of what is not 0, which ONNX has the other way round. */
static qn_status nonzero(qn_value **out, const qn_paddle_layer *l, qn_value *x)
{
    static const int64_t turned[] = {1, 0};
    QN_TRY(qn_paddle_make(out, l, &qn_op_NonZero, x));
    return qn_paddle_transpose(out, l, *out, turned, 2);
}

qn_status qn_paddle_nonzero(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "Condition"));
    QN_TRY(nonzero(&x, l, x));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_masked_select(qn_paddle_layer *l)
{
    qn_value *x, *mask;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&mask, l, "Mask"));
    QN_TRY(nonzero(&mask, l, mask));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_GatherND, x, mask));
    return qn_paddle_out(l, "Y", x);
}

/* Numbers outside [0, depth) have a row of zeros. */
qn_status qn_paddle_one_hot(qn_paddle_layer *l)
{
    static const float ends[] = {0, 1};
    static const int64_t last[] = {-1};
    qn_value *x, *depth, *values, *from, *to, *wrong;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_shape(&depth, l, "depth_tensor depth"));
    if (!depth)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no depth");
    QN_TRY(qn_graph_build_reals(&values, l->b, ends, 2));
    QN_TRY(qn_paddle_cast(&x, l, x, QN_INT64));
    QN_TRY(qn_paddle_number_of(&from, l, QN_INT64, 0));
    QN_TRY(qn_paddle_make2(&wrong, l, &qn_op_Less, x, from));
    /* ONNX counts numbers below 0 from the end; those that are the depth are out of range. */
    QN_TRY(qn_paddle_squeeze(&to, l, depth, last, 1));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Where, QN_INPUTS(wrong, to, x), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_OneHot, QN_INPUTS(x, depth, values), QN_PLAIN));
    return qn_paddle_out(l, "Out", x);
}

/* ---- Turning --------------------------------------------------------------------------------- */

qn_status qn_paddle_flip(qn_paddle_layer *l)
{
    int64_t from[QN_MAX_RANK], to[QN_MAX_RANK], steps[QN_MAX_RANK];
    qn_value *x, *bounds[4];
    qn_ints axes;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_list(&axes, l, "axis"));
    if (axes.count > QN_MAX_RANK)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu axes", axes.count);
    for (size_t i = 0; i < axes.count; i++) {
        from[i] = steps[i] = -1;
        to[i] = INT64_MIN;
    }
    QN_TRY(qn_graph_build_ints(&bounds[0], l->b, from, axes.count));
    QN_TRY(qn_graph_build_ints(&bounds[1], l->b, to, axes.count));
    QN_TRY(qn_graph_build_ints(&bounds[2], l->b, axes.at, axes.count));
    QN_TRY(qn_graph_build_ints(&bounds[3], l->b, steps, axes.count));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Slice,
                          QN_INPUTS(x, bounds[0], bounds[1], bounds[2], bounds[3]), QN_PLAIN));
    return qn_paddle_out(l, "Out", x);
}

/* The last `shift` come first. */
static qn_status roll_axis(qn_value **x, const qn_paddle_layer *l, int64_t axis, int64_t shift)
{
    qn_value *parts[2];
    const int64_t size = (*x)->type.dims[axis].value;
    if (size > 0)
        shift = (shift % size + size) % size;
    if (shift == 0)
        return QN_OK;
    QN_TRY(qn_paddle_slice(&parts[0], l, *x, axis, -shift, INT64_MAX));
    QN_TRY(qn_paddle_slice(&parts[1], l, *x, axis, 0, -shift));
    return qn_paddle_concat(x, l, parts, 2, axis);
}

qn_status qn_paddle_roll(qn_paddle_layer *l)
{
    static const int64_t flat[] = {-1};
    qn_ints shifts, axes = qn_paddle_ints(l, "axis");
    qn_value *x, *dims;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_list(&shifts, l, "ShiftsTensor shifts"));
    QN_TRY(qn_paddle_make(&dims, l, &qn_op_Shape, x));
    if (axes.count == 0) {
        QN_TRY(qn_paddle_reshape(&x, l, x, flat, 1));
        for (size_t i = 0; i < shifts.count; i++)
            QN_TRY(roll_axis(&x, l, 0, shifts.at[i]));
        QN_TRY(qn_paddle_make2(&x, l, &qn_op_Reshape, x, dims));
        return qn_paddle_out(l, "Out", x);
    }
    if (axes.count != shifts.count)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu shifts for %zu axes", shifts.count, axes.count);
    for (size_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.at[i];
        QN_TRY(qn_paddle_axis(&axis, l, rank));
        QN_TRY(roll_axis(&x, l, axis, shifts.at[i]));
    }
    return qn_paddle_out(l, "Out", x);
}
