/* What takes numbers by their places, or puts them there. */
#include "import/tflite/tflite.h"

enum { GATHER_AXIS = 0, GATHER_BATCH_DIMS = 1, ONE_HOT_AXIS = 0 };
enum { REVERSE_SEQ_DIM = 0, REVERSE_BATCH_DIM = 1 };

static qn_status gather_along(tfl_layer *l, qn_value *x, qn_value *at, int64_t axis)
{
    qn_value *y;
    QN_TRY(
        qn_graph_build(&y, l->b, &qn_op_Gather, QN_INPUTS(x, at), QN_WITH(QN_A_INT("axis", axis))));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* Batches of places are what GatherND has, whose places have an axis of their own at the end. */
static qn_status gather_batches(tfl_layer *l, qn_value *x, qn_value *at, int64_t batch)
{
    static const int64_t last[] = {-1};
    qn_value *y;
    QN_TRY(qn_tfl_cast(&at, l, at, QN_INT64));
    QN_TRY(qn_tfl_along(&at, l, &qn_op_Unsqueeze, at, last, 1));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_GatherND, QN_INPUTS(x, at),
                          QN_WITH(QN_A_INT("batch_dims", batch))));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

qn_status qn_tfl_gather(tfl_layer *l)
{
    int64_t axis = qn_tfl_int(l, GATHER_AXIS, 0), batch = qn_tfl_int(l, GATHER_BATCH_DIMS, 0);
    qn_value *x, *at;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_raw(&at, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_axis(&axis, l, qn_tfl_rank(x)));
    if (batch < 0)
        batch += qn_tfl_rank(at);
    if (batch == 0)
        return gather_along(l, x, at, axis);
    if (batch != axis || qn_tfl_rank(at) < batch)
        return qn_tfl_unsupported(l, "%lld axes of batches before axis %lld", (long long)batch,
                                  (long long)axis);
    return gather_batches(l, x, at, batch);
}

/* The table is the second input. */
qn_status qn_tfl_embedding(tfl_layer *l)
{
    qn_value *x, *at;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_raw(&at, l, 0, QN_ORDER_OWN));
    return gather_along(l, x, at, 0);
}

qn_status qn_tfl_gather_nd(tfl_layer *l)
{
    qn_value *x, *at, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_raw(&at, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(&at, l, at, QN_INT64));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_GatherND, x, at));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* ---- Scattering ------------------------------------------------------------------------------ */

/* Numbers at places of a tensor of that shape which holds `ground` elsewhere. */
static qn_status scatter(qn_value **y, tfl_layer *l, qn_value *const ground_shape[2], qn_value *at,
                         qn_value *x, const char *reduction)
{
    qn_value *base;
    QN_TRY(qn_tfl_binary(&base, l, &qn_op_Expand, ground_shape[0], ground_shape[1]));
    return qn_graph_build(y, l->b, &qn_op_ScatterND, QN_INPUTS(base, at, x),
                          QN_WITH(QN_A_TEXT("reduction", reduction)));
}

