/* Strategies made and measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "quantize/strategies.h"

/* Who makes strategies: the caller's thread, or one of several side by side. */
typedef struct worker {
    qn_strategies *r;
    qn_context *ctx;
    /* It has the strings of settings. */
    qn_arena *arena;
    /* The threads, and the slot of the data's source */
    int threads, slot;
} worker;

/* ---- A strategy ------------------------------------------------------------------------------ */

qn_quantized_file qn_strategies_file(const qn_strategies *r, const char *path,
                                     const qn_quant_settings *settings)
{
    return (qn_quantized_file){.ctx = r->ctx,
                               .path = path,
                               .form = r->o->file.form,
                               .asked = r->o->file.opset,
                               .batch = r->o->file.batch,
                               .settings = settings,
                               .original = r->model->path};
}

qn_quantize_input qn_strategies_input(const qn_strategies *r, const qn_strategy *s,
                                      qn_quantize_options *own)
{
    qn_quantize_input input = r->job.input;
    *own = r->base;
    own->method = s->method;
    input.options = own;
    input.stats = r->pass.stats[s->pass];
    return input;
}

/* The first strategy takes the rules that the job has applied; who works side by side applies
 * them. */
static qn_status decide(qn_quantize_result *out, const worker *w, const qn_quantize_input *input,
                        const qn_quantize_settings *settings)
{
    qn_strategies *r = w->r;
    qn_quantized_model *ruled = w->ctx == r->ctx ? &r->job.ruled : NULL;
    qn_search search;
    qn_status status = qn_search_open(&search, input, settings, ruled, &r->pass.baseline);
    search.arena = w->arena;
    search.report = &r->report->root;
    if (status == QN_OK)
        status = qn_quantize_decide(out, &search);
    qn_search_close(&search);
    return status;
}

