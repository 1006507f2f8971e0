/* ONNX graphs: initializers, inputs, nodes, outputs. */
#include <string.h>

#include "import/onnx/onnx.h"

/* ---- Operator sets --------------------------------------------------------------------------- */

/* Versions are there, and one for each domain. */
static qn_status check_opset(const qn_onnx_import *import, const qn_opset *opsets, size_t last)
{
    const qn_opset *opset = &opsets[last];
    const char *shown = *opset->domain ? opset->domain : "ai.onnx";
    if (opset->version < 1 || opset->version > INT32_MAX)
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "the opset of domain '%s' has version %lld; versions begin with 1", shown,
                       (long long)opset->version);
    for (size_t i = 0; i < last; i++) {
        if (strcmp(opsets[i].domain, opset->domain) == 0 && opsets[i].version != opset->version)
            return qn_fail(import->ctx, QN_E_FORMAT,
                           "the opsets %lld and %lld of domain '%s' are both imported",
                           (long long)opsets[i].version, (long long)opset->version, shown);
    }
    return QN_OK;
}

qn_status qn_onnx_opsets(qn_opset **out, size_t *count, qn_onnx_import *import,
                         const qn_proto_message *message, uint32_t field)
{
    *count = qn_proto_count(message, field);
    *out = qn_arena_array(import->arena, *count, sizeof **out);
    QN_TRY_ALLOC(import->ctx, *out);
    for (size_t i = 0; i < *count; i++) {
        const qn_proto_message *opset = qn_proto_message_at(message, field, i);
        const char *domain;
        QN_TRY(qn_onnx_text(&domain, import, qn_proto_string(opset, QN_ONNX_OPSET_DOMAIN)));
        (*out)[i].domain = domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
        (*out)[i].version = qn_proto_int(opset, QN_ONNX_OPSET_VERSION, 0);
        QN_TRY(check_opset(import, *out, i));
    }
    return QN_OK;
}

int64_t qn_onnx_opset_version(const qn_onnx_scope *scope, const char *domain)
{
    for (size_t i = 0; i < scope->n_opsets; i++) {
        if (strcmp(scope->opsets[i].domain, domain) == 0)
            return scope->opsets[i].version;
    }
    return 0;
}

qn_status qn_onnx_enter(qn_onnx_import *import)
{
    enum { DEEPEST = 64 };
    if (++import->depth > DEEPEST)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED,
                       "functions and subgraphs lie more than %d deep in one another", DEEPEST);
    return QN_OK;
}

/* ---- Names ----------------------------------------------------------------------------------- */

qn_status qn_onnx_final_name(const char **out, const qn_onnx_scope *scope, const char *name)
{
    *out = name;
    if (!scope->body)
        return QN_OK;
    const char *renamed = qn_names_get(&scope->body->renamed, name);
    *out = renamed
               ? renamed
               : qn_arena_format(&scope->import->tree.arena, "%s/%s", scope->body->prefix, name);
    QN_TRY_ALLOC(scope->import->ctx, *out);
    return QN_OK;
}

qn_status qn_onnx_define(qn_onnx_scope *scope, const char *name, qn_value *value)
{
    if (*name == 0)
        return qn_fail(scope->import->ctx, QN_E_FORMAT, "a value has no name");
    if (qn_names_get(&scope->values, name))
        return qn_fail(scope->import->ctx, QN_E_FORMAT, "the value '%s' is defined twice", name);
    return qn_names_set(&scope->values, name, value);
}

/* Makes a value of the enclosing graph visible as a value of the subgraph. */
static qn_status capture(qn_value **out, qn_onnx_scope *scope, const char *name, qn_value *outer)
{
    qn_graph *graph = scope->graph;
    qn_node *owner = graph->owner;
    int32_t slot = owner->n_explicit;
    while (slot < owner->n_in && owner->in[slot] != outer)
        slot++;
    if (slot == owner->n_in)
        QN_TRY(qn_node_add_input(owner, outer));
    QN_TRY(qn_value_create(out, graph, name));
    (*out)->type = outer->type;
    (*out)->data = outer->data;
    QN_TRY(qn_graph_add_capture(graph, *out, slot));
    return qn_names_set(&scope->values, name, *out);
}

