/* SavedModels: a graph that calls functions, with signatures that say where it begins and ends, or
 * functions alone, whose last arguments are what they captured. */
#include <stdio.h>
#include <string.h>

#include "import/detect.h"
#include "import/tensorflow/tensorflow.h"

static bool is_word(qn_string text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.text, word, text.length) == 0;
}

static const char *keep(qn_tf_import *import, qn_string text)
{
    return qn_arena_text(&import->arena, text.text ? text.text : "", text.length);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* The folder of the model, and saved_model.pb as the model's first map. */
static qn_status open_files(const char **folder, qn_tf_import *import)
{
    const qn_model_source *source = import->source;
    const char *slash = strrchr(source->path, '/');
    qn_map map;
    if (!source->is_folder) {
        *folder = slash ? qn_arena_text(&import->arena, source->path,
                                        QN_MAX((size_t)(slash - source->path), (size_t)1))
                        : ".";
        QN_TRY_ALLOC(import->ctx, *folder);
        return QN_OK;
    }
    *folder = source->path;
    const bool text = !qn_detect_in_folder(source, "saved_model.pb");
    const char *path =
        qn_arena_format(&import->arena, "%s/saved_model.pb%s", source->path, text ? "txt" : "");
    QN_TRY_ALLOC(import->ctx, path);
    QN_TRY(qn_map_open(&map, import->ctx, path));
    const qn_status status = qn_import_keep_map(import->builder.model, &map);
    if (status != QN_OK)
        qn_map_close(&map);
    return status;
}

/* The graph for serving, else the first. */
static qn_status choose_graph(const qn_proto_message **out, qn_tf_import *import)
{
    const qn_proto_message *root = &import->tree.root;
    *out = NULL;
    for (size_t i = 0; i < qn_proto_count(root, QN_TF_SAVED_MODEL_GRAPHS); i++) {
        const qn_proto_message *graph = qn_proto_message_at(root, QN_TF_SAVED_MODEL_GRAPHS, i);
        const qn_proto_message *info = qn_proto_get_message(graph, QN_TF_META_INFO);
        *out = *out ? *out : graph;
        for (size_t k = 0; k < qn_proto_count(info, QN_TF_META_TAGS); k++) {
            if (is_word(qn_proto_string_at(info, QN_TF_META_TAGS, k), "serve"))
                *out = graph;
        }
    }
    return *out && qn_proto_get_message(*out, QN_TF_META_GRAPH)
               ? QN_OK
               : qn_fail(import->ctx, QN_E_FORMAT, "a SavedModel without a graph");
}

/* ---- Signatures ------------------------------------------------------------------------------ */

/* The signature of a model in use; NULL: there is none, or none that stands out. */
static const qn_proto_message *signature_of(const qn_proto_message *meta)
{
    const qn_proto_message *only = NULL;
    size_t found = 0;
    for (size_t i = 0; i < qn_proto_count(meta, QN_TF_META_ENDS); i++) {
        const qn_proto_message *entry = qn_proto_message_at(meta, QN_TF_META_ENDS, i);
        const qn_proto_message *ends = qn_proto_get_message(entry, QN_TF_ENDS_VALUE);
        const qn_string key = qn_proto_string(entry, QN_TF_ENDS_KEY);
        if (is_word(key, "serving_default") && qn_proto_count(ends, QN_TF_ENDS_OUTPUTS))
            return ends;
        if (is_word(key, "__saved_model_init_op") || !qn_proto_count(ends, QN_TF_ENDS_OUTPUTS))
            continue;
        only = ends;
        found++;
    }
    return found == 1 ? only : NULL;
}

static qn_status signature_ends(qn_tf_ends *out, const qn_tf_scope *scope,
                                const qn_proto_message *ends, uint32_t field)
{
    qn_tf_import *import = scope->import;
    const size_t count = qn_proto_count(ends, field);
    *out = (qn_tf_ends){.count = count};
    out->values = qn_arena_array(&import->arena, count + 1, sizeof *out->values);
    out->names = qn_arena_array(&import->arena, count + 1, sizeof *out->names);
    QN_TRY_ALLOC(import->ctx, out->values);
    QN_TRY_ALLOC(import->ctx, out->names);
    for (size_t i = 0; i < count; i++) {
        const qn_proto_message *entry = qn_proto_message_at(ends, field, i);
        const qn_proto_message *info = qn_proto_get_message(entry, QN_TF_TENSOR_ENTRY_VALUE);
        out->names[i] = keep(import, qn_proto_string(entry, QN_TF_TENSOR_ENTRY_KEY));
        QN_TRY_ALLOC(import->ctx, out->names[i]);
        QN_TRY(qn_tf_scope_value(&out->values[i], scope,
                                 qn_proto_string(info, QN_TF_TENSOR_INFO_NAME)));
    }
    return QN_OK;
}

static qn_status signature_inputs(qn_tf_scope *scope, const qn_proto_message *ends)
{
    qn_tf_ends in;
    qn_tf_import *import = scope->import;
    QN_TRY(signature_ends(&in, scope, ends, QN_TF_ENDS_INPUTS));
    for (size_t i = 0; i < in.count; i++) {
        qn_type type = {.kind = QN_TYPE_TENSOR};
        const qn_proto_message *info = qn_proto_get_message(
            qn_proto_message_at(ends, QN_TF_ENDS_INPUTS, i), QN_TF_TENSOR_ENTRY_VALUE);
        qn_tf_node *node = qn_tf_scope_node(scope, in.values[i]);
        QN_TRY(qn_tf_shape(&type, import, qn_proto_get_message(info, QN_TF_TENSOR_INFO_SHAPE)));
        type.dtype = qn_tf_dtype(qn_proto_int(info, QN_TF_TENSOR_INFO_DTYPE, 0));
        if (!node || type.dtype == QN_UNDEFINED)
            return qn_fail(import->ctx, QN_E_FORMAT, "input '%s' is no tensor of the graph",
                           in.names[i]);
        QN_TRY(qn_names_set(&import->starts, node->name, node));
        QN_TRY(qn_tf_input(import, in.names[i], in.values[i], &type));
    }
    return QN_OK;
}

/* By the nodes that the options name, or by a signature. */
static qn_status run_graph(qn_tf_scope *scope, const qn_proto_message *signature)
{
    qn_tf_ends ends;
    qn_tf_import *import = scope->import;
    if (import->options->n_last_nodes || import->options->n_first_nodes || !signature) {
        QN_TRY(qn_tf_find_ends(&ends, scope));
        QN_TRY(qn_tf_make_inputs(scope, &ends));
    } else {
        QN_TRY(signature_ends(&ends, scope, signature, QN_TF_ENDS_OUTPUTS));
        QN_TRY(signature_inputs(scope, signature));
    }
    QN_TRY(qn_tf_run(scope, ends.values, ends.count, NULL));
    QN_TRY(qn_graph_builder_finish(&import->builder));
    return qn_tf_make_outputs(import, &ends);
}

/* ---- Functions alone ------------------------------------------------------------------------- */

/* The function that the root calls by one of these names, the first that it has. */
static qn_string function_of(const qn_proto_message *objects)
{
    static const char *const names[] = {"__call__", "call", "serve", "predict", "inference"};
    const qn_proto_message *root = qn_proto_message_at(objects, QN_TF_OBJECTS_NODE, 0);
    const size_t n_nodes = qn_proto_count(objects, QN_TF_OBJECTS_NODE);
    qn_string only = {NULL, 0};
    size_t found = 0;
    for (size_t i = 0; i < qn_proto_count(root, QN_TF_OBJECT_CHILD); i++) {
        const qn_proto_message *child = qn_proto_message_at(root, QN_TF_OBJECT_CHILD, i);
        const int64_t id = qn_proto_int(child, QN_TF_CHILD_ID, 0);
        const qn_proto_message *function =
            id >= 0 && (size_t)id < n_nodes
                ? qn_proto_get_message(qn_proto_message_at(objects, QN_TF_OBJECTS_NODE, (size_t)id),
                                       QN_TF_OBJECT_FUNCTION)
                : NULL;
        if (!qn_proto_count(function, QN_TF_SAVED_FUNCTION_NAMES))
            continue;
        only = qn_proto_string_at(function, QN_TF_SAVED_FUNCTION_NAMES, 0);
        found++;
        for (size_t k = 0; k < QN_COUNT_OF(names); k++) {
            if (is_word(qn_proto_string(child, QN_TF_CHILD_NAME), names[k]))
                return only;
        }
    }
    return found == 1 ? only : (qn_string){NULL, 0};
}

/* What a function captured: a variable, or a constant of the graph. */
static qn_status captured(const char **out, qn_tf_scope *scope, const qn_proto_message *objects,
                          int64_t id)
{
    qn_tf_import *import = scope->import;
    const size_t count = qn_proto_count(objects, QN_TF_OBJECTS_NODE);
    if (id < 0 || (size_t)id >= count)
        return qn_fail(import->ctx, QN_E_FORMAT, "a function captures no object");
    const qn_proto_message *object = qn_proto_message_at(objects, QN_TF_OBJECTS_NODE, (size_t)id);
    const qn_proto_message *constant = qn_proto_get_message(object, QN_TF_OBJECT_CONSTANT);
    if (constant) {
        QN_TRY(qn_tf_scope_value(out, scope,
                                 qn_proto_string(constant, QN_TF_SAVED_CONSTANT_OPERATION)));
        return qn_tf_run(scope, out, 1, NULL);
    }
    const qn_tf_thing thing = {.kind = import->objects->keys[id] ? QN_TF_VARIABLE : QN_TF_UNREAD,
                               .key = import->objects->keys[id]};
    *out = qn_tf_fresh(import);
    QN_TRY_ALLOC(import->ctx, *out);
    return qn_tf_set_thing(import, *out, &thing);
}

/* What the file says of an argument: its shape, and what its author called it. */
static qn_status argument(const char **out, qn_tf_import *import, const qn_proto_message *function,
                          size_t i)
{
    const qn_proto_message *arg = qn_proto_message_at(
        qn_proto_get_message(function, QN_TF_FUNCTION_SIGNATURE), QN_TF_SIGNATURE_INPUT, i);
    const char *name = keep(import, qn_proto_string(arg, QN_TF_ARG_NAME));
    const qn_proto_message *shape = NULL;
    qn_type type = {.kind = QN_TYPE_TENSOR};
    for (size_t k = 0; k < qn_proto_count(function, QN_TF_FUNCTION_ARG_ATTR); k++) {
        const qn_proto_message *entry = qn_proto_message_at(function, QN_TF_FUNCTION_ARG_ATTR, k);
        const qn_proto_message *attrs = qn_proto_get_message(entry, QN_TF_ARG_ATTR_VALUE);
        for (size_t a = 0; a < qn_proto_count(attrs, QN_TF_ARG_ATTRS_ATTR); a++) {
            const qn_proto_message *attr = qn_proto_message_at(attrs, QN_TF_ARG_ATTRS_ATTR, a);
            const qn_proto_message *value = qn_proto_get_message(attr, QN_TF_ATTR_VALUE);
            const qn_proto_message *list = qn_proto_get_message(value, QN_TF_VALUE_LIST);
            if ((size_t)qn_proto_int(entry, QN_TF_ARG_ATTR_KEY, 0) != i)
                continue;
            if (is_word(qn_proto_string(attr, QN_TF_ATTR_KEY), "_user_specified_name"))
                name = keep(import, qn_proto_string(value, QN_TF_VALUE_S));
            if (qn_proto_count(list, QN_TF_LIST_SHAPE))
                shape = qn_proto_message_at(list, QN_TF_LIST_SHAPE, 0);
        }
    }
    QN_TRY_ALLOC(import->ctx, name);
    *out = name;
    QN_TRY(qn_tf_shape(&type, import, shape));
    type.dtype = qn_tf_dtype(qn_proto_int(arg, QN_TF_ARG_TYPE, 0));
    if (type.dtype == QN_UNDEFINED)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED, "argument '%s' is no tensor", name);
    return qn_tf_input(import, name, name, &type);
}

