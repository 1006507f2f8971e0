/* Models, graphs, values and nodes: made, looked up and edited. */
#include "ir/graph.h"

#include <string.h>

/* ---- Model and graph ------------------------------------------------------------------------- */

qn_status qn_model_create(qn_model **out, qn_context *ctx)
{
    *out = NULL;
    qn_model *model = qn_alloc_zero(ctx, 1, sizeof *model);
    QN_TRY_ALLOC(ctx, model);
    model->ctx = ctx;
    atomic_init(&model->references, 1);
    qn_arena_init(&model->arena, &ctx->allocator);
    const qn_status status = qn_graph_create(&model->graph, model, "main");
    if (status != QN_OK) {
        qn_model_free(model);
        return status;
    }
    *out = model;
    return QN_OK;
}

qn_status qn_model_set_metadata(qn_model *model, const char *key, const char *value)
{
    const qn_metadata old = model->metadata;
    qn_metadata_entry *pairs = qn_arena_array(&model->arena, old.count + 1, sizeof *pairs);
    char *copy = qn_arena_text(&model->arena, value, strlen(value));
    size_t at = old.count;
    if (!pairs || !copy)
        return qn_fail_nomem(model->ctx);
    for (size_t i = 0; i < old.count; i++) {
        pairs[i] = old.at[i];
        if (strcmp(pairs[i].key, key) == 0)
            at = i;
    }
    pairs[at] = (qn_metadata_entry){key, copy};
    model->metadata = (qn_metadata){pairs, QN_MAX(old.count, at + 1)};
    return QN_OK;
}

const char *qn_model_metadata(const qn_model *model, const char *key)
{
    const char *value = NULL;
    for (size_t i = 0; i < model->metadata.count && !value; i++) {
        if (strcmp(model->metadata.at[i].key, key) == 0)
            value = model->metadata.at[i].value;
    }
    return value;
}

int64_t qn_model_opset(const qn_model *model, const char *domain)
{
    for (size_t i = 0; i < model->n_opsets; i++) {
        if (strcmp(model->opsets[i].domain, domain) == 0)
            return model->opsets[i].version;
    }
    return 0;
}

qn_status qn_model_set_opset(qn_model *model, const char *domain, int64_t version)
{
    qn_opset *fresh = qn_arena_array(&model->arena, model->n_opsets + 1, sizeof *fresh);
    size_t count = 0;
    QN_TRY_ALLOC(model->ctx, fresh);
    for (size_t i = 0; i < model->n_opsets; i++) {
        if (strcmp(model->opsets[i].domain, domain) != 0)
            fresh[count++] = model->opsets[i];
    }
    if (version > 0)
        fresh[count++] = (qn_opset){domain, version};
    model->opsets = fresh;
    model->n_opsets = count;
    return QN_OK;
}

static void graph_release(qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_values; i++)
        qn_free(graph->ctx, graph->values[i]->users);
    qn_free(graph->ctx, graph->values);
    qn_free(graph->ctx, graph->inputs);
    qn_free(graph->ctx, graph->outputs);
    qn_free(graph->ctx, graph->captures);
    qn_names_free(&graph->by_name);
    qn_names_free(&graph->node_names);
}

void qn_model_free(qn_model *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) > 1)
        return;
    qn_context *ctx = model->ctx;
    for (size_t i = 0; i < model->n_blocks; i++)
        qn_free_aligned(&ctx->allocator, model->blocks[i]);
    qn_free(ctx, model->blocks);
    qn_model_free(model->origin);
    for (size_t i = 0; i < model->n_graphs; i++)
        graph_release(model->graphs[i]);
    for (size_t i = 0; i < model->n_maps; i++)
        qn_map_close(&model->maps[i]);
    qn_free(ctx, model->graphs);
    qn_free(ctx, model->maps);
    qn_arena_free(&model->arena);
    qn_free(ctx, model);
}

qn_model *qn_model_retain(qn_model *model)
{
    atomic_fetch_add(&model->references, 1);
    return model;
}

