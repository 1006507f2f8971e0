/* Operators that give or change shapes. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* ---- Asking ---------------------------------------------------------------------------------- */

/* The dimensions in TensorFlow's order, whatever order the value is held in. */
static qn_status own_shape(qn_value **out, qn_tf_node *node, size_t i)
{
    int64_t perm[QN_MAX_RANK];
    qn_value *x, *order_of_axes;
    qn_axis_order order;
    qn_tf_import *import = node->import;
    QN_TRY(qn_tf_in_any(&x, &order, node, i));
    if (order == QN_ORDER_OWN)
        return qn_tf_shape_of(out, import, x);
    QN_TRY(qn_tf_shape_of(out, import, x));
    qn_layout_perm(perm, x->type.rank, QN_ORDER_OWN);
    QN_TRY(qn_graph_build_ints(&order_of_axes, &import->builder, perm, (size_t)x->type.rank));
    return qn_graph_build(out, &import->builder, &qn_op_Gather, QN_INPUTS(*out, order_of_axes),
                          QN_PLAIN);
}

qn_status qn_tf_shape_op(qn_tf_node *node)
{
    const qn_dtype dtype = qn_tf_attr_dtype(node, "out_type", QN_INT32);
    for (size_t i = 0; i < node->n_in; i++) {
        qn_value *y;
        QN_TRY(own_shape(&y, node, i));
        QN_TRY(qn_tf_cast(&y, node->import, dtype));
        QN_TRY(qn_tf_out(node, i, y, QN_ORDER_OWN));
    }
    return QN_OK;
}

qn_status qn_tf_size(qn_tf_node *node)
{
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_Size, QN_INPUTS(x), QN_PLAIN));
    QN_TRY(qn_tf_cast(&y, node->import, qn_tf_attr_dtype(node, "out_type", QN_INT32)));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

