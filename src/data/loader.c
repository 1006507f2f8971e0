/* The loader: threads that read batches ahead of their use. */
#include "data/loader.h"

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/pool.h"

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

/* A thread's own, for its messages. */
typedef struct worker {
    qn_context *ctx;
    /* [n_inputs] */
    void **to;
    /* The status of the sample at hand */
    qn_status status;
} worker;

struct qn_loader {
    qn_context *ctx;
    const qn_dataset *data;
    qn_loader_options options;
    size_t n_inputs;
    /* [n_inputs]: bytes of a sample; 0: not fed */
    size_t *strides;
    slot slots[SLOTS];
    int64_t batches;
    /* Batches handed out; with threads it changes under the pool's lock */
    int64_t taken;
    worker workers[MOST_THREADS];
    /* NULL: no threads */
    qn_pool *pool;
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

/* Its slot is not in use. */
static bool may_read(void *user, int64_t place)
{
    const qn_loader *l = user;
    return place / l->options.batch < QN_MAX(l->taken - 1, 0) + SLOTS;
}

/* What fails is the batch's failure, which waits until it is asked for. */
static qn_status read_sample(void *user, int thread, int64_t place)
{
    qn_loader *l = user;
    worker *w = &l->workers[thread];
    w->status = read_into(l, w->ctx, w->to, slot_of(l, place / l->options.batch), place);
    return QN_OK;
}

static qn_status finish_sample(void *user, int thread, int64_t place)
{
    qn_loader *l = user;
    const worker *w = &l->workers[thread];
    slot *s = slot_of(l, place / l->options.batch);
    if (w->status != QN_OK)
        note_failure(s, w->status, place, qn_context_error(w->ctx));
    s->missing--;
    return QN_OK;
}

static qn_context *context_of(void *user, int thread)
{
    return ((qn_loader *)user)->workers[thread].ctx;
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
    qn_pool_lock(l->pool);
    while (s->missing)
        qn_pool_wait(l->pool);
    qn_pool_unlock(l->pool);
    return s->status == QN_OK ? QN_OK : qn_fail(l->ctx, s->status, "%s", s->error);
}

/* The slot of the batch before the one handed out last is free again. */
static void advance(qn_loader *l)
{
    if (l->pool)
        qn_pool_lock(l->pool);
    if (l->taken > 0)
        prepare_slot(l, l->taken - 1 + SLOTS);
    l->taken++;
    if (!l->pool)
        return;
    qn_pool_wake(l->pool);
    qn_pool_unlock(l->pool);
}

qn_status qn_loader_next(const qn_batch **out, qn_loader *loader)
{
    *out = NULL;
    QN_TRY(qn_check_cancel(loader->ctx));
    if (loader->taken >= loader->batches)
        return QN_OK;
    slot *s = slot_of(loader, loader->taken);
    advance(loader);
    QN_TRY(loader->pool ? wait_for(loader, s) : read_batch(loader, s));
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

static bool make_worker(qn_loader *l, worker *w)
{
    const qn_context_options options = {QN_OPTIONS_VERSION, .threads = 1,
                                        .allocator = &l->ctx->allocator};
    if (qn_context_create(&w->ctx, &options) != QN_OK)
        return false;
    w->to = qn_alloc_zero(w->ctx, l->n_inputs + 1, sizeof *w->to);
    return w->to != NULL;
}

/* Fewer threads than wanted are no failure, nor is none. */
static void start_threads(qn_loader *l)
{
    const int wanted = l->options.threads ? l->options.threads : qn_cpu_count();
    qn_pool_work work = {.user = l,
                         .count = l->options.count,
                         .context = context_of,
                         .ready = may_read,
                         .run = read_sample,
                         .finish = finish_sample};
    while (work.threads < QN_MIN(wanted, MOST_THREADS) && make_worker(l, &l->workers[work.threads]))
        work.threads++;
    if (work.threads == 0 || qn_pool_start(&l->pool, l->ctx, &work) != QN_OK)
        return;
    if (qn_pool_threads(l->pool) > 0)
        return;
    qn_pool_end(l->pool);
    l->pool = NULL;
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
    qn_pool_end(loader->pool);
    for (int i = 0; i < MOST_THREADS; i++) {
        if (loader->workers[i].ctx)
            qn_free(loader->workers[i].ctx, loader->workers[i].to);
        qn_context_free(loader->workers[i].ctx);
    }
    for (int s = 0; s < SLOTS; s++) {
        for (size_t k = 0; loader->slots[s].batch.data && k < loader->n_inputs; k++)
            qn_free_aligned(&loader->ctx->allocator, loader->slots[s].batch.data[k]);
        qn_free(loader->ctx, loader->slots[s].batch.data);
        qn_free(loader->ctx, loader->slots[s].batch.places);
    }
    qn_free(loader->ctx, loader->strides);
    qn_free(loader->ctx, loader);
}
