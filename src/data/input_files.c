/* Samples along the first axis of an array in a file. */
#include <string.h>

#include "base/nearest.h"
#include "data/dataset_source.h"
#include "data/input_files.h"

/* ---- "[input=]file" -------------------------------------------------------------------------- */

static qn_status fail_no_input(qn_context *ctx, const qn_input_list *inputs, qn_string name)
{
    const char *names[QN_INPUTS_SHOWN];
    for (size_t i = 0; i < QN_MIN(inputs->count, QN_INPUTS_SHOWN); i++)
        names[i] = inputs->at[i].name;
    return qn_fail_no_input(ctx, name, names, inputs->count);
}

qn_status qn_input_split(size_t *input, const char **path, qn_context *ctx,
                         const qn_input_list *inputs, const char *text)
{
    size_t longest = 0;
    *input = SIZE_MAX;
    *path = text;
    for (size_t i = 0; i < inputs->count; i++) {
        const size_t length = strlen(inputs->at[i].name);
        if (strncmp(text, inputs->at[i].name, length) == 0 && text[length] == '=' &&
            (*input == SIZE_MAX || length > longest)) {
            longest = length;
            *input = i;
            *path = text + length + 1;
        }
    }
    const char *equals = strchr(text, '=');
    if (*input == SIZE_MAX && equals)
        return fail_no_input(ctx, inputs, (qn_string){text, (size_t)(equals - text)});
    if (**path == 0)
        return qn_fail(ctx, QN_E_OPTION, "'%s': the name of a file is missing", text);
    return QN_OK;
}

/* ---- Arrays for inputs ----------------------------------------------------------------------- */

typedef struct opening {
    qn_context *ctx;
    const qn_input_list *inputs;
    qn_tensor **files;
    qn_input_file_use use;
} opening;

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), own = strlen(ending);
    return length >= own && strcmp(text + length - own, ending) == 0;
}

static qn_status open_one(const opening *o, size_t i, const char *path, const char *entry)
{
    const qn_value_info *info = &o->inputs->at[i];
    qn_tensor like = {.dtype = info->dtype, .rank = info->rank};
    memcpy(like.dims, info->dims, sizeof like.dims);
    if (o->use == QN_INPUT_FILE_SAMPLES && like.rank > 0)
        like.dims[0] = -1;
    if (o->files[i])
        return qn_fail(o->ctx, QN_E_OPTION, "input '%s' is given twice", info->name);
    const qn_tensor_load_options options = {QN_OPTIONS_VERSION, .entry = entry, .like = &like};
    return qn_tensor_load(&o->files[i], o->ctx, path, &options);
}

enum { ARRAYS_SHOWN = 8 };

static qn_status fail_no_array(const opening *o, size_t input, const char *path,
                               const qn_string *names, size_t count)
{
    char list[QN_ERROR_SIZE / 2] = "";
    for (size_t i = 0; i < QN_MIN(count, ARRAYS_SHOWN); i++)
        qn_word_list(list, sizeof list, "'%.*s'", (int)names[i].length, names[i].text);
    const bool several = input == SIZE_MAX;
    return qn_fail(o->ctx, QN_E_INVALID,
                   "%s: no array has the name of %s%s%s; it has %s%s: name one, as in %s=%s:%.*s",
                   path, several ? "an input" : "input '", several ? "" : o->inputs->at[input].name,
                   several ? "" : "'", list, count > ARRAYS_SHOWN ? " and more" : "",
                   o->inputs->at[several ? 0 : input].name, path, (int)names[0].length,
                   names[0].text);
}

/* Opens an archive without an array of the input's name. An array that is alone in the archive
 * feeds an input that is alone too. SIZE_MAX: there are several inputs. */
