/* qn_infer_files: from files through a model to files. */
#include "api/infer.h"

#include "base/clock.h"
#include "base/options.h"
#include "base/pin.h"
#include "base/pool.h"
#include "executor/feed_source.h"
#include "model/prepare.h"
#include "run/plan.h"

/* One thread of those that run samples side by side. */
typedef struct worker {
    qn_context *ctx;
    qn_session *session;
} worker;

typedef struct job {
    qn_feed feed;
    qn_infer_outputs outputs;
    qn_plan *plan;
    double plan_ms, run_ms;
    /* The first is the caller's thread */
    worker *workers;
    int n_workers;
    /* The samples of several workers */
    qn_feed_source samples;
} job;

/* ---- Making ---------------------------------------------------------------------------------- */

/* Several runs share the threads among them: none waits for its neighbours inside a run, which
 * costs little while the cores are free and nearly all the time while they are not. */
static int workers_of(const qn_feed *feed, int threads)
{
    const int64_t runs = feed->samples < 0 ? 1 : (feed->samples + feed->batch - 1) / feed->batch;
    return (int)QN_MIN(runs, threads);
}

static qn_status make_plan(job *j, const qn_plan_options *options)
{
    qn_context *ctx = j->feed.ctx;
    qn_plan_options plan = *options;
    qn_input_shape *shapes;
    QN_TRY(qn_threads_choose(&plan.threads, ctx, plan.threads));
    j->n_workers = workers_of(&j->feed, plan.threads);
    if (j->n_workers > 1)
        plan.threads = 1;
    QN_TRY(qn_feed_shapes(&shapes, &plan.graph.n_shapes, &j->feed));
    plan.graph.shapes = shapes;
    return qn_plan_create_now(&j->plan, ctx, j->feed.model, &plan);
}

/* Each of several workers has a context of its own, so that none writes what another one reads; the
 * caller's gets the message. */
static qn_status tell(const job *j, const worker *w, qn_status status)
{
    qn_context *ctx = j->feed.ctx;
    if (status == QN_OK || w->ctx == ctx)
        return status;
    return qn_fail(ctx, status, "%s", qn_context_error(w->ctx));
}

/* A session of the plan for each worker; where memory is short those that there are do the work. */
static qn_status make_workers(job *j)
{
    qn_context *ctx = j->feed.ctx;
    j->workers = qn_alloc_zero(ctx, (size_t)j->n_workers, sizeof *j->workers);
    QN_TRY_ALLOC(ctx, j->workers);
    const bool alone = j->n_workers == 1;
    for (int i = 0; i < j->n_workers; i++) {
        worker *w = &j->workers[i];
        if (alone)
            w->ctx = ctx;
        else
            QN_TRY(qn_context_create_child(&w->ctx, ctx));
        const qn_status status = qn_session_create(&w->session, w->ctx, j->plan);
        if (status == QN_E_NOMEM && i > 0) {
            qn_context_free(w->ctx);
            w->ctx = NULL;
            j->n_workers = i;
        } else if (status != QN_OK) {
            return tell(j, w, status);
        }
    }
    return QN_OK;
}

static void free_workers(job *j)
{
    for (int i = 0; j->workers && i < j->n_workers; i++) {
        qn_session_free(j->workers[i].session);
        if (j->workers[i].ctx != j->feed.ctx)
            qn_context_free(j->workers[i].ctx);
    }
    qn_free(j->feed.ctx, j->workers);
}

/* ---- Run after run --------------------------------------------------------------------------- */

static qn_status run_in_turn(job *j)
{
    qn_feed *feed = &j->feed;
    qn_session *session = j->workers[0].session;
    const int64_t samples = QN_MAX(feed->samples, 1);
    int64_t count;
    QN_TRY(qn_feed_fill(feed, j->plan));
    for (int64_t done = 0;; done += count) {
        QN_TRY(qn_feed_next(&count, feed));
        if (count == 0)
            break;
        QN_TRY(tell(j, j->workers, qn_session_run(session, feed->tensors, feed->n_in)));
        QN_TRY(qn_infer_outputs_take(&j->outputs, session, count));
        qn_progress(feed->ctx, "samples", done + count, samples);
    }
    return QN_OK;
}