/* "8/16": the widths that nodes have; the standard one where none is an integer. */
static void list_widths(char *out, size_t size, const qn_quantizer *q)
{
    size_t at = 0;
    for (int w = 0; w < QN_WIDTHS; w++) {
        bool any = false;
        for (size_t i = 0; i < q->n_nodes && !any; i++)
            any = q->nodes[i].integer && q->nodes[i].bits == qn_widths[w].bits;
        if (any && at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%d", at ? "/" : "", qn_widths[w].bits);
    }
    if (!at)
        snprintf(out, size, "%d", QN_WIDTH_STANDARD);
}

/* What was done, which may not be what would have been done if it had been good enough. */
static void describe(qn_strategy *s, const qn_quantized_model *made)
{
    if (!made->settings.rules.mix)
        s->mode = made->settings.params.method->name;
    list_widths(s->bits, sizeof s->bits, made->quantizer);
}

static qn_status save_scales(const worker *w, const qn_strategy *s, const qn_quantized_model *made)
{
    char *path = NULL;
    qn_output_file *scales;
    if (!w->r->base.save_scales)
        return QN_OK;
    QN_TRY(qn_folder_file(&path, w->arena, w->r->model, s->folder, "_scales.json"));
    QN_TRY(qn_quantized_model_write_scales(&scales, made, path));
    return scales ? qn_output_commit(scales) : QN_OK;
}

static qn_status make_model(qn_quantize_result *out, const worker *w, qn_strategy *s)
{
    qn_strategies *r = w->r;
    qn_quantize_options own;
    qn_quantize_settings settings;
    qn_quantize_input input = qn_strategies_input(r, s, &own);
    input.ctx = w->ctx;
    QN_TRY(qn_quantize_settings_init(&settings, &input));
    qn_quantized_file file = qn_strategies_file(r, s->path, &settings.rules);
    file.ctx = w->ctx;
    if (r->folder) {
        own.better = qn_quantized_save;
        own.better_user = &file;
    }
    const qn_status reached = decide(out, w, &input, &settings);
    if (reached == QN_OK || reached == QN_E_GOAL)
        describe(s, &out->made);
    if (r->count < 2 || reached != QN_OK)
        return reached;
    QN_TRY(qn_folder_make(w->ctx, s->folder));
    QN_TRY(save_scales(w, s, &out->made));
    return qn_quantized_save(&file, out->made.model);
}

/* All strategies are measured on the forwards that the first of them had before it was stopped, and
 * the float model's metric on these is the one that counts. */
static qn_status choose_forwards(qn_strategies *r, int64_t forwards)
{
    qn_executor_options again = qn_strategies_executor(r, QN_EXECUTE_AGAIN, r->job.data.real);
    int64_t seen = 0;
    double metric = NAN;
    r->compared = (qn_compared_forwards){forwards, r->pass.baseline.metric};
    if (forwards == r->pass.baseline.forwards || isnan(r->compared.metric))
        return QN_OK;
    again.baseline = NULL;
    again.stop_after = forwards;
    again.forwards = &seen;
    QN_TRY(qn_execute_function(&metric, NULL, r->ctx, &again));
    r->compared.metric = seen == forwards ? metric : NAN;
    return QN_OK;
}

/* Where metrics are of other samples they say nothing beside each other. */
static void tell_forwards(const qn_strategies *r, const qn_strategy *s)
{
    if (!isnan(r->pass.baseline.metric) && !isnan(s->metric) &&
        (isnan(r->compared.metric) || s->forwards != r->compared.count))
        qn_log(r->ctx, QN_LOG_NOTE,
               "infer function '%s' stopped after %lld of %lld forwards, which the float model "
               "cannot be measured on: the loss is the error of the outputs",
               r->function.name ? r->function.name : "", (long long)s->forwards,
               (long long)r->pass.baseline.forwards);
}

static qn_status run_function(qn_strategy *s, const worker *w, qn_model *model)
{
    qn_strategies *r = w->r;
    qn_executor_options options = qn_strategies_executor(r, QN_EXECUTE_QUANTIZED, model);
    options.stop_after =
        r->compared.count == r->pass.baseline.forwards ? INT64_MAX : r->compared.count;
    options.forwards = &s->forwards;
    if (!r->pass.baseline.forwards) { /* no float pass */
        options.baseline = NULL;
        options.stop_after = INT64_MAX;
    }
    QN_TRY(qn_execute_function(&s->metric, &s->error, w->ctx, &options));
    if (!r->compared.count)
        QN_TRY(choose_forwards(r, s->forwards));
    tell_forwards(r, s);
    return QN_OK;
}

static void find_loss(qn_strategy *s, double real)
{
    if (isnan(real) || isnan(s->metric) ||
        real == 0) { /* nothing that the loss could be a share of */
        s->loss = 100 * s->error;
        return;
    }
    s->change = s->metric == real ? 0 : 100 * (s->metric - real) / fabs(real);
    s->loss = fabs(s->change);
}

static qn_status measure(qn_strategy *s, const worker *w, const qn_quantize_result *result)
{
    qn_strategies *r = w->r;
    qn_model *model = result->made.model;
    qn_data_pass_options pass = qn_strategies_data_pass(r);
    pass.ctx = w->ctx;
    pass.threads = w->threads;
    pass.slot = w->slot;
    if (!qn_strategies_read_data(r)) {
        QN_TRY(run_function(s, w, model));
        find_loss(s, s->forwards == r->compared.count ? r->compared.metric : NAN);
        return QN_OK;
    }
    QN_TRY(qn_data_pass_model(&s->metric, &s->error, model, &pass));
    find_loss(s, r->pass.baseline.metric);
    return QN_OK;
}

static double worth(double x)
{
    return isnan(x) ? INFINITY : x;
}

/* What is gained is no loss. */
static double loss_of(const qn_strategy *s)
{
    return s->change > 0 ? 0 : worth(s->loss);
}

int qn_strategy_compare(const qn_strategy *a, const qn_strategy *b)
{
    if (a->status != b->status && (a->status == QN_OK || b->status == QN_OK))
        return a->status == QN_OK ? -1 : 1;
    if (loss_of(a) != loss_of(b))
        return loss_of(a) < loss_of(b) ? -1 : 1;
    if (worth(a->error) != worth(b->error))
        return worth(a->error) < worth(b->error) ? -1 : 1;
    return (a > b) - (a < b);
}

static void log_end(const qn_strategies *r, const qn_strategy *s)
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
static qn_status try_strategy(const worker *w, qn_strategy *s)
{
    qn_strategies *r = w->r;
    qn_quantize_result result = {.noise = 0};
    if (r->count > 1)
        qn_log(r->ctx, QN_LOG_NOTE, "%s: begun", s->name);
    s->status = make_model(&result, w, s);
    if (s->status == QN_OK && r->judged)
        s->status = measure(s, w, &result);
    if (s->status != QN_OK)
        memcpy(s->why, qn_context_error(r->ctx), sizeof s->why);
    if (s->status != QN_E_CANCELLED && s->status != QN_E_NOMEM)
        log_end(r, s);
    if ((s->status == QN_OK || s->status == QN_E_GOAL) &&
        (!r->best || qn_strategy_compare(s, r->best) < 0)) {
        qn_quantize_result_move(&r->result, &result);
        r->best = s;
    }
    qn_quantize_result_free(&result);
    return s->status == QN_E_CANCELLED || s->status == QN_E_NOMEM ? s->status : QN_OK;
}

/* ---- Side by side ---------------------------------------------------------------------------- */

/* Making a model is work for one thread mostly, and so is running it with one sample after the
 * other: with data each strategy is one thread's from its beginning to its end. */
typedef struct side {
    /* It has a context of its own */
    worker worker;
    qn_arena arena;
} side;

typedef struct crew {
    qn_strategies *r;
    side *sides;
} crew;

static qn_status open_side(side *w, qn_strategies *r, int slot)
{
    *w = (side){.worker = {.r = r, .threads = 1, .slot = slot}};
    qn_arena_init(&w->arena, &r->ctx->allocator);
    w->worker.arena = &w->arena;
    return qn_context_create_child(&w->worker.ctx, r->ctx);
}

static void close_side(side *w)
{
    if (!w->worker.ctx)
        return;
    qn_arena_free(&w->arena);
    qn_context_free(w->worker.ctx);
}

static void work_through(const worker *w, qn_strategy *s)
{
    qn_quantize_result result = {.noise = 0};
    s->status = make_model(&result, w, s);
    if (s->status == QN_OK)
        s->status = measure(s, w, &result);
    if (s->status != QN_OK)
        memcpy(s->why, qn_context_error(w->ctx), sizeof s->why);
    qn_quantize_result_free(&result);
}

static qn_context *context_of(void *user, int slot)
{
    return ((crew *)user)->sides[slot].worker.ctx;
}

static void note_begin(void *user, int slot, int64_t item)
{
    const qn_strategies *r = ((crew *)user)->r;
    (void)slot;
    qn_log(r->ctx, QN_LOG_NOTE, "%s: begun", r->at[item].name);
}

/* A strategy that fails leaves the others alone, unless nobody wants to go on. */
static qn_status try_aside(void *user, int slot, int64_t item)
{
    crew *all = user;
    qn_strategy *s = &all->r->at[item];
    work_through(&all->sides[slot].worker, s);
    return s->status == QN_E_CANCELLED || s->status == QN_E_NOMEM ? s->status : QN_OK;
}

static qn_status note_end(void *user, int slot, int64_t item)
{
    const qn_strategies *r = ((crew *)user)->r;
    (void)slot;
    log_end(r, &r->at[item]);
    return QN_OK;
}

/* The best is made once more, for those who look into it. */
static qn_status take_best(qn_strategies *r)
{
    const worker w = {.r = r, .ctx = r->ctx, .arena = &r->arena};
    qn_strategy *best = NULL;
    for (size_t i = 0; i < r->count; i++) {
        qn_strategy *s = &r->at[i];
        if (s->status == QN_OK && (!best || qn_strategy_compare(s, best) < 0))
            best = s;
    }
    if (!best)
        return QN_OK;
    QN_TRY(make_model(&r->result, &w, best));
    r->best = best;
    return QN_OK;
}

static qn_status run_side_by_side(qn_strategies *r, int threads)
{
    crew all = {.r = r, .sides = qn_alloc_zero(r->ctx, (size_t)threads, sizeof *all.sides)};
    QN_TRY_ALLOC(r->ctx, all.sides);
    const qn_pool_work work = {.user = &all,
                               .count = (int64_t)r->count,
                               .threads = threads,
                               .context = context_of,
                               .begin = note_begin,
                               .run = try_aside,
                               .finish = note_end};
    qn_status status = QN_OK;
    for (int i = 0; i < threads && status == QN_OK; i++)
        status = open_side(&all.sides[i], r, i);
    if (status == QN_OK)
        status = qn_pool_run(r->ctx, &work);
    for (int i = 0; i < threads; i++)
        close_side(&all.sides[i]);
    qn_free(r->ctx, all.sides);
    QN_TRY(status);
    return take_best(r);
}

static qn_status run_one_by_one(qn_strategies *r)
{
    const worker w = {.r = r, .ctx = r->ctx, .arena = &r->arena, .threads = r->job.data.workers};
    for (size_t i = 0; i < r->count; i++) {
        QN_TRY(qn_check_cancel(r->ctx));
        QN_TRY(try_strategy(&w, &r->at[i]));
    }
    return QN_OK;
}

/* Whether a model is run while it is made: that takes the samples for itself, and may write to the
 * report. */
static bool runs_early(const qn_strategies *r)
{
    const qn_quantize_options *o = &r->base;
    const bool mixes = !o->method && !o->bits && !r->job.mix;
    return mixes || o->fix_worst || o->prove;
}

qn_status qn_strategies_try(qn_strategies *r)
{
    const int threads = (int)QN_MIN((size_t)r->job.data.workers, r->count);
    const bool side_by_side =
        qn_strategies_read_data(r) && r->judged && threads > 1 && !runs_early(r);
    return side_by_side ? run_side_by_side(r, threads) : run_one_by_one(r);
}
