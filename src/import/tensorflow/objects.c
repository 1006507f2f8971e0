/* Objects of a SavedModel and of its checkpoint, matched by the names of their members from the
 * root on: so a variable finds its key. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

static bool same(qn_string a, qn_string b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.text, b.text, a.length) == 0);
}

/* The object of the checkpoint that a member leads to; -1: none. */
static int64_t member(const qn_proto_message *object, qn_string name)
{
    for (size_t i = 0; i < qn_proto_count(object, QN_TF_TRACKABLE_CHILD); i++) {
        const qn_proto_message *child = qn_proto_message_at(object, QN_TF_TRACKABLE_CHILD, i);
        if (same(qn_proto_string(child, QN_TF_CHILD_NAME), name))
            return qn_proto_int(child, QN_TF_CHILD_ID, 0);
    }
    return -1;
}

static qn_string key_of(const qn_proto_message *object)
{
    static const qn_string value = {"VARIABLE_VALUE", 14};
    for (size_t i = 0; i < qn_proto_count(object, QN_TF_TRACKABLE_ATTRIBUTE); i++) {
        const qn_proto_message *a = qn_proto_message_at(object, QN_TF_TRACKABLE_ATTRIBUTE, i);
        if (same(qn_proto_string(a, QN_TF_SERIALIZED_NAME), value))
            return qn_proto_string(a, QN_TF_SERIALIZED_KEY);
    }
    return (qn_string){NULL, 0};
}

typedef struct match {
    qn_tf_objects *out;
    qn_tf_import *import;
    const qn_proto_message *saved, *kept;
    /* Objects of the SavedModel to be looked at, and those of the checkpoint that they are. */
    int64_t *queue, *twin;
    size_t n_queue;
    bool *seen;
} match;

static qn_status take_variable(const match *m, size_t id, const qn_proto_message *object,
                               const qn_proto_message *twin)
{
    const qn_proto_message *variable = qn_proto_get_message(object, QN_TF_OBJECT_VARIABLE);
    const qn_string key = key_of(twin);
    qn_arena *arena = &m->import->arena;
    if (!variable || !key.length)
        return QN_OK;
    const qn_string text = qn_proto_string(variable, QN_TF_SAVED_VARIABLE_NAME);
    m->out->keys[id] = qn_arena_text(arena, key.text, key.length);
    const char *name = qn_arena_text(arena, text.text ? text.text : "", text.length);
    QN_TRY_ALLOC(m->import->ctx, m->out->keys[id]);
    QN_TRY_ALLOC(m->import->ctx, name);
    return qn_names_set(&m->out->by_name, name, (void *)(uintptr_t)m->out->keys[id]);
}

static qn_status visit(match *m, size_t at)
{
    const size_t id = (size_t)m->queue[at];
    const qn_proto_message *object = qn_proto_message_at(m->saved, QN_TF_OBJECTS_NODE, id);
    const qn_proto_message *twin =
        qn_proto_message_at(m->kept, QN_TF_CHECKPOINT_NODE, (size_t)m->twin[at]);
    const size_t n_kept = qn_proto_count(m->kept, QN_TF_CHECKPOINT_NODE);
    QN_TRY(take_variable(m, id, object, twin));
    for (size_t i = 0; i < qn_proto_count(object, QN_TF_OBJECT_CHILD); i++) {
        const qn_proto_message *child = qn_proto_message_at(object, QN_TF_OBJECT_CHILD, i);
        const int64_t to = qn_proto_int(child, QN_TF_CHILD_ID, 0);
        const int64_t other = member(twin, qn_proto_string(child, QN_TF_CHILD_NAME));
        if (to < 0 || (size_t)to >= m->out->count || other < 0 || (size_t)other >= n_kept ||
            m->seen[to])
            continue;
        m->seen[to] = true;
        m->queue[m->n_queue] = to;
        m->twin[m->n_queue++] = other;
    }
    return QN_OK;
}

static qn_status walk(match *m)
{
    qn_arena *arena = &m->import->arena;
    const size_t count = m->out->count;
    m->queue = qn_arena_array(arena, count + 1, sizeof *m->queue);
    m->twin = qn_arena_array(arena, count + 1, sizeof *m->twin);
    m->seen = qn_arena_array(arena, count + 1, sizeof *m->seen);
    if (!m->queue || !m->twin || !m->seen)
        return qn_fail_nomem(m->import->ctx);
    m->seen[0] = true;
    m->n_queue = 1;
    for (size_t i = 0; i < m->n_queue; i++)
        QN_TRY(visit(m, i));
    return QN_OK;
}

qn_status qn_tf_objects_match(qn_tf_objects *out, qn_tf_import *import,
                              const qn_proto_message *saved)
{
    qn_string bytes;
    match m = {.out = out, .import = import, .saved = saved, .kept = &out->checkpoint.root};
    memset(out, 0, sizeof *out);
    qn_names_init(&out->by_name, import->ctx);
    qn_names_init(&out->by_node, import->ctx);
    qn_proto_tree_init(&out->checkpoint, import->ctx, &qn_tf_checkpoint_schema);
    import->objects = out;
    out->count = qn_proto_count(saved, QN_TF_OBJECTS_NODE);
    out->keys = qn_arena_array(&import->arena, out->count + 1, sizeof *out->keys);
    QN_TRY_ALLOC(import->ctx, out->keys);
    QN_TRY(qn_tf_variables_text(&bytes, import, "_CHECKPOINTABLE_OBJECT_GRAPH"));
    if (!bytes.length || out->count == 0)
        return QN_OK;
    QN_TRY(qn_proto_parse_wire(&out->checkpoint, bytes.text, bytes.length));
    return qn_proto_count(m.kept, QN_TF_CHECKPOINT_NODE) ? walk(&m) : QN_OK;
}

