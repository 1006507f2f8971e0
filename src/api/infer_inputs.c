#include <string.h>

#include "api/infer.h"
#include "api/inputs.h"

/* ---- "name=file" ------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), own = strlen(ending);
    return length >= own && strcmp(text + length - own, ending) == 0;
}

/* The input that the text names before a '=', and the file behind it. Names may hold '=' themselves:
 * the longest one counts. */
static bool split_name(const qn_infer_job *job, const char *text, size_t *input, const char **path)
{
    size_t longest = 0;
    bool found = false;
    for (size_t i = 0; i < job->n_in; i++) {
        const char *name = qn_model_input_name(job->model, i);
        const size_t length = strlen(name);
        if (strncmp(text, name, length) == 0 && text[length] == '=' &&
            (!found || length > longest)) {
            found = true;
            longest = length;
            *input = i;
            *path = text + length + 1;
        }
    }
    return found;
}

/* The shape that the options give the input. */
static const qn_input_shape *option_shape(const qn_infer_job *job, const char *name)
{
    const qn_graph_options *graph = &job->options->plan.graph;
    for (size_t s = 0; s < graph->n_shapes; s++) {
        if (strcmp(graph->shapes[s].name, name) == 0)
            return &graph->shapes[s];
    }
    return NULL;
}

/* Type and shape of a raw file for input i: the options' shape, else the model's; -1 where open. */
static void raw_like(qn_tensor *out, const qn_infer_job *job, size_t i, bool sampled)
{
    qn_value_info info;
    qn_model_input_info(&info, job->model, i);
    const qn_input_shape *shape = option_shape(job, info.name);
    *out = (qn_tensor){.dtype = info.dtype, .rank = shape ? shape->rank : info.rank};
    for (int32_t d = 0; d < out->rank && d < QN_MAX_RANK; d++) {
        const int64_t own = d < info.rank ? info.dims[d] : -1;
        out->dims[d] = shape && shape->dims[d] >= 0 ? shape->dims[d] : own;
    }
    if (sampled && out->rank > 0)
        out->dims[0] = -1;
}

static qn_status open_file(qn_infer_job *job, size_t i, const char *path, const char *entry,
                           bool sampled)
{
    qn_infer_input *in = &job->in[i];
    qn_tensor like;
    if (in->file)
        return qn_fail(job->ctx, QN_E_INVALID, "input '%s' is given twice",
                       qn_model_input_name(job->model, i));
    raw_like(&like, job, i, sampled);
    const qn_tensor_load_options options = {.entry = entry, .like = &like};
    in->sampled = sampled;
    return qn_tensor_load(&in->file, job->ctx, path, &options);
}

/* Every array of the archive that has the name of an input. */
static qn_status open_archive(qn_infer_job *job, const char *path, bool sampled)
{
    qn_map map;
    qn_status status = QN_OK;
    size_t found = 0;
    QN_TRY(qn_map_open(&map, job->ctx, path));
    for (size_t i = 0; status == QN_OK && i < job->n_in; i++) {
        const char *name = qn_model_input_name(job->model, i);
        if (!qn_npz_has(map.data, map.size, name))
            continue;
        found++;
        status = open_file(job, i, path, name, sampled);
    }
    qn_map_close(&map);
    QN_TRY(status);
    if (found)
        return QN_OK;
    if (job->n_in == 1)
        return open_file(job, 0, path, NULL, sampled);
    return qn_fail(job->ctx, QN_E_INVALID, "%s: no array has the name of an input", path);
}

static qn_status open_text(qn_infer_job *job, const char *text, bool sampled)
{
    const char *path;
    size_t input;
    if (split_name(job, text, &input, &path)) {
        const char *name = qn_model_input_name(job->model, input);
        const bool archive = ends_with(path, ".npz");
        qn_map map = {NULL, 0};
        if (archive)
            QN_TRY(qn_map_open(&map, job->ctx, path));
        const bool named = archive && qn_npz_has(map.data, map.size, name);
        qn_map_close(&map);
        return open_file(job, input, path, named ? name : NULL, sampled);
    }
    if (ends_with(text, ".npz") && !strchr(text, '='))
        return open_archive(job, text, sampled);
    if (job->n_in == 1 && !strchr(text, '='))
        return open_file(job, 0, text, NULL, sampled);
    const char *equals = strchr(text, '=');
    if (equals)
        return qn_fail(job->ctx, QN_E_INVALID, "the model has no input '%.*s'",
                       (int)(equals - text), text);
    return qn_fail(job->ctx, QN_E_INVALID, "'%s' needs the name of an input before it: NAME=%s",
                   text, text);
}

/* ---- Samples ------------------------------------------------------------------------------------------ */

/* A file with one dimension more than the input has whole inputs as samples. */
static qn_status check_samples(qn_infer_job *job, size_t i)
{
    qn_infer_input *in = &job->in[i];
    qn_value_info info;
    qn_model_input_info(&info, job->model, i);
    if (in->file->rank < 1)
        return qn_fail(job->ctx, QN_E_INVALID, "data for '%s' has no axis that counts samples",
                       info.name);
    in->stacked = info.rank >= 0 && in->file->rank == info.rank + 1;
    if (!in->stacked && info.rank > 0 && info.dims[0] >= 0)
        in->batch = info.dims[0];
    if (job->samples >= 0 && job->samples != in->file->dims[0])
        return qn_fail(job->ctx, QN_E_INVALID, "data for '%s' has %lld samples, other data %lld",
                       info.name, (long long)in->file->dims[0], (long long)job->samples);
    job->samples = in->file->dims[0];
    const int64_t batch = in->stacked ? 1 : in->batch;
    if (batch && job->batch && job->batch != batch)
        return qn_fail(job->ctx, QN_E_INVALID, "inputs disagree about the batch: %lld and %lld",
                       (long long)batch, (long long)job->batch);
    job->batch = batch ? batch : job->batch;
    return QN_OK;
}

