/* Topological order of the nodes in a file: depth first, producers before the node. */
#include "import/onnx/onnx.h"

/* Names that are defined inside the subgraphs being searched hide those of outer graphs. */
typedef struct inner {
    const struct inner *outer;
    qn_names names;
} inner;

enum { NEW = 0, OPEN, DONE };

/* One node on the path that is being followed; its producers are edges[next .. end). */
typedef struct frame {
    size_t node, begin, next, end;
} frame;

typedef struct order {
    qn_onnx_import *import;
    const qn_proto_message *message;
    uint32_t field;
    size_t count;
    /* Output name -> node number + 1 */
    qn_names producers;
    uint8_t *states;
    size_t *result, n_result;
    /* A stack, as the path is */
    size_t *edges, n_edges, edges_capacity;
    frame *path;
    size_t path_capacity;
} order;

static const qn_proto_message *node_at(const order *o, size_t i)
{
    return qn_proto_message_at(o->message, o->field, i);
}

/* ---- What a node reads ----------------------------------------------------------------------- */

static qn_status add_edge(order *o, const inner *scope, qn_string string)
{
    const char *name;
    QN_TRY(qn_onnx_name(&name, o->import, string));
    for (; scope; scope = scope->outer) {
        if (qn_names_get(&scope->names, name))
            return QN_OK;
    }
    const size_t producer = (size_t)(uintptr_t)qn_names_get(&o->producers, name);
    if (producer == 0)
        return QN_OK;
    QN_TRY_GROW(o->import->ctx, o->edges, o->edges_capacity, o->n_edges + 1);
    o->edges[o->n_edges++] = producer - 1;
    return QN_OK;
}

static qn_status define(order *o, qn_names *names, qn_string string)
{
    const char *name;
    QN_TRY(qn_onnx_name(&name, o->import, string));
    return qn_names_set(names, name, o);
}

static qn_status define_all(order *o, qn_names *names, const qn_proto_message *graph)
{
    static const struct {
        uint32_t field, name;
    } lists[] = {{QN_ONNX_GRAPH_INPUT, QN_ONNX_VALUE_INFO_NAME},
                 {QN_ONNX_GRAPH_INITIALIZER, QN_ONNX_TENSOR_NAME}};
    for (size_t l = 0; l < QN_COUNT_OF(lists); l++) {
        for (size_t i = 0; i < qn_proto_count(graph, lists[l].field); i++)
            QN_TRY(define(
                o, names,
                qn_proto_string(qn_proto_message_at(graph, lists[l].field, i), lists[l].name)));
    }
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_SPARSE_INITIALIZER); i++) {
        const qn_proto_message *values =
            qn_proto_get_message(qn_proto_message_at(graph, QN_ONNX_GRAPH_SPARSE_INITIALIZER, i),
                                 QN_ONNX_SPARSE_TENSOR_VALUES);
        QN_TRY(define(o, names, qn_proto_string(values, QN_ONNX_TENSOR_NAME)));
    }
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_NODE); i++) {
        const qn_proto_message *node = qn_proto_message_at(graph, QN_ONNX_GRAPH_NODE, i);
        for (size_t k = 0; k < qn_proto_count(node, QN_ONNX_NODE_OUTPUT); k++)
            QN_TRY(define(o, names, qn_proto_string_at(node, QN_ONNX_NODE_OUTPUT, k)));
    }
    return QN_OK;
}

static qn_status add_node_edges(order *o, const inner *scope, const qn_proto_message *node);

static qn_status add_graph_edges(order *o, const inner *scope, const qn_proto_message *graph)
{
    inner here = {.outer = scope};
    qn_status status;
    qn_names_init(&here.names, o->import->ctx);
    QN_TRY_OR_DONE(define_all(o, &here.names, graph));
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_NODE); i++)
        QN_TRY_OR_DONE(add_node_edges(o, &here, qn_proto_message_at(graph, QN_ONNX_GRAPH_NODE, i)));
    for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_OUTPUT); i++)
        QN_TRY_OR_DONE(add_edge(o, &here,
                                qn_proto_string(qn_proto_message_at(graph, QN_ONNX_GRAPH_OUTPUT, i),
                                                QN_ONNX_VALUE_INFO_NAME)));
