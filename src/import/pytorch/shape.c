/* Views, permutations, joining and splitting. */
#include <string.h>

#include "import/pytorch/aten.h"

/* ---- Reshape --------------------------------------------------------------------------------- */

/* Whether the size is what the axis of the input has: ONNX says 0 for it. */
static bool is_size_of(const qn_torch_value *item, const qn_value *x, size_t axis)
{
    const qn_type *type = item->kind == QN_TORCH_SIZE ? &item->size->type : NULL;
    if (!type || x->type.rank < 0 || axis >= (size_t)x->type.rank)
        return false;
    const qn_node *shape = item->size->producer;
    const char *symbol = x->type.dims[axis].symbol;
    if (type->elements && symbol && type->elements[0].symbol &&
        strcmp(type->elements[0].symbol, symbol) == 0)
        return true;
    return shape && shape->op == &qn_op_Shape && shape->in[0] == x &&
           *(const int64_t *)qn_attr_field(
               shape, qn_op_attr(shape->op, "start", QN_LATEST_OPSET)) == (int64_t)axis;
}

/* The items as ONNX's shape: sizes of the same axis are 0, and the only other size is -1 where
 * nothing else is. */
static qn_status reshape(qn_value **out, qn_aten_call *c, qn_value *x, const qn_torch_value *items,
                         size_t count)
{
    qn_torch_value wanted[QN_MAX_RANK];
    size_t open = 0, at = 0;
    bool inferred = false;
    qn_value *shape;
    if (count > QN_MAX_RANK)
        return qn_aten_unsupported(c, "a shape of %zu axes", count);
    for (size_t i = 0; i < count; i++) {
        wanted[i] = items[i];
        inferred = inferred || (items[i].kind == QN_TORCH_INT && items[i].number == -1);
        if (is_size_of(&items[i], x, i))
            wanted[i] = qn_torch_int(0);
        else if (items[i].kind == QN_TORCH_SIZE || items[i].kind == QN_TORCH_TENSOR) {
            open++;
            at = i;
        }
    }
    if (open == 1 && !inferred)
        wanted[at] = qn_torch_int(-1);
    QN_TRY(qn_torch_shape(&shape, c->t, wanted, count));
    return qn_aten_binary_node(out, c, &qn_op_Reshape, x, shape);
}

qn_status qn_aten_view(qn_aten_call *c)
{
    const qn_torch_value *items;
    qn_value *x;
    size_t count;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    qn_aten_items(&items, &count, c, "size");
    QN_TRY(reshape(&x, c, x, items, count));
    return qn_aten_return(c, x);
}

qn_status qn_aten_view_as(qn_aten_call *c)
{
    qn_value *x, *other, *shape;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_tensor(&other, c, "other"));
    QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, other));
    QN_TRY(qn_aten_binary_node(&x, c, c->op->onnx, x, shape));
    return qn_aten_return(c, x);
}

/* The axes [first, last] in one, as a list for `reshape`: the others keep their sizes. */
static qn_status flat_shape(qn_torch_value *items, size_t *count, qn_aten_call *c, qn_value *x,
                            int64_t first, int64_t last)
{
    *count = 0;
    for (int32_t i = 0; i < x->type.rank; i++) {
        if (i > first && i <= last)
            continue;
        items[*count] = qn_torch_int(i < first ? 0 : -1);
        if (i > last)
            QN_TRY(qn_torch_dim(&items[*count], c->t, x, i));
        ++*count;
    }
    return QN_OK;
}

qn_status qn_aten_flatten(qn_aten_call *c)
{
    qn_torch_value items[QN_MAX_RANK];
    qn_value *x;
    int64_t first, last;
    int32_t rank;
    size_t count;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&first, c, "start_dim", rank));
    QN_TRY(qn_aten_axis(&last, c, "end_dim", rank));
    if (first == 1 && last == rank - 1) {
        QN_TRY(
            qn_graph_build(&x, c->b, &qn_op_Flatten, QN_INPUTS(x), QN_WITH(QN_A_INT("axis", 1))));
        return qn_aten_return(c, x);
    }
    if (rank == 0)
        items[0] = qn_torch_int(1);
    count = 1;
    if (rank > 0)
        QN_TRY(flat_shape(items, &count, c, x, first, last));
    QN_TRY(reshape(&x, c, x, items, count));
    return qn_aten_return(c, x);
}

