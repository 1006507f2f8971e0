/* qn_strategies_run: one float pass, then a quantized model for every method and number of iterations, the best of which
 * is the result. */
#include "api/strategies.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/pull.h"
#include "api/remember.h"
#include "api/save_dir.h"
#include "api/traces.h"
#include "ops/clone.h"
#include "pass/forms.h"

typedef struct strategy {
    const char *method; /* NULL: the best known */
    int64_t iteration;
    size_t pass; /* which of the statistics */
    const char *name, *folder, *path;
    qn_status status;
    char why[QN_ERROR_SIZE];
    double metric, error, loss;
} strategy;

/* A model that was made, out of the job's hands. */
typedef struct made_model {
    qn_model *quantized;
    qn_quantizer *quantizer;
    char *scale_text;
    bool mended, noisy, unchecked;
    qn_proof_row proof[QN_REFINEMENTS];
    qn_param_options params;
} made_model;

typedef struct run {
    qn_context *ctx;
    const qn_strategies_options *o;
    qn_model *model;
    qn_arena arena;
    const char *folder;
    qn_function function;
    const qn_function_row *row; /* NULL: not built in */
    qn_quantize_options base;   /* without method */
    qn_quantize_options own;    /* of the strategy at hand */
    qn_quantize_job j;
    qn_remember *samples; /* of data that several strategies read */
    qn_float_pass pass;
    qn_pass_key key;
    const char *cache; /* NULL: none */
    bool plain; /* one quantization with data, statistics or scales of files: the job does it all */
    strategy *at;
    size_t count;
    const strategy *best; /* so far */
    made_model kept;      /* of it */
    int slot;             /* of the data's source, of those who work side by side */
    qn_report *report;
} run;

static bool pulls(const run *r)
{
    return r->row && !r->row->run;
}

/* ---- What is asked for --------------------------------------------------------------------------------------------------- */

static int64_t batch_size(const run *r)
{
    return r->function.batch_size > 0 ? r->function.batch_size : 1;
}

static int64_t most_iterations(const run *r)
{
    int64_t most = 0;
    for (size_t i = 0; i < r->o->n_iterations; i++)
        most = QN_MAX(most, r->o->iterations[i]);
    return most;
}

static qn_status check_options(run *r)
{
    const qn_strategies_options *o = r->o;
    for (size_t i = 0; i < o->n_iterations; i++) {
        if (o->iterations[i] < 1)
            return qn_fail(r->ctx, QN_E_INVALID, "%lld iterations: it must be 1 or more",
                           (long long)o->iterations[i]);
    }
    const qn_quantize_options *q = &o->file.quantize;
    const bool several = o->n_methods * QN_MAX(o->n_iterations, 1) > 1 || o->n_iterations > 1;
    if (several && (q->scales || q->stats || q->dynamic || q->goal))
        return qn_fail(r->ctx, QN_E_INVALID,
                       "several methods or numbers of iterations do not go with %s",
                       q->scales    ? "a scale file"
                       : q->stats   ? "a file of statistics"
                       : q->dynamic ? "dynamic quantization"
                                    : "a goal");
    return QN_OK;
}

/* The options of every strategy, and the data that the largest number of iterations takes. */
static qn_status prepare(run *r)
{
    const qn_strategies_options *o = r->o;
    const bool has_data = o->file.quantize.calibrate.data.n_data > 0;
    r->function = o->function;
    QN_TRY(check_options(r));
    QN_TRY(qn_function_find(&r->row, r->ctx, &r->function, has_data));
    r->base = o->file.quantize;
    r->base.method = o->n_methods ? o->methods[0] : o->file.quantize.method;
    qn_data_options *data = &r->base.calibrate.data;
    if (r->row && r->row->random)
        data->data = NULL;
    if (r->row && r->row->random)
        data->n_data = 0;
    if (most_iterations(r))
        data->samples = most_iterations(r) * batch_size(r);
    return QN_OK;
}

static bool is_single(const run *r)
{
    return r->o->n_methods <= 1 && r->o->n_iterations <= 1;
}