qn_status qn_infer_open_inputs(qn_infer_job *job)
{
    const qn_infer_options *o = job->options;
    for (size_t i = 0; i < o->n_inputs; i++)
        QN_TRY(open_text(job, o->inputs[i], false));
    for (size_t i = 0; i < o->n_data; i++)
        QN_TRY(open_text(job, o->data[i], true));
    job->samples = -1;
    for (size_t i = 0; i < job->n_in; i++) {
        if (job->in[i].sampled)
            QN_TRY(check_samples(job, i));
    }
    if (job->samples == 0)
        return qn_fail(job->ctx, QN_E_INVALID, "the data holds no samples");
    if (job->batch == 0)
        job->batch = QN_MIN(o->batch > 0 ? o->batch : 8, QN_MAX(job->samples, 1));
    return QN_OK;
}

qn_status qn_infer_shapes(qn_input_shape **out, size_t *count, qn_infer_job *job)
{
    const qn_graph_options *graph = &job->options->plan.graph;
    qn_input_shape *shapes =
        qn_arena_array(&job->arena, graph->n_shapes + job->n_in + 1, sizeof *shapes);
    QN_TRY_ALLOC(job->ctx, shapes);
    for (*count = 0; *count < graph->n_shapes; ++*count)
        shapes[*count] = graph->shapes[*count];
    for (size_t i = 0; i < job->n_in; i++) {
        const qn_infer_input *in = &job->in[i];
        if (!in->file)
            continue;
        qn_input_shape *shape = &shapes[(*count)++];
        *shape = (qn_input_shape){.name = qn_model_input_name(job->model, i),
                                  .rank = in->file->rank - (in->stacked ? 1 : 0)};
        memcpy(shape->dims, in->file->dims + (in->stacked ? 1 : 0),
               (size_t)shape->rank * sizeof *shape->dims);
        if (in->sampled && !in->stacked)
            shape->dims[0] = job->batch;
    }
    *out = shapes;
    return QN_OK;
}

qn_status qn_infer_fill_inputs(qn_infer_job *job)
{
    job->tensors = qn_arena_array(&job->arena, job->n_in + 1, sizeof *job->tensors);
    QN_TRY_ALLOC(job->ctx, job->tensors);
    for (size_t i = 0; i < job->n_in; i++) {
        qn_tensor shape;
        if (job->in[i].file) {
            job->tensors[i] = *job->in[i].file;
            continue;
        }
        qn_plan_input(&shape, job->plan, i);
        if (shape.rank < 0)
            return qn_fail(job->ctx, QN_E_INVALID, "input '%s' has no known shape: give it a file",
                           qn_model_input_name(job->model, i));
        QN_TRY(qn_tensor_random(&job->tensors[i], job->ctx, &job->arena, &shape,
                                job->options->seed + i));
    }
    return QN_OK;
}

/* The last batch of a model with a fixed one is filled up with its last sample. */
static qn_status pad_batch(qn_infer_job *job, qn_infer_input *in, qn_tensor *tensor, int64_t count,
                           size_t sample)
{
    if (!in->padded)
        in->padded = qn_alloc_aligned(&job->ctx->allocator, (size_t)QN_MAX(job->batch, 1) * sample);
    QN_TRY_ALLOC(job->ctx, in->padded);
    char *to = in->padded;
    const char *from = tensor->data;
    memcpy(to, from, (size_t)count * sample);
    for (int64_t i = count; i < job->batch; i++)
        memcpy(to + (size_t)i * sample, from + (size_t)(count - 1) * sample, sample);
    tensor->data = in->padded;
    tensor->dims[0] = job->batch;
    return QN_OK;
}

qn_status qn_infer_select(qn_infer_job *job, int64_t first, int64_t count)
{
    for (size_t i = 0; i < job->n_in; i++) {
        qn_infer_input *in = &job->in[i];
        qn_tensor *tensor = &job->tensors[i];
        if (!in->sampled)
            continue;
        const size_t sample = (size_t)(qn_tensor_count(in->file) / in->file->dims[0]) *
                              qn_dtype_size(in->file->dtype);
        *tensor = *in->file;
        tensor->data = (char *)in->file->data + (size_t)first * sample;
        tensor->dims[0] = count;
        if (in->stacked) {
            memmove(tensor->dims, tensor->dims + 1, (size_t)--tensor->rank * sizeof *tensor->dims);
        } else if (in->batch && count < job->batch) {
            QN_TRY(pad_batch(job, in, tensor, count, sample));
        }
    }
    return QN_OK;
}

void qn_infer_close_inputs(qn_infer_job *job)
{
    for (size_t i = 0; job->in && i < job->n_in; i++) {
        qn_tensor_free(job->in[i].file);
        qn_free_aligned(&job->ctx->allocator, job->in[i].padded);
    }
}
