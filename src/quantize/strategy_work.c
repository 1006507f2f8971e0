/* Strategies made and measured. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ops/clone.h"
#include "quantize/strategies.h"

/* ---- A strategy ---------------------------------------------------------------------------------------------------------------------- */

void qn_made_drop(qn_strategies *r, qn_made_model *m)
{
    qn_quantizer_free(m->quantizer);
    qn_model_free(m->quantized);
    qn_text_free(r->ctx, m->scale_text);
    *m = (qn_made_model){.quantized = NULL};
}

static qn_made_model take_made(qn_quantize_job *j)
{
    qn_made_model m = {.quantized = j->quantized,
                       .quantizer = j->quantizer,
                       .scale_text = j->scale_text,
                       .mended = j->mended,
                       .unchecked = j->unchecked,
                       .params = j->params};
    memcpy(m.proof, j->proof, sizeof m.proof);
    j->quantized = NULL;
    j->quantizer = NULL;
    j->scale_text = NULL;
    return m;
}

void qn_made_give(qn_quantize_job *j, qn_made_model *m)
{
    j->quantized = m->quantized;
    j->quantizer = m->quantizer;
    j->scale_text = m->scale_text;
    j->mended = m->mended;
    j->unchecked = m->unchecked;
    j->params = m->params;
    memcpy(j->proof, m->proof, sizeof m->proof);
    *m = (qn_made_model){.quantized = NULL};
}

qn_quantized_file qn_strategies_file(const qn_strategies *r, const char *path)
{
    return (qn_quantized_file){.ctx = r->ctx,
                               .path = path,
                               .form = r->o->file.form,
                               .asked = r->o->file.opset,
                               .batch = r->o->file.batch,
                               .settings = &r->j.settings,
                               .original = r->model->path};
}

static qn_status make_model(qn_strategies *r, qn_strategy *s)
{
    qn_quantized_file file = qn_strategies_file(r, s->path);
    r->own = r->base;
    r->own.method = s->method;
    r->own.better = qn_quantized_save;
    r->own.better_user = &file;
    r->j.options = &r->own;
    if (!r->plain) {
        r->j.stats = r->pass.stats[s->pass];
        QN_TRY(qn_job_settle(&r->j));
        QN_TRY(qn_job_rules(&r->j)); /* the strategy before took its quantizer along */
    }
    const qn_status reached = qn_job_decide(&r->report->root, &r->j);
    if (reached != QN_OK && reached != QN_E_GOAL)
        return reached;
    if (r->count < 2)
        return reached;
    QN_TRY(qn_folder_make(r->ctx, s->folder));
    return qn_quantized_save(&file, r->j.quantized);
}

static qn_status measure(qn_strategies *r, qn_strategy *s)
{
    const qn_data_pass_options pull = qn_strategies_data_pass(r);
    const qn_executor_options options =
        qn_strategies_executor(r, QN_EXECUTE_QUANTIZED, r->j.quantized);
    QN_TRY(qn_strategies_read_data(r)
               ? qn_data_pass_model(&s->metric, &s->error, r->j.quantized, &pull)
               : qn_execute_function(&s->metric, &s->error, r->ctx, &options));
    const double real = r->pass.kept.metric;
    if (isnan(real) || isnan(s->metric) ||
        real == 0) /* nothing that the loss could be a share of */
        s->loss = 100 * s->error;
    else
        s->loss = s->metric == real ? 0 : 100 * fabs(s->metric - real) / fabs(real);
    return QN_OK;
}

static double worth(double x)
{
    return isnan(x) ? INFINITY : x;
}

int qn_strategy_compare(const qn_strategy *a, const qn_strategy *b)
{
    if (a->status != b->status && (a->status == QN_OK || b->status == QN_OK))
        return a->status == QN_OK ? -1 : 1;
    if (worth(a->loss) != worth(b->loss))
        return worth(a->loss) < worth(b->loss) ? -1 : 1;
    if (worth(a->error) != worth(b->error))
        return worth(a->error) < worth(b->error) ? -1 : 1;
    return (a > b) - (a < b);
}

static void tell_end(const qn_strategies *r, const qn_strategy *s)
{
    char words[256];
    if (s->status == QN_OK)
        snprintf(words, sizeof words, "loss %.4f %%, tensor error %.6f", s->loss, s->error);
    else
        snprintf(words, sizeof words, "Fail");
    if (r->count > 1)
        qn_log(r->ctx, QN_LOG_NOTE, "%s: done, %s", s->name, words);
}

/* A strategy that fails leaves the others alone, unless nobody wants to go on. */
static qn_status try_strategy(qn_strategies *r, qn_strategy *s)
{
    if (r->count > 1)
        qn_log(r->ctx, QN_LOG_NOTE, "%s: begun", s->name);
    s->status = make_model(r, s);
    if (s->status == QN_OK && !r->plain)
        s->status = measure(r, s);
    if (s->status == QN_E_CANCELLED || s->status == QN_E_NOMEM)
        return s->status;
    if (s->status != QN_OK)
        memcpy(s->why, qn_context_error(r->ctx), sizeof s->why);
    tell_end(r, s);
    qn_made_model made = take_made(&r->j);
    if ((s->status == QN_OK || s->status == QN_E_GOAL) &&
        (!r->best || qn_strategy_compare(s, r->best) < 0)) {
        qn_made_drop(r, &r->kept);
        r->kept = made;
        r->best = s;
    } else {
        qn_made_drop(r, &made);
    }
    return QN_OK;
}

