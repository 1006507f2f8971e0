/* Samples of a feed for calibration: several threads read at once. */
#include "executor/feed_source.h"

#include <stdio.h>

enum { RANDOM_SAMPLES = 8 };

static size_t slot_place(const qn_feed_source *s, int slot)
{
    return (size_t)slot * (s->feed->n_in + 1);
}

/* A slot too many would be the memory of something else. */
static qn_status check_slot(const qn_feed_source *s, qn_context *ctx, int slot)
{
    return slot < s->source.slots
               ? QN_OK
               : qn_fail(ctx, QN_E_INVALID, "samples: slot %d of %d", slot, s->source.slots);
}

/* Where sample k of a run goes: behind the one before, or, of an input that is one sample, in its
 * place. */
static void places_of(void **out, const qn_feed *feed, void *const *buffers, int64_t k)
{
    for (size_t i = 0; i < feed->n_in; i++) {
        const size_t bytes = feed->in[i].sampled ? qn_dataset_inputs(feed->dataset)[i].bytes : 0;
        out[i] = buffers[i] ? (char *)buffers[i] + (size_t)k * bytes : NULL;
    }
}

/* A last run that is filled up ends with its last sample again and again, as in qn_feed_next. */
static qn_status read_run(void *user, qn_context *ctx, int slot, int64_t run,
                          const qn_tensor **inputs)
{
    const qn_feed_source *s = user;
    const qn_feed *feed = s->feed;
    QN_TRY(check_slot(s, ctx, slot));
    qn_tensor *tensors = s->tensors + slot_place(s, slot);
    void *const *buffers = s->buffers + slot_place(s, slot);
    void **places = qn_alloc_zero(ctx, feed->n_in + 1, sizeof *places);
    const int64_t count = qn_feed_filled(feed, run);
    qn_status status = QN_OK;
    QN_TRY_ALLOC(ctx, places);
    for (int64_t k = 0; k < count && status == QN_OK; k++) {
        places_of(places, feed, buffers, k);
        status = qn_feed_read(tensors, NULL, places, feed, ctx,
                              QN_MIN(run * feed->batch + k, feed->samples - 1));
    }
    qn_free(ctx, places);
    for (size_t i = 0; i < feed->n_in; i++) {
        if (!feed->in[i].sampled)
            continue;
        tensors[i].data = buffers[i];
        if (!feed->in[i].stacked && tensors[i].rank > 0)
            tensors[i].dims[0] = count;
    }
    *inputs = tensors;
    return status;
}

static qn_status read_random(void *user, qn_context *ctx, int slot, int64_t run,
                             const qn_tensor **inputs)
{
    const qn_feed_source *s = user;
    QN_TRY(check_slot(s, ctx, slot));
    qn_tensor *tensors = s->tensors + slot_place(s, slot);
    for (size_t i = 0; i < s->feed->n_in; i++) {
        if (!s->feed->files[i])
            qn_feed_random(&tensors[i], s->seed + (uint64_t)run * s->feed->n_in + i);
    }
    *inputs = tensors;
    return QN_OK;
}

static void name_run(void *user, int64_t run, char *out, size_t size)
{
    const qn_feed_source *s = user;
    const qn_feed *feed = s->feed;
    if (feed->dataset)
        qn_dataset_name(out, size, feed->dataset, feed->first + run * feed->batch);
    else
        snprintf(out, size, "random sample %lld", (long long)run);
}

/* Memory of its own for every slot. */
static qn_status slot_memory(qn_feed_source *s, qn_feed *feed, int slot)
{
    qn_tensor *tensors = s->tensors + slot_place(s, slot);
    for (size_t i = 0; i < feed->n_in; i++) {
        tensors[i] = feed->tensors[i];
        if (feed->in[i].sampled) {
            const size_t bytes = qn_dataset_inputs(feed->dataset)[i].bytes;
            void **buffer = &s->buffers[slot_place(s, slot) + i];
            *buffer = qn_arena_array(&feed->arena, (size_t)feed->batch, QN_MAX(bytes, 64));
            QN_TRY_ALLOC(feed->ctx, *buffer);
        } else if (!feed->files[i] && !feed->dataset) {
            const qn_type type = qn_type_of(&feed->tensors[i]);
            qn_tensor *made;
            QN_TRY(qn_tensor_create(&made, feed->ctx, &feed->arena, &type));
            tensors[i] = *made;
        }
    }
    return QN_OK;
}

qn_status qn_feed_source_open(qn_feed_source *s, qn_feed *feed, const qn_plan *plan, int slots)
{
    const int64_t wanted = feed->options->data->samples;
    *s = (qn_feed_source){.feed = feed, .seed = feed->options->seed};
    QN_TRY(qn_feed_fill(feed, plan));
    const size_t places = (size_t)slots * (feed->n_in + 1);
    s->tensors = qn_arena_array(&feed->arena, places, sizeof *s->tensors);
    s->buffers = qn_arena_array(&feed->arena, places, sizeof *s->buffers);
    if (!s->tensors || !s->buffers)
        return qn_fail_nomem(feed->ctx);
    for (int slot = 0; slot < slots; slot++)
        QN_TRY(slot_memory(s, feed, slot));
    s->source = (qn_sample_source){.user = s, .slots = slots, .name = name_run};
    s->source.read = feed->dataset ? read_run : read_random;
    if (feed->dataset)
        s->source.count = (feed->samples + feed->batch - 1) / feed->batch;
    else
        s->source.count = wanted > 0 ? wanted : RANDOM_SAMPLES;
    return QN_OK;
}
