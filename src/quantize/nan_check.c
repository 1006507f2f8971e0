/* Constants and data that are no numbers. */
#include "quantize/nan_check.h"

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

/* An input of the graph has no producer, but somebody reads it. */
static const qn_graph *graph_of(const qn_value *value)
{
    const qn_node *node = value->producer  ? value->producer
                          : value->n_users ? value->users[0]
                                           : NULL;
    return node ? node->graph : NULL;
}

const char *qn_nan_remedy(const qn_value *value)
{
    const qn_graph *graph = graph_of(value);
    bool *marked = graph ? qn_alloc_zero(graph->ctx, graph->n_values + 1, sizeof *marked) : NULL;
    bool is_mask = false;
    if (!marked)
        return NULL;
    qn_softmax_masks_mark(marked, graph);
    for (size_t i = 0; i < graph->n_values && !is_mask; i++)
        is_mask = marked[i] && graph->values[i] == value;
    qn_free(graph->ctx, marked);
    return is_mask ? "a mask in front of a Softmax has to be finite; -10000 in the place of -inf "
                     "gives the same results"
                   : NULL;
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
