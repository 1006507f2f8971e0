/* ONNX nodes into nodes of the graph. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/onnx/onnx.h"

/* ---- Messages and names ---------------------------------------------------------------------- */

static qn_string first_output(const qn_proto_message *node)
{
    for (size_t i = 0; i < qn_proto_count(node, QN_ONNX_NODE_OUTPUT); i++) {
        const qn_string name = qn_proto_string_at(node, QN_ONNX_NODE_OUTPUT, i);
        if (name.length)
            return name;
    }
    return (qn_string){"", 0};
}

qn_onnx_label qn_onnx_node_label(const qn_proto_message *node)
{
    const qn_string type = qn_proto_string(node, QN_ONNX_NODE_OP_TYPE);
    qn_string name = qn_proto_string(node, QN_ONNX_NODE_NAME);
    const char *before = name.length ? "" : "of output ";
    qn_onnx_label label;
    if (name.length == 0)
        name = first_output(node);
    snprintf(label.text, sizeof label.text, "%s'%.*s' (%.*s)", before, (int)QN_MIN(name.length, 80),
             name.text, (int)QN_MIN(type.length, 40), type.text);
    return label;
}

static qn_status fail_node(const qn_onnx_scope *scope, const qn_proto_message *node,
                           qn_status status, const char *format, ...) QN_PRINTF(4, 5);

static qn_status fail_node(const qn_onnx_scope *scope, const qn_proto_message *node,
                           qn_status status, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qn_fail(scope->import->ctx, status, "node %s: %s", qn_onnx_node_label(node).text, what);
}

qn_status qn_onnx_node_name(const char **out, qn_onnx_scope *scope, const qn_proto_message *node)
{
    const qn_string own = qn_proto_string(node, QN_ONNX_NODE_NAME);
    const qn_string type = qn_proto_string(node, QN_ONNX_NODE_OP_TYPE);
    const qn_string output = first_output(node);
    const char *name;
    QN_TRY(qn_onnx_name(&name, scope->import, own));
    if (own.length == 0)
        name = qn_arena_format(&scope->import->tree.arena, "%.*s_%.*s", (int)type.length, type.text,
                               (int)QN_MIN(output.length, 1000), output.text);
    QN_TRY_ALLOC(scope->import->ctx, name);
    return qn_onnx_final_name(out, scope, name);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/* Slots of a field without the empty ones at the end. */
static size_t used_slots(const qn_proto_message *node, uint32_t field)
{
    size_t count = qn_proto_count(node, field);
    while (count && qn_proto_string_at(node, field, count - 1).length == 0)
        count--;
    return count;
}

static qn_status connect_inputs(qn_node *node, qn_onnx_scope *scope, const qn_proto_message *proto)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const char *name;
        qn_value *value;
        QN_TRY(qn_onnx_name(&name, scope->import,
                            qn_proto_string_at(proto, QN_ONNX_NODE_INPUT, (size_t)i)));
        if (*name == 0)
            continue;
        QN_TRY(qn_onnx_find(&value, scope, name));
        if (!value)
            return fail_node(scope, proto, QN_E_FORMAT, "nothing computes its input '%s'", name);
        if (value != &scope->import->absent)
            QN_TRY(qn_node_set_input(node, i, value));
    }
    return QN_OK;
}

