#include "api/executor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/prepare.h"

/* What is done with the model in each stage. */
typedef struct stage_row {
    const char *name;
    bool observes;   /* collects statistics, keeps samples and outputs */
    bool may_stop;   /* early */
    qn_purpose plan; /* whose passes its plans get */
} stage_row;

static const stage_row stages[] = {
    [QN_EXECUTE_FLOAT] = {"float", true, false, QN_PURPOSE_QUANTIZE},
    [QN_EXECUTE_FIXED] = {"fixed", false, true, QN_PURPOSE_RUN},
    [QN_EXECUTE_INFER] = {"infer", false, false, QN_PURPOSE_RUN},
};

static const stage_row *stage_of(const qn_executor *e)
{
    return &stages[e->options->stage];
}

/* ---- Facts ------------------------------------------------------------------------------------------------------ */

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

/* ---- Pieces of a batch ------------------------------------------------------------------------------------------- */

static qn_status give_piece(void *user, qn_context *ctx, int slot, int64_t piece, qn_tensor *inputs)
{
    const qn_executor *e = user;
    (void)ctx;
    (void)slot;
    qn_batch_piece(inputs, &e->batch, e->facts.n_inputs, piece);
    return QN_OK;
}

static qn_status keep_part(qn_tensor *part, size_t *room, qn_context *ctx, const qn_tensor *output)
{
    size_t bytes;
    void *memory = part->data;
    if (output->dtype == QN_STRING || output->dtype >= QN_SEQUENCE ||
        !qn_tensor_bytes(&bytes, output->dtype, output->rank, output->dims))
        return qn_fail(ctx, QN_E_UNSUPPORTED,
                       "an output that is no tensor of numbers cannot be put together from several "
                       "runs: give forward the model's own batch");
    if (*room < bytes || !memory) {
        memory = qn_realloc(ctx, memory, *room, bytes + 1);
        QN_TRY_ALLOC(ctx, memory);
        *room = bytes + 1;
    }
    *part = *output;
    part->data = memory;
    memcpy(memory, output->data, bytes);
    return QN_OK;
}

/* One piece is the whole: its outputs stay in the session. */
static qn_status take_piece(void *user, qn_context *ctx, int64_t piece, const qn_session *session)
{
    qn_executor *e = user;
    const size_t n = e->facts.n_outputs;
    for (size_t k = 0; k < n; k++) {
        const size_t at = (size_t)piece * n + k;
        if (e->batch.pieces == 1)
            e->outputs[k] = *qn_session_output(session, k);
        else
            QN_TRY(
                keep_part(&e->parts[at], &e->part_sizes[at], ctx, qn_session_output(session, k)));
    }
    return QN_OK;
}

static qn_status make_parts(qn_executor *e)
{
    const size_t count = (size_t)e->batch.pieces * e->facts.n_outputs, old = e->n_parts;
    if (e->batch.pieces == 1 || count <= old)
        return QN_OK;
    qn_tensor *parts =
        qn_realloc(e->ctx, e->parts, old * sizeof *e->parts, count * sizeof *e->parts);
    QN_TRY_ALLOC(e->ctx, parts);
    e->parts = parts;
    size_t *sizes = qn_realloc(e->ctx, e->part_sizes, old * sizeof *sizes, count * sizeof *sizes);
    QN_TRY_ALLOC(e->ctx, sizes);
    e->part_sizes = sizes;
    memset(parts + old, 0, (count - old) * sizeof *parts);
    memset(sizes + old, 0, (count - old) * sizeof *sizes);
    e->n_parts = count;
    return QN_OK;
}

