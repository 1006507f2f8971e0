/* Copies of models: the structure is copied, tensors are shared. */
#include "ops/clone.h"

#include <string.h>

/* Values are found again by their names, which are unique in a graph: the source is only read,
 * since other threads may be reading it too. */
static qn_status clone_value(qn_value **out, qn_graph *to, const qn_value *value)
{
    *out = NULL;
    if (!value)
        return QN_OK;
    *out = qn_graph_value(to, value->name);
    if (*out)
        return QN_OK;
    QN_TRY(qn_value_create(out, to, value->name));
    (*out)->doc = value->doc;
    (*out)->metadata = value->metadata;
    (*out)->type = value->type;
    (*out)->declared = value->declared;
    (*out)->data = value->data;
    (*out)->initial = value->initial;
    (*out)->qparams = value->qparams;
    return QN_OK;
}

static qn_status clone_graph(qn_graph *to, const qn_graph *from);

static qn_status clone_subgraphs(qn_node *to)
{
    for (size_t a = 0; a < to->op->n_attrs; a++) {
        if (to->op->attrs[a].kind != QN_ATTR_GRAPH)
            continue;
        qn_graph **field = qn_attr_field(to, &to->op->attrs[a]);
        const qn_graph *from = *field;
        if (!from)
            continue;
        QN_TRY(qn_graph_create(field, to->graph->model, from->name));
        (*field)->owner = to;
        QN_TRY(clone_graph(*field, from));
    }
    return QN_OK;
}

static qn_status clone_node(qn_graph *to, const qn_node *from)
{
    qn_node *node;
    qn_value *value;
    QN_TRY(qn_graph_add_node(&node, to, from->name, from->n_in, from->n_out));
    node->op = from->op;
    node->doc = from->doc;
    node->metadata = from->metadata;
    node->n_explicit = from->n_explicit;
    node->attrs = qn_arena_copy(to->arena, from->attrs, from->op->attrs_size);
    QN_TRY_ALLOC(to->ctx, node->attrs);
    for (int32_t i = 0; i < from->n_in; i++) {
        QN_TRY(clone_value(&value, to, from->in[i]));
        QN_TRY(qn_node_set_input(node, i, value));
    }
    for (int32_t o = 0; o < from->n_out; o++) {
        QN_TRY(clone_value(&value, to, from->out[o]));
        qn_node_set_output(node, o, value);
    }
    return clone_subgraphs(node);
}

static qn_status clone_graph(qn_graph *to, const qn_graph *from)
{
    qn_value *value;
    to->doc = from->doc;
    to->metadata = from->metadata;
    to->made.names = from->made.names;
    for (size_t i = 0; i < from->n_inputs; i++) {
        QN_TRY(clone_value(&value, to, from->inputs[i]));
        QN_TRY(qn_graph_add_input(to, value));
    }
    for (size_t i = 0; i < from->n_captures; i++) {
        QN_TRY(clone_value(&value, to, from->captures[i].inner));
        QN_TRY(qn_graph_add_capture(to, value, from->captures[i].slot));
    }
    for (const qn_node *node = from->first; node; node = node->next)
        QN_TRY(clone_node(to, node));
    for (size_t i = 0; i < from->n_outputs; i++) {
        QN_TRY(clone_value(&value, to, from->outputs[i]));
        QN_TRY(qn_graph_add_output(to, value));
    }
    return QN_OK;
}

static void clone_facts(qn_model *to, const qn_model *from)
{
    to->path = from->path;
    to->ir_version = from->ir_version;
    to->model_version = from->model_version;
    to->producer = from->producer;
    to->producer_version = from->producer_version;
    to->framework = from->framework;
    to->domain = from->domain;
    to->doc = from->doc;
    to->opsets = from->opsets;
    to->n_opsets = from->n_opsets;
    to->metadata = from->metadata;
}

qn_status qn_model_clone(qn_model **out, qn_context *ctx, qn_model *model)
{
    QN_TRY(qn_model_create(out, ctx));
    (*out)->origin = qn_model_retain(model);
    clone_facts(*out, model);
    (*out)->graph->name = model->graph->name;
    const qn_status status = clone_graph((*out)->graph, model->graph);
    if (status != QN_OK) {
        qn_model_free(*out);
        *out = NULL;
    }
    return status;
}
