/* Elements picked, placed, repeated and moved: selects, slices, gathers, pads. */
#include <string.h>

#include "import/pytorch/aten.h"

/* ---- Views of an axis ------------------------------------------------------------------------ */

/* The result writes through to the tensor that it is a part of. */
static void link_view(qn_aten_call *c, const qn_torch_view *view)
{
    const qn_torch_value *self = qn_aten_value(c, "self");
    qn_torch_tensor *tensor = c->result.tensor;
    if (self->kind != QN_TORCH_TENSOR)
        return;
    tensor->view = *view;
    tensor->view.base = self->tensor;
    tensor->view.seen = self->tensor->writes;
}

qn_status qn_aten_select(qn_aten_call *c)
{
    const qn_torch_value *index = qn_aten_value(c, "index");
    qn_torch_view view = {.select = true, .step = 1};
    qn_value *x, *at;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&view.axis, c, "dim", rank));
    QN_TRY(qn_torch_value_of(&at, c->t, index));
    QN_TRY(qn_graph_build(&at, c->b, &qn_op_Gather, QN_INPUTS(x, at),
                          QN_WITH(QN_A_INT("axis", view.axis))));
    QN_TRY(qn_aten_return(c, at));
    if (index->kind != QN_TORCH_INT)
        return QN_OK;
    const int64_t size = view.axis < rank ? x->type.dims[view.axis].value : -1;
    view.start = index->number < 0 && size >= 0 ? index->number + size : index->number;
    link_view(c, &view);
    return QN_OK;
}

/* The end of a slice: a number, counted from the begin where the size is known. */
static qn_status slice_end(qn_value **out, int64_t *number, qn_aten_call *c, const char *name,
                           int64_t size)
{
    const qn_torch_value *end = qn_aten_value(c, name);
    const bool last = strcmp(name, "end") == 0;
    qn_torch_value known = *end;
    if (qn_torch_is_none(end))
        known = qn_torch_int(last ? INT64_MAX : 0);
    if (known.kind == QN_TORCH_INT) {
        if (known.number < 0 && size >= 0)
            known.number = QN_MAX(known.number + size, INT64_C(0));
        *number = known.number;
    } else
        *number = -1;
    return qn_torch_shape(out, c->t, &known, 1);
}

qn_status qn_aten_slice_axis(qn_aten_call *c)
{
    qn_torch_view view = {.select = false};
    qn_value *x, *start, *end, *axes, *step;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&view.axis, c, "dim", rank));
    QN_TRY(qn_aten_int(&view.step, c, "step"));
    const int64_t size = view.axis < rank ? x->type.dims[view.axis].value : -1;
    QN_TRY(slice_end(&start, &view.start, c, "start", size));
    QN_TRY(slice_end(&end, &view.end, c, "end", size));
    if (view.start == 0 && view.step == 1 &&
        (view.end == INT64_MAX || (size >= 0 && view.end >= size))) {
        c->result = *qn_aten_value(c, "self");
        return QN_OK;
    }
    QN_TRY(qn_graph_build_ints(&axes, c->b, &view.axis, 1));
    QN_TRY(qn_graph_build_ints(&step, c->b, &view.step, 1));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Slice, QN_INPUTS(x, start, end, axes, step), QN_PLAIN));
    QN_TRY(qn_aten_return(c, x));
    link_view(c, &view);
    return QN_OK;
}

/* `length` elements from a place on. */
qn_status qn_aten_narrow(qn_aten_call *c)
{
    qn_torch_value ends[2] = {*qn_aten_value(c, "start"), *qn_aten_value(c, "length")};
    qn_value *x, *start, *end, *axes;
    int64_t axis;
    int32_t rank;
    bool done;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_torch_shape(&start, c->t, &ends[0], 1));
    QN_TRY(qn_torch_arithmetic(&ends[1], &done, c->t, "add", ends, 2));
    QN_TRY(qn_torch_shape(&end, c->t, &ends[1], 1));
    QN_TRY(qn_graph_build_ints(&axes, c->b, &axis, 1));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Slice, QN_INPUTS(x, start, end, axes), QN_PLAIN));
    return qn_aten_return(c, x);
}