/* ---- Strategies --------------------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Distinct numbers of iterations; of data, whose feed is open by now, counted in runs. */
static qn_status list_passes(run *r)
{
    const qn_strategies_options *o = r->o;
    qn_float_pass *pass = &r->pass;
    pass->after = qn_arena_array(&r->arena, o->n_iterations + 1, sizeof *pass->after);
    QN_TRY_ALLOC(r->ctx, pass->after);
    for (size_t i = 0; i < o->n_iterations; i++)
        pass->after[pass->n_after++] = o->iterations[i];
    if (pass->n_after == 0)
        pass->after[pass->n_after++] =
            pulls(r) && r->j.calibration.source ? r->j.calibration.source->count : 1;
    qsort(pass->after, pass->n_after, sizeof *pass->after, by_size);
    size_t distinct = 1;
    for (size_t i = 1; i < pass->n_after; i++) {
        if (pass->after[i] != pass->after[distinct - 1])
            pass->after[distinct++] = pass->after[i];
    }
    pass->n_after = distinct;
    pass->stats = qn_arena_array(&r->arena, distinct + 1, sizeof *pass->stats);
    QN_TRY_ALLOC(r->ctx, pass->stats);
    return QN_OK;
}

static qn_status name_strategy(run *r, strategy *s)
{
    char *path = NULL;
    s->name = qn_arena_format(&r->arena, "%s_%lld", s->method ? s->method : "auto",
                              (long long)s->iteration);
    QN_TRY_ALLOC(r->ctx, s->name);
    s->folder = r->folder;
    if (r->count > 1) {
        s->folder = qn_arena_format(&r->arena, "%s/%s", r->folder, s->name);
        QN_TRY_ALLOC(r->ctx, s->folder);
    }
    QN_TRY(qn_folder_file(&path, &r->arena, r->model, s->folder, "_quantize.onnx"));
    s->path = path;
    return QN_OK;
}

/* Every method with every number of iterations. */
static qn_status list_strategies(run *r)
{
    const size_t methods = QN_MAX(r->o->n_methods, 1);
    r->count = methods * r->pass.n_after;
    r->at = qn_arena_array(&r->arena, r->count, sizeof *r->at);
    QN_TRY_ALLOC(r->ctx, r->at);
    for (size_t i = 0; i < r->count; i++) {
        strategy *s = &r->at[i];
        *s = (strategy){.method =
                            r->o->n_methods ? r->o->methods[i / r->pass.n_after] : r->base.method,
                        .pass = i % r->pass.n_after,
                        .metric = NAN,
                        .error = NAN,
                        .loss = NAN};
        s->iteration = r->pass.after[s->pass];
        QN_TRY(name_strategy(r, s));
        for (size_t k = 0; k < i; k++) {
            if (strcmp(r->at[k].name, s->name) == 0)
                return qn_fail(r->ctx, QN_E_INVALID, "method '%s' is named twice", s->method);
        }
    }
    return QN_OK;
}

/* ---- Cache ------------------------------------------------------------------------------------------------------------------- */

static qn_status name_cache(run *r)
{
    struct stat there;
    const char *asked = r->o->cache, *folder = asked;
    if (!asked && r->count < 2)
        return QN_OK;
    if (!asked)
        folder = r->folder;
    const size_t length = strlen(folder);
    const bool slash = length && folder[length - 1] == '/';
    r->cache = asked;
    if (asked && !slash && (stat(asked, &there) != 0 || !S_ISDIR(there.st_mode)))
        return QN_OK;
    char *path = NULL;
    QN_TRY(qn_folder_make(r->ctx, folder));
    QN_TRY(qn_folder_file(&path, &r->arena, r->model, folder, "_distribution.cache"));
    r->cache = path;
    return QN_OK;
}

static qn_status print_data(run *r)
{
    const qn_calibrate_options *c = &r->base.calibrate;
    qn_fingerprint *print = &r->key.print[QN_PASS_DATA];
    for (size_t i = 0; i < c->data.n_data; i++) {
        const char *equal = strchr(c->data.data[i], '=');
        qn_fingerprint_text(print, c->data.data[i]);
        QN_TRY(qn_print_listing(print, r->ctx, equal ? equal + 1 : c->data.data[i]));
    }
    for (size_t i = 0; i < c->n_inputs; i++)
        QN_TRY(qn_print_listing(print, r->ctx, c->inputs[i]));
    if (r->function.dataset)
        QN_TRY(qn_print_listing(print, r->ctx, r->function.dataset));
    const char *const files[] = {c->data.list, c->data.labels};
    for (size_t i = 0; i < QN_COUNT_OF(files); i++)
        QN_TRY(qn_print_listing(print, r->ctx, files[i]));
    return QN_OK;
}

