/* Elements moved: pads, repeats, rolls, pixels shuffled, windows. */
#include <string.h>

#include "import/pytorch/aten.h"

/* ---- Pads ------------------------------------------------------------------------------------ */

/* PyTorch lists (begin, end) from the last axis on. */
static qn_status pads_of(qn_value **out, qn_aten_call *c, const char *name, int32_t rank)
{
    int64_t given[QN_MAX_RANK], pads[2 * QN_MAX_RANK] = {0};
    size_t count;
    QN_TRY(qn_aten_ints(given, &count, c, name));
    if (count % 2 || count / 2 > (size_t)rank)
        return qn_aten_unsupported(c, "%zu paddings of %d axes", count, rank);
    for (size_t i = 0; i < count / 2; i++) {
        const size_t axis = (size_t)rank - 1 - i;
        pads[axis] = given[2 * i];
        pads[(size_t)rank + axis] = given[2 * i + 1];
    }
    return qn_graph_build_ints(out, c->b, pads, 2 * (size_t)rank);
}

static qn_status pad(qn_aten_call *c, const char *list, const char *mode)
{
    qn_value *x, *pads, *value = NULL;
    double number = 0;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(pads_of(&pads, c, list, rank));
    if (qn_aten_has(c, "value"))
        QN_TRY(qn_aten_real(&number, c, "value"));
    if (number != 0)
        QN_TRY(qn_aten_number_like(&value, c, x, number));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Pad, QN_INPUTS(x, pads, value),
                          QN_WITH(QN_A_TEXT("mode", mode))));
    return qn_aten_return(c, x);
}

qn_status qn_aten_pad(qn_aten_call *c)
{
    static const char *const words[][2] = {{"constant", "constant"},
                                           {"reflect", "reflect"},
                                           {"replicate", "edge"},
                                           {"circular", "wrap"}};
    const qn_torch_value *mode = qn_aten_value(c, "mode");
    for (size_t i = 0; mode->kind == QN_TORCH_TEXT && i < QN_COUNT_OF(words); i++) {
        if (strcmp(words[i][0], mode->text) == 0)
            return pad(c, "pad", words[i][1]);
    }
    return qn_aten_unsupported(c, "its mode is not known");
}

qn_status qn_aten_pad_constant(qn_aten_call *c)
{
    return pad(c, "pad", "constant");
}

qn_status qn_aten_pad_reflection(qn_aten_call *c)
{
    return pad(c, "padding", "reflect");
}

qn_status qn_aten_pad_replication(qn_aten_call *c)
{
    return pad(c, "padding", "edge");
}

/* ---- Repeats --------------------------------------------------------------------------------- */

/* More repeats than axes are of new leading axes; fewer (Tile's way) of the last ones. */
qn_status qn_aten_repeat(qn_aten_call *c)
{
    qn_torch_value repeats[QN_MAX_RANK];
    const qn_torch_value *items;
    qn_value *x, *list;
    size_t count, more = 0;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    qn_aten_items(&items, &count, c, "repeats");
    if (count > QN_MAX_RANK)
        return qn_aten_unsupported(c, "%zu axes", count);
    for (; count < (size_t)rank && more + count < (size_t)rank; more++)
        repeats[more] = qn_torch_int(1);
    memcpy(repeats + more, items, count * sizeof *items);
    for (size_t i = (size_t)rank; i < count; i++)
        QN_TRY(qn_aten_unsqueeze(&x, c, x, 0));
    QN_TRY(qn_torch_shape(&list, c->t, repeats, more + count));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Tile, x, list));
    return qn_aten_return(c, x);
}

/* Every element several times: along a new axis behind its own, which is merged with it. */
qn_status qn_aten_repeat_interleave(qn_aten_call *c)
{
    int64_t repeats, axis, tiles[QN_MAX_RANK];
    qn_torch_value sizes[QN_MAX_RANK];
    qn_value *x, *y, *list;
    int32_t rank;
    bool done;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_int(&repeats, c, "repeats"));
    if (!qn_aten_has(c, "dim") || rank >= QN_MAX_RANK)
        return qn_aten_unsupported(c, "it flattens");
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    for (int32_t i = 0; i <= rank; i++)
        tiles[i] = i == axis + 1 ? repeats : 1;
    QN_TRY(qn_aten_unsqueeze(&y, c, x, axis + 1));
    QN_TRY(qn_graph_build_ints(&list, c->b, tiles, (size_t)rank + 1));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Tile, y, list));
    for (int32_t i = 0; i < rank; i++)
        QN_TRY(qn_torch_dim(&sizes[i], c->t, x, i));
    const qn_torch_value factors[2] = {sizes[axis], qn_torch_int(repeats)};
    QN_TRY(qn_torch_arithmetic(&sizes[axis], &done, c->t, "mul", factors, 2));
    QN_TRY(qn_torch_shape(&list, c->t, sizes, (size_t)rank));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Reshape, y, list));
    return qn_aten_return(c, y);
}

