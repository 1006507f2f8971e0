/* An executor made, and the function called with it. */
#include "executor/executor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/prepare.h"
#include "ops/eval.h"
#include "pass/qdq_to_integer.h"
#include "quant/observe.h"

static const qn_executor_stage stages[] = {
    [QN_EXECUTE_FLOAT] = {"float", true, true, false, QN_PURPOSE_QUANTIZE},
    [QN_EXECUTE_QUANTIZED] = {"fixed", false, false, true, QN_PURPOSE_RUN},
    [QN_EXECUTE_AGAIN] = {"float", false, true, true, QN_PURPOSE_QUANTIZE},
    [QN_EXECUTE_INFER] = {"infer", false, false, false, QN_PURPOSE_RUN},
};

const qn_executor_stage *qn_executor_stage_of(const qn_executor *e)
{
    return &stages[e->options->stage];
}

/* ---- Facts ----------------------------------------------------------------------------------- */

const qn_executor_facts *qn_executor_get(const qn_executor *executor)
{
    return &executor->facts;
}

void qn_executor_input(qn_value_info *out, const qn_executor *executor, size_t i)
{
    *out = executor->inputs[i];
}

const char *qn_executor_output_name(const qn_executor *executor, size_t i)
{
    return executor->options->model->graph->outputs[i]->name;
}

double qn_executor_output_scale(const qn_executor *executor, size_t i)
{
    return qn_model_output_scale(executor->options->model, i);
}

void qn_executor_layer(qn_layer_info *out, const qn_executor *executor, size_t i)
{
    const qn_value *value = executor->layers[i];
    out->node = value->producer->name;
    qn_value_describe(&out->output, value);
}

int qn_executor_early_stop(const qn_executor *executor)
{
    return executor->stopped;
}

const char *qn_executor_error(const qn_executor *executor)
{
    return qn_context_error(executor->ctx);
}

qn_status qn_executor_fail(qn_executor *executor, qn_status status, const char *message)
{
    return qn_fail(executor->ctx, status, "%s", message);
}

const qn_tensor *qn_executor_output(const qn_executor *executor, size_t i)
{
    return executor->forwards && i < executor->facts.n_outputs ? &executor->outputs[i] : NULL;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static qn_status make_plan(void *user, qn_plan **out, int threads)
{
    const qn_executor *e = user;
    const qn_executor_stage *stage = qn_executor_stage_of(e);
    const qn_plan_options options = {QN_OPTIONS_VERSION, .threads = threads,
                                     .graph = *e->options->graph};
    const qn_observe_options watch = {.purpose = stage->plan,
                                      .passed = stage->passed,
                                      .direct = true,
                                      .observe =
                                          stage->observes ? qn_observe_default : qn_observe_none};
    return qn_plan_create_observed(out, e->ctx, e->options->model, &options, &watch);
}

static const qn_input_shape *shape_of(const qn_graph_options *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_shapes; i++) {
        if (strcmp(graph->shapes[i].name, name) == 0)
            return &graph->shapes[i];
    }
    return NULL;
}

/* The model's word, with the options' shapes over it. */
static void describe_inputs(qn_executor *e)
{
    for (size_t i = 0; i < e->facts.n_inputs; i++) {
        qn_value_info *info = &e->inputs[i];
        qn_model_input_info(info, e->options->model, i);
        const qn_input_shape *shape = shape_of(e->options->graph, info->name);
        for (int32_t d = 0; shape && d < shape->rank && d < info->rank; d++)
            info->dims[d] = shape->dims[d] >= 0 ? shape->dims[d] : info->dims[d];
        if (info->rank > 0 && info->dims[0] < 0 && e->options->graph->batch)
            info->dims[0] = e->options->graph->batch;
    }
}

static qn_status find_layers(qn_executor *e)
{
    const qn_graph *graph = e->options->model->graph;
    size_t most = 0;
    for (const qn_node *node = graph->first; node; node = node->next)
        most += (size_t)node->n_out;
    e->layers = qn_arena_array(&e->arena, most + 1, sizeof *e->layers);
    QN_TRY_ALLOC(e->ctx, e->layers);
    for (const qn_node *node = graph->first; node; node = node->next) {
        for (int32_t i = 0; i < node->n_out; i++) {
            if (node->out[i])
                e->layers[e->facts.n_layers++] = node->out[i];
        }
    }
    return QN_OK;
}

