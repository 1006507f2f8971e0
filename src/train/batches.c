/* Batches of training samples. */
#include "train/batches.h"

#include <string.h>

#include "ir/graph.h"

/* ---- Random numbers of a place ------------------------------------------------------------------
 * SplitMix64: a number for each (seed, epoch, sample, use), whoever asks first. */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t random_of(const qn_batches *b, int64_t sample, uint64_t use)
{
    const uint64_t place = mix(b->settings.seed) + (uint64_t)b->epoch;
    return mix(mix(mix(place) + (uint64_t)sample) + use);
}

/* -limit <= x <= limit */
static int64_t shift_of(uint64_t random, int64_t limit)
{
    return (int64_t)(random % (uint64_t)(2 * limit + 1)) - limit;
}

/* [-1, 1) */
static double real_of(uint64_t random)
{
    return (double)(random >> 11) / (double)(1ull << 52) - 1;
}

/* ---- Changes --------------------------------------------------------------------------------- */

static int64_t reflect(int64_t i, int64_t size)
{
    if (size == 1)
        return 0;
    const int64_t period = 2 * (size - 1);
    i = (i % period + period) % period;
    return i < size ? i : period - i;
}

typedef struct change {
    int64_t down, right;
    bool flip;
    float gain, lift;
} change;

static change change_of(const qn_batches *b, int64_t sample)
{
    const qn_batches_settings *s = &b->settings;
    change c = {.gain = 1};
    if (s->crop > 0) {
        c.down = shift_of(random_of(b, sample, 1), s->crop);
        c.right = shift_of(random_of(b, sample, 2), s->crop);
    }
    c.flip = s->flip && random_of(b, sample, 3) % 2;
    c.gain += (float)(s->colour * real_of(random_of(b, sample, 4)));
    c.lift = (float)(s->colour * real_of(random_of(b, sample, 5)));
    return c;
}

/* x [channels, height, width] in place, by way of `room`. */
static void change_picture(float *x, float *room, const int64_t *dims, const change *c)
{
    const int64_t height = dims[1], width = dims[2];
    memcpy(room, x, (size_t)(dims[0] * height * width) * sizeof *x);
    for (int64_t i = 0; i < dims[0] * height; i++) {
        const float *row =
            room + (i / height * height + reflect(i % height + c->down, height)) * width;
        for (int64_t k = 0; k < width; k++) {
            const int64_t from = reflect((c->flip ? width - 1 - k : k) + c->right, width);
            x[i * width + k] = row[from] * c->gain + c->lift;
        }
    }
}

static bool changes(const qn_batches *b)
{
    return b->settings.crop > 0 || b->settings.flip || b->settings.colour > 0;
}

static void change_batch(qn_batches *b)
{
    const int64_t *order = b->order + b->next * b->settings.batch;
    for (size_t k = 0; k < b->n_inputs; k++) {
        const qn_tensor *t = &b->tensors[k];
        if (t->dtype != QN_FLOAT32 || t->rank != 4)
            continue;
        const int64_t size = t->dims[1] * t->dims[2] * t->dims[3];
        for (int64_t i = 0; i < b->settings.batch; i++) {
            const change c = change_of(b, order[i]);
            change_picture((float *)t->data + i * size, b->picture, t->dims + 1, &c);
        }
    }
}

/* ---- Order ----------------------------------------------------------------------------------- */

static void shuffle(qn_batches *b)
{
    for (int64_t i = 0; i < b->count; i++)
        b->order[i] = i;
    for (int64_t i = b->count - 1; i > 0; i--) {
        const int64_t k = (int64_t)(random_of(b, i, 0) % (uint64_t)(i + 1));
        const int64_t kept = b->order[i];
        b->order[i] = b->order[k];
        b->order[k] = kept;
    }
}

/* Reads from batch `next` of the epoch on. */
static qn_status start_loader(qn_batches *b)
{
    const int64_t done = b->next * b->settings.batch;
    const qn_loader_options options = {.samples = b->order + done,
                                       .count = b->per_epoch * b->settings.batch - done,
                                       .batch = b->settings.batch,
                                       .threads = b->settings.loaders};
    qn_loader_free(b->loader);
    b->loader = NULL;
    return qn_loader_create(&b->loader, b->ctx, b->dataset, b->n_inputs, &options);
}

qn_status qn_batches_seek(qn_batches *b, int64_t batch)
{
    b->epoch = batch / b->per_epoch;
    b->next = batch % b->per_epoch;
    shuffle(b);
    return start_loader(b);
}

