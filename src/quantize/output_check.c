/* Quantized models run on the first samples, beside what the float model made of them. */
#include "quantize/output_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/batch_runner.h"
#include "quant/observe.h"

enum { PREFIX_BYTES = 128 << 20 }; /* of values in between */

/* ---- Samples side by side -------------------------------------------------------------------- */

/* One model run on samples. Functions are called by several threads at once, each for another
 * sample. */
typedef struct model_run {
    qn_output_check *check;
    /* What is run, and what it is a part of: the same, unless it begins at kept values. */
    qn_model *model;
    const qn_quantized_model *quantized;
    /* Sample `i` of the run is sample first + i of the data. */
    int64_t first, count;
    /* Outputs from this one on, so many, are taken. */
    size_t first_output, n_outputs;
    /* Prefixes that are inputs behind those of the float model. */
    const size_t *used;
    size_t n_used;
    /* Gets output k of a sample. */
    qn_status (*take)(struct model_run *r, int64_t sample, size_t k, const qn_tensor *output);
    /* The state of the one who takes. */
    void *user;
} model_run;

/* The float model has been through its passes; direct, see the header. */
static qn_status make_plan(void *user, qn_plan **out, int threads)
{
    const model_run *r = user;
    const qn_plan_options options = {QN_OPTIONS_VERSION, .threads = threads,
                                     .graph = r->check->data->graph};
    const qn_observe_options watch = {.purpose =
                                          r->quantized ? QN_PURPOSE_RUN : QN_PURPOSE_QUANTIZE,
                                      .passed = r->model == r->check->data->real,
                                      .direct = true,
                                      .observe = qn_observe_none};
    return qn_plan_create_observed(out, r->check->ctx, r->model, &options, &watch);
}

static qn_status give_inputs(void *user, qn_context *ctx, int slot, int64_t i, qn_tensor *inputs)
{
    const model_run *r = user;
    const qn_output_check *o = r->check;
    const qn_sample_source *source = o->data->source;
    const size_t n = o->data->n_inputs, sample = (size_t)(r->first + i);
    const qn_tensor *read = NULL;
    QN_TRY(qn_check_cancel(ctx));
    QN_TRY(source->read(source->user, ctx, slot, r->first + i, &read));
    for (size_t k = 0; k < n; k++)
        inputs[k] = read[k];
    for (size_t k = 0; k < r->n_used; k++)
        inputs[n + k] = o->between[sample * o->prefixes.count + r->used[k]];
    return QN_OK;
}

static qn_status take_outputs(void *user, qn_context *ctx, int64_t i, const qn_session *session)
{
    model_run *r = user;
    (void)ctx;
    for (size_t k = 0; k < r->n_outputs; k++)
        QN_TRY(r->take(r, r->first + i, k, qn_session_output(session, r->first_output + k)));
    return QN_OK;
}

static qn_status run_model(model_run *r)
{
    const qn_calibration *data = r->check->data;
    const int slots = data->source->slots;
    const qn_batch_runner_options options = {.threads = slots > 0 ? QN_MIN(data->workers, slots)
                                                                  : data->workers,
                                             .plan = make_plan,
                                             .user = r,
                                             .n_inputs = data->n_inputs + r->n_used};
    const qn_batch_pieces pieces = {
        .user = r, .count = r->count, .read_inputs = give_inputs, .on_outputs = take_outputs};
    qn_batch_runner *runner;
    QN_TRY(qn_batch_runner_create(&runner, r->check->ctx, &options));
    const qn_status status = qn_batch_runner_run(runner, &pieces);
    qn_batch_runner_free(runner);
    return status;
}

/* ---- The float model ------------------------------------------------------------------------- */

qn_status qn_output_check_open(qn_output_check *out, qn_context *ctx, const qn_calibration *data,
                               qn_baseline *baseline)
{
    const qn_graph *graph = data->real->graph;
    *out = (qn_output_check){.ctx = ctx, .data = data, .baseline = baseline};
    out->n_outputs = graph->n_outputs;
    qn_arena_init(&out->arena, &ctx->allocator);
    qn_arena_init(&out->prefix_arena, &ctx->allocator);
    out->groups = qn_arena_array(&out->arena, out->n_outputs + 1, sizeof *out->groups);
    QN_TRY_ALLOC(ctx, out->groups);
    for (size_t k = 0; k < out->n_outputs; k++)
        qn_output_groups_find(&out->groups[k], graph->outputs[k]);
    return QN_OK;
}

