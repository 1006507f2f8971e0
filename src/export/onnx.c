/* Models written as ONNX files: what goes where, and which opsets are needed. */
#include "export/onnx.h"

#include <string.h>
#include <sys/stat.h>

#include "ops/clone.h"
#include "ops/numerics.h"

/* Protocol buffers end at 2 GB; a little room for what is not a tensor. */
#define LARGEST_FILE ((uint64_t)2000 << 20)
enum { EXTERNAL_FROM = 1024 };

/* ---- Model ----------------------------------------------------------------------------------- */

/* The IR version that came with an opset; older ones than 4 want every constant to be an input. */
static int64_t ir_version_for(int opset)
{
    static const struct {
        int opset, ir_version;
    } steps[] = {{23, 11}, {21, 10}, {19, 9}, {15, 8}, {12, 7}, {11, 6}, {10, 5}};
    for (size_t i = 0; i < QN_COUNT_OF(steps); i++) {
        if (opset >= steps[i].opset)
            return steps[i].ir_version;
    }
    return 4;
}

static qn_status add_opset(qn_onnx_export *export, const char *domain)
{
    qn_proto_message *opset;
    QN_TRY(qn_proto_add_message(&opset, &export->tree, &export->tree.root,
                                QN_ONNX_MODEL_OPSET_IMPORT));
    QN_TRY(qn_proto_add_text(&export->tree, opset, QN_ONNX_OPSET_DOMAIN, domain));
    return qn_proto_add_int(&export->tree, opset, QN_ONNX_OPSET_VERSION,
                            qn_onnx_domain_version(export->model, domain, export->opset));
}

/* Every domain that a node of the graph has, once. */
static qn_status add_opsets(qn_onnx_export *export, const qn_graph *graph, qn_names *seen)
{
    for (const qn_node *node = graph->first; node; node = node->next) {
        const qn_graph *body;
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            QN_TRY(add_opsets(export, body, seen));
        const char *domain = node->op->domain;
        if (*domain == 0 || qn_names_get(seen, domain))
            continue;
        QN_TRY(qn_names_set(seen, domain, export));
        QN_TRY(add_opset(export, domain));
    }
    return QN_OK;
}

static qn_status add_numerics(qn_onnx_export *export)
{
    for (int what = 0; what < QN_NUMERICS_COUNT; what++) {
        if (qn_model_numerics(export->model, (qn_numerics)what))
            QN_TRY(add_opset(export, qn_numerics_domain((qn_numerics)what)));
    }
    return QN_OK;
}

static qn_status add_text(qn_onnx_export *export, uint32_t field, const char *text)
{
    return text ? qn_proto_add_text(&export->tree, &export->tree.root, field, text) : QN_OK;
}

static qn_status write_header(qn_onnx_export *export)
{
    const qn_model *model = export->model;
    qn_names domains;
    qn_names_init(&domains, export->ctx);
    qn_status status = add_opset(export, "");
    if (status == QN_OK)
        status = add_opsets(export, model->graph, &domains);
    if (status == QN_OK)
        status = add_numerics(export);
    qn_names_free(&domains);
    QN_TRY(status);
    const bool own = !model->producer;
    QN_TRY(add_text(export, QN_ONNX_MODEL_PRODUCER_NAME, own ? "quench" : model->producer));
    QN_TRY(add_text(export, QN_ONNX_MODEL_PRODUCER_VERSION,
                    own ? qn_version() : model->producer_version));
    QN_TRY(add_text(export, QN_ONNX_MODEL_DOMAIN, model->domain));
    QN_TRY(add_text(export, QN_ONNX_MODEL_DOC_STRING, model->doc));
    if (model->model_version)
        QN_TRY(qn_proto_add_int(&export->tree, &export->tree.root, QN_ONNX_MODEL_MODEL_VERSION,
                                model->model_version));
    return qn_onnx_write_metadata(export, &export->tree.root, QN_ONNX_MODEL_METADATA_PROPS,
                                  &model->metadata);
}

/* Beforehand, since what the IR version has no place for is not written. */
static void note_types(qn_onnx_export *export, const qn_graph *graph)
{
    const qn_graph *body;
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_value *value = graph->values[i];
        qn_onnx_note_type(export, value->data ? value->data->dtype : value->type.dtype);
    }
    for (const qn_node *node = graph->first; node; node = node->next) {
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            note_types(export, body);
    }
}

