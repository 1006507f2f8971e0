/* Workers, each with a session of the plan and a part of the statistics of its own, and the
 * caller's thread, which shows progress, writes checkpoints and listens for a cancel. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "calib/collect.h"
#include "calib/sampler.h"

typedef struct team {
    qn_collection c;
    qn_plan *plan;
    size_t n_inputs;
    /* Protects all fields below and the collection. */
    pthread_mutex_t lock;
    pthread_cond_t work, news;
    /* Workers are to give away what they have and wait */
    bool pausing;
    bool stopping;
    int alive, parked;
    /* The status of the failed sample with the lowest index. */
    qn_status status;
    int64_t failed;
    char message[QN_ERROR_SIZE];
} team;

typedef struct worker {
    team *crew;
    int slot;
    pthread_t thread;
    qn_context *ctx;
    /* Its part is of `segment` */
    qn_sampler sampler;
    size_t segment;
    qn_extremes extremes;
    /* The current sample; -1: none. */
    int64_t sample;
} worker;

/* ---- One sample ------------------------------------------------------------------------------ */

static qn_status run_sample(worker *w)
{
    const qn_collect_options *o = w->crew->c.options;
    const qn_sample_source *source = w->crew->c.source;
    const qn_tensor *inputs = NULL;
    w->sampler.sample = w->sample;
    QN_TRY(source->read(source->user, w->ctx, w->slot, w->sample, &inputs));
    QN_TRY(qn_sampler_run(&w->sampler, inputs, w->crew->n_inputs));
    return o->on_sample ? o->on_sample(o->on_sample_user, w->ctx, w->sample, w->sampler.session)
                        : QN_OK;
}

/* ---- A worker (with the lock held where nothing else is said) -------------------------------- */

static void note_failure(worker *w, qn_status status)
{
    team *crew = w->crew;
    crew->stopping = true;
    if (crew->status != QN_OK && w->sample >= crew->failed)
        return;
    crew->status = status;
    crew->failed = w->sample;
    memcpy(crew->message, qn_context_error(w->ctx), sizeof crew->message);
}

static void note_sample_failure(worker *w, qn_status status)
{
    char name[256] = "";
    const qn_sample_source *source = w->crew->c.source;
    if (w->sample >= 0 && status != QN_E_NOMEM) {
        source->name(source->user, w->sample, name, sizeof name);
        if (!strstr(qn_context_error(w->ctx), name))
            status = qn_fail_within(w->ctx, status, "%s", name);
    }
    note_failure(w, status);
}

/* Gives away what was collected. */
static void hand_in(worker *w)
{
    team *crew = w->crew;
    qn_status status = QN_OK;
    if (w->sampler.part)
        status = qn_collection_add(&crew->c, w->segment, w->sampler.part);
    if (status == QN_OK)
        status = qn_extremes_merge(&crew->c.extremes, &w->extremes);
    qn_sampler_drop(&w->sampler);
    qn_extremes_free(&w->extremes);
    qn_extremes_init(&w->extremes, w->ctx);
    if (status != QN_OK) {
        memcpy(w->ctx->error, crew->c.ctx->error, sizeof w->ctx->error);
        note_failure(w, status);
    }
}

static void park(worker *w)
{
    team *crew = w->crew;
    hand_in(w);
    crew->parked++;
    pthread_cond_signal(&crew->news);
    while (crew->pausing)
        pthread_cond_wait(&crew->work, &crew->lock);
    crew->parked--;
}

/* The next sample of all; false when there is none. */
static bool take_next(worker *w)
{
    qn_collection *c = &w->crew->c;
    while (c->next < c->source->count && c->done[c->next])
        c->next++;
    if (w->crew->stopping || c->next >= c->source->count)
        return false;
    w->sample = c->next++;
    const size_t before = w->segment;
    while (w->sample >= c->segments[w->segment].end)
        w->segment++;
    if (w->segment != before && w->sampler.part) {
        const size_t now = w->segment;
        w->segment = before;
        hand_in(w);
        w->segment = now;
    }
    return !w->crew->stopping;
}

static void work(worker *w)
{
    team *crew = w->crew;
    for (;;) {
        if (crew->pausing)
            park(w);
        if (!take_next(w))
            break;
        pthread_mutex_unlock(&crew->lock);
        const qn_status status = run_sample(w);
        pthread_mutex_lock(&crew->lock);
        if (status != QN_OK) { /* the part has half a sample in it */
            note_sample_failure(w, status);
            qn_sampler_drop(&w->sampler);
            return;
        }
        crew->c.done[w->sample] = 1;
        crew->c.n_done++;
        pthread_cond_signal(&crew->news);
    }
    hand_in(w);
}

