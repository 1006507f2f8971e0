/* A quantized model against the float one, for the report of a quantization. */
#include <math.h>
#include <stdlib.h>

#include "compare/layer_comparison.h"
#include "compare/output_groups.h"
#include "ops/eval.h"
#include "quantize/job.h"

enum { WORST = 10 };

typedef struct comparison {
    qn_quantize_job *j;
    qn_layer_comparison twins;
    double *signal, *noise;  /* [twins.count]: sums of squares of those that are integers */
    double *error, *size;    /* [outputs] */
    qn_output_groups *parts; /* [outputs] */
    qn_group_sums *sums;     /* [outputs] */
} comparison;

/* ---- Values as they pass ------------------------------------------------------------------------------------ */

/* In lanes that do not wait for each other, always the same. */
static void add_squares(double *signal, double *noise, const float *real, const qn_tensor *rows)
{
    enum { LANES = 8 };
    const float *fixed = rows->data;
    const int64_t count = qn_tensor_count(rows), whole = count - count % LANES;
    double s[LANES] = {0}, n[LANES] = {0};
    for (int64_t e = 0; e < count; e += LANES) {
        const int64_t lanes = e < whole ? LANES : count - e;
        for (int64_t k = 0; k < lanes; k++) {
            const double l = (double)real[e + k], d = (double)fixed[e + k] - l;
            s[k] += l * l;
            n[k] += d * d;
        }
    }
    for (int k = 0; k < LANES; k++) {
        *signal += s[k];
        *noise += n[k];
    }
}

static qn_status take(void *user, const qn_compared_tensor *twin, qn_compared_side side,
                      const qn_tensor *rows)
{
    comparison *c = user;
    const size_t i = (size_t)(twin - c->twins.at);
    if (side != QN_SIDE_QUANTIZED || twin->dtype == QN_UNDEFINED || twin->through)
        return QN_OK;
    add_squares(&c->signal[i], &c->noise[i], twin->real.data, rows);
    return QN_OK;
}

static void add_outputs(comparison *c, size_t n_outputs)
{
    for (size_t i = 0; i < n_outputs; i++) {
        const qn_tensor *real = qn_session_output(c->twins.session[0], i);
        const qn_tensor *fixed = qn_session_output(c->twins.session[1], i);
        const int64_t count = qn_tensor_count(real);
        const double scale = qn_model_output_scale(c->j->quantized, i);
        if (!qn_dtype_is_float(real->dtype) || qn_tensor_count(fixed) != count)
            continue;
        qn_group_sums_add(&c->sums[i], &c->parts[i], real, fixed, scale);
        for (int64_t e = 0; e < count; e++) {
            c->size[i] += fabs(qn_tensor_f64(real, e));
            c->error[i] += fabs(qn_tensor_f64(fixed, e) * scale - qn_tensor_f64(real, e));
        }
    }
}

static qn_status run_samples(comparison *c, int64_t most)
{
    const qn_calibration *data = &c->j->calibration;
    const int64_t samples = QN_MIN(most, data->source->count);
    for (int64_t i = 0; i < samples; i++) {
        const qn_tensor *inputs = NULL;
        QN_TRY(qn_check_cancel(c->j->ctx));
        QN_TRY(data->source->read(data->source->user, c->j->ctx, 0, i, &inputs));
        QN_TRY(qn_layer_comparison_run(&c->twins, inputs, data->n_inputs, false));
        add_outputs(c, data->real->graph->n_outputs);
        qn_progress(c->j->ctx, "comparison", i + 1, samples);
    }
    return QN_OK;
}

/* ---- Telling ------------------------------------------------------------------------------------------------- */

typedef struct ratio {
    const char *name;
    double decibel;
} ratio;

static int by_decibel(const void *a, const void *b)
{
    const ratio *x = a, *y = b;
    return (x->decibel > y->decibel) - (x->decibel < y->decibel);
}

static qn_status tell_worst(qn_item *root, const comparison *c)
{
    size_t count = 0;
    ratio *ratios = qn_arena_array(&root->report->arena, c->twins.count + 1, sizeof *ratios);
    QN_TRY_ALLOC(c->j->ctx, ratios);
    for (size_t i = 0; i < c->twins.count; i++) {
        if (c->signal[i] > 0)
            ratios[count++] =
                (ratio){c->twins.at[i].name,
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

static void tell_outputs(qn_item *root, const comparison *c)
{
    const qn_graph *graph = c->j->calibration.real->graph;
    qn_item *outputs = qn_item_table(root, "outputs");
    for (size_t i = 0; i < graph->n_outputs; i++) {
        qn_item *row = qn_item_row(outputs);
        qn_item_text(row, "output", graph->outputs[i]->name);
        qn_item_real(row, "relative_error", c->size[i] > 0 ? c->error[i] / c->size[i] : 0, 6);
    }
}

/* Of the worst part of the worst output. */
static double find_noise(const comparison *c)
{
    double worst = 0;
    for (size_t i = 0; i < c->j->calibration.real->graph->n_outputs; i++)
        worst = fmax(worst, qn_group_sums_worst(&c->sums[i]));
    qn_log(c->j->ctx, QN_LOG_INFO, "noise of the outputs: %.4f of the signal", worst);
    return worst;
}

static qn_status compare(qn_item *root, comparison *c, int64_t samples)
{
    qn_arena *arena = &root->report->arena;
    qn_calibration *data = &c->j->calibration;
    const size_t n_outputs = data->real->graph->n_outputs;
    QN_TRY(qn_layer_comparison_open(&c->twins, c->j->ctx, data->real, c->j->quantized, &data->graph,
                                    false));
    c->twins.take = take;
    c->twins.user = c;
    c->signal = qn_arena_array(arena, c->twins.count + 1, sizeof *c->signal);
    c->noise = qn_arena_array(arena, c->twins.count + 1, sizeof *c->noise);
    c->error = qn_arena_array(arena, n_outputs + 1, sizeof *c->error);
    c->size = qn_arena_array(arena, n_outputs + 1, sizeof *c->size);
    c->parts = qn_arena_array(arena, n_outputs + 1, sizeof *c->parts);
    c->sums = qn_arena_array(arena, n_outputs + 1, sizeof *c->sums);
    if (!c->signal || !c->noise || !c->error || !c->size || !c->parts || !c->sums)
        return qn_fail_nomem(c->j->ctx);
    for (size_t i = 0; i < n_outputs; i++)
        qn_output_groups_find(&c->parts[i], data->real->graph->outputs[i]);
    QN_TRY(run_samples(c, samples));
    c->j->noise = find_noise(c);
    tell_outputs(root, c);
    return tell_worst(root, c);
}

qn_status qn_job_report_errors(qn_item *root, qn_quantize_job *j, int64_t samples)
{
    comparison c = {.j = j};
    const qn_status status = compare(root, &c, samples);
    qn_layer_comparison_close(&c.twins);
    return status;
}