qn_status qn_aten_unflatten(qn_aten_call *c)
{
    qn_torch_value items[QN_MAX_RANK];
    const qn_torch_value *sizes;
    qn_value *x;
    int64_t axis;
    int32_t rank;
    size_t n, count = 0;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    qn_aten_items(&sizes, &n, c, "sizes");
    if (n + (size_t)rank > QN_MAX_RANK)
        return qn_aten_unsupported(c, "a shape of %zu axes", n + (size_t)rank);
    for (int32_t i = 0; i < rank; i++) {
        if (i == axis)
            for (size_t k = 0; k < n; k++)
                items[count++] = sizes[k];
        else
            QN_TRY(qn_torch_dim(&items[count++], c->t, x, i));
    }
    QN_TRY(reshape(&x, c, x, items, count));
    return qn_aten_return(c, x);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static qn_status permute(qn_aten_call *c, qn_value *x, const int64_t *perm, int32_t rank)
{
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Transpose, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)rank))));
    return qn_aten_return(c, x);
}

qn_status qn_aten_permute(qn_aten_call *c)
{
    int64_t perm[QN_MAX_RANK];
    qn_value *x;
    size_t count;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axes(perm, &count, c, "dims", rank));
    if (count != (size_t)rank)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "%zu axes of %d", count, rank);
    return permute(c, x, perm, rank);
}

qn_status qn_aten_swap_axes(qn_aten_call *c)
{
    qn_value *x;
    int64_t a, b;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    if (rank < 2)
        return qn_aten_return(c, x);
    QN_TRY(qn_aten_axis(&a, c, "dim0", rank));
    QN_TRY(qn_aten_axis(&b, c, "dim1", rank));
    QN_TRY(qn_aten_transpose(&x, c, x, a, b));
    return qn_aten_return(c, x);
}

/* The axes named go where they are told, the others keep their order. */
qn_status qn_aten_movedim(qn_aten_call *c)
{
    int64_t from[QN_MAX_RANK], to[QN_MAX_RANK], perm[QN_MAX_RANK];
    bool moved[QN_MAX_RANK] = {false};
    qn_value *x;
    size_t n, m;
    int32_t rank, next = 0;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axes(from, &n, c, "source", rank));
    QN_TRY(qn_aten_axes(to, &m, c, "destination", rank));
    if (n != m)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "%zu axes to %zu places", n, m);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = -1;
    for (size_t k = 0; k < n; k++) {
        perm[to[k]] = from[k];
        moved[from[k]] = true;
    }
    for (int32_t i = 0; i < rank; i++) {
        while (perm[i] < 0 && next < rank && moved[next])
            next++;
        if (perm[i] < 0)
            perm[i] = next++;
    }
    return permute(c, x, perm, rank);
}

/* Axes that are 1. One whose size is not known stays: programs with open sizes have them above
 * 1. */
qn_status qn_aten_squeeze_axes(qn_aten_call *c)
{
    int64_t axes[QN_MAX_RANK];
    qn_value *x, *list;
    size_t count, kept = 0;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axes(axes, &count, c, "dim", rank));
    for (size_t i = 0; i < count; i++) {
        if (axes[i] < rank && x->type.dims[axes[i]].value == 1)
            axes[kept++] = axes[i];
    }
    if (kept) {
        QN_TRY(qn_graph_build_ints(&list, c->b, axes, kept));
        QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Squeeze, x, list));
    }
    return qn_aten_return(c, x);
}

qn_status qn_aten_unsqueeze_axis(qn_aten_call *c)
{
    qn_value *x;
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank + 1));
    QN_TRY(qn_aten_unsqueeze(&x, c, x, axis));
    return qn_aten_return(c, x);
}

/* -1 keeps a size, which 1 does in ONNX's Expand. */
qn_status qn_aten_expand(qn_aten_call *c)
{
    qn_torch_value sizes[QN_MAX_RANK];
    const qn_torch_value *items;
    qn_value *x, *shape;
    size_t count;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    qn_aten_items(&items, &count, c, "size");
    for (size_t i = 0; i < count && i < QN_MAX_RANK; i++) {
        sizes[i] = items[i];
        if (items[i].kind == QN_TORCH_INT && items[i].number == -1)
            sizes[i] = qn_torch_int(1);
    }
    QN_TRY(qn_torch_shape(&shape, c->t, sizes, count));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Expand, x, shape));
    return qn_aten_return(c, x);
}

/* ---- Joining --------------------------------------------------------------------------------- */

