/* Model-local functions are inlined where they are called. */
#include <string.h>

#include "import/onnx/onnx.h"

/* Nodes: functions that call others twice grow without bound. */
enum { MOST_INLINED = 1 << 18 };

/* ---- Finding --------------------------------------------------------------------------------- */

static qn_status function_key(const char **out, qn_onnx_import *import, qn_string domain,
                              qn_string name, qn_string overload)
{
    if (domain.length == 7 && memcmp(domain.text, "ai.onnx", 7) == 0)
        domain.length = 0;
    *out = qn_arena_format(&import->tree.arena, "%.*s:%.*s:%.*s", (int)domain.length, domain.text,
                           (int)name.length, name.text, (int)overload.length, overload.text);
    QN_TRY_ALLOC(import->ctx, *out);
    return QN_OK;
}

qn_status qn_onnx_add_functions(qn_onnx_import *import)
{
    const qn_proto_message *model = &import->tree.root;
    for (size_t i = 0; i < qn_proto_count(model, QN_ONNX_MODEL_FUNCTIONS); i++) {
        const qn_proto_message *function = qn_proto_message_at(model, QN_ONNX_MODEL_FUNCTIONS, i);
        const char *key;
        QN_TRY(function_key(&key, import, qn_proto_string(function, QN_ONNX_FUNCTION_DOMAIN),
                            qn_proto_string(function, QN_ONNX_FUNCTION_NAME),
                            qn_proto_string(function, QN_ONNX_FUNCTION_OVERLOAD)));
        if (qn_names_get(&import->functions, key))
            return qn_fail(import->ctx, QN_E_FORMAT, "the function '%s' is defined twice", key);
        QN_TRY(qn_names_set(&import->functions, key, (void *)(uintptr_t)function));
    }
    return QN_OK;
}

qn_status qn_onnx_function(const qn_proto_message **out, qn_onnx_import *import,
                           const qn_proto_message *node)
{
    const char *key;
    *out = NULL;
    if (import->functions.count == 0)
        return QN_OK;
    QN_TRY(function_key(&key, import, qn_proto_string(node, QN_ONNX_NODE_DOMAIN),
                        qn_proto_string(node, QN_ONNX_NODE_OP_TYPE),
                        qn_proto_string(node, QN_ONNX_NODE_OVERLOAD)));
    *out = qn_names_get(&import->functions, key);
    return QN_OK;
}

/* ---- Binding --------------------------------------------------------------------------------- */

static qn_status check_call(qn_onnx_scope *scope, const qn_proto_message *node,
                            const qn_proto_message *function)
{
    qn_context *ctx = scope->import->ctx;
    for (const qn_onnx_call *call = scope->call; call; call = call->caller) {
        if (call->function == function)
            return qn_fail(ctx, QN_E_FORMAT, "node %s: the function calls itself",
                           qn_onnx_node_label(node).text);
    }
    scope->import->inlined += qn_proto_count(function, QN_ONNX_FUNCTION_NODE);
    if (scope->import->inlined > MOST_INLINED)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "node %s: functions make more than %d nodes",
                       qn_onnx_node_label(node).text, MOST_INLINED);
    if (qn_proto_count(node, QN_ONNX_NODE_INPUT) >
            qn_proto_count(function, QN_ONNX_FUNCTION_INPUT) ||
        qn_proto_count(node, QN_ONNX_NODE_OUTPUT) >
            qn_proto_count(function, QN_ONNX_FUNCTION_OUTPUT))
        return qn_fail(ctx, QN_E_FORMAT, "node %s: it has more inputs or outputs than its function",
                       qn_onnx_node_label(node).text);
    return QN_OK;
}

/* Name number i of a repeated field; "" behind the last. */
static qn_status name_at(const char **out, qn_onnx_import *import, const qn_proto_message *message,
                         uint32_t field, size_t i)
{
    *out = "";
    if (i >= qn_proto_count(message, field))
        return QN_OK;
    return qn_onnx_name(out, import, qn_proto_string_at(message, field, i));
}

