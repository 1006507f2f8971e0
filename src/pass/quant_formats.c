/* The table of formats of quantized files, and how a model is brought into each. */
#include "pass/quant_formats.h"

#include <string.h>

#include "ops/infer.h"
#include "pass/qdq_to_integer.h"

static qn_status run_on(qn_graph *graph, const qn_pass *pass, int64_t *changes)
{
    qn_pass_context self = {.ctx = graph->ctx, .graph = graph, .ort_only = true};
    QN_TRY(pass->run(&self));
    *changes += self.changes;
    for (qn_node *node = graph->first; node; node = node->next) {
        qn_graph *body;
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            QN_TRY(run_on(body, pass, changes));
    }
    return QN_OK;
}

bool qn_graph_is_quantized(const qn_graph *graph)
{
    for (const qn_node *node = graph->first; node; node = node->next) {
        const qn_graph *body;
        if (node->op->quant == QN_QUANT_ALREADY)
            return true;
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++) {
            if (qn_graph_is_quantized(body))
                return true;
        }
    }
    return false;
}

/* Operators of integers in the graph and its bodies; *first is the first of them. */
static size_t count_left(const qn_node **first, const qn_graph *graph)
{
    size_t count = 0;
    for (const qn_node *node = graph->first; node; node = node->next) {
        const qn_graph *body;
        const bool left =
            node->op->quant == QN_QUANT_ALREADY && !qn_is_quantize(node) && !qn_is_dequantize(node);
        if (left && !*first)
            *first = node;
        count += left;
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            count += count_left(first, body);
    }
    return count;
}

static qn_status to_pairs(qn_model *model)
{
    const qn_node *first = NULL;
    int64_t changes = 0;
    QN_TRY(qn_graph_infer(model->graph));
    QN_TRY(run_on(model->graph, &qn_pass_qoperator_to_qdq, &changes));
    const size_t left = count_left(&first, model->graph);
    if (left)
        qn_log(model->ctx, QN_LOG_WARN,
               "operators of integers that have no float form stay as they are: %zu, first node "
               "'%s' (%s); quantize the float model that it was made of to have none",
               left, first->name, first->op->name);
    return QN_OK;
}

static qn_status to_floats(qn_model *model)
{
    QN_TRY(to_pairs(model));
    return qn_fake_quantize(model);
}

/* Only these two passes run: others would turn the integers that stay between Q and D into
 * floats. */
static qn_status to_operators(qn_model *model)
{
    int64_t changes = 1;
    while (changes) {
        changes = 0;
        QN_TRY(qn_check_cancel(model->ctx));
        QN_TRY(qn_graph_infer(model->graph));
        QN_TRY(run_on(model->graph, &qn_pass_qdq_to_integer, &changes));
        QN_TRY(run_on(model->graph, &qn_pass_remove_dead, &changes));
    }
    return QN_OK;
}

const qn_quant_format qn_quant_formats[] = {
    {"qdq", "float operators between QuantizeLinear and DequantizeLinear", to_pairs},
    {"qoperator", "operators of integers, where ONNX Runtime has them", to_operators},
    {"fake", "float operators only, with rounding inside", to_floats},
};
const size_t qn_quant_formats_count = QN_COUNT_OF(qn_quant_formats);

qn_status qn_quant_format_find(const qn_quant_format **out, qn_context *ctx, const char *name)
{
    for (size_t i = 0; i < qn_quant_formats_count; i++) {
        *out = &qn_quant_formats[i];
        if (strcmp(qn_quant_formats[i].name, name) == 0)
            return QN_OK;
    }
    return qn_fail(ctx, QN_E_INVALID, "there is no form '%s': it is qdq, qoperator or fake", name);
}