/* Places, numbers, the shape; numbers of one place are added. */
qn_status qn_tfl_scatter_nd(tfl_layer *l)
{
    qn_value *at, *x, *shape, *zero, *y;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_raw(&at, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(&at, l, at, QN_INT64));
    QN_TRY(qn_tfl_take(&x, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_indices(&shape, l, 2));
    QN_TRY(qn_tfl_number(&zero, l, x->type.dtype, 0));
    QN_TRY(scatter(&y, l, (qn_value *const[]){zero, shape}, at, x, "add"));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* Places, the shape, numbers, what stands elsewhere. */
qn_status qn_tfl_sparse_to_dense(tfl_layer *l)
{
    qn_value *at, *x, *shape, *ground, *y;
    QN_TRY(qn_tfl_expect(l, 4, 1));
    QN_TRY(qn_tfl_raw(&at, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(&at, l, at, QN_INT64));
    QN_TRY(qn_tfl_indices(&shape, l, 1));
    QN_TRY(qn_tfl_take(&x, l, 2, QN_ORDER_OWN));
    QN_TRY(qn_tfl_take(&ground, l, 3, QN_ORDER_OWN));
    const int32_t rank = qn_tfl_rank(at);
    const int64_t count = rank == 0 ? 1 : qn_tfl_dim(at, 0);
    if (rank < 0 || rank > 2 || count < 0)
        return qn_tfl_unsupported(l, "places of %d axes", (int)rank);
    /* One number stands for all of a list of places. */
    if (rank < 2)
        QN_TRY(qn_tfl_reshape(&at, l, at, (const int64_t[]){count, 1}, 2));
    if (qn_tfl_rank(x) == 0) {
        qn_value *counts;
        QN_TRY(qn_graph_build_ints(&counts, l->b, &count, 1));
        QN_TRY(qn_tfl_binary(&x, l, &qn_op_Expand, x, counts));
    }
    QN_TRY(scatter(&y, l, (qn_value *const[]){ground, shape}, at, x, "none"));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* [rows] and what x has behind its axes of places. */
static qn_status rows_shape(qn_value **out, tfl_layer *l, qn_value *x, qn_value *rows, int64_t from)
{
    qn_value *shape, *begin, *end;
    const int64_t last = INT32_MAX;
    QN_TRY(qn_tfl_unary(&shape, l, &qn_op_Shape, x));
    QN_TRY(qn_graph_build_ints(&begin, l->b, &from, 1));
    QN_TRY(qn_graph_build_ints(&end, l->b, &last, 1));
    QN_TRY(qn_graph_build(&shape, l->b, &qn_op_Slice, QN_INPUTS(shape, begin, end), QN_PLAIN));
    return qn_graph_build(out, l->b, &qn_op_Concat, QN_INPUTS(rows, shape),
                          QN_WITH(QN_A_INT("axis", 0)));
}

static qn_status segments(tfl_layer *l, qn_value *rows, const char *reduction, double ground)
{
    static const int64_t last[] = {-1};
    qn_value *at, *x, *shape, *base, *y;
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_raw(&at, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(&at, l, at, QN_INT64));
    QN_TRY(rows_shape(&shape, l, x, rows, qn_tfl_rank(at)));
    QN_TRY(qn_tfl_along(&at, l, &qn_op_Unsqueeze, at, last, 1));
    QN_TRY(qn_tfl_number(&base, l, x->type.dtype, ground));
    QN_TRY(scatter(&y, l, (qn_value *const[]){base, shape}, at, x, reduction));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* As many rows as the largest place needs. */
qn_status qn_tfl_segment_sum(tfl_layer *l)
{
    static const int64_t first[] = {0};
    qn_value *rows;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_raw(&rows, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(&rows, l, rows, QN_INT64));
    QN_TRY(qn_tfl_along(&rows, l, &qn_op_ReduceMax, rows, first, 1));
    QN_TRY(qn_tfl_with(&rows, l, &qn_op_Add, rows, 1));
    return segments(l, rows, "add", 0);
}

static qn_status unsorted(tfl_layer *l, const char *reduction, double ground)
{
    qn_value *rows;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_indices(&rows, l, 2));
    return segments(l, rows, reduction, ground);
}

qn_status qn_tfl_unsorted_sum(tfl_layer *l)
{
    return unsorted(l, "add", 0);
}

qn_status qn_tfl_unsorted_prod(tfl_layer *l)
{
    return unsorted(l, "mul", 1);
}

/* Rows without a number hold the least one, or the largest. */
qn_status qn_tfl_unsorted_max(tfl_layer *l)
{
    const bool real = l->n_in > 0 && l->in[0] && l->in[0]->dtype == QN_FLOAT32;
    return unsorted(l, "max", real ? -3.4028234663852886e38 : INT32_MIN);
}

qn_status qn_tfl_unsorted_min(tfl_layer *l)
{
    const bool real = l->n_in > 0 && l->in[0] && l->in[0]->dtype == QN_FLOAT32;
    return unsorted(l, "min", real ? 3.4028234663852886e38 : INT32_MAX);
}

/* ---- Rows of 0 and 1 ------------------------------------------------------------------------- */

/* 0 .. count - 1 along one axis of `rank`, the others are 1. */
static qn_status counting(qn_value **out, tfl_layer *l, int64_t count, int64_t axis, int32_t rank)
{
    int64_t dims[QN_MAX_RANK];
    if (count < 0 || count > 1 << 24 || rank > QN_MAX_RANK)
        return qn_tfl_wrong(l, "a depth of %lld", (long long)count);
    int64_t *numbers = qn_arena_array(&l->b->model->arena, (size_t)count, sizeof *numbers);
    QN_TRY_ALLOC(l->b->ctx, numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = i;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? count : 1;
    QN_TRY(qn_graph_build_ints(out, l->b, numbers, (size_t)count));
    return qn_tfl_reshape(out, l, *out, dims, (size_t)rank);
}

/* Places, depth, the number there, the number elsewhere; a place outside has none, where ONNX's
 * OneHot would count it from the end. */
qn_status qn_tfl_one_hot(tfl_layer *l)
{
    int64_t axis = qn_tfl_int(l, ONE_HOT_AXIS, -1), depth[QN_TFL_MAX_INTS];
    size_t count;
    qn_value *at, *on, *off, *places, *y;
    QN_TRY(qn_tfl_expect(l, 4, 1));
    QN_TRY(qn_tfl_raw(&at, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_known_ints(depth, &count, l, 1));
    QN_TRY(qn_tfl_take(&on, l, 2, QN_ORDER_OWN));
    QN_TRY(qn_tfl_take(&off, l, 3, QN_ORDER_OWN));
    const int32_t rank = qn_tfl_rank(at) + 1;
    QN_TRY(qn_tfl_axis(&axis, l, rank));
    if (count != 1)
        return qn_tfl_wrong(l, "%zu depths", count);
    QN_TRY(qn_tfl_cast(&at, l, at, QN_INT64));
    QN_TRY(qn_tfl_along(&at, l, &qn_op_Unsqueeze, at, &axis, 1));
    QN_TRY(counting(&places, l, depth[0], axis, rank));
    QN_TRY(qn_tfl_binary(&at, l, &qn_op_Equal, at, places));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Where, QN_INPUTS(at, on, off), QN_PLAIN));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* Where row and column of the last two axes are the same; rows x columns. */
static qn_status diagonal(qn_value **out, tfl_layer *l, int64_t rows, int64_t columns)
{
    qn_value *row, *column;
    QN_TRY(counting(&row, l, rows, 0, 2));
    QN_TRY(counting(&column, l, columns, 1, 2));
    return qn_tfl_binary(out, l, &qn_op_Equal, row, column);
}

qn_status qn_tfl_matrix_diag(tfl_layer *l)
{
    static const int64_t last[] = {-1};
    qn_value *x, *zero, *mask, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    const int64_t size = qn_tfl_dim(x, qn_tfl_rank(x) - 1);
    if (size < 0)
        return qn_tfl_unsupported(l, "the size of its input is not known");
    QN_TRY(diagonal(&mask, l, size, size));
    QN_TRY(qn_tfl_along(&x, l, &qn_op_Unsqueeze, x, last, 1));
    QN_TRY(qn_tfl_number(&zero, l, x->type.dtype, 0));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Where, QN_INPUTS(mask, x, zero), QN_PLAIN));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* The diagonal is as long as the shorter of both sides. */
qn_status qn_tfl_matrix_set_diag(tfl_layer *l)
{
    qn_value *x, *numbers, *mask, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(&numbers, l, 1, QN_ORDER_OWN));
    const int32_t rank = qn_tfl_rank(x);
    const int64_t rows = qn_tfl_dim(x, rank - 2), columns = qn_tfl_dim(x, rank - 1);
    const int64_t axis = rows <= columns ? -1 : -2;
    if (rows < 0 || columns < 0)
        return qn_tfl_unsupported(l, "the size of its input is not known");
    QN_TRY(diagonal(&mask, l, rows, columns));
    QN_TRY(qn_tfl_along(&numbers, l, &qn_op_Unsqueeze, numbers, &axis, 1));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Where, QN_INPUTS(mask, numbers, x), QN_PLAIN));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* ---- Backwards ------------------------------------------------------------------------------- */

qn_status qn_tfl_reverse(tfl_layer *l)
{
    int64_t axes[QN_TFL_MAX_INTS], from[QN_TFL_MAX_INTS], to[QN_TFL_MAX_INTS];
    size_t count;
    qn_value *x, *y, *list[4];
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_known_ints(axes, &count, l, 1));
    for (size_t i = 0; i < count; i++) {
        from[i] = -1;
        to[i] = -INT64_C(0x7fffffff);
    }
    QN_TRY(qn_graph_build_ints(&list[0], l->b, from, count));
    QN_TRY(qn_graph_build_ints(&list[1], l->b, to, count));
    QN_TRY(qn_graph_build_ints(&list[2], l->b, axes, count));
    QN_TRY(qn_graph_build_ints(&list[3], l->b, from, count));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Slice, QN_INPUTS(x, list[0], list[1], list[2], list[3]),
                          QN_PLAIN));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* ONNX wants the two axes to be the first ones. */
