/* One .npy, .npz or raw file per sample. */
#include <string.h>

#include "data/dataset_source.h"
#include "data/input_files.h"

typedef struct tensors {
    /* Axis 0 of a batch taken as 1, for raw files */
    qn_input_list inputs;
    size_t named;
    /* The data set's: what every file must hold */
    qn_dataset_input *in;
    /* [inputs] */
    bool *ours;
} tensors;

static void free_files(qn_tensor **files, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        qn_tensor_free(files[k]);
        files[k] = NULL;
    }
}

/* How a file's array becomes a sample: with an axis 0 of 1 in front or without it, else it is the
 * whole. */
static bool as_sample(qn_tensor *sample, const qn_tensor *file, const qn_value_info *info)
{
    *sample = *file;
    if (info->rank > 0 && file->rank == info->rank - 1)
        return false;
    const bool single = file->rank > 0 && file->dims[0] == 1 && file->rank == info->rank;
    if (single)
        memmove(sample->dims, sample->dims + 1, (size_t)--sample->rank * sizeof *sample->dims);
    return !single;
}

/* Dimensions that the model leaves open may differ from sample to sample. */
static bool is_open(const qn_value_info *info, const qn_tensor *sample, int32_t d)
{
    const int32_t own = d + info->rank - sample->rank;
    return own > 0 && info->dims[own] < 0;
}

static bool fits(const qn_tensor *sample, const qn_tensor *first, const qn_value_info *info)
{
    bool same = (sample->dtype == first->dtype || qn_array_converts(sample->dtype, first->dtype)) &&
                sample->rank == first->rank;
    for (int32_t d = 0; same && d < sample->rank; d++)
        same = sample->dims[d] == first->dims[d] || is_open(info, sample, d);
    return same;
}

static qn_status differs(qn_context *ctx, const qn_tensor *file, const qn_tensor *first)
{
    char own[256], other[256];
    const qn_type types[2] = {qn_type_of(file), qn_type_of(first)};
    qn_type_format(own, sizeof own, &types[0]);
    qn_type_format(other, sizeof other, &types[1]);
    return qn_fail(ctx, QN_E_INVALID, "the sample is %s, the first one %s", own, other);
}

static qn_status check_sample(qn_tensor *sample, qn_context *ctx, const tensors *t, size_t k,
                              const qn_tensor *file)
{
    if (!file)
        return qn_fail(ctx, QN_E_INVALID, "no array for input '%s', unlike the first file",
                       t->inputs.at[k].name);
    (void)as_sample(sample, file, &t->inputs.at[k]);
    return fits(sample, &t->in[k].sample, &t->inputs.at[k])
               ? QN_OK
               : differs(ctx, sample, &t->in[k].sample);
}

static qn_status copy_sample(void *to, qn_context *ctx, const tensors *t, size_t k,
                             const qn_tensor *file)
{
    qn_tensor sample;
    QN_TRY(check_sample(&sample, ctx, t, k, file));
    const int64_t count = qn_tensor_count(&sample);
    const qn_dtype dtype = t->in[k].sample.dtype;
    if ((size_t)count * qn_dtype_size(dtype) > t->in[k].bytes)
        return qn_fail(ctx, QN_E_INVALID, "the file has grown since it was looked at");
    qn_array_copy(to, dtype, file, 0, count);
    return QN_OK;
}

static qn_status open_files(qn_tensor ***out, qn_context *ctx, const tensors *t, const char *path,
                            qn_input_file_use use)
{
    qn_tensor **files = qn_alloc_zero(ctx, t->inputs.count + 1, sizeof *files);
    *out = files;
    QN_TRY_ALLOC(ctx, files);
    return qn_input_files_open(files, ctx, &t->inputs, t->named, path, use);
}

static qn_status read_sample(void *const *to, qn_picture_place *place,
                             const qn_dataset_source *source, qn_context *ctx, int64_t i)
{
    (void)place;
    const tensors *t = source->own;
    const char *path = source->files->paths[i];
    qn_tensor **files;
    qn_status status = open_files(&files, ctx, t, path, QN_INPUT_FILE_AGAIN);
    for (size_t k = 0; status == QN_OK && k < t->inputs.count; k++) {
        if (t->ours[k])
            status = copy_sample(to[k], ctx, t, k, files[k]);
        if (status != QN_OK)
            status = qn_fail_within(ctx, status, "%s", path);
    }
    if (files)
        free_files(files, t->inputs.count);
    qn_free(ctx, files);
    return status;
}