static qn_status connect_outputs(qn_node *node, qn_onnx_scope *scope, const qn_proto_message *proto)
{
    for (int32_t i = 0; i < node->n_out; i++) {
        const char *name;
        qn_value *value;
        QN_TRY(qn_onnx_name(&name, scope->import,
                            qn_proto_string_at(proto, QN_ONNX_NODE_OUTPUT, (size_t)i)));
        if (*name == 0)
            continue;
        QN_TRY(qn_onnx_define_output(&value, scope, name));
        qn_node_set_output(node, i, value);
    }
    return QN_OK;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static qn_status find_operator(const qn_op **out, int64_t *version, qn_onnx_scope *scope,
                               const qn_proto_message *node)
{
    const char *domain, *type;
    QN_TRY(qn_onnx_name(&domain, scope->import, qn_proto_string(node, QN_ONNX_NODE_DOMAIN)));
    QN_TRY(qn_onnx_name(&type, scope->import, qn_proto_string(node, QN_ONNX_NODE_OP_TYPE)));
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    const qn_op *op = qn_op_find(domain, type);
    const char *shown = *domain ? domain : "ai.onnx";
    if (!op || strcmp(domain, "quench") == 0)
        return fail_node(scope, node, QN_E_UNSUPPORTED, "no operator '%s' of domain '%s' is known",
                         type, shown);
    *version = qn_onnx_opset_version(scope, domain);
    if (*version == 0 && *domain == 0)
        return fail_node(scope, node, QN_E_FORMAT, "the model imports no opset of domain '%s'",
                         shown);
    if (*version == 0) /* domains without opsets of their own */
        *version = op->since;
    if (*version < op->since || (op->until && *version >= op->until))
        return fail_node(scope, node, QN_E_UNSUPPORTED, "opset %lld of domain '%s' has no '%s'",
                         (long long)*version, shown, type);
    *out = op;
    return QN_OK;
}

static qn_status check_slots(const qn_op *op, qn_onnx_scope *scope, const qn_proto_message *node,
                             size_t n_in, size_t n_out)
{
    const bool open_in = op->n_in && op->in[op->n_in - 1].flags & QN_VARIADIC;
    const bool open_out = op->n_out && op->out[op->n_out - 1].flags & QN_VARIADIC;
    if ((n_in > (size_t)op->n_in && !open_in) || n_in > INT32_MAX / 2)
        return fail_node(scope, node, QN_E_FORMAT, "has %zu inputs, the operator takes %d", n_in,
                         op->n_in);
    if (n_out == 0)
        return fail_node(scope, node, QN_E_FORMAT, "has no outputs: take it out of the file");
    if ((n_out > (size_t)op->n_out && !open_out) || n_out > INT32_MAX / 2)
        return fail_node(scope, node, QN_E_FORMAT, "has %zu outputs, the operator makes %d", n_out,
                         op->n_out);
    return QN_OK;
}

static bool is_constant(const qn_proto_message *node)
{
    const qn_string type = qn_proto_string(node, QN_ONNX_NODE_OP_TYPE);
    const qn_string domain = qn_proto_string(node, QN_ONNX_NODE_DOMAIN);
    return type.length == 8 && memcmp(type.text, "Constant", 8) == 0 &&
           (domain.length == 0 || (domain.length == 7 && memcmp(domain.text, "ai.onnx", 7) == 0));
}

/* ONNX writes constants as initializers and as nodes; the graph knows one way. */
static qn_status add_constant(qn_onnx_scope *scope, const qn_proto_message *node)
{
    qn_onnx_import *import = scope->import;
    const char *name, *final;
    qn_value *value;
    if (qn_proto_count(node, QN_ONNX_NODE_OUTPUT) != 1)
        return fail_node(scope, node, QN_E_FORMAT, "a constant has one output");
    QN_TRY(qn_onnx_name(&name, import, qn_proto_string_at(node, QN_ONNX_NODE_OUTPUT, 0)));
    QN_TRY(qn_onnx_final_name(&final, scope, name));
    qn_tensor *tensor = qn_arena_alloc(import->arena, sizeof *tensor);
    QN_TRY_ALLOC(import->ctx, tensor);
    const qn_status status = qn_onnx_constant(tensor, scope, node);
    if (status != QN_OK)
        return qn_fail_within(import->ctx, status, "node %s", qn_onnx_node_label(node).text);
    QN_TRY(qn_value_constant(&value, scope->graph, final, tensor));
    QN_TRY(qn_onnx_text(&value->doc, import, qn_proto_string(node, QN_ONNX_NODE_DOC_STRING)));
    return qn_onnx_define(scope, name, value);
}

static qn_status add_node(qn_onnx_scope *scope, const qn_proto_message *proto)
{
    const qn_op *op = NULL;
    int64_t version = 0;
    const char *name;
    qn_node *node;
    const size_t n_in = used_slots(proto, QN_ONNX_NODE_INPUT);
    const size_t n_out = used_slots(proto, QN_ONNX_NODE_OUTPUT);
    QN_TRY(find_operator(&op, &version, scope, proto));
    QN_TRY(check_slots(op, scope, proto, n_in, n_out));
    QN_TRY(qn_onnx_node_name(&name, scope, proto));
    QN_TRY(qn_node_add(&node, scope->graph, op, name, (int32_t)n_in, (int32_t)n_out));
    QN_TRY(qn_onnx_set_opset(scope, node, version));
    QN_TRY(qn_onnx_metadata(&node->metadata, scope->import, proto, QN_ONNX_NODE_METADATA_PROPS));
    QN_TRY(
        qn_onnx_text(&node->doc, scope->import, qn_proto_string(proto, QN_ONNX_NODE_DOC_STRING)));
    QN_TRY(connect_inputs(node, scope, proto));
    const qn_status status = qn_onnx_attributes(node, scope, proto, version);
    if (status != QN_OK)
        return qn_fail_within(scope->import->ctx, status, "node '%s' (%s)", node->name, op->name);
    return connect_outputs(node, scope, proto);
}

qn_status qn_onnx_node(qn_onnx_scope *scope, const qn_proto_message *node)
{
    const qn_proto_message *function;
    QN_TRY(qn_onnx_function(&function, scope->import, node));
    if (function)
        return qn_onnx_inline(scope, node, function);
    return is_constant(node) ? add_constant(scope, node) : add_node(scope, node);
}