static qn_status make_key(run *r)
{
    const qn_data_options *data = &r->base.calibrate.data;
    qn_fingerprint *function = &r->key.print[QN_PASS_FUNCTION];
    qn_fingerprint *flags = &r->key.print[QN_PASS_FLAGS];
    r->key.print[QN_PASS_MODEL] = r->j.calibration.print;
    qn_fingerprint_text(function, r->function.name);
    qn_fingerprint_text(function, r->function.configs);
    if (r->function.script)
        QN_TRY(qn_print_contents(function, r->ctx, r->function.script));
    qn_fingerprint_int(flags, batch_size(r));
    qn_fingerprint_int(flags, data->first);
    qn_fingerprint_int(flags, data->samples);
    qn_fingerprint_int(flags, (int64_t)r->base.calibrate.seed);
    qn_fingerprint_int(flags, r->o->class_offset);
    qn_fingerprint_text(flags, data->preprocess);
    return print_data(r);
}

static qn_status start_pass(run *r)
{
    const qn_graph *graph = r->j.calibration.real->graph;
    for (size_t i = 0; i < r->pass.n_after; i++) {
        qn_stats_free(r->pass.stats[i]);
        r->pass.stats[i] = NULL;
    }
    qn_kept_free(&r->pass.kept);
    qn_kept_init(&r->pass.kept, r->ctx, graph->n_inputs, graph->n_outputs);
    r->pass.kept.most_samples = QN_MAX(QN_KEPT_SAMPLES, r->base.compared);
    return QN_OK;
}

/* A cache that nobody named is made anew where it is of something else. */
static qn_status load_cache(bool *found, run *r)
{
    *found = false;
    QN_TRY(start_pass(r));
    if (!r->cache)
        return QN_OK;
    QN_TRY(make_key(r));
    const qn_status status = qn_float_pass_load(found, &r->pass, r->ctx, &r->key, r->cache);
    if (status == QN_OK && *found)
        qn_log(r->ctx, QN_LOG_NOTE, "%s: the float model is not run again", r->cache);
    if (status == QN_OK || r->o->cache || status == QN_E_NOMEM)
        return status;
    qn_log(r->ctx, QN_LOG_NOTE, "%s: it is made anew", qn_context_error(r->ctx));
    *found = false;
    return start_pass(r);
}

/* ---- The float pass --------------------------------------------------------------------------------------------------------------- */

static qn_pull_options pull_options(run *r)
{
    return (qn_pull_options){.calibration = &r->j.calibration,
                             .labelled = r->base.calibrate.data.labels != NULL,
                             .class_offset = r->o->class_offset,
                             .kept = &r->pass.kept,
                             .slot = r->slot};
}

static qn_executor_options executor_options(run *r, qn_execute stage, qn_model *model)
{
    return (qn_executor_options){.stage = stage,
                                 .model = model,
                                 .graph = &r->j.calibration.graph,
                                 .function = &r->function,
                                 .iteration = r->pass.after[r->pass.n_after - 1],
                                 .save_dir = r->folder,
                                 .run_mode = r->o->run_mode ? r->o->run_mode : "quant",
                                 .quiet = r->count > 1,
                                 .threads = qn_calibration_workers(&r->j.calibration),
                                 .print = r->j.calibration.print,
                                 .kept = &r->pass.kept,
                                 .after = r->pass.after,
                                 .n_after = r->pass.n_after,
                                 .stats = r->pass.stats};
}