static void close_tensors(qn_dataset_source *source)
{
    (void)source;
}

static const qn_dataset_source_kind tensors_kind = {read_sample, NULL, close_tensors};

/* The model's inputs with a single sample along axis 0 where that is open. */
static qn_status single_inputs(qn_input_list *out, qn_dataset_builder *o)
{
    qn_value_info *at =
        qn_arena_copy(o->arena, o->spec->inputs, o->spec->n_inputs * sizeof *o->spec->inputs);
    QN_TRY_ALLOC(o->ctx, at);
    for (size_t k = 0; k < o->spec->n_inputs; k++) {
        if (at[k].rank > 0 && at[k].dims[0] < 0)
            at[k].dims[0] = 1;
    }
    *out = (qn_input_list){at, o->spec->n_inputs};
    return QN_OK;
}

/* The first file shows which inputs the folder feeds. */
static qn_status look_at_first(const qn_dataset_source *source, qn_dataset_builder *o, tensors *t)
{
    qn_tensor **files;
    qn_status status = open_files(&files, o->ctx, t, source->files->paths[0], QN_INPUT_FILE_WHOLE);
    for (size_t k = 0; status == QN_OK && k < t->inputs.count; k++) {
        qn_tensor sample;
        if (!files[k])
            continue;
        t->ours[k] = true;
        const bool whole = as_sample(&sample, files[k], &t->inputs.at[k]);
        status = qn_dataset_builder_feed(o, k, &sample, whole);
    }
    if (files)
        free_files(files, t->inputs.count);
    qn_free(o->ctx, files);
    return status;
}

/* ---- Shapes that differ ---------------------------------------------------------------------- */

static bool may_differ(const tensors *t, size_t k)
{
    bool open = false;
    for (int32_t d = 0; t->ours[k] && d < t->in[k].sample.rank; d++)
        open = open || is_open(&t->inputs.at[k], &t->in[k].sample, d);
    return open;
}

static qn_status note_shape(qn_dataset_builder *o, const tensors *t, size_t k, int64_t i,
                            const qn_tensor *file)
{
    qn_tensor sample;
    QN_TRY(check_sample(&sample, o->ctx, t, k, file));
    return qn_dataset_builder_note_shape(o, k, i, &sample);
}

static qn_status note_shapes(const qn_dataset_source *source, qn_dataset_builder *o,
                             const tensors *t, int64_t i)
{
    const char *path = source->files->paths[i];
    qn_tensor **files;
    qn_status status = open_files(&files, o->ctx, t, path, QN_INPUT_FILE_AGAIN);
    for (size_t k = 0; status == QN_OK && k < t->inputs.count; k++) {
        if (t->in[k].dims && t->ours[k])
            status = note_shape(o, t, k, i, files[k]);
        if (status != QN_OK)
            status = qn_fail_within(o->ctx, status, "%s", path);
    }
    if (files)
        free_files(files, t->inputs.count);
    qn_free(o->ctx, files);
    return status;
}

/* All files are looked at where the model takes samples of different shapes. */
static qn_status look_at_all(const qn_dataset_source *source, qn_dataset_builder *o,
                             const tensors *t)
{
    bool any = false;
    for (size_t k = 0; k < t->inputs.count; k++) {
        if (!may_differ(t, k))
            continue;
        any = true;
        QN_TRY(qn_dataset_builder_begin_shapes(o, k, source->count));
    }
    for (int64_t i = 0; any && i < source->count; i++)
        QN_TRY(note_shapes(source, o, t, i));
    for (size_t k = 0; k < t->inputs.count; k++) {
        if (t->ours[k] && t->in[k].dims)
            qn_dataset_builder_end_shapes(o, k, source->count);
    }
    return QN_OK;
}

qn_status qn_dataset_source_open_tensors(qn_dataset_source *source, qn_dataset_builder *o,
                                         size_t named)
{
    tensors *own = qn_arena_alloc(o->arena, sizeof *own);
    QN_TRY_ALLOC(o->ctx, own);
    *own = (tensors){.named = named, .in = o->in};
    own->ours = qn_arena_array(o->arena, o->spec->n_inputs + 1, sizeof *own->ours);
    QN_TRY_ALLOC(o->ctx, own->ours);
    QN_TRY(single_inputs(&own->inputs, o));
    source->own = own;
    source->kind = &tensors_kind;
    source->count = source->files->count;
    QN_TRY(look_at_first(source, o, own));
    return look_at_all(source, o, own);
}
