/* Gemm is alpha * A' * B' + beta * C. With constant B and C the factors go into them, A' becomes a
 * node of its own, and a C of one number a row: what is left is a product and biases, as integers
 * compute it. */
#include "ops/nn_attrs.h"
#include "ops/versions.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool is_constant(const qn_node *node, int32_t i)
{
    return i < node->n_in && node->in[i] && node->in[i]->data;
}

/* What op makes of the constant and the other input takes its place in this node; others that read
 * it keep theirs. */
static qn_status replace_constant(qn_node *node, int32_t i, const qn_op *op, qn_value *other)
{
    qn_node *made;
    const qn_node_spec spec = {
        .op = op, .before = node, .in = {node->in[i], other}, .n_in = 2, .name = node->name};
    QN_TRY(qn_node_build(&made, node->graph, &spec));
    QN_TRY(qn_node_set_input(node, i, made->out[0]));
    return qn_rewrite_fold(made);
}

static qn_status scale_constant(float *factor, qn_node *node, int32_t i)
{
    qn_value *number;
    if (*factor == 1 || !is_constant(node, i))
        return QN_OK;
    QN_TRY(qn_value_number(&number, node->graph, QN_FLOAT32, (double)*factor));
    *factor = 1;
    return replace_constant(node, i, &qn_op_Mul, number);
}

/* C is one number for all columns. */
static bool adds_number(const qn_node *node, int64_t columns)
{
    const qn_tensor *c = is_constant(node, 2) ? node->in[2]->data : NULL;
    return c && qn_tensor_count(c) == 1 && (c->rank == 0 || columns != 1);
}

static qn_status broadcast_row(qn_node *node, int64_t columns)
{
    qn_value *shape;
    if (!adds_number(node, columns))
        return QN_OK;
    QN_TRY(qn_value_ints(&shape, node->graph, &columns, 1));
    return replace_constant(node, 2, &qn_op_Expand, shape);
}

static qn_status transpose_first(qn_node *node)
{
    static const int64_t swapped[2] = {1, 0};
    qn_gemm_attrs *a = node->attrs;
    qn_node *made;
    const qn_node_spec spec = {
        .op = &qn_op_Transpose, .before = node, .in = {node->in[0]}, .n_in = 1};
    if (!a->transA)
        return QN_OK;
    QN_TRY(qn_node_build(&made, node->graph, &spec));
    QN_TRY(qn_ints_copy(&((qn_transpose_attrs *)made->attrs)->perm, node->graph, swapped, 2));
    a->transA = 0;
    return qn_node_set_input(node, 0, made->out[0]);
}

static bool is_canonical(const qn_node *node, int64_t columns)
{
    const qn_gemm_attrs *a = node->attrs;
    return !a->transA && a->alpha == 1 && (a->beta == 1 || !is_constant(node, 2)) &&
           !adds_number(node, columns);
}

static qn_status canonicalize_gemms(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first; node; node = node->next) {
        qn_gemm_attrs *a = node->attrs;
        if (node->op != &qn_op_Gemm || !is_constant(node, 1) || node->in[0]->data ||
            node->in[1]->data->dtype != QN_FLOAT32 || node->in[1]->data->rank != 2)
            continue;
        const int64_t columns = node->in[1]->data->dims[a->transB ? 0 : 1];
        if (is_canonical(node, columns))
            continue;
        QN_TRY(scale_constant(&a->alpha, node, 1));
        QN_TRY(scale_constant(&a->beta, node, 2));
        QN_TRY(broadcast_row(node, columns));
        QN_TRY(transpose_first(node));
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_canonicalize_gemms = {
    "canonicalize-gemms",
    "puts the factors of Gemm into its constants, and its transposition before it",
    canonicalize_gemms};
