/* The batch runner: sessions of one thread side by side, and one session of all threads for what is
 * left over. */
#include "calib/batch_runner.h"

#include "base/pool.h"
#include "calib/sampler.h"

typedef struct lane {
    qn_batch_runner *runner;
    int slot;
    qn_sampler sampler;
    qn_tensor *inputs;
    bool opened;
} lane;

struct qn_batch_runner {
    qn_context *ctx;
    qn_batch_runner_options options;
    int n_lanes;
    /* One-thread sessions; the first belongs to the caller's thread. */
    lane *at;
    /* The session of all threads, whose samples the others' threads help to count. */
    lane all_threads;
    qn_sampler **helpers;
    qn_plan *one_thread_plan, *all_threads_plan;
    qn_stats *total;
};

/* ---- A piece --------------------------------------------------------------------------------- */

static qn_status open_lane(lane *l, qn_plan *plan)
{
    if (l->opened)
        return QN_OK;
    l->opened = true;
    l->inputs = qn_alloc_zero(l->sampler.ctx, l->runner->options.n_inputs + 1, sizeof *l->inputs);
    QN_TRY_ALLOC(l->sampler.ctx, l->inputs);
    return qn_sampler_open(&l->sampler, plan);
}

static qn_status run_piece(lane *l, qn_plan *plan, const qn_batch_pieces *pieces, int64_t piece)
{
    const qn_batch_runner_options *o = &l->runner->options;
    qn_sampler *s = &l->sampler;
    QN_TRY(open_lane(l, plan));
    QN_TRY(pieces->read_inputs(pieces->user, s->ctx, l->slot, piece, l->inputs));
    if (o->collect && !pieces->outputs_only)
        QN_TRY(qn_sampler_run(s, l->inputs, o->n_inputs));
    else
        QN_TRY(qn_session_run(s->session, l->inputs, o->n_inputs));
    return pieces->on_outputs(pieces->user, s->ctx, piece, s->session);
}

/* ---- A batch --------------------------------------------------------------------------------- */

/* Pieces that a call runs. */
typedef struct batch {
    qn_batch_runner *runner;
    const qn_batch_pieces *pieces;
} batch;

static qn_context *context_of(void *user, int slot)
{
    return ((batch *)user)->runner->at[slot].sampler.ctx;
}

static qn_status run_one_piece(void *user, int slot, int64_t piece)
{
    const batch *b = user;
    return run_piece(&b->runner->at[slot], b->runner->one_thread_plan, b->pieces, piece);
}

static qn_status run_all_threads(qn_batch_runner *runner, const qn_batch_pieces *pieces,
                                 int64_t piece)
{
    const qn_batch_runner_options *o = &runner->options;
    if (!runner->all_threads_plan)
        QN_TRY(o->plan(o->user, &runner->all_threads_plan, runner->n_lanes));
    const qn_status status =
        run_piece(&runner->all_threads, runner->all_threads_plan, pieces, piece);
    return status == QN_OK ? QN_OK
                           : qn_fail(runner->ctx, status, "%s",
                                     qn_context_error(runner->all_threads.sampler.ctx));
}

static qn_status run_side_by_side(qn_batch_runner *runner, const qn_batch_pieces *pieces)
{
    const qn_batch_runner_options *o = &runner->options;
    if (!runner->one_thread_plan)
        QN_TRY(o->plan(o->user, &runner->one_thread_plan, 1));
    batch b = {runner, pieces};
    const qn_pool_work work = {.user = &b,
                               .count = pieces->count,
                               .threads = runner->n_lanes,
                               .openmp = true,
                               .context = context_of,
                               .run = run_one_piece};
    return qn_pool_run(runner->ctx, &work);
}

