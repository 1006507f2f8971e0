/* Data sets: opens the sources behind the arguments, and reads samples from them. */
#include "data/dataset.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/dataset_source.h"
#include "data/input_files.h"

struct qn_dataset {
    qn_context *ctx;
    qn_arena arena;
    /* [n_inputs] */
    qn_dataset_input *in;
    qn_dataset_source *sources;
    size_t n_sources;
    int64_t count;
    /* [count] or NULL */
    const int64_t *labels;
};

/* ---- What sources know of inputs ------------------------------------------------------------- */

/* Whether samples fit the model's shape and type, as far as these are known. */
static bool fits(const qn_value_info *info, const qn_dataset_input *in)
{
    const int32_t skipped = in->whole ? 0 : 1;
    bool same = (info->dtype == QN_UNDEFINED || info->dtype == in->sample.dtype) &&
                in->sample.rank + skipped == info->rank;
    for (int32_t d = skipped; same && d < info->rank; d++)
        same = info->dims[d] < 0 || info->dims[d] == in->sample.dims[d - skipped];
    return same || info->rank < 0;
}

/* Numbers of another type become what a float input takes. */
static void convert(qn_dataset_builder *o, qn_dataset_input *in, const qn_value_info *info)
{
    const qn_dtype own = in->sample.dtype;
    if (own == info->dtype || !qn_array_converts(own, info->dtype))
        return;
    in->sample.dtype = info->dtype;
    qn_log(o->ctx, QN_LOG_NOTE, "%s: %s numbers are made %s, which input '%s' takes", o->path,
           qn_dtype_get(own)->name, qn_dtype_get(info->dtype)->name, info->name);
}

qn_status qn_dataset_builder_feed(qn_dataset_builder *o, size_t k, const qn_tensor *sample,
                                  bool whole)
{
    qn_dataset_input *in = &o->in[k];
    const char *name = o->spec->inputs[k].name;
    if (in->fed)
        return qn_fail(o->ctx, QN_E_OPTION, "input '%s' is given twice", name);
    *in = (qn_dataset_input){.fed = true, .whole = whole, .sample = *sample};
    in->sample.data = NULL;
    convert(o, in, &o->spec->inputs[k]);
    if (!fits(&o->spec->inputs[k], in))
        return qn_fail_input_mismatch(o->ctx, o->path, sample, &o->spec->inputs[k]);
    if (sample->dtype == QN_STRING ||
        !qn_tensor_bytes(&in->bytes, in->sample.dtype, sample->rank, sample->dims))
        return qn_fail(o->ctx, QN_E_INVALID, "data for '%s' is too large or no numbers", name);
    return QN_OK;
}

qn_status qn_dataset_builder_begin_shapes(qn_dataset_builder *o, size_t k, int64_t count)
{
    o->in[k].dims = qn_arena_array(o->arena, (size_t)count, sizeof *o->in[k].dims);
    QN_TRY_ALLOC(o->ctx, o->in[k].dims);
    return QN_OK;
}

qn_status qn_dataset_builder_note_shape(qn_dataset_builder *o, size_t k, int64_t i,
                                        const qn_tensor *sample)
{
    qn_dataset_input *in = &o->in[k];
    size_t bytes = 0;
    if (!qn_tensor_bytes(&bytes, in->sample.dtype, sample->rank, sample->dims))
        return qn_fail(o->ctx, QN_E_INVALID, "the sample is too large");
    memcpy(in->dims[i], sample->dims, sizeof sample->dims);
    in->bytes = QN_MAX(in->bytes, bytes);
    return QN_OK;
}

void qn_dataset_builder_end_shapes(qn_dataset_builder *o, size_t k, int64_t count)
{
    qn_dataset_input *in = &o->in[k];
    bool alike = true;
    for (int64_t i = 0; alike && i < count; i++)
        alike = memcmp(in->dims[i], in->dims[0], (size_t)in->sample.rank * sizeof **in->dims) == 0;
    if (alike)
        in->dims = NULL;
}

qn_status qn_dataset_builder_input(size_t *out, qn_dataset_builder *o, size_t named,
                                   const char *path)
{
    *out = named != SIZE_MAX ? named : 0;
    if (named == SIZE_MAX && o->spec->n_inputs != 1)
        return qn_fail(o->ctx, QN_E_OPTION, "'%s' needs the name of an input before it: NAME=%s",
                       path, path);
    return QN_OK;
}

