/* Operators that join tensors and take them apart. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

enum { MOST_PARTS = 4096 };

/* ---- Joining --------------------------------------------------------------------------------- */

static qn_status concat(qn_tf_node *node, size_t first, size_t count, size_t axis_at)
{
    int64_t axis;
    qn_value **in, *y;
    qn_axis_order order;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_int(&axis, node, axis_at));
    in = qn_arena_array(&node->import->arena, count, sizeof(qn_value *));
    QN_TRY_ALLOC(b->ctx, in);
    QN_TRY(qn_tf_in_agreed(in, &order, node, first, count));
    const int32_t rank = in[0]->type.rank;
    if (rank >= 0)
        QN_TRY(qn_tf_axis(&axis, node, rank));
    axis = rank >= 0 ? qn_layout_axis(order, rank, axis) : axis;
    QN_TRY(qn_graph_build(&y, b, &qn_op_Concat, (qn_graph_build_inputs){in, count},
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_concat_v2(qn_tf_node *node)
{
    if (node->n_in < 2)
        return qn_tf_fail(node, QN_E_FORMAT, "nothing to join");
    return node->n_in == 2 ? qn_tf_pass(node) : concat(node, 0, node->n_in - 1, node->n_in - 1);
}

qn_status qn_tf_concat(qn_tf_node *node)
{
    if (node->n_in < 2)
        return qn_tf_fail(node, QN_E_FORMAT, "nothing to join");
    return concat(node, 1, node->n_in - 1, 0);
}

qn_status qn_tf_pack(qn_tf_node *node)
{
    int64_t axis = qn_tf_attr_int(node, "axis", 0);
    qn_value **in, *y;
    qn_graph_builder *b = &node->import->builder;
    if (node->n_in == 0)
        return qn_tf_fail(node, QN_E_FORMAT, "nothing to join");
    in = qn_arena_array(&node->import->arena, node->n_in, sizeof(qn_value *));
    QN_TRY_ALLOC(b->ctx, in);
    for (size_t i = 0; i < node->n_in; i++) {
        QN_TRY(qn_tf_in(&in[i], node, i));
        QN_TRY(qn_tf_unsqueeze(&in[i], node->import, &axis, 1));
    }
    QN_TRY(qn_graph_build(&y, b, &qn_op_Concat, (qn_graph_build_inputs){in, node->n_in},
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* ---- Taking apart ---------------------------------------------------------------------------- */

/* Parts of these sizes, or of the same one where there are none. */
static qn_status split(qn_value ***parts, const qn_tf_node *node, qn_value *x, int64_t axis,
                       const int64_t *sizes, size_t count)
{
    qn_value *list;
    qn_graph_builder *b = &node->import->builder;
    *parts = qn_arena_array(&node->import->arena, count, sizeof(qn_value *));
    QN_TRY_ALLOC(b->ctx, *parts);
    if (!sizes)
        return qn_graph_build_several(
            *parts, count, b, &qn_op_Split, QN_INPUTS(x),
            QN_WITH(QN_A_INT("axis", axis), QN_A_INT("num_outputs", (int64_t)count)));
    QN_TRY(qn_graph_build_ints(&list, b, sizes, count));
    return qn_graph_build_several(*parts, count, b, &qn_op_Split, QN_INPUTS(x, list),
                                  QN_WITH(QN_A_INT("axis", axis)));
}

static qn_status split_along(qn_tf_node *node, size_t data, size_t axis_at, int64_t *sizes,
                             size_t count)
{
    int64_t axis;
    qn_value *x, **parts;
    qn_axis_order order;
    QN_TRY(qn_tf_int(&axis, node, axis_at));
    QN_TRY(qn_tf_in_ranked(&x, &order, node, data));
    QN_TRY(qn_tf_axis(&axis, node, x->type.rank));
    axis = qn_layout_axis(order, x->type.rank, axis);
    const int64_t whole = x->type.dims[axis].value;
    int64_t known = 0;
    for (size_t i = 0; sizes && i < count; i++)
        known += sizes[i] > 0 && sizes[i] < INT32_MAX ? sizes[i] : 0;
    for (size_t i = 0; sizes && i < count; i++) {
        if (sizes[i] < 0 && whole >= known)
            sizes[i] = whole - known;
    }
    if (!sizes && whole >= 0 && whole % (int64_t)count)
        return qn_tf_fail(node, QN_E_FORMAT, "%lld do not make %zu parts", (long long)whole, count);
    QN_TRY(split(&parts, node, x, axis, sizes, count));
    for (size_t i = 0; i < count; i++)
        QN_TRY(qn_tf_out(node, i, parts[i], order));
    return QN_OK;
}

static qn_status check_parts(const qn_tf_node *node, int64_t count)
{
    return count >= 1 && count <= MOST_PARTS
               ? QN_OK
               : qn_tf_fail(node, QN_E_UNSUPPORTED, "%lld parts", (long long)count);
}

qn_status qn_tf_split(qn_tf_node *node)
{
    const int64_t count = qn_tf_attr_int(node, "num_split", 0);
    QN_TRY(check_parts(node, count));
    return split_along(node, 1, 0, NULL, (size_t)count);
}

qn_status qn_tf_split_v(qn_tf_node *node)
{
    size_t count;
    int64_t *sizes = qn_arena_array(&node->import->arena, MOST_PARTS, sizeof *sizes);
    QN_TRY_ALLOC(node->import->ctx, sizes);
    QN_TRY(qn_tf_ints(sizes, &count, node, 1, MOST_PARTS));
    QN_TRY(check_parts(node, (int64_t)count));
    return split_along(node, 0, 2, sizes, count);
}

qn_status qn_tf_unpack(qn_tf_node *node)
{
    int64_t axis = qn_tf_attr_int(node, "axis", 0);
    const int64_t count = qn_tf_attr_int(node, "num", 0);
    qn_value *x, **parts;
    qn_axis_order order;
    QN_TRY(check_parts(node, count));
    QN_TRY(qn_tf_in_without(&x, &order, &axis, 1, node, 0));
    if (x->type.dims[axis].value >= 0 && x->type.dims[axis].value != count)
        return qn_tf_fail(node, QN_E_FORMAT, "%lld are no %lld parts",
                          (long long)x->type.dims[axis].value, (long long)count);
    QN_TRY(split(&parts, node, x, axis, NULL, (size_t)count));
    for (size_t i = 0; i < (size_t)count; i++) {
        QN_TRY(qn_tf_squeeze(&parts[i], node->import, &axis, 1));
        QN_TRY(qn_tf_out(node, i, parts[i], order));
    }
    return QN_OK;
}