static qn_status pull_float(run *r)
{
    const qn_calibration *c = &r->j.calibration;
    const qn_pull_options pull = pull_options(r);
    int64_t *runs = qn_arena_array(&r->arena, r->pass.n_after, sizeof *runs);
    QN_TRY_ALLOC(r->ctx, runs);
    for (size_t i = 0; i < r->pass.n_after; i++) {
        const int64_t samples = r->pass.after[i] * batch_size(r), batch = c->feed.batch;
        runs[i] = r->o->n_iterations ? QN_MIN((samples + batch - 1) / batch, c->source->count)
                                     : c->source->count;
    }
    return qn_pull_float(r->pass.stats, &pull, runs, r->pass.n_after);
}

static qn_status run_float(run *r)
{
    double metric;
    bool found = false;
    QN_TRY(load_cache(&found, r));
    if (found)
        return QN_OK;
    qn_log(r->ctx, QN_LOG_NOTE, "float model: begun (%s)",
           r->function.name ? r->function.name : "data");
    const qn_executor_options options =
        executor_options(r, QN_EXECUTE_FLOAT, r->j.calibration.real);
    QN_TRY(pulls(r) ? pull_float(r) : qn_execute_function(&metric, NULL, r->ctx, &options));
    for (size_t i = 0; i < r->pass.n_after; i++)
        qn_stats_sort(r->pass.stats[i]);
    qn_log(r->ctx, QN_LOG_NOTE, "float model: done");
    return r->cache ? qn_float_pass_save(r->ctx, &r->pass, &r->key, r->cache) : QN_OK;
}

/* What was kept of a function's data serves all that measure later. */
static qn_status use_kept(run *r)
{
    qn_calibration *c = &r->j.calibration;
    const qn_kept *kept = &r->pass.kept;
    if (pulls(r) || !kept->n_samples)
        return QN_OK;
    qn_input_shape *shapes = qn_arena_array(&r->arena, kept->n_inputs + 1, sizeof *shapes);
    QN_TRY_ALLOC(r->ctx, shapes);
    for (size_t i = 0; i < kept->n_inputs; i++) {
        const qn_tensor *t = &kept->samples[i];
        shapes[i] = (qn_input_shape){.name = c->real->graph->inputs[i]->name, .rank = t->rank};
        memcpy(shapes[i].dims, t->dims, sizeof shapes[i].dims);
        if (t->rank > 0)
            shapes[i].dims[0] = -1; /* the function may give any batch that the model takes */
    }
    c->graph.shapes = shapes;
    c->graph.n_shapes = kept->n_inputs;
    c->fed = c->with_data = true;
    c->source = &kept->source;
    c->n_inputs = kept->n_inputs;
    return QN_OK;
}

/* ---- A strategy ---------------------------------------------------------------------------------------------------------------------- */

static void drop_made(run *r, made_model *m)
{
    qn_quantizer_free(m->quantizer);
    qn_model_free(m->quantized);
    qn_text_free(r->ctx, m->scale_text);
    *m = (made_model){.quantized = NULL};
}

static made_model take_made(qn_quantize_job *j)
{
    made_model m = {.quantized = j->quantized,
                    .quantizer = j->quantizer,
                    .scale_text = j->scale_text,
                    .mended = j->mended,
                    .noisy = j->noisy,
                    .unchecked = j->unchecked,
                    .params = j->params};
    memcpy(m.proof, j->proof, sizeof m.proof);
    j->quantized = NULL;
    j->quantizer = NULL;
    j->scale_text = NULL;
    return m;
}

static void give_made(qn_quantize_job *j, made_model *m)
{
    j->quantized = m->quantized;
    j->quantizer = m->quantizer;
    j->scale_text = m->scale_text;
    j->mended = m->mended;
    j->noisy = m->noisy;
    j->unchecked = m->unchecked;
    j->params = m->params;
    memcpy(j->proof, m->proof, sizeof m->proof);
    *m = (made_model){.quantized = NULL};
}

static qn_quantized_file file_of(const run *r, const char *path)
{
    return (qn_quantized_file){.ctx = r->ctx,
                               .path = path,
                               .form = r->o->file.form,
                               .asked = r->o->file.opset,
                               .batch = r->o->file.batch,
                               .original = r->model->path};
}

