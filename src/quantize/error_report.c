/* Errors of outputs and tensors, for the report of a quantization. */
#include <math.h>
#include <stdlib.h>

#include "compare/layer_comparison.h"
#include "quantize/report.h"

enum { WORST = 10 };

typedef struct errors {
    qn_quantize_result *result;
    const qn_calibration *data;
    qn_context *ctx;
    qn_layer_comparison comparison;
    /* [comparison.count]: sums of squares of those that are integers */
    double *signal, *noise;
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
    errors *c = user;
    const size_t i = (size_t)(tensor - c->comparison.at);
    if (side != QN_SIDE_QUANTIZED || tensor->dtype == QN_UNDEFINED || tensor->through)
        return QN_OK;
    add_squares(&c->signal[i], &c->noise[i], tensor->real.data, rows);
    return QN_OK;
}

static void add_outputs(errors *c)
{
    for (size_t i = 0; i < c->n_outputs; i++) {
        const qn_tensor *real = qn_session_output(c->comparison.session[0], i);
        const qn_tensor *quantized = qn_session_output(c->comparison.session[1], i);
        const double scale = qn_model_output_scale(c->result->made.model, i);
        if (!qn_dtype_is_float(real->dtype) || qn_tensor_count(quantized) != qn_tensor_count(real))
            continue;
        qn_group_sums_add(&c->sums[i], &c->groups[i], real, quantized, scale);
        qn_relative_error_add(&c->errors[i], real, quantized, scale);
    }
}

static qn_status run_samples(errors *c, int64_t most)
{
    const qn_sample_source *source = c->data->source;
    const int64_t samples = QN_MIN(most, source->count);
    for (int64_t i = 0; i < samples; i++) {
        const qn_tensor *inputs = NULL;
        QN_TRY(qn_check_cancel(c->ctx));
        QN_TRY(source->read(source->user, c->ctx, 0, i, &inputs));
        QN_TRY(qn_layer_comparison_run(&c->comparison, inputs, c->data->n_inputs, false));
        add_outputs(c);
        qn_progress(c->ctx, "comparison", i + 1, samples);
    }
    return QN_OK;
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
    ratio *ratios = qn_arena_array(&root->report->arena, c->comparison.count + 1, sizeof *ratios);
    QN_TRY_ALLOC(c->ctx, ratios);
    for (size_t i = 0; i < c->comparison.count; i++) {
        if (c->signal[i] > 0)
            ratios[count++] =
                (ratio){c->comparison.at[i].name,
                        c->noise[i] > 0 ? 10 * log10(c->signal[i] / c->noise[i]) : 200};
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
    const size_t tensors = c->comparison.count + 1, outputs = c->n_outputs + 1;
    c->signal = qn_arena_array(arena, tensors, sizeof *c->signal);
    c->noise = qn_arena_array(arena, tensors, sizeof *c->noise);
    c->errors = qn_arena_array(arena, outputs, sizeof *c->errors);
    c->groups = qn_arena_array(arena, outputs, sizeof *c->groups);
    c->sums = qn_arena_array(arena, outputs, sizeof *c->sums);
    return c->signal && c->noise && c->errors && c->groups && c->sums ? QN_OK
                                                                      : qn_fail_nomem(c->ctx);
}

static qn_status compare(qn_item *root, errors *c, int64_t samples)
{
    const qn_graph *graph = c->data->real->graph;
    c->n_outputs = graph->n_outputs;
    QN_TRY(qn_layer_comparison_open(&c->comparison, c->ctx, c->data->real, c->result->made.model,
                                    &c->data->graph, false));
    c->comparison.take = take;
    c->comparison.user = c;
    QN_TRY(make_arrays(c, &root->report->arena));
    for (size_t i = 0; i < c->n_outputs; i++)
        qn_output_groups_find(&c->groups[i], graph->outputs[i]);
    QN_TRY(run_samples(c, samples));
    c->result->noise = find_noise(c);
    qn_item_int(root, "compared_samples", QN_MIN(samples, c->data->source->count));
    report_outputs(root, c);
    return report_worst(root, c);
}

qn_status qn_error_report(qn_item *root, qn_quantize_result *result, const qn_quantize_input *input,
                          int64_t samples)
{
    errors c = {.result = result, .data = input->data, .ctx = input->ctx};
    const qn_status status = compare(root, &c, samples);
    qn_layer_comparison_close(&c.comparison);
    return status;
}
