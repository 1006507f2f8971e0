/* What a model is, whatever its file is called: operators, attributes, names and contents of
 * values. */
#include "ops/fingerprint.h"

#include <string.h>

void qn_fingerprint_tensor(qn_fingerprint *print, const qn_tensor *t)
{
    size_t bytes = 0;
    if (!t) {
        qn_fingerprint_int(print, -1);
        return;
    }
    qn_fingerprint_int(print, t->dtype);
    qn_fingerprint_int(print, t->rank);
    for (int32_t d = 0; d < t->rank; d++)
        qn_fingerprint_int(print, t->dims[d]);
    if (t->dtype == QN_STRING) {
        const qn_string *strings = t->data;
        for (int64_t i = 0; i < qn_tensor_count(t); i++)
            qn_fingerprint_bytes(print, strings[i].text, strings[i].length);
    } else if (t->dtype < QN_SEQUENCE && qn_tensor_bytes(&bytes, t->dtype, t->rank, t->dims)) {
        qn_fingerprint_bytes(print, t->data, bytes);
    }
}

static void take_strings(qn_fingerprint *print, const qn_strings *list)
{
    qn_fingerprint_int(print, list->at ? (int64_t)list->count : -1);
    for (size_t i = 0; list->at && i < list->count; i++)
        qn_fingerprint_bytes(print, list->at[i].text, list->at[i].length);
}

static void take_list(qn_fingerprint *print, const void *at, size_t count, size_t size)
{
    qn_fingerprint_int(print, at ? (int64_t)count : -1);
    if (at)
        qn_fingerprint_bytes(print, at, count * size);
}

static void take_graph(qn_fingerprint *print, const qn_graph *graph);

static void take_attr(qn_fingerprint *print, const qn_node *node, const qn_attr_spec *spec)
{
    const void *field = qn_attr_field(node, spec);
    const qn_ints *ints = field;
    const qn_floats *floats = field;
    qn_fingerprint_text(print, spec->name);
    switch (spec->kind) {
    case QN_ATTR_INT:
    case QN_ATTR_ENUM: qn_fingerprint_int(print, *(const int64_t *)field); break;
    case QN_ATTR_FLOAT: qn_fingerprint_bytes(print, field, sizeof(float)); break;
    case QN_ATTR_STRING: qn_fingerprint_text(print, *(const char *const *)field); break;
    case QN_ATTR_INTS: take_list(print, ints->at, ints->count, sizeof *ints->at); break;
    case QN_ATTR_FLOATS: take_list(print, floats->at, floats->count, sizeof *floats->at); break;
    case QN_ATTR_STRINGS: take_strings(print, field); break;
    case QN_ATTR_TENSOR: qn_fingerprint_tensor(print, *(const qn_tensor *const *)field); break;
    case QN_ATTR_GRAPH: take_graph(print, *(const qn_graph *const *)field); break;
    case QN_ATTR_TYPE: break; /* nothing that the other inputs do not have */
    }
}

void qn_fingerprint_attrs(qn_fingerprint *print, const qn_node *node)
{
    for (size_t a = 0; a < node->op->n_attrs; a++) {
        if (!qn_attr_is_default(node->attrs, &node->op->attrs[a]))
            take_attr(print, node, &node->op->attrs[a]);
    }
}

static void take_values(qn_fingerprint *print, qn_value *const *values, size_t count)
{
    qn_fingerprint_int(print, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        qn_fingerprint_text(print, values[i] ? values[i]->name : NULL);
}

static void take_node(qn_fingerprint *print, const qn_node *node)
{
    qn_fingerprint_text(print, node->op->domain);
    qn_fingerprint_text(print, node->op->name);
    take_values(print, node->in, (size_t)node->n_in);
    take_values(print, node->out, (size_t)node->n_out);
    qn_fingerprint_attrs(print, node);
}

/* Large contents are read once here and need not stay in memory. */
static void release_pages(const qn_model *model, const qn_tensor *tensor)
{
    size_t bytes;
    if (!qn_tensor_bytes(&bytes, tensor->dtype, tensor->rank, tensor->dims))
        return;
    for (const qn_model *m = model; m; m = m->origin) {
        for (size_t i = 0; i < m->n_maps; i++)
            qn_map_release_pages(&m->maps[i], tensor->data, bytes);
    }
}

static void take_graph(qn_fingerprint *print, const qn_graph *graph)
{
    if (!graph) {
        qn_fingerprint_int(print, -1);
        return;
    }
    take_values(print, graph->inputs, graph->n_inputs);
    take_values(print, graph->outputs, graph->n_outputs);
    for (const qn_node *node = graph->first; node; node = node->next)
        take_node(print, node);
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_value *value = graph->values[i];
        if (!value->data || (value->n_users == 0 && !value->is_output))
            continue;
        qn_fingerprint_text(print, value->name);
        qn_fingerprint_tensor(print, value->data);
        release_pages(graph->model, value->data);
    }
}

qn_fingerprint qn_model_fingerprint(const qn_model *model)
{
    qn_fingerprint print = {{0, 0}};
    take_graph(&print, model->graph);
    return print;
}