/* All outputs of a sample come on one thread, one after the other. */
static qn_status keep(model_run *r, int64_t sample, size_t k, const qn_tensor *output)
{
    const qn_output_check *o = r->check;
    const qn_tensor **outputs =
        (const qn_tensor **)r->user + (size_t)(sample - r->first) * o->n_outputs;
    outputs[k] = output;
    if (k + 1 < o->n_outputs)
        return QN_OK;
    return qn_baseline_keep_outputs(o->baseline, o->ctx, sample, NULL, outputs);
}

/* The float model on the samples that the baseline does not have. */
static qn_status complete(qn_output_check *o)
{
    qn_baseline *baseline = o->baseline;
    const int64_t first = baseline->n_known, count = o->samples - first;
    if (count <= 0)
        return QN_OK;
    QN_TRY(qn_baseline_extend(baseline, o->samples));
    const qn_tensor **outputs =
        qn_alloc_zero(o->ctx, (size_t)count * o->n_outputs + 1, sizeof *outputs);
    QN_TRY_ALLOC(o->ctx, outputs);
    model_run r = {.check = o,
                   .model = o->data->real,
                   .first = first,
                   .count = count,
                   .n_outputs = o->n_outputs,
                   .take = keep,
                   .user = outputs};
    const qn_status status = run_model(&r);
    qn_free(o->ctx, outputs);
    QN_TRY(status);
    baseline->n_known = o->samples;
    return QN_OK;
}

qn_status qn_output_check_use(qn_output_check *o, int64_t samples)
{
    o->samples = QN_MIN(samples, o->data->source->count);
    return complete(o);
}

/* ---- Values in between ----------------------------------------------------------------------- */

/* Memory for the prefixes of every sample, with the shapes that the graph gives them. */
static qn_status make_room(qn_output_check *o, const qn_graph *graph)
{
    const size_t n = o->prefixes.count, all = (size_t)o->samples * n;
    o->between = qn_arena_array(&o->prefix_arena, all + 1, sizeof *o->between);
    QN_TRY_ALLOC(o->ctx, o->between);
    for (size_t i = 0; i < all; i++) {
        qn_tensor *made;
        QN_TRY(qn_tensor_create(&made, o->ctx, &o->prefix_arena,
                                &graph->outputs[o->n_outputs + i % n]->type));
        o->between[i] = *made;
    }
    return QN_OK;
}

/* A sample of another shape has none. */
static qn_status keep_between(model_run *r, int64_t sample, size_t k, const qn_tensor *output)
{
    const qn_output_check *o = r->check;
    qn_tensor *kept = &o->between[(size_t)sample * o->prefixes.count + k];
    size_t bytes = 0;
    const bool fits =
        output->dtype == kept->dtype && output->rank == kept->rank &&
        memcmp(output->dims, kept->dims, (size_t)kept->rank * sizeof *kept->dims) == 0 &&
        qn_tensor_bytes(&bytes, kept->dtype, kept->rank, kept->dims);
    if (fits)
        memcpy(kept->data, output->data, bytes);
    else
        kept->rank = -1;
    return QN_OK;
}

static qn_status run_prefixes(qn_output_check *o, qn_model *model)
{
    QN_TRY(make_room(o, model->graph));
    model_run r = {.check = o,
                   .model = model,
                   .count = o->samples,
                   .first_output = o->n_outputs,
                   .n_outputs = o->prefixes.count,
                   .take = keep_between};
    QN_TRY(run_model(&r));
    for (size_t i = 0; i < (size_t)o->samples * o->prefixes.count; i++) {
        if (o->between[i].rank < 0)
            return QN_OK;
    }
    o->prefix_samples = o->samples;
    return QN_OK;
}

qn_status qn_output_check_use_prefixes(qn_output_check *o, int64_t samples)
{
    qn_model *model;
    QN_TRY(qn_output_check_use(o, samples));
    if (o->samples < 1 || o->prefix_samples >= o->samples || o->data->feed.varies)
        return QN_OK;
    o->prefix_samples = 0;
    qn_arena_free(&o->prefix_arena);
    qn_arena_init(&o->prefix_arena, &o->ctx->allocator);
    QN_TRY(qn_prefix_cache_choose(&o->prefixes, &model, &o->prefix_arena, o->data->real,
                                  &o->data->graph, PREFIX_BYTES / (size_t)o->samples));
    const qn_status status = o->prefixes.count ? run_prefixes(o, model) : QN_OK;
    qn_model_free(model);
    return status;
}

/* ---- Quantized ones -------------------------------------------------------------------------- */

