/* Keras: what its files look like, and how they are read. */
#include "import/keras/keras.h"

#include <stdlib.h>
#include <string.h>

#include "base/zip.h"
#include "import/detect.h"

/* What model.to_json() gives. */
static bool is_configuration(const qn_model_source *source)
{
    return qn_detect_bytes(source, 0, "{", 1) && qn_detect_word(source, "class_name", '"');
}

static const char *detect(const qn_model_source *source)
{
    if (qn_detect_bytes(source, 0, "\x89HDF\r\n\x1a\n", 8))
        return "an HDF5 file, as Keras makes them";
    if (is_configuration(source))
        return "the configuration of a Keras model, without weights";
    return qn_detect_zipped(source, "model.weights.h5") ? "a Keras model" : NULL;
}

/* ---- Archives (.keras) ----------------------------------------------------------------------- */

static qn_status entry_of(qn_zip_contents *out, qn_keras_import *import, qn_zip *zip,
                          const char *name)
{
    qn_zip_entry entry;
    bool found;
    QN_TRY(qn_zip_find(&entry, &found, zip, name));
    if (!found)
        return qn_fail(import->ctx, QN_E_FORMAT, "the archive has no %s", name);
    return qn_zip_read(out, zip, &entry);
}

/* The version that wrote the archive; texts of the document are copied by it. */
static qn_status read_version(qn_keras_import *import, qn_zip *zip)
{
    qn_zip_contents contents;
    qn_json_document *document;
    qn_json_place root, version;
    const char *text = "3";
    QN_TRY(entry_of(&contents, import, zip, "metadata.json"));
    qn_status status =
        qn_json_read(&document, import->ctx, contents.data, contents.size, "metadata.json");
    if (status == QN_OK) {
        root = qn_json_root(document);
        if (qn_keras_find(&version, &root, "keras_version"))
            status = qn_json_get_text(&text, &version);
        import->version = status == QN_OK ? atoi(text) : 3;
        qn_json_document_free(document);
    }
    qn_free_aligned(&import->ctx->allocator, contents.block);
    return status;
}

static qn_status open_archive(qn_keras_import *import)
{
    qn_zip zip;
    qn_zip_contents config, weights;
    const qn_map *map = &import->builder.model->maps[0];
    qn_model *model = import->builder.model;
    QN_TRY(qn_zip_open(&zip, import->ctx, map->data, map->size));
    QN_TRY(read_version(import, &zip));
    QN_TRY(entry_of(&config, import, &zip, "config.json"));
    import->block = config.block;
    QN_TRY(qn_json_read(&import->document, import->ctx, config.data, config.size, "config.json"));
    QN_TRY(entry_of(&weights, import, &zip, "model.weights.h5"));
    import->weights = (qn_map){.data = weights.data, .size = weights.size};
    if (weights.block) {
        /* What was packed is the model's, as its weights lie in it. */
        void **blocks = qn_grow(import->ctx, model->blocks, &model->blocks_capacity,
                                model->n_blocks + 1, sizeof *blocks);
        if (!blocks) {
            qn_free_aligned(&import->ctx->allocator, weights.block);
            return qn_fail_nomem(import->ctx);
        }
        model->blocks = blocks;
        model->blocks[model->n_blocks++] = weights.block;
    }
    return qn_hdf5_open_memory(&import->file, import->ctx, &import->weights);
}

/* ---- .h5 ------------------------------------------------------------------------------------- */

static qn_status open_hdf5(qn_keras_import *import)
{
    qn_hdf5_texts config, version;
    const qn_map *map = &import->builder.model->maps[0];
    import->weights = *map;
    QN_TRY(qn_hdf5_open(&import->file, import->ctx, import->source->path, &import->weights));
    QN_TRY(qn_hdf5_attribute(&config, import->file, &import->arena, "/", "model_config"));
    QN_TRY(qn_hdf5_attribute(&version, import->file, &import->arena, "/", "keras_version"));
    if (config.count != 1)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED,
                       "the file has no model_config: it has weights only; save the whole model");
    import->version = version.count ? atoi(version.at[0]) : 2;
    import->groups = "/model_weights";
    if (qn_hdf5_kind_of(import->file, import->groups) != QN_HDF5_GROUP)
        return qn_fail(import->ctx, QN_E_FORMAT, "the file has no group model_weights");
    return qn_json_read(&import->document, import->ctx, config.at[0], strlen(config.at[0]),
                        "model_config");
}

