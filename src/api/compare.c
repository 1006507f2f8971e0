/* A quantized model against the float one: error of outputs, signal-to-noise ratio of tensors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/quantize.h"
#include "ops/eval.h"

enum { WORST = 10 };

/* One tensor in both models. */
typedef struct pair {
    const char *name;
    const qn_qparams *params;
    const float *factor; /* of channels; NULL: none */
    int32_t axis;
    float *real; /* of the sample at hand, row-major */
    int64_t count;
    double signal, noise; /* sums of squares */
} pair;

typedef struct comparison {
    qn_context *ctx;
    const qn_compare_options *options;
    const qn_model *quantized;
    pair *pairs;
    qn_names by_real, by_integer; /* pair of a value */
    qn_plan *plan[2];
    qn_session *session[2]; /* float, quantized */
    double *error, *size;   /* of outputs */
    qn_tensor scratch;      /* the observed value, row-major */
    size_t scratch_bytes;
} comparison;

/* ---- Values as they pass --------------------------------------------------------------------------------- */

/* The observed value in row-major order; valid until the next one. */
static qn_status rows_of(const void **out, comparison *c, const qn_observation *seen)
{
    size_t bytes;
    if (!qn_tensor_bytes(&bytes, seen->tensor->dtype, seen->tensor->rank, seen->tensor->dims))
        return qn_fail_nomem(c->ctx);
    if (bytes > c->scratch_bytes) {
        qn_free(c->ctx, c->scratch.data);
        c->scratch_bytes = 0;
        c->scratch.data = qn_alloc(c->ctx, bytes);
        if (!c->scratch.data)
            return qn_fail_bytes(c->ctx, bytes, "a copy of tensor '%s'", seen->value->name);
        c->scratch_bytes = bytes;
    }
    const int64_t samples = seen->tensor->rank > 0 ? seen->tensor->dims[0] : 1;
    const qn_laid_out from = {seen->tensor->data, seen->layout, seen->stride};
    const qn_laid_out to = {c->scratch.data, QN_ROWS, samples > 0 ? bytes / (size_t)samples : 0};
    qn_layout_convert(&to, &from, seen->tensor);
    *out = c->scratch.data;
    return QN_OK;
}

static qn_status keep_real(void *user, const qn_observation *seen)
{
    comparison *c = user;
    const void *rows;
    pair *p = qn_names_get(&c->by_real, seen->value->name);
    const int64_t count = qn_tensor_count(seen->tensor);
    if (!p || seen->tensor->dtype != QN_FLOAT32)
        return QN_OK;
    if (p->count != count) {
        qn_free(c->ctx, p->real);
        p->count = 0;
        p->real = qn_alloc_zero(c->ctx, (size_t)count + 1, sizeof *p->real);
        QN_TRY_ALLOC(c->ctx, p->real);
        p->count = count;
    }
    QN_TRY(rows_of(&rows, c, seen));
    memcpy(p->real, rows, (size_t)count * sizeof *p->real);
    return QN_OK;
}

static qn_status compare_integers(void *user, const qn_observation *seen)
{
    comparison *c = user;
    const void *rows;
    int64_t block[256];
    pair *p = qn_names_get(&c->by_integer, seen->value->name);
    const int64_t count = qn_tensor_count(seen->tensor);
    if (!p || p->count != count || seen->tensor->dtype != p->params->dtype)
        return QN_OK;
    QN_TRY(rows_of(&rows, c, seen));
    int64_t channels = 1, inner = 1;
    if (p->factor) {
        channels = seen->tensor->dims[p->axis];
        for (int32_t d = p->axis + 1; d < seen->tensor->rank; d++)
            inner *= seen->tensor->dims[d];
    }
    for (int64_t first = 0; first < count; first += (int64_t)QN_COUNT_OF(block)) {
        const int64_t n = QN_MIN(count - first, (int64_t)QN_COUNT_OF(block));
        qn_load_i64(block, p->params->dtype, rows, first, n);
        for (int64_t i = 0; i < n; i++) {
            const double real = (double)p->real[first + i];
            const float by = p->factor ? p->factor[(first + i) / inner % channels] : 1;
            const double fixed =
                (double)(block[i] - p->params->zero[0]) * (double)p->params->scale[0] * (double)by;
            p->signal += real * real;
            p->noise += (fixed - real) * (fixed - real);
        }
    }
    return QN_OK;
}

/* ---- Plans ------------------------------------------------------------------------------------------------ */

static bool is_named(const void *user, const qn_value *value)
{
    return qn_names_get(user, value->name) != NULL;
}

static qn_status make_pairs(comparison *c, qn_arena *arena, const qn_model *quantized)
{
    const qn_compare_options *o = c->options;
    c->pairs = qn_arena_array(arena, o->n_tensors + 1, sizeof *c->pairs);
    QN_TRY_ALLOC(c->ctx, c->pairs);
    for (size_t i = 0; i < o->n_tensors; i++) {
        const qn_compare_tensor *t = &o->tensors[i];
        const qn_value *value = qn_graph_value(quantized->graph, t->name);
        const char *integers = qn_arena_format(arena, "%s_QuantizeLinear_Output", t->name);
        QN_TRY_ALLOC(c->ctx, integers);
        if (!value || !value->qparams)
            continue;
        c->pairs[i] =
            (pair){.name = t->name, .params = value->qparams, .factor = t->factor, .axis = t->axis};
        QN_TRY(qn_names_set(&c->by_real, c->pairs[i].name, &c->pairs[i]));
        QN_TRY(qn_names_set(&c->by_integer, integers, &c->pairs[i]));
    }
    return QN_OK;
}

