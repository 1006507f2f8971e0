/* The calls that quantize: what is asked for, and the result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "pass/quant_formats.h"
#include "quant/input_types.h"
#include "quantize/report.h"
#include "quantize/strategies.h"
#include "quantize/traces.h"

/* ---- What is asked for ----------------------------------------------------------------------- */

static int64_t most_iterations(const qn_strategies *r)
{
    int64_t most = 0;
    for (size_t i = 0; i < r->o->n_iterations; i++)
        most = QN_MAX(most, r->o->iterations[i]);
    return most;
}

static qn_status check_options(qn_strategies *r)
{
    const qn_strategies_options *o = r->o;
    for (size_t i = 0; i < o->n_iterations; i++) {
        if (o->iterations[i] < 1)
            return qn_fail(r->ctx, QN_E_INVALID, "%lld iterations: it must be 1 or more",
                           (long long)o->iterations[i]);
    }
    const qn_quantize_options *q = &o->file.quantize;
    const bool several = o->n_methods * QN_MAX(o->n_iterations, 1) > 1 || o->n_iterations > 1;
    if (several && (q->scales || q->stats || q->dynamic || q->accuracy_budget))
        return qn_fail(r->ctx, QN_E_OPTION,
                       "several methods or numbers of iterations do not go with %s",
                       q->scales    ? "a scale file"
                       : q->stats   ? "a file of statistics"
                       : q->dynamic ? "dynamic quantization"
                                    : "an accuracy budget");
    return QN_OK;
}

/* A single strategy is not, unless a function or a cache makes the float pass something of its
 * own. */
static bool is_judged(const qn_strategies *r)
{
    const qn_quantize_options *q = &r->base;
    if (r->o->n_methods > 1 || r->o->n_iterations > 1)
        return true;
    if (q->scales) /* its scales are judged by who feeds it, without a float pass */
        return r->function.run != NULL;
    return !q->stats && !q->dynamic && (!qn_strategies_read_data(r) || r->o->cache);
}

/* The options of every strategy, and the data that the largest number of iterations takes. */
static qn_status prepare(qn_strategies *r)
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
    const int64_t wanted = most_iterations(r) * qn_strategies_batch(r);
    if (data->samples && wanted > data->samples)
        qn_log(r->ctx, QN_LOG_NOTE,
               "%lld samples in so many iterations, but no more than %lld are to be used",
               (long long)wanted, (long long)data->samples);
    else if (wanted)
        data->samples = wanted;
    r->judged = is_judged(r);
    return QN_OK;
}

/* ---- The result ------------------------------------------------------------------------------ */

static int by_worth(const void *a, const void *b)
{
    const qn_strategy *const *x = a, *const *y = b;
    return qn_strategy_compare(*x, *y);
}

static void report_strategy(qn_item *table, const qn_strategy *s)
{
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "quant_mode", s->mode);
    qn_item_int(row, "iteration", s->iteration);
    qn_item_text(row, "bits", s->bits);
    if (s->status != QN_OK) {
        qn_item_text(row, "quantization_loss", "Fail");
        return;
    }
    if (!isnan(s->loss))
        qn_item_real(row, "quantization_loss", s->loss, 4);
    if (!isnan(s->change))
        qn_item_real(row, "change", s->change, 4);
    if (!isnan(s->error))
        qn_item_real(row, "tensor_error", s->error, 6);
    if (!isnan(s->metric))
        qn_item_real(row, "accuracy", s->metric, 4);
}

