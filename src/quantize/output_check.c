#include "quantize/output_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/lanes.h"
#include "ops/eval.h"
#include "quant/observe.h"

enum { KEPT_BYTES = 128 << 20 }; /* of samples, and of values in between */

/* ---- Samples side by side ------------------------------------------------------------------------------------- */

/* Gets every output of every sample. */
typedef qn_status take_fn(void *user, qn_context *ctx, const qn_output_check *o, size_t at,
                          const qn_tensor *output);

/* One model run on all samples. Functions are called by several threads at once, each for another sample. */
typedef struct round_trip {
    const qn_output_check *o;
    qn_model *model;
    qn_purpose purpose;
    take_fn *take;
    void *user;
    size_t n_extra;     /* outputs behind those of the float model: the ones that are wanted */
    const size_t *used; /* starts that are inputs behind those of the float model; */
    size_t n_used;
} round_trip;

/* Direct, so that what is decided here does not depend on the number of threads. */
static qn_status make_plan(void *user, qn_plan **out, int threads)
{
    const round_trip *r = user;
    const qn_calibration *c = &r->o->j->calibration;
    const qn_plan_options options = {.threads = threads, .graph = c->graph};
    const qn_observe_options watch = {
        .purpose = r->purpose, .direct = true, .observe = qn_observe_none};
    return qn_plan_create_observed(out, r->o->j->ctx, r->model, &options, &watch);
}

static qn_status give_inputs(void *user, qn_context *ctx, int slot, int64_t sample,
                             qn_tensor *inputs)
{
    const round_trip *r = user;
    const qn_output_check *o = r->o;
    const qn_calibration *c = &o->j->calibration;
    const qn_tensor *read = o->inputs ? o->inputs + (size_t)sample * c->n_inputs : NULL;
    QN_TRY(qn_check_cancel(ctx));
    if (!read)
        QN_TRY(c->source->read(c->source->user, ctx, slot, sample, &read));
    for (size_t i = 0; i < c->n_inputs; i++)
        inputs[i] = read[i];
    for (size_t i = 0; i < r->n_used; i++)
        inputs[c->n_inputs + i] = o->between[(size_t)sample * o->starts.count + r->used[i]];
    return QN_OK;
}

static qn_status take_outputs(void *user, qn_context *ctx, int64_t sample,
                              const qn_session *session)
{
    const round_trip *r = user;
    const size_t first = r->n_extra ? r->o->n_outputs : 0;
    const size_t count = r->n_extra ? r->n_extra : r->o->n_outputs;
    for (size_t k = 0; k < count; k++)
        QN_TRY(r->take(r->user, ctx, r->o, (size_t)sample * count + k,
                       qn_session_output(session, first + k)));
    return QN_OK;
}

/* Kept samples serve any number of threads. */
static int lanes_of(const qn_output_check *o)
{
    const qn_source *source = o->j->calibration.source;
    const int workers = o->j->calibration.workers;
    return o->inputs || source->slots <= 0 ? workers : QN_MIN(workers, source->slots);
}

static qn_status run_model(round_trip *r)
{
    qn_context *ctx = r->o->j->ctx;
    const qn_lanes_options options = {.threads = lanes_of(r->o),
                                      .plan = make_plan,
                                      .user = r,
                                      .n_inputs = r->o->j->calibration.n_inputs + r->n_used};
    const qn_pieces pieces = {
        .user = r, .count = r->o->samples, .give = give_inputs, .take = take_outputs};
    qn_lanes *lanes;
    QN_TRY(qn_lanes_create(&lanes, ctx, &options));
    const qn_status status = qn_lanes_run(lanes, &pieces);
    qn_lanes_free(lanes);
    return status;
}

/* ---- The float model ------------------------------------------------------------------------------------------ */

static qn_status keep(void *user, qn_context *ctx, const qn_output_check *o, size_t at,
                      const qn_tensor *output)
{
    qn_output_check *kept = user;
    (void)o;
    if (!qn_dtype_is_float(output->dtype))
        return QN_OK;
    const int64_t count = qn_tensor_count(output);
    double *values = qn_alloc_zero(ctx, (size_t)count + 1, sizeof *values);
    QN_TRY_ALLOC(ctx, values);
    for (int64_t i = 0; i < count; i++)
        values[i] = qn_tensor_f64(output, i);
    kept->values[at] = values;
    kept->counts[at] = count;
    return QN_OK;
}