static qn_status open_nameless(const opening *o, size_t input, const char *path, const qn_map *map)
{
    qn_string names[ARRAYS_SHOWN];
    size_t count;
    const qn_status status = qn_npz_list(&count, names, ARRAYS_SHOWN, o->ctx, map);
    if (status != QN_OK)
        return qn_fail_within(o->ctx, status, "%s", path);
    if (count > (input == SIZE_MAX ? 0 : 1))
        return fail_no_array(o, input, path, names, count);
    if (input == SIZE_MAX)
        return qn_fail(o->ctx, QN_E_INVALID, "%s: no array has the name of an input", path);
    if (count == 1 && o->use != QN_INPUT_FILE_AGAIN)
        qn_log(o->ctx, QN_LOG_NOTE, "%s: its only array, '%.*s', is taken for input '%s'", path,
               (int)names[0].length, names[0].text, o->inputs->at[input].name);
    return open_one(o, input, path, NULL);
}

/* Arrays by the names of the inputs, for all inputs or for the one that is named. */
static qn_status open_arrays(const opening *o, size_t named, const char *path, const qn_map *map)
{
    size_t found = 0;
    qn_status status = QN_OK;
    for (size_t i = 0; i < o->inputs->count; i++) {
        const char *name = o->inputs->at[i].name;
        bool has = false;
        if (named == SIZE_MAX || named == i)
            status = qn_npz_has(&has, o->ctx, map, name);
        if (status != QN_OK)
            return qn_fail_within(o->ctx, status, "%s", path);
        if (!has)
            continue;
        found++;
        QN_TRY(open_one(o, i, path, name));
    }
    if (found)
        return QN_OK;
    return open_nameless(o, o->inputs->count == 1 ? 0 : named, path, map);
}

static qn_status open_archive(const opening *o, size_t named, const char *path)
{
    qn_map map;
    QN_TRY(qn_map_open(&map, o->ctx, path));
    const qn_status status = open_arrays(o, named, path, &map);
    qn_map_close(&map);
    return status;
}

qn_status qn_input_files_open(qn_tensor **files, qn_context *ctx, const qn_input_list *inputs,
                              size_t named, const char *path, qn_input_file_use use)
{
    const opening o = {ctx, inputs, files, use};
    if (ends_with(path, ".npz"))
        return open_archive(&o, named, path);
    if (named != SIZE_MAX || inputs->count == 1)
        return open_one(&o, named != SIZE_MAX ? named : 0, path, NULL);
    return qn_fail(ctx, QN_E_OPTION, "'%s' needs the name of an input before it: NAME=%s", path,
                   path);
}

/* How numpy gets at the type that is wanted. */
static const char *conversion(qn_dtype has, qn_dtype wants)
{
    const qn_dtype_info *from = qn_dtype_get(has), *to = qn_dtype_get(wants);
    return has != wants && from->npy && to->npy ? to->name : NULL;
}

qn_status qn_fail_input_mismatch(qn_context *ctx, const char *path, const qn_tensor *has,
                                 const qn_value_info *info)
{
    char own[128], wants[128];
    qn_type type = qn_type_of(has);
    qn_type_format(own, sizeof own, &type);
    type = qn_type_tensor(info->dtype, info->rank, info->dims);
    for (int32_t d = 0; d < info->rank; d++)
        type.dims[d].symbol = info->dims[d] < 0 ? info->symbols[d] : NULL;
    qn_type_format(wants, sizeof wants, &type);
    const char *to = conversion(has->dtype, info->dtype);
    return qn_fail(ctx, QN_E_INVALID, "%s: %s is not what input '%s' takes, %s%s%s%s", path, own,
                   info->name, wants, to ? "; numpy converts it: .astype(np." : "", to ? to : "",
                   to ? ")" : "");
}

bool qn_array_converts(qn_dtype from, qn_dtype to)
{
    return qn_dtype_is_float(to) && (qn_dtype_is_float(from) || qn_dtype_is_integer(from));
}

void qn_array_copy(void *to, qn_dtype dtype, const qn_tensor *file, int64_t first, int64_t count)
{
    enum { PIECE = 1024 };
    const size_t size = qn_dtype_size(file->dtype);
    double numbers[PIECE];
    if (dtype == file->dtype) {
        memcpy(to, (const char *)file->data + (size_t)first * size, (size_t)count * size);
        return;
    }
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, PIECE);
        qn_load_f64(numbers, file->dtype, file->data, first + at, n);
        qn_store_f64(to, dtype, at, numbers, n);
    }
}

