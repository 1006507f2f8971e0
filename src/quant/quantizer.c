/* The tables of nodes and values that the rules fill. */
#include <string.h>

#include "ops/expand.h"
#include "ops/nn_attrs.h"
#include "quant/dynamic.h"
#include "quant/reasons.h"

/* Spells SiLU out as x * sigmoid(x) for a target without tables that has Sigmoid and Mul in
 * integers. */
static qn_status spell_out(qn_quantizer *q)
{
    const unsigned both = QN_CAN_SIGMOID | QN_CAN_MUL, can = q->settings.profile->can;
    if (q->settings.dynamic || (can & (both | QN_CAN_TABLE)) != both)
        return QN_OK;
    for (qn_node *node = q->graph->first, *next; node; node = next) {
        next = node->next;
        if (node->op == &qn_op_Swish && ((const qn_activation_attrs *)node->attrs)->alpha == 1)
            QN_TRY(qn_node_expand(&node));
    }
    return QN_OK;
}

static qn_status make_tables(qn_quantizer *q)
{
    qn_graph *graph = q->graph;
    qn_graph_renumber(graph);
    q->nodes = qn_arena_array(&q->arena, graph->n_nodes + 1, sizeof *q->nodes);
    q->values = qn_arena_array(&q->arena, graph->n_values + 1, sizeof *q->values);
    if (!q->nodes || !q->values)
        return qn_fail_nomem(q->ctx);
    for (qn_node *node = graph->first; node; node = node->next)
        q->nodes[q->n_nodes++].node = node;
    for (size_t i = 0; i < graph->n_values; i++) {
        qn_value *value = graph->values[i];
        q->values[i] = (qn_quant_value){
            .value = value, .parent = (int32_t)i, .source = (int32_t)i, .existing = value->qparams};
        value->qparams = NULL; /* here it is what insertion gives */
    }
    q->n_values = graph->n_values;
    /* What a value is that came later, such as weights that were scaled: nothing is known of it. */
    q->values[q->n_values].parent = q->values[q->n_values].source = (int32_t)q->n_values;
    return QN_OK;
}

qn_status qn_quantizer_create(qn_quantizer **out, qn_model *model,
                              const qn_quant_settings *settings)
{
    qn_quantizer *q = qn_alloc_zero(model->ctx, 1, sizeof *q);
    *out = NULL;
    QN_TRY_ALLOC(model->ctx, q);
    q->ctx = model->ctx;
    q->model = model;
    q->graph = model->graph;
    q->settings = *settings;
    qn_arena_init(&q->arena, &model->ctx->allocator);
    qn_status status = spell_out(q);
    if (status == QN_OK)
        status = make_tables(q);
    if (status == QN_OK) {
        status = settings->dynamic ? qn_dynamic_rules(q) : qn_rules_apply(q);
    }
    if (status == QN_OK)
        status = qn_reasons_add(q);
    if (status == QN_OK)
        status = qn_reasons_check(q);
    if (status == QN_OK)
        *out = q;
    else
        qn_quantizer_free(q);
    return status;
}

void qn_quantizer_free(qn_quantizer *q)
{
    if (!q)
        return;
    qn_free(q->ctx, q->encodings.smoothed);
    qn_arena_free(&q->arena);
    qn_free(q->ctx, q);
}

qn_quant_node *qn_quant_node_of(const qn_quantizer *q, const qn_node *node)
{
    return &q->nodes[QN_MIN(node->number, q->n_nodes)];
}

qn_quant_value *qn_quant_value_of(const qn_quantizer *q, const qn_value *value)
{
    return &q->values[QN_MIN(value->number, q->n_values)];
}

qn_dtype qn_quant_dtype(const qn_quantizer *q, const qn_quant_value *root)
{
    return root->type != QN_UNDEFINED ? root->type
                                      : qn_profile_activation(q->settings.profile, root->bits);
}

bool qn_quant_reads_int8(const qn_quantizer *q, const qn_quant_node *node, int32_t i)
{
    const qn_value *value = node->node->in[i];
    if (!qn_quant_is_data(node, i) || node->quant_class == QN_CLASS_PASS_THROUGH ||
        node->quant_class == QN_CLASS_CONCAT || !value || value->data)
        return false;
    const qn_quant_value *v = qn_quant_value_of(q, value);
    return v->integer && qn_quant_root(q, v)->bits > node->bits;
}

bool qn_quantizer_is_empty(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_values; i++) {
        if (q->values[i].integer)
            return false;
    }
    return true;
}

bool qn_quantizer_writes_integer(const qn_quantizer *q, const char *name)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_value *result = q->nodes[i].node->n_out > 0 ? q->nodes[i].node->out[0] : NULL;
        if (q->nodes[i].integer && result && strcmp(result->name, name) == 0)
            return true;
    }
    return false;
}

bool qn_quant_is_data(const qn_quant_node *node, int32_t i)
{
    return node->integer && i < node->n_data;
}
