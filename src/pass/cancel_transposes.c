/* Transposes in a row become one, and sink through element-wise nodes until they meet another. */
#include "ops/infer.h"
#include "ops/versions.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static const qn_transpose_attrs *transpose_of(const qn_node *node)
{
    return node && node->op == &qn_op_Transpose ? node->attrs : NULL;
}

/* perm spelled out; false when the rank is not known. */
static bool full_perm(int64_t *perm, const qn_node *node)
{
    const qn_transpose_attrs *a = node->attrs;
    const int32_t rank = node->in[0]->type.rank;
    for (int32_t d = 0; d < rank; d++)
        perm[d] = a->perm.at ? a->perm.at[d] : rank - 1 - d;
    return rank >= 0;
}

/* y = T2(T1(x)): axis d of y is axis p1[p2[d]] of x. */
static qn_status merge_two(qn_pass_context *self, qn_node *node)
{
    int64_t first[QN_MAX_RANK], second[QN_MAX_RANK];
    const qn_node *before = qn_match_op(node->in[0], &qn_op_Transpose);
    if (!before || !full_perm(first, before) || !full_perm(second, node))
        return QN_OK;
    const int32_t rank = node->in[0]->type.rank;
    for (int32_t d = 0; d < rank; d++)
        second[d] = first[second[d]];
    QN_TRY(qn_ints_copy(&((qn_transpose_attrs *)node->attrs)->perm, self->graph, second,
                        (size_t)rank));
    QN_TRY(qn_node_set_input(node, 0, before->in[0]));
    self->changes++;
    return QN_OK;
}

/* ---- Sinking --------------------------------------------------------------------------------- */

static bool same_perm(const qn_node *a, const qn_node *b)
{
    int64_t p[QN_MAX_RANK], q[QN_MAX_RANK];
    const int32_t rank = a->in[0]->type.rank;
    if (rank != b->in[0]->type.rank || !full_perm(p, a) || !full_perm(q, b))
        return false;
    for (int32_t d = 0; d < rank; d++) {
        if (p[d] != q[d])
            return false;
    }
    return true;
}

static bool is_single(const qn_value *value)
{
    return value->data && qn_tensor_count(value->data) == 1;
}

/* The transpose in front of the node, when every input comes through the same one, which nobody
 * else reads, or is a single number. */
static qn_node *common_transpose(const qn_node *node)
{
    qn_node *common = NULL;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!node->in[i] || is_single(node->in[i]))
            continue;
        qn_node *before = qn_match_op(node->in[i], &qn_op_Transpose);
        if (!before || node->in[i]->is_output || node->in[i]->n_users != 1 ||
            (common && !same_perm(common, before)))
            return NULL;
        common = before;
    }
    return common;
}

static bool can_sink(const qn_node *node)
{
    const qn_node *transpose = common_transpose(node);
    return (node->op->flags & QN_OP_ELEMENTWISE) && node->n_out == 1 && node->out[0] && transpose &&
           transpose->in[0]->type.rank == node->out[0]->type.rank;
}

/* f(T(x)) -> T(f(x)): the transpose behind the node takes over its value. */
static qn_status sink(qn_pass_context *self, qn_node *node)
{
    const qn_transpose_attrs attrs = *transpose_of(common_transpose(node));
    qn_value *value = node->out[0], *inner;
    qn_node *behind;
    for (int32_t i = 0; i < node->n_in; i++) {
        qn_node *before = node->in[i] ? qn_match_op(node->in[i], &qn_op_Transpose) : NULL;
        if (before)
            QN_TRY(qn_node_set_input(node, i, before->in[0]));
    }
    QN_TRY(qn_value_create(&inner, self->graph, node->name));
    node->out[0] = NULL;
    qn_node_set_output(node, 0, inner);
    QN_TRY(qn_node_create(&behind, self->graph, &qn_op_Transpose, node->next));
    *(qn_transpose_attrs *)behind->attrs = attrs;
    QN_TRY(qn_node_set_input(behind, 0, inner));
    qn_node_set_output(behind, 0, value);
    QN_TRY(qn_node_infer(node));
    QN_TRY(qn_node_infer(behind));
    self->changes++;
    return QN_OK;
}

static qn_status cancel_transposes(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        if (node->op == &qn_op_Transpose)
            QN_TRY(merge_two(self, node));
        else if (can_sink(node))
            QN_TRY(sink(self, node));
    }
    return QN_OK;
}

const qn_pass qn_pass_cancel_transposes = {
    "cancel-transposes", "joins transposes, past element-wise nodes too", cancel_transposes};
