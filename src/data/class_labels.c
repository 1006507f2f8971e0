/* Classes from a file of their own. */
#include <string.h>

#include "base/names.h"
#include "data/array.h"
#include "data/dataset_source.h"

typedef struct work {
    qn_dataset_builder *o;
    const char *path;
    const qn_dataset_source *source;
    /* [count], -1: not yet known */
    int64_t *labels;
    int64_t seen;
} work;

static qn_status wrong_count(const work *w, int64_t count)
{
    return qn_fail(w->o->ctx, QN_E_INVALID, "%s has %lld classes, the data %lld samples", w->path,
                   (long long)count, (long long)w->source->count);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static qn_status from_idx(work *w, const qn_file_bytes *bytes)
{
    qn_idx idx;
    qn_status status = qn_idx_parse(&idx, w->o->ctx, bytes->data, bytes->size);
    if (status == QN_OK && idx.rank != 1)
        status =
            qn_fail(w->o->ctx, QN_E_INVALID, "classes have one dimension, this file %d", idx.rank);
    if (status != QN_OK)
        return qn_fail_within(w->o->ctx, status, "%s", w->path);
    if (idx.dims[0] != w->source->count)
        return wrong_count(w, idx.dims[0]);
    for (int64_t i = 0; i < w->source->count; i++)
        w->labels[i] = idx.data[i];
    return QN_OK;
}

static qn_status from_npy(work *w)
{
    qn_tensor *file;
    QN_TRY(qn_tensor_load(&file, w->o->ctx, w->path, NULL));
    qn_status status = QN_OK;
    if (!qn_dtype_is_integer(file->dtype) || file->rank < 1)
        status =
            qn_fail(w->o->ctx, QN_E_INVALID, "%s: classes are integers, one a sample", w->path);
    else if (qn_tensor_count(file) != w->source->count)
        status = wrong_count(w, qn_tensor_count(file));
    else
        qn_load_i64(w->labels, file->dtype, file->data, 0, w->source->count);
    qn_tensor_free(file);
    for (int64_t i = 0; status == QN_OK && i < w->source->count; i++) {
        if (w->labels[i] < 0)
            status = qn_fail(w->o->ctx, QN_E_INVALID, "%s: class %lld of sample %lld", w->path,
                             (long long)w->labels[i], (long long)i);
    }
    return status;
}

/* ---- Text ------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Maps the names of samples, with and without their folders, to indices of w->labels. */
static qn_status index_samples(qn_names *names, const work *w)
{
    const qn_listing *files = w->source->files;
    for (int64_t i = 0; files && i < files->count; i++)
        QN_TRY(qn_names_set(names, base_name(files->names[i]), &w->labels[i]));
    for (int64_t i = 0; files && i < files->count; i++)
        QN_TRY(qn_names_set(names, files->names[i], &w->labels[i]));
    return QN_OK;
}

static qn_status bad_line(const work *w, const qn_lines *lines, const char *line, size_t length)
{
    return qn_fail(w->o->ctx, QN_E_INVALID,
                   "%s:%lld: '%.*s' is not 'NAME CLASS' or 'CLASS', a number from 0 on", w->path,
                   (long long)lines->number, (int)QN_MIN(length, 80), line);
}

/* "7": the class of the next sample. */
static bool plain_number(int64_t *out, const char *line, size_t length)
{
    int64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (line[i] < '0' || line[i] > '9' || i > 17)
            return false;
        value = value * 10 + (line[i] - '0');
    }
    *out = value;
    return true;
}

static qn_status take_line(work *w, const qn_names *names, const qn_lines *lines, const char *line,
                           size_t length)
{
    int64_t label;
    if (plain_number(&label, line, length)) {
        if (w->seen < w->source->count)
            w->labels[w->seen] = label;
        w->seen++; /* all are counted */
        return QN_OK;
    }
    const size_t whole = length;
    label = qn_line_label(line, &length);
    if (label < 0)
        return bad_line(w, lines, line, whole);
    if (!w->source->files)
        return qn_fail(w->o->ctx, QN_E_INVALID,
                       "%s:%lld names a sample, but those of %s have no names: write the classes "
                       "alone",
                       w->path, (long long)lines->number, w->source->path);
    const char *name = qn_arena_text(w->o->arena, line, length);
    QN_TRY_ALLOC(w->o->ctx, name);
    int64_t *place = qn_names_get(names, name);
    if (place && *place >= 0 && *place != label)
        return qn_fail(w->o->ctx, QN_E_INVALID, "%s:%lld: '%s' has class %lld already", w->path,
                       (long long)lines->number, name, (long long)*place);
    if (place)
        *place = label;
    return QN_OK;
}

static qn_status from_text(work *w)
{
    qn_context *ctx = w->o->ctx;
    qn_lines lines = {.at = 0};
    qn_names names;
    const char *line;
    size_t length;
    qn_names_init(&names, ctx);
    qn_status status = qn_map_open(&lines.map, ctx, w->path);
    if (status == QN_OK)
        status = index_samples(&names, w);
    while (status == QN_OK && qn_lines_next(&line, &length, &lines))
        status = take_line(w, &names, &lines, line, length);
    qn_map_close(&lines.map);
    qn_names_free(&names);
    return status;
}

static qn_status check_complete(const work *w)
{
    const int64_t asked = w->o->spec->labelled, count = w->source->count;
    const int64_t needed = asked ? QN_MIN(asked, count) : count;
    if (w->seen > count || (w->seen && (w->seen < needed || (!asked && w->seen != count))))
        return wrong_count(w, w->seen);
    for (int64_t i = 0; i < needed; i++) {
        if (w->labels[i] < 0)
            return qn_fail(w->o->ctx, QN_E_INVALID,
                           "%s has no class for '%s' (`list` chooses samples)", w->path,
                           w->source->files ? w->source->files->names[i] : w->source->path);
    }
    return QN_OK;
}

qn_status qn_class_labels_read(const int64_t **out, qn_dataset_builder *o,
                               const qn_dataset_source *source)
{
    work w = {.o = o, .path = o->spec->labels, .source = source};
    qn_file_bytes bytes;
    w.labels = qn_arena_array(o->arena, (size_t)source->count, sizeof *w.labels);
    QN_TRY_ALLOC(o->ctx, w.labels);
    for (int64_t i = 0; i < source->count; i++)
        w.labels[i] = -1;
    *out = w.labels;
    if (qn_file_kind_of(w.path) == QN_FILE_NPY)
        return from_npy(&w);
    QN_TRY(qn_file_bytes_open(&bytes, o->ctx, w.path));
    const bool is_idx = qn_idx_is(bytes.data, bytes.size);
    const qn_status status = is_idx ? from_idx(&w, &bytes) : from_text(&w);
    qn_file_bytes_close(&bytes, o->ctx);
    QN_TRY(status);
    return check_complete(&w);
}
