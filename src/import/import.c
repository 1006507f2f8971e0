/* From a path to a model: which framework a file is of, and what it is when nobody reads it. */
#include "import/import.h"

#include <stdio.h>
#include <string.h>

#include "base/folder.h"
#include "base/options.h"
#include "import/detect.h"

const qn_importer *const qn_importers[] = {
#define QN_IMPORTER(id) &qn_importer_##id,
#include "import/importers.def"
#undef QN_IMPORTER
};
const size_t qn_importers_count = QN_COUNT_OF(qn_importers);

/* What other files begin with that people take for models, or what their models are wrapped in. */
static const char *wrapping_of(const qn_model_source *source)
{
    static const struct {
        const char *bytes, *kind;
    } kinds[] = {
        {"version https://git-lfs", "a pointer of Git LFS; 'git lfs pull' gets the model"},
        {"PK\3\4", "a zip archive without a model that is known, or one that was cut short"},
        {"\x1f\x8b", "compressed with gzip; unpack it first"},
        {"\xfd"
         "7zXZ",
         "compressed with xz; unpack it first"},
    };
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        if (qn_detect_bytes(source, 0, kinds[i].bytes, strlen(kinds[i].bytes)))
            return kinds[i].kind;
    }
    return qn_detect_text(source) ? "this is text, no model" : NULL;
}

static const qn_importer *importer_of(const char **kind, const qn_model_source *source)
{
    for (size_t i = 0; i < qn_importers_count; i++) {
        *kind = qn_importers[i]->detect(source);
        if (*kind)
            return qn_importers[i];
    }
    return NULL;
}

/* What cannot be parsed is called what it looks like. */
static qn_status load(qn_model **out, qn_model_source *source, const qn_importer *importer)
{
    /* The importer takes the map away, into a model that dies where it fails: this is asked
     * before. */
    const char *kind = NULL;
    const qn_importer *found = importer_of(&kind, source);
    const char *wrapping = found ? NULL : wrapping_of(source);
    const qn_status status = importer->load(out, source);
    if (status == QN_E_FORMAT && found && found != importer)
        return qn_fail(source->ctx, status, "looks like %s", kind);
    if (status == QN_E_FORMAT && wrapping)
        return qn_fail(source->ctx, status, "%s", wrapping);
    return status;
}

static qn_status fail_unread(const qn_model_source *source, const qn_importer *importer,
                             const char *kind)
{
    return qn_fail(source->ctx, QN_E_UNSUPPORTED,
                   "%s%s%smodels of %s cannot be read yet; convert it to ONNX first",
                   kind ? "looks like " : "", kind ? kind : "", kind ? ": " : "", importer->title);
}

/* "pytorch, caffe or paddle": the frameworks that take the option. */
static void list_takers(char *out, size_t size, unsigned option)
{
    size_t takers = 0, length = 0, told = 0;
    out[0] = 0;
    for (size_t i = 0; i < qn_importers_count; i++)
        takers += !qn_importers[i]->family && (qn_importers[i]->takes & option);
    for (size_t i = 0; i < qn_importers_count && length < size; i++) {
        if (qn_importers[i]->family || !(qn_importers[i]->takes & option))
            continue;
        const char *between = !told ? "" : told + 1 == takers ? " or " : ", ";
        told++;
        length +=
            (size_t)snprintf(out + length, size - length, "%s%s", between, qn_importers[i]->name);
    }
}

/* The model could be read without these options. */
static void note_idle_options(const qn_model_source *source, const qn_importer *importer)
{
    const qn_model_load_options *o = source->options;
    const struct {
        bool given;
        unsigned option;
        const char *name;
    } rows[] = {
        {o->weights != NULL, QN_IMPORT_WEIGHTS, "weights"},
        {o->n_first_nodes > 0, QN_IMPORT_ENDS, "first_nodes"},
        {o->n_last_nodes > 0, QN_IMPORT_ENDS, "last_nodes"},
        {o->channels_first != 0, QN_IMPORT_LAYOUT, "channels_first"},
        {o->n_shapes > 0, QN_IMPORT_SHAPES, "load.shapes"},
    };
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        char takers[128];
        if (!rows[i].given || (importer->takes & rows[i].option))
            continue;
        list_takers(takers, sizeof takers, rows[i].option);
        qn_log(source->ctx, QN_LOG_NOTE, "`%s` has no effect here: it needs a model of %s",
               rows[i].name, takers);
    }
}

/* The one of the named framework's importers that recognizes the source, else the named one. */
static const qn_importer *importer_in(const qn_importer *named, const qn_model_source *source)
{
    if (named->detect(source))
        return named;
    for (size_t i = 0; i < qn_importers_count; i++) {
        const qn_importer *importer = qn_importers[i];
        if (importer->family && strcmp(importer->family, named->name) == 0 &&
            importer->detect(source))
            return importer;
    }
    return named;
}

static qn_status choose(qn_model **out, qn_model_source *source, const qn_importer *named)
{
    const char *kind = NULL;
    const qn_importer *importer = named ? importer_in(named, source) : importer_of(&kind, source);
    if (!importer)
        importer = &qn_importer_onnx;
    if (!importer->load)
        return fail_unread(source, importer, kind);
    note_idle_options(source, importer);
    QN_TRY(load(out, source, importer));
    (*out)->framework = importer->name;
    return QN_OK;
}

static qn_status find_named(const qn_importer **out, qn_context *ctx, const char *framework)
{
    *out = NULL;
    for (size_t i = 0; framework && i < qn_importers_count; i++) {
        if (strcmp(qn_importers[i]->name, framework) == 0)
            *out = qn_importers[i];
    }
    if (framework && !*out)
        return qn_fail(ctx, QN_E_INVALID, "framework: '%s' is none that is known", framework);
    return QN_OK;
}

/* A framework that cannot be read needs no file: PyTorch's models may be names. */
static qn_status open_source(qn_model_source *source, const qn_importer *named)
{
    if (named && !qn_framework_is_read(named->name))
        return QN_OK;
    const char *kind;
    source->is_folder = qn_folder_is(source->path);
    if (source->is_folder && (named || importer_of(&kind, source)))
        return QN_OK;
    source->is_folder = false;
    if (named && named->names && !qn_path_exists(source->path))
        return QN_OK;
    return qn_map_open(&source->map, source->ctx, source->path);
}

qn_status qn_import(qn_model **out, qn_context *ctx, const char *path,
                    const qn_model_load_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_model_load_options, taken, ctx, options);
    qn_model_source source = {.ctx = ctx, .path = path, .options = &taken};
    const qn_importer *named;
    QN_TRY(qn_path_check(ctx, path));
    QN_TRY(find_named(&named, ctx, source.options->framework));
    QN_TRY(open_source(&source, named));
    const qn_status status = choose(out, &source, named);
    qn_map_close(&source.map);
    return status == QN_OK ? QN_OK : qn_fail_within(ctx, status, "%s", path);
}

qn_status qn_import_keep_map(qn_model *model, qn_map *map)
{
    QN_TRY_GROW(model->ctx, model->maps, model->maps_capacity, model->n_maps + 1);
    model->maps[model->n_maps++] = *map;
    *map = (qn_map){.data = NULL};
    return QN_OK;
}