/* ---- Side by side ------------------------------------------------------------------------------------------------------------------- */

/* Making a model is work for one thread mostly, and so is running it with one sample after the other: with data each
 * strategy is one thread's from its beginning to its end. */
typedef struct crew {
    qn_strategies *r;
    pthread_mutex_t lock; /* of what follows, of the log, and of the strategies' list */
    size_t next;
    qn_status status; /* that ends everything */
} crew;

typedef struct side {
    crew *all;
    qn_strategies r; /* with a context and a job of its own */
    pthread_t thread;
    bool started;
} side;

static qn_status open_side(side *w, crew *all, int slot)
{
    const qn_strategies *r = all->r;
    *w = (side){.all = all, .r = *r};
    w->r.slot = slot;
    w->r.ctx = NULL;
    w->r.j = (qn_quantize_job){.calibration = r->j.calibration, .mix = r->j.mix};
    w->r.j.calibration.real = NULL;
    w->r.j.calibration.workers = 1; /* it has one slot for what it reads */
    QN_TRY(qn_context_create_child(&w->r.ctx, r->ctx));
    w->r.j.ctx = w->r.j.calibration.ctx = w->r.pass.kept.ctx = w->r.ctx;
    qn_arena_init(&w->r.j.arena, &r->ctx->allocator);
    const qn_status status =
        qn_model_clone(&w->r.j.calibration.real, w->r.ctx, r->j.calibration.real);
    return status == QN_OK ? QN_OK : qn_fail_nomem(r->ctx);
}

static void close_side(side *w)
{
    if (!w->r.ctx)
        return;
    qn_model_free(w->r.j.calibration.real);
    qn_arena_free(&w->r.j.arena);
    qn_context_free(w->r.ctx);
}

static void work_through(side *w, qn_strategy *s)
{
    s->status = make_model(&w->r, s);
    if (s->status == QN_OK)
        s->status = measure(&w->r, s);
    if (s->status != QN_OK)
        memcpy(s->why, qn_context_error(w->r.ctx), sizeof s->why);
    qn_made_model made = take_made(&w->r.j);
    qn_made_drop(&w->r, &made);
}

static void *side_main(void *user)
{
    side *w = user;
    crew *all = w->all;
    pthread_mutex_lock(&all->lock);
    while (all->status == QN_OK && all->next < all->r->count) {
        qn_strategy *s = &all->r->at[all->next++];
        qn_log(all->r->ctx, QN_LOG_NOTE, "%s: begun", s->name);
        pthread_mutex_unlock(&all->lock);
        work_through(w, s);
        pthread_mutex_lock(&all->lock);
        if (s->status == QN_E_CANCELLED || s->status == QN_E_NOMEM)
            all->status = qn_fail(all->r->ctx, s->status, "%s", s->why);
        else
            tell_end(all->r, s);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* The best is made once more, for those who look into it. */
static qn_status take_best(qn_strategies *r)
{
    qn_strategy *best = NULL;
    for (size_t i = 0; i < r->count; i++) {
        qn_strategy *s = &r->at[i];
        if (s->status == QN_OK && (!best || qn_strategy_compare(s, best) < 0))
            best = s;
    }
    if (!best)
        return QN_OK;
    QN_TRY(make_model(r, best));
    r->kept = take_made(&r->j);
    r->best = best;
    return QN_OK;
}

static qn_status run_side_by_side(qn_strategies *r, int threads)
{
    crew all = {.r = r};
    side *sides = qn_alloc_zero(r->ctx, (size_t)threads, sizeof *sides);
    QN_TRY_ALLOC(r->ctx, sides);
    pthread_mutex_init(&all.lock, NULL);
    qn_status status = QN_OK;
    for (int i = 0; i < threads && status == QN_OK; i++)
        status = open_side(&sides[i], &all, i);
    all.status = status;
    for (int i = 1; i < threads && status == QN_OK; i++)
        sides[i].started = pthread_create(&sides[i].thread, NULL, side_main, &sides[i]) == 0;
    if (status == QN_OK)
        (void)side_main(&sides[0]);
    for (int i = 0; i < threads; i++) {
        if (sides[i].started)
            pthread_join(sides[i].thread, NULL);
        close_side(&sides[i]);
    }
    pthread_mutex_destroy(&all.lock);
    qn_free(r->ctx, sides);
    QN_TRY(all.status);
    return take_best(r);
}

static qn_status run_one_by_one(qn_strategies *r)
{
    for (size_t i = 0; i < r->count; i++) {
        QN_TRY(qn_check_cancel(r->ctx));
        QN_TRY(try_strategy(r, &r->at[i]));
    }
    return QN_OK;
}

/* Whether a model is run while it is made: that takes the samples for itself, and may write to the report. */
static bool runs_early(const qn_strategies *r)
{
    const qn_quantize_options *o = &r->base;
    const bool mends = !o->method && !o->bits && !r->j.mix;
    return mends || o->fix_worst || o->prove;
}

qn_status qn_strategies_try(qn_strategies *r)
{
    const int threads = (int)QN_MIN((size_t)r->j.calibration.workers, r->count);
    const bool side_by_side =
        qn_strategies_read_data(r) && !r->plain && threads > 1 && !runs_early(r);
    return side_by_side ? run_side_by_side(r, threads) : run_one_by_one(r);
}