static qn_status make_model(run *r, strategy *s)
{
    qn_quantized_file file = file_of(r, s->path);
    r->own = r->base;
    r->own.method = s->method;
    r->own.better = qn_quantized_save;
    r->own.better_user = &file;
    r->j.options = &r->own;
    if (!r->plain) {
        r->j.stats = r->pass.stats[s->pass];
        QN_TRY(qn_job_settle(&r->j));
    }
    const qn_status reached = qn_job_decide(&r->report->root, &r->j);
    if (reached != QN_OK && reached != QN_E_GOAL)
        return reached;
    if (r->count < 2)
        return reached;
    QN_TRY(qn_folder_make(r->ctx, s->folder));
    return qn_quantized_save(&file, r->j.quantized);
}

static qn_status measure(run *r, strategy *s)
{
    const qn_pull_options pull = pull_options(r);
    const qn_executor_options options = executor_options(r, QN_EXECUTE_FIXED, r->j.quantized);
    QN_TRY(pulls(r) ? qn_pull_model(&s->metric, &s->error, r->j.quantized, &pull)
                    : qn_execute_function(&s->metric, &s->error, r->ctx, &options));
    const double real = r->pass.kept.metric;
    if (isnan(real) || isnan(s->metric))
        s->loss = 100 * s->error;
    else if (s->metric == real)
        s->loss = 0;
    else
        s->loss = real != 0 ? 100 * fabs(s->metric - real) / fabs(real) : INFINITY;
    return QN_OK;
}

static double worth(double x)
{
    return isnan(x) ? INFINITY : x;
}

/* Loss, then error, then the order they were asked for in. */
static int compare(const strategy *a, const strategy *b)
{
    if (a->status != b->status && (a->status == QN_OK || b->status == QN_OK))
        return a->status == QN_OK ? -1 : 1;
    if (worth(a->loss) != worth(b->loss))
        return worth(a->loss) < worth(b->loss) ? -1 : 1;
    if (worth(a->error) != worth(b->error))
        return worth(a->error) < worth(b->error) ? -1 : 1;
    return (a > b) - (a < b);
}

static void tell_end(const run *r, const strategy *s)
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
static qn_status try_strategy(run *r, strategy *s)
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
    made_model made = take_made(&r->j);
    if ((s->status == QN_OK || s->status == QN_E_GOAL) && (!r->best || compare(s, r->best) < 0)) {
        drop_made(r, &r->kept);
        r->kept = made;
        r->best = s;
    } else {
        drop_made(r, &made);
    }
    return QN_OK;
}

/* ---- Side by side ------------------------------------------------------------------------------------------------------------------- */

/* Making a model is work for one thread mostly, and so is running it with one sample after the other: with data each
 * strategy is one thread's from its beginning to its end. */
typedef struct crew {
    run *r;
    pthread_mutex_t lock; /* of what follows, of the log, and of the strategies' list */
    size_t next;
    qn_status status; /* that ends everything */
} crew;

typedef struct side {
    crew *all;
    run r; /* with a context and a job of its own */
    qn_calibrate_options calibrate;
    pthread_t thread;
    bool started;
} side;

