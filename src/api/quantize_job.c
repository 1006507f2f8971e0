/* A quantization step by step: passes and rules, statistics, parameters and nodes. */
#include <string.h>

#include "api/quantize.h"
#include "ops/clone.h"
#include "ops/infer.h"
#include "quant/dynamic.h"

/* The least KL to float on the classifiers that this was tried with. */
#define DEFAULT_METHOD "mse"

void qn_job_init(qn_quantize_job *j, qn_context *ctx, const qn_quantize_options *options)
{
    static const qn_quantize_options defaults = QN_QUANTIZE_OPTIONS_INIT;
    *j = (qn_quantize_job){.ctx = ctx, .options = options ? options : &defaults};
    qn_arena_init(&j->arena, &ctx->allocator);
}

/* ---- Ready to be quantized -------------------------------------------------------------------------------- */

static qn_status settings_of(qn_quant_settings *out, qn_context *ctx, const qn_quantize_options *o)
{
    *out = (qn_quant_settings){.bits = o->bits ? o->bits : 8,
                               .keep_float = o->keep_float,
                               .n_float = o->n_float,
                               .widths = o->widths,
                               .n_widths = o->n_widths,
                               .dynamic = o->dynamic != 0};
    if (out->bits != 8 && out->bits != 16)
        return qn_fail(ctx, QN_E_INVALID, "%d bits: it must be 8 or 16", out->bits);
    return qn_profile_find(&out->profile, ctx, o->target);
}

static qn_status choose_refinements(qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    j->params = (qn_param_options){.range = QN_RANGE_OPTIONS_INIT,
                                   .look_through = o->look_through != 0,
                                   .clip_weights = !o->no_weight_clipping,
                                   .correct_bias = !o->no_bias_correction};
    if (o->percentile > 0)
        j->params.range.percentile = o->percentile;
    return qn_method_find(&j->params.method, j->ctx, o->method ? o->method : DEFAULT_METHOD);
}

/* A fresh copy of the float graph, and what the rules say of it. */
static qn_status apply_rules(qn_quantize_job *j)
{
    qn_quantizer_free(j->quantizer);
    qn_model_free(j->quantized);
    j->quantizer = NULL;
    j->quantized = NULL;
    QN_TRY(qn_model_clone(&j->quantized, j->ctx, j->calibration.real));
    QN_TRY(qn_graph_infer(j->quantized->graph));
    return qn_quantizer_create(&j->quantizer, j->quantized, &j->settings);
}

qn_status qn_job_prepare(qn_quantize_job *j, qn_model *model)
{
    QN_TRY(settings_of(&j->settings, j->ctx, j->options));
    QN_TRY(choose_refinements(j));
    QN_TRY(qn_calibration_open(&j->calibration, j->ctx, model, &j->options->calibrate));
    return apply_rules(j);
}

/* ---- Statistics --------------------------------------------------------------------------------------------- */

static bool has_data(const qn_calibrate_options *o)
{
    return o->n_inputs || o->data.n_data;
}

/* Data that come with statistics, or where none are needed, only serve the comparison. */
qn_status qn_job_calibrate(qn_quantize_job *j)
{
    const char *path = j->options->stats;
    const bool dynamic = j->settings.dynamic;
    if ((!path && !dynamic) || has_data(&j->options->calibrate))
        QN_TRY(qn_calibration_feed(&j->calibration));
    if (dynamic)
        return QN_OK;
    if (!path)
        return qn_calibration_collect(&j->stats, NULL, &j->calibration);
    QN_TRY(qn_stats_load(&j->stats, j->ctx, path));
    const qn_status status = qn_stats_check(j->stats, &j->calibration.print, NULL);
    return status == QN_OK ? QN_OK : qn_fail_within(j->ctx, status, "%s", path);
}

/* ---- Metadata --------------------------------------------------------------------------------------------------- */

/* What the file was made with; nothing of the way that the data came. */
static qn_status describe(qn_quantize_job *j)
{
    enum { OWN = 5 };
    char print[QN_FINGERPRINT_TEXT];
    qn_model *model = j->quantized;
    const qn_metadata *old = &j->calibration.real->metadata;
    const qn_quant_settings *settings = &j->quantizer->settings;
    qn_pair *pairs = qn_arena_array(&model->arena, old->count + OWN, sizeof *pairs);
    QN_TRY_ALLOC(j->ctx, pairs);
    for (size_t i = 0; i < old->count; i++)
        pairs[i] = old->at[i];
    qn_pair *own = pairs + old->count;
    own[0] = (qn_pair){"quench.version", qn_version()};
    own[1] = (qn_pair){"quench.target", settings->profile->name};
    own[2] = (qn_pair){"quench.method", settings->dynamic ? "dynamic" : j->params.method->name};
    own[3] = (qn_pair){"quench.bits", settings->bits == 8 ? "8" : "16"};
    model->metadata = (qn_metadata){pairs, old->count + OWN - settings->dynamic};
    if (settings->dynamic)
        return QN_OK;
    own[4] =
        (qn_pair){"quench.data", qn_arena_format(&model->arena, "%s",
                                                 qn_fingerprint_format(print, j->stats->data))};
    QN_TRY_ALLOC(j->ctx, own[4].value);
    return QN_OK;
}

/* ---- Made --------------------------------------------------------------------------------------------------------- */

qn_status qn_job_make(qn_quantize_job *j)
{
    QN_TRY(apply_rules(j));
    if (j->settings.dynamic) {
        QN_TRY(qn_dynamic_insert(j->quantizer, &j->params));
        return describe(j);
    }
    QN_TRY(qn_derive(j->quantizer, j->stats, &j->params));
    QN_TRY(qn_derived_apply(j->quantizer));
    QN_TRY(qn_quant_insert(j->quantizer));
    return describe(j);
}

void qn_job_free(qn_quantize_job *j)
{
    qn_stats_free(j->stats);
    qn_quantizer_free(j->quantizer);
    qn_calibration_close(&j->calibration);
    qn_arena_free(&j->arena);
}