/* self with a part of it replaced by src: a write to a view of a copy. */
qn_status qn_aten_scatter_part(qn_aten_call *c)
{
    const bool select = strcmp(c->op->name, "select_scatter") == 0;
    qn_torch_value whole, part;
    qn_value *x, *src;
    int64_t size;
    int32_t rank;
    qn_torch_view view = {.select = select, .step = 1, .end = INT64_MAX};
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_tensor(&src, c, "src"));
    QN_TRY(qn_aten_axis(&view.axis, c, "dim", rank));
    size = view.axis < rank ? x->type.dims[view.axis].value : -1;
    if (qn_aten_has(c, "start"))
        QN_TRY(qn_aten_int(&view.start, c, "start"));
    if (qn_aten_has(c, "end"))
        QN_TRY(qn_aten_int(&view.end, c, "end"));
    if (!select)
        QN_TRY(qn_aten_int(&view.step, c, "step"));
    if (size < 0)
        return qn_aten_unsupported(c, "the size of the axis is not known");
    view.start += view.start < 0 ? size : 0;
    view.end += view.end < 0 ? size : 0;
    QN_TRY(qn_torch_make(&whole, c->t, x));
    QN_TRY(qn_torch_make(&part, c->t, src));
    view.base = whole.tensor;
    part.tensor->view = view;
    QN_TRY(qn_torch_write(c->t, part.tensor, src));
    c->result = whole;
    return QN_OK;
}

/* ---- Gathering ------------------------------------------------------------------------------- */

qn_status qn_aten_embedding(qn_aten_call *c)
{
    qn_value *weight, *indices, *y;
    int32_t rank;
    c->t->hint = (qn_type){.kind = QN_TYPE_TENSOR,
                           .dtype = QN_INT64,
                           .rank = 2,
                           .dims = {qn_dim_unknown(), qn_dim_unknown()}};
    QN_TRY(qn_aten_tensor(&weight, c, "weight"));
    QN_TRY(qn_aten_ranked(&indices, &rank, c, "indices"));
    if (!qn_dtype_is_integer(qn_dtype_of(indices)) || qn_dtype_of(indices) == QN_BOOL)
        QN_TRY(qn_aten_cast(&indices, c, indices, QN_INT64));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Gather, weight, indices));
    return qn_aten_return(c, y);
}

/* Gather and GatherElements along an axis. */
qn_status qn_aten_gather(qn_aten_call *c)
{
    qn_value *x, *index, *y;
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_aten_tensor(&index, c, "index"));
    QN_TRY(qn_graph_build(&y, c->b, c->op->onnx, QN_INPUTS(x, index),
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_aten_return(c, y);
}

typedef struct index_list {
    qn_value *at[QN_MAX_RANK];
    int64_t axes[QN_MAX_RANK];
    size_t count;
    bool adjacent;
} index_list;

static qn_status add_index(index_list *list, qn_aten_call *c, qn_value *index, int64_t axis,
                           int32_t rank)
{
    if (axis >= rank)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "more indices than the %d axes", rank);
    if (list->count && list->axes[list->count - 1] != axis - 1)
        list->adjacent = false;
    list->axes[list->count] = axis;
    list->at[list->count++] = index;
    return QN_OK;
}

/* The place of each true element along every axis of the mask: int64 [K] each. */
static qn_status places_of(qn_value **out, qn_aten_call *c, qn_value *mask, int32_t rank)
{
    qn_value *rows, *at;
    if (qn_dtype_of(mask) != QN_BOOL)
        QN_TRY(qn_aten_cast(&mask, c, mask, QN_BOOL));
    QN_TRY(qn_aten_unary_node(&rows, c, &qn_op_NonZero, mask));
    for (int32_t i = 0; i < rank; i++) {
        QN_TRY(qn_torch_number(&at, c->t, QN_INT64, 0, i));
        QN_TRY(qn_graph_build(&out[i], c->b, &qn_op_Gather, QN_INPUTS(rows, at),
                              QN_WITH(QN_A_INT("axis", 0))));
    }
    return QN_OK;
}

static bool is_mask(const qn_value *index)
{
    return qn_dtype_of(index) == QN_BOOL || qn_dtype_of(index) == QN_UINT8;
}

/* A mask stands for as many indices as it has axes. */
static qn_status add_mask(index_list *list, qn_aten_call *c, qn_value *mask, int64_t axis,
                          int32_t rank)
{
    qn_value *places[QN_MAX_RANK];
    int32_t own;
    QN_TRY(qn_torch_rank(&own, c->t, mask));
    if (own < 1 || own > rank)
        return qn_aten_unsupported(c, "a mask of %d axes as index of %d", own, rank);
    QN_TRY(places_of(places, c, mask, own));
    for (int32_t i = 0; i < own; i++)
        QN_TRY(add_index(list, c, places[i], axis + i, rank));
    return QN_OK;
}

