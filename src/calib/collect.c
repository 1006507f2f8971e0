/* Workers, each with a session of the plan and a part of the statistics of its own, and the
 * caller's thread, which shows progress, writes checkpoints and listens for a cancel. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "calib/collect.h"
#include "calib/sampler.h"
#include "dist/ranks.h"

typedef struct worker {
    qn_context *ctx;
    /* Its part is of `segment` */
    qn_sampler sampler;
    size_t segment;
    qn_extremes extremes;
} worker;

typedef struct team {
    qn_collection c;
    qn_plan *plan;
    size_t n_inputs;
    worker *workers;
    int n_workers;
    /* When a checkpoint was last written, in milliseconds */
    double written;
    /* It guards what the collection holds */
    pthread_mutex_t lock;
} team;

/* ---- A worker -------------------------------------------------------------------------------- */

static qn_context *context_of(void *user, int slot)
{
    return ((team *)user)->workers[slot].ctx;
}

static qn_status merge_part(team *crew, worker *w)
{
    qn_status status = QN_OK;
    if (w->sampler.part)
        status = qn_collection_add(&crew->c, w->segment, w->sampler.part);
    if (status == QN_OK)
        status = qn_extremes_merge(&crew->c.extremes, &w->extremes);
    qn_sampler_drop(&w->sampler);
    qn_extremes_free(&w->extremes);
    qn_extremes_init(&w->extremes, w->ctx);
    return status;
}

/* Gives away what was collected. */
static qn_status hand_in(team *crew, worker *w)
{
    pthread_mutex_lock(&crew->lock);
    const qn_status status = merge_part(crew, w);
    if (status != QN_OK)
        memcpy(w->ctx->error, crew->c.ctx->error, sizeof w->ctx->error);
    pthread_mutex_unlock(&crew->lock);
    return status;
}

static qn_status open_worker(void *user, int slot)
{
    team *crew = user;
    return qn_sampler_open(&crew->workers[slot].sampler, crew->plan);
}

static qn_status close_worker(void *user, int slot)
{
    team *crew = user;
    return hand_in(crew, &crew->workers[slot]);
}

/* ---- One sample ------------------------------------------------------------------------------ */

static qn_status run_sample(const team *crew, worker *w, int64_t sample)
{
    const qn_collect_options *o = crew->c.options;
    const qn_sample_source *source = crew->c.source;
    const qn_tensor *inputs = NULL;
    w->sampler.sample = sample;
    QN_TRY(source->read(source->user, w->ctx, (int)(w - crew->workers), sample, &inputs));
    QN_TRY(qn_sampler_run(&w->sampler, inputs, crew->n_inputs));
    return o->on_sample ? o->on_sample(o->on_sample_user, w->ctx, sample, w->sampler.session)
                        : QN_OK;
}

static qn_status name_sample(const team *crew, const worker *w, int64_t sample, qn_status status)
{
    char name[256] = "";
    const qn_sample_source *source = crew->c.source;
    if (status == QN_E_NOMEM)
        return status;
    source->name(source->user, sample, name, sizeof name);
    return strstr(qn_context_error(w->ctx), name) ? status
                                                  : qn_fail_within(w->ctx, status, "%s", name);
}

/* Samples come in their order: what a segment has got is handed in at its end. */
static qn_status enter_segment(team *crew, worker *w, int64_t sample)
{
    size_t segment = w->segment;
    while (sample >= crew->c.segments[segment].end)
        segment++;
    if (segment != w->segment && w->sampler.part)
        QN_TRY(hand_in(crew, w));
    w->segment = segment;
    return QN_OK;
}

/* A sample that failed has left half of itself in the part. */
static qn_status take_sample(void *user, int slot, int64_t sample)
{
    team *crew = user;
    worker *w = &crew->workers[slot];
    if (crew->c.done[sample] || crew->c.elsewhere[sample])
        return QN_OK;
    QN_TRY(enter_segment(crew, w, sample));
    const qn_status status = run_sample(crew, w, sample);
    if (status == QN_OK)
        return QN_OK;
    qn_sampler_drop(&w->sampler);
    return name_sample(crew, w, sample, status);
}

