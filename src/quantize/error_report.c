/* Errors of outputs and tensors, for the report of a quantization. */
#include <math.h>
#include <stdlib.h>

#include "base/pool.h"
#include "compare/layer_comparison.h"
#include "quantize/report.h"

enum { WORST = 10 };

/* Sums of squares of the tensors that are integers, [comparison.count]. */
typedef struct squares {
    double *signal, *noise;
} squares;

/* What one thread has of its own: a sample's sums wait there for those of the samples before. */
typedef struct lane {
    qn_context *ctx;
    qn_layer_comparison comparison;
    squares sums;
} lane;

typedef struct errors {
    qn_quantize_result *result;
    const qn_calibration *data;
    qn_context *ctx;
    /* What the lanes are forks of. */
    qn_layer_comparison plans;
    lane *lanes;
    int n_lanes;
    int64_t samples;
    squares total;
    /* [n_outputs] */
    qn_relative_error *errors;
    qn_output_groups *groups;
    qn_group_sums *sums;
    size_t n_outputs;
} errors;

/* ---- Values as they pass --------------------------------------------------------------------- */

/* In lanes that do not wait for each other, always the same. */
static void add_squares(double *signal, double *noise, const float *real, const qn_tensor *rows)
{
    enum { LANES = 8 };
    const float *quantized = rows->data;
    const int64_t count = qn_tensor_count(rows), whole = count - count % LANES;
    double s[LANES] = {0}, n[LANES] = {0};
    for (int64_t e = 0; e < count; e += LANES) {
        const int64_t lanes = e < whole ? LANES : count - e;
        for (int64_t k = 0; k < lanes; k++) {
            const double l = (double)real[e + k], d = (double)quantized[e + k] - l;
            s[k] += l * l;
            n[k] += d * d;
        }
    }
    for (int k = 0; k < LANES; k++) {
        *signal += s[k];
        *noise += n[k];
    }
}

static qn_status take(void *user, const qn_compared_tensor *tensor, qn_compared_side side,
                      const qn_tensor *rows)
{
    const lane *l = user;
    const size_t i = (size_t)(tensor - l->comparison.at);
    if (side != QN_SIDE_QUANTIZED || tensor->dtype == QN_UNDEFINED || tensor->through)
        return QN_OK;
    add_squares(&l->sums.signal[i], &l->sums.noise[i], tensor->real.data, rows);
    return QN_OK;
}

static void add_outputs(errors *c, const qn_layer_comparison *comparison)
{
    for (size_t i = 0; i < c->n_outputs; i++) {
        const qn_tensor *real = qn_session_output(comparison->session[0], i);
        const qn_tensor *quantized = qn_session_output(comparison->session[1], i);
        const double scale = qn_model_output_scale(c->result->made.model, i);
        if (!qn_dtype_is_float(real->dtype) || qn_tensor_count(quantized) != qn_tensor_count(real))
            continue;
        qn_group_sums_add(&c->sums[i], &c->groups[i], real, quantized, scale);
        qn_relative_error_add(&c->errors[i], real, quantized, scale);
    }
}

/* ---- Samples side by side -------------------------------------------------------------------- */

static qn_status make_squares(squares *out, qn_context *ctx, qn_arena *arena, size_t count)
{
    out->signal = qn_arena_array(arena, count + 1, sizeof *out->signal);
    out->noise = qn_arena_array(arena, count + 1, sizeof *out->noise);
    return out->signal && out->noise ? QN_OK : qn_fail_nomem(ctx);
}

/* With a context of its own, since lanes fail side by side. */
static qn_status open_lane(const errors *c, lane *l, qn_arena *arena)
{
    QN_TRY(qn_context_create_child(&l->ctx, c->ctx));
    const qn_status status = qn_layer_comparison_fork(&l->comparison, l->ctx, &c->plans);
    if (status != QN_OK)
        return qn_fail(c->ctx, status, "%s", qn_context_error(l->ctx));
    l->comparison.take = take;
    l->comparison.user = l;
    return make_squares(&l->sums, c->ctx, arena, l->comparison.count);
}

static qn_status open_lanes(errors *c, qn_arena *arena, int64_t samples)
{
    const int slots = c->data->source->slots;
    const int64_t lanes = slots > 0 ? QN_MIN(c->data->workers, slots) : c->data->workers;
    c->samples = QN_MIN(samples, c->data->source->count);
    c->n_lanes = (int)QN_MAX(QN_MIN(lanes, c->samples), 1);
    const qn_layer_comparison_options options = {
        .graph = &c->data->graph, .threads = c->n_lanes > 1 ? 1 : 0, .only_plans = true};
    QN_TRY(qn_layer_comparison_open(&c->plans, c->ctx, c->data->real, c->result->made.model,
                                    &options));
    c->lanes = qn_arena_array(arena, (size_t)c->n_lanes, sizeof *c->lanes);
    QN_TRY_ALLOC(c->ctx, c->lanes);
    for (int i = 0; i < c->n_lanes; i++)
        QN_TRY(open_lane(c, &c->lanes[i], arena));
    return make_squares(&c->total, c->ctx, arena, c->plans.count);
}

static void close_lanes(errors *c)
{
    for (int i = c->n_lanes; c->lanes && i-- > 0;) {
        qn_layer_comparison_close(&c->lanes[i].comparison);
        qn_context_free(c->lanes[i].ctx);
    }
    qn_layer_comparison_close(&c->plans);
}