qn_status qn_tfl_reverse_sequence(tfl_layer *l)
{
    int64_t time = qn_tfl_int(l, REVERSE_SEQ_DIM, 0), batch = qn_tfl_int(l, REVERSE_BATCH_DIM, 0);
    int64_t perm[QN_MAX_RANK], back[QN_MAX_RANK];
    int32_t used = 2;
    qn_value *x, *lengths, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_indices(&lengths, l, 1));
    const int32_t rank = qn_tfl_rank(x);
    QN_TRY(qn_tfl_axis(&time, l, rank));
    QN_TRY(qn_tfl_axis(&batch, l, rank));
    if (time == batch)
        return qn_tfl_wrong(l, "one axis for time and batch");
    perm[0] = time;
    perm[1] = batch;
    for (int64_t i = 0; i < rank; i++) {
        if (i != time && i != batch)
            perm[used++] = i;
    }
    for (int32_t i = 0; i < rank; i++)
        back[perm[i]] = i;
    QN_TRY(qn_tfl_transpose(&x, l, x, perm, (size_t)rank));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_ReverseSequence, QN_INPUTS(x, lengths),
                          QN_WITH(QN_A_INT("time_axis", 0), QN_A_INT("batch_axis", 1))));
    QN_TRY(qn_tfl_transpose(&y, l, y, back, (size_t)rank));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* ---- DYNAMIC_UPDATE_SLICE -------------------------------------------------------------------- */