/* All in the type of the widest of their classes; PyTorch lets empty lists pass. */
static qn_status agree(qn_value **tensors, size_t *count, qn_aten_call *c)
{
    qn_dtype dtype = QN_BOOL;
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        const qn_type *type = &tensors[i]->type;
        if (type->rank == 1 && type->dims[0].value == 0 && *count > 1)
            continue;
        tensors[kept++] = tensors[i];
        const qn_dtype own = qn_dtype_of(tensors[i]);
        if (kept == 1 || (qn_dtype_is_float(own) && !qn_dtype_is_float(dtype)) ||
            (qn_dtype_is_float(own) == qn_dtype_is_float(dtype) &&
             qn_dtype_get(own)->size > qn_dtype_get(dtype)->size))
            dtype = own;
    }
    for (size_t i = 0; i < kept; i++)
        QN_TRY(qn_aten_cast(&tensors[i], c, tensors[i], dtype));
    *count = kept;
    return QN_OK;
}

qn_status qn_aten_cat(qn_aten_call *c)
{
    const bool stack = strcmp(c->op->name, "stack") == 0;
    qn_value **tensors, *y;
    int64_t axis;
    int32_t rank;
    size_t count;
    QN_TRY(qn_aten_tensors(&tensors, &count, c, "tensors"));
    QN_TRY(agree(tensors, &count, c));
    if (!count)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "it joins nothing");
    QN_TRY(qn_torch_rank(&rank, c->t, tensors[0]));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank + stack));
    for (size_t i = 0; stack && i < count; i++)
        QN_TRY(qn_aten_unsqueeze(&tensors[i], c, tensors[i], axis));
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_Concat, (qn_graph_build_inputs){tensors, count},
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_aten_return(c, y);
}

/* Every tensor given on an axis of its own, and as large as all of them along the others. */
qn_status qn_aten_meshgrid(qn_aten_call *c)
{
    const qn_torch_value *way = qn_aten_value(c, "indexing");
    const bool swapped = way->kind == QN_TORCH_TEXT && strcmp(way->text, "xy") == 0;
    qn_torch_value sizes[QN_MAX_RANK];
    qn_value **tensors, *shape;
    size_t count;
    QN_TRY(qn_aten_tensors(&tensors, &count, c, "tensors"));
    if (count < 1 || count > QN_MAX_RANK)
        return qn_aten_unsupported(c, "%zu tensors", count);
    for (size_t i = 0; i < count; i++) {
        const size_t axis = swapped && i < 2 && count > 1 ? 1 - i : i;
        int64_t own[QN_MAX_RANK];
        QN_TRY(qn_torch_dim(&sizes[axis], c->t, tensors[i], 0));
        for (size_t k = 0; k < count; k++)
            own[k] = k == axis ? -1 : 1;
        QN_TRY(qn_aten_reshape(&tensors[i], c, tensors[i], own, count));
    }
    QN_TRY(qn_torch_shape(&shape, c->t, sizes, count));
    for (size_t i = 0; i < count; i++)
        QN_TRY(qn_aten_binary_node(&tensors[i], c, &qn_op_Expand, tensors[i], shape));
    return qn_aten_return_list(c, tensors, count);
}

/* ---- Splitting ------------------------------------------------------------------------------- */

enum { MOST_PARTS = 4096 };

static qn_status split(qn_aten_call *c, qn_value *x, int64_t axis, const int64_t *sizes,
                       size_t count)
{
    qn_value **parts = qn_arena_array(c->t->arena, count + 1, sizeof *parts), *list;
    QN_TRY_ALLOC(c->t->ctx, parts);
    QN_TRY(qn_graph_build_ints(&list, c->b, sizes, count));
    QN_TRY(qn_graph_build_several(parts, count, c->b, &qn_op_Split, QN_INPUTS(x, list),
                                  QN_WITH(QN_A_INT("axis", axis))));
    return qn_aten_return_list(c, parts, count);
}

/* Parts of one size; the last may be smaller. */
static qn_status split_evenly(qn_aten_call *c, qn_value *x, int64_t axis, int64_t size)
{
    const int64_t all = x->type.dims[axis].value;
    if (size < 1 || all < 0)
        return qn_aten_unsupported(c, "the size of the axis that it splits is not known");
    const int64_t count = QN_MAX((all + size - 1) / size, 1);
    if (count > MOST_PARTS)
        return qn_aten_unsupported(c, "%lld parts", (long long)count);
    int64_t *sizes = qn_arena_array(c->t->arena, (size_t)count, sizeof *sizes);
    QN_TRY_ALLOC(c->t->ctx, sizes);
    for (int64_t i = 0; i < count; i++)
        sizes[i] = QN_MIN(size, all - i * size);
    return split(c, x, axis, sizes, (size_t)count);
}

