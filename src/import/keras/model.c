/* Models: sequences and graphs of layers, models in models. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "import/keras/keras.h"

enum { MOST_DEPTH = 16, MOST_NODES = 1 << 16 };

/* A model at work: its layers and how far they are. */
typedef struct model {
    qn_keras_import *import;
    const qn_keras_scope *scope;
    qn_keras_layer *layers;
    size_t n_layers;
    qn_names by_name;
    /* Class in Keras's small letters -> how many there were */
    qn_names counted;
} model;

static bool is_model(const char *type)
{
    return strcmp(type, "Sequential") == 0 || strcmp(type, "Functional") == 0 ||
           strcmp(type, "Model") == 0;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* "SeparableConv2D" to "separable_conv2d", as the names of groups are made: a '_' before a capital
 * that small letters follow, and between a small letter and a capital. */
const char *qn_keras_small_letters(qn_keras_import *import, const char *type)
{
    const size_t length = strlen(type);
    char *out = qn_arena_alloc(&import->arena, 2 * length + 1);
    size_t n = 0;
    for (size_t i = 0; out && i < length; i++) {
        const bool capital = isupper((unsigned char)type[i]);
        const bool word = capital && islower((unsigned char)type[i + 1]);
        const bool behind = i && islower((unsigned char)type[i - 1]);
        if (i && capital && (word || behind) && out[n - 1] != '_')
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)type[i]);
    }
    return out;
}

/* "conv2d", "conv2d_1", ...: in the order of the layers. */
static qn_status count_name(const char **out, model *m, const char *type)
{
    qn_arena *arena = &m->import->arena;
    const char *base = qn_keras_small_letters(m->import, type);
    QN_TRY_ALLOC(m->import->ctx, base);
    size_t *number = qn_names_get(&m->counted, base);
    *out = base;
    if (!number) {
        number = qn_arena_alloc(arena, sizeof *number);
        QN_TRY_ALLOC(m->import->ctx, number);
        return qn_names_set(&m->counted, base, number);
    }
    *out = qn_arena_format(arena, "%s_%zu", base, ++*number);
    QN_TRY_ALLOC(m->import->ctx, *out);
    return QN_OK;
}

static qn_status read_layer(qn_keras_layer *layer, model *m, const qn_json_place *place)
{
    qn_json_place name;
    const char *counted = NULL;
    *layer = (qn_keras_layer){.place = *place};
    const qn_json_place *kept = &layer->place;
    QN_TRY(qn_json_member_text(&layer->type, kept, "class_name"));
    QN_TRY(qn_json_member(&layer->config, kept, "config"));
    if (qn_keras_find(&name, kept, "name") ||
        (qn_json_is_object(&layer->config) && qn_keras_find(&name, &layer->config, "name")))
        QN_TRY(qn_json_get_text(&layer->name, &name));
    else
        layer->name = layer->type;
    layer->op = qn_keras_op_find(layer->type);
    QN_TRY(count_name(&counted, m, layer->type));
    QN_TRY(qn_names_set(&m->by_name, layer->name, layer));
    return qn_keras_place_weights(layer, m->import, m->scope, counted);
}

static qn_status read_layers(model *m, const qn_json_place *list)
{
    size_t count;
    QN_TRY(qn_json_length(&count, list));
    m->layers = qn_arena_array(&m->import->arena, count + 1, sizeof *m->layers);
    QN_TRY_ALLOC(m->import->ctx, m->layers);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(list, i);
        QN_TRY(read_layer(&m->layers[m->n_layers++], m, &item));
    }
    return QN_OK;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static const char *value_name(const model *m, const char *layer, int64_t call, int64_t tensor)
{
    char suffix[48] = "";
    if (call)
        snprintf(suffix, sizeof suffix, "/%lld", (long long)call);
    if (tensor)
        snprintf(suffix + strlen(suffix), 24, ":%lld", (long long)tensor);
    return qn_arena_format(&m->import->arena, "%s%s%s", m->scope->prefix, layer, suffix);
}

