/* Operators that join tensors and take them apart. */
#include "import/paddle/paddle.h"

/* All values of a slot, in the model's arena. */
static qn_status all_of(qn_value ***out, size_t *count, const qn_paddle_layer *l, const char *slot)
{
    *count = qn_paddle_in_count(l, slot);
    *out = qn_arena_array(&l->b->model->arena, *count + 1, sizeof **out);
    QN_TRY_ALLOC(l->b->ctx, *out);
    for (size_t i = 0; i < *count; i++)
        QN_TRY(qn_paddle_in_at(&(*out)[i], l, slot, i));
    return *count ? QN_OK : qn_paddle_fail(l, QN_E_FORMAT, "it has no input %s", slot);
}

qn_status qn_paddle_concat_op(qn_paddle_layer *l)
{
    qn_value **parts, *out;
    size_t count;
    int64_t axis;
    QN_TRY(all_of(&parts, &count, l, "X"));
    QN_TRY(qn_paddle_number(&axis, l, "AxisTensor axis", 0));
    QN_TRY(qn_paddle_concat(&out, l, parts, count, axis));
    return qn_paddle_out(l, "Out", out);
}

qn_status qn_paddle_stack(qn_paddle_layer *l)
{
    const int64_t axis = qn_paddle_int(l, "axis", 0);
    qn_value **parts, *out;
    size_t count;
    QN_TRY(all_of(&parts, &count, l, "X"));
    for (size_t i = 0; i < count; i++)
        QN_TRY(qn_paddle_unsqueeze(&parts[i], l, parts[i], &axis, 1));
    QN_TRY(qn_paddle_concat(&out, l, parts, count, axis));
    return qn_paddle_out(l, "Y", out);
}

/* Sizes are said where they are known: files may leave outputs out that nobody reads. */
static qn_status split(qn_value **parts, const qn_paddle_layer *l, qn_value *x, int64_t axis,
                       const int64_t *sizes, size_t count)
{
    qn_value *list;
    if (sizes) {
        QN_TRY(qn_graph_build_ints(&list, l->b, sizes, count));
        return qn_graph_build_several(parts, count, l->b, &qn_op_Split, QN_INPUTS(x, list),
                                      QN_WITH(QN_A_INT("axis", axis)));
    }
    return qn_graph_build_several(
        parts, count, l->b, &qn_op_Split, QN_INPUTS(x),
        QN_WITH(QN_A_INT("axis", axis), QN_A_INT("num_outputs", (int64_t)count)));
}

/* A size of -1 is what the others leave. */
static qn_status complete(int64_t *sizes, const qn_paddle_layer *l, qn_ints given, int64_t whole)
{
    int64_t rest = whole;
    size_t open = given.count;
    for (size_t i = 0; i < given.count; i++) {
        sizes[i] = given.at[i];
        if (given.at[i] < 0)
            open = i;
        else if (!qn_add_int64(&rest, rest, -given.at[i]))
            return qn_paddle_fail(l, QN_E_FORMAT, "its sections are too large");
    }
    if (open == given.count)
        return QN_OK;
    if (whole < 0 || rest < 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "a section of -1 of %lld", (long long)whole);
    sizes[open] = rest;
    return QN_OK;
}

qn_status qn_paddle_split(qn_paddle_layer *l)
{
    const size_t count = qn_paddle_out_count(l, "Out");
    qn_arena *arena = &l->b->model->arena;
    qn_value **parts = qn_arena_array(arena, count + 1, sizeof *parts), *x;
    int64_t *sizes = qn_arena_array(arena, count + 1, sizeof *sizes), axis;
    qn_ints given;
    int32_t rank;
    QN_TRY_ALLOC(l->b->ctx, parts);
    QN_TRY_ALLOC(l->b->ctx, sizes);
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_number(&axis, l, "AxisTensor axis", 0));
    QN_TRY(qn_paddle_axis(&axis, l, rank));
    QN_TRY(qn_paddle_list(&given, l, "SectionsTensorList sections"));
    if (count == 0 || (given.count && given.count != count))
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu sections for %zu outputs", given.count, count);
    const int64_t whole = x->type.dims[axis].value;
    QN_TRY(complete(sizes, l, given, whole));
    for (size_t i = 0; i < count && !given.count && whole > 0; i++)
        sizes[i] = whole / (int64_t)count;
    QN_TRY(split(parts, l, x, axis, given.count || whole > 0 ? sizes : NULL, count));
    for (size_t i = 0; i < count; i++)
        QN_TRY(qn_paddle_out_at(l, "Out", i, parts[i]));
    return QN_OK;
}

qn_status qn_paddle_unstack(qn_paddle_layer *l)
{
    const size_t count = qn_paddle_out_count(l, "Y Out");
    const int64_t axis = qn_paddle_int(l, "axis", 0);
    qn_arena *arena = &l->b->model->arena;
    qn_value **parts = qn_arena_array(arena, count + 1, sizeof *parts), *x;
    int64_t *ones = qn_arena_array(arena, count + 1, sizeof *ones);
    QN_TRY_ALLOC(l->b->ctx, parts);
    QN_TRY_ALLOC(l->b->ctx, ones);
    QN_TRY(qn_paddle_in(&x, l, "X"));
    if (count == 0)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no outputs");
    for (size_t i = 0; i < count; i++)
        ones[i] = 1;
    QN_TRY(split(parts, l, x, axis, ones, count));
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_paddle_squeeze(&parts[i], l, parts[i], &axis, 1));
        QN_TRY(qn_paddle_out_at(l, "Y Out", i, parts[i]));
    }
    return QN_OK;
}

/* Every input along an axis of its own, repeated along those of the others. */
qn_status qn_paddle_meshgrid(qn_paddle_layer *l)
{
    qn_value **in, *sizes[QN_MAX_RANK], *shape, *out;
    int64_t dims[QN_MAX_RANK];
    size_t count;
    QN_TRY(all_of(&in, &count, l, "X"));
    if (count > QN_MAX_RANK)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "%zu inputs", count);
    for (size_t i = 0; i < count; i++)
        QN_TRY(qn_paddle_make(&sizes[i], l, &qn_op_Size, in[i]));
    for (size_t i = 0; i < count; i++) {
        static const int64_t one[] = {1};
        QN_TRY(qn_paddle_reshape(&sizes[i], l, sizes[i], one, 1));
    }
    QN_TRY(qn_paddle_concat(&shape, l, sizes, count, 0));
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++)
            dims[k] = k == i ? -1 : 1;
        QN_TRY(qn_paddle_reshape(&out, l, in[i], dims, count));
        QN_TRY(qn_paddle_make2(&out, l, &qn_op_Expand, out, shape));
        QN_TRY(qn_paddle_out_at(l, "Out", i, out));
    }
    return QN_OK;
}