/* [-shift, end) and [0, -shift) along an axis. */
static qn_status roll_axis(qn_value **out, qn_aten_call *c, qn_value *x, int64_t axis,
                           int64_t shift)
{
    const int64_t size = x->type.dims[axis].value;
    qn_value *parts[2];
    *out = x;
    if (size > 0)
        shift %= size;
    if (shift == 0)
        return QN_OK;
    QN_TRY(qn_aten_slice(&parts[0], c, x, axis, -shift, INT64_MAX));
    QN_TRY(qn_aten_slice(&parts[1], c, x, axis, 0, -shift));
    return qn_graph_build(out, c->b, &qn_op_Concat, QN_INPUTS(parts[0], parts[1]),
                          QN_WITH(QN_A_INT("axis", axis)));
}

qn_status qn_aten_roll(qn_aten_call *c)
{
    int64_t shifts[QN_MAX_RANK], axes[QN_MAX_RANK];
    qn_value *x;
    size_t n, count;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_ints(shifts, &n, c, "shifts"));
    QN_TRY(qn_aten_axes(axes, &count, c, "dims", rank));
    if (n != count)
        return qn_aten_unsupported(c, "%zu shifts of %zu axes", n, count);
    for (size_t i = 0; i < n; i++)
        QN_TRY(roll_axis(&x, c, x, axes[i], shifts[i]));
    return qn_aten_return(c, x);
}

qn_status qn_aten_flip(qn_aten_call *c)
{
    int64_t axes[QN_MAX_RANK], starts[QN_MAX_RANK], ends[QN_MAX_RANK], steps[QN_MAX_RANK];
    qn_value *x, *list[4];
    size_t count;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axes(axes, &count, c, "dims", rank));
    for (size_t i = 0; i < count; i++) {
        starts[i] = -1;
        ends[i] = INT64_MIN + 1;
        steps[i] = -1;
    }
    QN_TRY(qn_graph_build_ints(&list[0], c->b, starts, count));
    QN_TRY(qn_graph_build_ints(&list[1], c->b, ends, count));
    QN_TRY(qn_graph_build_ints(&list[2], c->b, axes, count));
    QN_TRY(qn_graph_build_ints(&list[3], c->b, steps, count));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Slice, QN_INPUTS(x, list[0], list[1], list[2], list[3]),
                          QN_PLAIN));
    return qn_aten_return(c, x);
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

qn_status qn_aten_pixel_shuffle(qn_aten_call *c)
{
    qn_value *x, *y;
    int64_t factor;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_int(&factor, c, "upscale_factor"));
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_DepthToSpace, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("blocksize", factor), QN_A_TEXT("mode", "CRD"))));
    return qn_aten_return(c, y);
}

/* A reshape, a permutation and a reshape to known sizes, with -1 where one is not known. */
static qn_status shuffle(qn_value **out, qn_aten_call *c, qn_value *x, const int64_t *apart,
                         const int64_t *perm, size_t count)
{
    QN_TRY(qn_aten_reshape(&x, c, x, apart, count));
    return qn_graph_build(out, c->b, &qn_op_Transpose, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("perm", perm, count)));
}

/* [N, C, h r, w r] to [N, C r r, h, w], the place in the block behind the channel. */
qn_status qn_aten_pixel_unshuffle(qn_aten_call *c)
{
    static const int64_t perm[] = {0, 1, 3, 5, 2, 4};
    qn_value *x;
    int64_t r;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_int(&r, c, "downscale_factor"));
    const qn_dim *dims = x->type.dims;
    if (rank != 4 || r < 1 || r > INT32_MAX || dims[1].value < 0 || dims[2].value < 0 ||
        dims[3].value < 0 || dims[1].value > INT32_MAX / r / r)
        return qn_aten_unsupported(c, "its sizes are not known");
    const int64_t channels = dims[1].value, h = dims[2].value / r, w = dims[3].value / r;
    QN_TRY(shuffle(&x, c, x, (const int64_t[]){-1, channels, h, r, w, r}, perm, 6));
    QN_TRY(qn_aten_reshape(&x, c, x, (const int64_t[]){-1, channels * r * r, h, w}, 4));
    return qn_aten_return(c, x);
}