static void *worker_main(void *user)
{
    worker *w = user;
    team *crew = w->crew;
    const qn_status status = qn_sampler_open(&w->sampler, crew->plan);
    pthread_mutex_lock(&crew->lock);
    if (status == QN_OK)
        work(w);
    else
        note_failure(w, status);
    crew->alive--;
    pthread_cond_signal(&crew->news);
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* ---- The caller's thread --------------------------------------------------------------------- */

static void wait_for_news(team *crew)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    if (until.tv_nsec >= 1000 * 1000 * 1000) {
        until.tv_nsec -= 1000 * 1000 * 1000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&crew->news, &crew->lock, &until);
}

static qn_status pause_and_write(team *crew)
{
    crew->pausing = true;
    while (crew->parked < crew->alive)
        wait_for_news(crew);
    const qn_status status =
        crew->stopping ? QN_OK : qn_checkpoint_write(&crew->c, crew->c.options->checkpoint);
    crew->pausing = false;
    pthread_cond_broadcast(&crew->work);
    return status;
}

/* Waits until all workers have ended. A checkpoint that cannot be written ends the work, since the
 * statistics could not be written either. */
static qn_status watch(team *crew)
{
    const qn_collect_options *o = crew->c.options;
    const double every = (o->checkpoint_seconds > 0 ? o->checkpoint_seconds : 10) * 1e3;
    double written = qn_clock_ms();
    qn_status status = QN_OK;
    while (crew->alive > 0) {
        wait_for_news(crew);
        crew->stopping = crew->stopping || atomic_load(&crew->c.ctx->cancelled);
        if (o->checkpoint && !crew->stopping && qn_clock_ms() - written > every) {
            status = pause_and_write(crew);
            crew->stopping = crew->stopping || status != QN_OK;
            written = qn_clock_ms();
        }
        const int64_t done = crew->c.n_done;
        pthread_mutex_unlock(&crew->lock);
        qn_progress(crew->c.ctx, "samples", done, crew->c.source->count);
        pthread_mutex_lock(&crew->lock);
    }
    return status;
}

static qn_status worker_init(worker *w, team *crew, int slot)
{
    qn_context *ctx = crew->c.ctx;
    const qn_context_options options = {.threads = 1, .allocator = &ctx->allocator};
    *w = (worker){.crew = crew, .slot = slot, .sample = -1};
    if (qn_context_create(&w->ctx, &options) != QN_OK)
        return qn_fail_nomem(ctx);
    qn_extremes_init(&w->extremes, w->ctx);
    w->sampler = (qn_sampler){.ctx = w->ctx,
                              .axis = crew->c.options->axis,
                              .axis_user = crew->c.options->axis_user,
                              .remedy = crew->c.options->remedy,
                              .extremes = &w->extremes};
    return QN_OK;
}

static void worker_close(worker *w)
{
    if (!w->ctx)
        return;
    qn_sampler_close(&w->sampler);
    qn_extremes_free(&w->extremes);
    qn_context_free(w->ctx);
}

/* Starts as many as the system gives; at least one. */
static qn_status start(team *crew, worker *workers, int count, int *started)
{
    for (*started = 0; *started < count; ++*started) {
        worker *w = &workers[*started];
        QN_TRY(worker_init(w, crew, *started));
        crew->alive++;
        if (pthread_create(&w->thread, NULL, worker_main, w) == 0)
            continue;
        crew->alive--;
        if (*started == 0)
            return qn_fail(crew->c.ctx, QN_E_NOMEM, "no thread can be started");
        return QN_OK;
    }
    return QN_OK;
}

static qn_status outcome(team *crew, qn_status status)
{
    qn_collection *c = &crew->c;
    if (status != QN_OK)
        return status;
    if (crew->status != QN_OK)
        return qn_fail(c->ctx, crew->status, "%s", crew->message);
    if (c->n_done < c->source->count && c->options->checkpoint)
        QN_TRY(qn_checkpoint_write(c, c->options->checkpoint));
    return qn_check_cancel(c->ctx);
}

static qn_status run_crew(team *crew, int count)
{
    worker *workers = qn_alloc_zero(crew->c.ctx, (size_t)count, sizeof *workers);
    int started = 0;
    QN_TRY_ALLOC(crew->c.ctx, workers);
    pthread_mutex_lock(&crew->lock);
    qn_status status = start(crew, workers, count, &started);
    crew->stopping = crew->stopping || status != QN_OK;
    const qn_status watched = watch(crew);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < count; i++)
        worker_close(&workers[i]);
    qn_free(crew->c.ctx, workers);
    return outcome(crew, status != QN_OK ? status : watched);
}

static qn_status run_with_locks(team *crew, int count)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    pthread_cond_init(&crew->news, &monotonic);
    const qn_status status = run_crew(crew, count);
    pthread_cond_destroy(&crew->news);
    pthread_cond_destroy(&crew->work);
    pthread_mutex_destroy(&crew->lock);
    pthread_condattr_destroy(&monotonic);
    return status;
}

/* ---- Before and after ------------------------------------------------------------------------ */

