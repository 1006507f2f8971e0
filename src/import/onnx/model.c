/* ONNX files, and values in the form of ONNX's test folders. */
#include "import/onnx/onnx.h"

#include <string.h>

#include "import/detect.h"
#include "ops/numerics.h"

static void import_init(qn_onnx_import *import, qn_context *ctx, const qn_proto_schema *schema)
{
    memset(import, 0, sizeof *import);
    import->ctx = ctx;
    qn_proto_tree_init(&import->tree, ctx, schema);
    qn_names_init(&import->names, ctx);
    qn_names_init(&import->files, ctx);
    qn_names_init(&import->functions, ctx);
}

static void import_free(qn_onnx_import *import)
{
    qn_names_free(&import->names);
    qn_names_free(&import->files);
    qn_names_free(&import->functions);
    qn_free(import->ctx, import->name_buffer);
    qn_proto_tree_free(&import->tree);
}

/* ---- Model ----------------------------------------------------------------------------------- */

static qn_status check_versions(qn_onnx_import *import)
{
    qn_model *model = import->model;
    if (model->ir_version < 1)
        return qn_fail(import->ctx, QN_E_FORMAT, "no ONNX model: its IR version is missing");
    if (model->ir_version > QN_ONNX_IR_VERSION)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED,
                       "IR version %lld is newer than %d; export the model with an older one",
                       (long long)model->ir_version, QN_ONNX_IR_VERSION);
    for (size_t i = 0; i < model->n_opsets; i++) {
        if (*model->opsets[i].domain == 0 && model->opsets[i].version > QN_LATEST_OPSET)
            qn_log(import->ctx, QN_LOG_WARN,
                   "opset %lld is newer than %d: operators are read as far as their form is known",
                   (long long)model->opsets[i].version, QN_LATEST_OPSET);
    }
    return QN_OK;
}

static qn_status read_header(qn_onnx_import *import)
{
    static const qn_opset first = {"", 1}; /* files older than operator sets */
    const qn_proto_message *root = &import->tree.root;
    qn_model *model = import->model;
    model->ir_version = qn_proto_int(root, QN_ONNX_MODEL_IR_VERSION, 0);
    model->model_version = qn_proto_int(root, QN_ONNX_MODEL_MODEL_VERSION, 0);
    QN_TRY(
        qn_onnx_opsets(&model->opsets, &model->n_opsets, import, root, QN_ONNX_MODEL_OPSET_IMPORT));
    if (model->n_opsets == 0 && model->ir_version < 3) {
        model->opsets = qn_arena_copy(import->arena, &first, sizeof first);
        QN_TRY_ALLOC(import->ctx, model->opsets);
        model->n_opsets = 1;
    }
    QN_TRY(check_versions(import));
    QN_TRY(
        qn_onnx_text(&model->producer, import, qn_proto_string(root, QN_ONNX_MODEL_PRODUCER_NAME)));
    QN_TRY(qn_onnx_text(&model->producer_version, import,
                        qn_proto_string(root, QN_ONNX_MODEL_PRODUCER_VERSION)));
    QN_TRY(qn_onnx_text(&model->domain, import, qn_proto_string(root, QN_ONNX_MODEL_DOMAIN)));
    QN_TRY(qn_onnx_text(&model->doc, import, qn_proto_string(root, QN_ONNX_MODEL_DOC_STRING)));
    QN_TRY(qn_onnx_metadata(&model->metadata, import, root, QN_ONNX_MODEL_METADATA_PROPS));
    return qn_model_restore_numerics(model);
}

/* Shapes that a file declares may be left from other inputs, but who reads an output relies on its
 * type. */
static qn_status check_outputs(const qn_onnx_import *import)
{
    const qn_graph *graph = import->model->graph;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const qn_value *value = graph->outputs[i];
        const qn_type *type = &value->type, *declared = value->declared;
        if (declared && declared->kind == QN_TYPE_TENSOR && type->kind == QN_TYPE_TENSOR &&
            declared->dtype != QN_UNDEFINED && declared->dtype != type->dtype)
            return qn_fail(import->ctx, QN_E_FORMAT,
                           "output '%s' is declared as %s and computed as %s", value->name,
                           qn_dtype_get(declared->dtype)->name, qn_dtype_get(type->dtype)->name);
    }
    return QN_OK;
}

