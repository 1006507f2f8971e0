/* Files, samples and random numbers as inputs of a model. */
#include "executor/feed.h"

#include <string.h>

#include "model/prepare.h"
#include "run/plan.h"

enum { DEFAULT_BATCH = 8 };

/* ---- What the model wants -------------------------------------------------------------------- */

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

/* The model's word, with the options' shape over it; -1 where both are open. */
static void wanted_input(qn_value_info *out, const qn_feed *feed, size_t i)
{
    qn_model_input_info(out, feed->model, i);
    const qn_input_shape *shape = option_shape(feed, out->name);
    if (!shape)
        return;
    for (int32_t d = 0; d < shape->rank; d++) {
        const int64_t own = d < out->rank ? out->dims[d] : -1;
        out->dims[d] = shape->dims[d] >= 0 ? shape->dims[d] : own;
    }
    out->rank = shape->rank;
}

static bool fits(const qn_value_info *info, const qn_tensor *file)
{
    bool same = (info->dtype == QN_UNDEFINED || info->dtype == file->dtype) &&
                (info->rank < 0 || info->rank == file->rank);
    for (int32_t d = 0; same && d < info->rank; d++)
        same = info->dims[d] < 0 || info->dims[d] == file->dims[d];
    return same;
}

/* While it is known which file it is; the plan would only see an input. */
static qn_status check_files(const qn_feed *feed, const char *path)
{
    for (size_t i = 0; i < feed->n_in; i++) {
        const qn_value_info *info = &feed->infos[i];
        if (feed->files[i] && !fits(info, feed->files[i]))
            return qn_fail_input_mismatch(feed->ctx, path, feed->files[i], info);
    }
    return QN_OK;
}

/* Puts a better reason why "name=file" names no input, where there is one. */
static qn_status explain_name(qn_feed *feed, const char *text, qn_status status)
{
    const char *equals = strchr(text, '=');
    if (status != QN_E_OPTION || !equals)
        return status;
    const char *name = qn_arena_text(&feed->arena, text, (size_t)(equals - text));
    QN_TRY_ALLOC(feed->ctx, name);
    QN_TRY(qn_fail_if_constant(feed->model->graph, name));
    return status;
}

static qn_status open_files(qn_feed *feed)
{
    const qn_feed_options *o = feed->options;
    const qn_input_list inputs = {feed->infos, feed->n_in};
    for (size_t i = 0; i < o->n_inputs; i++) {
        const char *path;
        size_t named;
        const qn_status split = qn_input_split(&named, &path, feed->ctx, &inputs, o->inputs[i]);
        QN_TRY(explain_name(feed, o->inputs[i], split));
        QN_TRY(
            qn_input_files_open(feed->files, feed->ctx, &inputs, named, path, QN_INPUT_FILE_WHOLE));
        QN_TRY(check_files(feed, path));
    }
    return QN_OK;
}

/* ---- Samples --------------------------------------------------------------------------------- */

static qn_status check_batch(qn_feed *feed, size_t i, const qn_dataset_input *data)
{
    qn_feed_input *in = &feed->in[i];
    const qn_value_info *info = &feed->infos[i];
    const int64_t asked = feed->options->data->batch;
    qn_value_info own;
    qn_model_input_info(&own, feed->model, i);
    in->stacked = data->whole;
    feed->stacked = feed->stacked || in->stacked;
    if (!in->stacked && info->rank > 0)
        in->batch = QN_MAX(info->dims[0], 0);
    if (own.rank > 0 && own.dims[0] < 0 && in->batch && asked && asked != in->batch)
        return qn_fail(
            feed->ctx, QN_E_OPTION,
            "batch %lld contradicts the shape given for input '%s', which begins with %lld",
            (long long)asked, info->name, (long long)in->batch);
    feed->varies = feed->varies || data->dims;
    if (data->dims && in->batch > 1)
        return qn_fail(feed->ctx, QN_E_INVALID,
                       "the samples for input '%s' have different shapes, and its batch is %lld: "
                       "such samples run one by one",
                       info->name, (long long)in->batch);
    const int64_t batch = in->stacked || data->dims ? 1 : in->batch;
    if (batch && feed->batch && feed->batch != batch)
        return qn_fail(feed->ctx, QN_E_INVALID, "inputs disagree about the batch: %lld and %lld",
                       (long long)batch, (long long)feed->batch);
    feed->batch = batch ? batch : feed->batch;
    return QN_OK;
}