qn_status qn_model_tensor(qn_tensor **out, qn_model *model, const qn_type *type)
{
    qn_context *ctx = model->ctx;
    qn_tensor *tensor = qn_arena_alloc(&model->arena, sizeof *tensor);
    QN_TRY_ALLOC(ctx, tensor);
    size_t bytes;
    if (!qn_type_is_static(type, tensor->dims) ||
        !qn_tensor_bytes(&bytes, type->dtype, type->rank, tensor->dims))
        return qn_fail(ctx, QN_E_INVALID, "a constant needs known dimensions");
    QN_TRY_GROW(ctx, model->blocks, model->blocks_capacity, model->n_blocks + 1);
    tensor->dtype = type->dtype;
    tensor->rank = type->rank;
    tensor->data = qn_alloc_aligned(&ctx->allocator, bytes);
    if (!tensor->data)
        return qn_fail_bytes(ctx, bytes, "a constant");
    model->blocks[model->n_blocks++] = tensor->data;
    *out = tensor;
    return QN_OK;
}

void qn_model_release(qn_model *model, const qn_tensor *tensor)
{
    for (size_t i = 0; i < model->n_blocks; i++) {
        if (model->blocks[i] == tensor->data) {
            qn_free_aligned(&model->ctx->allocator, tensor->data);
            model->blocks[i] = model->blocks[--model->n_blocks];
            return;
        }
    }
    size_t bytes;
    if (!qn_tensor_bytes(&bytes, tensor->dtype, tensor->rank, tensor->dims))
        return;
    for (; model; model = model->origin) {
        for (size_t i = 0; i < model->n_maps; i++)
            qn_map_release_pages(&model->maps[i], tensor->data, bytes);
    }
}

qn_status qn_graph_create(qn_graph **out, qn_model *model, const char *name)
{
    qn_context *ctx = model->ctx;
    qn_graph *graph = qn_arena_alloc(&model->arena, sizeof *graph);
    QN_TRY_ALLOC(ctx, graph);
    graph->ctx = ctx;
    graph->arena = &model->arena;
    graph->model = model;
    graph->name = qn_arena_text(&model->arena, name, strlen(name));
    QN_TRY_ALLOC(ctx, graph->name);
    qn_names_init(&graph->by_name, ctx);
    qn_names_init(&graph->node_names, ctx);
    QN_TRY_GROW(ctx, model->graphs, model->graphs_capacity, model->n_graphs + 1);
    model->graphs[model->n_graphs++] = graph;
    *out = graph;
    return QN_OK;
}

static qn_status push_value(qn_graph *graph, qn_value ***list, size_t *count, size_t *capacity,
                            qn_value *value)
{
    QN_TRY_GROW(graph->ctx, *list, *capacity, *count + 1);
    (*list)[(*count)++] = value;
    return QN_OK;
}

qn_status qn_graph_add_input(qn_graph *graph, qn_value *value)
{
    QN_TRY(push_value(graph, &graph->inputs, &graph->n_inputs, &graph->inputs_capacity, value));
    value->is_input = true;
    return QN_OK;
}

qn_status qn_graph_add_output(qn_graph *graph, qn_value *value)
{
    QN_TRY(push_value(graph, &graph->outputs, &graph->n_outputs, &graph->outputs_capacity, value));
    value->is_output = true;
    return QN_OK;
}

void qn_graph_clear_outputs(qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_outputs; i++)
        graph->outputs[i]->is_output = false;
    graph->n_outputs = 0;
}