static qn_status write_model(qn_onnx_export *export)
{
    qn_proto_message *graph;
    export->ir_version = ir_version_for(export->opset);
    note_types(export, export->model->graph);
    QN_TRY(write_header(export));
    QN_TRY(qn_proto_add_message(&graph, &export->tree, &export->tree.root, QN_ONNX_MODEL_GRAPH));
    QN_TRY(qn_onnx_write_graph(export, graph, export->model->graph, NULL));
    return qn_proto_add_int(&export->tree, &export->tree.root, QN_ONNX_MODEL_IR_VERSION,
                            export->ir_version);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static qn_status write_tree(qn_onnx_export *export, qn_output_file *file)
{
    return qn_proto_write_wire(&export->tree, qn_proto_sink_file(file));
}

static qn_status write_data(qn_onnx_export *export, qn_output_file *file)
{
    static const char zeros[4096];
    uint64_t at = 0;
    for (size_t i = 0; i < export->n_external; i++) {
        const qn_onnx_external_data *data = &export->external[i];
        QN_TRY(qn_check_cancel(export->ctx));
        QN_TRY(qn_output_write(file, zeros, (size_t)(data->offset - at)));
        QN_TRY(qn_output_write(file, data->bytes.text, data->bytes.length));
        at = data->offset + data->bytes.length;
    }
    return QN_OK;
}

typedef qn_status write_fn(qn_onnx_export *export, qn_output_file *file);

static qn_status write_file(qn_output_file **out, qn_onnx_export *export, const char *path,
                            write_fn *write)
{
    QN_TRY(qn_output_open(out, export->ctx, path));
    const qn_status status = write(export, *out);
    if (status != QN_OK) {
        qn_output_discard(*out);
        *out = NULL;
    }
    return status;
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool holds(const qn_map *map, const char *bytes)
{
    const size_t length = strlen(bytes);
    const uint8_t *at = map->data;
    for (size_t left = map->size; left >= length; left = map->size - (size_t)(at - map->data)) {
        at = memchr(at, bytes[0], left - length + 1);
        if (!at)
            return false;
        if (memcmp(at, bytes, length) == 0)
            return true;
        at++;
    }
    return false;
}

/* Whether the model at `path`, from an earlier time, has tensors in the data file: it then holds
 * the entry {key: "location", value: data_name}, in wire form. */
static qn_status refers_to_data(bool *out, qn_onnx_export *export, const char *path)
{
    const size_t length = strlen(export->data_name);
    const char size[] = {(char)(length < 128 ? length : (length & 127) | 128),
                         (char)(length < 128 ? 0 : length >> 7), 0};
    const char *entry =
        qn_arena_format(&export->tree.arena, "\n\blocation\x12%s%s", size, export->data_name);
    qn_map map;
    QN_TRY_ALLOC(export->ctx, entry);
    if (qn_map_open(&map, export->ctx, path) != QN_OK)
        return QN_OK; /* one that cannot be read says nothing */
    *out = holds(&map, entry);
    qn_map_close(&map);
    return QN_OK;
}

/* Other models may read it too, and it need not be ours. */
static void log_left_data(qn_onnx_export *export, const char *path, const char *data_path)
{
    qn_log(export->ctx, QN_LOG_NOTE,
           "%s: the older %s had its tensors there; it stays: remove it if no other model reads it",
           data_path, path);
}

/* Replacing a data file that the model was read from would leave the model's own file without
 * it. */
static qn_status spare_data(const qn_onnx_export *export, const char *path, const char *data_path)
{
    bool own = false, read = false;
    for (const qn_model *model = export->model; model; model = model->origin) {
        for (size_t i = 0; i < model->n_maps; i++) {
            own = own || qn_map_is_of(&model->maps[i], path);
            read = read || qn_map_is_of(&model->maps[i], data_path);
        }
    }
    if (own || !read)
        return QN_OK;
    return qn_fail(
        export->ctx, QN_E_OPTION,
        "%s: the model that is read has its tensors there: choose another name for what is written",
        data_path);
}

/* Both are complete before either takes the place of an older file, so that whatever fails before
 * leaves an older pair as it was. The model, which names the other, comes last. */
static qn_status write_pair(qn_onnx_export *export, const char *path, const char *data_path)
{
    qn_output_file *model = NULL, *data = NULL;
    qn_status status = QN_OK;
    bool left_behind = false;
    if (export->n_external) {
        QN_TRY(spare_data(export, path, data_path));
        QN_TRY_OR_DONE(write_file(&data, export, data_path, write_data));
    } else if (is_file(path) && is_file(data_path)) {
        QN_TRY_OR_DONE(refers_to_data(&left_behind, export, path));
    }
    QN_TRY_OR_DONE(write_file(&model, export, path, write_tree));
    qn_output_file *finished = data;
    data = NULL;
    if (finished)
        QN_TRY_OR_DONE(qn_output_commit(finished));
    finished = model;
    model = NULL;
    status = qn_output_commit(finished);
    if (status == QN_OK && left_behind)
        log_left_data(export, path, data_path);
done:
    qn_output_discard(data);
    qn_output_discard(model);
    return status;
}

static uint64_t constant_bytes(const qn_graph *graph)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_tensor *data = graph->values[i]->data;
        if (data && !graph->values[i]->is_capture)
            bytes += (uint64_t)qn_tensor_count(data) * qn_dtype_size(data->dtype);
    }
    return bytes;
}