static qn_status read_indices(index_list *list, qn_aten_call *c, int32_t rank)
{
    const qn_torch_value *items;
    int64_t axis = 0;
    size_t count;
    qn_aten_items(&items, &count, c, "indices");
    list->adjacent = true;
    if (count > (size_t)QN_MAX(rank, 0))
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "%zu indices of %d axes", count, rank);
    for (size_t i = 0; i < count; i++) {
        qn_value *index;
        if (qn_torch_is_none(&items[i])) {
            axis++;
            continue;
        }
        QN_TRY(qn_torch_value_of(&index, c->t, &items[i]));
        if (is_mask(index)) {
            QN_TRY(add_mask(list, c, index, axis, rank));
            axis += index->type.rank;
            continue;
        }
        QN_TRY(qn_aten_cast(&index, c, index, QN_INT64));
        QN_TRY(add_index(list, c, index, axis++, rank));
    }
    return list->count ? QN_OK : qn_aten_unsupported(c, "no index at all");
}

/* Indices of several axes, broadcast, as the last axis of one tensor. A sum of all of them times 0
 * has the shape of all. */
static qn_status join_indices(qn_value **out, qn_aten_call *c, index_list *list)
{
    qn_value *zero = list->at[0], *axes;
    const int64_t last = -1;
    for (size_t i = 1; i < list->count; i++)
        QN_TRY(qn_aten_binary_node(&zero, c, &qn_op_Add, zero, list->at[i]));
    QN_TRY(qn_aten_with_number(&zero, c, &qn_op_Mul, zero, 0));
    QN_TRY(qn_graph_build_ints(&axes, c->b, &last, 1));
    for (size_t i = 0; i < list->count; i++) {
        QN_TRY(qn_aten_binary_node(&list->at[i], c, &qn_op_Add, list->at[i], zero));
        QN_TRY(qn_aten_binary_node(&list->at[i], c, &qn_op_Unsqueeze, list->at[i], axes));
    }
    return qn_graph_build(out, c->b, &qn_op_Concat, (qn_graph_build_inputs){list->at, list->count},
                          QN_WITH(QN_A_INT("axis", -1)));
}

/* The indexed axes first. */
static qn_status bring_forward(qn_value **out, qn_aten_call *c, qn_value *x, int32_t rank,
                               const index_list *list)
{
    int64_t perm[QN_MAX_RANK];
    int32_t n = 0;
    bool plain = true;
    for (size_t i = 0; i < list->count; i++)
        perm[n++] = list->axes[i];
    for (int32_t i = 0; i < rank; i++) {
        bool indexed = false;
        for (size_t k = 0; k < list->count; k++)
            indexed = indexed || list->axes[k] == i;
        if (!indexed)
            perm[n++] = i;
    }
    for (int32_t i = 0; i < rank; i++)
        plain = plain && perm[i] == i;
    *out = x;
    return plain ? QN_OK
                 : qn_graph_build(out, c->b, &qn_op_Transpose, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)rank)));
}

/* The axes of the indices, which come first, to where the adjacent axes were that they stand
 * for. */
static qn_status bring_back(qn_value **out, qn_aten_call *c, qn_value *y, int32_t index_rank,
                            const index_list *list)
{
    int64_t perm[QN_MAX_RANK];
    const int32_t before = (int32_t)list->axes[0], rank = y->type.rank;
    *out = y;
    if (!list->adjacent || before == 0)
        return QN_OK;
    if (rank < 0 || index_rank < 0)
        return qn_aten_unsupported(c, "indices of unknown rank");
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < before ? index_rank + i : i < before + index_rank ? i - before : i;
    return qn_graph_build(out, c->b, &qn_op_Transpose, QN_INPUTS(y),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)rank)));
}

qn_status qn_aten_index(qn_aten_call *c)
{
    index_list list = {.count = 0};
    qn_value *x, *index;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(read_indices(&list, c, rank));
    if (list.count == 1) {
        QN_TRY(qn_graph_build(&x, c->b, &qn_op_Gather, QN_INPUTS(x, list.at[0]),
                              QN_WITH(QN_A_INT("axis", list.axes[0]))));
        return qn_aten_return(c, x);
    }
    QN_TRY(bring_forward(&x, c, x, rank, &list));
    QN_TRY(join_indices(&index, c, &list));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_GatherND, x, index));
    QN_TRY(bring_back(&x, c, x, index->type.rank < 0 ? -1 : index->type.rank - 1, &list));
    return qn_aten_return(c, x);
}

/* Whether one number is placed where one mask is true, which covers the first axes. */
static qn_status masked_number(bool *out, qn_aten_call *c, qn_value *values)
{
    const qn_torch_value *items;
    qn_value *index;
    size_t count;
    qn_aten_items(&items, &count, c, "indices");
    *out = false;
    if (count != 1 || values->type.rank != 0 || qn_aten_flag(c, "accumulate"))
        return QN_OK;
    QN_TRY(qn_torch_value_of(&index, c->t, &items[0]));
    *out = is_mask(index) && index->type.rank >= 0;
    return QN_OK;
}