static qn_status enter_model(qn_keras_call *call)
{
    qn_keras_import *import = call->import;
    qn_keras_ends outs, ins = {call->in, call->n_in};
    const qn_keras_scope scope = {.prefix = qn_arena_format(&import->arena, "%s/", call->out),
                                  .group = call->layer->group,
                                  .sets = call->layer->sets,
                                  .n_sets = call->layer->n_sets};
    QN_TRY_ALLOC(import->ctx, scope.prefix);
    QN_TRY(qn_keras_model(&outs, import, &call->layer->place, &scope, &ins));
    qn_graph_builder_layer(&import->builder, call->layer->name, call->layer->type);
    for (size_t i = 0; i < outs.count; i++) {
        const char *name = i ? qn_arena_format(&import->arena, "%s:%zu", call->out, i) : call->out;
        QN_TRY_ALLOC(import->ctx, name);
        QN_TRY(qn_keras_alias(import, name, outs.at[i]));
    }
    return QN_OK;
}

static qn_status convert(qn_keras_call *call)
{
    const qn_keras_layer *layer = call->layer;
    if (is_model(layer->type))
        return enter_model(call);
    if (strcmp(layer->type, "Lambda") == 0)
        return qn_keras_fail(call, QN_E_UNSUPPORTED,
                             "what it computes is Python code; a SavedModel has it as operators");
    if (!layer->op)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the class of layers is not known");
    QN_TRY(layer->op->convert(call));
    return qn_keras_pass_mask(call);
}

/* Behind a layer that cannot be read nothing is looked at. */
static bool is_unread(const qn_keras_call *call)
{
    qn_value *value;
    qn_axis_order order;
    for (size_t i = 0; i < call->n_in; i++) {
        if (qn_names_get(&call->import->layouts.named, call->in[i]) &&
            qn_layout_any(&value, &order, &call->import->layouts, call->in[i]) == QN_OK &&
            value->type.kind != QN_TYPE_TENSOR)
            return true;
    }
    return false;
}