qn_status qn_onnx_find(qn_value **out, qn_onnx_scope *scope, const char *name)
{
    *out = qn_names_get(&scope->values, name);
    if (*out || !scope->parent)
        return QN_OK;
    qn_value *outer = NULL;
    QN_TRY(qn_onnx_find(&outer, scope->parent, name));
    if (!outer || outer == &scope->import->absent) {
        *out = outer;
        return QN_OK;
    }
    return capture(out, scope, name, outer);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Type and documentation from a ValueInfoProto. */
static qn_status describe(qn_value *value, qn_onnx_import *import, const qn_proto_message *info)
{
    qn_type *type = qn_arena_alloc(import->arena, sizeof *type);
    QN_TRY_ALLOC(import->ctx, type);
    const qn_status status =
        qn_onnx_type(type, import, qn_proto_get_message(info, QN_ONNX_VALUE_INFO_TYPE));
    if (status != QN_OK)
        return qn_fail_within(import->ctx, status, "value '%s'", value->name);
    value->type = *type;
    QN_TRY(qn_onnx_metadata(&value->metadata, import, info, QN_ONNX_VALUE_INFO_METADATA_PROPS));
    value->declared = type;
    return qn_onnx_text(&value->doc, import, qn_proto_string(info, QN_ONNX_VALUE_INFO_DOC_STRING));
}

qn_status qn_onnx_define_output(qn_value **out, qn_onnx_scope *scope, const char *name)
{
    const char *final;
    QN_TRY(qn_onnx_final_name(&final, scope, name));
    QN_TRY(qn_value_create(out, scope->graph, final));
    QN_TRY(qn_onnx_define(scope, name, *out));
    const qn_proto_message *info = qn_names_get(&scope->declared, name);
    return info ? describe(*out, scope->import, info) : QN_OK;
}

/* What the file says of values that nodes produce. */
static qn_status declare(qn_onnx_scope *scope, const qn_proto_message *graph, uint32_t field)
{
    for (size_t i = 0; i < qn_proto_count(graph, field); i++) {
        const qn_proto_message *info = qn_proto_message_at(graph, field, i);
        const char *name;
        QN_TRY(qn_onnx_name(&name, scope->import, qn_proto_string(info, QN_ONNX_VALUE_INFO_NAME)));
        QN_TRY(qn_names_set(&scope->declared, name, (void *)(uintptr_t)info));
    }
    return QN_OK;
}

static qn_status add_constant(qn_onnx_scope *scope, const qn_proto_message *named,
                              const qn_tensor *contents)
{
    qn_onnx_import *import = scope->import;
    const char *name;
    qn_value *value;
    QN_TRY(qn_onnx_name(&name, import, qn_proto_string(named, QN_ONNX_TENSOR_NAME)));
    qn_tensor *tensor = qn_arena_copy(import->arena, contents, sizeof *contents);
    QN_TRY_ALLOC(import->ctx, tensor);
    QN_TRY(qn_value_constant(&value, scope->graph, name, tensor));
    QN_TRY(qn_onnx_text(&value->doc, import, qn_proto_string(named, QN_ONNX_TENSOR_DOC_STRING)));
    QN_TRY(qn_onnx_metadata(&value->metadata, import, named, QN_ONNX_TENSOR_METADATA_PROPS));
    return qn_onnx_define(scope, name, value);
}

static qn_status read_initializers(qn_onnx_scope *scope, const qn_proto_message *graph)
{
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_INITIALIZER); i++) {
        const qn_proto_message *proto = qn_proto_message_at(graph, QN_ONNX_GRAPH_INITIALIZER, i);
        const qn_string name = qn_proto_string(proto, QN_ONNX_TENSOR_NAME);
        qn_tensor tensor;
        const qn_status status = qn_onnx_tensor(&tensor, scope->import, proto);
        if (status != QN_OK)
            return qn_fail_within(scope->import->ctx, status, "initializer '%.*s'",
                                  (int)QN_MIN(name.length, 200), name.text);
        QN_TRY(add_constant(scope, proto, &tensor));
    }
    return QN_OK;
}

