/* Why nodes that the rules know nothing of stay float. */
#include "quant/reasons.h"

#include <stdio.h>

#include "pass/qdq_to_integer.h"

bool qn_reason_is_integer(const qn_node *node)
{
    return node->op->quant == QN_QUANT_ALREADY && !qn_is_quantize(node) && !qn_is_dequantize(node);
}

/* Its numbers are constants, shapes, or made of such: nothing of the data is computed. */
static bool is_of_shapes(const bool *of_shapes, const qn_node *node)
{
    if (node->op == &qn_op_Shape || node->op == &qn_op_Size)
        return true;
    for (int32_t i = 0; i < node->n_in; i++) {
        const qn_value *value = node->in[i];
        if (value && !value->data && (!value->producer || !of_shapes[value->producer->number]))
            return false;
    }
    return true;
}

static bool has_float32(qn_value *const *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (values[i] && values[i]->type.dtype == QN_FLOAT32)
            return true;
    }
    return false;
}

static const char *reason_of(qn_quantizer *q, const qn_node *node)
{
    const qn_value *result = node->n_out > 0 ? node->out[0] : NULL;
    if (!result || has_float32(node->in, node->n_in) || has_float32(node->out, node->n_out) ||
        result->type.kind != QN_TYPE_TENSOR)
        return q->settings.dynamic ? "dynamic quantization has no integer form of it"
                                   : "no integer form of it is known";
    return qn_arena_format(&q->arena,
                           qn_dtype_is_float(result->type.dtype) ? "its numbers are %s"
                                                                 : "it computes with %s",
                           qn_dtype_get(result->type.dtype)->name);
}

qn_status qn_reasons_add(qn_quantizer *q)
{
    bool *of_shapes = qn_arena_array(&q->arena, q->n_nodes + 1, sizeof *of_shapes);
    QN_TRY_ALLOC(q->ctx, of_shapes);
    for (size_t i = 0; i < q->n_nodes; i++) {
        qn_quant_node *n = &q->nodes[i];
        const qn_quant_rule rule = n->node->op->quant;
        of_shapes[i] = is_of_shapes(of_shapes, n->node);
        if (n->integer || n->why || of_shapes[i] || qn_moves_numbers(n->node) ||
            rule == QN_QUANT_SHAPE || rule == QN_QUANT_ALREADY)
            continue;
        n->why = reason_of(q, n->node);
        QN_TRY_ALLOC(q->ctx, n->why);
    }
    return QN_OK;
}

/* ---- Software layers of a chip --------------------------------------------------------------- */

enum { SOFTWARE_NAMED = 6 };

/* Numbers are computed in float there; the index of the largest one is the same in integers. */
static bool is_software(const qn_quant_node *n)
{
    const qn_node *node = n->node;
    return !n->integer && n->why && !n->requested_float && !qn_moves_numbers(node) &&
           node->op != &qn_op_ArgMax && node->op != &qn_op_ArgMin &&
           node->op->quant != QN_QUANT_SHAPE &&
           (has_float32(node->in, node->n_in) || has_float32(node->out, node->n_out));
}

void qn_reasons_note_software(const qn_quantizer *q)
{
    char names[512] = "";
    size_t count = 0, at = 0;
    for (size_t i = 0; i < q->n_nodes && q->settings.profile->fixed_point; i++) {
        const qn_node *node = q->nodes[i].node;
        if (!is_software(&q->nodes[i]))
            continue;
        if (count++ < SOFTWARE_NAMED && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s '%.48s'", at ? ", " : "",
                                   node->op->name, node->name);
    }
    if (count)
        qn_log(q->ctx, QN_LOG_NOTE, "%s computes in software, in float, %zu of %zu layers: %s%s",
               q->settings.profile->name, count, q->n_nodes, names,
               count > SOFTWARE_NAMED ? ", ..." : "");
}

/* ---- Nothing is left ------------------------------------------------------------------------- */

static bool has_integers(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (q->nodes[i].node->op->quant == QN_QUANT_ALREADY)
            return true;
    }
    return false;
}

static bool has_doubles(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_node *node = q->nodes[i].node;
        if (node->op->quant == QN_QUANT_MAC && node->in[0]->type.dtype == QN_FLOAT64)
            return true;
    }
    return false;
}

/* The product that would have been worth most; NULL: there is none. */
static const qn_quant_node *first_product(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (q->nodes[i].node->op->quant == QN_QUANT_MAC && q->nodes[i].why)
            return &q->nodes[i];
    }
    return NULL;
}

static qn_status fail_empty(const qn_quantizer *q)
{
    const char *target = q->settings.profile->name;
    const qn_quant_node *product = first_product(q);
    if (has_integers(q))
        return qn_fail(q->ctx, QN_E_UNSUPPORTED,
                       "this model is quantized already, and nothing in it is left to be quantized "
                       "for target '%s': quantize the float model that it was made of",
                       target);
    if (has_doubles(q))
        return qn_fail(q->ctx, QN_E_UNSUPPORTED,
                       "nothing in this model can be quantized for target '%s': it computes in "
                       "float64; make it float32, float16 or bfloat16",
                       target);
    if (!product)
        return qn_fail(q->ctx, QN_E_UNSUPPORTED,
                       "nothing in this model can be quantized for target '%s': it has no "
                       "convolution or product of matrices",
                       target);
    return qn_fail(q->ctx, QN_E_UNSUPPORTED,
                   "nothing in this model is to be quantized for target '%s': %s '%s' stays float, "
                   "%s (`qn_quantize_list` tells of all nodes)",
                   target, product->node->op->name, product->node->name, product->why);
}

qn_status qn_reasons_check(const qn_quantizer *q)
{
    const bool may_be_empty = q->settings.dynamic || q->settings.may_be_empty;
    return may_be_empty || !qn_quantizer_is_empty(q) ? QN_OK : fail_empty(q);
}
