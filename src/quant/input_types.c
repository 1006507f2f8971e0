/* Model inputs that take integers. */
#include "quant/input_types.h"

#include <string.h>

#include "ops/infer.h"
#include "quant/params.h"

static const struct {
    const char *name;
    qn_dtype dtype;
} types[] = {{"None", QN_UNDEFINED},
             {"float32", QN_UNDEFINED},
             {"int8", QN_INT8},
             {"uint8", QN_UINT8},
             {"int16", QN_INT16}};

/* ---- What is asked for ----------------------------------------------------------------------- */

static qn_status fail_count(const qn_quant_settings *settings, const qn_graph *graph)
{
    return qn_fail(
        graph->ctx, QN_E_OPTION,
        "%zu input types (`input_types`) for %zu inputs: give one for all, or one for each",
        settings->n_input_types, graph->n_inputs);
}

qn_status qn_input_type(qn_dtype *out, const qn_quant_settings *settings, const qn_graph *graph,
                        size_t i)
{
    const size_t given = settings->n_input_types;
    size_t row = 0;
    *out = QN_UNDEFINED;
    if (!given)
        return QN_OK;
    if (given != 1 && given != graph->n_inputs)
        return fail_count(settings, graph);
    const char *name = settings->input_types[given == 1 ? 0 : i];
    while (row < QN_COUNT_OF(types) && strcmp(types[row].name, name) != 0)
        row++;
    if (row == QN_COUNT_OF(types))
        return qn_fail(
            graph->ctx, QN_E_INVALID,
            "an input cannot have type '%s' (`input_types`): float32, int8, uint8, int16 or None",
            name);
    const qn_value *value = graph->inputs[i];
    if (row > 0 && (value->type.kind != QN_TYPE_TENSOR || value->type.dtype != QN_FLOAT32))
        return qn_fail(
            graph->ctx, QN_E_INVALID,
            "input '%s' is %s: `input_types` changes inputs of float32 only; say None for it",
            value->name, qn_dtype_name(value->type.dtype));
    *out = types[row].dtype;
    return QN_OK;
}

qn_status qn_input_types_claim(qn_quantizer *q)
{
    for (size_t i = 0; i < q->graph->n_inputs; i++) {
        qn_quant_value *v = qn_quant_value_of(q, q->graph->inputs[i]);
        QN_TRY(qn_input_type(&v->type, &q->settings, q->graph, i));
        v->integer = v->integer || v->type != QN_UNDEFINED;
    }
    return QN_OK;
}

/* ---- Widths ---------------------------------------------------------------------------------- */

/* A node of less bits that reads the value, behind those that move it; NULL: none. */
static const qn_quant_node *int8_reader(const qn_quantizer *q, const qn_value *value, int bits)
{
    const qn_quant_node *found = NULL;
    for (const qn_value *next; value && !found; value = next) {
        next = NULL;
        for (size_t u = 0; u < value->n_users && !found; u++) {
            const qn_quant_node *user = qn_quant_node_of(q, value->users[u]);
            if (!user->integer)
                continue;
            if (user->quant_class == QN_CLASS_PASS_THROUGH)
                next = user->node->out[0];
            else if (user->bits < bits)
                found = user;
        }
    }
    return found;
}

qn_status qn_input_types_settle(qn_quantizer *q)
{
    for (size_t i = 0; i < q->graph->n_inputs; i++) {
        const qn_value *value = q->graph->inputs[i];
        qn_quant_value *v = qn_quant_value_of(q, value);
        if (v->type == QN_UNDEFINED)
            continue;
        v->bits = qn_dtype_get(v->type)->bits;
        const qn_quant_node *int8 = int8_reader(q, value, v->bits);
        if (int8)
            return qn_fail(
                q->ctx, QN_E_OPTION,
                "input '%s' cannot be int16 (`input_types`): node '%s', which reads it, has 8 "
                "bits (`bits`, `mix`)",
                value->name, int8->node->name);
    }
    return QN_OK;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

void qn_input_types_params(qn_qparams *p, bool *raw, const qn_quant_value *root,
                           const qn_stats_entry *entry, bool symmetric)
{
    *raw = entry && (double)entry->min >= (double)p->qmin &&
           (double)entry->max <= (double)p->qmax && qn_entry_is_integral(entry);
    if (!*raw) {
        qn_params_from_range(p, root->range.min, root->range.max, symmetric && p->qmin < 0);
        return;
    }
    p->scale = 1;
    p->zero = 0;
}

/* ---- The inputs themselves ------------------------------------------------------------------- */

static qn_status retype(qn_value *input, qn_dtype dtype)
{
    qn_node *q = qn_value_only_user(input);
    bool done = false;
    if (!q || q->op != &qn_op_QuantizeLinear || q->out[0]->type.dtype != dtype)
        return QN_OK; /* nobody reads it */
    QN_TRY(qn_value_replace(&done, q->out[0], input));
    if (!done)
        return qn_fail(input->graph->ctx, QN_E_UNSUPPORTED,
                       "input '%s' is an output too, and stays float32", input->name);
    qn_node_remove(q);
    input->type.dtype = dtype;
    return QN_OK;
}

qn_status qn_input_types_apply(qn_model *model, const qn_quant_settings *settings)
{
    qn_graph *graph = model->graph;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        qn_dtype dtype = QN_UNDEFINED;
        QN_TRY(qn_input_type(&dtype, settings, graph, i));
        if (dtype != QN_UNDEFINED)
            QN_TRY(retype(graph->inputs[i], dtype));
    }
    return qn_graph_infer(graph);
}
