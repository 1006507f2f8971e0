#include "quantize/repair_worst.h"

#include <math.h>

#include "compare/layer_comparison.h"
#include "report/errors.h"

enum { SAMPLES = 8 };
static const double nearly = 1.05;

typedef struct fix {
    qn_layers *layers;
    qn_layer_comparison twins;
    qn_errors *single; /* [twins.count] */
    double *error;     /* [layers.count] of each one's own, by place */
    qn_output_check original;
    double now; /* error of the outputs */
} fix;

/* ---- Errors of the layers' own ---------------------------------------------------------------------------------- */

static qn_status take(void *user, const qn_compared_tensor *twin, qn_compared_side side,
                      const qn_tensor *rows)
{
    enum { BLOCK = 256 };
    fix *f = user;
    double blocks[2][BLOCK];
    const int64_t count = qn_tensor_count(rows);
    if (side != QN_SIDE_SINGLE || twin->through)
        return QN_OK;
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t n = QN_MIN(count - first, BLOCK);
        qn_load_f64(blocks[0], twin->real.dtype, twin->real.data, first, n);
        qn_load_f64(blocks[1], rows->dtype, rows->data, first, n);
        qn_errors_add(&f->single[twin - f->twins.at], blocks[0], blocks[1], n);
    }
    return QN_OK;
}

static qn_status run_samples(fix *f)
{
    qn_quantize_job *j = f->layers->j;
    const qn_calibration *c = &j->calibration;
    const int64_t samples = QN_MIN(SAMPLES, c->source->count);
    QN_TRY(qn_layer_comparison_open(&f->twins, j->ctx, c->real, j->quantized, &c->graph, false));
    f->twins.take = take;
    f->twins.user = f;
    f->single = qn_arena_array(&j->arena, f->twins.count + 1, sizeof *f->single);
    QN_TRY_ALLOC(j->ctx, f->single);
    for (int64_t i = 0; i < samples; i++) {
        const qn_tensor *inputs = NULL;
        QN_TRY(qn_check_cancel(j->ctx));
        QN_TRY(c->source->read(c->source->user, j->ctx, 0, i, &inputs));
        QN_TRY(qn_layer_comparison_run(&f->twins, inputs, c->n_inputs, true));
        qn_progress(j->ctx, "errors of layers", i + 1, samples);
    }
    return QN_OK;
}

/* The largest of the tensors that a layer writes; 0: it has no integers. */
static qn_status measure_layers(fix *f)
{
    qn_layers *l = f->layers;
    const qn_status status = run_samples(f);
    for (size_t i = 0; i < l->count && status == QN_OK; i++) {
        double *error = &f->error[l->at[i].place];
        for (size_t v = 0; v < l->at[i].n_values; v++) {
            const qn_compared_tensor *twin = qn_names_get(&f->twins.by_name[0], l->at[i].values[v]);
            if (twin)
                *error = fmax(*error, qn_errors_rmse(&f->single[twin - f->twins.at]));
        }
    }
    qn_layer_comparison_close(&f->twins);
    return status;
}

/* ---- Remedies ---------------------------------------------------------------------------------------------------- */

static qn_layer *worst_left(const fix *f, const bool *tried)
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
typedef enum cure { NOTHING, UNCUT, WIDE, FLOAT, CURES } cure;
static const char *const cure_names[CURES] = {"none: nothing lowers the error of the outputs",
                                              "range of min_max", "16 bits", "float"};

static void apply(qn_layer *l, cure c)
{
    l->uncut = c == UNCUT;
    l->bits = c == WIDE ? 16 : c == FLOAT ? 32 : 0;
}

static qn_status try_cure(double *error, fix *f, qn_layer *l, cure c)
{
    apply(l, c);
    QN_TRY(qn_layers_make(f->layers));
    return qn_output_check_error(error, &f->original);
}

/* Another range costs nothing while running: it is taken where it is nearly as good as 16 bits. */
static qn_status find_cure(cure *out, fix *f, qn_layer *l)
{
    const qn_quant_settings *s = &f->layers->j->settings;
    const double before = f->now;
    double error[CURES] = {f->now, INFINITY, INFINITY, INFINITY};
    *out = NOTHING;
    QN_TRY(try_cure(&error[UNCUT], f, l, UNCUT));
    if (qn_profile_wider(s->profile, s->bits))
        QN_TRY(try_cure(&error[WIDE], f, l, WIDE));
    if (fmin(error[UNCUT], error[WIDE]) >= before)
        QN_TRY(try_cure(&error[FLOAT], f, l, FLOAT));
    for (int c = UNCUT; c < CURES; c++) {
        const double least = c > UNCUT && *out != NOTHING ? f->now / nearly : f->now;
        if (error[c] < least) {
            *out = (cure)c;
            f->now = error[c];
        }
    }
    apply(l, *out);
    return QN_OK;
}

static qn_status remedy(qn_item *table, fix *f, qn_layer *l)
{
    const double before = f->now;
    cure found = NOTHING;
    QN_TRY(find_cure(&found, f, l));
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "layer", l->node);
    qn_item_real(row, "single_rmse", f->error[l->place], 6);
    qn_item_text(row, "remedy", cure_names[found]);
    qn_item_real(row, "error_before", before, 6);
    qn_item_real(row, "error_after", f->now, 6);
    return QN_OK;
}

/* All float is no quantized model: one layer stays. */
static qn_status remedy_all(qn_item *root, fix *f, int64_t count)
{
    qn_layers *l = f->layers;
    bool *tried = qn_arena_array(&l->j->arena, l->count + 1, sizeof *tried);
    QN_TRY_ALLOC(l->j->ctx, tried);
    qn_item *table = qn_item_table(root, "fixed_layers");
    QN_TRY(qn_output_check_error(&f->now, &f->original));
    for (int64_t i = 0; i < QN_MIN(count, (int64_t)l->count - 1); i++) {
        qn_layer *worst = worst_left(f, tried);
        if (!worst)
            break;
        tried[worst->place] = true;
        QN_TRY(remedy(table, f, worst));
    }
    return qn_layers_make(l);
}

qn_status qn_repair_worst(qn_item *root, qn_layers *layers, int64_t count)
{
    qn_quantize_job *j = layers->j;
    fix f = {.layers = layers};
    layers->asked = j->settings;
    f.error = qn_arena_array(&j->arena, layers->count + 1, sizeof *f.error);
    QN_TRY_ALLOC(j->ctx, f.error);
    QN_TRY(measure_layers(&f));
    qn_status status = qn_output_check_open(&f.original, j, SAMPLES);
    if (status == QN_OK)
        status = remedy_all(root, &f, count);
    qn_output_check_free(&f.original);
    return status;
}