/* ---- The source ------------------------------------------------------------------------------ */

typedef struct arrays {
    size_t n_inputs;
    /* [n_inputs]; NULL where the input is not from here */
    qn_tensor **files;
    const qn_dataset_input *in;
} arrays;

static size_t sample_bytes(const qn_tensor *file)
{
    return (size_t)(qn_tensor_count(file) / file->dims[0]) * qn_dtype_size(file->dtype);
}

/* Samples are mostly read once and in order, so pages of a mapped file that were read are released
 * a piece at a time; a large file would fill the memory otherwise. The system reads them again
 * where they are needed. */
static void let_go(const qn_tensor *file, size_t begin, size_t end)
{
    enum { PIECE = 4 << 20 };
    const qn_array *array = (const qn_array *)file;
    const size_t first = begin / PIECE * PIECE, last = end / PIECE * PIECE;
    if (!array->block && first < last)
        qn_map_release_pages(&array->map, (const char *)file->data + first, last - first);
}

static qn_status read_sample(void *const *to, qn_picture_place *place,
                             const qn_dataset_source *source, qn_context *ctx, int64_t i)
{
    (void)place;
    const arrays *a = source->own;
    (void)ctx;
    for (size_t k = 0; k < a->n_inputs; k++) {
        if (!a->files[k])
            continue;
        const size_t bytes = sample_bytes(a->files[k]), begin = (size_t)i * bytes;
        const int64_t count = qn_tensor_count(a->files[k]) / a->files[k]->dims[0];
        qn_array_copy(to[k], a->in[k].sample.dtype, a->files[k], i * count, count);
        let_go(a->files[k], begin, begin + bytes);
    }
    return QN_OK;
}

static void close_arrays(qn_dataset_source *source)
{
    const arrays *a = source->own;
    for (size_t k = 0; k < a->n_inputs; k++)
        qn_tensor_free(a->files[k]);
}

static const qn_dataset_source_kind array_kind = {read_sample, NULL, close_arrays};

/* A file with one dimension more than the input has whole inputs as samples. */
static qn_status feed_input(qn_dataset_source *source, qn_dataset_builder *o, size_t k,
                            const qn_tensor *file)
{
    const qn_value_info *info = &o->spec->inputs[k];
    qn_tensor sample = *file;
    if (file->rank < 1)
        return qn_fail(o->ctx, QN_E_INVALID, "data for '%s' has no axis that counts samples",
                       info->name);
    if (file->dims[0] == 0)
        return qn_fail(o->ctx, QN_E_INVALID, "the data holds no samples");
    if (source->count >= 0 && source->count != file->dims[0])
        return qn_fail(o->ctx, QN_E_INVALID, "data for '%s' has %lld samples, other data %lld",
                       info->name, (long long)file->dims[0], (long long)source->count);
    source->count = file->dims[0];
    memmove(sample.dims, sample.dims + 1, (size_t)--sample.rank * sizeof *sample.dims);
    return qn_dataset_builder_feed(o, k, &sample, info->rank >= 0 && file->rank == info->rank + 1);
}

qn_status qn_dataset_source_open_array(qn_dataset_source *source, qn_dataset_builder *o,
                                       size_t named)
{
    const qn_input_list inputs = {o->spec->inputs, o->spec->n_inputs};
    arrays *own = qn_arena_alloc(o->arena, sizeof *own);
    QN_TRY_ALLOC(o->ctx, own);
    own->files = qn_arena_array(o->arena, inputs.count + 1, sizeof *own->files);
    QN_TRY_ALLOC(o->ctx, own->files);
    own->n_inputs = inputs.count;
    own->in = o->in;
    source->own = own;
    source->kind = &array_kind;
    source->count = -1;
    QN_TRY(qn_input_files_open(own->files, o->ctx, &inputs, named, source->path,
                               QN_INPUT_FILE_SAMPLES));
    for (size_t k = 0; k < inputs.count; k++) {
        if (own->files[k])
            QN_TRY(feed_input(source, o, k, own->files[k]));
    }
    return QN_OK;
}