static qn_status bind_inputs(qn_onnx_scope *inner, qn_onnx_scope *scope,
                             const qn_proto_message *node)
{
    qn_onnx_import *import = scope->import;
    const qn_proto_message *function = inner->call->function;
    for (size_t i = 0; i < qn_proto_count(function, QN_ONNX_FUNCTION_INPUT); i++) {
        const char *formal, *actual;
        qn_value *value = &import->absent;
        QN_TRY(name_at(&formal, import, function, QN_ONNX_FUNCTION_INPUT, i));
        QN_TRY(name_at(&actual, import, node, QN_ONNX_NODE_INPUT, i));
        if (*actual)
            QN_TRY(qn_onnx_find(&value, scope, actual));
        if (!value)
            return qn_fail(import->ctx, QN_E_FORMAT, "node %s: nothing computes its input '%s'",
                           qn_onnx_node_label(node).text, actual);
        QN_TRY(qn_onnx_define(inner, formal, value));
    }
    return QN_OK;
}

/* Values that become outputs get the names that the caller has for them. */
static qn_status name_outputs(qn_onnx_call *call, const qn_onnx_scope *inner,
                              const qn_onnx_scope *scope, const qn_proto_message *node)
{
    qn_onnx_import *import = scope->import;
    for (size_t i = 0; i < qn_proto_count(node, QN_ONNX_NODE_OUTPUT); i++) {
        const char *formal, *actual, *final;
        QN_TRY(name_at(&formal, import, call->function, QN_ONNX_FUNCTION_OUTPUT, i));
        QN_TRY(name_at(&actual, import, node, QN_ONNX_NODE_OUTPUT, i));
        if (*actual == 0 || qn_names_get(&inner->values, formal))
            continue;
        QN_TRY(qn_onnx_final_name(&final, scope, actual));
        QN_TRY(qn_names_set(&call->renamed, formal, (void *)(uintptr_t) final));
    }
    return QN_OK;
}

static qn_status add_argument(qn_onnx_call *call, qn_onnx_scope *scope,
                              const qn_proto_message *node, const char *name)
{
    for (size_t i = 0; i < qn_proto_count(node, QN_ONNX_NODE_ATTRIBUTE); i++) {
        qn_onnx_argument argument;
        QN_TRY(qn_onnx_resolve(&argument, scope,
                               qn_proto_message_at(node, QN_ONNX_NODE_ATTRIBUTE, i)));
        if (argument.attribute && strcmp(argument.name, name) == 0)
            call->arguments[call->n_arguments++] = argument;
    }
    return QN_OK;
}

/* Attributes of the call, and the function's own values for those that it lacks. */
static qn_status bind_arguments(qn_onnx_call *call, qn_onnx_scope *scope,
                                const qn_proto_message *node)
{
    qn_onnx_import *import = scope->import;
    const qn_proto_message *function = call->function;
    const size_t plain = qn_proto_count(function, QN_ONNX_FUNCTION_ATTRIBUTE);
    const size_t standard = qn_proto_count(function, QN_ONNX_FUNCTION_ATTRIBUTE_PROTO);
    const size_t room = (plain + standard) * (qn_proto_count(node, QN_ONNX_NODE_ATTRIBUTE) + 1);
    call->arguments = qn_arena_array(&import->tree.arena, room, sizeof *call->arguments);
    QN_TRY_ALLOC(import->ctx, call->arguments);
    for (size_t i = 0; i < standard; i++) {
        const qn_proto_message *attribute =
            qn_proto_message_at(function, QN_ONNX_FUNCTION_ATTRIBUTE_PROTO, i);
        const char *name;
        QN_TRY(qn_onnx_name(&name, import, qn_proto_string(attribute, QN_ONNX_ATTRIBUTE_NAME)));
        call->arguments[call->n_arguments++] = (qn_onnx_argument){name, attribute, NULL};
        QN_TRY(add_argument(call, scope, node, name)); /* the later entry counts */
    }
    for (size_t i = 0; i < plain; i++) {
        const char *name;
        QN_TRY(name_at(&name, import, function, QN_ONNX_FUNCTION_ATTRIBUTE, i));
        QN_TRY(add_argument(call, scope, node, name));
    }
    return QN_OK;
}