qn_status qn_graph_add_capture(qn_graph *graph, qn_value *inner, int32_t slot)
{
    QN_TRY_GROW(graph->ctx, graph->captures, graph->captures_capacity, graph->n_captures + 1);
    graph->captures[graph->n_captures++] = (qn_capture){inner, slot};
    inner->is_capture = true;
    return QN_OK;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* `wanted`, or "wanted_1", "wanted_2", ... when it is taken in `names`. NULL: out of memory. */
static const char *unique_name(qn_graph *graph, const qn_names *names, const char *wanted)
{
    if (!qn_names_get(names, wanted))
        return qn_arena_text(graph->arena, wanted, strlen(wanted));
    for (;;) {
        const char *name = qn_arena_format(graph->arena, "%s_%llu", wanted,
                                           (unsigned long long)++graph->made.names);
        if (!name || !qn_names_get(names, name))
            return name;
    }
}

qn_value *qn_graph_value(const qn_graph *graph, const char *name)
{
    return qn_names_get(&graph->by_name, name);
}

qn_node *qn_graph_node(const qn_graph *graph, const char *name)
{
    return qn_names_get(&graph->node_names, name);
}

qn_status qn_value_rename(qn_value *value, const char *name)
{
    qn_graph *graph = value->graph;
    const char *fresh = unique_name(graph, &graph->by_name, name);
    QN_TRY_ALLOC(graph->ctx, fresh);
    QN_TRY(qn_names_set(&graph->by_name, fresh, value));
    qn_names_remove(&graph->by_name, value->name);
    value->name = fresh;
    return QN_OK;
}

qn_status qn_node_rename(qn_node *node, const char *name)
{
    qn_graph *graph = node->graph;
    const char *fresh = unique_name(graph, &graph->node_names, name);
    QN_TRY_ALLOC(graph->ctx, fresh);
    QN_TRY(qn_names_set(&graph->node_names, fresh, node));
    qn_names_remove(&graph->node_names, node->name);
    node->name = fresh;
    return QN_OK;
}

/* ---- Values ---------------------------------------------------------------------------------- */

qn_status qn_value_create(qn_value **out, qn_graph *graph, const char *name)
{
    qn_value *value = qn_arena_alloc(graph->arena, sizeof *value);
    QN_TRY_ALLOC(graph->ctx, value);
    value->name = unique_name(graph, &graph->by_name, name ? name : "value");
    QN_TRY_ALLOC(graph->ctx, value->name);
    value->graph = graph;
    value->type.rank = -1;
    value->number = (uint32_t)graph->n_values;
    QN_TRY(push_value(graph, &graph->values, &graph->n_values, &graph->values_capacity, value));
    QN_TRY(qn_names_set(&graph->by_name, value->name, value));
    *out = value;
    return QN_OK;
}

qn_status qn_value_constant(qn_value **out, qn_graph *graph, const char *name,
                            const qn_tensor *data)
{
    QN_TRY(qn_value_create(out, graph, name));
    (*out)->data = data;
    (*out)->type = qn_type_of(data);
    return QN_OK;
}

qn_status qn_value_parameter(qn_value **out, qn_graph *graph, const char *name,
                             const qn_tensor *initial)
{
    QN_TRY(qn_value_constant(out, graph, name, initial));
    qn_value_make_parameter(*out);
    return QN_OK;
}

void qn_value_make_parameter(qn_value *value)
{
    value->initial = value->data;
    value->data = NULL;
}

qn_status qn_value_ints(qn_value **out, qn_graph *graph, const int64_t *values, size_t count)
{
    const int64_t dims[1] = {(int64_t)count};
    const qn_type type = qn_type_tensor(QN_INT64, 1, dims);
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, graph->ctx, graph->arena, &type));
    if (count)
        memcpy(tensor->data, values, count * sizeof *values);
    return qn_value_constant(out, graph, "ints", tensor);
}

qn_status qn_value_float(qn_value **out, qn_graph *graph, float value)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, 0, NULL);
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, graph->ctx, graph->arena, &type));
    *(float *)tensor->data = value;
    return qn_value_constant(out, graph, "float", tensor);
}

static qn_status add_user(qn_value *value, qn_node *node)
{
    QN_TRY_GROW(value->graph->ctx, value->users, value->users_capacity, value->n_users + 1);
    value->users[value->n_users++] = node;
    return QN_OK;
}

static void drop_user(qn_value *value, const qn_node *node)
{
    for (size_t i = 0; i < value->n_users; i++) {
        if (value->users[i] == node) {
            value->users[i] = value->users[--value->n_users];
            return;
        }
    }
}

