/* Products of matrices. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"
#include "import/tensorflow/window.h"

static qn_status turn_last(qn_value **x, const qn_tf_node *node)
{
    int64_t perm[QN_MAX_RANK];
    const int32_t rank = (*x)->type.rank;
    if ((*x)->type.kind != QN_TYPE_TENSOR || rank < 2)
        return qn_tf_fail(node, QN_E_UNSUPPORTED,
                          "a matrix to be transposed whose rank is not "
                          "known");
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return qn_tf_permute(x, node->import, perm, (size_t)rank);
}

/* ---- After a flattened picture --------------------------------------------------------------- */

/* The flattening of a picture that is held with channels first, and what it flattens. */
static const qn_tf_node *flattened(qn_value **picture, const qn_tf_node *node)
{
    const qn_tf_node *from = node->from[0];
    qn_axis_order order;
    while (from && (strcmp(from->type, "Identity") == 0) && from->n_in)
        from = from->from[0];
    if (!from || strcmp(from->type, "Reshape") != 0 || from->n_in < 1 ||
        qn_tf_in_any(picture, &order, from, 0) != QN_OK || order != QN_ORDER_CHANNELS_FIRST)
        return NULL;
    return from;
}

/* The picture need not be turned back. *done is false where this is no such product. */
static qn_status from_picture(bool *done, qn_value **x, qn_value **weights, const qn_tf_node *node)
{
    qn_value *picture;
    *done = false;
    if (!(*weights)->data || !flattened(&picture, node))
        return QN_OK;
    return qn_tf_flat_product(done, x, weights, &node->import->builder, picture);
}

/* ---- Operators ------------------------------------------------------------------------------- */

qn_status qn_tf_matmul(qn_tf_node *node)
{
    qn_value *a, *c, *y;
    bool done;
    const bool left =
        qn_tf_attr_bool(node, "transpose_a", false) || qn_tf_attr_bool(node, "adj_x", false);
    const bool right =
        qn_tf_attr_bool(node, "transpose_b", false) || qn_tf_attr_bool(node, "adj_y", false);
    QN_TRY(qn_tf_in(&a, node, 0));
    QN_TRY(qn_tf_in(&c, node, 1));
    if (right)
        QN_TRY(turn_last(&c, node));
    if (left)
        QN_TRY(turn_last(&a, node));
    else
        QN_TRY(from_picture(&done, &a, &c, node));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_MatMul, QN_INPUTS(a, c), QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

qn_status qn_tf_einsum(qn_tf_node *node)
{
    enum { MOST = 8 };
    qn_value *in[MOST], *y;
    const qn_string equation = qn_proto_string(qn_tf_attr(node, "equation"), QN_TF_VALUE_S);
    const char *text =
        qn_arena_text(&node->import->arena, equation.text ? equation.text : "", equation.length);
    QN_TRY_ALLOC(node->import->ctx, text);
    if (node->n_in == 0 || node->n_in > MOST)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "%zu inputs", node->n_in);
    for (size_t i = 0; i < node->n_in; i++)
        QN_TRY(qn_tf_in(&in[i], node, i));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_Einsum,
                          (qn_graph_build_inputs){in, node->n_in},
                          QN_WITH(QN_A_TEXT("equation", text))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}
