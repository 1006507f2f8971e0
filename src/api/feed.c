#include "api/feed.h"

#include <string.h>

enum { DEFAULT_BATCH = 8 };

/* ---- "name=file" ------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), own = strlen(ending);
    return length >= own && strcmp(text + length - own, ending) == 0;
}

/* The input that the text names before a '=', and the file behind it. Names may hold '=' themselves:
 * the longest one counts. */
static bool split_name(const qn_feed *feed, const char *text, size_t *input, const char **path)
{
    size_t longest = 0;
    bool found = false;
    for (size_t i = 0; i < feed->n_in; i++) {
        const char *name = qn_model_input_name(feed->model, i);
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
static const qn_input_shape *option_shape(const qn_feed *feed, const char *name)
{
    const qn_graph_options *graph = feed->options->graph;
    for (size_t s = 0; s < graph->n_shapes; s++) {
        if (strcmp(graph->shapes[s].name, name) == 0)
            return &graph->shapes[s];
    }
    return NULL;
}

/* Type and shape of a raw file for input i: the options' shape, else the model's; -1 where open. */
static void raw_like(qn_tensor *out, const qn_feed *feed, size_t i, bool sampled)
{
    qn_value_info info;
    qn_model_input_info(&info, feed->model, i);
    const qn_input_shape *shape = option_shape(feed, info.name);
    *out = (qn_tensor){.dtype = info.dtype, .rank = shape ? shape->rank : info.rank};
    for (int32_t d = 0; d < out->rank && d < QN_MAX_RANK; d++) {
        const int64_t own = d < info.rank ? info.dims[d] : -1;
        out->dims[d] = shape && shape->dims[d] >= 0 ? shape->dims[d] : own;
    }
    if (sampled && out->rank > 0)
        out->dims[0] = -1;
}

static qn_status open_file(qn_feed *feed, size_t i, const char *path, const char *entry,
                           bool sampled)
{
    qn_feed_input *in = &feed->in[i];
    qn_tensor like;
    if (in->file)
        return qn_fail(feed->ctx, QN_E_INVALID, "input '%s' is given twice",
                       qn_model_input_name(feed->model, i));
    raw_like(&like, feed, i, sampled);
    const qn_tensor_load_options options = {.entry = entry, .like = &like};
    in->sampled = sampled;
    return qn_tensor_load(&in->file, feed->ctx, path, &options);
}

/* Every array of the archive that has the name of an input. */
static qn_status open_archive(qn_feed *feed, const char *path, bool sampled)
{
    qn_map map;
    qn_status status = QN_OK;
    size_t found = 0;
    QN_TRY(qn_map_open(&map, feed->ctx, path));
    for (size_t i = 0; status == QN_OK && i < feed->n_in; i++) {
        const char *name = qn_model_input_name(feed->model, i);
        if (!qn_npz_has(map.data, map.size, name))
            continue;
        found++;
        status = open_file(feed, i, path, name, sampled);
    }
    qn_map_close(&map);
    QN_TRY(status);
    if (found)
        return QN_OK;
    if (feed->n_in == 1)
        return open_file(feed, 0, path, NULL, sampled);
    return qn_fail(feed->ctx, QN_E_INVALID, "%s: no array has the name of an input", path);
}

static qn_status open_text(qn_feed *feed, const char *text, bool sampled)
{
    const char *path;
    size_t input;
    if (split_name(feed, text, &input, &path)) {
        const char *name = qn_model_input_name(feed->model, input);
        const bool archive = ends_with(path, ".npz");
        qn_map map = {NULL, 0};
        if (archive)
            QN_TRY(qn_map_open(&map, feed->ctx, path));
        const bool named = archive && qn_npz_has(map.data, map.size, name);
        qn_map_close(&map);
        return open_file(feed, input, path, named ? name : NULL, sampled);
    }
    if (ends_with(text, ".npz") && !strchr(text, '='))
        return open_archive(feed, text, sampled);
    if (feed->n_in == 1 && !strchr(text, '='))
        return open_file(feed, 0, text, NULL, sampled);
    const char *equals = strchr(text, '=');
    if (equals)
        return qn_fail(feed->ctx, QN_E_INVALID, "the model has no input '%.*s'",
                       (int)(equals - text), text);
    return qn_fail(feed->ctx, QN_E_INVALID, "'%s' needs the name of an input before it: NAME=%s",
                   text, text);
}

/* ---- Samples ------------------------------------------------------------------------------------------ */

/* The first dimension of an input that the model or the options fix; 0: none. */
static int64_t fixed_batch(const qn_feed *feed, const qn_value_info *info)
{
    const qn_input_shape *shape = option_shape(feed, info->name);
    if (info->rank > 0 && info->dims[0] >= 0)
        return info->dims[0];
    return shape && shape->rank > 0 ? QN_MAX(shape->dims[0], 0) : 0;
}

/* A file with one dimension more than the input has whole inputs as samples. */
static qn_status check_samples(qn_feed *feed, size_t i)
{
    qn_feed_input *in = &feed->in[i];
    qn_value_info info;
    qn_model_input_info(&info, feed->model, i);
    if (in->file->rank < 1)
        return qn_fail(feed->ctx, QN_E_INVALID, "data for '%s' has no axis that counts samples",
                       info.name);
    in->stacked = info.rank >= 0 && in->file->rank == info.rank + 1;
    feed->stacked = feed->stacked || in->stacked;
    if (!in->stacked)
        in->batch = fixed_batch(feed, &info);
    if (info.rank > 0 && info.dims[0] < 0 && in->batch && feed->options->batch &&
        feed->options->batch != in->batch)
        return qn_fail(
            feed->ctx, QN_E_INVALID,
            "batch %lld contradicts the shape given for input '%s', which begins with %lld",
            (long long)feed->options->batch, info.name, (long long)in->batch);
    if (feed->samples >= 0 && feed->samples != in->file->dims[0])
        return qn_fail(feed->ctx, QN_E_INVALID, "data for '%s' has %lld samples, other data %lld",
                       info.name, (long long)in->file->dims[0], (long long)feed->samples);
    feed->samples = in->file->dims[0];
    const int64_t batch = in->stacked ? 1 : in->batch;
    if (batch && feed->batch && feed->batch != batch)
        return qn_fail(feed->ctx, QN_E_INVALID, "inputs disagree about the batch: %lld and %lld",
                       (long long)batch, (long long)feed->batch);
    feed->batch = batch ? batch : feed->batch;
    return QN_OK;
}

static qn_status open_all(qn_feed *feed)
{
    const qn_feed_options *o = feed->options;
    feed->n_in = qn_model_input_count(feed->model);
    feed->in = qn_arena_array(&feed->arena, feed->n_in + 1, sizeof *feed->in);
    QN_TRY_ALLOC(feed->ctx, feed->in);
    for (size_t i = 0; i < o->n_inputs; i++)
        QN_TRY(open_text(feed, o->inputs[i], false));
    for (size_t i = 0; i < o->n_data; i++)
        QN_TRY(open_text(feed, o->data[i], true));
    feed->all_sampled = true;
    for (size_t i = 0; i < feed->n_in; i++) {
        feed->all_sampled = feed->all_sampled && feed->in[i].sampled;
        if (feed->in[i].sampled)
            QN_TRY(check_samples(feed, i));
    }
    return QN_OK;
}

qn_status qn_feed_open(qn_feed *feed, qn_context *ctx, qn_model *model,
                       const qn_feed_options *options)
{
    *feed = (qn_feed){.ctx = ctx, .model = model, .options = options, .samples = -1};
    qn_arena_init(&feed->arena, &ctx->allocator);
    QN_TRY(open_all(feed));
    if (feed->samples == 0)
        return qn_fail(ctx, QN_E_INVALID, "the data holds no samples");
    if (feed->batch == 0)
        feed->batch =
            QN_MIN(options->batch > 0 ? options->batch : DEFAULT_BATCH, QN_MAX(feed->samples, 1));
    return QN_OK;
}

qn_status qn_feed_shapes(qn_input_shape **out, size_t *count, qn_feed *feed)
{
    const qn_graph_options *graph = feed->options->graph;
    qn_input_shape *shapes =
        qn_arena_array(&feed->arena, graph->n_shapes + feed->n_in + 1, sizeof *shapes);
    QN_TRY_ALLOC(feed->ctx, shapes);
    for (*count = 0; *count < graph->n_shapes; ++*count)
        shapes[*count] = graph->shapes[*count];
    for (size_t i = 0; i < feed->n_in; i++) {
        const qn_feed_input *in = &feed->in[i];
        if (!in->file)
            continue;
        qn_input_shape *shape = &shapes[(*count)++];
        *shape = (qn_input_shape){.name = qn_model_input_name(feed->model, i),
                                  .rank = in->file->rank - (in->stacked ? 1 : 0)};
        memcpy(shape->dims, in->file->dims + (in->stacked ? 1 : 0),
               (size_t)shape->rank * sizeof *shape->dims);
        if (in->sampled && !in->stacked)
            shape->dims[0] = feed->batch;
    }
    *out = shapes;
    return QN_OK;
}

/* ---- Random numbers ------------------------------------------------------------------------------------ */

/* Splitmix64: every seed, 0 too, starts a good sequence. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void fill_random(qn_tensor *tensor, uint64_t state)
{
    enum { PIECE = 1024 };
    const qn_dtype_kind kind = qn_dtype_get(tensor->dtype)->kind;
    const int64_t count = qn_tensor_count(tensor);
    double numbers[PIECE];
    if (kind == QN_KIND_STRING || kind == QN_KIND_COMPLEX)
        return;
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, PIECE);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = next_random(&state);
            numbers[i] =
                kind == QN_KIND_FLOAT ? (double)(bits >> 40) * 0x1p-23 - 1.0 : (double)(bits >> 63);
        }
        qn_store_f64(tensor->data, tensor->dtype, at, numbers, n);
    }
}

static qn_status make_random(qn_feed *feed, size_t i, const qn_plan *plan)
{
    qn_tensor shape, *made;
    qn_plan_input(&shape, plan, i);
    if (shape.rank < 0)
        return qn_fail(feed->ctx, QN_E_INVALID, "input '%s' has no known type: give it a file",
                       qn_model_input_name(feed->model, i));
    const qn_type type = qn_type_of(&shape);
    QN_TRY(qn_tensor_create(&made, feed->ctx, &feed->arena, &type));
    fill_random(made, feed->options->seed + i);
    feed->tensors[i] = *made;
    return QN_OK;
}

qn_status qn_feed_fill(qn_feed *feed, const qn_plan *plan)
{
    feed->tensors = qn_arena_array(&feed->arena, feed->n_in + 1, sizeof *feed->tensors);
    QN_TRY_ALLOC(feed->ctx, feed->tensors);
    for (size_t i = 0; i < feed->n_in; i++) {
        if (feed->in[i].file)
            feed->tensors[i] = *feed->in[i].file;
        else
            QN_TRY(make_random(feed, i, plan));
    }
    return QN_OK;
}

/* ---- A run's inputs ------------------------------------------------------------------------------------ */

/* A last batch that cannot be smaller, because the model fixes it or inputs without samples have its
 * size, is filled up with its last sample. */
static qn_status pad_batch(qn_feed *feed, qn_feed_input *in, qn_tensor *tensor, int64_t count,
                           size_t sample)
{
    const size_t bytes = (size_t)QN_MAX(feed->batch, 1) * sample;
    if (!in->padded)
        in->padded = qn_alloc_aligned(&feed->ctx->allocator, bytes);
    if (!in->padded)
        return qn_fail_bytes(feed->ctx, bytes, "a batch of samples");
    char *to = in->padded;
    const char *from = tensor->data;
    memcpy(to, from, (size_t)count * sample);
    for (int64_t i = count; i < feed->batch; i++)
        memcpy(to + (size_t)i * sample, from + (size_t)(count - 1) * sample, sample);
    tensor->data = in->padded;
    tensor->dims[0] = feed->batch;
    return QN_OK;
}

qn_status qn_feed_select(qn_feed *feed, int64_t first, int64_t count)
{
    for (size_t i = 0; i < feed->n_in; i++) {
        qn_feed_input *in = &feed->in[i];
        qn_tensor *tensor = &feed->tensors[i];
        if (!in->sampled)
            continue;
        const size_t sample = (size_t)(qn_tensor_count(in->file) / in->file->dims[0]) *
                              qn_dtype_size(in->file->dtype);
        *tensor = *in->file;
        tensor->data = (char *)in->file->data + (size_t)first * sample;
        tensor->dims[0] = count;
        if (in->stacked) {
            memmove(tensor->dims, tensor->dims + 1, (size_t)--tensor->rank * sizeof *tensor->dims);
        } else if (count < feed->batch && (in->batch || !feed->all_sampled)) {
            QN_TRY(pad_batch(feed, in, tensor, count, sample));
        }
    }
    return QN_OK;
}

void qn_feed_close(qn_feed *feed)
{
    for (size_t i = 0; feed->in && i < feed->n_in; i++) {
        qn_tensor_free(feed->in[i].file);
        qn_free_aligned(&feed->ctx->allocator, feed->in[i].padded);
    }
    qn_arena_free(&feed->arena);
}
