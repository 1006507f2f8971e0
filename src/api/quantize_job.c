/* A quantization step by step: passes and rules, statistics, parameters and nodes. */
#include <string.h>

#include "api/quantize.h"
#include "ops/clone.h"
#include "ops/fingerprint.h"
#include "ops/infer.h"
#include "pass/pass.h"

/* The least KL to float on the classifiers that this was tried with. */
#define DEFAULT_METHOD "mse"

/* ---- Ready to be quantized -------------------------------------------------------------------------------- */

static qn_status settings_of(qn_quant_settings *out, qn_context *ctx, const qn_quantize_options *o)
{
    *out = (qn_quant_settings){.bits = o->bits ? o->bits : 8,
                               .keep_float = o->keep_float,
                               .n_float = o->n_float,
                               .widths = o->widths,
                               .n_widths = o->n_widths};
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
    QN_TRY(qn_model_clone(&j->quantized, j->ctx, j->real));
    QN_TRY(qn_graph_infer(j->quantized->graph));
    return qn_quantizer_create(&j->quantizer, j->quantized, &j->settings);
}

qn_status qn_job_prepare(qn_quantize_job *j, qn_model *model)
{
    QN_TRY(settings_of(&j->settings, j->ctx, j->options));
    QN_TRY(choose_refinements(j));
    j->graph = j->options->calibrate.graph;
    QN_TRY(qn_prepare_optimized(&j->real, j->ctx, model, &j->graph, QN_PURPOSE_QUANTIZE, NULL));
    return apply_rules(j);
}

/* ---- Statistics --------------------------------------------------------------------------------------------- */

static bool is_observed(const void *user, const qn_value *value)
{
    const qn_names *names = user;
    return qn_names_get(names, value->name) != NULL;
}

static qn_status open_feed(qn_quantize_job *j)
{
    const qn_calibrate_options *c = &j->options->calibrate;
    qn_input_shape *shapes = NULL;
    j->data = c->data;
    j->data.batch = 1;
    j->data.loaders = -1;
    j->feed_options = (qn_feed_options){.inputs = c->inputs,
                                        .n_inputs = c->n_inputs,
                                        .data = &j->data,
                                        .seed = c->seed,
                                        .graph = &c->graph};
    j->fed = true;
    QN_TRY(qn_feed_open(&j->feed, j->ctx, j->real, &j->feed_options));
    QN_TRY(qn_feed_shapes(&shapes, &j->graph.n_shapes, &j->feed));
    j->graph.shapes = shapes;
    return QN_OK;
}

static void warn_random(const qn_quantize_job *j)
{
    if (!j->feed.dataset)
        qn_log(j->ctx, QN_LOG_WARN,
               "no data were given: %lld samples of random numbers stand in for them, and ranges "
               "and accuracy mean nothing",
               (long long)j->samples.source.count);
}

static qn_status collect_with(qn_quantize_job *j, const qn_names *names)
{
    const qn_calibrate_options *c = &j->options->calibrate;
    const qn_plan_options options = {.threads = 1, .graph = j->graph};
    const qn_watch watch = {
        .purpose = QN_PURPOSE_QUANTIZE, .direct = true, .observe = is_observed, .user = names};
    const qn_collect_options collecting = {.threads = c->threads > 0 ? c->threads : j->ctx->threads,
                                           .checkpoint = c->checkpoint,
                                           .axis = qn_axis_default,
                                           .model = qn_model_fingerprint(j->real)};
    qn_plan *plan = NULL;
    QN_TRY(qn_plan_create_watched(&plan, j->ctx, j->real, &options, &watch));
    qn_status status = qn_feed_source_open(&j->samples, &j->feed, plan, collecting.threads);
    if (status == QN_OK) {
        warn_random(j);
        status = qn_collect(&j->stats, NULL, plan, j->ctx, &j->samples.source, &collecting);
    }
    qn_plan_free(plan);
    return status;
}

qn_status qn_job_calibrate(qn_quantize_job *j)
{
    qn_names names;
    QN_TRY(open_feed(j));
    qn_status status = QN_OK;
    qn_names_init(&names, j->ctx);
    for (size_t i = 0; i < j->quantizer->n_values && status == QN_OK; i++) {
        qn_quant_value *v = &j->quantizer->values[i];
        if (v->integer)
            status = qn_names_set(&names, v->value->name, v);
    }
    if (status == QN_OK)
        status = collect_with(j, &names);
    qn_names_free(&names);
    return status;
}

/* ---- Metadata --------------------------------------------------------------------------------------------------- */

/* What the file was made with; nothing of the way that the data came. */
static qn_status describe(qn_quantize_job *j)
{
    enum { OWN = 5 };
    char print[QN_FINGERPRINT_TEXT];
    qn_model *model = j->quantized;
    const qn_metadata *old = &j->real->metadata;
    const qn_quant_settings *settings = &j->quantizer->settings;
    qn_pair *pairs = qn_arena_array(&model->arena, old->count + OWN, sizeof *pairs);
    QN_TRY_ALLOC(j->ctx, pairs);
    for (size_t i = 0; i < old->count; i++)
        pairs[i] = old->at[i];
    const qn_pair own[OWN] = {
        {"quench.version", qn_version()},
        {"quench.target", settings->profile->name},
        {"quench.method", j->params.method->name},
        {"quench.bits", settings->bits == 8 ? "8" : "16"},
        {"quench.data",
         qn_arena_format(&model->arena, "%s", qn_fingerprint_format(print, j->stats->data))}};
    for (size_t i = 0; i < OWN; i++) {
        QN_TRY_ALLOC(j->ctx, own[i].value);
        pairs[old->count + i] = own[i];
    }
    model->metadata = (qn_metadata){pairs, old->count + OWN};
    return QN_OK;
}

/* ---- Made --------------------------------------------------------------------------------------------------------- */

qn_status qn_job_make(qn_quantize_job *j)
{
    QN_TRY(apply_rules(j));
    QN_TRY(qn_params_choose(j->quantizer, j->stats, &j->params));
    QN_TRY(qn_quant_insert(j->quantizer));
    return describe(j);
}

void qn_job_free(qn_quantize_job *j)
{
    if (j->fed)
        qn_feed_close(&j->feed);
    qn_stats_free(j->stats);
    qn_quantizer_free(j->quantizer);
    qn_model_free(j->real);
}