static qn_status write_files(qn_onnx_export *export, void *target, size_t external_from)
{
    const char *path = *(const char **)target, *slash = strrchr(path, '/');
    qn_arena *arena = &export->tree.arena;
    const char *data_path = qn_arena_format(arena, "%s.data", path);
    export->data_name = qn_arena_format(arena, "%s.data", slash ? slash + 1 : path);
    if (!data_path || !export->data_name)
        return qn_fail_nomem(export->ctx);
    export->external_from = external_from ? external_from : SIZE_MAX;
    if (external_from == 0 && constant_bytes(export->model->graph) > LARGEST_FILE)
        export->external_from = EXTERNAL_FROM;
    QN_TRY(write_model(export));
    return write_pair(export, path, data_path);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static qn_status append(void *user, const void *data, size_t size)
{
    qn_onnx_bytes *bytes = user;
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return QN_OK;
}

static qn_status write_bytes(qn_onnx_export *export, void *target, size_t external_from)
{
    qn_onnx_bytes *out = target;
    if (external_from || constant_bytes(export->model->graph) > LARGEST_FILE)
        return qn_fail(export->ctx, QN_E_INVALID,
                       "there is no place for a data file beside what is no file: name a file");
    export->external_from = SIZE_MAX;
    QN_TRY(write_model(export));
    out->data = qn_alloc(export->ctx, qn_proto_wire_size(&export->tree.root));
    QN_TRY_ALLOC(export->ctx, out->data);
    return qn_proto_write_wire(&export->tree, (qn_proto_sink){append, out});
}

/* ---- Opset ----------------------------------------------------------------------------------- */

static int own_opset(const qn_model *model)
{
    for (size_t i = 0; i < model->n_opsets; i++) {
        if (*model->opsets[i].domain == 0)
            return (int)QN_MIN(model->opsets[i].version, QN_LATEST_OPSET);
    }
    return QN_LATEST_OPSET;
}

static qn_status downgraded_clone(qn_model **out, qn_context *ctx, qn_model *model, int opset)
{
    QN_TRY(qn_model_clone(out, ctx, model));
    const qn_status status = qn_onnx_downgrade(*out, opset);
    if (status != QN_OK) {
        qn_model_free(*out);
        *out = NULL;
    }
    return status;
}

/* *opset 0: the first from the model's own on that can say everything. */
static qn_status choose_opset(qn_model **out, int *opset, qn_context *ctx, qn_model *model)
{
    if (*opset)
        return downgraded_clone(out, ctx, model, *opset);
    qn_status status = QN_E_UNSUPPORTED;
    for (*opset = own_opset(model); status == QN_E_UNSUPPORTED; ++*opset) {
        status = downgraded_clone(out, ctx, model, *opset);
        if (status != QN_E_UNSUPPORTED || *opset == QN_LATEST_OPSET)
            break;
    }
    return status;
}

/* Writes `export` to the target, with tensors of so many bytes outside. */
typedef qn_status target_fn(qn_onnx_export *export, void *target, size_t external_from);

static qn_status export_to(qn_context *ctx, qn_model *model, const qn_export_options *options,
                           target_fn *write, void *target)
{
    static const qn_export_options defaults = {0, 0};
    const qn_export_options *o = options ? options : &defaults;
    if (o->opset < 0 || o->opset > QN_LATEST_OPSET)
        return qn_fail(ctx, QN_E_INVALID, "opset %d is not one of 1 to %d", o->opset,
                       QN_LATEST_OPSET);
    qn_onnx_export export = {.ctx = ctx, .opset = o->opset};
    QN_TRY(choose_opset(&export.model, &export.opset, ctx, model));
    qn_proto_tree_init(&export.tree, ctx, &qn_onnx_model_schema);
    const qn_status status = write(&export, target, o->external_from);
    qn_proto_tree_free(&export.tree);
    qn_free(ctx, export.names);
    qn_free(ctx, export.external);
    qn_model_free(export.model);
    return status;
}

qn_status qn_export_onnx(qn_context *ctx, qn_model *model, const char *path,
                         const qn_export_options *options)
{
    QN_TRY(qn_path_check(ctx, path));
    return export_to(ctx, model, options, write_files, &path);
}

qn_status qn_export_onnx_memory(qn_onnx_bytes *out, qn_context *ctx, qn_model *model,
                                const qn_export_options *options)
{
    *out = (qn_onnx_bytes){.data = NULL};
    const qn_status status = export_to(ctx, model, options, write_bytes, out);
    if (status != QN_OK)
        qn_free(ctx, out->data);
    return status;
}