static qn_status parse_bytes(qn_onnx_import *import, const void *data, size_t size)
{
    if (size == 0)
        return qn_fail(import->ctx, QN_E_FORMAT, "no ONNX model: it is empty");
    return qn_proto_parse_wire(&import->tree, data, size);
}

static qn_status read_model(qn_onnx_import *import, const void *data, size_t size)
{
    qn_status status;
    qn_onnx_scope scope = {.import = import, .graph = import->model->graph};
    qn_names_init(&scope.values, import->ctx);
    qn_names_init(&scope.declared, import->ctx);
    import->input = (qn_string){data, size};
    QN_TRY_OR_DONE(parse_bytes(import, data, size));
    QN_TRY_OR_DONE(read_header(import));
    const qn_proto_message *graph = qn_proto_get_message(&import->tree.root, QN_ONNX_MODEL_GRAPH);
    if (!graph) {
        status = qn_fail(import->ctx, QN_E_FORMAT, "no ONNX model: it has no graph");
        goto done;
    }
    QN_TRY_OR_DONE(qn_onnx_add_functions(import));
    scope.opsets = import->model->opsets;
    scope.n_opsets = import->model->n_opsets;
    QN_TRY_OR_DONE(qn_onnx_begin_opsets(&scope));
    QN_TRY_OR_DONE(qn_onnx_graph(&scope, graph));
    QN_TRY_OR_DONE(qn_onnx_upgrade(import, import->model->graph));
    QN_TRY_OR_DONE(check_outputs(import));
done:
    qn_names_free(&scope.values);
    qn_names_free(&scope.declared);
    return status;
}

/* Notes where the model comes from, and gives it the map. */
static qn_status keep_source(qn_onnx_import *import, const char *path, qn_map *map)
{
    qn_model *model = import->model;
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? QN_MAX((size_t)(slash - path), 1) : 1;
    model->path = qn_arena_text(&model->arena, path, strlen(path));
    import->folder = qn_arena_text(&model->arena, slash ? path : ".", folder);
    QN_TRY_ALLOC(import->ctx, model->path);
    QN_TRY_ALLOC(import->ctx, import->folder);
    return qn_import_keep_map(model, map);
}

/* Makes the model from bytes; `map` is where they come from and becomes the model's, or NULL. */
static qn_status import_model(qn_model **out, qn_context *ctx, const char *path, qn_map *map,
                              const void *data, size_t size)
{
    qn_onnx_import import;
    qn_status status;
    qn_model *model = NULL;
    import_init(&import, ctx, &qn_onnx_model_schema);
    QN_TRY_OR_DONE(qn_model_create(&model, ctx));
    import.model = model;
    import.arena = &model->arena;
    if (map)
        QN_TRY_OR_DONE(keep_source(&import, path, map));
    status = read_model(&import, data, size);
done:
    import_free(&import);
    if (status != QN_OK) {
        qn_model_free(model);
        model = NULL;
    }
    *out = model;
    return status;
}

static qn_status load_source(qn_model **out, qn_model_source *source)
{
    if (source->is_folder)
        return qn_fail(source->ctx, QN_E_IO, "a folder, not a file");
    return import_model(out, source->ctx, source->path, &source->map, source->map.data,
                        source->map.size);
}

qn_status qn_import_onnx(qn_model **out, qn_context *ctx, const char *path)
{
    const qn_model_load_options options = {QN_OPTIONS_VERSION, .framework = qn_importer_onnx.name};
    return qn_import(out, ctx, path, &options);
}

qn_status qn_import_onnx_memory(qn_model **out, qn_context *ctx, const void *data, size_t size)
{
    return import_model(out, ctx, NULL, NULL, data, size);
}

/* ---- Values of their own --------------------------------------------------------------------- */

static qn_status read_sequence(qn_tensor *out, qn_onnx_import *import,
                               const qn_proto_message *message);