/* ---- Loading --------------------------------------------------------------------------------- */

static qn_status import_open(qn_keras_import *import, qn_model_source *source)
{
    memset(import, 0, sizeof *import);
    import->ctx = source->ctx;
    import->source = source;
    import->options = source->options;
    qn_arena_init(&import->arena, &source->ctx->allocator);
    qn_names_init(&import->paths, source->ctx);
    qn_names_init(&import->flat, source->ctx);
    qn_names_init(&import->masks, source->ctx);
    qn_layouts_init(&import->layouts, &import->builder);
    import->layouts.named.ctx = source->ctx;
    return qn_graph_builder_open(&import->builder, source, "Keras");
}

static void import_close(qn_keras_import *import)
{
    qn_json_document_free(import->document);
    qn_hdf5_close(import->file);
    qn_graph_builder_close(&import->builder);
    qn_layouts_free(&import->layouts);
    qn_names_free(&import->paths);
    qn_names_free(&import->flat);
    qn_names_free(&import->masks);
    qn_free_aligned(&import->ctx->allocator, import->block);
    qn_arena_free(&import->arena);
}

static qn_status make_outputs(qn_keras_import *import, const qn_keras_ends *outs)
{
    qn_graph_builder *b = &import->builder;
    qn_graph_builder_layer(b, "", "");
    for (size_t i = 0; i < outs->count; i++) {
        qn_value *value;
        QN_TRY(qn_layout_find(&value, &import->layouts, outs->at[i], QN_ORDER_OWN));
        QN_TRY(qn_graph_build_define(b, outs->at[i], value));
        QN_TRY(qn_graph_build_output(b, outs->at[i]));
    }
    return QN_OK;
}

static qn_status read_model(qn_keras_import *import)
{
    static const qn_keras_scope whole = {.prefix = "", .group = ""};
    qn_keras_ends outs;
    const qn_map *map = &import->builder.model->maps[0];
    QN_TRY(qn_hdf5_is_file(map->data, map->size) ? open_hdf5(import) : open_archive(import));
    QN_TRY(qn_keras_index_weights(import));
    const qn_json_place root = qn_json_root(import->document);
    const qn_status status = qn_keras_model(&outs, import, &root, &whole, NULL);
    if (status != QN_OK && !*import->builder.type)
        return status; /* before the first layer */
    QN_TRY(qn_graph_builder_settle(&import->builder, status, NULL, 0));
    QN_TRY(qn_graph_builder_finish(&import->builder));
    return make_outputs(import, &outs);
}

static qn_status load(qn_model **out, qn_model_source *source)
{
    qn_keras_import import;
    qn_status status;
    if (source->is_folder || !source->map.data)
        return qn_fail(source->ctx, QN_E_FORMAT, "no file of Keras");
    if (is_configuration(source))
        return qn_fail(source->ctx, QN_E_UNSUPPORTED,
                       "the configuration of a Keras model, without weights: save the whole model, "
                       "as model.save('NAME.keras') does");
    QN_TRY_OR_DONE(import_open(&import, source));
    QN_TRY_OR_DONE(read_model(&import));
    *out = qn_graph_builder_take(&import.builder);
done:
    import_close(&import);
    return status;
}

const qn_importer qn_importer_keras = {.name = "keras",
                                       .title = "Keras",
                                       .family = "tensorflow",
                                       .takes = QN_IMPORT_LAYOUT,
                                       .detect = detect,
                                       .load = load,
                                       .brief = ".h5 and .keras files",
                                       .operators = qn_keras_layers,
                                       .n_operators = QN_KERAS_LAYERS};