/* Begins where the first integers are, if there are values kept from there. */
static qn_status run_behind_prefixes(model_run *r)
{
    const qn_output_check *o = r->check;
    qn_model *const models[2] = {o->data->real, r->quantized->model};
    size_t *used = qn_alloc_zero(o->ctx, o->prefixes.count, sizeof *used);
    QN_TRY_ALLOC(o->ctx, used);
    qn_status status =
        qn_prefix_cache_cut(&r->model, used, &r->n_used, &o->prefixes, models, o->between);
    r->used = used;
    if (status == QN_OK) {
        qn_log(o->ctx, QN_LOG_DEBUG, "%zu of %zu nodes are run, from %zu kept values",
               r->model->graph->n_nodes, models[1]->graph->n_nodes, r->n_used);
        status = run_model(r);
        qn_model_free(r->model);
    }
    qn_free(o->ctx, used);
    return status;
}

static qn_status run_quantized(model_run *r)
{
    const qn_output_check *o = r->check;
    r->model = r->quantized->model;
    r->count = o->samples;
    r->n_outputs = o->n_outputs;
    return o->prefix_samples && o->prefix_samples >= o->samples ? run_behind_prefixes(r)
                                                                : run_model(r);
}

/* What the float model gave instead; .data NULL where the two cannot be compared. */
static qn_tensor real_of(const qn_output_check *o, int64_t sample, size_t k,
                         const qn_tensor *output)
{
    qn_tensor real = qn_baseline_output(o->baseline, sample, k);
    if (!qn_dtype_is_float(output->dtype) || qn_tensor_count(output) != real.dims[0])
        real.data = NULL;
    return real;
}

/* Noise beside signal of one output of one sample; 0 where nothing can be said. */
static qn_status add_noise(model_run *r, int64_t sample, size_t k, const qn_tensor *output)
{
    const qn_output_check *o = r->check;
    double *ratios = r->user;
    qn_group_sums sums = {.signal = {0}};
    const qn_tensor row = real_of(o, sample, k, output);
    if (!row.data)
        return QN_OK;
    qn_tensor real = *output;
    real.dtype = row.dtype;
    real.data = row.data;
    qn_group_sums_add(&sums, &o->groups[k], &real, output,
                      qn_model_output_scale(r->quantized->model, k));
    ratios[k * (size_t)o->samples + (size_t)sample] =
        r->quantized->settings.rules.profile->fixed_point ? qn_group_sums_worst(&sums)
                                                          : qn_group_sums_whole(&sums);
    return QN_OK;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

qn_status qn_output_check_noise(double *noise, qn_output_check *o,
                                const qn_quantized_model *quantized)
{
    const size_t n = (size_t)o->samples;
    double *ratios = qn_alloc_zero(o->ctx, n * o->n_outputs + 1, sizeof *ratios);
    *noise = 0;
    QN_TRY_ALLOC(o->ctx, ratios);
    model_run r = {.check = o, .quantized = quantized, .take = add_noise, .user = ratios};
    const qn_status status = run_quantized(&r);
    for (size_t k = 0; k < o->n_outputs && n && status == QN_OK; k++) {
        qsort(ratios + k * n, n, sizeof *ratios, by_size);
        *noise = fmax(*noise, ratios[k * n + (n - 1) * 3 / 4]);
    }
    qn_free(o->ctx, ratios);
    return status;
}

static qn_status add_error(model_run *r, int64_t sample, size_t k, const qn_tensor *output)
{
    const qn_output_check *o = r->check;
    qn_relative_error *sums = r->user;
    const qn_tensor real = real_of(o, sample, k, output);
    if (real.data)
        qn_relative_error_add(&sums[(size_t)sample * o->n_outputs + k], &real, output,
                              qn_model_output_scale(r->quantized->model, k));
    return QN_OK;
}

qn_status qn_output_check_error(double *error, qn_output_check *o,
                                const qn_quantized_model *quantized)
{
    const size_t all = (size_t)o->samples * o->n_outputs;
    qn_relative_error *each = qn_alloc_zero(o->ctx, all + 1, sizeof *each);
    *error = 0;
    QN_TRY_ALLOC(o->ctx, each);
    model_run r = {.check = o, .quantized = quantized, .take = add_error, .user = each};
    const qn_status status = run_quantized(&r);
    for (size_t k = 0; k < o->n_outputs && status == QN_OK; k++) {
        qn_relative_error total = {0, 0};
        for (size_t at = k; at < all; at += o->n_outputs)
            qn_relative_error_merge(&total, each[at]);
        *error = fmax(*error, qn_relative_error_value(total)); /* fmax takes the number */
    }
    qn_free(o->ctx, each);
    return status;
}

void qn_output_check_free(qn_output_check *o)
{
    if (!o->ctx)
        return;
    qn_arena_free(&o->arena);
    qn_arena_free(&o->prefix_arena);
    *o = (qn_output_check){.ctx = NULL};
}
