/* Shapes: what keeps all numbers and gives them other axes, joins tensors or takes them apart. */
#include "import/tflite/tflite.h"

enum { RESHAPE_SHAPE = 0, SQUEEZE_AXES = 0, CONCAT_AXIS = 0, CONCAT_ACTIVATION = 1 };
enum { PACK_AXIS = 1, UNPACK_AXIS = 1, SHAPE_TYPE = 0, BLOCK_SIZE = 0 };

qn_status qn_tfl_sizes(int64_t *out, size_t *count, tfl_layer *l, size_t i)
{
    bool known;
    QN_TRY(qn_tfl_ints(out, count, &known, l, i));
    if (known)
        return QN_OK;
    const tfl_tensor *t = l->out[0];
    *count = (size_t)t->rank;
    for (int32_t d = 0; d < t->rank; d++) {
        out[d] = t->dims[d];
        if (out[d] < 0 && d > 0 && d < t->rank - 1)
            return qn_tfl_unsupported(l, "its output's size is computed by the model");
    }
    return QN_OK;
}

qn_status qn_tfl_axis(int64_t *axis, const tfl_layer *l, int32_t rank)
{
    if (*axis < -rank || *axis >= rank)
        return qn_tfl_wrong(l, "axis %lld of %d", (long long)*axis, (int)rank);
    *axis += *axis < 0 ? rank : 0;
    return QN_OK;
}

/* ---- The same numbers ------------------------------------------------------------------------ */

/* The shape is an input, or an option in old files; its zeros are sizes. */
static qn_status reshape_by_options(qn_value **y, tfl_layer *l, qn_value *x)
{
    int64_t dims[QN_MAX_RANK];
    const qn_flat_list shape = qn_flat_items(&l->options, RESHAPE_SHAPE, 4);
    if (shape.count > QN_MAX_RANK)
        return qn_tfl_unsupported(l, "%zu axes", shape.count);
    for (size_t i = 0; i < shape.count; i++)
        dims[i] = qn_flat_item_int(&shape, i);
    /* Old converters wrote a scalar so. */
    const bool scalar = shape.count == 1 && dims[0] == 0;
    return qn_tfl_reshape(y, l, x, dims, scalar ? 0 : shape.count);
}

qn_status qn_tfl_to_shape(tfl_layer *l)
{
    int64_t dims[QN_TFL_MAX_INTS];
    size_t count;
    bool known;
    qn_value *x, *shape, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take_flat(&x, l, 0));
    if (!qn_tfl_has(l, 1)) {
        QN_TRY(reshape_by_options(&y, l, x));
        return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
    }
    QN_TRY(qn_tfl_ints(dims, &count, &known, l, 1));
    if (known && count <= QN_MAX_RANK) {
        QN_TRY(qn_tfl_reshape(&y, l, x, dims, count));
    } else {
        QN_TRY(qn_tfl_indices(&shape, l, 1));
        QN_TRY(qn_tfl_binary(&y, l, &qn_op_Reshape, x, shape));
    }
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* The sizes that are left of [N, spatial..., C], of which all that go are 1; false where it takes
 * more than a Reshape. */
static bool squeezed_dims(int64_t *dims, size_t *count, const qn_value *x, const bool *gone)
{
    const int32_t rank = qn_tfl_rank(x);
    size_t open = 0;
    *count = 0;
    for (int32_t i = 0; i < rank; i++) {
        const int64_t size = qn_tfl_dim(x, qn_layout_axis(QN_ORDER_CHANNELS_FIRST, rank, i));
        if (gone[i] && size != 1)
            return false;
        if (gone[i])
            continue;
        open += size < 0;
        dims[(*count)++] = size;
    }
    return open <= 1;
}

/* What a pool over a whole picture leaves needs no Transpose. */
static qn_status squeeze_flat(bool *done, tfl_layer *l, const int64_t *axes, size_t count)
{
    int64_t dims[QN_MAX_RANK];
    bool gone[QN_MAX_RANK] = {false};
    qn_axis_order order;
    qn_value *x, *y;
    QN_TRY(qn_tfl_hold(l, l->in[0]));
    QN_TRY(qn_layout_any(&x, &order, l->layouts, l->in[0]->name));
    const int32_t rank = qn_tfl_rank(x);
    *done = false;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        QN_TRY(qn_tfl_axis(&axis, l, rank));
        gone[axis] = true;
    }
    QN_TRY(qn_tfl_take_flat(&y, l, 0));
    if (order == QN_ORDER_OWN || count == 0 || !squeezed_dims(dims, &count, x, gone))
        return QN_OK;
    *done = true;
    QN_TRY(qn_tfl_reshape(&y, l, y, dims, count));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