void qn_tf_objects_free(qn_tf_objects *objects)
{
    if (!objects)
        return;
    qn_names_free(&objects->by_name);
    qn_names_free(&objects->by_node);
    qn_proto_tree_free(&objects->checkpoint);
}

const qn_proto_message *qn_tf_concrete(const qn_proto_message *saved, const char *name)
{
    const qn_string wanted = {name, strlen(name)};
    for (size_t i = 0; i < qn_proto_count(saved, QN_TF_OBJECTS_FUNCTION); i++) {
        const qn_proto_message *entry = qn_proto_message_at(saved, QN_TF_OBJECTS_FUNCTION, i);
        if (same(qn_proto_string(entry, QN_TF_CONCRETE_KEY), wanted))
            return qn_proto_get_message(entry, QN_TF_CONCRETE_VALUE);
    }
    return NULL;
}

/* The last inputs of a call are what the function captured, in its order. */
static qn_status bind_call(const qn_tf_node *call, const qn_proto_message *saved)
{
    qn_tf_objects *objects = call->import->objects;
    const char *function = qn_tf_attr_function(call, "f");
    const qn_proto_message *concrete = function ? qn_tf_concrete(saved, function) : NULL;
    const size_t count = qn_proto_count(concrete, QN_TF_CONCRETE_BOUND);
    int64_t id = -1;
    if (!concrete || count > call->n_in)
        return QN_OK;
    qn_proto_numbers ids = qn_proto_numbers_of(concrete, QN_TF_CONCRETE_BOUND);
    for (size_t i = call->n_in - count; qn_proto_next_int(&id, &ids); i++) {
        const qn_tf_node *from = call->from[i];
        if (from && id >= 0 && (size_t)id < objects->count && objects->keys[id])
            QN_TRY(
                qn_names_set(&objects->by_node, from->own, (void *)(uintptr_t)objects->keys[id]));
    }
    return QN_OK;
}

qn_status qn_tf_objects_bind(qn_tf_scope *scope, const qn_proto_message *saved)
{
    for (size_t i = 0; i < scope->n_nodes; i++)
        QN_TRY(bind_call(&scope->nodes[i], saved));
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* The key of a variable by its name: as the objects have it, or the name itself in old files. */
static const char *key_by_name(const qn_tf_node *node)
{
    const qn_tf_import *import = node->import;
    const qn_string text = qn_proto_string(qn_tf_attr(node, "shared_name"), QN_TF_VALUE_S);
    const char *name =
        text.length ? qn_arena_text(&node->import->arena, text.text, text.length) : node->own;
    const char *key = import->objects ? qn_names_get(&import->objects->by_node, node->own) : NULL;
    if (!key && name && import->objects)
        key = qn_names_get(&import->objects->by_name, name);
    return key ? key : name;
}

static qn_status fail_missing(const qn_tf_node *node, const char *key)
{
    const bool alone = node->import->tree.root.schema == &qn_tf_graph_schema;
    return qn_tf_fail(node, QN_E_UNSUPPORTED,
                      alone ? "the contents of the variable '%s' are in no file: freeze the graph"
                            : "the variable '%s' is not in the files beside: is the folder "
                              "'variables' missing?",
                      key);
}

qn_status qn_tf_var_handle(qn_tf_node *node)
{
    const qn_tf_thing thing = {.kind = QN_TF_VARIABLE, .key = key_by_name(node)};
    QN_TRY_ALLOC(node->import->ctx, thing.key);
    if (!qn_tf_variables_has(node->import->variables, thing.key))
        return fail_missing(node, thing.key);
    return qn_tf_set_thing(node->import, node->name, &thing);
}

qn_status qn_tf_variable(qn_tf_node *node)
{
    qn_value *value;
    const char *key = key_by_name(node);
    QN_TRY_ALLOC(node->import->ctx, key);
    if (!qn_tf_variables_has(node->import->variables, key))
        return fail_missing(node, key);
    QN_TRY(qn_tf_variables_read(&value, node->import, key));
    return qn_tf_out(node, 0, value, QN_ORDER_OWN);
}

static qn_status contents_of(qn_value **out, const qn_tf_node *node)
{
    const qn_tf_thing *thing = node->n_in ? qn_tf_get_thing(node->import, node->in[0]) : NULL;
    if (thing && thing->kind == QN_TF_VARIABLE)
        return qn_tf_variables_read(out, node->import, thing->key);
    /* Frozen functions have constants in the place of variables. */
    return qn_tf_in(out, node, 0);
}

qn_status qn_tf_read_variable(qn_tf_node *node)
{
    qn_value *value;
    QN_TRY(contents_of(&value, node));
    return qn_tf_out(node, 0, value, QN_ORDER_OWN);
}

qn_status qn_tf_resource_gather(qn_tf_node *node)
{
    qn_value *rows, *indices, *y;
    if (qn_tf_attr_int(node, "batch_dims", 0))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "batch_dims");
    QN_TRY(contents_of(&rows, node));
    QN_TRY(qn_tf_in(&indices, node, 1));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_Gather, QN_INPUTS(rows, indices),
                          QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}