qn_status qn_aten_split(qn_aten_call *c)
{
    const qn_torch_value *items;
    qn_value *x;
    int64_t axis, size;
    size_t count;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    if (!qn_torch_is_items(qn_aten_value(c, "split_size"))) {
        QN_TRY(qn_aten_int(&size, c, "split_size"));
        return split_evenly(c, x, axis, size);
    }
    qn_aten_items(&items, &count, c, "split_size");
    if (count > MOST_PARTS)
        return qn_aten_unsupported(c, "%zu parts", count);
    int64_t *sizes = qn_arena_array(c->t->arena, count + 1, sizeof *sizes);
    QN_TRY_ALLOC(c->t->ctx, sizes);
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind != QN_TORCH_INT)
            return qn_aten_unsupported(c, "the sizes of its parts are not known");
        sizes[i] = items[i].number;
    }
    return split(c, x, axis, sizes, count);
}

qn_status qn_aten_chunk(qn_aten_call *c)
{
    qn_value *x;
    int64_t axis, chunks;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_aten_int(&chunks, c, "chunks"));
    const int64_t all = x->type.dims[axis].value;
    if (chunks < 1 || all < 0)
        return qn_aten_unsupported(c, "the size of the axis that it splits is not known");
    return split_evenly(c, x, axis, QN_MAX((all + chunks - 1) / chunks, 1));
}

qn_status qn_aten_unbind(qn_aten_call *c)
{
    qn_value *x, **parts, *at;
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    const int64_t count = axis < rank ? x->type.dims[axis].value : -1;
    if (count < 0 || count > MOST_PARTS)
        return qn_aten_unsupported(c, "the size of the axis that it splits is not known");
    parts = qn_arena_array(c->t->arena, (size_t)count + 1, sizeof *parts);
    QN_TRY_ALLOC(c->t->ctx, parts);
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(qn_torch_number(&at, c->t, QN_INT64, 0, i));
        QN_TRY(qn_graph_build(&parts[i], c->b, &qn_op_Gather, QN_INPUTS(x, at),
                              QN_WITH(QN_A_INT("axis", axis))));
    }
    return qn_aten_return_list(c, parts, (size_t)count);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

qn_status qn_aten_size(qn_aten_call *c)
{
    qn_value *x;
    int64_t axis;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    if (qn_aten_has(c, "dim")) {
        QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
        return qn_torch_dim(&c->result, c->t, x, (int32_t)axis);
    }
    QN_TRY(qn_torch_new_list(&c->result, c->t->ctx, c->t->arena, QN_TORCH_LIST));
    for (int32_t i = 0; i < rank; i++) {
        qn_torch_value size;
        QN_TRY(qn_torch_dim(&size, c->t, x, i));
        QN_TRY(qn_torch_push(c->result.list, c->t->ctx, c->t->arena, &size));
    }
    return QN_OK;
}

qn_status qn_aten_dim(qn_aten_call *c)
{
    qn_value *x;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    c->result = qn_torch_int(rank);
    return QN_OK;
}

qn_status qn_aten_numel(qn_aten_call *c)
{
    qn_value *x, *y;
    int64_t count;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    int64_t dims[QN_MAX_RANK];
    if (qn_type_is_static(&x->type, dims) && qn_dims_count(&count, x->type.rank, dims)) {
        c->result = qn_torch_int(count);
        return QN_OK;
    }
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Size, x));
    QN_TRY(qn_aten_unsqueeze(&y, c, y, 0));
    return qn_torch_size(&c->result, y);
}

/* The number that a tensor of one element holds: known where the tensor is a constant. */
qn_status qn_aten_item(qn_aten_call *c)
{
    qn_value *x;
    double real;
    int64_t number;
    if (qn_aten_value(c, "self")->kind != QN_TORCH_TENSOR) {
        c->result = *qn_aten_value(c, "self");
        return QN_OK;
    }
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    const qn_tensor *data = x->data;
    const bool real_type = qn_dtype_is_float(qn_dtype_of(x));
    if (!data && (real_type || qn_dtype_of(x) == QN_BOOL))
        return qn_aten_unsupported(c, "a number that depends on the input");
    if (!data) {
        QN_TRY(qn_aten_reshape(&x, c, x, (const int64_t[]){1}, 1));
        QN_TRY(qn_aten_cast(&x, c, x, QN_INT64));
        return qn_torch_size(&c->result, x);
    }
    if (data->rank != 0 && !(data->rank == 1 && data->dims[0] == 1))
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "a number of several elements");
    qn_load_f64(&real, data->dtype, data->data, 0, 1);
    if (!real_type)
        qn_load_i64(&number, data->dtype, data->data, 0, 1);
    c->result = real_type                ? qn_torch_real(real)
                : data->dtype == QN_BOOL ? qn_torch_bool(number != 0)
                                         : qn_torch_int(number);
    return QN_OK;
}