/* ---- What a path is -------------------------------------------------------------------------- */

typedef qn_status open_fn(qn_dataset_source *source, qn_dataset_builder *o, size_t named);

static qn_status open_listed(qn_dataset_source *source, qn_dataset_builder *o, size_t named)
{
    return source->files->kind == QN_FILE_PICTURE
               ? qn_dataset_source_open_pictures(source, o, named)
               : qn_dataset_source_open_tensors(source, o, named);
}

static qn_status open_folder(qn_dataset_source *source, qn_dataset_builder *o, size_t named)
{
    qn_listing *files = qn_arena_alloc(o->arena, sizeof *files);
    QN_TRY_ALLOC(o->ctx, files);
    QN_TRY(qn_listing_folder(files, o->ctx, o->arena, source->path));
    if (o->spec->list)
        QN_TRY(qn_listing_select(files, o->ctx, o->arena, o->spec->list));
    source->files = files;
    source->labels = files->labels;
    return open_listed(source, o, named);
}

static qn_status open_list(qn_dataset_source *source, qn_dataset_builder *o, size_t named)
{
    qn_listing *files = qn_arena_alloc(o->arena, sizeof *files);
    QN_TRY_ALLOC(o->ctx, files);
    QN_TRY(qn_listing_file(files, o->ctx, o->arena, source->path));
    source->files = files;
    source->labels = files->labels;
    return open_listed(source, o, named);
}

/* A picture alone. */
static qn_status open_single(qn_dataset_source *source, qn_dataset_builder *o, size_t named)
{
    qn_listing *files = qn_arena_alloc(o->arena, sizeof *files);
    QN_TRY_ALLOC(o->ctx, files);
    *files = (qn_listing){.kind = QN_FILE_PICTURE, .count = 1};
    files->paths = files->names = qn_arena_copy(o->arena, &source->path, sizeof source->path);
    QN_TRY_ALLOC(o->ctx, files->paths);
    source->files = files;
    return qn_dataset_source_open_pictures(source, o, named);
}

static const struct {
    const char *name;
    open_fn *open;
} kinds[] = {
    {"folder", open_folder},
    {"list", open_list},
    {"array", qn_dataset_source_open_array},
    {"idx", qn_dataset_source_open_idx},
    {"picture", open_single},
    {"cifar10", qn_dataset_source_open_cifar10},
    {"cifar100", qn_dataset_source_open_cifar100},
};

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), own = strlen(ending);
    return length > own && strcasecmp(path + length - own, ending) == 0;
}

/* Whether the bytes are whole records with classes in their range. */
static bool is_cifar(const qn_file_bytes *bytes, size_t before, unsigned most)
{
    const size_t record = 3072 + before;
    if (bytes->size == 0 || bytes->size % record)
        return false;
    for (size_t at = before - 1; at < bytes->size; at += record) {
        if (bytes->data[at] > most)
            return false;
    }
    return true;
}

/* Whether the bytes are whole samples of the input as it is stored. */
static bool is_raw(const qn_file_bytes *bytes, const qn_dataset_builder *o, size_t named)
{
    const qn_value_info *info = &o->spec->inputs[named == SIZE_MAX ? 0 : named];
    int64_t dims[QN_MAX_RANK];
    size_t sample;
    if (o->spec->n_inputs == 0 || info->rank < 1)
        return false;
    memcpy(dims, info->dims, sizeof dims);
    dims[0] = 1;
    return qn_tensor_bytes(&sample, info->dtype, info->rank, dims) && sample &&
           bytes->size % sample == 0;
}