qn_node *qn_value_only_user(const qn_value *value)
{
    return value->n_users == 1 && !value->is_output ? value->users[0] : NULL;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static void list_insert(qn_node *node, qn_node *before)
{
    qn_graph *graph = node->graph;
    node->next = before;
    node->prev = before ? before->prev : graph->last;
    *(node->prev ? &node->prev->next : &graph->first) = node;
    *(before ? &before->prev : &graph->last) = node;
}

static void list_unlink(qn_node *node)
{
    qn_graph *graph = node->graph;
    *(node->prev ? &node->prev->next : &graph->first) = node->next;
    *(node->next ? &node->next->prev : &graph->last) = node->prev;
    node->prev = node->next = NULL;
}

qn_status qn_graph_add_node(qn_node **out, qn_graph *graph, const char *name, int32_t n_in,
                            int32_t n_out)
{
    qn_context *ctx = graph->ctx;
    qn_node *node = qn_arena_alloc(graph->arena, sizeof *node);
    QN_TRY_ALLOC(ctx, node);
    node->name = unique_name(graph, &graph->node_names, name ? name : "node");
    QN_TRY_ALLOC(ctx, node->name);
    node->graph = graph;
    node->n_in = node->n_explicit = n_in;
    node->n_out = n_out;
    node->in = qn_arena_array(graph->arena, (size_t)n_in, sizeof(qn_value *));
    QN_TRY_ALLOC(ctx, node->in);
    node->out = qn_arena_array(graph->arena, (size_t)n_out, sizeof(qn_value *));
    QN_TRY_ALLOC(ctx, node->out);
    QN_TRY(qn_names_set(&graph->node_names, node->name, node));
    list_insert(node, NULL);
    graph->n_nodes++;
    node->number = graph->made.numbers++;
    *out = node;
    return QN_OK;
}

void qn_graph_renumber(qn_graph *graph)
{
    graph->made.numbers = 0;
    for (qn_node *node = graph->first; node; node = node->next)
        node->number = graph->made.numbers++;
}

qn_status qn_node_set_input(qn_node *node, int32_t slot, qn_value *value)
{
    qn_value *old = node->in[slot];
    if (old == value)
        return QN_OK;
    if (value)
        QN_TRY(add_user(value, node));
    if (old)
        drop_user(old, node);
    node->in[slot] = value;
    return QN_OK;
}

static qn_status grow_inputs(qn_node *node, int32_t count)
{
    qn_value **in =
        qn_arena_widen(node->graph->arena, node->in, (size_t)node->n_in, (size_t)count, sizeof *in);
    QN_TRY_ALLOC(node->graph->ctx, in);
    node->in = in;
    return QN_OK;
}

qn_status qn_node_add_input(qn_node *node, qn_value *value)
{
    QN_TRY(grow_inputs(node, node->n_in + 1));
    node->n_in++;
    return qn_node_set_input(node, node->n_in - 1, value);
}

qn_status qn_node_resize_inputs(qn_node *node, int32_t count)
{
    for (int32_t i = count; i < node->n_in; i++)
        QN_TRY(qn_node_set_input(node, i, NULL));
    if (count > node->n_in)
        QN_TRY(grow_inputs(node, count));
    node->n_in = node->n_explicit = count;
    return QN_OK;
}

void qn_node_set_output(qn_node *node, int32_t slot, qn_value *value)
{
    qn_value *old = node->out[slot];
    if (old)
        old->producer = NULL;
    node->out[slot] = value;
    if (value) {
        value->producer = node;
        value->producer_slot = slot;
    }
}

void qn_node_move(qn_node *node, qn_node *before)
{
    if (node == before)
        return;
    list_unlink(node);
    list_insert(node, before);
}

void qn_node_remove(qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i])
            drop_user(node->in[i], node);
        node->in[i] = NULL;
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        if (node->out[i])
            node->out[i]->producer = NULL;
    }
    qn_names_remove(&node->graph->node_names, node->name);
    list_unlink(node);
    node->graph->n_nodes--;
}