static qn_status arguments_of(qn_tf_arguments *out, qn_tf_scope *scope,
                              const qn_proto_message *objects, const char *function)
{
    qn_tf_import *import = scope->import;
    const qn_proto_message *body = qn_names_get(&import->functions, function);
    const qn_proto_message *concrete = qn_tf_concrete(objects, function);
    const size_t bound = qn_proto_count(concrete, QN_TF_CONCRETE_BOUND);
    const size_t count =
        qn_proto_count(qn_proto_get_message(body, QN_TF_FUNCTION_SIGNATURE), QN_TF_SIGNATURE_INPUT);
    if (!body || bound > count)
        return qn_fail(import->ctx, QN_E_FORMAT, "there is no function '%s'", function);
    const char **names = qn_arena_array(&import->arena, count + 1, sizeof *names);
    QN_TRY_ALLOC(import->ctx, names);
    for (size_t i = 0; i < count - bound; i++)
        QN_TRY(argument(&names[i], import, body, i));
    qn_proto_numbers ids = qn_proto_numbers_of(concrete, QN_TF_CONCRETE_BOUND);
    for (size_t i = count - bound; i < count; i++) {
        int64_t id = -1;
        (void)qn_proto_next_int(&id, &ids);
        QN_TRY(captured(&names[i], scope, objects, id));
    }
    *out = (qn_tf_arguments){names, count};
    return QN_OK;
}