/* Chooses the kind of source by the file's contents, where its name does not show it. */
static qn_status look_inside(open_fn **out, const qn_dataset_source *source, qn_dataset_builder *o,
                             size_t named)
{
    qn_file_bytes bytes;
    qn_status status = QN_OK;
    qn_idx idx;
    QN_TRY(qn_file_bytes_open(&bytes, o->ctx, source->path));
    const bool packed = bytes.block != NULL, raw = !packed && is_raw(&bytes, o, named);
    const bool ten = is_cifar(&bytes, 1, 9), hundred = is_cifar(&bytes, 2, 99);
    *out = qn_dataset_source_open_array;
    if (qn_idx_is(bytes.data, bytes.size) &&
        qn_idx_parse(&idx, o->ctx, bytes.data, bytes.size) == QN_OK)
        *out = qn_dataset_source_open_idx;
    else if (ten || hundred)
        *out = ten ? qn_dataset_source_open_cifar10 : qn_dataset_source_open_cifar100;
    else if (packed)
        status =
            qn_fail(o->ctx, QN_E_FORMAT, "%s: unpacked it is neither IDX nor CIFAR", source->path);
    if (*out != qn_dataset_source_open_array && raw)
        status = qn_fail(o->ctx, QN_E_INVALID,
                         "%s could be raw samples or pictures: write array:, idx:, cifar10: or "
                         "cifar100: before it",
                         source->path);
    qn_file_bytes_close(&bytes, o->ctx);
    return status;
}

static qn_status find_kind(open_fn **out, const qn_dataset_source *source, qn_dataset_builder *o,
                           size_t named)
{
    const qn_file_kind kind = qn_file_kind_of(source->path);
    if (qn_path_is_folder(source->path))
        *out = open_folder;
    else if (ends_with(source->path, ".txt") || ends_with(source->path, ".lst"))
        *out = open_list;
    else if (kind == QN_FILE_UNDECODABLE)
        return qn_fail_undecodable(o->ctx, source->path);
    else if (kind == QN_FILE_PICTURE)
        *out = open_single;
    else if (kind == QN_FILE_NPY || kind == QN_FILE_NPZ || strstr(source->path, ".npz:"))
        *out = qn_dataset_source_open_array;
    else
        return look_inside(out, source, o, named);
    return QN_OK;
}

/* "kind:path" */
static open_fn *named_kind(const char **path)
{
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        const size_t length = strlen(kinds[i].name);
        if (strncmp(*path, kinds[i].name, length) == 0 && (*path)[length] == ':') {
            *path += length + 1;
            return kinds[i].open;
        }
    }
    return NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qn_status open_source(qn_dataset_source *source, qn_dataset_builder *o, const char *text)
{
    const qn_input_list inputs = {o->spec->inputs, o->spec->n_inputs};
    size_t named;
    QN_TRY(qn_input_split(&named, &source->path, o->ctx, &inputs, text));
    open_fn *open = named_kind(&source->path);
    source->path = qn_arena_text(o->arena, source->path, strlen(source->path));
    QN_TRY_ALLOC(o->ctx, source->path);
    o->path = source->path;
    if (!open)
        QN_TRY(find_kind(&open, source, o, named));
    if (o->spec->list && open != open_folder)
        return qn_fail(o->ctx, QN_E_OPTION, "a list chooses from a folder, which '%s' is not",
                       source->path);
    return open(source, o, named);
}

static qn_status open_sources(qn_dataset *data, qn_dataset_builder *o)
{
    const qn_dataset_spec *spec = o->spec;
    data->sources = qn_arena_array(&data->arena, spec->n_data + 1, sizeof *data->sources);
    QN_TRY_ALLOC(o->ctx, data->sources);
    for (size_t i = 0; i < spec->n_data; i++) {
        qn_dataset_source *source = &data->sources[i];
        if (spec->steps)
            o->preprocess = spec->steps[i];
        const qn_status status = open_source(source, o, spec->data[i]);
        data->n_sources = i + (source->kind != NULL);
        QN_TRY(status);
        if (i > 0 && source->count != data->count)
            return qn_fail(o->ctx, QN_E_INVALID, "%s has %lld samples, %s %lld", source->path,
                           (long long)source->count, data->sources[0].path, (long long)data->count);
        data->count = source->count;
    }
    if (spec->preprocess && *spec->preprocess && !o->pictures)
        return qn_fail(o->ctx, QN_E_OPTION, "preprocessing is for pictures, and the data are none");
    return QN_OK;
}

