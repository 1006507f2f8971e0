#include "calib/lanes.h"

#include <omp.h>
#include <pthread.h>
#include <string.h>

#include "calib/sampler.h"

typedef struct lane {
    qn_lanes *lanes;
    int slot;
    qn_sampler sampler;
    qn_tensor *inputs;
    bool opened;
} lane;

struct qn_lanes {
    qn_context *ctx;
    qn_lanes_options options;
    int n_lanes;
    lane *at;  /* of one thread; the first is the caller's */
    lane wide; /* of all threads: the caller's, whom those of the others help to count */
    qn_sampler **helpers;
    qn_plan *narrow_plan, *wide_plan;
    qn_stats *total;
    pthread_mutex_t lock; /* of all below */
    int64_t next;
    qn_status status; /* of the failed piece with the lowest number */
    int64_t failed;
    char message[QN_ERROR_SIZE];
};

/* ---- A piece ------------------------------------------------------------------------------------------------ */

static qn_status open_lane(lane *l, qn_plan *plan)
{
    if (l->opened)
        return QN_OK;
    l->opened = true;
    l->inputs = qn_alloc_zero(l->sampler.ctx, l->lanes->options.n_inputs + 1, sizeof *l->inputs);
    QN_TRY_ALLOC(l->sampler.ctx, l->inputs);
    return qn_sampler_open(&l->sampler, plan);
}

static qn_status run_piece(lane *l, qn_plan *plan, const qn_pieces *pieces, int64_t piece)
{
    const qn_lanes_options *o = &l->lanes->options;
    qn_sampler *s = &l->sampler;
    QN_TRY(open_lane(l, plan));
    QN_TRY(pieces->give(pieces->user, s->ctx, l->slot, piece, l->inputs));
    if (o->collect && !pieces->blind)
        QN_TRY(qn_sampler_run(s, l->inputs, o->n_inputs));
    else
        QN_TRY(qn_session_run(s->session, l->inputs, o->n_inputs));
    return pieces->take(pieces->user, s->ctx, piece, s->session);
}

/* ---- A batch ---------------------------------------------------------------------------------------------------- */

/* With the lock held. */
static void note_failure(lane *l, int64_t piece, qn_status status)
{
    qn_lanes *lanes = l->lanes;
    if (lanes->status != QN_OK && piece >= lanes->failed)
        return;
    lanes->status = status;
    lanes->failed = piece;
    memcpy(lanes->message, qn_context_error(l->sampler.ctx), sizeof lanes->message);
}

/* Until none is left to be begun. */
static void run_pieces(lane *l, const qn_pieces *pieces)
{
    qn_lanes *lanes = l->lanes;
    pthread_mutex_lock(&lanes->lock);
    while (lanes->status == QN_OK && lanes->next < pieces->count) {
        const int64_t piece = lanes->next++;
        pthread_mutex_unlock(&lanes->lock);
        const qn_status status = run_piece(l, lanes->narrow_plan, pieces, piece);
        pthread_mutex_lock(&lanes->lock);
        if (status != QN_OK)
            note_failure(l, piece, status);
    }
    pthread_mutex_unlock(&lanes->lock);
}

static qn_status run_wide(qn_lanes *lanes, const qn_pieces *pieces, int64_t piece)
{
    const qn_lanes_options *o = &lanes->options;
    if (!lanes->wide_plan)
        QN_TRY(o->plan(o->user, &lanes->wide_plan, lanes->n_lanes));
    const qn_status status = run_piece(&lanes->wide, lanes->wide_plan, pieces, piece);
    return status == QN_OK
               ? QN_OK
               : qn_fail(lanes->ctx, status, "%s", qn_context_error(lanes->wide.sampler.ctx));
}

static qn_status run_narrow(qn_lanes *lanes, const qn_pieces *pieces)
{
    const qn_lanes_options *o = &lanes->options;
    if (!lanes->narrow_plan)
        QN_TRY(o->plan(o->user, &lanes->narrow_plan, 1));
    lanes->next = 0;
    lanes->status = QN_OK;
    /* The threads are those that steps of many threads have: others would have to take turns with them. */
#pragma omp parallel num_threads(lanes->n_lanes) if (lanes->n_lanes > 1)
    run_pieces(&lanes->at[omp_get_thread_num()], pieces);
    return lanes->status == QN_OK ? QN_OK
                                  : qn_fail(lanes->ctx, lanes->status, "%s", lanes->message);
}