static qn_status make_session(comparison *c, int which, qn_model *model)
{
    const qn_plan_options options = {.graph = *c->options->graph};
    /* Direct, so that what the comparison decides does not depend on the number of threads. */
    const qn_watch watch = {.purpose = which ? QN_PURPOSE_RUN : QN_PURPOSE_QUANTIZE,
                            .direct = true,
                            .observe = is_named,
                            .user = which ? &c->by_integer : &c->by_real};
    QN_TRY(qn_plan_create_watched(&c->plan[which], c->ctx, model, &options, &watch));
    return qn_session_create(&c->session[which], c->ctx, c->plan[which]);
}

/* ---- Running ---------------------------------------------------------------------------------------------- */

static void compare_outputs(comparison *c, size_t n_outputs)
{
    for (size_t i = 0; i < n_outputs; i++) {
        const qn_tensor *real = qn_session_output(c->session[0], i);
        const qn_tensor *fixed = qn_session_output(c->session[1], i);
        const int64_t count = qn_tensor_count(real);
        const double scale = qn_model_output_scale(c->quantized, i);
        if (!qn_dtype_is_float(real->dtype) || qn_tensor_count(fixed) != count)
            continue;
        for (int64_t e = 0; e < count; e++) {
            c->size[i] += fabs(qn_tensor_f64(real, e));
            c->error[i] += fabs(qn_tensor_f64(fixed, e) * scale - qn_tensor_f64(real, e));
        }
    }
}

static qn_status run_samples(comparison *c, size_t n_outputs)
{
    const qn_source *source = c->options->source;
    const qn_session_hooks hooks[2] = {{.user = c, .seen = keep_real},
                                       {.user = c, .seen = compare_integers}};
    const int64_t samples = QN_MIN(c->options->samples, source->count);
    for (int64_t i = 0; i < samples; i++) {
        QN_TRY(qn_check_cancel(c->ctx));
        const qn_tensor *inputs = NULL;
        QN_TRY(source->read(source->user, c->ctx, 0, i, &inputs));
        for (int which = 0; which < 2; which++)
            QN_TRY(qn_session_run_hooked(c->session[which], inputs, c->options->n_inputs,
                                         &hooks[which]));
        compare_outputs(c, n_outputs);
        qn_progress(c->ctx, "comparison", i + 1, samples);
    }
    return QN_OK;
}

/* ---- Telling ---------------------------------------------------------------------------------------------- */

static double decibel(const pair *p)
{
    return p->noise > 0 ? 10 * log10(p->signal / p->noise) : 200;
}

static int by_decibel(const void *a, const void *b)
{
    const double x = decibel(a), y = decibel(b);
    return (x > y) - (x < y);
}

static void tell(qn_item *root, comparison *c, const qn_model *real)
{
    const qn_graph *graph = real->graph;
    qn_item *outputs = qn_item_table(root, "outputs");
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const double error = c->size[i] > 0 ? c->error[i] / c->size[i] : 0;
        qn_item *row = qn_item_row(outputs);
        qn_item_text(row, "output", graph->outputs[i]->name);
        qn_item_real(row, "relative_error", error, 6);
        if (c->options->worst)
            *c->options->worst = QN_MAX(*c->options->worst, error);
    }
    qsort(c->pairs, c->options->n_tensors, sizeof *c->pairs, by_decibel);
    qn_item *worst = qn_item_table(root, "worst_tensors");
    int left = WORST;
    for (size_t i = 0; i < c->options->n_tensors && left > 0; i++) {
        const pair *p = &c->pairs[i];
        if (!p->name || !(p->signal > 0))
            continue;
        qn_item *row = qn_item_row(worst);
        qn_item_text(row, "tensor", p->name);
        qn_item_real(row, "sqnr_db", decibel(p), 2);
        left--;
    }
}

static qn_status compare(qn_item *root, comparison *c, qn_model *real, qn_model *quantized)
{
    qn_arena *arena = &root->report->arena;
    const size_t n_outputs = real->graph->n_outputs;
    c->error = qn_arena_array(arena, n_outputs + 1, sizeof *c->error);
    c->size = qn_arena_array(arena, n_outputs + 1, sizeof *c->size);
    if (!c->error || !c->size)
        return qn_fail_nomem(c->ctx);
    QN_TRY(make_pairs(c, arena, quantized));
    QN_TRY(make_session(c, 0, real));
    QN_TRY(make_session(c, 1, quantized));
    QN_TRY(run_samples(c, n_outputs));
    tell(root, c, real);
    return QN_OK;
}

qn_status qn_compare_models(qn_item *root, qn_context *ctx, qn_model *real, qn_model *quantized,
                            const qn_compare_options *options)
{
    comparison c = {.ctx = ctx, .options = options, .quantized = quantized};
    qn_names_init(&c.by_real, ctx);
    qn_names_init(&c.by_integer, ctx);
    const qn_status status = compare(root, &c, real, quantized);
    for (size_t i = 0; c.pairs && i < options->n_tensors; i++)
        qn_free(ctx, c.pairs[i].real);
    for (int which = 0; which < 2; which++) {
        qn_session_free(c.session[which]);
        qn_plan_free(c.plan[which]);
    }
    qn_free(ctx, c.scratch.data);
    qn_names_free(&c.by_real);
    qn_names_free(&c.by_integer);
    return status;
}