/* The part of the data set that the options choose. */
static qn_status choose_range(qn_feed *feed)
{
    const qn_data_options *o = feed->options->data;
    const int64_t count = qn_dataset_count(feed->dataset);
    if (o->first < 0 || o->samples < 0)
        return qn_fail(feed->ctx, QN_E_INVALID, "samples are counted from 0 on");
    if (o->first >= count)
        return qn_fail(feed->ctx, QN_E_INVALID,
                       "the data has %lld samples: none is left behind %lld", (long long)count,
                       (long long)o->first);
    const int64_t left = count - o->first;
    if (o->samples > left)
        qn_log(feed->ctx, QN_LOG_NOTE, "the data has %lld samples%s, %lld were asked for",
               (long long)left, o->first ? " from the first one on" : "", (long long)o->samples);
    feed->first = o->first;
    feed->samples = o->samples ? QN_MIN(o->samples, left) : left;
    return QN_OK;
}

static qn_status open_samples(qn_feed *feed)
{
    const qn_data_options *o = feed->options->data;
    const qn_dataset_spec spec = {.inputs = feed->infos,
                                  .n_inputs = feed->n_in,
                                  .data = o->data,
                                  .n_data = o->n_data,
                                  .list = o->list,
                                  .labels = o->labels,
                                  .preprocess = o->preprocess,
                                  .strict = o->strict != 0};
    QN_TRY(qn_dataset_open(&feed->dataset, feed->ctx, &spec));
    QN_TRY(choose_range(feed));
    feed->all_sampled = true;
    for (size_t i = 0; i < feed->n_in; i++) {
        const qn_dataset_input *data = &qn_dataset_inputs(feed->dataset)[i];
        feed->in[i].sampled = data->fed;
        feed->all_sampled = feed->all_sampled && data->fed;
        if (data->fed && feed->files[i])
            return qn_fail(feed->ctx, QN_E_OPTION, "input '%s' is given twice",
                           feed->infos[i].name);
        if (data->fed)
            QN_TRY(check_batch(feed, i, data));
    }
    return QN_OK;
}

static qn_status open_all(qn_feed *feed)
{
    const qn_data_options *data = feed->options->data;
    feed->n_in = qn_model_input_count(feed->model);
    feed->in = qn_arena_array(&feed->arena, feed->n_in + 1, sizeof *feed->in);
    feed->infos = qn_arena_array(&feed->arena, feed->n_in + 1, sizeof *feed->infos);
    QN_TRY_ALLOC(feed->ctx, feed->in);
    QN_TRY_ALLOC(feed->ctx, feed->infos);
    feed->files = qn_arena_array(&feed->arena, feed->n_in + 1, sizeof *feed->files);
    QN_TRY_ALLOC(feed->ctx, feed->files);
    for (size_t i = 0; i < feed->n_in; i++)
        wanted_input(&feed->infos[i], feed, i);
    QN_TRY(open_files(feed));
    return data && data->n_data ? open_samples(feed) : QN_OK;
}

qn_status qn_feed_open(qn_feed *feed, qn_context *ctx, qn_model *model,
                       const qn_feed_options *options)
{
    *feed = (qn_feed){.ctx = ctx, .model = model, .options = options, .samples = -1};
    qn_arena_init(&feed->arena, &ctx->allocator);
    QN_TRY(open_all(feed));
    const int64_t asked = options->data ? options->data->batch : 0;
    if (feed->batch == 0)
        feed->batch = QN_MIN(asked > 0 ? asked : DEFAULT_BATCH, QN_MAX(feed->samples, 1));
    return QN_OK;
}

/* Type and dims of an input for `count` samples from `first` on, or of its file. */
static void run_shape(qn_tensor *out, const qn_feed *feed, size_t i, int64_t first, int64_t count)
{
    const qn_feed_input *in = &feed->in[i];
    if (in->sampled)
        qn_dataset_sample(out, feed->dataset, i, feed->first + first);
    else
        *out = *feed->files[i];
    if (!in->sampled || in->stacked)
        return;
    memmove(out->dims + 1, out->dims, (size_t)out->rank++ * sizeof *out->dims);
    out->dims[0] = count;
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
        qn_tensor tensor;
        if (!feed->files[i] && !feed->in[i].sampled)
            continue;
        run_shape(&tensor, feed, i, 0, feed->batch);
        qn_input_shape *shape = &shapes[(*count)++];
        *shape = (qn_input_shape){.name = feed->infos[i].name, .rank = tensor.rank};
        memcpy(shape->dims, tensor.dims, sizeof shape->dims);
    }
    *out = shapes;
    return QN_OK;
}

/* ---- Random numbers -------------------------------------------------------------------------- */