/* A file of classes is for the samples that have names, or the first ones. */
static qn_status find_labels(qn_dataset *data, qn_dataset_builder *o)
{
    const qn_dataset_source *chosen = data->sources;
    for (size_t i = data->n_sources; i-- > 0;) {
        if (data->sources[i].labels)
            data->labels = data->sources[i].labels;
        if (data->sources[i].files)
            chosen = &data->sources[i];
    }
    return o->spec->labels ? qn_class_labels_read(&data->labels, o, chosen) : QN_OK;
}

static qn_status open_all(qn_dataset *data, const qn_dataset_spec *spec)
{
    qn_dataset_builder o = {.ctx = data->ctx, .arena = &data->arena, .spec = spec};
    QN_TRY(qn_preprocess_parse(&o.preprocess, data->ctx, spec->preprocess));
    data->in = qn_arena_array(&data->arena, spec->n_inputs + 1, sizeof *data->in);
    QN_TRY_ALLOC(data->ctx, data->in);
    o.in = data->in;
    QN_TRY(open_sources(data, &o));
    return find_labels(data, &o);
}

qn_status qn_dataset_open(qn_dataset **out, qn_context *ctx, const qn_dataset_spec *spec)
{
    qn_dataset *data = qn_alloc_zero(ctx, 1, sizeof *data);
    *out = NULL;
    QN_TRY_ALLOC(ctx, data);
    data->ctx = ctx;
    qn_arena_init(&data->arena, &ctx->allocator);
    const qn_status status = open_all(data, spec);
    if (status == QN_OK)
        *out = data;
    else
        qn_dataset_free(data);
    return status;
}

void qn_dataset_free(qn_dataset *data)
{
    if (!data)
        return;
    for (size_t i = 0; i < data->n_sources; i++)
        data->sources[i].kind->close(&data->sources[i]);
    qn_arena_free(&data->arena);
    qn_free(data->ctx, data);
}

/* ---- Samples --------------------------------------------------------------------------------- */

int64_t qn_dataset_count(const qn_dataset *data)
{
    return data->count;
}

const qn_dataset_input *qn_dataset_inputs(const qn_dataset *data)
{
    return data->in;
}

void qn_dataset_sample(qn_tensor *out, const qn_dataset *data, size_t k, int64_t i)
{
    *out = data->in[k].sample;
    if (data->in[k].dims)
        memcpy(out->dims, data->in[k].dims[i], sizeof out->dims);
}

qn_status qn_dataset_read(void *const *to, qn_picture_place *place, const qn_dataset *data,
                          qn_context *ctx, int64_t i)
{
    qn_picture_place first = {.width = 0};
    for (size_t s = 0; s < data->n_sources; s++) {
        qn_picture_place own = {.width = 0};
        QN_TRY(data->sources[s].kind->read(to, &own, &data->sources[s], ctx, i));
        first = first.width ? first : own;
    }
    if (place)
        *place = first;
    return QN_OK;
}

qn_status qn_dataset_picture(qn_image *out, const qn_dataset *data, qn_context *ctx, int64_t i)
{
    for (size_t s = 0; s < data->n_sources; s++) {
        const qn_dataset_source *source = &data->sources[s];
        if (source->kind->picture)
            return source->kind->picture(out, source, ctx, i);
    }
    return qn_fail(ctx, QN_E_INVALID, "%s: the samples are no pictures", data->sources[0].path);
}

int64_t qn_dataset_label(const qn_dataset *data, int64_t i)
{
    return data->labels ? data->labels[i] : -1;
}

/* The source that names the samples: the first with a file for each. */
static const qn_dataset_source *naming_source(const qn_dataset *data)
{
    for (size_t s = 0; s < data->n_sources; s++) {
        if (data->sources[s].files)
            return &data->sources[s];
    }
    return data->sources;
}

const char *qn_dataset_path(const qn_dataset *data, int64_t i)
{
    const qn_dataset_source *chosen = naming_source(data);
    return chosen->files ? chosen->files->paths[i] : NULL;
}

const char *qn_dataset_name(char *out, size_t size, const qn_dataset *data, int64_t i)
{
    const qn_dataset_source *chosen = naming_source(data);
    if (chosen->files)
        snprintf(out, size, "%s", chosen->files->names[i]);
    else
        snprintf(out, size, "%s[%lld]", chosen->path, (long long)i);
    return out;
}
