/* Operators that make fewer numbers of many along axes. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* The axes that input 1 lists; all where the value has them and the list cannot be known. */
static qn_status axes_of(int64_t *axes, size_t *count, const qn_tf_node *node)
{
    return qn_tf_ints(axes, count, node, 1, QN_MAX_RANK);
}

/* Input 0 as it is wanted, the axes where they stand there, and the order of the result. */
static qn_status prepare(qn_value **x, qn_axis_order *order, int64_t *axes, size_t count,
                         const qn_tf_node *node)
{
    if (!qn_tf_attr_bool(node, "keep_dims", false))
        return qn_tf_in_without(x, order, axes, count, node, 0);
    QN_TRY(qn_tf_in_ranked(x, order, node, 0));
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_tf_axis(&axes[i], node, (*x)->type.rank));
        axes[i] = qn_layout_axis(*order, (*x)->type.rank, axes[i]);
    }
    return QN_OK;
}

static qn_status reduce(qn_value **out, const qn_tf_node *node, const qn_op *op, qn_value *x,
                        const int64_t *axes, size_t count)
{
    qn_value *over;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_graph_build_ints(&over, b, axes, count));
    return qn_graph_build(out, b, op, QN_INPUTS(x, over),
                          QN_WITH(QN_A_INT("keepdims", qn_tf_attr_bool(node, "keep_dims", false))));
}

/* The length along no axis at all. */
static qn_status length_of_one(qn_tf_node *node)
{
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_Abs, QN_INPUTS(x), QN_PLAIN));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_reduce(qn_tf_node *node)
{
    int64_t axes[QN_MAX_RANK];
    size_t count;
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(axes_of(axes, &count, node));
    if (count == 0 && node->op->as == &qn_op_ReduceL2)
        return length_of_one(node);
    if (count == 0)
        return qn_tf_pass(node);
    QN_TRY(prepare(&x, &order, axes, count, node));
    QN_TRY(reduce(&y, node, node->op->as, x, axes, count));
    return qn_tf_out(node, 0, y, order);
}

/* All and Any: the smallest, or largest, of 0 and 1. */
qn_status qn_tf_reduce_bool(qn_tf_node *node)
{
    int64_t axes[QN_MAX_RANK];
    size_t count;
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(axes_of(axes, &count, node));
    if (count == 0)
        return qn_tf_pass(node);
    QN_TRY(prepare(&x, &order, axes, count, node));
    QN_TRY(qn_tf_cast(&x, node->import, QN_INT32));
    QN_TRY(reduce(&y, node, node->op->as, x, axes, count));
    QN_TRY(qn_tf_cast(&y, node->import, QN_BOOL));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_arg(qn_tf_node *node)
{
    int64_t axis = 0;
    qn_value *x, *y;
    qn_axis_order order;
    if (node->n_in > 1)
        QN_TRY(qn_tf_int(&axis, node, 1));
    QN_TRY(qn_tf_in_without(&x, &order, &axis, 1, node, 0));
    QN_TRY(qn_graph_build(&y, &node->import->builder, node->op->as, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("axis", axis), QN_A_INT("keepdims", 0))));
    QN_TRY(qn_tf_cast(&y, node->import, qn_tf_attr_dtype(node, "output_type", QN_INT64)));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_cumulate(qn_tf_node *node)
{
    int64_t axis;
    qn_value *x, *y, *along;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(qn_tf_int(&axis, node, 1));
    QN_TRY(qn_tf_number(&along, node->import, (double)axis, QN_INT64));
    QN_TRY(qn_graph_build(&y, b, node->op->as, QN_INPUTS(x, along),
                          QN_WITH(QN_A_INT("exclusive", qn_tf_attr_bool(node, "exclusive", false)),
                                  QN_A_INT("reverse", qn_tf_attr_bool(node, "reverse", false)))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* The k largest of the last axis, and where they stand. */
qn_status qn_tf_top_k(qn_tf_node *node)
{
    qn_value *x, *k, *out[2];
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(qn_tf_in(&k, node, 1));
    QN_TRY(qn_tf_cast(&k, node->import, QN_INT64));
    QN_TRY(qn_tf_reshape(&k, node->import, (const int64_t[]){1}, 1));
    QN_TRY(qn_tf_fold(&k, node->import));
    QN_TRY(qn_graph_build_several(
        out, 2, b, &qn_op_TopK, QN_INPUTS(x, k),
        QN_WITH(QN_A_INT("axis", -1), QN_A_INT("largest", 1), QN_A_INT("sorted", 1))));
    QN_TRY(qn_tf_cast(&out[1], node->import, qn_tf_attr_dtype(node, "index_type", QN_INT32)));
    QN_TRY(qn_tf_out(node, 1, out[1], QN_ORDER_OWN));
    return qn_tf_out(node, 0, out[0], QN_ORDER_OWN);
}