/* Type, and all dims but the first. */
static bool can_join(const qn_tensor *a, const qn_tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t d = 1; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* Along dim 0; scalars become a row. */
static qn_status join_output(qn_executor *e, size_t k)
{
    const size_t n = e->facts.n_outputs;
    const qn_tensor *first = &e->parts[k];
    qn_tensor *out = &e->outputs[k];
    int64_t rows = 0;
    size_t bytes = 0;
    for (int64_t p = 0; p < e->batch.pieces; p++) {
        const qn_tensor *part = &e->parts[(size_t)p * n + k];
        if (!can_join(first, part))
            return qn_fail(e->ctx, QN_E_INVALID,
                           "output '%s' has another shape from sample to sample: call forward with "
                           "one at a time",
                           qn_executor_output_name(e, k));
        rows += part->rank ? part->dims[0] : 1;
    }
    *out = *first;
    out->rank = QN_MAX(out->rank, 1);
    out->dims[0] = rows;
    if (!qn_tensor_bytes(&bytes, out->dtype, out->rank, out->dims))
        return qn_fail_nomem(e->ctx);
    if (e->sizes[k] < bytes || !e->buffers[k]) {
        qn_free(e->ctx, e->buffers[k]);
        e->sizes[k] = 0;
        e->buffers[k] = qn_alloc(e->ctx, bytes + 1);
        QN_TRY_ALLOC(e->ctx, e->buffers[k]);
        e->sizes[k] = bytes;
    }
    char *to = out->data = e->buffers[k];
    for (int64_t p = 0; p < e->batch.pieces; p++) {
        const qn_tensor *part = &e->parts[(size_t)p * n + k];
        const size_t size = (size_t)qn_tensor_count(part) * qn_dtype_size(part->dtype);
        memcpy(to, part->data, size);
        to += size;
    }
    return QN_OK;
}

/* ---- After a forward ---------------------------------------------------------------------------------------------- */

static size_t output_bytes(const qn_executor *e)
{
    size_t all = 0;
    for (size_t k = 0; k < e->facts.n_outputs; k++) {
        const qn_tensor *part = e->batch.pieces > 1 ? &e->parts[k] : &e->outputs[k];
        all += (size_t)qn_tensor_count(part) * sizeof(float);
    }
    return all;
}

static qn_status keep_piece(qn_executor *e, int64_t piece, qn_tensor *inputs,
                            const qn_tensor **outputs)
{
    qn_kept *kept = e->options->kept;
    const size_t n = e->facts.n_outputs;
    qn_batch_piece(inputs, &e->batch, e->facts.n_inputs, piece);
    for (size_t k = 0; k < n; k++)
        outputs[k] = e->batch.pieces > 1 ? &e->parts[(size_t)piece * n + k] : &e->outputs[k];
    QN_TRY(qn_kept_inputs(kept, inputs));
    return qn_kept_outputs(kept, e->ctx, e->kept++, inputs, outputs);
}

static qn_status keep(qn_executor *e)
{
    qn_kept *kept = e->options->kept;
    qn_tensor *inputs = qn_alloc_zero(e->ctx, e->facts.n_inputs + 1, sizeof *inputs);
    const qn_tensor **outputs = qn_alloc_zero(e->ctx, e->facts.n_outputs + 1, sizeof *outputs);
    qn_status status = inputs && outputs ? QN_OK : qn_fail_nomem(e->ctx);
    if (status == QN_OK && !kept->pieces)
        status = qn_kept_room(kept, 0, output_bytes(e));
    for (int64_t p = 0; p < e->batch.pieces && status == QN_OK; p++)
        status = keep_piece(e, p, inputs, outputs);
    qn_free(e->ctx, inputs);
    qn_free(e->ctx, outputs);
    return status;
}

/* The last of the numbers asked for gets the statistics of all forwards, when the function has ended. */
static qn_status note_statistics(qn_executor *e)
{
    const qn_executor_options *o = e->options;
    for (size_t i = 0; i + 1 < o->n_after; i++) {
        if (o->after[i] == e->forwards && !o->stats[i])
            QN_TRY(qn_lanes_stats(&o->stats[i], e->lanes));
    }
    return QN_OK;
}

static qn_status after_forward(qn_executor *e)
{
    const stage_row *stage = stage_of(e);
    e->forwards++;
    if (stage->observes) {
        QN_TRY(keep(e));
        return note_statistics(e);
    }
    if (!e->error.kept)
        return QN_OK;
    QN_TRY(qn_kept_compare(&e->error, &e->batch, e->outputs));
    e->stopped = stage->may_stop && qn_kept_error_settled(&e->error, e->facts.iteration);
    return QN_OK;
}

static qn_status forward(qn_executor *e, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_pieces pieces = {.user = e, .give = give_piece, .take = take_piece};
    if (n_inputs != e->facts.n_inputs)
        return qn_fail(e->ctx, QN_E_INVALID, "forward takes %zu inputs, not %zu", e->facts.n_inputs,
                       n_inputs);
    QN_TRY(qn_batch_take(&e->batch, e->ctx, e->inputs, inputs, n_inputs));
    QN_TRY(make_parts(e));
    qn_pieces all = pieces;
    all.count = e->batch.pieces;
    QN_TRY(qn_lanes_run(e->lanes, &all));
    for (size_t k = 0; e->batch.pieces > 1 && k < e->facts.n_outputs; k++)
        QN_TRY(join_output(e, k));
    QN_TRY(after_forward(e));
    qn_progress(e->ctx, "forwards", e->forwards, QN_MAX(e->facts.iteration, e->forwards));
    return QN_OK;
}

qn_status qn_executor_forward(qn_executor *e, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_status status = forward(e, inputs, n_inputs);
    e->failed = e->failed || status != QN_OK;
    return status;
}

/* ---- Making -------------------------------------------------------------------------------------------------------- */

static bool observe_none(const void *user, const qn_value *value)
{
    (void)user;
    (void)value;
    return false;
}

static qn_status make_plan(void *user, qn_plan **out, int threads)
{
    const qn_executor *e = user;
    const stage_row *stage = stage_of(e);
    const qn_plan_options options = {.threads = threads, .graph = *e->options->graph};
    const qn_watch watch = {.purpose = stage->plan,
                            .direct = true,
                            .observe = stage->observes ? qn_observe_default : observe_none};
    return qn_plan_create_watched(out, e->ctx, e->options->model, &options, &watch);
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

static qn_status open_executor(qn_executor *e)
{
    const qn_executor_options *o = e->options;
    const qn_function *f = o->function;
    e->facts = (qn_executor_facts){.iteration = o->iteration,
                                   .batch_size = f->batch_size > 0 ? f->batch_size : 1,
                                   .dataset = f->dataset,
                                   .save_dir = o->save_dir,
                                   .run_mode = o->run_mode,
                                   .script = f->script,
                                   .configs = f->configs,
                                   .stage = stage_of(e)->name,
                                   .quiet = o->quiet,
                                   .n_inputs = o->model->graph->n_inputs,
                                   .n_outputs = o->model->graph->n_outputs};
    QN_TRY(make_arrays(e));
    QN_TRY(find_layers(e));
    describe_inputs(e);
    if (o->kept && stage_of(e)->may_stop)
        QN_TRY(qn_kept_error_init(&e->error, o->kept, o->model));
    const qn_lanes_options lanes = {.threads = o->threads,
                                    .plan = make_plan,
                                    .user = e,
                                    .n_inputs = e->facts.n_inputs,
                                    .collect = stage_of(e)->observes,
                                    .axis = qn_channel_axis,
                                    .model = o->print};
    return qn_lanes_create(&e->lanes, e->ctx, &lanes);
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
    qn_kept_error_free(&e->error);
    qn_lanes_free(e->lanes);
    qn_arena_free(&e->arena);
}

/* ---- A call of the function ------------------------------------------------------------------------------------------ */

static qn_status check_forwards(const qn_executor *e)
{
    const char *name = e->options->function->name;
    if (e->forwards == 0)
        return qn_fail(e->ctx, QN_E_INVALID, "infer function '%s' never called forward",
                       name ? name : "");
    if (stage_of(e)->observes && e->forwards < e->facts.iteration)
        qn_log(e->ctx, QN_LOG_WARN,
               "infer function '%s' called forward %lld times, not the %lld that were asked for",
               name ? name : "", (long long)e->forwards, (long long)e->facts.iteration);
    return QN_OK;
}

static qn_status finish_float(qn_executor *e, double metric)
{
    const qn_executor_options *o = e->options;
    for (size_t i = 0; i < o->n_after; i++) {
        if (!o->stats[i])
            QN_TRY(qn_lanes_stats(&o->stats[i], e->lanes));
    }
    o->kept->forwards = e->forwards;
    o->kept->metric = metric;
    qn_kept_finish(o->kept);
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
    if (stage_of(e)->observes)
        return finish_float(e, *metric);
    if (error)
        *error = qn_kept_error_value(&e->error);
    if (e->error.other)
        qn_log(e->ctx, QN_LOG_WARN,
               "infer function '%s' fed other data than with the float model: the error of the "
               "outputs is of the first %zu forwards only",
               f->name ? f->name : "", e->error.n_running);
    return QN_OK;
}

qn_status qn_execute_function(double *metric, double *error, qn_context *ctx,
                              const qn_executor_options *options)
{
    qn_executor e = {.ctx = ctx, .options = options};
    qn_arena_init(&e.arena, &ctx->allocator);
    if (error)
        *error = NAN;
    qn_status status = open_executor(&e);
    if (status == QN_OK)
        status = call(metric, error, &e);
    close_executor(&e);
    return status;
}