static qn_status open_side(side *w, crew *all, int slot)
{
    const run *r = all->r;
    *w = (side){.all = all, .r = *r, .calibrate = *r->j.calibration.options};
    w->calibrate.threads = 1;
    w->r.slot = slot;
    w->r.ctx = NULL;
    w->r.j = (qn_quantize_job){.calibration = r->j.calibration};
    w->r.j.calibration.real = NULL;
    w->r.j.calibration.options = &w->calibrate;
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

static void work_through(side *w, strategy *s)
{
    s->status = make_model(&w->r, s);
    if (s->status == QN_OK)
        s->status = measure(&w->r, s);
    if (s->status != QN_OK)
        memcpy(s->why, qn_context_error(w->r.ctx), sizeof s->why);
    made_model made = take_made(&w->r.j);
    drop_made(&w->r, &made);
}

static void *side_main(void *user)
{
    side *w = user;
    crew *all = w->all;
    pthread_mutex_lock(&all->lock);
    while (all->status == QN_OK && all->next < all->r->count) {
        strategy *s = &all->r->at[all->next++];
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
static qn_status take_best(run *r)
{
    strategy *best = NULL;
    for (size_t i = 0; i < r->count; i++) {
        strategy *s = &r->at[i];
        if (s->status == QN_OK && (!best || compare(s, best) < 0))
            best = s;
    }
    if (!best)
        return QN_OK;
    QN_TRY(make_model(r, best));
    r->kept = take_made(&r->j);
    r->best = best;
    return QN_OK;
}

static qn_status run_side_by_side(run *r, int threads)
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

static qn_status run_one_by_one(run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        QN_TRY(qn_check_cancel(r->ctx));
        QN_TRY(try_strategy(r, &r->at[i]));
    }
    return QN_OK;
}

/* ---- The result ------------------------------------------------------------------------------------------------------------------------ */

static int by_worth(const void *a, const void *b)
{
    const strategy *const *x = a, *const *y = b;
    return compare(*x, *y);
}

static void tell_strategy(qn_item *table, const strategy *s)
{
    qn_item *row = qn_item_row(table);
    char loss[64] = "Fail";
    qn_item_text(row, "quant_mode", s->method ? s->method : "auto");
    qn_item_int(row, "iteration", s->iteration);
    if (s->status == QN_OK)
        snprintf(loss, sizeof loss, "%.4f", s->loss);
    qn_item_text(row, "quantization_loss", loss);
    qn_item_real(row, "tensor_error", s->error, 6);
    if (!isnan(s->metric))
        qn_item_real(row, "accuracy", s->metric, 4);
}

/* Sorted; what failed says why below. */
static qn_status tell_strategies(run *r)
{
    qn_item *root = &r->report->root;
    const strategy **order = qn_arena_array(&r->arena, r->count, sizeof *order);
    QN_TRY_ALLOC(r->ctx, order);
    for (size_t i = 0; i < r->count; i++)
        order[i] = &r->at[i];
    qsort(order, r->count, sizeof *order, by_worth);
    if (!isnan(r->pass.kept.metric))
        qn_item_real(root, "float_accuracy", r->pass.kept.metric, 4);
    qn_item *table = qn_item_table(root, "strategies");
    for (size_t i = 0; i < r->count; i++)
        tell_strategy(table, order[i]);
    qn_item *failures = r->best && order[r->count - 1]->status != QN_OK && r->count > 1
                            ? qn_item_table(root, "failures")
                            : NULL;
    for (size_t i = 0; failures && i < r->count; i++) {
        if (order[i]->status == QN_OK)
            continue;
        qn_item *row = qn_item_row(failures);
        qn_item_text(row, "strategy", order[i]->name);
        qn_item_text(row, "why", order[i]->why);
    }
    return QN_OK;
}

/* The last word, since a search for speed may have changed the model. The folder of the best goes, unless something
 * else is in it. */
static qn_status place_best(run *r, qn_quantized_file *file)
{
    char *path = NULL;
    QN_TRY(qn_folder_file(&path, &r->arena, r->model, r->folder, "_quantize.onnx"));
    *file = file_of(r, path);
    QN_TRY(qn_quantized_save(file, r->j.quantized));
    if (r->count > 1) {
        (void)unlink(r->best->path);
        (void)rmdir(r->best->folder);
    }
    return QN_OK;
}

static qn_status fail_all(const run *r)
{
    const strategy *s = &r->at[0];
    return qn_fail(r->ctx, s->status, r->count > 1 ? "no strategy worked: %s" : "%s", s->why);
}

static qn_status leave_traces(run *r, const qn_quantized_file *file)
{
    if (r->o->steps)
        QN_TRY(qn_trace_steps(&r->j, r->model, r->folder, file));
    return r->o->dump ? qn_trace_dump(&r->j, r->folder) : QN_OK;
}

static qn_status finish(run *r)
{
    qn_quantized_file file;
    if (!r->best)
        return fail_all(r);
    const qn_status reached = r->best->status;
    if (!r->plain) {
        r->own.method = r->best->method;
        QN_TRY(qn_job_settle(&r->j));
        r->j.stats = r->pass.stats[r->best->pass];
        QN_TRY(tell_strategies(r));
    }
    give_made(&r->j, &r->kept);
    r->j.untimed = r->count > 1;
    QN_TRY(qn_job_compare(&r->report->root, &r->j, true));
    QN_TRY(qn_job_save_scales(&r->j));
    QN_TRY(place_best(r, &file));
    QN_TRY(leave_traces(r, &file));
    qn_quantized_tell(r->report, r->model, file.path, file.opset);
    QN_TRY(qn_report_finish(r->report));
    return reached == QN_E_GOAL ? qn_fail(r->ctx, reached, "%s", r->best->why) : QN_OK;
}

/* ---- The whole --------------------------------------------------------------------------------------------------------------------------- */

/* Reading a picture takes as long as running it. */
static qn_status remember(run *r)
{
    qn_calibration *c = &r->j.calibration;
    if (r->plain || !pulls(r) || !c->with_data || r->count < 2)
        return QN_OK;
    QN_TRY(qn_remember_open(r->samples, r->ctx, c->source, c->n_inputs));
    c->source = &r->samples->source;
    return QN_OK;
}

static qn_status open_job(run *r)
{
    char *scales = NULL;
    if (r->o->file.scale_file)
        QN_TRY(qn_folder_file(&scales, &r->arena, r->model, r->folder, "_scales.json"));
    if (scales)
        r->base.save_scales = scales;
    qn_job_init(&r->j, r->ctx, &r->base);
    QN_TRY(qn_job_prepare(&r->j, r->model));
    if (r->plain)
        QN_TRY(qn_job_calibrate(&r->j));
    else if (pulls(r))
        QN_TRY(qn_calibration_feed(&r->j.calibration));
    QN_TRY(list_passes(r));
    QN_TRY(list_strategies(r));
    QN_TRY(remember(r));
    return name_cache(r);
}

static qn_status run_all(run *r)
{
    QN_TRY(open_job(r));
    if (!r->plain) {
        QN_TRY(run_float(r));
        QN_TRY(use_kept(r));
    }
    qn_calibration_drop_plan(&r->j.calibration);
    const int threads = (int)QN_MIN((size_t)qn_calibration_workers(&r->j.calibration), r->count);
    QN_TRY(pulls(r) && !r->plain && threads > 1 ? run_side_by_side(r, threads) : run_one_by_one(r));
    return finish(r);
}

static qn_status run_job(qn_report **out, run *r)
{
    qn_remember samples = {.ctx = NULL};
    QN_TRY(qn_report_create(&r->report, r->ctx));
    r->samples = &samples;
    qn_status status = run_all(r);
    drop_made(r, &r->kept);
    qn_model_free(r->j.quantized);
    r->j.quantized = NULL;
    if (!r->plain)
        r->j.stats = NULL; /* one of the pass's */
    for (size_t i = 0; i < r->pass.n_after && r->pass.stats; i++)
        qn_stats_free(r->pass.stats[i]);
    qn_kept_free(&r->pass.kept);
    qn_job_free(&r->j);
    qn_remember_close(&samples);
    if (status == QN_OK || status == QN_E_GOAL)
        *out = r->report;
    else
        qn_report_free(r->report);
    return status;
}

static qn_status run_locked(qn_report **out, run *r)
{
    const qn_form_row *form;
    qn_folder_lock lock;
    const qn_quantize_options *q = &r->base;
    r->plain = is_single(r) && (q->scales || q->stats || q->dynamic || (pulls(r) && !r->o->cache));
    if (r->o->file.form)
        QN_TRY(qn_form_find(&form, r->ctx, r->o->file.form));
    QN_TRY(qn_folder_make(r->ctx, r->folder));
    QN_TRY(qn_folder_lock_take(&lock, r->ctx, &r->arena, r->folder));
    const qn_status status = run_job(out, r);
    qn_folder_lock_drop(&lock);
    return status;
}

qn_status qn_strategies_run(qn_report **out, qn_context *ctx, qn_model *model,
                            const qn_strategies_options *options)
{
    const qn_strategies_options defaults = QN_STRATEGIES_OPTIONS_INIT;
    run r = {.ctx = ctx, .o = options ? options : &defaults, .model = model};
    *out = NULL;
    r.folder = r.o->file.save_dir ? r.o->file.save_dir : "quench_out";
    qn_arena_init(&r.arena, &ctx->allocator);
    qn_status status = prepare(&r);
    if (status == QN_OK)
        status = run_locked(out, &r);
    qn_arena_free(&r.arena);
    return status;
}
