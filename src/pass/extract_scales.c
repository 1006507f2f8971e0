/* The pass extract-scales: a file with QuantizeLinear (Q) and DequantizeLinear (D) nodes says how
 * its values are rounded. To be quantized for some target the graph becomes float again, and the
 * parameters stay with the values (qparams):
 *
 *   x -> Q -> D -> y   y = x, with one scale. y = Clip(x, least, most) where only the range of the
 *                      integers limits y: where a file has dropped a Relu for it, and where y is
 *                      an output
 *   w -> D -> y        y = D(w), a constant with any number of scales
 *
 * Everything else stays: parameters that are computed, and integers that an operator reads. */

#include "ir/qparams.h"
#include "ops/eval.h"
#include "ops/infer.h"
#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"

static qn_status keep_parameters(qn_value *value, const qn_quantized *q)
{
    const int64_t zeros = qn_tensor_count(q->zero->data);
    qn_qparams *kept;
    if (value->qparams || !qn_quantized_is_short(q) || (zeros != 1 && zeros != q->params.count))
        return QN_OK;
    QN_TRY(qn_qparams_create(&kept, value->graph->ctx, value->graph->arena, q->params.dtype,
                             q->params.count));
    kept->axis = q->params.axis;
    for (int64_t i = 0; i < kept->count; i++) {
        qn_qparams_set_scale(kept, i, qn_qparams_scale_at(&q->params, i));
        qn_qparams_set_zero(kept, i, qn_qparams_zero_at(&q->params, i));
    }
    value->qparams = kept;
    return QN_OK;
}

static qn_status dequantize_constant(qn_pass_context *self, qn_node *node)
{
    qn_quantized d = {.value = node->in[0]};
    qn_value *value = node->out[0];
    bool found = false;
    QN_TRY(qn_qdq_parameters(&found, &d, node));
    if (!found)
        return QN_OK;
    QN_TRY(keep_parameters(value, &d));
    self->changes++;
    return qn_rewrite_fold(node);
}

/* `node` is a D behind a Q. */
static qn_status remove_qdq(qn_pass_context *self, qn_node *node)
{
    qn_quantized d = {.value = node->in[0]}, q = {.value = node->in[0]};
    qn_node *before = node->in[0]->producer;
    qn_value *x = before->in[0];
    bool found = false, done = false;
    QN_TRY(qn_qdq_parameters(&found, &d, node));
    if (found)
        QN_TRY(qn_qdq_parameters(&found, &q, before));
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

/* Numbers of both signs may come out of it. Pools and what moves numbers have the sign of what they
 * read, functions and limits have ends of their own. */
static bool has_both_signs(const qn_node *node)
{
    const qn_quant_rule rule = node ? node->op->quant : QN_QUANT_SHAPE;
    return (rule == QN_QUANT_MAC || rule == QN_QUANT_ELEMENT || rule == QN_QUANT_FLOAT) &&
           node->op != &qn_op_AveragePool && node->op != &qn_op_GlobalAveragePool;
}

/* `value` is what people know by the name of `other`, unless that is an output. */
static qn_status take_name(qn_value *value, qn_value *other)
{
    const char *name = other->name;
    char *own = NULL;
    if (other->is_output)
        return QN_OK;
    QN_TRY(qn_rewrite_name(&own, value->graph, name, "_unlimited"));
    QN_TRY(qn_value_rename(other, own));
    return qn_value_rename(value, name);
}

/* Whether the Q rounds a computed value and only its D reads the integers. */
static bool makes_output(const qn_node *quantize)
{
    const qn_node *d = qn_value_only_user(quantize->out[0]);
    return quantize->in[0]->producer && qn_is_dequantize(d) && d->out[0]->is_output;
}

/* A Q whose least integer stands for 0 removes negative numbers: other integers need a Clip for
 * that, and float outputs need both limits. */
static qn_status insert_clip(qn_pass_context *self, qn_node *node)
{
    qn_quantized q = {.value = node->out[0]};
    qn_qparams *p = NULL;
    qn_node *clip;
    bool found = false;
    if (!makes_output(node) && !has_both_signs(node->in[0]->producer))
        return QN_OK;
    QN_TRY(qn_qdq_parameters(&found, &q, node));
    if (!found || q.params.axis >= 0 || !qn_quantized_is_short(&q))
        return QN_OK;
    QN_TRY(qn_qparams_create(&p, self->ctx, self->graph->arena, q.value->type.dtype, 1));
    const int64_t zero = q.params.zero;
    if (!makes_output(node) && zero != p->qmin)
        return QN_OK;
    const float scale = q.params.scale;
    qn_node_spec spec = {
        .op = &qn_op_Clip, .name = node->name, .before = node, .in = {node->in[0]}, .n_in = 3};
    QN_TRY(qn_value_float(&spec.in[1], self->graph, (float)(p->qmin - zero) * scale));
    QN_TRY(qn_value_float(&spec.in[2], self->graph, (float)(p->qmax - zero) * scale));
    QN_TRY(qn_node_build(&clip, self->graph, &spec));
    QN_TRY(qn_node_infer(clip));
    QN_TRY(take_name(clip->out[0], node->in[0]));
    self->changes++;
    return qn_node_set_input(node, 0, clip->out[0]);
}

static qn_status extract_scales(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        if (qn_is_quantize(node) && qn_node_reads_constants(node) && !node->out[0]->is_output)
            QN_TRY(qn_rewrite_fold(node));
        else if (qn_is_quantize(node))
            QN_TRY(insert_clip(self, node));
        else if (qn_is_dequantize(node) && qn_node_reads_constants(node))
            QN_TRY(dequantize_constant(self, node));
        else if (qn_is_dequantize(node) && qn_is_quantize(node->in[0]->producer))
            QN_TRY(remove_qdq(self, node));
    }
    return QN_OK;
}

const qn_pass qn_pass_extract_scales = {
    "extract-scales", "makes a quantized file float again; its scales stay with the values",
    extract_scales};