static qn_context *context_of(void *user, int slot)
{
    return ((errors *)user)->lanes[slot].ctx;
}

static qn_status run_sample(void *user, int slot, int64_t sample)
{
    const errors *c = user;
    lane *l = &c->lanes[slot];
    const qn_sample_source *source = c->data->source;
    const qn_tensor *inputs = NULL;
    for (size_t i = 0; i < l->comparison.count; i++)
        l->sums.signal[i] = l->sums.noise[i] = 0;
    QN_TRY(qn_check_cancel(l->ctx));
    QN_TRY(source->read(source->user, l->ctx, slot, sample, &inputs));
    return qn_layer_comparison_run(&l->comparison, inputs, c->data->n_inputs, false);
}

/* In the order of the samples, so that sums do not depend on the threads. */
static qn_status add_sample(void *user, int slot, int64_t sample)
{
    errors *c = user;
    const lane *l = &c->lanes[slot];
    for (size_t i = 0; i < l->comparison.count; i++) {
        c->total.signal[i] += l->sums.signal[i];
        c->total.noise[i] += l->sums.noise[i];
    }
    add_outputs(c, &l->comparison);
    qn_progress(c->ctx, "comparison", sample + 1, c->samples);
    return QN_OK;
}

static qn_status run_samples(errors *c)
{
    const qn_pool_work work = {.user = c,
                               .count = c->samples,
                               .threads = c->n_lanes,
                               .openmp = true,
                               .ordered = true,
                               .context = context_of,
                               .run = run_sample,
                               .finish = add_sample};
    return qn_pool_run(c->ctx, &work);
}

/* ---- Reporting ------------------------------------------------------------------------------- */

typedef struct ratio {
    const char *name;
    double decibel;
} ratio;

static int by_decibel(const void *a, const void *b)
{
    const ratio *x = a, *y = b;
    return (x->decibel > y->decibel) - (x->decibel < y->decibel);
}

static qn_status report_worst(qn_item *root, const errors *c)
{
    size_t count = 0;
    const qn_layer_comparison *comparison = &c->plans;
    const squares *sums = &c->total;
    ratio *ratios = qn_arena_array(&root->report->arena, comparison->count + 1, sizeof *ratios);
    QN_TRY_ALLOC(c->ctx, ratios);
    for (size_t i = 0; i < comparison->count; i++) {
        if (sums->signal[i] > 0)
            ratios[count++] =
                (ratio){comparison->at[i].name,
                        sums->noise[i] > 0 ? 10 * log10(sums->signal[i] / sums->noise[i]) : 200};
    }
    qsort(ratios, count, sizeof *ratios, by_decibel);
    qn_item *worst = qn_item_table(root, "worst_tensors");
    for (size_t i = 0; i < QN_MIN(count, WORST); i++) {
        qn_item *row = qn_item_row(worst);
        qn_item_text(row, "tensor", ratios[i].name);
        qn_item_real(row, "sqnr_db", ratios[i].decibel, 2);
    }
    return QN_OK;
}

static void report_outputs(qn_item *root, const errors *c)
{
    qn_item *outputs = qn_item_table(root, "outputs");
    for (size_t i = 0; i < c->n_outputs; i++) {
        const double error = qn_relative_error_value(c->errors[i]);
        qn_item *row = qn_item_row(outputs);
        qn_item_text(row, "output", c->data->real->graph->outputs[i]->name);
        qn_item_real(row, "relative_error", c->errors[i].size > 0 ? error : 0, 6);
    }
}

/* The noise of the worst group of the worst output. */
static double find_noise(const errors *c)
{
    double worst = 0;
    for (size_t i = 0; i < c->n_outputs; i++)
        worst = fmax(worst, qn_group_sums_worst(&c->sums[i]));
    qn_log(c->ctx, QN_LOG_INFO, "noise of the outputs: %.4f of the signal", worst);
    return worst;
}

static qn_status make_arrays(errors *c, qn_arena *arena)
{
    const qn_graph *graph = c->data->real->graph;
    const size_t outputs = graph->n_outputs + 1;
    c->n_outputs = graph->n_outputs;
    c->errors = qn_arena_array(arena, outputs, sizeof *c->errors);
    c->groups = qn_arena_array(arena, outputs, sizeof *c->groups);
    c->sums = qn_arena_array(arena, outputs, sizeof *c->sums);
    if (!c->errors || !c->groups || !c->sums)
        return qn_fail_nomem(c->ctx);
    for (size_t i = 0; i < c->n_outputs; i++)
        qn_output_groups_find(&c->groups[i], graph->outputs[i]);
    return QN_OK;
}

static qn_status compare(qn_item *root, errors *c, int64_t samples)
{
    QN_TRY(open_lanes(c, &root->report->arena, samples));
    QN_TRY(make_arrays(c, &root->report->arena));
    QN_TRY(run_samples(c));
    c->result->noise = find_noise(c);
    qn_item_int(root, "compared_samples", c->samples);
    report_outputs(root, c);
    return report_worst(root, c);
}

qn_status qn_error_report(qn_item *root, qn_quantize_result *result, const qn_quantize_input *input,
                          int64_t samples)
{
    errors c = {.result = result, .data = input->data, .ctx = input->ctx};
    const qn_status status = compare(root, &c, samples);
    close_lanes(&c);
    return status;
}