qn_status qn_tfl_squeeze(tfl_layer *l)
{
    int64_t axes[QN_MAX_RANK];
    bool done;
    qn_value *x, *y;
    const qn_flat_list list = qn_flat_items(&l->options, SQUEEZE_AXES, 4);
    QN_TRY(qn_tfl_expect(l, 1, 1));
    if (list.count > QN_MAX_RANK)
        return qn_tfl_wrong(l, "%zu axes", list.count);
    for (size_t i = 0; i < list.count; i++)
        axes[i] = qn_flat_item_int(&list, i);
    QN_TRY(squeeze_flat(&done, l, axes, list.count));
    if (done)
        return QN_OK;
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    if (list.count)
        QN_TRY(qn_tfl_along(&y, l, &qn_op_Squeeze, x, axes, list.count));
    else
        QN_TRY(qn_tfl_unary(&y, l, &qn_op_Squeeze, x));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

qn_status qn_tfl_expand_dims(tfl_layer *l)
{
    int64_t axis[QN_TFL_MAX_INTS];
    size_t count;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_known_ints(axis, &count, l, 1));
    QN_TRY(qn_tfl_along(&y, l, &qn_op_Unsqueeze, x, axis, count));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* What stands with its channels first is brought to the file's order by the same Transpose. */
qn_status qn_tfl_permute(tfl_layer *l)
{
    int64_t perm[QN_TFL_MAX_INTS], back[QN_MAX_RANK], both[QN_MAX_RANK];
    size_t count;
    qn_axis_order order;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    QN_TRY(qn_tfl_known_ints(perm, &count, l, 1));
    const int32_t rank = qn_tfl_rank(x);
    if (rank < 0 || count != (size_t)rank)
        return qn_tfl_wrong(l, "a permutation of %zu axes for %d", count, (int)rank);
    for (int32_t i = 0; i < rank; i++)
        QN_TRY(qn_tfl_axis(&perm[i], l, rank));
    qn_layout_perm(back, rank, QN_ORDER_OWN);
    for (int32_t i = 0; i < rank && (order == QN_ORDER_OWN || rank < 3); i++)
        back[i] = i;
    qn_perm_compose(both, rank, back, perm);
    QN_TRY(qn_tfl_transpose(&y, l, x, both, (size_t)rank));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

qn_status qn_tfl_to_depth(tfl_layer *l)
{
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_graph_build(&y, l->b, l->row->op, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("blocksize", qn_tfl_int(l, BLOCK_SIZE, 0)))));
    return qn_tfl_put(l, 0, y, QN_ORDER_CHANNELS_FIRST);
}

/* ---- Joining and taking apart ---------------------------------------------------------------- */

static qn_status concat(qn_value **y, tfl_layer *l, qn_value *const *x, int64_t axis)
{
    return qn_graph_build(y, l->b, &qn_op_Concat, (qn_graph_build_inputs){x, l->n_in},
                          QN_WITH(QN_A_INT("axis", axis)));
}

static bool all_alike(const tfl_layer *l)
{
    for (size_t i = 0; i < l->n_in; i++) {
        if (l->in[i] && !qn_tfl_is_alike(l->in[i], l->out[0]))
            return false;
    }
    return true;
}

static qn_status inputs_of(qn_value ***x, const tfl_layer *l)
{
    QN_TRY(qn_tfl_expect(l, QN_MAX(l->n_in, 1u), 1));
    *x = qn_arena_array(&l->b->model->arena, l->n_in, sizeof **x);
    QN_TRY_ALLOC(l->b->ctx, *x);
    return QN_OK;
}

qn_status qn_tfl_concatenation(tfl_layer *l)
{
    int64_t axis = qn_tfl_int(l, CONCAT_AXIS, 0);
    qn_axis_order order;
    qn_value **x, *y;
    QN_TRY(inputs_of(&x, l));
    l->raw = all_alike(l);
    QN_TRY(qn_tfl_take_agreed(x, &order, l, l->n_in));
    QN_TRY(qn_tfl_axis(&axis, l, qn_tfl_rank(x[0])));
    QN_TRY(concat(&y, l, x, qn_layout_axis(order, qn_tfl_rank(x[0]), axis)));
    return qn_tfl_put_active(l, y, order, qn_tfl_byte(l, CONCAT_ACTIVATION));
}

