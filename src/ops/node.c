/* Nodes of an operator: made, with their attributes; their failures. */
#include <stdio.h>
#include <string.h>

#include "ops/op.h"

qn_status qn_node_vfail(qn_context *ctx, const qn_node *node, qn_status status, const char *format,
                        va_list args)
{
    char text[QN_ERROR_SIZE];
    vsnprintf(text, sizeof text, format, args);
    return qn_fail(ctx, status, "node '%s' (%s): %s", node->name, node->op->name, text);
}

qn_status qn_node_fail(const qn_node *node, qn_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const qn_status same = qn_node_vfail(node->graph->ctx, node, status, format, args);
    va_end(args);
    return same;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

const qn_attr_spec *qn_op_attr(const qn_op *op, const char *name, int64_t version)
{
    const qn_attr_spec *found = NULL;
    for (size_t i = 0; i < op->n_attrs; i++) {
        if (strcmp(op->attrs[i].name, name) != 0)
            continue;
        found = &op->attrs[i];
        if (!found->until || version < found->until)
            break;
    }
    return found;
}

void *qn_attr_field(const qn_node *node, const qn_attr_spec *spec)
{
    return (char *)node->attrs + spec->offset;
}

/* Attribute structs start zeroed: lists, tensors, graphs and types are absent then. */
void qn_attr_set_default(void *attrs, const qn_attr_spec *spec)
{
    char *field = (char *)attrs + spec->offset;
    switch (spec->kind) {
    case QN_ATTR_INT:
    case QN_ATTR_ENUM: *(int64_t *)field = spec->int_default; break;
    case QN_ATTR_FLOAT: *(float *)field = spec->float_default; break;
    case QN_ATTR_STRING: *(const char **)field = spec->string_default; break;
    case QN_ATTR_INTS: *(qn_ints *)field = (qn_ints){NULL, 0}; break;
    case QN_ATTR_FLOATS: *(qn_floats *)field = (qn_floats){NULL, 0}; break;
    case QN_ATTR_STRINGS: *(qn_strings *)field = (qn_strings){NULL, 0}; break;
    case QN_ATTR_TENSOR: *(const qn_tensor **)field = NULL; break;
    case QN_ATTR_GRAPH: *(qn_graph **)field = NULL; break;
    case QN_ATTR_TYPE: *(const qn_type **)field = NULL; break;
    }
}

static bool string_is_default(const char *text, const char *standard)
{
    return text == standard || (text && standard && strcmp(text, standard) == 0);
}

bool qn_attr_is_default(const void *attrs, const qn_attr_spec *spec)
{
    const char *field = (const char *)attrs + spec->offset;
    switch (spec->kind) {
    case QN_ATTR_INT:
    case QN_ATTR_ENUM: return *(const int64_t *)field == spec->int_default;
    case QN_ATTR_FLOAT: return *(const float *)field == spec->float_default;
    case QN_ATTR_STRING:
        return string_is_default(*(const char *const *)field, spec->string_default);
    case QN_ATTR_INTS: return !((const qn_ints *)field)->at;
    case QN_ATTR_FLOATS: return !((const qn_floats *)field)->at;
    case QN_ATTR_STRINGS: return !((const qn_strings *)field)->at;
    case QN_ATTR_TENSOR: return !*(const qn_tensor *const *)field;
    case QN_ATTR_GRAPH: return !*(qn_graph *const *)field;
    case QN_ATTR_TYPE: return !*(const qn_type *const *)field;
    }
    return true;
}

qn_graph *qn_node_subgraph(const qn_node *node, size_t i)
{
    for (size_t a = 0; a < node->op->n_attrs; a++) {
        if (node->op->attrs[a].kind != QN_ATTR_GRAPH)
            continue;
        qn_graph *graph = *(qn_graph **)qn_attr_field(node, &node->op->attrs[a]);
        if (graph && i-- == 0)
            return graph;
    }
    return NULL;
}

/* ---- Making nodes ---------------------------------------------------------------------------- */

qn_status qn_node_add(qn_node **out, qn_graph *graph, const qn_op *op, const char *name,
                      int32_t n_in, int32_t n_out)
{
    QN_TRY(qn_graph_add_node(out, graph, name, n_in, n_out));
    (*out)->op = op;
    (*out)->attrs = qn_arena_alloc(graph->arena, op->attrs_size);
    QN_TRY_ALLOC(graph->ctx, (*out)->attrs);
    for (size_t i = 0; i < op->n_attrs; i++)
        qn_attr_set_default((*out)->attrs, &op->attrs[i]);
    return QN_OK;
}

qn_status qn_node_create(qn_node **out, qn_graph *graph, const qn_op *op, qn_node *before)
{
    QN_TRY(qn_node_add(out, graph, op, op->name, op->n_in, op->n_out));
    if (before)
        qn_node_move(*out, before);
    return QN_OK;
}

qn_status qn_node_build(qn_node **out, qn_graph *graph, const qn_node_spec *spec)
{
    const char *name = spec->name ? spec->name : spec->op->name;
    qn_value *value;
    QN_TRY(qn_node_add(out, graph, spec->op, name, spec->n_in, spec->op->n_out));
    for (int32_t i = 0; i < spec->n_in; i++)
        QN_TRY(qn_node_set_input(*out, i, spec->in[i]));
    QN_TRY(qn_value_create(&value, graph, (*out)->name));
    qn_node_set_output(*out, 0, value);
    if (spec->before)
        qn_node_move(*out, spec->before);
    return QN_OK;
}