/* Reading a picture takes as long as running a small network on it. */
static qn_status keep_inputs(qn_output_check *out)
{
    const qn_calibration *c = &out->j->calibration;
    const qn_tensor *read = NULL;
    size_t all = 0, bytes = 0;
    qn_tensor *inputs =
        qn_arena_array(&out->arena, (size_t)out->samples * c->n_inputs + 1, sizeof *inputs);
    QN_TRY_ALLOC(out->j->ctx, inputs);
    for (int64_t i = 0; i < out->samples; i++) {
        QN_TRY(qn_check_cancel(out->j->ctx));
        QN_TRY(c->source->read(c->source->user, out->j->ctx, 0, i, &read));
        for (size_t k = 0; k < c->n_inputs; k++) {
            qn_tensor *kept = &inputs[(size_t)i * c->n_inputs + k];
            if (!qn_tensor_bytes(&bytes, read[k].dtype, read[k].rank, read[k].dims) ||
                bytes > KEPT_BYTES - all)
                return QN_OK;
            all += bytes;
            QN_TRY(qn_tensor_copy(kept, out->j->ctx, &out->arena, &read[k]));
        }
    }
    out->inputs = inputs;
    return QN_OK;
}

qn_status qn_output_check_open(qn_output_check *out, qn_quantize_job *j, int64_t samples)
{
    *out = (qn_output_check){.j = j,
                             .samples = QN_MIN(samples, j->calibration.source->count),
                             .n_outputs = j->calibration.real->graph->n_outputs};
    const size_t all = (size_t)out->samples * out->n_outputs;
    qn_arena_init(&out->arena, &j->ctx->allocator);
    out->values = qn_alloc_zero(j->ctx, all + 1, sizeof *out->values);
    out->counts = qn_alloc_zero(j->ctx, all + 1, sizeof *out->counts);
    out->parts = qn_arena_array(&out->arena, out->n_outputs + 1, sizeof *out->parts);
    if (!out->values || !out->counts || !out->parts)
        return qn_fail_nomem(j->ctx);
    for (size_t k = 0; k < out->n_outputs; k++)
        qn_output_groups_find(&out->parts[k], j->calibration.real->graph->outputs[k]);
    QN_TRY(keep_inputs(out));
    return run_model(&(round_trip){.o = out,
                                   .model = j->calibration.real,
                                   .purpose = QN_PURPOSE_QUANTIZE,
                                   .take = keep,
                                   .user = out});
}

/* ---- Values in between ---------------------------------------------------------------------------------------- */

/* Memory for the starts of every sample, with the shapes that the graph gives them. */
static qn_status make_room(qn_output_check *o, const qn_graph *graph)
{
    const size_t n = o->starts.count, all = (size_t)o->samples * n;
    o->between = qn_arena_array(&o->arena, all + 1, sizeof *o->between);
    QN_TRY_ALLOC(o->j->ctx, o->between);
    for (size_t i = 0; i < all; i++) {
        qn_tensor *made;
        QN_TRY(qn_tensor_create(&made, o->j->ctx, &o->arena,
                                &graph->outputs[o->n_outputs + i % n]->type));
        o->between[i] = *made;
    }
    return QN_OK;
}