qn_status qn_batches_next(qn_batches *b)
{
    const qn_batch *batch;
    if (b->next == b->per_epoch)
        QN_TRY(qn_batches_seek(b, (b->epoch + 1) * b->per_epoch));
    QN_TRY(qn_loader_next(&batch, b->loader));
    if (!batch)
        return qn_fail(b->ctx, QN_E_INVALID, "the data ended early");
    for (size_t k = 0; k < b->n_inputs; k++)
        b->tensors[k].data = batch->data[k];
    for (int64_t i = 0; i < b->settings.batch; i++)
        b->labels[i] = qn_dataset_label(b->dataset, b->order[b->next * b->settings.batch + i]);
    if (changes(b))
        change_batch(b);
    b->next++;
    return QN_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qn_status check_input(qn_batches *b, size_t k)
{
    const qn_dataset_input *in = &qn_dataset_inputs(b->dataset)[k];
    const char *name = b->infos[k].name;
    if (!in->fed)
        return qn_fail(b->ctx, QN_E_INVALID, "input '%s' has no data", name);
    if (in->whole || in->dims || in->sample.rank + 1 > QN_MAX_RANK)
        return qn_fail(b->ctx, QN_E_UNSUPPORTED,
                       "input '%s': training needs samples of one shape, joined in batches", name);
    qn_tensor *t = &b->tensors[k];
    *t = (qn_tensor){.dtype = in->sample.dtype, .rank = in->sample.rank + 1};
    t->dims[0] = b->settings.batch;
    memcpy(t->dims + 1, in->sample.dims, (size_t)in->sample.rank * sizeof *t->dims);
    return QN_OK;
}

static qn_status make_room(qn_batches *b)
{
    size_t most = 1;
    b->tensors = qn_alloc_zero(b->ctx, b->n_inputs + 1, sizeof *b->tensors);
    b->labels = qn_alloc_zero(b->ctx, (size_t)b->settings.batch, sizeof *b->labels);
    b->order = qn_alloc_zero(b->ctx, (size_t)b->count + 1, sizeof *b->order);
    if (!b->tensors || !b->labels || !b->order)
        return qn_fail_nomem(b->ctx);
    for (size_t k = 0; k < b->n_inputs; k++) {
        QN_TRY(check_input(b, k));
        most = QN_MAX(most, qn_dataset_inputs(b->dataset)[k].bytes / sizeof(float));
    }
    b->picture = qn_alloc_zero(b->ctx, most, sizeof *b->picture);
    QN_TRY_ALLOC(b->ctx, b->picture);
    return QN_OK;
}

static qn_status open_data(qn_batches *b, qn_model *model, const qn_data_options *o)
{
    b->n_inputs = qn_model_input_count(model);
    b->infos = qn_alloc_zero(b->ctx, b->n_inputs + 1, sizeof *b->infos);
    QN_TRY_ALLOC(b->ctx, b->infos);
    for (size_t i = 0; i < b->n_inputs; i++)
        qn_model_input_info(&b->infos[i], model, i);
    const qn_dataset_spec spec = {.inputs = b->infos,
                                  .n_inputs = b->n_inputs,
                                  .data = o->data,
                                  .n_data = o->n_data,
                                  .list = o->list,
                                  .labels = o->labels,
                                  .preprocess = o->preprocess,
                                  .strict = o->strict != 0};
    return qn_dataset_open(&b->dataset, b->ctx, &spec);
}

qn_status qn_batches_open(qn_batches *b, qn_context *ctx, qn_model *model,
                          const qn_data_options *data, const qn_batches_settings *settings)
{
    *b = (qn_batches){.ctx = ctx, .settings = *settings};
    if (!data->n_data)
        return qn_fail(ctx, QN_E_OPTION, "no data to train on: `data` names it");
    QN_TRY(open_data(b, model, data));
    b->count = qn_dataset_count(b->dataset);
    if (data->samples > 0)
        b->count = QN_MIN(b->count, data->samples);
    b->per_epoch = b->count / settings->batch;
    if (b->per_epoch == 0)
        return qn_fail(ctx, QN_E_OPTION, "`batch` is %lld, but there are %lld samples",
                       (long long)settings->batch, (long long)b->count);
    return make_room(b);
}

qn_status qn_batches_check_labels(const qn_batches *b, int64_t classes)
{
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t label = qn_dataset_label(b->dataset, i);
        char name[256];
        if (label >= 0 && label < classes)
            continue;
        if (label < 0)
            return qn_fail(b->ctx, QN_E_OPTION, "the samples have no classes: give labels");
        return qn_fail(b->ctx, QN_E_INVALID, "sample '%s' has class %lld, the model has %lld",
                       qn_dataset_name(name, sizeof name, b->dataset, i), (long long)label,
                       (long long)classes);
    }
    return QN_OK;
}

void qn_batches_close(qn_batches *b)
{
    qn_loader_free(b->loader);
    qn_dataset_free(b->dataset);
    qn_free(b->ctx, b->infos);
    qn_free(b->ctx, b->order);
    qn_free(b->ctx, b->tensors);
    qn_free(b->ctx, b->labels);
    qn_free(b->ctx, b->picture);
}