/* An output that is an input of the function, or another output too, gets a value of its own. */
static qn_status copy_value(qn_value **out, qn_graph *graph, const char *name, qn_value *value)
{
    const qn_node_spec spec = {.op = qn_op_find("", "Identity"), .in = {value}, .n_in = 1};
    qn_node *node;
    if (!spec.op)
        return qn_fail(graph->ctx, QN_E_UNSUPPORTED, "operator 'Identity' is not known");
    QN_TRY(qn_node_build(&node, graph, &spec));
    *out = node->out[0];
    return qn_value_rename(*out, name);
}

static qn_status bind_outputs(qn_onnx_scope *inner, qn_onnx_scope *scope,
                              const qn_proto_message *node)
{
    qn_onnx_import *import = scope->import;
    for (size_t i = 0; i < qn_proto_count(node, QN_ONNX_NODE_OUTPUT); i++) {
        const char *formal, *actual, *final;
        QN_TRY(name_at(&formal, import, inner->call->function, QN_ONNX_FUNCTION_OUTPUT, i));
        QN_TRY(name_at(&actual, import, node, QN_ONNX_NODE_OUTPUT, i));
        if (*actual == 0)
            continue;
        qn_value *value = qn_names_get(&inner->values, formal);
        if (!value || value == &import->absent)
            return qn_fail(import->ctx, QN_E_FORMAT,
                           "node %s: its function does not compute the output '%s'",
                           qn_onnx_node_label(node).text, formal);
        QN_TRY(qn_onnx_final_name(&final, scope, actual));
        if (strcmp(value->name, final) != 0)
            QN_TRY(copy_value(&value, scope->graph, final, value));
        QN_TRY(qn_onnx_define(scope, actual, value));
    }
    return QN_OK;
}

/* ---- Inlining -------------------------------------------------------------------------------- */

static qn_status inline_body(qn_onnx_call *call, qn_onnx_scope *inner, qn_onnx_scope *scope,
                             const qn_proto_message *node)
{
    qn_onnx_import *import = scope->import;
    if (qn_proto_count(call->function, QN_ONNX_FUNCTION_OPSET_IMPORT)) {
        qn_opset *opsets = NULL;
        QN_TRY(qn_onnx_opsets(&opsets, &inner->n_opsets, import, call->function,
                              QN_ONNX_FUNCTION_OPSET_IMPORT));
        inner->opsets = opsets;
    }
    QN_TRY(bind_inputs(inner, scope, node));
    QN_TRY(name_outputs(call, inner, scope, node));
    QN_TRY(bind_arguments(call, scope, node));
    QN_TRY(qn_onnx_nodes(inner, call->function, QN_ONNX_FUNCTION_NODE));
    return bind_outputs(inner, scope, node);
}

qn_status qn_onnx_inline(qn_onnx_scope *scope, const qn_proto_message *node,
                         const qn_proto_message *function)
{
    qn_context *ctx = scope->import->ctx;
    QN_TRY(check_call(scope, node, function));
    QN_TRY(qn_onnx_enter(scope->import));
    qn_onnx_call call = {.caller = scope->call, .function = function};
    QN_TRY(qn_onnx_node_name(&call.prefix, scope, node));
    qn_onnx_scope inner = {.import = scope->import,
                           .graph = scope->graph,
                           .node_opsets = scope->node_opsets,
                           .opsets = scope->opsets,
                           .n_opsets = scope->n_opsets,
                           .call = &call,
                           .body = &call};
    qn_names_init(&call.renamed, ctx);
    qn_names_init(&inner.values, ctx);
    qn_names_init(&inner.declared, ctx);
    const qn_status status = inline_body(&call, &inner, scope, node);
    qn_names_free(&call.renamed);
    qn_names_free(&inner.values);
    qn_names_free(&inner.declared);
    scope->import->depth--;
    return status;
}
