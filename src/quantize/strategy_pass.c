/* Which strategies there are, and the float pass that serves them all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quantize/strategies.h"

/* ---- Strategies ------------------------------------------------------------------------------ */

static int by_count(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Distinct numbers of iterations; of data, whose feed is open by now, counted in runs. */
static qn_status list_passes(qn_strategies *r)
{
    const qn_strategies_options *o = r->o;
    qn_float_pass *pass = &r->pass;
    pass->after = qn_arena_array(&r->arena, o->n_iterations + 1, sizeof *pass->after);
    QN_TRY_ALLOC(r->ctx, pass->after);
    for (size_t i = 0; i < o->n_iterations; i++)
        pass->after[pass->n_after++] = o->iterations[i];
    if (pass->n_after == 0)
        pass->after[pass->n_after++] =
            qn_strategies_read_data(r) && r->job.data.source ? r->job.data.source->count : 1;
    qsort(pass->after, pass->n_after, sizeof *pass->after, by_count);
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

static qn_status name_strategy(qn_strategies *r, qn_strategy *s)
{
    char *path = NULL;
    if (!r->folder)
        return QN_OK;
    s->name = qn_arena_format(&r->arena, "%s_%lld", s->mode, (long long)s->iteration);
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
static qn_status list_strategies(qn_strategies *r)
{
    const size_t methods = QN_MAX(r->o->n_methods, 1);
    r->count = methods * r->pass.n_after;
    r->at = qn_arena_array(&r->arena, r->count, sizeof *r->at);
    QN_TRY_ALLOC(r->ctx, r->at);
    for (size_t i = 0; i < r->count; i++) {
        qn_strategy *s = &r->at[i];
        *s = (qn_strategy){.method = r->o->n_methods ? r->o->methods[i / r->pass.n_after]
                                                     : r->base.method,
                           .bits = "",
                           .pass = i % r->pass.n_after,
                           .metric = NAN,
                           .error = NAN,
                           .loss = NAN,
                           .change = NAN};
        s->iteration = r->pass.after[s->pass];
        s->mode = s->method ? s->method : r->job.mix ? "mix" : r->job.settings.params.method->name;
        QN_TRY(name_strategy(r, s));
        for (size_t k = 0; k < i; k++) {
            if (strcmp(r->at[k].name, s->name) == 0)
                return qn_fail(r->ctx, QN_E_OPTION, "method '%s' is named twice", s->method);
        }
    }
    return QN_OK;
}

/* ---- Cache ----------------------------------------------------------------------------------- */

static qn_status name_cache(qn_strategies *r)
{
    struct stat there;
    const char *asked = r->o->cache, *folder = asked;
    if (!r->folder || (!asked && r->count < 2))
        return QN_OK;
    if (!asked)
        folder = r->folder;
    const size_t length = strlen(folder);
    const bool slash = length && folder[length - 1] == '/';
    r->files.cache = asked;
    if (asked && !slash && (stat(asked, &there) != 0 || !S_ISDIR(there.st_mode)))
        return QN_OK;
    char *path = NULL;
    QN_TRY(qn_folder_make(r->ctx, folder));
    QN_TRY(qn_folder_file(&path, &r->arena, r->model, folder, "_distribution.cache"));
    r->files.cache = path;
    return QN_OK;
}

qn_status qn_strategies_list(qn_strategies *r)
{
    QN_TRY(list_passes(r));
    QN_TRY(list_strategies(r));
    return name_cache(r);
}

static qn_status print_data(qn_strategies *r)
{
    const qn_calibrate_options *c = &r->base.calibrate;
    qn_fingerprint *print = &r->files.key.print[QN_PASS_DATA];
    for (size_t i = 0; i < c->data.n_data; i++) {
        const char *equal = strchr(c->data.data[i], '=');
        qn_fingerprint_text(print, c->data.data[i]);
        QN_TRY(qn_fingerprint_listing(print, r->ctx, equal ? equal + 1 : c->data.data[i]));
    }
    for (size_t i = 0; i < c->n_inputs; i++)
        QN_TRY(qn_fingerprint_listing(print, r->ctx, c->inputs[i]));
    if (r->function.dataset)
        QN_TRY(qn_fingerprint_listing(print, r->ctx, r->function.dataset));
    if (r->row && r->row->print)
        QN_TRY(r->row->print(print, r->ctx, &r->function));
    const char *const files[] = {c->data.list, c->data.labels};
    for (size_t i = 0; i < QN_COUNT_OF(files); i++)
        QN_TRY(qn_fingerprint_listing(print, r->ctx, files[i]));
    return QN_OK;
}

static qn_status make_key(qn_strategies *r)
{
    const qn_data_options *data = &r->base.calibrate.data;
    qn_fingerprint *function = &r->files.key.print[QN_PASS_FUNCTION];
    qn_fingerprint *flags = &r->files.key.print[QN_PASS_FLAGS];
    r->files.key.print[QN_PASS_MODEL] = r->job.data.print;
    qn_fingerprint_text(function, r->function.name);
    if (r->function.configs) /* not where they stand in their file */
        qn_fingerprint_text(function, r->function.configs + strspn(r->function.configs, " \n"));
    if (r->function.script)
        QN_TRY(qn_fingerprint_file(function, r->ctx, r->function.script));
    qn_fingerprint_int(flags, qn_strategies_batch(r));
    qn_fingerprint_int(flags, data->first);
    qn_fingerprint_int(flags, data->samples);
    qn_fingerprint_int(flags, (int64_t)r->base.calibrate.seed);
    qn_fingerprint_int(flags, r->o->class_offset);
    qn_fingerprint_text(flags, data->preprocess);
    return print_data(r);
}

static qn_status start_pass(qn_strategies *r)
{
    const qn_graph *graph = r->job.data.real->graph;
    for (size_t i = 0; i < r->pass.n_after; i++) {
        qn_stats_free(r->pass.stats[i]);
        r->pass.stats[i] = NULL;
    }
    qn_baseline_free(&r->pass.baseline);
    qn_baseline_init(&r->pass.baseline, r->ctx, graph->n_inputs, graph->n_outputs);
    r->pass.baseline.most_samples = QN_MAX(QN_BASELINE_SAMPLES, r->base.compared);
    return QN_OK;
}

/* A cache that nobody named is made anew where it is of something else. */
static qn_status load_cache(bool *found, qn_strategies *r)
{
    *found = false;
    QN_TRY(start_pass(r));
    if (!r->files.cache)
        return QN_OK;
    QN_TRY(make_key(r));
    const qn_status status =
        qn_float_pass_load(found, &r->pass, r->ctx, &r->files.key, r->files.cache);
    if (status == QN_OK && *found)
        qn_log(r->ctx, QN_LOG_NOTE, "%s: the float model is not run again", r->files.cache);
    if (status == QN_OK || r->o->cache || status == QN_E_NOMEM)
        return status;
    qn_log(r->ctx, QN_LOG_NOTE, "%s: it is made anew", qn_context_error(r->ctx));
    *found = false;
    return start_pass(r);
}

/* Better said now than after the float pass. */
static qn_status check_cache(const qn_strategies *r)
{
    qn_output_file *file;
    QN_TRY(qn_output_open(&file, r->ctx, r->files.cache));
    qn_output_discard(file);
    return QN_OK;
}

/* ---- The float pass -------------------------------------------------------------------------- */

qn_data_pass_options qn_strategies_data_pass(qn_strategies *r)
{
    return (qn_data_pass_options){.ctx = r->ctx,
                                  .calibration = &r->job.data,
                                  .baseline = &r->pass.baseline,
                                  .labelled = r->judged && r->base.calibrate.data.labels,
                                  .class_offset = r->o->class_offset,
                                  .most_pieces = r->judged ? INT64_MAX : QN_SEARCHED_SAMPLES,
                                  .threads = r->job.data.workers};
}

qn_executor_options qn_strategies_executor(qn_strategies *r, qn_execute stage, qn_model *model)
{
    return (qn_executor_options){.stage = stage,
                                 .model = model,
                                 .graph = &r->job.data.graph,
                                 .function = &r->function,
                                 .iteration = r->pass.after[r->pass.n_after - 1],
                                 .save_dir = r->folder,
                                 .run_mode = r->o->run_mode ? r->o->run_mode : "quant",
                                 .input_types = r->base.input_types,
                                 .n_input_types = r->base.n_input_types,
                                 .quiet = r->count > 1,
                                 .threads = r->job.data.workers,
                                 .print = r->job.data.print,
                                 .baseline = &r->pass.baseline,
                                 .after = r->pass.after,
                                 .n_after = r->pass.n_after,
                                 .stats = r->pass.stats};
}

static qn_status pass_over_data(qn_strategies *r)
{
    const qn_calibration *c = &r->job.data;
    qn_data_pass_options options = qn_strategies_data_pass(r);
    options.checkpoint = r->files.part;
    int64_t *runs = qn_arena_array(&r->arena, r->pass.n_after, sizeof *runs);
    QN_TRY_ALLOC(r->ctx, runs);
    for (size_t i = 0; i < r->pass.n_after; i++) {
        const int64_t samples = r->pass.after[i] * qn_strategies_batch(r), batch = c->feed.batch;
        runs[i] = r->o->n_iterations ? QN_MIN((samples + batch - 1) / batch, c->source->count)
                                     : c->source->count;
    }
    return qn_data_pass_float(r->pass.stats, &options, runs, r->pass.n_after);
}

static qn_status run_float(qn_strategies *r)
{
    double metric;
    bool found = false;
    QN_TRY(load_cache(&found, r));
    if (found)
        return QN_OK;
    if (r->files.cache)
        QN_TRY(check_cache(r));
    if (r->files.cache && (!qn_strategies_read_data(r) || r->job.data.with_data)) {
        r->files.part = qn_arena_format(&r->arena, "%s.part", r->files.cache);
        QN_TRY_ALLOC(r->ctx, r->files.part);
    }
    if (r->judged)
        qn_log(r->ctx, QN_LOG_NOTE, "float model: begun (%s)",
               r->function.name ? r->function.name : "data");
    qn_executor_options options = qn_strategies_executor(r, QN_EXECUTE_FLOAT, r->job.data.real);
    options.part = r->files.part;
    qn_fingerprint_bytes(&options.part_key, &r->files.key, sizeof r->files.key);
    QN_TRY(qn_strategies_read_data(r) ? pass_over_data(r)
                                      : qn_execute_function(&metric, NULL, r->ctx, &options));
    for (size_t i = 0; i < r->pass.n_after; i++)
        qn_stats_sort(r->pass.stats[i]);
    if (r->judged)
        qn_log(r->ctx, QN_LOG_NOTE, "float model: done");
    if (r->files.cache)
        QN_TRY(qn_float_pass_save(r->ctx, &r->pass, &r->files.key, r->files.cache));
    if (r->files.part)
        (void)unlink(r->files.part);
    return QN_OK;
}

/* What was kept of a function's data serves all that measure later. */
static qn_status use_function_samples(qn_strategies *r)
{
    qn_calibration *c = &r->job.data;
    const qn_baseline *baseline = &r->pass.baseline;
    if (qn_strategies_read_data(r) || !baseline->n_samples)
        return QN_OK;
    qn_input_shape *shapes = qn_arena_array(&r->arena, baseline->n_inputs + 1, sizeof *shapes);
    QN_TRY_ALLOC(r->ctx, shapes);
    for (size_t i = 0; i < baseline->n_inputs; i++) {
        const qn_tensor *t = &baseline->samples[i];
        shapes[i] = (qn_input_shape){.name = c->real->graph->inputs[i]->name, .rank = t->rank};
        memcpy(shapes[i].dims, t->dims, sizeof shapes[i].dims);
        if (t->rank > 0)
            shapes[i].dims[0] = -1; /* the function may give any batch that the model takes */
    }
    c->graph.shapes = shapes;
    c->graph.n_shapes = baseline->n_inputs;
    c->fed = c->with_data = true;
    c->source = &baseline->source;
    c->n_inputs = baseline->n_inputs;
    return QN_OK;
}

bool qn_strategies_need_pass(const qn_strategies *r)
{
    const qn_quantize_options *q = &r->base;
    return !q->dynamic && !q->scales && !q->stats && !r->job.input.given;
}

static qn_status load_stats(qn_strategies *r)
{
    const char *path = r->base.stats;
    QN_TRY(start_pass(r));
    if (!path || r->base.dynamic)
        return QN_OK;
    QN_TRY(qn_stats_load(&r->pass.stats[0], r->ctx, path));
    const qn_status status = qn_stats_check(r->pass.stats[0], &r->job.data.print, NULL);
    return status == QN_OK ? QN_OK : qn_fail_within(r->ctx, status, "%s", path);
}

qn_status qn_strategies_statistics(qn_strategies *r)
{
    if (!qn_strategies_need_pass(r))
        return load_stats(r);
    QN_TRY(run_float(r));
    return use_function_samples(r);
}