static int by_end(const void *a, const void *b)
{
    const qn_segment *x = a, *y = b;
    return x->end < y->end ? -1 : x->end > y->end;
}

static void segment_add(qn_collection *c, int64_t end)
{
    for (size_t i = 0; i < c->n_segments; i++) {
        if (c->segments[i].end == end)
            return;
    }
    c->segments[c->n_segments++] = (qn_segment){.end = end};
}

static qn_status divide(qn_collection *c)
{
    const int64_t n = c->source->count,
                  places[QN_CONVERGENCE_POINTS] = {n / 8, n / 4, n / 2, n * 3 / 4};
    const qn_collect_options *o = c->options;
    c->segments =
        qn_arena_array(&c->arena, QN_CONVERGENCE_POINTS + o->n_after + 1, sizeof *c->segments);
    c->done = qn_arena_array(&c->arena, (size_t)n, sizeof *c->done);
    if (!c->segments || !c->done)
        return qn_fail_nomem(c->ctx);
    for (size_t i = 0; i < QN_CONVERGENCE_POINTS; i++) {
        if (places[i] == 0 || (i > 0 && places[i] == places[i - 1]))
            continue;
        c->points[c->n_points++] = (qn_convergence_point){.samples = places[i]};
        segment_add(c, places[i]);
    }
    for (size_t i = 0; i < o->n_after; i++) {
        if (o->after[i] < 1 || o->after[i] > n)
            return qn_fail(c->ctx, QN_E_INVALID,
                           "statistics after %lld samples are wanted, but there are %lld",
                           (long long)o->after[i], (long long)n);
        segment_add(c, o->after[i]);
    }
    segment_add(c, n);
    qsort(c->segments, c->n_segments, sizeof *c->segments, by_end);
    return QN_OK;
}

static qn_status describe(qn_convergence *convergence, qn_collection *c)
{
    *convergence = (qn_convergence){.samples = c->source->count, .n_points = c->n_points};
    convergence->values = (int64_t)c->total->n_entries;
    bool settled = true;
    for (size_t i = c->n_points; i-- > 0;) {
        qn_convergence_point *stage = &convergence->points[i];
        *stage = c->points[i];
        QN_TRY(qn_range_snapshot_compare(stage, c->ctx, &c->snapshots[i], c->total));
        settled = settled && stage->median < 0.01;
        if (settled)
            convergence->converged = stage->samples;
    }
    return qn_extremes_outliers(convergence, &c->extremes);
}

static qn_status collect(qn_convergence *convergence, team *crew)
{
    qn_collection *c = &crew->c;
    const qn_collect_options *o = c->options;
    QN_TRY(divide(c));
    QN_TRY(qn_stats_create(&c->total, c->ctx));
    c->total->model = o->model;
    if (o->checkpoint)
        QN_TRY(qn_checkpoint_resume(c, o->checkpoint, crew->n_inputs));
    const int64_t left = c->source->count - c->n_done;
    int64_t count = QN_MIN(o->threads > 0 ? o->threads : c->ctx->threads, QN_MAX(left, 1));
    if (c->source->slots > 0)
        count = QN_MIN(count, c->source->slots);
    QN_TRY(run_with_locks(crew, (int)count));
    qn_stats_sort(c->total);
    if (convergence)
        QN_TRY(describe(convergence, c));
    c->out[o->n_after] = c->total;
    c->total = NULL;
    return QN_OK;
}

static void close_all(qn_collection *c, bool failed)
{
    for (size_t i = 0; i < c->n_segments; i++)
        qn_stats_free(c->segments[i].stats);
    for (size_t i = 0; i < c->n_points; i++)
        qn_range_snapshot_free(&c->snapshots[i], c->ctx);
    for (size_t i = 0; failed && i <= c->options->n_after; i++) {
        qn_stats_free(c->out[i]);
        c->out[i] = NULL;
    }
    qn_stats_free(c->total);
    qn_extremes_free(&c->extremes);
    qn_arena_free(&c->arena);
}

qn_status qn_collect(qn_stats **out, qn_convergence *convergence, qn_plan *plan, qn_context *ctx,
                     const qn_sample_source *source, const qn_collect_options *options)
{
    const qn_collect_options defaults = {.threads = 0};
    team crew = {.c = {.ctx = ctx, .source = source, .out = out}, .plan = plan};
    crew.c.options = options ? options : &defaults;
    crew.n_inputs = plan->model->graph->n_inputs;
    for (size_t i = 0; i <= crew.c.options->n_after; i++)
        out[i] = NULL;
    if (source->count < 1)
        return qn_fail(ctx, QN_E_INVALID, "the data holds no samples");
    qn_arena_init(&crew.c.arena, &ctx->allocator);
    qn_extremes_init(&crew.c.extremes, ctx);
    const qn_status status = collect(convergence, &crew);
    close_all(&crew.c, status != QN_OK);
    return status;
}