static qn_status count_sample(void *user, int slot, int64_t sample)
{
    qn_collection *c = &((team *)user)->c;
    (void)slot;
    c->n_done += !c->done[sample] && !c->elsewhere[sample];
    c->done[sample] |= !c->elsewhere[sample];
    return QN_OK;
}

/* ---- The caller's thread --------------------------------------------------------------------- */

/* Nobody works on a sample; all that was collected goes into the file. */
static qn_status write_checkpoint(team *crew)
{
    for (int i = 0; i < crew->n_workers; i++)
        QN_TRY(merge_part(crew, &crew->workers[i]));
    return qn_checkpoint_write(&crew->c);
}

/* A checkpoint that cannot be written ends the work: the statistics would fare no better. */
static qn_status watch(void *user, qn_pool *pool)
{
    team *crew = user;
    const qn_collect_options *o = crew->c.options;
    const double every = (o->checkpoint_seconds > 0 ? o->checkpoint_seconds : 10) * 1e3;
    qn_status status = QN_OK;
    QN_TRY(qn_ranks_check(o->ranks));
    if (o->checkpoint && qn_clock_ms() - crew->written > every) {
        qn_pool_pause(pool);
        status = write_checkpoint(crew);
        qn_pool_resume(pool);
        crew->written = qn_clock_ms();
    }
    qn_pool_lock(pool);
    const int64_t done = crew->c.n_done;
    qn_pool_unlock(pool);
    qn_progress(crew->c.ctx, "samples", done, crew->c.n_share);
    return status;
}

static qn_status worker_init(worker *w, const team *crew)
{
    qn_context *ctx = crew->c.ctx;
    const qn_context_options options = {QN_OPTIONS_VERSION, .threads = 1,
                                        .allocator = &ctx->allocator};
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

/* What was done before a cancel is kept. */
static qn_status outcome(team *crew, qn_status status)
{
    const qn_collection *c = &crew->c;
    if (status == QN_E_CANCELLED && c->n_done < c->n_share && c->checkpoint) {
        QN_TRY(qn_checkpoint_write(&crew->c));
        return qn_check_cancel(c->ctx);
    }
    return status;
}

static qn_status run_crew(team *crew, int count)
{
    const qn_pool_work work = {.user = crew,
                               .count = crew->c.source->count,
                               .threads = count,
                               .context = context_of,
                               .open = open_worker,
                               .run = take_sample,
                               .finish = count_sample,
                               .close = close_worker,
                               .watch = watch};
    qn_status status = QN_OK;
    crew->workers = qn_alloc_zero(crew->c.ctx, (size_t)count, sizeof *crew->workers);
    QN_TRY_ALLOC(crew->c.ctx, crew->workers);
    crew->n_workers = count;
    crew->written = qn_clock_ms();
    pthread_mutex_init(&crew->lock, NULL);
    for (int i = 0; i < count && status == QN_OK; i++)
        status = worker_init(&crew->workers[i], crew);
    if (status == QN_OK)
        status = outcome(crew, qn_pool_run(crew->c.ctx, &work));
    for (int i = 0; i < count; i++)
        worker_close(&crew->workers[i]);
    pthread_mutex_destroy(&crew->lock);
    qn_free(crew->c.ctx, crew->workers);
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
    c->elsewhere = qn_arena_array(&c->arena, (size_t)n, sizeof *c->elsewhere);
    if (!c->segments || !c->done || !c->elsewhere)
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
    QN_TRY(qn_collection_share(c, crew->n_inputs));
    const int64_t left = c->n_share - c->n_done;
    int64_t count = QN_MIN(o->threads > 0 ? o->threads : c->ctx->threads, QN_MAX(left, 1));
    if (c->source->slots > 0)
        count = QN_MIN(count, c->source->slots);
    QN_TRY(run_crew(crew, (int)count));
    QN_TRY(qn_collection_unite(c));
    qn_stats_sort(c->total);
    if (convergence && qn_ranks_own(o->ranks) == 0)
        QN_TRY(describe(convergence, c));
    c->out[o->n_after] = c->total;
    c->total = NULL;
    return QN_OK;
}

static void close_all(qn_collection *c, bool failed)
{
    qn_collection_clear(c);
    for (size_t i = 0; failed && i <= c->options->n_after; i++) {
        qn_stats_free(c->out[i]);
        c->out[i] = NULL;
    }
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