/* Sorted; what failed says why below. */
static qn_status report_strategies(qn_strategies *r)
{
    qn_item *root = &r->report->root;
    const qn_strategy **order = qn_arena_array(&r->arena, r->count, sizeof *order);
    QN_TRY_ALLOC(r->ctx, order);
    for (size_t i = 0; i < r->count; i++)
        order[i] = &r->at[i];
    qsort(order, r->count, sizeof *order, by_worth);
    if (!isnan(r->pass.baseline.metric))
        qn_item_real(root, "float_accuracy", r->pass.baseline.metric, 4);
    if (r->pass.baseline.forwards && r->compared.count != r->pass.baseline.forwards) {
        qn_item_int(root, "forwards", r->pass.baseline.forwards);
        qn_item_int(root, "compared_forwards", r->compared.count);
        if (!isnan(r->compared.metric))
            qn_item_real(root, "float_accuracy_on_these", r->compared.metric, 4);
    }
    qn_item *table = qn_item_table(root, "strategies");
    for (size_t i = 0; i < r->count; i++)
        report_strategy(table, order[i]);
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

/* Statistics without data leave nothing to run either model on; of several strategies nobody asked
 * how fast they are. */
static qn_status finish_model(qn_strategies *r, const qn_quantize_input *input)
{
    const bool fastest = input->options->fastest != 0;
    qn_item *root = &r->report->root;
    qn_layer_times times;
    if (!input->data->fed || (!fastest && (!r->reported || r->count > 1)))
        return r->reported ? qn_quantize_report(root, &r->result, input, NULL) : QN_OK;
    qn_status status = qn_layer_times_measure(&times, input, &r->result.made);
    if (status == QN_OK && fastest)
        status = qn_faster_layers_search(&times, &r->result.made, input, &r->arena,
                                         qn_layer_times_measure);
    if (status == QN_OK && r->reported)
        status = qn_quantize_report(root, &r->result, input, &times);
    qn_layer_times_free(&times);
    return status;
}

/* The last word, since a search for speed may have changed the model. */
static qn_status place_best(qn_strategies *r, qn_quantized_file *file)
{
    char *path = NULL;
    if (!r->folder)
        return qn_input_types_apply(r->result.made.model, &r->result.made.settings.rules);
    QN_TRY(qn_folder_file(&path, &r->arena, r->model, r->folder, "_quantize.onnx"));
    *file = qn_strategies_file(r, path, &r->result.made.settings.rules);
    return qn_quantized_save(file, r->result.made.model);
}

/* The scales are complete before the model takes its place, so that whatever fails before leaves an
 * older pair as it was. */
static qn_status save_both(qn_strategies *r, qn_quantized_file *file)
{
    qn_output_file *scales;
    QN_TRY(qn_quantized_model_write_scales(&scales, &r->result.made, r->base.save_scales));
    const qn_status status = place_best(r, file);
    if (status == QN_OK && scales)
        return qn_output_commit(scales);
    qn_output_discard(scales);
    return status;
}

static qn_status fail_all(const qn_strategies *r)
{
    const qn_strategy *s = &r->at[0];
    return qn_fail(r->ctx, s->status, r->count > 1 ? "no strategy worked: %s" : "%s", s->why);
}

static qn_status leave_traces(qn_strategies *r, const qn_quantize_input *input,
                              const qn_quantized_file *file)
{
    const qn_quantized_model *made = &r->result.made;
    if (r->o->steps)
        QN_TRY(qn_trace_steps(input, made, r->model, r->folder, file));
    return r->o->dump ? qn_trace_dump(input, made, r->folder) : QN_OK;
}

static qn_status finish(qn_strategies *r)
{
    qn_quantized_file file = {.ctx = NULL};
    qn_quantize_options own;
    if (!r->best)
        return fail_all(r);
    const qn_quantize_input input = qn_strategies_input(r, r->best, &own);
    if (r->judged)
        QN_TRY(report_strategies(r));
    QN_TRY(finish_model(r, &input));
    QN_TRY(save_both(r, &file));
    QN_TRY(leave_traces(r, &input, &file));
    if (r->folder)
        qn_quantized_file_report(r->report, r->model, file.path, file.opset);
    QN_TRY(qn_report_finish(r->report));
    return r->best->status == QN_E_GOAL ? qn_fail(r->ctx, QN_E_GOAL, "%s", r->best->why) : QN_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Reading a picture takes as long as running a small network on it: searches read the first samples
 * again and again, strategies all of them. */
static qn_status keep_samples(qn_strategies *r)
{
    qn_calibration *data = &r->job.data;
    if (!data->fed || !data->with_data)
        return QN_OK;
    return qn_calibration_keep(data, r->count > 1 ? data->source->count : QN_SEARCHED_SAMPLES);
}

/* Data that come with statistics, or where none are needed, only serve the comparison. */
static qn_status open_job(qn_strategies *r)
{
    char *scales = NULL;
    if (r->o->file.scale_file && r->folder)
        QN_TRY(qn_folder_file(&scales, &r->arena, r->model, r->folder, "_scales.json"));
    if (scales)
        r->base.save_scales = scales;
    QN_TRY(qn_quantize_job_open(&r->job, r->ctx, r->model, &r->base, false));
    if (r->judged)
        r->job.input.given =
            false; /* somebody wants statistics of the data that a function gives */
    const bool wanted = qn_strategies_need_pass(r) || qn_calibrate_has_data(&r->base.calibrate);
    if (wanted && (!r->judged || qn_strategies_read_data(r)))
        QN_TRY(qn_calibration_feed(&r->job.data));
    QN_TRY(qn_strategies_list(r));
    return keep_samples(r);
}

static qn_status run_all(qn_strategies *r)
{
    QN_TRY(open_job(r));
    QN_TRY(qn_strategies_statistics(r));
    qn_calibration_drop_plan(&r->job.data);
    QN_TRY(qn_strategies_try(r));
    return finish(r);
}

static void free_pass(qn_float_pass *pass)
{
    for (size_t i = 0; i < pass->n_after && pass->stats; i++)
        qn_stats_free(pass->stats[i]);
    qn_baseline_free(&pass->baseline);
}

/* Nothing of it is left but the report, and the model where nobody wants a file. */
static qn_status run_job(qn_report **out, qn_model **made, qn_strategies *r)
{
    QN_TRY(qn_report_create(&r->report, r->ctx));
    const qn_status status = run_all(r);
    if (made && (status == QN_OK || status == QN_E_GOAL)) {
        *made = r->result.made.model;
        r->result.made.model = NULL;
    }
    qn_quantize_result_free(&r->result);
    free_pass(&r->pass);
    qn_quantize_job_free(&r->job);
    if (out && (status == QN_OK || status == QN_E_GOAL))
        *out = r->report;
    else
        qn_report_free(r->report);
    return status;
}

static qn_status run_locked(qn_report **out, qn_strategies *r)
{
    qn_folder_lock lock;
    QN_TRY(qn_folder_make(r->ctx, r->folder));
    QN_TRY(qn_folder_lock_take(&lock, r->ctx, &r->arena, r->folder));
    const qn_status status = run_job(out, NULL, r);
    qn_folder_lock_drop(&lock);
    return status;
}

static qn_status run(qn_report **out, qn_model **made, qn_strategies *r)
{
    const qn_quant_format *form;
    QN_TRY(prepare(r));
    if (r->o->file.form)
        QN_TRY(qn_quant_format_find(&form, r->ctx, r->o->file.form));
    return r->folder ? run_locked(out, r) : run_job(out, made, r);
}

/* What was given, with all that it points to. */
typedef struct taken_options {
    qn_strategies_options all;
    qn_accuracy_budget budget;
    qn_eval_options eval;
} taken_options;

static qn_status take_budget(taken_options *taken, qn_context *ctx)
{
    qn_quantize_options *o = &taken->all.file.quantize;
    if (!o->accuracy_budget)
        return QN_OK;
    QN_TRY(qn_options_take(&taken->budget, ctx, &qn_accuracy_budget_table, o->accuracy_budget));
    o->accuracy_budget = &taken->budget;
    if (!taken->budget.eval)
        return QN_OK;
    QN_TRY(qn_options_take(&taken->eval, ctx, &qn_eval_options_table, taken->budget.eval));
    taken->budget.eval = &taken->eval;
    return QN_OK;
}

static bool is_among(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0)
            return true;
    }
    return false;
}