static qn_status run_function(qn_tf_scope *scope, const qn_proto_message *objects, qn_string name)
{
    qn_tf_import *import = scope->import;
    qn_tf_node caller = {.import = import, .scope = scope, .own = "", .name = "", .type = ""};
    qn_tf_arguments arguments;
    const char **results;
    const char *function = keep(import, name);
    qn_tf_ends ends;
    QN_TRY_ALLOC(import->ctx, function);
    QN_TRY(arguments_of(&arguments, scope, objects, function));
    QN_TRY(qn_tf_call(&results, &ends.count, &caller, function, "f/", &arguments));
    QN_TRY(qn_graph_builder_finish(&import->builder));
    ends.values = results;
    ends.names = qn_arena_array(&import->arena, ends.count + 1, sizeof *ends.names);
    QN_TRY_ALLOC(import->ctx, ends.names);
    const qn_proto_message *own =
        qn_proto_get_message(qn_names_get(&import->functions, function), QN_TF_FUNCTION_SIGNATURE);
    for (size_t i = 0; i < ends.count; i++) {
        const qn_proto_message *arg = qn_proto_message_at(own, QN_TF_SIGNATURE_OUTPUT, i);
        ends.names[i] = keep(import, qn_proto_string(arg, QN_TF_ARG_NAME));
        QN_TRY_ALLOC(import->ctx, ends.names[i]);
    }
    return qn_tf_make_outputs(import, &ends);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status run_model(qn_tf_import *import, const qn_proto_message *meta)
{
    qn_tf_scope *scope = NULL;
    qn_status status;
    const qn_proto_message *graph = qn_proto_get_message(meta, QN_TF_META_GRAPH);
    const qn_proto_message *objects = qn_proto_get_message(meta, QN_TF_META_OBJECTS);
    const qn_proto_message *signature = signature_of(meta);
    const bool named = import->options->n_last_nodes || import->options->n_first_nodes;
    QN_TRY(qn_tf_add_functions(import, graph));
    QN_TRY_OR_DONE(qn_tf_scope_open(&scope, import, graph, QN_TF_GRAPH_NODE, ""));
    QN_TRY_OR_DONE(qn_tf_objects_bind(scope, objects));
    const qn_string function = !signature && !named && qn_proto_count(objects, QN_TF_OBJECTS_NODE)
                                   ? function_of(objects)
                                   : (qn_string){NULL, 0};
    status = function.length ? run_function(scope, objects, function) : run_graph(scope, signature);
done:
    qn_tf_scope_close(scope);
    return status;
}

static qn_status open_variables(qn_tf_import *import, const char *folder)
{
    const char *prefix = qn_arena_format(&import->arena, "%s/variables/variables", folder);
    QN_TRY_ALLOC(import->ctx, prefix);
    return qn_tf_variables_open(&import->variables, import, prefix);
}

/* "model.meta" has its variables in "model.index" and "model.data-...", under their names. */
qn_status qn_tf_checkpoint(qn_tf_import *import)
{
    const char *path = import->source->path;
    const size_t length = strlen(path), ending = strlen(".meta");
    if (length <= ending || strcmp(path + length - ending, ".meta") != 0)
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "a graph of a checkpoint is called NAME.meta, beside NAME.index");
    const char *prefix = qn_arena_text(&import->arena, path, length - ending);
    QN_TRY_ALLOC(import->ctx, prefix);
    QN_TRY(qn_tf_parse(import, &import->builder.model->maps[0]));
    QN_TRY(qn_tf_variables_open(&import->variables, import, prefix));
    return run_model(import, &import->tree.root);
}

qn_status qn_tf_saved_model(qn_tf_import *import)
{
    const char *folder;
    const qn_proto_message *meta;
    qn_model *model = import->builder.model;
    QN_TRY(open_files(&folder, import));
    QN_TRY(qn_tf_parse(import, &model->maps[0]));
    QN_TRY(choose_graph(&meta, import));
    const qn_model_source files = {.path = folder, .is_folder = true};
    if (qn_detect_in_folder(&files, "variables/variables.index"))
        QN_TRY(open_variables(import, folder));
    qn_tf_objects *matched = qn_arena_alloc(&import->arena, sizeof *matched);
    QN_TRY_ALLOC(import->ctx, matched);
    QN_TRY(qn_tf_objects_match(matched, import, qn_proto_get_message(meta, QN_TF_META_OBJECTS)));
    return run_model(import, meta);
}