/* [N, g, C / g, ...] with the two swapped. */
qn_status qn_aten_channel_shuffle(qn_aten_call *c)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    qn_value *x, *y, *shape;
    int64_t groups;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_int(&groups, c, "groups"));
    const int64_t channels = rank > 1 ? x->type.dims[1].value : -1;
    if (groups < 1 || channels < 1)
        return qn_aten_unsupported(c, "its channels are not known");
    QN_TRY(shuffle(&y, c, x, (const int64_t[]){0, groups, channels / groups, -1}, perm, 4));
    QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, x));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Reshape, y, shape));
    return qn_aten_return(c, y);
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* Windows along an axis as a new last axis: gathered by a table [windows, size]. */
qn_status qn_aten_unfold(qn_aten_call *c)
{
    int64_t axis, size, step, perm[QN_MAX_RANK];
    qn_value *x, *table;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dimension", rank));
    QN_TRY(qn_aten_int(&size, c, "size"));
    QN_TRY(qn_aten_int(&step, c, "step"));
    const int64_t all = axis < rank ? x->type.dims[axis].value : -1;
    if (size < 1 || step < 1 || all < size || rank >= QN_MAX_RANK || all > 1 << 20)
        return qn_aten_unsupported(c, "the size of the axis is not known");
    const int64_t windows = (all - size) / step + 1;
    const qn_type type = qn_type_tensor(QN_INT64, 2, (const int64_t[]){windows, size});
    int64_t count = 0, *numbers;
    if (!qn_mul_int64(&count, windows, size) || count > 1 << 24)
        return qn_aten_unsupported(c, "%lld windows", (long long)windows);
    numbers = qn_arena_array(c->t->arena, (size_t)count, sizeof *numbers);
    QN_TRY_ALLOC(c->t->ctx, numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = i / size * step + i % size;
    QN_TRY(qn_graph_build_constant(
        &table, c->b, NULL, &type,
        (qn_string){(const char *)numbers, (size_t)count * sizeof *numbers}));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Gather, QN_INPUTS(x, table),
                          QN_WITH(QN_A_INT("axis", axis))));
    for (int32_t i = 0; i <= rank; i++)
        perm[i] = i <= axis ? i : i < rank ? i + 1 : axis + 1;
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Transpose, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)rank + 1))));
    return qn_aten_return(c, x);
}

/* One triangle of matrices. */
qn_status qn_aten_triangle(qn_aten_call *c)
{
    qn_value *x, *k;
    int64_t diagonal;
    qn_dtype own;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_int(&diagonal, c, "diagonal"));
    QN_TRY(qn_torch_number(&k, c->t, QN_INT64, 0, diagonal));
    own = qn_dtype_of(x);
    if (own == QN_BOOL)
        QN_TRY(qn_aten_cast(&x, c, x, QN_INT32));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Trilu, QN_INPUTS(x, k),
                          QN_WITH(QN_A_INT("upper", strcmp(c->op->name, "triu") == 0))));
    QN_TRY(qn_aten_cast(&x, c, x, own));
    return qn_aten_return(c, x);
}

/* The layout of a tensor that keeps its elements in the order of its axes: programs ask for it
 * behind averages of pictures whose channels came last. */
qn_status qn_aten_as_strided(qn_aten_call *c)
{
    int64_t dims[QN_MAX_RANK], size[QN_MAX_RANK], strides[QN_MAX_RANK];
    int64_t own = -1, step = 1, offset = 0;
    size_t rank, n_strides;
    qn_value *x;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_ints(size, &rank, c, "size"));
    QN_TRY(qn_aten_ints(strides, &n_strides, c, "stride"));
    if (qn_aten_has(c, "storage_offset"))
        QN_TRY(qn_aten_int(&offset, c, "storage_offset"));
    bool plain = rank == n_strides && offset == 0 && qn_type_is_static(&x->type, dims) &&
                 qn_dims_count(&own, x->type.rank, dims);
    for (size_t i = rank; plain && i-- > 0;) {
        plain = (size[i] == 1 || strides[i] == step) && qn_mul_int64(&step, step, size[i]);
    }
    if (!plain || step != own)
        return qn_aten_unsupported(c, "its strides are not those of its axes");
    QN_TRY(qn_aten_reshape(&x, c, x, size, rank));
    return qn_aten_return(c, x);
}