/* Splitmix64: every seed, 0 too, starts a good sequence. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void qn_feed_random(qn_tensor *tensor, uint64_t state)
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

/* Why there are no random numbers for an input: what would have to be said, and how. */
static qn_status fail_unknown(const qn_feed *feed, size_t i, const qn_plan *plan)
{
    qn_value_info info;
    qn_model_input_info(&info, feed->model, i);
    if (plan->deferred)
        return qn_fail(feed->ctx, QN_E_INVALID, "%s", plan->deferred);
    if (info.dtype == QN_UNDEFINED)
        return qn_fail(feed->ctx, QN_E_INVALID, "input '%s' has no known type: give it a file",
                       info.name);
    return qn_fail(feed->ctx, QN_E_INVALID,
                   "input '%s' has an open number of dimensions: bind them, as with `shapes`, "
                   "or give it a file",
                   info.name);
}

static qn_status make_random(qn_feed *feed, size_t i, const qn_plan *plan)
{
    qn_tensor shape, *made;
    qn_plan_input(&shape, plan, i);
    if (shape.rank < 0)
        return fail_unknown(feed, i, plan);
    const qn_type type = qn_type_of(&shape);
    QN_TRY(qn_tensor_create(&made, feed->ctx, &feed->arena, &type));
    qn_feed_random(made, feed->options->seed + i);
    feed->tensors[i] = *made;
    return QN_OK;
}

/* A last batch that cannot be smaller, because the model fixes it or inputs without samples have
 * its size, is filled up. */
static bool is_filled(const qn_feed *feed)
{
    bool fixed = !feed->all_sampled;
    for (size_t i = 0; i < feed->n_in; i++)
        fixed = fixed || (feed->in[i].sampled && feed->in[i].batch);
    return fixed && !feed->stacked;
}

static qn_status start_loader(qn_feed *feed)
{
    const qn_loader_options options = {.first = feed->first,
                                       .count = feed->samples,
                                       .batch = feed->batch,
                                       .fill = is_filled(feed) ? feed->batch : 0,
                                       .threads = feed->options->data->loaders};
    return qn_loader_create(&feed->loader, feed->ctx, feed->dataset, feed->n_in, &options);
}

qn_status qn_feed_fill(qn_feed *feed, const qn_plan *plan)
{
    feed->tensors = qn_arena_array(&feed->arena, feed->n_in + 1, sizeof *feed->tensors);
    QN_TRY_ALLOC(feed->ctx, feed->tensors);
    for (size_t i = 0; i < feed->n_in; i++) {
        if (feed->in[i].sampled)
            continue;
        if (feed->files[i])
            feed->tensors[i] = *feed->files[i];
        else
            QN_TRY(make_random(feed, i, plan));
    }
    return feed->dataset ? start_loader(feed) : QN_OK;
}

/* ---- A run's inputs -------------------------------------------------------------------------- */

int64_t qn_feed_count(const qn_feed *feed, int64_t run)
{
    return QN_MIN(feed->samples - run * feed->batch, feed->batch);
}

int64_t qn_feed_filled(const qn_feed *feed, int64_t run)
{
    return is_filled(feed) ? feed->batch : qn_feed_count(feed, run);
}

qn_status qn_feed_next(int64_t *count, qn_feed *feed)
{
    const qn_batch *batch = NULL;
    *count = 0;
    if (!feed->loader) {
        *count = feed->first++ == 0;
        return QN_OK;
    }
    QN_TRY(qn_loader_next(&batch, feed->loader));
    if (!batch)
        return QN_OK;
    *count = batch->count;
    feed->places = batch->places;
    for (size_t i = 0; i < feed->n_in; i++) {
        if (!feed->in[i].sampled)
            continue;
        run_shape(&feed->tensors[i], feed, i, batch->first,
                  is_filled(feed) ? feed->batch : batch->count);
        feed->tensors[i].data = batch->data[i];
    }
    return QN_OK;
}

qn_status qn_feed_read(qn_tensor *tensors, qn_picture_place *place, void *const *to,
                       const qn_feed *feed, qn_context *ctx, int64_t i)
{
    for (size_t k = 0; k < feed->n_in; k++) {
        tensors[k] = feed->tensors[k];
        if (!feed->in[k].sampled)
            continue;
        run_shape(&tensors[k], feed, k, i, 1);
        tensors[k].data = to[k];
    }
    return qn_dataset_read(to, place, feed->dataset, ctx, feed->first + i);
}

void qn_feed_close(qn_feed *feed)
{
    qn_loader_free(feed->loader);
    qn_dataset_free(feed->dataset);
    for (size_t i = 0; feed->files && i < feed->n_in; i++)
        qn_tensor_free(feed->files[i]);
    qn_arena_free(&feed->arena);
}
