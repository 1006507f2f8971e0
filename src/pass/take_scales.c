/* A file with pairs of QuantizeLinear (Q) and DequantizeLinear (D) says how its values are to be rounded. To be
 * quantized for some target the graph is made float again; what the pairs say stays with the values (qparams):
 *
 *   x -> Q -> D -> y     y = x, with one scale
 *   w -> D -> y          y = D(w), a constant; any scales
 *
 * Others are left as they are: parameters that are computed, integers that an operator reads. */
#include "ir/qparams.h"
#include "ops/eval.h"
#include "pass/lower.h"
#include "pass/rewrite.h"

static qn_status keep_parameters(qn_value *value, const qn_quantized *q)
{
    const int64_t count = qn_tensor_count(q->scale->data), zeros = qn_tensor_count(q->zero->data);
    if (value->qparams || !qn_quantized_is_short(q) || (zeros != 1 && zeros != count))
        return QN_OK;
    QN_TRY(qn_qparams_create(&value->qparams, value->graph->ctx, value->graph->arena,
                             q->value->type.dtype, count));
    value->qparams->axis = (int32_t)q->axis;
    for (int64_t i = 0; i < count; i++) {
        value->qparams->scale[i] = qn_quantized_scale(q, i);
        value->qparams->zero[i] = qn_tensor_i64(q->zero->data, zeros == 1 ? 0 : i);
    }
    return QN_OK;
}

static qn_status take_constant(qn_pass_context *self, qn_node *node)
{
    qn_quantized d = {.value = node->in[0]};
    qn_value *value = node->out[0];
    bool found = false;
    QN_TRY(qn_lower_parameters(&found, &d, node));
    if (!found)
        return QN_OK;
    QN_TRY(keep_parameters(value, &d));
    self->changes++;
    return qn_rewrite_fold(node);
}

/* `node` is a D behind a Q. */
static qn_status take_pair(qn_pass_context *self, qn_node *node)
{
    qn_quantized d = {.value = node->in[0]}, q = {.value = node->in[0]};
    qn_node *before = node->in[0]->producer;
    qn_value *x = before->in[0];
    bool found = false, done = false;
    QN_TRY(qn_lower_parameters(&found, &d, node));
    if (found)
        QN_TRY(qn_lower_parameters(&found, &q, before));
    if (!found || !qn_quantized_alike(&q, &d))
        return QN_OK;
    QN_TRY(qn_rewrite_bypass(&done, node, x));
    if (!done)
        return QN_OK;
    self->changes++;
    if (qn_node_is_dead(before))
        qn_node_remove(before);
    return keep_parameters(x, &q);
}

static qn_status take_scales(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        if (qn_is_quantize(node) && qn_node_reads_constants(node) && !node->out[0]->is_output)
            QN_TRY(qn_rewrite_fold(node));
        else if (qn_is_dequantize(node) && qn_node_reads_constants(node))
            QN_TRY(take_constant(self, node));
        else if (qn_is_dequantize(node) && qn_is_quantize(node->in[0]->producer))
            QN_TRY(take_pair(self, node));
    }
    return QN_OK;
}

const qn_pass qn_pass_take_scales = {
    "take-scales", "makes a quantized file float again; its scales stay with the values",
    take_scales};