static qn_status make_arrays(qn_executor *e)
{
    const size_t in = e->facts.n_inputs + 1, out = e->facts.n_outputs + 1;
    e->inputs = qn_arena_array(&e->arena, in, sizeof *e->inputs);
    e->batch.tensors = qn_arena_array(&e->arena, in, sizeof *e->batch.tensors);
    e->batch.split = qn_arena_array(&e->arena, in, sizeof *e->batch.split);
    e->batch.buffers = qn_arena_array(&e->arena, in, sizeof *e->batch.buffers);
    e->batch.sizes = qn_arena_array(&e->arena, in, sizeof *e->batch.sizes);
    e->outputs = qn_arena_array(&e->arena, out, sizeof *e->outputs);
    e->buffers = qn_arena_array(&e->arena, out, sizeof *e->buffers);
    e->sizes = qn_arena_array(&e->arena, out, sizeof *e->sizes);
    const bool made = e->inputs && e->batch.tensors && e->batch.split && e->batch.buffers &&
                      e->batch.sizes && e->outputs && e->buffers && e->sizes;
    return made ? QN_OK : qn_fail_nomem(e->ctx);
}

/* What integers of the model's inputs mean, for a function that gives the float model's numbers. */
static qn_status find_scales(qn_executor *e)
{
    const qn_graph *graph = e->options->model->graph;
    e->batch.scales = qn_arena_array(&e->arena, graph->n_inputs + 1, sizeof *e->batch.scales);
    QN_TRY_ALLOC(e->ctx, e->batch.scales);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const qn_value *input = graph->inputs[i];
        const qn_node *d = input->n_users ? input->users[0] : NULL;
        if (!d || !qn_is_dequantize(d) || !d->in[1]->data || qn_tensor_count(d->in[1]->data) != 1)
            continue;
        const qn_tensor *zero = d->n_in > 2 && d->in[2] ? d->in[2]->data : NULL;
        e->batch.scales[i].scale = (float)qn_tensor_f64(d->in[1]->data, 0);
        e->batch.scales[i].zero = zero ? qn_tensor_i64(zero, 0) : 0;
    }
    return QN_OK;
}

static qn_status open_executor(qn_executor *e)
{
    const qn_executor_options *o = e->options;
    const qn_function *f = o->function;
    e->batch.noted = qn_executor_stage_of(e)->may_stop; /* the float pass told it */
    e->facts = (qn_executor_facts){.iteration = o->iteration,
                                   .batch_size = f->batch_size > 0 ? f->batch_size : 1,
                                   .dataset = f->dataset,
                                   .save_dir = o->save_dir,
                                   .run_mode = o->run_mode,
                                   .script = f->script,
                                   .configs = f->configs,
                                   .stage = qn_executor_stage_of(e)->name,
                                   .quiet = o->quiet,
                                   .n_inputs = o->model->graph->n_inputs,
                                   .n_outputs = o->model->graph->n_outputs};
    QN_TRY(make_arrays(e));
    if (o->n_input_types && o->stage == QN_EXECUTE_INFER)
        QN_TRY(find_scales(e));
    QN_TRY(find_layers(e));
    describe_inputs(e);
    if (o->baseline && qn_executor_stage_of(e)->may_stop)
        QN_TRY(qn_baseline_error_init(&e->error, e->ctx, o->baseline, o->model));
    const qn_batch_runner_options runner = {.threads = o->threads,
                                            .plan = make_plan,
                                            .user = e,
                                            .n_inputs = e->facts.n_inputs,
                                            .collect = qn_executor_stage_of(e)->observes,
                                            .axis = qn_channel_axis,
                                            .model = o->print,
                                            .whole = e->log != NULL};
    return qn_batch_runner_create(&e->runner, e->ctx, &runner);
}

static void close_executor(qn_executor *e)
{
    for (size_t i = 0; e->batch.buffers && i < e->facts.n_inputs; i++)
        qn_free_aligned(&e->ctx->allocator, e->batch.buffers[i]);
    for (size_t k = 0; e->buffers && k < e->facts.n_outputs; k++)
        qn_free(e->ctx, e->buffers[k]);
    for (size_t i = 0; i < e->n_parts; i++)
        qn_free(e->ctx, e->parts[i].data);
    qn_free(e->ctx, e->parts);
    qn_free(e->ctx, e->part_sizes);
    qn_baseline_error_free(&e->error);
    qn_batch_runner_free(e->runner);
    qn_arena_free(&e->arena);
}

/* ---- A call of the function ------------------------------------------------------------------ */