qn_status qn_tfl_pack(tfl_layer *l)
{
    int64_t axis = qn_tfl_int(l, PACK_AXIS, 0);
    qn_value **x, *y;
    QN_TRY(inputs_of(&x, l));
    l->raw = all_alike(l);
    for (size_t i = 0; i < l->n_in; i++) {
        QN_TRY(qn_tfl_take(&x[i], l, i, QN_ORDER_OWN));
        if (i == 0)
            QN_TRY(qn_tfl_axis(&axis, l, qn_tfl_rank(x[0]) + 1));
        QN_TRY(qn_tfl_along(&x[i], l, &qn_op_Unsqueeze, x[i], &axis, 1));
    }
    QN_TRY(concat(&y, l, x, axis));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* Parts of the given sizes, or equal ones. */
static qn_status split(qn_value ***parts, tfl_layer *l, qn_value *x, int64_t axis, qn_value *sizes)
{
    const size_t count = l->n_out;
    *parts = qn_arena_array(&l->b->model->arena, count, sizeof **parts);
    QN_TRY_ALLOC(l->b->ctx, *parts);
    if (sizes)
        return qn_graph_build_several(*parts, count, l->b, &qn_op_Split, QN_INPUTS(x, sizes),
                                      QN_WITH(QN_A_INT("axis", axis)));
    return qn_graph_build_several(
        *parts, count, l->b, &qn_op_Split, QN_INPUTS(x),
        QN_WITH(QN_A_INT("axis", axis), QN_A_INT("num_outputs", (int64_t)count)));
}

static qn_status put_parts(tfl_layer *l, qn_value **parts, qn_axis_order order)
{
    for (size_t i = 0; i < l->n_out; i++)
        QN_TRY(qn_tfl_put(l, i, parts[i], order));
    return QN_OK;
}

static qn_status split_along(tfl_layer *l, size_t x_at, size_t axis_at, size_t sizes_at)
{
    int64_t axis[QN_TFL_MAX_INTS];
    size_t count;
    qn_axis_order order;
    qn_value *x, *sizes = NULL, **parts;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, x_at));
    QN_TRY(qn_tfl_known_ints(axis, &count, l, axis_at));
    if (count != 1 || qn_tfl_rank(x) < 1)
        return qn_tfl_wrong(l, "%zu axes", count);
    QN_TRY(qn_tfl_axis(axis, l, qn_tfl_rank(x)));
    if (sizes_at)
        QN_TRY(qn_tfl_indices(&sizes, l, sizes_at));
    QN_TRY(split(&parts, l, x, qn_layout_axis(order, qn_tfl_rank(x), *axis), sizes));
    return put_parts(l, parts, order);
}

qn_status qn_tfl_split(tfl_layer *l)
{
    return split_along(l, 1, 0, 0);
}

/* A size of -1 is what the others leave. */
qn_status qn_tfl_split_v(tfl_layer *l)
{
    int64_t sizes[QN_TFL_MAX_INTS], axis[QN_TFL_MAX_INTS], rest, missing = -1;
    size_t count, one;
    qn_axis_order order;
    qn_value *x, *list, **parts;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_known_ints(sizes, &count, l, 1));
    QN_TRY(qn_tfl_known_ints(axis, &one, l, 2));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    if (one != 1 || count != l->n_out || qn_tfl_rank(x) < 1)
        return qn_tfl_wrong(l, "%zu sizes for %zu outputs", count, l->n_out);
    QN_TRY(qn_tfl_axis(axis, l, qn_tfl_rank(x)));
    *axis = qn_layout_axis(order, qn_tfl_rank(x), *axis);
    rest = qn_tfl_dim(x, *axis);
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] < -1 || sizes[i] > INT32_MAX || (sizes[i] < 0 && (missing >= 0 || rest < 0)))
            return qn_tfl_wrong(l, "a part of %lld", (long long)sizes[i]);
        missing = sizes[i] < 0 ? (int64_t)i : missing;
        rest -= QN_MAX(sizes[i], 0);
    }
    if (missing >= 0)
        sizes[missing] = rest;
    QN_TRY(qn_graph_build_ints(&list, l->b, sizes, count));
    QN_TRY(split(&parts, l, x, *axis, list));
    return put_parts(l, parts, order);
}

qn_status qn_tfl_unpack(tfl_layer *l)
{
    int64_t axis = qn_tfl_int(l, UNPACK_AXIS, 0);
    qn_value *x, **parts;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_axis(&axis, l, qn_tfl_rank(x)));
    QN_TRY(split(&parts, l, x, axis, NULL));
    for (size_t i = 0; i < l->n_out; i++)
        QN_TRY(qn_tfl_along(&parts[i], l, &qn_op_Squeeze, parts[i], &axis, 1));
    return put_parts(l, parts, QN_ORDER_OWN);
}

/* ---- Shapes as numbers ----------------------------------------------------------------------- */

static qn_status put_count(tfl_layer *l, qn_value *y)
{
    QN_TRY(qn_tfl_cast(&y, l, y, l->out[0]->dtype == QN_INT64 ? QN_INT64 : QN_INT32));
    return qn_tfl_give_raw(l, 0, y, QN_ORDER_OWN);
}

qn_status qn_tfl_shape_of(tfl_layer *l)
{
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_raw(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_Shape, x));
    return put_count(l, y);
}

qn_status qn_tfl_rank_of(tfl_layer *l)
{
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_raw(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_Shape, x));
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_Size, y));
    return put_count(l, y);
}

/* ---- Repeating ------------------------------------------------------------------------------- */

/* Tile and Expand, whose second input is a list of sizes. */
qn_status qn_tfl_by_sizes(tfl_layer *l)
{
    qn_value *x, *sizes, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_indices(&sizes, l, 1));
    QN_TRY(qn_tfl_binary(&y, l, l->row->op, x, sizes));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* The shape is the first input, the number the second. */
qn_status qn_tfl_fill(tfl_layer *l)
{
    qn_value *x, *sizes, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_indices(&sizes, l, 0));
    QN_TRY(qn_tfl_take(&x, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Expand, x, sizes));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}
