/* The loader: threads that read batches ahead of their use. */
#include "data/loader.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"

/* Batches in memory: one in use, the others being filled. */
enum { SLOTS = 3, MOST_THREADS = 8 };

typedef struct slot {
    qn_batch batch;
    /* Samples not yet read */
    int64_t missing;
    qn_status status;
    /* The sample that `error` is about */
    int64_t failed;
    char error[QN_ERROR_SIZE];
} slot;

struct qn_loader {
    qn_context *ctx;
    const qn_dataset *data;
    qn_loader_options options;
    size_t n_inputs;
    /* [n_inputs] bytes of a sample; 0: not fed */
    size_t *strides;
    slot slots[SLOTS];
    int64_t batches;
    /* Batches handed out */
    int64_t taken;
    /* Sample that a thread takes next */
    int64_t next;
    bool stop;
    pthread_mutex_t mutex;
    /* A batch is complete */
    pthread_cond_t filled;
    /* A slot can be filled again */
    pthread_cond_t free;
    pthread_t threads[MOST_THREADS];
    int n_threads;
};

static int64_t batch_size(const qn_loader *l, int64_t batch)
{
    return QN_MIN(l->options.batch, l->options.count - batch * l->options.batch);
}

static slot *slot_of(qn_loader *l, int64_t batch)
{
    return &l->slots[batch % SLOTS];
}

