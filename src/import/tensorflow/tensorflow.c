/* TensorFlow: what its files look like, and how they are read. */
#include "import/tensorflow/tensorflow.h"

#include <string.h>

#include "import/detect.h"
#include "import/tensorflow/operators.h"

/* GraphDef: nodes, each with a name and an operator. */
static bool is_graph(qn_string file)
{
    static const qn_wire_rule graph[] = {{1, QN_WIRE_BYTES, true},
                                         {2, QN_WIRE_BYTES, false},
                                         {3, QN_WIRE_VARINT, false},
                                         {4, QN_WIRE_BYTES, false},
                                         {5, QN_WIRE_BYTES, false}};
    static const qn_wire_rule node[] = {{1, QN_WIRE_BYTES, true},  {2, QN_WIRE_BYTES, true},
                                        {3, QN_WIRE_BYTES, false}, {4, QN_WIRE_BYTES, false},
                                        {5, QN_WIRE_BYTES, false}, {6, QN_WIRE_BYTES, false},
                                        {7, QN_WIRE_BYTES, false}};
    return qn_detect_message(file, graph, QN_COUNT_OF(graph)) &&
           qn_detect_message(qn_detect_field(file, 1), node, QN_COUNT_OF(node));
}

/* SavedModel: the version of its form, and graphs with what belongs to them. */
static bool is_saved_model(qn_string file)
{
    static const qn_wire_rule rules[] = {{1, QN_WIRE_VARINT, true}, {2, QN_WIRE_BYTES, true}};
    return qn_detect_message(file, rules, QN_COUNT_OF(rules));
}

/* MetaGraphDef: what is known of a graph, and the graph. */
static bool is_meta_graph(qn_string file)
{
    static const qn_wire_rule rules[] = {{1, QN_WIRE_BYTES, true},  {2, QN_WIRE_BYTES, true},
                                         {3, QN_WIRE_BYTES, true},  {4, QN_WIRE_BYTES, false},
                                         {5, QN_WIRE_BYTES, false}, {6, QN_WIRE_BYTES, false},
                                         {7, QN_WIRE_BYTES, false}};
    return qn_detect_message(file, rules, QN_COUNT_OF(rules)) && is_graph(qn_detect_field(file, 2));
}

/* What lies beside a graph and is none: where to find that. */
static const char *detect_variables(const qn_model_source *source)
{
    static const char ending[] = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
    const size_t size = source->map.size, length = sizeof ending - 1;
    if (qn_detect_in_folder(source, "variables.index"))
        return "the variables of a SavedModel; name the folder above";
    if (size >= length && qn_detect_bytes(source, size - length, ending, length))
        return "the table of a checkpoint's variables; name its .meta, or a SavedModel's folder";
    const char *part = source->map.data ? strstr(source->path, ".data-") : NULL;
    if (part && strstr(part, "-of-"))
        return "variables of a checkpoint; name its .meta, or a SavedModel's folder";
    return NULL;
}

static const char *detect(const qn_model_source *source)
{
    const qn_string file = {(const char *)source->map.data, source->map.size};
    if (is_meta_graph(file))
        return "the graph of a checkpoint of TensorFlow";
    if (detect_variables(source))
        return detect_variables(source);
    if (qn_detect_in_folder(source, "saved_model.pb") ||
        qn_detect_in_folder(source, "saved_model.pbtxt") || is_saved_model(file))
        return "a SavedModel of TensorFlow";
    return is_graph(file) || qn_detect_word(source, "node", '{') ? "a graph of TensorFlow" : NULL;
}

/* ---- Loading --------------------------------------------------------------------------------- */

static qn_status import_open(qn_tf_import *import, qn_model_source *source,
                             const qn_proto_schema *schema)
{
    qn_context *ctx = source->ctx;
    memset(import, 0, sizeof *import);
    import->ctx = ctx;
    import->source = source;
    import->options = source->options;
    qn_proto_tree_init(&import->tree, ctx, schema);
    qn_arena_init(&import->arena, &ctx->allocator);
    qn_names_init(&import->functions, ctx);
    qn_names_init(&import->things, ctx);
    qn_names_init(&import->starts, ctx);
    qn_layouts_init(&import->layouts, &import->builder);
    import->layouts.named.ctx = ctx;
    return qn_graph_builder_open(&import->builder, source, "TensorFlow");
}