/* The places of all numbers of a block [dims], which stand in the last axis: [dims, rank]. */
static qn_status block_places(qn_value **out, tfl_layer *l, const qn_value *block)
{
    int64_t dims[QN_MAX_RANK + 1], count, at[QN_MAX_RANK] = {0};
    const int32_t rank = qn_tfl_rank(block);
    if (rank < 1 || !qn_type_is_static(&block->type, dims) || !qn_dims_count(&count, rank, dims) ||
        count > 1 << 24)
        return qn_tfl_unsupported(l, "the size of what is put in is not known");
    dims[rank] = rank;
    int64_t *places = qn_arena_array(&l->b->model->arena, (size_t)count, sizeof(int64_t) * 8);
    QN_TRY_ALLOC(l->b->ctx, places);
    for (int64_t i = 0; i < count; i++) {
        for (int32_t d = 0; d < rank; d++)
            places[i * rank + d] = at[d];
        for (int32_t d = rank - 1; d >= 0 && ++at[d] == dims[d]; d--)
            at[d] = 0;
    }
    QN_TRY(qn_graph_build_ints(out, l->b, places, (size_t)(count * rank)));
    return qn_tfl_reshape(out, l, *out, dims, (size_t)rank + 1);
}

/* A block whose begin is moved so that all of it lies inside. */
qn_status qn_tfl_update_slice(tfl_layer *l)
{
    qn_value *x, *block, *begin, *room, *size, *zero, *places, *y;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_take(&block, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_indices(&begin, l, 2));
    if (qn_tfl_rank(x) >= QN_MAX_RANK)
        return qn_tfl_unsupported(l, "%d axes", (int)qn_tfl_rank(x));
    QN_TRY(block_places(&places, l, block));
    QN_TRY(qn_tfl_unary(&room, l, &qn_op_Shape, x));
    QN_TRY(qn_tfl_unary(&size, l, &qn_op_Shape, block));
    QN_TRY(qn_tfl_binary(&room, l, &qn_op_Sub, room, size));
    QN_TRY(qn_tfl_binary(&begin, l, &qn_op_Min, begin, room));
    QN_TRY(qn_tfl_number(&zero, l, QN_INT64, 0));
    QN_TRY(qn_tfl_binary(&begin, l, &qn_op_Max, begin, zero));
    QN_TRY(qn_tfl_binary(&places, l, &qn_op_Add, places, begin));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_ScatterND, QN_INPUTS(x, places, block), QN_PLAIN));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}
