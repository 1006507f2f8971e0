/* Operators that choose elements by conditions and indices. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* Select with a condition of rank 1 chooses whole rows. */
qn_status qn_tf_select(qn_tf_node *node)
{
    int64_t axes[QN_MAX_RANK];
    qn_value *in[3], *y;
    qn_axis_order order = QN_ORDER_OWN;
    qn_graph_builder *b = &node->import->builder;
    if (node->n_in < 3)
        return qn_tf_fail(node, QN_E_FORMAT, "it has %zu inputs", node->n_in);
    QN_TRY(qn_tf_in(&in[0], node, 0));
    QN_TRY(qn_tf_in(&in[1], node, 1));
    const int32_t behind = in[1]->type.rank - 1;
    if (strcmp(node->type, "Select") == 0 && in[0]->type.rank == 1 && behind > 0) {
        QN_TRY(qn_tf_in(&in[2], node, 2));
        for (int32_t i = 0; i < behind; i++)
            axes[i] = i + 1;
        QN_TRY(qn_tf_unsqueeze(&in[0], node->import, axes, (size_t)behind));
    } else {
        QN_TRY(qn_tf_in_agreed(in, &order, node, 0, 3));
    }
    QN_TRY(qn_graph_build(&y, b, &qn_op_Where, QN_INPUTS(in[0], in[1], in[2]), QN_PLAIN));
    return qn_tf_out(node, 0, y, order);
}

/* The places of what is not 0, one in each row. */
qn_status qn_tf_where(qn_tf_node *node)
{
    qn_value *x, *y;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_NonZero, QN_INPUTS(x), QN_PLAIN));
    QN_TRY(qn_tf_permute(&y, node->import, (const int64_t[]){1, 0}, 2));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* Gather with leading axes of batches that both have: rows of numbers for GatherND. */
static qn_status gather_batched(qn_value **out, qn_tf_node *node, qn_value *x, qn_value *indices,
                                int64_t axis, int64_t batch)
{
    qn_graph_builder *b = &node->import->builder;
    const int64_t last = indices->type.rank;
    if (axis != batch)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "batch_dims %lld before axis %lld",
                          (long long)batch, (long long)axis);
    QN_TRY(qn_tf_cast(&indices, node->import, QN_INT64));
    QN_TRY(qn_tf_unsqueeze(&indices, node->import, &last, 1));
    return qn_graph_build(out, b, &qn_op_GatherND, QN_INPUTS(x, indices),
                          QN_WITH(QN_A_INT("batch_dims", batch)));
}

qn_status qn_tf_gather(qn_tf_node *node)
{
    int64_t axis = 0, batch = qn_tf_attr_int(node, "batch_dims", 0);
    qn_value *x, *indices, *y;
    qn_graph_builder *b = &node->import->builder;
    if (node->n_in > 2)
        QN_TRY(qn_tf_int(&axis, node, 2));
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(qn_tf_in(&indices, node, 1));
    if (batch) {
        if (x->type.rank < 0 || indices->type.rank < 0)
            return qn_tf_fail(node, QN_E_UNSUPPORTED, "ranks that are not known");
        QN_TRY(qn_tf_axis(&axis, node, x->type.rank));
        QN_TRY(qn_tf_axis(&batch, node, indices->type.rank + 1));
        QN_TRY(gather_batched(&y, node, x, indices, axis, batch));
    } else {
        QN_TRY(qn_graph_build(&y, b, &qn_op_Gather, QN_INPUTS(x, indices),
                              QN_WITH(QN_A_INT("axis", axis))));
    }
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

qn_status qn_tf_gather_nd(qn_tf_node *node)
{
    qn_value *x, *indices, *y;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(qn_tf_in(&indices, node, 1));
    QN_TRY(qn_tf_cast(&indices, node->import, QN_INT64));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_GatherND, QN_INPUTS(x, indices),
                          QN_WITH(QN_A_INT("batch_dims", qn_tf_attr_int(node, "batch_dims", 0)))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* Numbers of the same place are added up. */
qn_status qn_tf_scatter_nd(qn_tf_node *node)
{
    qn_value *indices, *updates, *shape, *zero, *y;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_in(&indices, node, 0));
    QN_TRY(qn_tf_in(&updates, node, 1));
    QN_TRY(qn_tf_in(&shape, node, 2));
    QN_TRY(qn_tf_cast(&shape, import, QN_INT64));
    QN_TRY(qn_tf_fold(&shape, import));
    QN_TRY(qn_tf_cast(&indices, import, QN_INT64));
    QN_TRY(qn_tf_number(&zero, import, 0, updates->type.dtype));
    QN_TRY(qn_graph_build(&zero, b, &qn_op_Expand, QN_INPUTS(zero, shape), QN_PLAIN));
    QN_TRY(qn_graph_build(&y, b, &qn_op_ScatterND, QN_INPUTS(zero, indices, updates),
                          QN_WITH(QN_A_TEXT("reduction", "add"))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* TensorScatterUpdate, TensorScatterAdd, ...: the reduction stands in the type. */
qn_status qn_tf_tensor_scatter(qn_tf_node *node)
{
    static const char *const kinds[][2] = {{"TensorScatterUpdate", "none"},
                                           {"TensorScatterAdd", "add"},
                                           {"TensorScatterMax", "max"},
                                           {"TensorScatterMin", "min"}};
    const char *reduction = "none";
    qn_value *in[3], *y;
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        if (strcmp(node->type, kinds[i][0]) == 0)
            reduction = kinds[i][1];
    }
    for (size_t i = 0; i < 3; i++)
        QN_TRY(qn_tf_in(&in[i], node, i));
    QN_TRY(qn_tf_cast(&in[1], node->import, QN_INT64));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_ScatterND,
                          QN_INPUTS(in[0], in[1], in[2]),
                          QN_WITH(QN_A_TEXT("reduction", reduction))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* ONNX's values are a list of two, off and on; indices outside give rows of off in both. */
qn_status qn_tf_one_hot(qn_tf_node *node)
{
    int64_t depth;
    qn_value *indices, *count, *on, *off, *values, *y;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_int(&depth, node, 1));
    QN_TRY(qn_tf_in(&indices, node, 0));
    QN_TRY(qn_tf_in(&on, node, 2));
    QN_TRY(qn_tf_in(&off, node, 3));
    QN_TRY(qn_tf_reshape(&on, import, (const int64_t[]){1}, 1));
    QN_TRY(qn_tf_reshape(&off, import, (const int64_t[]){1}, 1));
    QN_TRY(qn_graph_build(&values, b, &qn_op_Concat, QN_INPUTS(off, on),
                          QN_WITH(QN_A_INT("axis", 0))));
    QN_TRY(qn_tf_fold(&values, import));
    QN_TRY(qn_tf_cast(&indices, import, QN_INT64));
    QN_TRY(qn_tf_number(&count, import, (double)depth, QN_INT64));
    QN_TRY(qn_graph_build(&y, b, &qn_op_OneHot, QN_INPUTS(indices, count, values),
                          QN_WITH(QN_A_INT("axis", qn_tf_attr_int(node, "axis", -1)))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}
