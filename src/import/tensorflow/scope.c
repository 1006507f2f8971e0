/* The nodes of a graph or function, and the names that values go by. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* Functions and loops may lie this deep in one another. */
enum { MOST_DEPTH = 32 };

qn_status qn_tf_enter(qn_tf_import *import)
{
    if (import->depth >= MOST_DEPTH)
        return qn_graph_builder_fail(&import->builder, QN_E_FORMAT,
                                     "functions or loops lie more than %d deep", MOST_DEPTH);
    import->depth++;
    return QN_OK;
}

/* ---- References ------------------------------------------------------------------------------ */

/* "name", "name:1" of graphs, "name:output:1" of functions: the three parts. */
typedef struct reference {
    qn_string name, output;
    int64_t index;
} reference;

static qn_string cut(qn_string *rest)
{
    const char *colon = rest->length ? memchr(rest->text, ':', rest->length) : NULL;
    const size_t length = colon ? (size_t)(colon - rest->text) : rest->length;
    const qn_string part = {rest->text, length};
    const size_t used = colon ? length + 1 : length;
    if (used) /* an empty text may be NULL */
        *rest = (qn_string){rest->text + used, rest->length - used};
    return part;
}

static int64_t number_of(qn_string digits)
{
    int64_t number = 0;
    for (size_t i = 0; i < digits.length && number < 1 << 20; i++) {
        if (digits.text[i] < '0' || digits.text[i] > '9')
            return 0;
        number = number * 10 + (digits.text[i] - '0');
    }
    return number;
}

static reference parse(qn_string text)
{
    reference r = {.index = 0};
    qn_string rest = text;
    if (rest.length && rest.text[0] == '^')
        rest = (qn_string){rest.text + 1, rest.length - 1};
    r.name = cut(&rest);
    const qn_string middle = cut(&rest);
    if (rest.length) {
        r.output = middle;
        r.index = number_of(rest);
    } else {
        r.index = number_of(middle);
    }
    return r;
}

static bool is_word(const char *word, size_t length, qn_string text)
{
    return text.length == length && memcmp(word, text.text, length) == 0;
}

/* The number of an output of a function's node: behind those of the names before it, each of which
 * has one tensor. */
static int64_t port_of(const qn_tf_op *op, const reference *r)
{
    int64_t before = 0;
    const char *at = op ? op->outputs : NULL;
    while (at && r->output.length) {
        const char *comma = strchr(at, ',');
        const size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (is_word(at, length, r->output))
            return before + r->index;
        before++;
        at = comma ? comma + 1 : NULL;
    }
    return r->index;
}

static const char *text_of(qn_tf_import *import, qn_string text)
{
    return qn_arena_text(&import->arena, text.text ? text.text : "", text.length);
}

qn_tf_node *qn_tf_scope_node(const qn_tf_scope *scope, const char *text)
{
    const reference r = parse((qn_string){text, strlen(text)});
    const char *name = text_of(scope->import, r.name);
    return name ? qn_names_get(&scope->by_name, name) : NULL;
}

qn_status qn_tf_scope_value(const char **out, const qn_tf_scope *scope, qn_string text)
{
    qn_tf_import *import = scope->import;
    const reference r = parse(text);
    const char *name = text_of(import, r.name);
    QN_TRY_ALLOC(import->ctx, name);
    const qn_tf_node *node = qn_names_get(&scope->by_name, name);
    const int64_t port = port_of(node ? node->op : NULL, &r);
    *out = port ? qn_arena_format(&import->arena, "%s%s:%lld", scope->prefix, name, (long long)port)
                : qn_arena_format(&import->arena, "%s%s", scope->prefix, name);
    QN_TRY_ALLOC(import->ctx, *out);
    return QN_OK;
}

const char *qn_tf_output_name(const qn_tf_node *node, size_t port)
{
    return port ? qn_arena_format(&node->import->arena, "%s:%zu", node->name, port) : node->name;
}