/* An OptionalProto holds a value of the field that its type says, or none. */
static qn_status read_optional(qn_tensor *out, qn_onnx_import *import,
                               const qn_proto_message *message)
{
    const qn_proto_message *tensor = qn_proto_get_message(message, QN_ONNX_OPTIONAL_TENSOR_VALUE);
    const qn_proto_message *sequence =
        qn_proto_get_message(message, QN_ONNX_OPTIONAL_SEQUENCE_VALUE);
    const qn_proto_message *optional =
        qn_proto_get_message(message, QN_ONNX_OPTIONAL_OPTIONAL_VALUE);
    *out = (qn_tensor){.dtype = QN_NONE};
    if (tensor)
        return qn_onnx_tensor(out, import, tensor);
    if (sequence)
        return read_sequence(out, import, sequence);
    return optional ? read_optional(out, import, optional) : QN_OK;
}

static qn_status read_items(qn_sequence *sequence, qn_onnx_import *import,
                            const qn_proto_message *message, uint32_t field)
{
    const size_t count = qn_proto_count(message, field);
    sequence->items = qn_arena_array(import->arena, count, sizeof *sequence->items);
    QN_TRY_ALLOC(import->ctx, sequence->items);
    sequence->count = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        const qn_proto_message *item = qn_proto_message_at(message, field, i);
        qn_tensor *to = &sequence->items[i];
        QN_TRY(field == QN_ONNX_SEQUENCE_TENSOR_VALUES     ? qn_onnx_tensor(to, import, item)
               : field == QN_ONNX_SEQUENCE_SEQUENCE_VALUES ? read_sequence(to, import, item)
                                                           : read_optional(to, import, item));
    }
    return QN_OK;
}

static qn_status read_sequence(qn_tensor *out, qn_onnx_import *import,
                               const qn_proto_message *message)
{
    static const uint32_t fields[] = {QN_ONNX_SEQUENCE_SEQUENCE_VALUES,
                                      QN_ONNX_SEQUENCE_OPTIONAL_VALUES};
    uint32_t field = QN_ONNX_SEQUENCE_TENSOR_VALUES;
    for (size_t i = 0; i < QN_COUNT_OF(fields); i++) {
        if (qn_proto_has(message, fields[i]))
            field = fields[i];
    }
    qn_sequence *sequence = qn_arena_alloc(import->arena, sizeof *sequence);
    QN_TRY_ALLOC(import->ctx, sequence);
    *out = (qn_tensor){.dtype = QN_SEQUENCE, .data = sequence};
    return read_items(sequence, import, message, field);
}

qn_status qn_import_onnx_value(qn_tensor *out, qn_context *ctx, qn_arena *arena, qn_type_kind kind,
                               const void *data, size_t size)
{
    qn_onnx_import import;
    import_init(&import, ctx,
                kind == QN_TYPE_SEQUENCE   ? &qn_onnx_sequence_schema
                : kind == QN_TYPE_OPTIONAL ? &qn_onnx_optional_schema
                                           : &qn_onnx_tensor_schema);
    import.arena = arena;
    import.input = (qn_string){data, size};
    qn_status status = qn_proto_parse_wire(&import.tree, data, size);
    if (status == QN_OK)
        status = kind == QN_TYPE_SEQUENCE   ? read_sequence(out, &import, &import.tree.root)
                 : kind == QN_TYPE_OPTIONAL ? read_optional(out, &import, &import.tree.root)
                                            : qn_onnx_tensor(out, &import, &import.tree.root);
    import_free(&import);
    return status;
}

/* ---- The importer ---------------------------------------------------------------------------- */

/* A ModelProto: a graph, and nothing at the top that such a message has not. */
static const char *detect(const qn_model_source *source)
{
    static const qn_wire_rule rules[] = {
        {1, QN_WIRE_VARINT, false}, {2, QN_WIRE_BYTES, false},  {3, QN_WIRE_BYTES, false},
        {4, QN_WIRE_BYTES, false},  {5, QN_WIRE_VARINT, false}, {6, QN_WIRE_BYTES, false},
        {7, QN_WIRE_BYTES, true},   {8, QN_WIRE_BYTES, false},  {14, QN_WIRE_BYTES, false},
        {20, QN_WIRE_BYTES, false}, {25, QN_WIRE_BYTES, false}, {26, QN_WIRE_BYTES, false}};
    const qn_string file = {(const char *)source->map.data, source->map.size};
    return qn_detect_message(file, rules, QN_COUNT_OF(rules)) ? "an ONNX model" : NULL;
}

const qn_importer qn_importer_onnx = {.name = "onnx",
                                      .title = "ONNX",
                                      .detect = detect,
                                      .load = load_source,
                                      .brief = "ONNX files, with external data"};