done:
    qn_names_free(&here.names);
    return status;
}

static qn_status add_node_edges(order *o, const inner *scope, const qn_proto_message *node)
{
    for (size_t i = 0; i < qn_proto_count(node, QN_ONNX_NODE_INPUT); i++)
        QN_TRY(add_edge(o, scope, qn_proto_string_at(node, QN_ONNX_NODE_INPUT, i)));
    for (size_t a = 0; a < qn_proto_count(node, QN_ONNX_NODE_ATTRIBUTE); a++) {
        const qn_proto_message *attribute = qn_proto_message_at(node, QN_ONNX_NODE_ATTRIBUTE, a);
        const qn_proto_message *graph = qn_proto_get_message(attribute, QN_ONNX_ATTRIBUTE_G);
        if (graph)
            QN_TRY(add_graph_edges(o, scope, graph));
        for (size_t i = 0; i < qn_proto_count(attribute, QN_ONNX_ATTRIBUTE_GRAPHS); i++)
            QN_TRY(add_graph_edges(o, scope,
                                   qn_proto_message_at(attribute, QN_ONNX_ATTRIBUTE_GRAPHS, i)));
    }
    return QN_OK;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static qn_status open_node(order *o, size_t *depth, size_t node)
{
    QN_TRY_GROW(o->import->ctx, o->path, o->path_capacity, *depth + 1);
    const size_t begin = o->n_edges;
    QN_TRY(add_node_edges(o, NULL, node_at(o, node)));
    o->path[(*depth)++] = (frame){node, begin, begin, o->n_edges};
    o->states[node] = OPEN;
    return QN_OK;
}

static qn_status visit(order *o, size_t start)
{
    size_t depth = 0;
    QN_TRY(open_node(o, &depth, start));
    while (depth) {
        frame *top = &o->path[depth - 1];
        if (top->next == top->end) {
            o->states[top->node] = DONE;
            o->result[o->n_result++] = top->node;
            o->n_edges = top->begin;
            depth--;
            continue;
        }
        const size_t producer = o->edges[top->next++];
        if (o->states[producer] == OPEN)
            return qn_fail(o->import->ctx, QN_E_FORMAT, "node %s depends on its own output",
                           qn_onnx_node_label(node_at(o, producer)).text);
        if (o->states[producer] == NEW)
            QN_TRY(open_node(o, &depth, producer));
    }
    return QN_OK;
}

static qn_status find_producers(order *o)
{
    for (size_t i = 0; i < o->count; i++) {
        const qn_proto_message *node = node_at(o, i);
        for (size_t k = 0; k < qn_proto_count(node, QN_ONNX_NODE_OUTPUT); k++) {
            const char *name;
            QN_TRY(
                qn_onnx_name(&name, o->import, qn_proto_string_at(node, QN_ONNX_NODE_OUTPUT, k)));
            if (*name && !qn_names_get(&o->producers, name))
                QN_TRY(qn_names_set(&o->producers, name, (void *)(uintptr_t)(i + 1)));
        }
    }
    return QN_OK;
}

static qn_status sort(order *o)
{
    qn_arena *arena = &o->import->tree.arena;
    o->states = qn_arena_array(arena, o->count, sizeof *o->states);
    o->result = qn_arena_array(arena, o->count, sizeof *o->result);
    if (!o->states || !o->result)
        return qn_fail_nomem(o->import->ctx);
    QN_TRY(find_producers(o));
    for (size_t i = 0; i < o->count; i++) {
        if (o->states[i] == NEW)
            QN_TRY(visit(o, i));
    }
    return QN_OK;
}

qn_status qn_onnx_order(const size_t **out, qn_onnx_import *import, const qn_proto_message *message,
                        uint32_t field)
{
    order o = {.import = import,
               .message = message,
               .field = field,
               .count = qn_proto_count(message, field)};
    qn_names_init(&o.producers, import->ctx);
    const qn_status status = sort(&o);
    qn_names_free(&o.producers);
    qn_free(import->ctx, o.edges);
    qn_free(import->ctx, o.path);
    *out = o.result;
    return status;
}