qn_status qn_keras_convert(qn_keras_call *call)
{
    qn_keras_import *import = call->import;
    qn_graph_builder *b = &import->builder;
    qn_value *unknown;
    qn_status status = QN_OK;
    qn_graph_builder_layer(b, call->layer->name, call->layer->type);
    const bool unread = is_unread(call);
    if (!unread)
        status = convert(call);
    if (status == QN_OK && !unread)
        return QN_OK;
    if (!unread)
        QN_TRY(qn_graph_builder_settle(b, status, NULL, 0));
    for (int64_t i = 0; i < 4; i++) {
        const char *name =
            i ? qn_arena_format(&import->arena, "%s:%lld", call->out, (long long)i) : call->out;
        QN_TRY_ALLOC(import->ctx, name);
        QN_TRY(qn_value_create(&unknown, b->graph, NULL));
        QN_TRY(qn_layout_define(&import->layouts, name, unknown, QN_ORDER_OWN));
    }
    return QN_OK;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static qn_dtype dtype_of(const qn_json_place *config)
{
    qn_json_place place, inner;
    const char *name = "float32";
    if (qn_keras_find(&place, config, "dtype") && qn_json_is_text(&place))
        (void)!qn_json_get_text(&name, &place);
    else if (qn_keras_find(&place, config, "dtype") && qn_keras_find(&inner, &place, "config") &&
             qn_keras_find(&place, &inner, "name"))
        (void)!qn_json_get_text(&name, &place);
    const qn_dtype dtype = qn_dtype_by_name(name);
    return dtype == QN_UNDEFINED || qn_dtype_is_float(dtype) ? QN_FLOAT32 : dtype;
}

/* The shape of a layer's input, with the batch; false: the layer does not say. */
static bool input_shape(qn_json_place *out, const qn_json_place *config)
{
    return qn_keras_find(out, config, "batch_input_shape") ||
           qn_keras_find(out, config, "batch_shape");
}

static qn_status make_input(const model *m, const qn_keras_layer *layer, const qn_json_place *shape)
{
    qn_keras_import *import = m->import;
    const char *name = value_name(m, layer->name, 0, 0);
    qn_value *value;
    qn_type type;
    QN_TRY_ALLOC(import->ctx, name);
    QN_TRY(qn_keras_shape(&type, shape));
    type.dtype = dtype_of(&layer->config);
    if (type.rank > 0 && type.dims[0].value < 0)
        type.dims[0] = (qn_dim){-1, "N"};
    const bool turned = import->options->channels_first && type.rank == 4;
    const qn_axis_order order = turned ? QN_ORDER_CHANNELS_FIRST : QN_ORDER_OWN;
    const qn_type own = type;
    for (int32_t i = 0; turned && i < 4; i++)
        type.dims[qn_layout_axis(order, 4, i)] = own.dims[i];
    QN_TRY(qn_graph_build_input(&value, &import->builder, name, &type));
    return qn_layout_define(&import->layouts, name, value, order);
}

/* ---- Sequences ------------------------------------------------------------------------------- */

/* The input of a sequence: its first layer says the shape, or the model does. */
static qn_status sequence_input(const char **out, const model *m, const qn_json_place *place,
                                const qn_keras_ends *ins)
{
    qn_json_place config, shape, build;
    qn_keras_layer first = m->layers[0];
    if (ins) {
        if (ins->count != 1)
            return qn_fail(m->import->ctx, QN_E_FORMAT, "a sequence is given %zu values",
                           ins->count);
        *out = ins->at[0];
        return QN_OK;
    }
    QN_TRY(qn_json_member(&config, place, "config"));
    const bool found = input_shape(&shape, &first.config) ||
                       qn_keras_find(&shape, &config, "build_input_shape") ||
                       (qn_keras_find(&build, place, "build_config") &&
                        qn_keras_find(&shape, &build, "input_shape"));
    if (!found)
        return qn_fail(m->import->ctx, QN_E_UNSUPPORTED,
                       "the model does not say what shape its input has");
    if (strcmp(first.type, "InputLayer") != 0)
        first.name = qn_arena_format(&m->import->arena, "%s_input", first.name);
    QN_TRY_ALLOC(m->import->ctx, first.name);
    QN_TRY(make_input(m, &first, &shape));
    *out = value_name(m, first.name, 0, 0);
    QN_TRY_ALLOC(m->import->ctx, *out);
    return QN_OK;
}

static qn_status run_sequence(qn_keras_ends *outs, model *m, const qn_json_place *place,
                              const qn_keras_ends *ins)
{
    const char *at;
    if (m->n_layers == 0)
        return qn_fail(m->import->ctx, QN_E_FORMAT, "a model without layers");
    QN_TRY(sequence_input(&at, m, place, ins));
    for (size_t i = 0; i < m->n_layers; i++) {
        if (strcmp(m->layers[i].type, "InputLayer") == 0)
            continue;
        qn_keras_call call = {.import = m->import, .layer = &m->layers[i], .n_in = 1};
        const char *in[] = {at};
        call.in = in;
        call.out = value_name(m, m->layers[i].name, 0, 0);
        QN_TRY_ALLOC(m->import->ctx, call.out);
        QN_TRY(qn_keras_convert(&call));
        at = call.out;
    }
    outs->at = qn_arena_copy(&m->import->arena, &at, sizeof at);
    QN_TRY_ALLOC(m->import->ctx, outs->at);
    outs->count = 1;
    return QN_OK;
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static const char *name_of(const model *m, const qn_keras_link *l)
{
    const qn_keras_layer *layer = qn_names_get(&m->by_name, l->layer);
    const int64_t call = l->call - (layer ? layer->first_call : 0);
    return value_name(m, l->layer, QN_MAX(call, 0), l->tensor);
}

static qn_status names_of(const char ***out, const model *m, const qn_keras_links *links)
{
    *out = qn_arena_array(&m->import->arena, links->count + 1, sizeof **out);
    QN_TRY_ALLOC(m->import->ctx, *out);
    for (size_t i = 0; i < links->count; i++) {
        (*out)[i] = name_of(m, &links->at[i]);
        QN_TRY_ALLOC(m->import->ctx, (*out)[i]);
    }
    return QN_OK;
}

/* Converts the next use of a layer when all is there that it needs. */
static qn_status advance(bool *done, model *m, const qn_keras_layer *layer,
                         const qn_json_place *node, int64_t number)
{
    qn_keras_links links;
    qn_keras_call call = {.import = m->import, .layer = layer};
    QN_TRY(qn_keras_find_links(&links, m->import, node));
    QN_TRY(names_of(&call.in, m, &links));
    for (size_t i = 0; i < links.count; i++) {
        if (!qn_names_get(&m->import->layouts.named, call.in[i]))
            return QN_OK;
    }
    if (links.mask.layer) {
        call.mask = name_of(m, &links.mask);
        QN_TRY_ALLOC(m->import->ctx, call.mask);
        if (!qn_names_get(&m->import->layouts.named, call.mask))
            return QN_OK;
    }
    call.n_in = links.count;
    call.keywords = links.keywords;
    call.node = *node;
    call.out = value_name(m, layer->name, number, 0);
    QN_TRY_ALLOC(m->import->ctx, call.out);
    *done = true;
    return qn_keras_convert(&call);
}

static qn_status pass_over(size_t *left, bool *moved, model *m, size_t *at)
{
    *left = 0;
    *moved = false;
    for (size_t i = 0; i < m->n_layers; i++) {
        qn_json_place nodes;
        size_t count;
        if (strcmp(m->layers[i].type, "InputLayer") == 0 ||
            !qn_keras_find(&nodes, &m->layers[i].place, "inbound_nodes"))
            continue;
        QN_TRY(qn_json_length(&count, &nodes));
        for (bool done = true; done && at[i] < count;) {
            const qn_json_place node = qn_json_element(&nodes, at[i]);
            done = false;
            QN_TRY(advance(&done, m, &m->layers[i], &node, (int64_t)at[i]));
            at[i] += done;
            *moved |= done;
        }
        *left += at[i] < count;
    }
    return QN_OK;
}

/* A reference to more uses of a model than there are counts its making too. */
static qn_status count_calls(model *m, const qn_json_place *place)
{
    qn_keras_links links;
    QN_TRY(qn_keras_find_links(&links, m->import, place));
    for (size_t i = 0; i < links.count; i++) {
        qn_keras_layer *layer = qn_names_get(&m->by_name, links.at[i].layer);
        qn_json_place nodes;
        size_t count;
        if (!layer || !is_model(layer->type) ||
            !qn_keras_find(&nodes, &layer->place, "inbound_nodes"))
            continue;
        QN_TRY(qn_json_length(&count, &nodes));
        if (links.at[i].call >= (int64_t)count)
            layer->first_call = 1;
    }
    return QN_OK;
}

static qn_status count_all_calls(model *m, const qn_json_place *config)
{
    qn_json_place nodes;
    for (size_t i = 0; i < m->n_layers; i++) {
        if (qn_keras_find(&nodes, &m->layers[i].place, "inbound_nodes"))
            QN_TRY(count_calls(m, &nodes));
    }
    QN_TRY(qn_json_member(&nodes, config, "output_layers"));
    return count_calls(m, &nodes);
}

/* The inputs by their places in `input_layers`; those of the whole model are made. */
static qn_status take_inputs(const model *m, const qn_json_place *config, const qn_keras_ends *ins)
{
    qn_json_place list, shape;
    qn_keras_links links;
    const char **names;
    QN_TRY(qn_json_member(&list, config, "input_layers"));
    QN_TRY(qn_keras_find_links(&links, m->import, &list));
    QN_TRY(names_of(&names, m, &links));
    if (ins && ins->count != links.count)
        return qn_fail(m->import->ctx, QN_E_FORMAT, "a model of %zu inputs is given %zu values",
                       links.count, ins->count);
    for (size_t i = 0; i < links.count; i++) {
        const qn_keras_layer *layer = qn_names_get(&m->by_name, links.at[i].layer);
        if (ins) {
            QN_TRY(qn_keras_alias(m->import, names[i], ins->at[i]));
            continue;
        }
        if (!layer || !input_shape(&shape, &layer->config))
            return qn_fail(m->import->ctx, QN_E_FORMAT, "input '%s' has no shape",
                           links.at[i].layer);
        QN_TRY(make_input(m, layer, &shape));
    }
    return QN_OK;
}

static qn_status run_graph(qn_keras_ends *outs, model *m, const qn_json_place *config,
                           const qn_keras_ends *ins)
{
    qn_json_place list;
    qn_keras_links links;
    bool moved = true;
    size_t left = 1;
    size_t *at = qn_arena_array(&m->import->arena, m->n_layers + 1, sizeof *at);
    QN_TRY_ALLOC(m->import->ctx, at);
    QN_TRY(count_all_calls(m, config));
    QN_TRY(take_inputs(m, config, ins));
    while (left && moved)
        QN_TRY(pass_over(&left, &moved, m, at));
    QN_TRY(qn_json_member(&list, config, "output_layers"));
    QN_TRY(qn_keras_find_links(&links, m->import, &list));
    QN_TRY(names_of(&outs->at, m, &links));
    outs->count = links.count;
    for (size_t i = 0; i < links.count; i++) {
        if (!qn_names_get(&m->import->layouts.named, outs->at[i]))
            return qn_fail(m->import->ctx, QN_E_FORMAT, "nothing computes the output '%s'",
                           links.at[i].layer);
    }
    return QN_OK;
}

/* ---- Whole models ---------------------------------------------------------------------------- */

static qn_status run(qn_keras_ends *outs, model *m, const qn_json_place *place,
                     const qn_keras_ends *ins)
{
    qn_json_place config, layers;
    const char *type;
    QN_TRY(qn_json_member_text(&type, place, "class_name"));
    QN_TRY(qn_json_member(&config, place, "config"));
    if (!is_model(type))
        return qn_fail(m->import->ctx, QN_E_UNSUPPORTED,
                       "the model is of the class '%s', whose Python code is not in the file; a "
                       "SavedModel has it as operators",
                       type);
    if (qn_json_is_list(&config))
        layers = config;
    else
        QN_TRY(qn_json_member(&layers, &config, "layers"));
    QN_TRY(read_layers(m, &layers));
    return strcmp(type, "Sequential") == 0 ? run_sequence(outs, m, place, ins)
                                           : run_graph(outs, m, &config, ins);
}

qn_status qn_keras_model(qn_keras_ends *outs, qn_keras_import *import, const qn_json_place *place,
                         const qn_keras_scope *scope, const qn_keras_ends *ins)
{
    model m = {.import = import, .scope = scope};
    const qn_json_place *kept = qn_arena_copy(&import->arena, place, sizeof *place);
    QN_TRY_ALLOC(import->ctx, kept);
    if (import->depth >= MOST_DEPTH || import->builder.graph->n_nodes > MOST_NODES)
        return qn_fail(import->ctx, QN_E_FORMAT, "models lie more than %d deep", MOST_DEPTH);
    import->depth++;
    qn_names_init(&m.by_name, import->ctx);
    qn_names_init(&m.counted, import->ctx);
    const qn_status status = run(outs, &m, kept, ins);
    qn_names_free(&m.by_name);
    qn_names_free(&m.counted);
    import->depth--;
    return status;
}