static void prepare_slot(qn_loader *l, int64_t batch)
{
    slot *s = slot_of(l, batch);
    if (batch >= l->batches)
        return;
    s->batch.first = batch * l->options.batch;
    s->batch.count = s->missing = batch_size(l, batch);
    s->status = QN_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Sample `place` of those to load, into its place in the batch. */
static qn_status read_into(const qn_loader *l, qn_context *ctx, void **to, const slot *s,
                           int64_t place)
{
    const qn_loader_options *o = &l->options;
    for (size_t k = 0; k < l->n_inputs; k++) {
        to[k] = s->batch.data[k]
                    ? (char *)s->batch.data[k] + (size_t)(place % o->batch) * l->strides[k]
                    : NULL;
    }
    return qn_dataset_read(to, &s->batch.places[place % o->batch], l->data, ctx,
                           o->samples ? o->samples[place] : o->first + place);
}

static void note_failure(slot *s, qn_status status, int64_t place, const char *message)
{
    if (s->status != QN_OK && s->failed < place)
        return;
    s->status = status;
    s->failed = place;
    snprintf(s->error, sizeof s->error, "%s", message);
}

static void fill_up(const qn_loader *l, slot *s)
{
    const int64_t count = s->batch.count;
    for (size_t k = 0; k < l->n_inputs; k++) {
        char *data = s->batch.data[k];
        const size_t bytes = l->strides[k];
        for (int64_t i = count; data && i < l->options.fill; i++)
            memcpy(data + (size_t)i * bytes, data + (size_t)(count - 1) * bytes, bytes);
    }
}

/* A sample to read and the slot it goes to, or NULL when there is nothing left to do. */
static slot *take_sample(qn_loader *l, int64_t *place)
{
    slot *s = NULL;
    pthread_mutex_lock(&l->mutex);
    while (!l->stop && l->next < l->options.count &&
           l->next / l->options.batch >= QN_MAX(l->taken - 1, 0) + SLOTS)
        pthread_cond_wait(&l->free, &l->mutex);
    if (!l->stop && l->next < l->options.count) {
        *place = l->next++;
        s = slot_of(l, *place / l->options.batch);
    }
    pthread_mutex_unlock(&l->mutex);
    return s;
}

static void finish_sample(qn_loader *l, slot *s, qn_status status, int64_t place,
                          const char *message)
{
    pthread_mutex_lock(&l->mutex);
    if (status != QN_OK)
        note_failure(s, status, place, message);
    if (--s->missing == 0)
        pthread_cond_broadcast(&l->filled);
    pthread_mutex_unlock(&l->mutex);
}

/* Each thread has a context of its own for its messages. */
static void *work(void *user)
{
    qn_loader *l = user;
    qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
    qn_context *ctx = NULL;
    int64_t place;
    options.allocator = &l->ctx->allocator;
    options.threads = 1;
    qn_status created = qn_context_create(&ctx, &options);
    void **to = created == QN_OK ? qn_alloc_zero(ctx, l->n_inputs + 1, sizeof *to) : NULL;
    for (slot *s; (s = take_sample(l, &place)) != NULL;) {
        if (to) {
            const qn_status status = read_into(l, ctx, to, s, place);
            finish_sample(l, s, status, place, qn_context_error(ctx));
        } else {
            finish_sample(l, s, QN_E_NOMEM, place, "out of memory");
        }
    }
    if (ctx)
        qn_free(ctx, to);
    qn_context_free(ctx);
    return NULL;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

/* Without threads. */
static qn_status read_batch(qn_loader *l, slot *s)
{
    void **to = qn_alloc_zero(l->ctx, l->n_inputs + 1, sizeof *to);
    qn_status status = to ? QN_OK : qn_fail_nomem(l->ctx);
    for (int64_t i = 0; status == QN_OK && i < s->batch.count; i++)
        status = read_into(l, l->ctx, to, s, s->batch.first + i);
    qn_free(l->ctx, to);
    return status;
}

static qn_status wait_for(qn_loader *l, slot *s)
{
    pthread_mutex_lock(&l->mutex);
    while (s->missing)
        pthread_cond_wait(&l->filled, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
    return s->status == QN_OK ? QN_OK : qn_fail(l->ctx, s->status, "%s", s->error);
}

/* The slot of the batch before the one handed out last is free again. */
static void advance(qn_loader *l)
{
    pthread_mutex_lock(&l->mutex);
    if (l->taken > 0)
        prepare_slot(l, l->taken - 1 + SLOTS);
    l->taken++;
    pthread_cond_broadcast(&l->free);
    pthread_mutex_unlock(&l->mutex);
}

qn_status qn_loader_next(const qn_batch **out, qn_loader *loader)
{
    *out = NULL;
    QN_TRY(qn_check_cancel(loader->ctx));
    if (loader->taken >= loader->batches)
        return QN_OK;
    slot *s = slot_of(loader, loader->taken);
    advance(loader);
    QN_TRY(loader->n_threads ? wait_for(loader, s) : read_batch(loader, s));
    if (s->batch.count < loader->options.fill)
        fill_up(loader, s);
    *out = &s->batch;
    return QN_OK;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static qn_status make_slots(qn_loader *l)
{
    const qn_dataset_input *in = qn_dataset_inputs(l->data);
    const size_t room = (size_t)QN_MAX(l->options.batch, l->options.fill);
    l->strides = qn_alloc_zero(l->ctx, l->n_inputs + 1, sizeof *l->strides);
    QN_TRY_ALLOC(l->ctx, l->strides);
    for (int64_t s = 0; s < SLOTS; s++) {
        qn_batch *batch = &l->slots[s].batch;
        batch->data = qn_alloc_zero(l->ctx, l->n_inputs + 1, sizeof *batch->data);
        QN_TRY_ALLOC(l->ctx, batch->data);
        batch->places = qn_alloc_zero(l->ctx, room, sizeof *batch->places);
        QN_TRY_ALLOC(l->ctx, batch->places);
        for (size_t k = 0; k < l->n_inputs; k++) {
            size_t bytes;
            if (!in[k].fed)
                continue;
            l->strides[k] = in[k].bytes;
            if (!qn_mul_size(&bytes, in[k].bytes, room))
                return qn_fail_nomem(l->ctx);
            batch->data[k] = qn_alloc_aligned(&l->ctx->allocator, QN_MAX(bytes, 1));
            QN_TRY_ALLOC(l->ctx, batch->data[k]);
        }
        prepare_slot(l, s);
    }
    return QN_OK;
}

/* Fewer threads than wanted are no failure, nor is none. */
static void start_threads(qn_loader *l)
{
    const int wanted = l->options.threads ? l->options.threads : qn_cpu_count();
    while (l->n_threads < QN_MIN(wanted, MOST_THREADS) &&
           pthread_create(&l->threads[l->n_threads], NULL, work, l) == 0)
        l->n_threads++;
}

qn_status qn_loader_create(qn_loader **out, qn_context *ctx, const qn_dataset *data,
                           size_t n_inputs, const qn_loader_options *options)
{
    qn_loader *l = qn_alloc_zero(ctx, 1, sizeof *l);
    *out = NULL;
    QN_TRY_ALLOC(ctx, l);
    l->ctx = ctx;
    l->data = data;
    l->options = *options;
    l->n_inputs = n_inputs;
    l->batches = (options->count + options->batch - 1) / options->batch;
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->free, NULL);
    const qn_status status = make_slots(l);
    if (status != QN_OK) {
        qn_loader_free(l);
        return status;
    }
    start_threads(l);
    *out = l;
    return QN_OK;
}

void qn_loader_free(qn_loader *loader)
{
    if (!loader)
        return;
    pthread_mutex_lock(&loader->mutex);
    loader->stop = true;
    pthread_cond_broadcast(&loader->free);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->n_threads; i++)
        pthread_join(loader->threads[i], NULL);
    for (int s = 0; s < SLOTS; s++) {
        for (size_t k = 0; loader->slots[s].batch.data && k < loader->n_inputs; k++)
            qn_free_aligned(&loader->ctx->allocator, loader->slots[s].batch.data[k]);
        qn_free(loader->ctx, loader->slots[s].batch.data);
        qn_free(loader->ctx, loader->slots[s].batch.places);
    }
    pthread_mutex_destroy(&loader->mutex);
    pthread_cond_destroy(&loader->filled);
    pthread_cond_destroy(&loader->free);
    qn_free(loader->ctx, loader->strides);
    qn_free(loader->ctx, loader);
}