/* Side by side, but for one that would be left over: all threads do that. */
qn_status qn_batch_runner_run(qn_batch_runner *runner, const qn_batch_pieces *pieces)
{
    const bool one_left = runner->n_lanes > 1 && pieces->count % runner->n_lanes == 1;
    qn_batch_pieces abreast = *pieces;
    abreast.count -= one_left;
    QN_TRY(qn_check_cancel(runner->ctx));
    if (abreast.count > 0)
        QN_TRY(run_side_by_side(runner, &abreast));
    return one_left ? run_all_threads(runner, pieces, abreast.count) : QN_OK;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

static qn_status gather(qn_batch_runner *runner, lane *l)
{
    if (!l->sampler.part)
        return QN_OK;
    QN_TRY(qn_stats_add(runner->total, l->sampler.part));
    qn_sampler_drop(&l->sampler);
    return QN_OK;
}

void qn_batch_runner_restore(qn_batch_runner *runner, qn_stats *total)
{
    qn_stats_free(runner->total);
    runner->total = total;
}

qn_status qn_batch_runner_stats(qn_stats **out, qn_batch_runner *runner)
{
    *out = NULL;
    if (!runner->total) {
        QN_TRY(qn_stats_create(&runner->total, runner->ctx));
        runner->total->model = runner->options.model;
    }
    for (int i = 0; i < runner->n_lanes; i++)
        QN_TRY(gather(runner, &runner->at[i]));
    QN_TRY(gather(runner, &runner->all_threads));
    const qn_stats *total = runner->total;
    QN_TRY(qn_stats_merge(out, runner->ctx, &total, 1));
    qn_stats_sort(*out);
    return QN_OK;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static qn_status make_context(qn_context **out, const qn_batch_runner *runner)
{
    const qn_context_options alone = {QN_OPTIONS_VERSION, .threads = 1,
                                      .allocator = &runner->ctx->allocator};
    if (!runner->options.whole)
        return qn_context_create_child(out, runner->ctx);
    return qn_context_create(out, &alone) == QN_OK ? QN_OK : qn_fail_nomem(runner->ctx);
}

static qn_status init_lanes(qn_batch_runner *runner)
{
    qn_context *ctx = runner->ctx;
    runner->at = qn_alloc_zero(ctx, (size_t)runner->n_lanes, sizeof *runner->at);
    QN_TRY_ALLOC(ctx, runner->at);
    runner->helpers = qn_alloc_zero(ctx, (size_t)runner->n_lanes, sizeof *runner->helpers);
    QN_TRY_ALLOC(ctx, runner->helpers);
    runner->all_threads.runner = runner;
    runner->all_threads.sampler =
        (qn_sampler){.axis = runner->options.axis, .helpers = runner->helpers};
    QN_TRY(make_context(&runner->all_threads.sampler.ctx, runner));
    for (int i = 0; i < runner->n_lanes; i++) {
        runner->at[i].runner = runner;
        runner->at[i].slot = i;
        runner->at[i].sampler.axis = runner->options.axis;
        QN_TRY(make_context(&runner->at[i].sampler.ctx, runner));
        if (i > 0)
            runner->helpers[runner->all_threads.sampler.n_helpers++] = &runner->at[i].sampler;
    }
    return QN_OK;
}

qn_status qn_batch_runner_create(qn_batch_runner **out, qn_context *ctx,
                                 const qn_batch_runner_options *options)
{
    qn_batch_runner *runner = *out = qn_alloc_zero(ctx, 1, sizeof *runner);
    QN_TRY_ALLOC(ctx, runner);
    *runner = (qn_batch_runner){.ctx = ctx, .options = *options};
    runner->n_lanes = options->threads > 0 ? options->threads : ctx->threads;
    const qn_status status = init_lanes(runner);
    if (status != QN_OK) {
        qn_batch_runner_free(runner);
        *out = NULL;
    }
    return status;
}

static void close_lane(lane *l)
{
    qn_sampler_close(&l->sampler);
    if (l->sampler.ctx)
        qn_free(l->sampler.ctx, l->inputs);
    qn_context_free(l->sampler.ctx);
}

void qn_batch_runner_free(qn_batch_runner *runner)
{
    if (!runner)
        return;
    for (int i = 0; runner->at && i < runner->n_lanes; i++)
        close_lane(&runner->at[i]);
    close_lane(&runner->all_threads);
    qn_free(runner->ctx, runner->at);
    qn_free(runner->ctx, runner->helpers);
    qn_stats_free(runner->total);
    qn_plan_free(runner->one_thread_plan);
    qn_plan_free(runner->all_threads_plan);
    qn_free(runner->ctx, runner);
}
