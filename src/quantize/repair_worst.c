/* Layers that err most, and what helps them. */
#include "quantize/repair_worst.h"

#include <math.h>

#include "compare/layer_comparison.h"
#include "report/errors.h"

enum { SAMPLES = 8 };
static const double nearly = 1.05;

typedef struct repair {
    qn_search *search;
    qn_layers *layers;
    qn_layer_comparison comparison;
    /* [comparison.count] */
    qn_errors *single;
    /* [layers.count] of each one's own, by place */
    double *error;
    /* Error of the outputs. */
    double now;
} repair;

/* ---- Errors of the layers' own --------------------------------------------------------------- */

static qn_status take(void *user, const qn_compared_tensor *tensor, qn_compared_side side,
                      const qn_tensor *rows)
{
    enum { BLOCK = 256 };
    repair *f = user;
    double blocks[2][BLOCK];
    const int64_t count = qn_tensor_count(rows);
    if (side != QN_SIDE_SINGLE || tensor->through)
        return QN_OK;
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t n = QN_MIN(count - first, BLOCK);
        qn_load_f64(blocks[0], tensor->real.dtype, tensor->real.data, first, n);
        qn_load_f64(blocks[1], rows->dtype, rows->data, first, n);
        qn_errors_add(&f->single[tensor - f->comparison.at], blocks[0], blocks[1], n);
    }
    return QN_OK;
}

static qn_status run_samples(repair *f, qn_quantized_model *made)
{
    const qn_calibration *data = f->search->input->data;
    qn_context *ctx = f->search->input->ctx;
    const int64_t samples = QN_MIN(SAMPLES, data->source->count);
    const qn_layer_comparison_options options = {.graph = &data->graph};
    QN_TRY(qn_layer_comparison_open(&f->comparison, ctx, data->real, made->model, &options));
    f->comparison.take = take;
    f->comparison.user = f;
    f->single = qn_arena_array(f->search->arena, f->comparison.count + 1, sizeof *f->single);
    QN_TRY_ALLOC(ctx, f->single);
    for (int64_t i = 0; i < samples; i++) {
        const qn_tensor *inputs = NULL;
        QN_TRY(qn_check_cancel(ctx));
        QN_TRY(data->source->read(data->source->user, ctx, 0, i, &inputs));
        QN_TRY(qn_layer_comparison_run(&f->comparison, inputs, data->n_inputs, true));
        qn_progress(ctx, "errors of layers", i + 1, samples);
    }
    return QN_OK;
}

/* The largest of the tensors that a layer writes; 0: it has no integers. */
static qn_status measure_layers(repair *f, qn_quantized_model *made)
{
    qn_layers *l = f->layers;
    const qn_status status = run_samples(f, made);
    for (size_t i = 0; i < l->count && status == QN_OK; i++) {
        double *error = &f->error[l->at[i].place];
        for (size_t v = 0; v < l->at[i].n_values; v++) {
            const qn_compared_tensor *tensor =
                qn_names_get(&f->comparison.by_name[0], l->at[i].values[v]);
            if (tensor)
                *error = fmax(*error, qn_errors_rmse(&f->single[tensor - f->comparison.at]));
        }
    }
    qn_layer_comparison_close(&f->comparison);
    return status;
}

/* ---- Remedies -------------------------------------------------------------------------------- */

static qn_layer *worst_left(const repair *f, const bool *tried)
{
    qn_layer *worst = NULL;
    for (size_t i = 0; i < f->layers->count; i++) {
        qn_layer *l = &f->layers->at[i];
        if (!tried[l->place] && f->error[l->place] > 0 &&
            (!worst || f->error[l->place] > f->error[worst->place]))
            worst = l;
    }
    return worst;
}

/* What can be done, the cheapest first. */
typedef enum cure { NOTHING, MIN_MAX, PROMOTED, FLOAT, CURES } cure;
static const char *const cure_names[CURES] = {"none: nothing lowers the error of the outputs",
                                              "range of min_max", NULL, "float"};