/* A sample of another shape has none. */
static qn_status keep_between(void *user, qn_context *ctx, const qn_output_check *o, size_t at,
                              const qn_tensor *output)
{
    qn_tensor *kept = &((qn_output_check *)user)->between[at];
    size_t bytes = 0;
    (void)ctx;
    (void)o;
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

static qn_status run_starts(qn_output_check *o, qn_model *model)
{
    QN_TRY(make_room(o, model->graph));
    QN_TRY(run_model(&(round_trip){.o = o,
                                   .model = model,
                                   .purpose = QN_PURPOSE_QUANTIZE,
                                   .take = keep_between,
                                   .user = o,
                                   .n_extra = o->starts.count}));
    for (size_t i = 0; i < (size_t)o->samples * o->starts.count; i++) {
        if (o->between[i].rank < 0)
            o->starts.count = 0;
    }
    return QN_OK;
}

qn_status qn_output_check_use_prefixes(qn_output_check *o)
{
    const qn_calibration *c = &o->j->calibration;
    qn_model *model;
    if (o->samples < 1 || c->feed.varies)
        return QN_OK;
    QN_TRY(qn_prefix_cache_choose(&o->starts, &model, &o->arena, c->real, &c->graph,
                                  KEPT_BYTES / (size_t)o->samples));
    const qn_status status = o->starts.count ? run_starts(o, model) : QN_OK;
    qn_model_free(model);
    return status;
}

/* ---- Quantized ones --------------------------------------------------------------------------------------------- */

static qn_status run_quantized(const qn_output_check *o, take_fn *take, void *user)
{
    qn_quantize_job *j = o->j;
    round_trip r = {.o = o, .model = j->quantized, .take = take, .user = user};
    r.purpose = QN_PURPOSE_RUN;
    if (!o->starts.count)
        return run_model(&r);
    qn_model *const models[2] = {j->calibration.real, j->quantized};
    size_t *used = qn_alloc_zero(j->ctx, o->starts.count, sizeof *used);
    QN_TRY_ALLOC(j->ctx, used);
    qn_status status =
        qn_prefix_cache_cut(&r.model, used, &r.n_used, &o->starts, models, o->between);
    r.used = used;
    if (status == QN_OK) {
        qn_log(j->ctx, QN_LOG_DEBUG, "%zu of %zu nodes are run, from %zu kept values",
               r.model->graph->n_nodes, j->quantized->graph->n_nodes, r.n_used);
        status = run_model(&r);
        qn_model_free(r.model);
    }
    qn_free(j->ctx, used);
    return status;
}

/* Noise beside signal of one output of one sample; 0 where nothing can be said. */
static qn_status compare(void *user, qn_context *ctx, const qn_output_check *o, size_t at,
                         const qn_tensor *output)
{
    const size_t k = at % o->n_outputs;
    qn_group_sums sums = {.signal = {0}};
    double *ratios = user;
    (void)ctx;
    if (!o->values[at] || qn_tensor_count(output) != o->counts[at])
        return QN_OK;
    qn_tensor real = *output;
    real.dtype = QN_FLOAT64;
    real.data = o->values[at];
    qn_group_sums_add(&sums, &o->parts[k], &real, output,
                      qn_model_output_scale(o->j->quantized, k));
    ratios[k * (size_t)o->samples + at / o->n_outputs] = o->j->settings.profile->fixed_point
                                                             ? qn_group_sums_worst(&sums)
                                                             : qn_group_sums_whole(&sums);
    return QN_OK;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

qn_status qn_output_check_noise(double *noise, const qn_output_check *o)
{
    const size_t n = (size_t)o->samples;
    double *ratios = qn_alloc_zero(o->j->ctx, n * o->n_outputs + 1, sizeof *ratios);
    *noise = 0;
    QN_TRY_ALLOC(o->j->ctx, ratios);
    const qn_status status = run_quantized(o, compare, ratios);
    for (size_t k = 0; k < o->n_outputs && n && status == QN_OK; k++) {
        qsort(ratios + k * n, n, sizeof *ratios, by_size);
        *noise = fmax(*noise, ratios[k * n + (n - 1) * 3 / 4]);
    }
    qn_free(o->j->ctx, ratios);
    return status;
}

/* Sums of |fixed - float| and |float| of one output of one sample. */
typedef struct sums {
    double error, signal;
} sums;

static qn_status add_up(void *user, qn_context *ctx, const qn_output_check *o, size_t at,
                        const qn_tensor *output)
{
    sums *s = (sums *)user + at;
    (void)ctx;
    if (!o->values[at] || qn_tensor_count(output) != o->counts[at])
        return QN_OK;
    const double scale = qn_model_output_scale(o->j->quantized, at % o->n_outputs);
    for (int64_t i = 0; i < o->counts[at]; i++) {
        const double real = o->values[at][i];
        s->signal += fabs(real);
        s->error += fabs(qn_tensor_f64(output, i) * scale - real);
    }
    return QN_OK;
}

qn_status qn_output_check_error(double *error, const qn_output_check *o)
{
    const size_t all = (size_t)o->samples * o->n_outputs;
    sums *each = qn_alloc_zero(o->j->ctx, all + 1, sizeof *each);
    *error = 0;
    QN_TRY_ALLOC(o->j->ctx, each);
    const qn_status status = run_quantized(o, add_up, each);
    for (size_t k = 0; k < o->n_outputs && status == QN_OK; k++) {
        sums total = {0, 0};
        for (size_t at = k; at < all; at += o->n_outputs) {
            total.error += each[at].error;
            total.signal += each[at].signal;
        }
        *error = fmax(*error, total.signal > 0 ? total.error / total.signal : 0);
    }
    qn_free(o->j->ctx, each);
    return status;
}

void qn_output_check_free(qn_output_check *o)
{
    if (!o->j)
        return;
    for (size_t i = 0; o->values && i < (size_t)o->samples * o->n_outputs; i++)
        qn_free(o->j->ctx, o->values[i]);
    qn_free(o->j->ctx, o->values);
    qn_free(o->j->ctx, o->counts);
    qn_arena_free(&o->arena);
}