/* Each method once; "all" are those that the Knight tool has, which knows no mean. */
static qn_status list_methods(qn_strategies_options *o, qn_strategies *r)
{
    const char **list = qn_arena_array(&r->arena, o->n_methods + qn_methods_count, sizeof *list);
    size_t count = 0;
    QN_TRY_ALLOC(r->ctx, list);
    for (size_t i = 0; i < o->n_methods; i++) {
        const bool all = strcmp(o->methods[i], "all") == 0;
        for (size_t k = 0; k < (all ? qn_methods_count : 1); k++) {
            const char *name = all ? qn_methods[k]->name : o->methods[i];
            if (!(all && strcmp(name, "mean") == 0) && !is_among(list, count, name))
                list[count++] = name;
        }
    }
    o->methods = list;
    o->n_methods = count;
    return QN_OK;
}

static qn_status run_taken(qn_report **out, qn_context *ctx, qn_model *model, taken_options *taken)
{
    qn_strategies r = {.ctx = ctx, .o = &taken->all, .model = model, .reported = true};
    QN_TRY(take_budget(taken, ctx));
    r.folder = r.o->file.save_dir ? r.o->file.save_dir : "quench_out";
    qn_arena_init(&r.arena, &ctx->allocator);
    qn_status status = list_methods(&taken->all, &r);
    if (status == QN_OK)
        status = run(out, NULL, &r);
    qn_arena_free(&r.arena);
    return status;
}

qn_status qn_strategies_run(qn_report **out, qn_context *ctx, qn_model *model,
                            const qn_strategies_options *options)
{
    taken_options taken;
    *out = NULL;
    QN_TRY(qn_options_take(&taken.all, ctx, &qn_strategies_options_table, options));
    return run_taken(out, ctx, model, &taken);
}

qn_status qn_quantize_file(qn_report **out, qn_context *ctx, qn_model *model,
                           const qn_quantize_file_options *options)
{
    taken_options taken = {.all = QN_STRATEGIES_OPTIONS_INIT};
    *out = NULL;
    QN_TRY(qn_options_take(&taken.all.file, ctx, &qn_quantize_file_options_table, options));
    return run_taken(out, ctx, model, &taken);
}

qn_status qn_model_quantize(qn_model **out, qn_report **report, qn_context *ctx, qn_model *model,
                            const qn_quantize_options *options)
{
    taken_options taken = {.all = QN_STRATEGIES_OPTIONS_INIT};
    qn_strategies r = {.ctx = ctx, .o = &taken.all, .model = model, .reported = report != NULL};
    *out = NULL;
    if (report)
        *report = NULL;
    QN_TRY(qn_options_take(&taken.all.file.quantize, ctx, &qn_quantize_options_table, options));
    QN_TRY(take_budget(&taken, ctx));
    qn_arena_init(&r.arena, &ctx->allocator);
    const qn_status status = run(report, out, &r);
    qn_arena_free(&r.arena);
    return status;
}