/* What a layer is promoted to; 0: the target has nothing. */
static int wider(const repair *f)
{
    const qn_quant_settings *s = &f->layers->asked.rules;
    return qn_profile_wider(s->profile, s->bits);
}

static void apply(qn_layer *l, const repair *f, cure c)
{
    l->min_max = c == MIN_MAX;
    l->bits = c == PROMOTED ? wider(f) : c == FLOAT ? QN_LAYER_FLOAT : 0;
}

static qn_status try_cure(double *error, repair *f, qn_layer *l, cure c)
{
    qn_quantized_model tried;
    apply(l, f, c);
    qn_status status = qn_layers_make(&tried, f->layers);
    if (status == QN_OK)
        status = qn_output_check_error(error, &f->search->check, &tried);
    qn_quantized_model_free(&tried);
    return status;
}

/* Another range costs nothing while running: it is taken where it is nearly as good as more
 * bits. */
static qn_status find_cure(cure *out, repair *f, qn_layer *l)
{
    const double before = f->now;
    double error[CURES] = {f->now, INFINITY, INFINITY, INFINITY};
    *out = NOTHING;
    QN_TRY(try_cure(&error[MIN_MAX], f, l, MIN_MAX));
    if (wider(f))
        QN_TRY(try_cure(&error[PROMOTED], f, l, PROMOTED));
    if (fmin(error[MIN_MAX], error[PROMOTED]) >= before)
        QN_TRY(try_cure(&error[FLOAT], f, l, FLOAT));
    for (int c = MIN_MAX; c < CURES; c++) {
        const double least = c > MIN_MAX && *out != NOTHING ? f->now / nearly : f->now;
        if (error[c] < least) {
            *out = (cure)c;
            f->now = error[c];
        }
    }
    apply(l, f, *out);
    return QN_OK;
}

static qn_status remedy(qn_item *table, repair *f, qn_layer *l)
{
    const double before = f->now;
    cure found = NOTHING;
    QN_TRY(find_cure(&found, f, l));
    const char *name = found == PROMOTED ? qn_arena_format(f->search->arena, "%d bits", wider(f))
                                         : cure_names[found];
    QN_TRY_ALLOC(f->search->input->ctx, name);
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "layer", l->node);
    qn_item_real(row, "single_rmse", f->error[l->place], 6);
    qn_item_text(row, "remedy", name);
    qn_item_real(row, "error_before", before, 6);
    qn_item_real(row, "error_after", f->now, 6);
    return QN_OK;
}

/* All float is no quantized model: one layer stays. */
static qn_status remedy_all(repair *f, const qn_quantized_model *made, int64_t count)
{
    qn_layers *l = f->layers;
    bool *tried = qn_arena_array(f->search->arena, l->count + 1, sizeof *tried);
    QN_TRY_ALLOC(f->search->input->ctx, tried);
    qn_item *table = qn_item_table(f->search->report, "fixed_layers");
    QN_TRY(qn_output_check_use(&f->search->check, SAMPLES));
    QN_TRY(qn_output_check_error(&f->now, &f->search->check, made));
    for (int64_t i = 0; i < QN_MIN(count, (int64_t)l->count - 1); i++) {
        qn_layer *worst = worst_left(f, tried);
        if (!worst)
            break;
        tried[worst->place] = true;
        QN_TRY(remedy(table, f, worst));
    }
    return QN_OK;
}

qn_status qn_repair_worst(qn_quantize_result *result, qn_search *s, qn_layers *layers,
                          int64_t count)
{
    repair f = {.search = s, .layers = layers};
    qn_quantized_model repaired;
    layers->asked = result->made.settings;
    for (size_t i = 0; i < layers->count; i++)
        layers->at[i].bits = 0; /* what an earlier search gave them is among what is asked now */
    f.error = qn_arena_array(s->arena, layers->count + 1, sizeof *f.error);
    QN_TRY_ALLOC(s->input->ctx, f.error);
    QN_TRY(measure_layers(&f, &result->made));
    QN_TRY(remedy_all(&f, &result->made, count));
    const qn_status status = qn_layers_make(&repaired, layers);
    qn_quantized_model_move(&result->made, &repaired);
    return status;
}