static qn_status check_forwards(const qn_executor *e)
{
    const char *name = e->options->function->name;
    if (e->forwards == 0)
        return qn_fail(e->ctx, QN_E_INVALID, "infer function '%s' never called forward",
                       name ? name : "");
    if (qn_executor_stage_of(e)->observes && e->forwards < e->facts.iteration)
        qn_log(e->ctx, QN_LOG_WARN,
               "infer function '%s' called forward %lld times, not the %lld that were asked for",
               name ? name : "", (long long)e->forwards, (long long)e->facts.iteration);
    return QN_OK;
}

static qn_status finish_float(qn_executor *e, double metric)
{
    const qn_executor_options *o = e->options;
    if (e->broken) /* a batch may be counted in part */
        return qn_fail(e->ctx, QN_E_INVALID,
                       "infer function '%s' went on after a forward that failed, whose data are "
                       "counted in part: let the error end the function",
                       o->function->name ? o->function->name : "");
    for (size_t i = 0; i < o->n_after; i++) {
        if (!o->stats[i])
            QN_TRY(qn_batch_runner_stats(&o->stats[i], e->runner));
    }
    o->baseline->forwards = e->forwards;
    o->baseline->metric = metric;
    qn_baseline_finish(o->baseline);
    return QN_OK;
}

static qn_status call(double *metric, double *error, qn_executor *e)
{
    const qn_function *f = e->options->function;
    *metric = NAN;
    e->ctx->error[0] = '\0';
    const qn_status status = f->run(f->user, e, metric);
    if (status != QN_OK && !e->failed && !qn_context_error(e->ctx)[0])
        return qn_fail(e->ctx, status, "infer function '%s' failed", f->name ? f->name : "");
    QN_TRY(status);
    QN_TRY(check_forwards(e));
    if (e->options->forwards)
        *e->options->forwards = e->forwards;
    if (e->log && (size_t)e->forwards < e->log->known)
        e->log->other = true;
    if (e->log && e->log->other)
        return QN_OK;
    if (qn_executor_stage_of(e)->observes)
        return finish_float(e, *metric);
    if (error)
        *error = qn_baseline_error_value(&e->error);
    if (e->error.other)
        qn_log(e->ctx, QN_LOG_WARN,
               "infer function '%s' fed other data than with the float model: the error of the "
               "outputs is of the first %zu forwards only",
               f->name ? f->name : "", e->error.n_running);
    return QN_OK;
}

static qn_status execute(double *metric, double *error, qn_executor *e)
{
    qn_arena_init(&e->arena, &e->ctx->allocator);
    qn_status status = open_executor(e);
    if (status == QN_OK)
        status = call(metric, error, e);
    const qn_forward_log *log = e->log;
    if (status == QN_E_CANCELLED && log && !log->other && log->count > log->known && !e->broken)
        status = qn_executor_write_log(e) == QN_OK ? qn_fail(e->ctx, QN_E_CANCELLED, "cancelled")
                                                   : status;
    close_executor(e);
    return status;
}

/* As before the first forward. */
static void forget(const qn_executor_options *o, int64_t most_samples)
{
    const qn_baseline old = *o->baseline;
    for (size_t i = 0; i < o->n_after; i++) {
        qn_stats_free(o->stats[i]);
        o->stats[i] = NULL;
    }
    qn_baseline_free(o->baseline);
    qn_baseline_init(o->baseline, old.ctx, old.n_inputs, old.n_outputs);
    o->baseline->most_samples = most_samples;
}

static qn_status execute_logged(double *metric, qn_context *ctx, const qn_executor_options *o)
{
    const int64_t most_samples = o->baseline->most_samples;
    qn_forward_log log = {
        .ctx = ctx, .path = o->part, .key = o->part_key, .after = o->after, .n_after = o->n_after};
    qn_status status = qn_forward_log_open(&log);
    if (status == QN_OK)
        status = execute(metric, NULL, &(qn_executor){.ctx = ctx, .options = o, .log = &log});
    if (status == QN_OK && log.other) {
        qn_forward_log_clear(&log);
        log.other = false;
        forget(o, most_samples);
        status = execute(metric, NULL, &(qn_executor){.ctx = ctx, .options = o, .log = &log});
    }
    qn_forward_log_close(&log);
    return status;
}

qn_status qn_execute_function(double *metric, double *error, qn_context *ctx,
                              const qn_executor_options *options)
{
    if (error)
        *error = NAN;
    if (options->part && stages[options->stage].observes)
        return execute_logged(metric, ctx, options);
    return execute(metric, error, &(qn_executor){.ctx = ctx, .options = options});
}
