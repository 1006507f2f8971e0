/* Where filters, channels and bias of a node with constant weights are. */
#include "quant/weighted_node.h"

#include <string.h>

#include "ops/eval.h"
#include "ops/nn_attrs.h"
#include "pass/rewrite.h"

static void find_bias(qn_weighted_node *m)
{
    qn_node *node = m->node;
    m->bias_slot = 2;
    if (node->op != &qn_op_MatMul) {
        m->bias_node = node;
        return;
    }
    qn_node *add = qn_value_only_user(node->out[0]);
    if (!add || add->op != &qn_op_Add)
        return;
    m->bias_slot = add->in[0] == node->out[0] ? 1 : 0;
    const qn_tensor *row = add->in[m->bias_slot] ? add->in[m->bias_slot]->data : NULL;
    if (row && row->dtype == QN_FLOAT32 && row->rank > 0 && qn_tensor_count(row) == m->filters &&
        row->dims[row->rank - 1] == m->filters && qn_match_fits(row, node->out[0]))
        m->bias_node = add;
}

/* Conv [K, C/g, k..], ConvTranspose [C, K/g, k..], Gemm [C, K] or [K, C], MatMul [C, K]. */
bool qn_weighted_node_of(qn_weighted_node *out, qn_node *node)
{
    const qn_tensor *w = node->n_in > 1 && node->in[1] ? node->in[1]->data : NULL;
    const bool conv = node->op == &qn_op_Conv, transposed = node->op == &qn_op_ConvTranspose;
    const bool gemm = node->op == &qn_op_Gemm;
    if ((!conv && !transposed && !gemm && node->op != &qn_op_MatMul) || !w ||
        w->dtype != QN_FLOAT32 || w->rank < 2 || qn_tensor_count(w) == 0)
        return false;
    if (!conv && !transposed && w->rank != 2)
        return false;
    const qn_gemm_attrs *a = node->attrs;
    *out = (qn_weighted_node){
        .node = node, .w = w, .count = qn_tensor_count(w), .group = 1, .kernel = 1};
    out->filter_first = conv || (gemm && a->transB);
    if (conv || transposed)
        out->group = ((const qn_window_attrs *)node->attrs)->group;
    for (int32_t d = 2; d < w->rank && (conv || transposed); d++)
        out->kernel *= w->dims[d];
    if (out->group < 1 || w->dims[0] % out->group != 0)
        return false;
    const int64_t one = w->dims[0], other = w->dims[1] * out->group;
    out->filters = out->filter_first ? one : other;
    out->channels = out->filter_first ? other : one;
    out->axis = out->filter_first ? 0 : 1;
    out->inner = 1;
    for (int32_t d = out->axis + 1; d < w->rank; d++)
        out->inner *= w->dims[d];
    find_bias(out);
    return true;
}

bool qn_quant_weighted_node(qn_weighted_node *out, const qn_quant_node *n)
{
    return n->integer && n->quant_class == QN_CLASS_MAC && qn_weighted_node_of(out, n->node);
}

double qn_weighted_node_bias(const qn_weighted_node *m, int64_t filter)
{
    const qn_node *node = m->bias_node;
    const qn_value *bias = node && m->bias_slot < node->n_in ? node->in[m->bias_slot] : NULL;
    if (!bias)
        return 0;
    return qn_tensor_f64(bias->data, qn_tensor_count(bias->data) == 1 ? 0 : filter);
}

qn_status qn_weighted_node_weights(float **out, const qn_weighted_node *m)
{
    size_t bytes;
    qn_context *ctx = m->node->graph->ctx;
    *out = NULL;
    if (!qn_mul_size(&bytes, (size_t)m->count, sizeof **out))
        return qn_fail_nomem(ctx);
    *out = qn_alloc(ctx, bytes);
    if (!*out)
        return qn_fail_bytes(ctx, bytes, "weights of node '%s'", m->node->name);
    memcpy(*out, m->w->data, bytes);
    return QN_OK;
}

qn_status qn_node_put_constant(qn_node *node, int32_t slot, const qn_tensor *tensor,
                               const char *name)
{
    qn_value *value, *old = slot < node->n_in ? node->in[slot] : NULL;
    QN_TRY(qn_value_constant(&value, node->graph, old ? old->name : name, tensor));
    if (slot >= node->n_in)
        QN_TRY(qn_node_resize_inputs(node, slot + 1));
    return qn_node_set_input(node, slot, value);
}
