#include "quantize/nan_check.h"

#include <stdio.h>
#include <string.h>

#include "pass/softmax_masks.h"

/* ---- Constants ------------------------------------------------------------------------------- */

/* A choice may have NaN on the side that is never taken. */
static bool computes(const qn_node *node)
{
    return node->op != &qn_op_Where && node->op->quant != QN_QUANT_SHAPE;
}

qn_status qn_nan_check(qn_context *ctx, const qn_graph *graph)
{
    for (const qn_node *node = graph->first; node; node = node->next) {
        for (int32_t i = 0; i < node->n_in && computes(node); i++) {
            const qn_value *value = node->in[i];
            if (value && value->data && qn_tensor_has_nan(value->data))
                return qn_fail(ctx, QN_E_INVALID,
                               "constant '%s' has NaN elements: nothing that node '%s' computes "
                               "with it is a number",
                               value->name, node->name);
        }
    }
    return QN_OK;
}

/* ---- Data ------------------------------------------------------------------------------------ */

/* The value that the message is about leads to nothing but Softmax. */
static bool is_about_mask(const char *message, const qn_graph *graph, const bool *marked)
{
    bool found = false;
    for (size_t i = 0; i < graph->n_values && !found; i++) {
        char start[256];
        const int length =
            snprintf(start, sizeof start, "tensor '%s' has NaN", graph->values[i]->name);
        found = marked[i] && length > 0 && (size_t)length < sizeof start && strstr(message, start);
    }
    return found;
}

qn_status qn_nan_explain(qn_context *ctx, const qn_graph *graph, qn_status status)
{
    char message[QN_ERROR_SIZE];
    if (status != QN_E_INVALID)
        return status;
    bool *marked = qn_alloc_zero(ctx, graph->n_values + 1, sizeof *marked);
    if (!marked)
        return status;
    qn_softmax_masks_mark(marked, graph);
    snprintf(message, sizeof message, "%s", qn_context_error(ctx));
    if (is_about_mask(message, graph, marked))
        status = qn_fail(ctx, status,
                         "%s: a mask in front of a Softmax has to be finite; -10000 in the place "
                         "of -inf gives the same results",
                         message);
    qn_free(ctx, marked);
    return status;
}

void qn_zero_inputs_warn(qn_context *ctx, const qn_graph *graph, const qn_stats *stats)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const qn_stats_entry *entry = qn_stats_find(stats, graph->inputs[i]->name);
        if (entry && entry->count == entry->zeros)
            qn_log(ctx, QN_LOG_WARN,
                   "input '%s': only zeros were seen; its range is a guess, and so may be those "
                   "of all that is computed from it",
                   graph->inputs[i]->name);
    }
}
