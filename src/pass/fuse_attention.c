/* The pass fuse-attention: attention that a file spells out becomes one node.
 *
 *   core   MatMul(Softmax(MatMul(Q, K') * scale), V) -> Attention(Q, K, V) of [B, H, L, D] each
 *   heads  Q, K, V split off [B, L, H * D] by Reshape and Transpose, and the result joined again */
#include "ops/expand.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

typedef struct core {
    /* k: before it is turned */
    qn_value *q, *k, *v;
    double scale;
    /* The Transpose that makes K' */
    qn_node *turn;
} core;

/* A scale by one number in front of `value`: takes it off. */
static qn_value *without_scale(qn_value *value, double *scale)
{
    qn_value *inner;
    double factor;
    const qn_node *node = value->producer;
    if (!node || !qn_value_only_user(value) || (node->op != &qn_op_Mul && node->op != &qn_op_Div) ||
        !qn_match_binary(node, &inner, &factor) || factor == 0)
        return value;
    *scale *= node->op == &qn_op_Mul ? factor : 1 / factor;
    return inner;
}

static bool is_four(const qn_value *value)
{
    return value->type.kind == QN_TYPE_TENSOR && value->type.dtype == QN_FLOAT32 &&
           value->type.rank == 4;
}

static bool match_core(core *c, const qn_node *node)
{
    const qn_node *softmax = qn_match_only(node->in[0], &qn_op_Softmax);
    c->v = node->in[1];
    c->scale = 1;
    if (!softmax || !is_four(c->v) || c->v->data || !is_four(softmax->in[0]) ||
        qn_softmax_axis(softmax->attrs, 4) != 3)
        return false;
    const qn_node *product = qn_match_only(without_scale(softmax->in[0], &c->scale), &qn_op_MatMul);
    if (!product || !is_four(product->in[0]) || !is_four(product->in[1]))
        return false;
    c->q = without_scale(product->in[0], &c->scale);
    c->turn = qn_match_only(without_scale(product->in[1], &c->scale), &qn_op_Transpose);
    /* Batch and heads must be equal, not broadcast. */
    for (int32_t d = 0; d < 2; d++) {
        if (!qn_dim_same(c->q->type.dims[d], product->in[1]->type.dims[d]) ||
            !qn_dim_same(c->q->type.dims[d], c->v->type.dims[d]))
            return false;
    }
    return c->turn != NULL && c->scale > 0;
}

/* K from K': the same Transpose with its last two axes exchanged. */
static qn_status turn_back(qn_value **out, const core *c, qn_node *place)
{
    int64_t perm[4];
    const qn_transpose_attrs *a = c->turn->attrs;
    for (int32_t d = 0; d < 4; d++)
        perm[d] = a->perm.at ? a->perm.at[d] : 3 - d;
    const int64_t last = perm[3];
    perm[3] = perm[2];
    perm[2] = last;
    QN_TRY(qn_emit(out, place, &qn_op_Transpose, c->turn->in[0], NULL));
    qn_node *fresh = (*out)->producer;
    QN_TRY(qn_ints_copy(&((qn_transpose_attrs *)fresh->attrs)->perm, place->graph, perm, 4));
    return qn_node_infer(fresh);
}

static qn_status fuse_core(qn_pass_context *self, qn_node *node)
{
    core c;
    qn_value *k;
    qn_node *fresh;
    if (!match_core(&c, node))
        return QN_OK;
    QN_TRY(turn_back(&k, &c, node));
    qn_value *const in[] = {c.q, k, c.v};
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_Attention, in, 3));
    ((qn_attention_attrs *)fresh->attrs)->scale = (float)c.scale;
    self->changes++;
    return qn_rewrite_finish(fresh, node);
}

/* ---- Heads ----------------------------------------------------------------------------------- */

static bool has_perm(const qn_node *transpose)
{
    static const int64_t heads_first[] = {0, 2, 1, 3};
    const qn_transpose_attrs *a = transpose->attrs;
    for (int32_t d = 0; d < 4; d++) {
        if (!a->perm.at || a->perm.count != 4 || a->perm.at[d] != heads_first[d])
            return false;
    }
    return true;
}

/* [B, L, H * D] as [B, L, H, D] and back: neighbours whose first two dims agree. */
static bool splits_last(const qn_type *flat, const qn_type *split)
{
    return flat->rank == 3 && split->rank == 4 && qn_dim_same(flat->dims[0], split->dims[0]) &&
           qn_dim_same(flat->dims[1], split->dims[1]) && split->dims[2].value > 0;
}

/* The [B, L, H * D] that a value [B, H, L, D] was made from. */
static qn_value *unsplit(const qn_value *value)
{
    const qn_node *transpose = qn_match_op(value, &qn_op_Transpose);
    const qn_node *reshape =
        transpose && has_perm(transpose) ? qn_match_op(transpose->in[0], &qn_op_Reshape) : NULL;
    return reshape && splits_last(&reshape->in[0]->type, &reshape->out[0]->type) ? reshape->in[0]
                                                                                 : NULL;
}

static qn_status fuse_heads(qn_pass_context *self, qn_node *node)
{
    const qn_attention_attrs old = *(const qn_attention_attrs *)node->attrs;
    qn_value *in[3];
    qn_node *fresh;
    qn_node *transpose = node->n_explicit == 3 ? qn_value_only_user(node->out[0]) : NULL;
    for (int32_t i = 0; i < 3; i++) {
        in[i] = is_four(node->in[i]) ? unsplit(node->in[i]) : NULL;
        if (!in[i] || !transpose)
            return QN_OK;
    }
    if (transpose->op != &qn_op_Transpose || !has_perm(transpose))
        return QN_OK;
    qn_node *reshape = qn_value_only_user(transpose->out[0]);
    if (!reshape || reshape->op != &qn_op_Reshape ||
        !splits_last(&reshape->out[0]->type, &transpose->out[0]->type))
        return QN_OK;
    QN_TRY(qn_rewrite_begin(&fresh, reshape, &qn_op_Attention, in, 3));
    qn_attention_attrs *a = fresh->attrs;
    *a = old;
    a->q_num_heads = node->in[0]->type.dims[1].value;
    a->kv_num_heads = node->in[1]->type.dims[1].value;
    self->changes++;
    return qn_rewrite_finish(fresh, reshape);
}

static qn_status fuse_attention(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        if (node->op == &qn_op_MatMul)
            QN_TRY(fuse_core(self, node));
        else if (node->op == &qn_op_Attention)
            QN_TRY(fuse_heads(self, node));
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_attention = {
    "fuse-attention", "recognizes attention, with the splitting into heads around it",
    fuse_attention};