/* ---- Runs side by side ----------------------------------------------------------------------- */

static qn_status run_one(void *user, int slot, int64_t run)
{
    job *j = user;
    const worker *w = &j->workers[slot];
    const qn_sample_source *source = &j->samples.source;
    const qn_tensor *inputs = NULL;
    QN_TRY(source->read(source->user, w->ctx, slot, run, &inputs));
    return qn_session_run(w->session, inputs, j->feed.n_in);
}

static qn_context *context_of(void *user, int slot)
{
    return ((job *)user)->workers[slot].ctx;
}

static qn_status finish_one(void *user, int slot, int64_t run)
{
    job *j = user;
    const qn_feed *feed = &j->feed;
    QN_TRY(qn_infer_outputs_take(&j->outputs, j->workers[slot].session, qn_feed_count(feed, run)));
    if (slot == 0) /* the caller's own thread */
        qn_progress(feed->ctx, "samples", QN_MIN((run + 1) * feed->batch, feed->samples),
                    feed->samples);
    return QN_OK;
}

static qn_status run_side_by_side(job *j)
{
    QN_TRY(qn_feed_source_open(&j->samples, &j->feed, j->plan, j->n_workers));
    const qn_pool_work work = {.user = j,
                               .count = j->samples.source.count,
                               .threads = j->n_workers,
                               .openmp = true,
                               .ordered = true,
                               .context = context_of,
                               .run = run_one,
                               .finish = finish_one};
    QN_TRY(qn_pool_run(j->feed.ctx, &work));
    qn_progress(j->feed.ctx, "samples", j->feed.samples, j->feed.samples);
    return QN_OK;
}

/* ---- The job --------------------------------------------------------------------------------- */

static qn_status run_all(job *j)
{
    const bool alone = j->n_workers == 1;
    const bool pinned = alone && qn_threads_pin(j->plan->threads);
    const double start = qn_clock_ms();
    const qn_status status = alone ? run_in_turn(j) : run_side_by_side(j);
    j->run_ms = qn_clock_ms() - start;
    if (pinned)
        qn_threads_unpin(j->plan->threads);
    QN_TRY(status);
    /* From here on names appear: the last moment to turn back. */
    QN_TRY(qn_check_cancel(j->feed.ctx));
    return qn_infer_outputs_commit(&j->outputs);
}

static qn_status fill_report(qn_report *report, const job *j)
{
    qn_item *root = &report->root;
    if (j->feed.samples >= 0)
        qn_item_int(root, "samples", j->feed.samples);
    qn_item_real(root, "plan_ms", j->plan_ms, 3);
    qn_item_real(root, "run_ms", j->run_ms, 3);
    qn_infer_outputs_report(root, &j->outputs);
    return qn_report_finish(report);
}

static qn_status run_job(qn_report *report, job *j, const qn_infer_options *options,
                         qn_data_options *data)
{
    const double start = qn_clock_ms();
    QN_TRY(make_plan(j, &options->plan));
    QN_TRY(make_workers(j));
    j->plan_ms = qn_clock_ms() - start;
    if (j->n_workers > 1)
        data->loaders = -1; /* they read themselves */
    QN_TRY(qn_infer_outputs_init(&j->outputs, &j->feed, options->output_dir));
    QN_TRY(run_all(j));
    return fill_report(report, j);
}

qn_status qn_infer_files(qn_report **out, qn_context *ctx, qn_model *model,
                         const qn_infer_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_infer_options, taken, ctx, options);
    const qn_infer_options *o = &taken;
    qn_data_options data = o->data;
    const qn_feed_options feed = {.inputs = o->inputs,
                                  .n_inputs = o->n_inputs,
                                  .data = &data,
                                  .seed = o->seed,
                                  .graph = &o->plan.graph};
    job j = {.plan = NULL};
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    qn_status status = qn_feed_open(&j.feed, ctx, model, &feed);
    if (status == QN_OK)
        status = run_job(report, &j, o, &data);
    qn_infer_outputs_discard(&j.outputs);
    free_workers(&j);
    qn_plan_free(j.plan);
    qn_feed_close(&j.feed);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