const char *qn_tf_fresh(qn_tf_import *import)
{
    return qn_arena_format(&import->arena, "%%%llu", (unsigned long long)import->made++);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static qn_status read_node(qn_tf_node *node, qn_tf_scope *scope, const qn_proto_message *proto)
{
    qn_tf_import *import = scope->import;
    *node = (qn_tf_node){.import = import, .scope = scope, .proto = proto};
    node->own = text_of(import, qn_proto_string(proto, QN_TF_NODE_NAME));
    node->type = text_of(import, qn_proto_string(proto, QN_TF_NODE_OP));
    QN_TRY_ALLOC(import->ctx, node->own);
    QN_TRY_ALLOC(import->ctx, node->type);
    node->op = qn_tf_op_find(node->type);
    node->name = qn_arena_format(&import->builder.model->arena, "%s%s", scope->prefix, node->own);
    QN_TRY_ALLOC(import->ctx, node->name);
    if (qn_names_get(&scope->by_name, node->own))
        return qn_graph_builder_fail(&import->builder, QN_E_FORMAT, "two nodes are called '%s'",
                                     node->own);
    return qn_names_set(&scope->by_name, node->own, node);
}

static qn_status connect(qn_tf_node *node)
{
    qn_tf_import *import = node->import;
    const size_t count = qn_proto_count(node->proto, QN_TF_NODE_INPUT);
    node->in = qn_arena_array(&import->arena, count + 1, sizeof *node->in);
    node->from = qn_arena_array(&import->arena, count + 1, sizeof(qn_tf_node *));
    QN_TRY_ALLOC(import->ctx, node->in);
    QN_TRY_ALLOC(import->ctx, node->from);
    for (size_t i = 0; i < count; i++) {
        const qn_string text = qn_proto_string_at(node->proto, QN_TF_NODE_INPUT, i);
        if (text.length && text.text[0] == '^')
            continue;
        const reference r = parse(text);
        const char *name = text_of(import, r.name);
        QN_TRY_ALLOC(import->ctx, name);
        node->from[node->n_in] = qn_names_get(&node->scope->by_name, name);
        QN_TRY(qn_tf_scope_value(&node->in[node->n_in++], node->scope, text));
    }
    return QN_OK;
}

qn_status qn_tf_scope_open(qn_tf_scope **out, qn_tf_import *import, const qn_proto_message *message,
                           uint32_t nodes, const char *prefix)
{
    const size_t count = qn_proto_count(message, nodes);
    qn_tf_scope *scope = qn_arena_alloc(&import->arena, sizeof *scope);
    *out = scope;
    QN_TRY_ALLOC(import->ctx, scope);
    *scope = (qn_tf_scope){.import = import, .prefix = prefix};
    qn_names_init(&scope->by_name, import->ctx);
    scope->nodes = qn_arena_array(&import->arena, count + 1, sizeof *scope->nodes);
    QN_TRY_ALLOC(import->ctx, scope->nodes);
    for (size_t i = 0; i < count; i++, scope->n_nodes++)
        QN_TRY(read_node(&scope->nodes[i], scope, qn_proto_message_at(message, nodes, i)));
    for (size_t i = 0; i < count; i++)
        QN_TRY(connect(&scope->nodes[i]));
    return qn_tf_loops_find(scope);
}

void qn_tf_scope_close(qn_tf_scope *scope)
{
    if (scope)
        qn_names_free(&scope->by_name);
}

/* ---- What names mean ------------------------------------------------------------------------- */

qn_tf_thing *qn_tf_get_thing(const qn_tf_import *import, const char *name)
{
    return qn_names_get(&import->things, name);
}

bool qn_tf_is(const qn_tf_import *import, const char *name, qn_tf_kind kind)
{
    const qn_tf_thing *thing = qn_tf_get_thing(import, name);
    return thing && thing->kind == kind;
}

qn_status qn_tf_set_thing(qn_tf_import *import, const char *name, const qn_tf_thing *thing)
{
    qn_tf_thing *kept = qn_arena_copy(&import->arena, thing, sizeof *thing);
    QN_TRY_ALLOC(import->ctx, kept);
    qn_names_remove(&import->layouts.named, name);
    return qn_names_set(&import->things, name, kept);
}

qn_status qn_tf_alias(qn_tf_import *import, const char *name, const char *as)
{
    qn_tf_thing *thing = qn_tf_get_thing(import, as);
    void *held = qn_names_get(&import->layouts.named, as);
    if (thing) {
        qn_names_remove(&import->layouts.named, name);
        return qn_names_set(&import->things, name, thing);
    }
    if (!held)
        return qn_graph_builder_fail(&import->builder, QN_E_FORMAT, "nothing computes '%s'", as);
    qn_names_remove(&import->things, name);
    return qn_names_set(&import->layouts.named, name, held);
}