static qn_status read_sparse_initializers(qn_onnx_scope *scope, const qn_proto_message *graph)
{
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_SPARSE_INITIALIZER); i++) {
        const qn_proto_message *proto =
            qn_proto_message_at(graph, QN_ONNX_GRAPH_SPARSE_INITIALIZER, i);
        const qn_proto_message *values = qn_proto_get_message(proto, QN_ONNX_SPARSE_TENSOR_VALUES);
        const qn_string name = qn_proto_string(values, QN_ONNX_TENSOR_NAME);
        qn_tensor tensor;
        const qn_status status = qn_onnx_sparse(&tensor, scope->import, proto);
        if (status != QN_OK)
            return qn_fail_within(scope->import->ctx, status, "sparse initializer '%.*s'",
                                  (int)QN_MIN(name.length, 200), name.text);
        QN_TRY(add_constant(scope, values, &tensor));
    }
    return QN_OK;
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* Initializers were read before: an input of that name is a default value, here a constant. A
 * subgraph's inputs are filled by its owner, whatever else they have. */
static qn_status read_inputs(qn_onnx_scope *scope, const qn_proto_message *graph)
{
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_INPUT); i++) {
        const qn_proto_message *info = qn_proto_message_at(graph, QN_ONNX_GRAPH_INPUT, i);
        const char *name;
        qn_value *value;
        QN_TRY(qn_onnx_name(&name, scope->import, qn_proto_string(info, QN_ONNX_VALUE_INFO_NAME)));
        const qn_value *known = qn_names_get(&scope->values, name);
        if (known && known->data && !scope->parent)
            continue;
        QN_TRY(qn_value_create(&value, scope->graph, name));
        QN_TRY(qn_onnx_define(scope, name, value));
        QN_TRY(describe(value, scope->import, info));
        QN_TRY(qn_graph_add_input(scope->graph, value));
    }
    return QN_OK;
}

static qn_status read_outputs(qn_onnx_scope *scope, const qn_proto_message *graph)
{
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_OUTPUT); i++) {
        const qn_proto_message *info = qn_proto_message_at(graph, QN_ONNX_GRAPH_OUTPUT, i);
        const char *name;
        qn_value *value;
        QN_TRY(qn_onnx_name(&name, scope->import, qn_proto_string(info, QN_ONNX_VALUE_INFO_NAME)));
        QN_TRY(qn_onnx_find(&value, scope, name));
        if (!value || value == &scope->import->absent)
            return qn_fail(scope->import->ctx, QN_E_FORMAT,
                           "graph '%s': nothing computes the output '%s'", scope->graph->name,
                           name);
        QN_TRY(qn_graph_add_output(scope->graph, value));
    }
    return QN_OK;
}

qn_status qn_onnx_nodes(qn_onnx_scope *scope, const qn_proto_message *message, uint32_t field)
{
    const size_t *order;
    QN_TRY(qn_onnx_order(&order, scope->import, message, field));
    for (size_t i = 0; i < qn_proto_count(message, field); i++) {
        QN_TRY(qn_check_cancel(scope->import->ctx));
        QN_TRY(qn_onnx_node(scope, qn_proto_message_at(message, field, order[i])));
    }
    return QN_OK;
}

qn_status qn_onnx_graph(qn_onnx_scope *scope, const qn_proto_message *graph)
{
    qn_onnx_import *import = scope->import;
    const char *name;
    QN_TRY(qn_onnx_text(&name, import, qn_proto_string(graph, QN_ONNX_GRAPH_NAME)));
    if (name)
        scope->graph->name = name;
    QN_TRY(
        qn_onnx_text(&scope->graph->doc, import, qn_proto_string(graph, QN_ONNX_GRAPH_DOC_STRING)));
    QN_TRY(qn_onnx_metadata(&scope->graph->metadata, import, graph, QN_ONNX_GRAPH_METADATA_PROPS));
    QN_TRY(declare(scope, graph, QN_ONNX_GRAPH_VALUE_INFO));
    QN_TRY(declare(scope, graph, QN_ONNX_GRAPH_OUTPUT));
    QN_TRY(read_initializers(scope, graph));
    QN_TRY(read_sparse_initializers(scope, graph));
    QN_TRY(read_inputs(scope, graph));
    QN_TRY(qn_onnx_nodes(scope, graph, QN_ONNX_GRAPH_NODE));
    return read_outputs(scope, graph);
}