/* Side by side, but for one that would be left over: all threads do that. */
qn_status qn_lanes_run(qn_lanes *lanes, const qn_pieces *pieces)
{
    const bool one_left = lanes->n_lanes > 1 && pieces->count % lanes->n_lanes == 1;
    qn_pieces abreast = *pieces;
    abreast.count -= one_left;
    QN_TRY(qn_check_cancel(lanes->ctx));
    if (abreast.count > 0)
        QN_TRY(run_narrow(lanes, &abreast));
    return one_left ? run_wide(lanes, pieces, abreast.count) : QN_OK;
}

/* ---- Statistics --------------------------------------------------------------------------------------------------- */

static qn_status gather(qn_lanes *lanes, lane *l)
{
    if (!l->sampler.part)
        return QN_OK;
    QN_TRY(qn_stats_add(lanes->total, l->sampler.part));
    qn_sampler_drop(&l->sampler);
    return QN_OK;
}

void qn_lanes_restore(qn_lanes *lanes, qn_stats *total)
{
    qn_stats_free(lanes->total);
    lanes->total = total;
}

qn_status qn_lanes_stats(qn_stats **out, qn_lanes *lanes)
{
    *out = NULL;
    if (!lanes->total) {
        QN_TRY(qn_stats_create(&lanes->total, lanes->ctx));
        lanes->total->model = lanes->options.model;
    }
    for (int i = 0; i < lanes->n_lanes; i++)
        QN_TRY(gather(lanes, &lanes->at[i]));
    QN_TRY(gather(lanes, &lanes->wide));
    const qn_stats *total = lanes->total;
    QN_TRY(qn_stats_merge(out, lanes->ctx, &total, 1));
    qn_stats_sort(*out);
    return QN_OK;
}

/* ---- Making ----------------------------------------------------------------------------------------------------------- */

static qn_status make_context(qn_context **out, const qn_lanes *lanes)
{
    const qn_context_options alone = {.threads = 1, .allocator = &lanes->ctx->allocator};
    if (!lanes->options.whole)
        return qn_context_create_child(out, lanes->ctx);
    return qn_context_create(out, &alone) == QN_OK ? QN_OK : qn_fail_nomem(lanes->ctx);
}

static qn_status init_lanes(qn_lanes *lanes)
{
    qn_context *ctx = lanes->ctx;
    lanes->at = qn_alloc_zero(ctx, (size_t)lanes->n_lanes, sizeof *lanes->at);
    QN_TRY_ALLOC(ctx, lanes->at);
    lanes->helpers = qn_alloc_zero(ctx, (size_t)lanes->n_lanes, sizeof *lanes->helpers);
    QN_TRY_ALLOC(ctx, lanes->helpers);
    lanes->wide.lanes = lanes;
    lanes->wide.sampler = (qn_sampler){.axis = lanes->options.axis, .helpers = lanes->helpers};
    QN_TRY(make_context(&lanes->wide.sampler.ctx, lanes));
    for (int i = 0; i < lanes->n_lanes; i++) {
        lanes->at[i].lanes = lanes;
        lanes->at[i].slot = i;
        lanes->at[i].sampler.axis = lanes->options.axis;
        QN_TRY(make_context(&lanes->at[i].sampler.ctx, lanes));
        if (i > 0)
            lanes->helpers[lanes->wide.sampler.n_helpers++] = &lanes->at[i].sampler;
    }
    return QN_OK;
}

qn_status qn_lanes_create(qn_lanes **out, qn_context *ctx, const qn_lanes_options *options)
{
    qn_lanes *lanes = *out = qn_alloc_zero(ctx, 1, sizeof *lanes);
    QN_TRY_ALLOC(ctx, lanes);
    *lanes = (qn_lanes){.ctx = ctx, .options = *options};
    lanes->n_lanes = options->threads > 0 ? options->threads : ctx->threads;
    pthread_mutex_init(&lanes->lock, NULL);
    const qn_status status = init_lanes(lanes);
    if (status != QN_OK) {
        qn_lanes_free(lanes);
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

void qn_lanes_free(qn_lanes *lanes)
{
    if (!lanes)
        return;
    for (int i = 0; lanes->at && i < lanes->n_lanes; i++)
        close_lane(&lanes->at[i]);
    close_lane(&lanes->wide);
    qn_free(lanes->ctx, lanes->at);
    qn_free(lanes->ctx, lanes->helpers);
    qn_stats_free(lanes->total);
    qn_plan_free(lanes->narrow_plan);
    qn_plan_free(lanes->wide_plan);
    pthread_mutex_destroy(&lanes->lock);
    qn_free(lanes->ctx, lanes);
}