static qn_status put_number(qn_aten_call *c, qn_value *x, int32_t rank, qn_value *value)
{
    const qn_torch_value *items;
    qn_value *mask;
    size_t count;
    qn_aten_items(&items, &count, c, "indices");
    QN_TRY(qn_torch_value_of(&mask, c->t, &items[0]));
    QN_TRY(qn_aten_cast(&mask, c, mask, QN_BOOL));
    while (mask->type.rank >= 0 && mask->type.rank < rank)
        QN_TRY(qn_aten_unsqueeze(&mask, c, mask, mask->type.rank));
    QN_TRY(qn_aten_cast(&value, c, value, qn_dtype_of(x)));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Where, QN_INPUTS(mask, value, x), QN_PLAIN));
    return qn_aten_return(c, x);
}

/* Values placed at indices of the first axes. */
qn_status qn_aten_index_put(qn_aten_call *c)
{
    index_list list = {.count = 0};
    qn_value *x, *index, *values, *shape;
    int32_t rank;
    bool is_number;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_tensor(&values, c, "values"));
    QN_TRY(masked_number(&is_number, c, values));
    if (is_number)
        return put_number(c, x, rank, values);
    QN_TRY(read_indices(&list, c, rank));
    if (list.axes[0] != 0 || !list.adjacent)
        return qn_aten_unsupported(c, "it places values along inner axes");
    QN_TRY(join_indices(&index, c, &list));
    QN_TRY(qn_aten_binary_node(&shape, c, &qn_op_GatherND, x, index));
    QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, shape));
    QN_TRY(qn_aten_cast(&values, c, values, qn_dtype_of(x)));
    QN_TRY(qn_aten_binary_node(&values, c, &qn_op_Expand, values, shape));
    QN_TRY(qn_graph_build(
        &x, c->b, &qn_op_ScatterND, QN_INPUTS(x, index, values),
        QN_WITH(QN_A_TEXT("reduction", qn_aten_flag(c, "accumulate") ? "add" : "none"))));
    return qn_aten_return(c, x);
}

/* Values, or one value, at the places that the index names along an axis. */
qn_status qn_aten_scatter(qn_aten_call *c)
{
    const bool adds = strcmp(c->op->name, "scatter_add") == 0;
    qn_value *x, *index, *src, *shape, *y;
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_aten_tensor(&index, c, "index"));
    QN_TRY(qn_aten_tensor(&src, c, "src"));
    if (qn_aten_has(c, "reduce"))
        return qn_aten_unsupported(c, "it reduces");
    QN_TRY(qn_aten_cast(&src, c, src, qn_dtype_of(x)));
    if (src->type.rank == 0) {
        QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, index));
        QN_TRY(qn_aten_binary_node(&src, c, &qn_op_Expand, src, shape));
    }
    QN_TRY(qn_graph_build(
        &y, c->b, &qn_op_ScatterElements, QN_INPUTS(x, index, src),
        QN_WITH(QN_A_INT("axis", axis), QN_A_TEXT("reduction", adds ? "add" : "none"))));
    return qn_aten_return(c, y);
}

/* ---- Masks ----------------------------------------------------------------------------------- */

/* [K, rank] of the places where self is not 0, or a list of the places along each axis. */
qn_status qn_aten_nonzero(qn_aten_call *c)
{
    qn_value *x, *places[QN_MAX_RANK];
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    if (c->op->name[strlen("nonzero")]) {
        QN_TRY(places_of(places, c, x, rank));
        return qn_aten_return_list(c, places, (size_t)rank);
    }
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_NonZero, x));
    QN_TRY(qn_aten_transpose(&x, c, x, 0, 1));
    return qn_aten_return(c, x);
}

/* The elements of self where the mask is true, both broadcast. */
qn_status qn_aten_masked_select(qn_aten_call *c)
{
    qn_value *x, *mask, *shape;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_tensor(&mask, c, "mask"));
    QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, mask));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Expand, x, shape));
    QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, x));
    QN_TRY(qn_aten_binary_node(&mask, c, &qn_op_Expand, mask, shape));
    QN_TRY(qn_aten_reshape(&x, c, x, (const int64_t[]){-1}, 1));
    QN_TRY(qn_aten_reshape(&mask, c, mask, (const int64_t[]){-1}, 1));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Compress, QN_INPUTS(x, mask),
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_aten_return(c, x);
}