static void import_close(qn_tf_import *import)
{
    qn_graph_builder_close(&import->builder);
    qn_layouts_free(&import->layouts);
    qn_names_free(&import->functions);
    qn_names_free(&import->things);
    qn_names_free(&import->starts);
    qn_tf_variables_close(import->variables);
    qn_tf_objects_free(import->objects);
    qn_arena_free(&import->arena);
    qn_proto_tree_free(&import->tree);
}

qn_status qn_tf_add_functions(qn_tf_import *import, const qn_proto_message *graph)
{
    const qn_proto_message *library = qn_proto_get_message(graph, QN_TF_GRAPH_LIBRARY);
    for (size_t i = 0; i < qn_proto_count(library, QN_TF_LIBRARY_FUNCTION); i++) {
        const qn_proto_message *function = qn_proto_message_at(library, QN_TF_LIBRARY_FUNCTION, i);
        const qn_string text = qn_proto_string(
            qn_proto_get_message(function, QN_TF_FUNCTION_SIGNATURE), QN_TF_SIGNATURE_NAME);
        const char *name = qn_arena_text(&import->arena, text.text ? text.text : "", text.length);
        QN_TRY_ALLOC(import->ctx, name);
        QN_TRY(qn_names_set(&import->functions, name, (void *)(uintptr_t)function));
    }
    return QN_OK;
}

qn_status qn_tf_parse(qn_tf_import *import, const qn_map *map)
{
    const qn_model_source file = {.map = *map};
    import->tree.is_lenient = true;
    return qn_detect_text(&file)
               ? qn_proto_parse_text(&import->tree, (const char *)map->data, map->size)
               : qn_proto_parse_wire(&import->tree, map->data, map->size);
}

/* A graph whose ends the options or the graph itself say. */
static qn_status read_graph(qn_tf_import *import)
{
    qn_tf_scope *scope = NULL;
    qn_tf_ends ends;
    qn_status status;
    QN_TRY(qn_tf_parse(import, &import->builder.model->maps[0]));
    QN_TRY(qn_tf_add_functions(import, &import->tree.root));
    QN_TRY_OR_DONE(qn_tf_scope_open(&scope, import, &import->tree.root, QN_TF_GRAPH_NODE, ""));
    QN_TRY_OR_DONE(qn_tf_find_ends(&ends, scope));
    QN_TRY_OR_DONE(qn_tf_make_inputs(scope, &ends));
    QN_TRY_OR_DONE(qn_tf_run(scope, ends.values, ends.count, NULL));
    QN_TRY_OR_DONE(qn_graph_builder_finish(&import->builder));
    status = qn_tf_make_outputs(import, &ends);
done:
    qn_tf_scope_close(scope);
    return status;
}

typedef qn_status read_fn(qn_tf_import *import);

static qn_status load(qn_model **out, qn_model_source *source)
{
    qn_tf_import import;
    qn_status status;
    const qn_string file = {(const char *)source->map.data, source->map.size};
    const char *variables = detect_variables(source);
    const bool meta = is_meta_graph(file);
    const bool saved = source->is_folder || is_saved_model(file) ||
                       qn_detect_word(source, "saved_model_schema_version", ':');
    if (!source->is_folder && !source->map.data)
        return qn_fail(source->ctx, QN_E_FORMAT, "the file is empty");
    if (variables && !meta)
        return qn_fail(source->ctx, QN_E_UNSUPPORTED, "these are %s", variables);
    read_fn *const read = meta ? qn_tf_checkpoint : saved ? qn_tf_saved_model : read_graph;
    QN_TRY_OR_DONE(import_open(&import, source,
                               meta    ? &qn_tf_meta_graph_schema
                               : saved ? &qn_tf_saved_model_schema
                                       : &qn_tf_graph_schema));
    QN_TRY_OR_DONE(read(&import));
    *out = qn_graph_builder_take(&import.builder);
done:
    import_close(&import);
    return status;
}

const qn_importer qn_importer_tensorflow = {
    .name = "tensorflow",
    .title = "TensorFlow",
    .takes = QN_IMPORT_ENDS | QN_IMPORT_LAYOUT | QN_IMPORT_SHAPES,
    .detect = detect,
    .load = load,
    .brief = "graphs (.pb), SavedModel folders, and what keras and tflite read",
    .operators = qn_tf_operators,
    .n_operators = QN_TF_OPERATORS};