qn_status qn_tf_rank(qn_tf_node *node)
{
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    QN_TRY(qn_tf_number(&y, node->import, x->type.rank, QN_INT32));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* ---- Reshape --------------------------------------------------------------------------------- */

/* Where at most one dimension of the shape is unknown it is said as -1: the rank stays known, and
 * nothing has to be computed. */
static qn_status known_shape(qn_value **shape, qn_tf_import *import)
{
    int64_t dims[QN_MAX_RANK];
    size_t unknown = 0, zeros = 0;
    const qn_type *type = &(*shape)->type;
    if (!type->elements || type->rank != 1 || type->dims[0].value > QN_MAX_RANK)
        return QN_OK;
    const size_t count = (size_t)type->dims[0].value;
    for (size_t i = 0; i < count; i++) {
        const bool known = qn_element_known(type->elements[i]);
        dims[i] = known ? type->elements[i].value : -1;
        unknown += dims[i] < 0;
        zeros += dims[i] == 0;
    }
    if (unknown > 1 || zeros)
        return QN_OK;
    return qn_graph_build_ints(shape, &import->builder, dims, count);
}

qn_status qn_tf_reshape_op(qn_tf_node *node)
{
    qn_value *x, *shape, *y;
    qn_tf_import *import = node->import;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(qn_tf_in(&shape, node, 1));
    QN_TRY(qn_tf_cast(&shape, import, QN_INT64));
    QN_TRY(qn_tf_fold(&shape, import));
    QN_TRY(known_shape(&shape, import));
    QN_TRY(qn_graph_build(&y, &import->builder, &qn_op_Reshape, QN_INPUTS(x, shape),
                          QN_WITH(QN_A_INT("allowzero", 1))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

qn_status qn_tf_squeeze_op(qn_tf_node *node)
{
    int64_t axes[QN_MAX_RANK];
    size_t count;
    qn_value *x;
    qn_axis_order order;
    if (!qn_tf_attr_ints(axes, &count, node, "squeeze_dims", QN_MAX_RANK) &&
        !qn_tf_attr_ints(axes, &count, node, "axis", QN_MAX_RANK)) {
        count = 0;
        QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
        QN_TRY(qn_tf_in(&x, node, 0));
        for (int32_t i = 0; i < x->type.rank; i++) {
            if (x->type.dims[i].value == 1)
                axes[count++] = i;
        }
    }
    if (count == 0)
        return qn_tf_pass(node);
    QN_TRY(qn_tf_in_without(&x, &order, axes, count, node, 0));
    QN_TRY(qn_tf_squeeze(&x, node->import, axes, count));
    return qn_tf_out(node, 0, x, order);
}

/* An axis of 1 between the first and the last is there in both orders. */
qn_status qn_tf_expand_dims(qn_tf_node *node)
{
    int64_t axis;
    qn_value *x;
    qn_axis_order order;
    QN_TRY(qn_tf_int(&axis, node, 1));
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    QN_TRY(qn_tf_axis(&axis, node, x->type.rank + 1));
    const bool inside = axis > 0 && axis < x->type.rank;
    if (order == QN_ORDER_CHANNELS_FIRST && inside) {
        axis++;
    } else {
        QN_TRY(qn_tf_in(&x, node, 0));
        order = QN_ORDER_OWN;
    }
    QN_TRY(qn_tf_unsqueeze(&x, node->import, &axis, 1));
    return qn_tf_out(node, 0, x, order);
}

/* ---- Order of axes --------------------------------------------------------------------------- */

qn_status qn_tf_transpose(qn_tf_node *node)
{
    int64_t perm[QN_MAX_RANK], held[QN_MAX_RANK], whole[QN_MAX_RANK];
    size_t count;
    bool seen[QN_MAX_RANK] = {false};
    qn_value *x;
    qn_axis_order order;
    QN_TRY(qn_tf_ints(perm, &count, node, 1, QN_MAX_RANK));
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_tf_axis(&perm[i], node, (int32_t)count));
        seen[perm[i]] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (!seen[i] || count != (size_t)x->type.rank)
            return qn_tf_fail(node, QN_E_FORMAT, "its perm is no order of %d axes", x->type.rank);
    }
    memcpy(whole, perm, sizeof whole);
    if (order == QN_ORDER_CHANNELS_FIRST) {
        qn_layout_perm(held, x->type.rank, QN_ORDER_OWN);
        qn_perm_compose(whole, x->type.rank, held, perm);
    }
    QN_TRY(qn_tf_permute(&x, node->import, whole, count));
    return qn_tf_out(node, 0, x, QN_ORDER_OWN);
}

qn_status qn_tf_reverse(qn_tf_node *node)
{
    int64_t axes[QN_MAX_RANK], from[QN_MAX_RANK], to[QN_MAX_RANK];
    size_t count;
    qn_value *x, *y, *lists[3];
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_ints(axes, &count, node, 1, QN_MAX_RANK));
    QN_TRY(qn_tf_in(&x, node, 0));
    for (size_t i = 0; i < count; i++) {
        from[i] = -1;
        to[i] = INT64_MIN;
    }
    QN_TRY(qn_graph_build_ints(&lists[0], b, from, count));
    QN_TRY(qn_graph_build_ints(&lists[1], b, to, count));
    QN_TRY(qn_graph_build_ints(&lists[2], b, axes, count));
    /* The steps are the same as the starts. */
    QN_TRY(qn_graph_build(&y, b, &qn_op_Slice, QN_INPUTS(x, lists[0], lists[1], lists[2], lists[0]),
                          QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* ---- Larger shapes --------------------------------------------------------------------------- */

static qn_status with_shape(qn_tf_node *node, size_t from, size_t shape_at)
{
    qn_value *x, *shape, *y;
    QN_TRY(qn_tf_in(&x, node, from));
    QN_TRY(qn_tf_in(&shape, node, shape_at));
    QN_TRY(qn_tf_cast(&shape, node->import, QN_INT64));
    QN_TRY(qn_tf_fold(&shape, node->import));
    QN_TRY(qn_graph_build(&y, &node->import->builder, node->op->as, QN_INPUTS(x, shape), QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* Tile and BroadcastTo. */
qn_status qn_tf_tile(qn_tf_node *node)
{
    return with_shape(node, 0, 1);
}

qn_status qn_tf_fill(qn_tf_node *node)
{
    return with_shape(node, 1, 0);
}

/* A tensor of zeros or ones as the input is. */
qn_status qn_tf_like(qn_tf_node *node)
{
    qn_value *x, *shape, *number, *y;
    qn_tf_import *import = node->import;
    qn_axis_order order;
    const double value = strcmp(node->type, "OnesLike") == 0 ? 1 : 0;
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_tf_shape_of(&shape, import, x));
    QN_TRY(qn_tf_number(&number, import, value, x->type.dtype));
    QN_TRY(qn_graph_build(&y, &import->builder, &qn_op_Expand, QN_INPUTS(number, shape), QN_PLAIN));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_range(qn_tf_node *node)
{
    qn_value *in[3], *y;
    for (size_t i = 0; i < 3; i++) {
        QN_TRY(qn_tf_in(&in[i], node, i));
    }
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_Range, QN_INPUTS(in[0], in[1], in[2]),
                          QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}
