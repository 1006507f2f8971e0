/* A quantization step by step: passes and rules, statistics, parameters and nodes. */
#include <string.h>

#include "base/cpu.h"
#include "base/map.h"
#include "ops/clone.h"
#include "ops/infer.h"
#include "ops/numerics.h"
#include "pass/qdq_to_integer.h"
#include "quant/dynamic.h"
#include "quant/existing_encodings.h"
#include "quantize/job.h"
#include "quantize/nan_check.h"

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
                               .unify = o->unify_inputs != 0,
                               .reduce_range = o->reduce_range != 0,
                               .table_bits = o->table_bits,
                               .input_types = o->input_types,
                               .n_input_types = o->n_input_types,
                               .dynamic = o->dynamic != 0,
                               .real_outputs = o->real_outputs != 0};
    if (!qn_width_is_computed(out->bits)) {
        char list[64];
        qn_width_list(list, sizeof list);
        return qn_fail(ctx, QN_E_INVALID, "%d bits: it must be %s", out->bits, list);
    }
    if (o->table_bits && (o->table_bits < QN_TABLE_BITS_MIN || o->table_bits > QN_TABLE_BITS_MAX))
        return qn_fail(ctx, QN_E_INVALID, "tables of 2^%d entries: it must be 2^%d to 2^%d",
                       o->table_bits, QN_TABLE_BITS_MIN, QN_TABLE_BITS_MAX);
    QN_TRY(qn_profile_find(&out->profile, ctx, o->target));
    if (!out->table_bits && out->profile->fixed_point)
        out->table_bits = QN_TABLE_BITS_CHIP;
    return QN_OK;
}

/* Why the target does not do what is asked for, and which option asks. */
static qn_status check_width(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    const qn_profile *profile = j->settings.profile;
    if (!profile->fixed_point)
        return QN_OK;
    if (!qn_profile_wider(profile, 8) && (o->bits > 8 || o->n_widths || o->mix || o->goal))
        return qn_fail(j->ctx, QN_E_OPTION,
                       "chip '%s' computes with 8 bits only: %s do not go with it", profile->name,
                       o->bits > 8             ? "16 bits"
                       : o->n_widths || o->mix ? "nodes of other widths"
                                               : "goals, for which layers get 16 bits,");
    if (o->dynamic)
        return qn_fail(j->ctx, QN_E_OPTION,
                       "chip '%s' has no dynamic quantization: its scales are fixed",
                       profile->name);
    return QN_OK;
}

static const char *default_method(const qn_quant_settings *s)
{
    const char *own = s->profile->widths[qn_width_of_bits(s->bits)->index].method;
    return own ? own : DEFAULT_METHOD;
}

static qn_status choose_refinements(qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    j->params = (qn_param_options){.range = QN_RANGE_OPTIONS_INIT,
                                   .function_ranges = !o->no_look_through,
                                   .equalize = !o->no_equalization,
                                   .smooth_channels = !o->no_balancing,
                                   .clip_weights = !o->no_weight_clipping,
                                   .norm_limit = o->norm_limit,
                                   .correct_bias = !o->no_bias_correction};
    if (o->percentile > 0)
        j->params.range.percentile = o->percentile;
    return qn_method_find(&j->params.method, j->ctx,
                          o->method ? o->method : default_method(&j->settings));
}

qn_status qn_job_rules(qn_quantize_job *j)
{
    qn_quantizer_free(j->quantizer);
    qn_model_free(j->quantized);
    j->quantizer = NULL;
    j->quantized = NULL;
    QN_TRY(qn_model_clone(&j->quantized, j->ctx, j->calibration.real));
    QN_TRY(qn_graph_infer(j->quantized->graph));
    return qn_quantizer_create(&j->quantizer, j->quantized, &j->settings);
}

/* The file says what for and how it was made. */
static qn_status open_scales(qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    if (o->dynamic || o->stats || o->n_float || o->n_widths || o->save_scales || o->goal ||
        o->fastest || o->fix_worst)
        return qn_fail(j->ctx, QN_E_OPTION,
                       "%s: a scale file says which nodes are integers and what their scales are: "
                       "statistics, patterns, goals and dynamic quantization do not go with it",
                       o->scales);
    QN_TRY(qn_scales_load(&j->scales, j->ctx, o->scales));
    if (o->target && j->settings.profile != j->scales->settings.profile)
        return qn_fail(j->ctx, QN_E_INVALID, "%s: the scales are for target '%s', not '%s'",
                       o->scales, j->scales->settings.profile->name, o->target);
    j->settings = j->scales->settings;
    j->settings.real_outputs = o->real_outputs != 0;
    j->params = j->scales->params;
    return QN_OK;
}

qn_status qn_job_settle(qn_quantize_job *j)
{
    j->mended = j->unchecked = false;
    j->noise = 0;
    QN_TRY(settings_of(&j->settings, j->ctx, j->options));
    j->settings.may_be_empty = j->listing;
    j->settings.mix = j->mix;
    if (j->mix)
        j->settings.bits = 8; /* of what only moves numbers */
    QN_TRY(check_width(j));
    return choose_refinements(j);
}

static qn_status open_mix(qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    if (o->dynamic || o->n_widths || o->goal || o->scales || o->fix_worst)
        return qn_fail(j->ctx, QN_E_OPTION,
                       "%s: a mix file says the width of every node: %s do not go with it", o->mix,
                       o->dynamic     ? "dynamic widths"
                       : o->n_widths  ? "patterns of widths (--bits)"
                       : o->goal      ? "goals (--max-drop)"
                       : o->fix_worst ? "remedies (--fix-worst)"
                                      : "scale files (-lsj)");
    return qn_mix_load(&j->mix, j->ctx, o->mix);
}

/* Names first: one that is misspelled would be told as a node that is missing. */
static qn_status check_mix(qn_quantize_job *j, const qn_model *model)
{
    j->settings.mix = NULL;
    QN_TRY(qn_job_rules(j));
    QN_TRY(qn_mix_check_names(j->quantizer, j->mix, model->graph));
    j->settings.mix = j->mix;
    return QN_OK;
}

static bool has_integer(const qn_quantizer *q, const qn_op *op)
{
    bool found = false;
    for (size_t i = 0; i < q->n_nodes && !found; i++)
        found = q->nodes[i].node->op == op && (q->nodes[i].integer || op == &qn_op_ScatterND);
    return found;
}

static void tell_idle(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    if (o->norm_limit > 0 && !has_integer(j->quantizer, &qn_op_LayerNormalization))
        qn_log(j->ctx, QN_LOG_NOTE,
               "a limit of LayerNormalization (-lt) has no effect here: none is quantized");
    if (o->unify_inputs && !has_integer(j->quantizer, &qn_op_Concat) &&
        !has_integer(j->quantizer, &qn_op_ScatterND))
        qn_log(j->ctx, QN_LOG_NOTE,
               "one scale for what is put together (-uis) has no effect here: no Concat is "
               "quantized, and there is no ScatterND");
}

/* A file of 16 bits is of use where they are computed with as integers. */
static qn_status check_wide_nodes(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    const qn_profile *profile = j->settings.profile;
    const qn_quant_node *nodes = j->quantizer->nodes;
    bool refused = false;
    size_t wide = 0;
    for (size_t i = 0; i < j->quantizer->n_nodes; i++) {
        const qn_profile_width *width = &profile->widths[qn_width_of_bits(nodes[i].bits)->index];
        wide += nodes[i].integer && !width->computed;
        refused = refused || (nodes[i].integer && width->refused);
    }
    if (!wide)
        return QN_OK;
    const char *option = o->bits > 8   ? "--bit-width 16"
                         : o->n_widths ? "--bits"
                         : o->mix      ? "--mix-config"
                                       : "--load-scale-json";
    if (refused)
        return qn_fail(j->ctx, QN_E_OPTION,
                       "%s: target '%s' has no integers of 16 bits and takes no such file: leave "
                       "nodes in float instead (--float, --max-drop)",
                       option, profile->name);
    qn_log(j->ctx, QN_LOG_WARN,
           "%s: target '%s' computes the %zu nodes of 16 bits in float: that is slower than 8 bits",
           option, profile->name, wide);
    return QN_OK;
}

static void warn_of_saturation(const qn_quantize_job *j)
{
    const qn_quant_settings *s = &j->settings;
    if (s->profile->saturates && !s->reduce_range && s->bits == 8 && !qn_cpu_has_vnni())
        qn_log(j->ctx, QN_LOG_WARN,
               "target '%s' saturates on CPUs without VNNI, such as this one, and may lose many "
               "points there: --reduce-range makes a file that does not",
               s->profile->name);
}

qn_status qn_job_prepare(qn_quantize_job *j, qn_model *model)
{
    if (j->options->mix)
        QN_TRY(open_mix(j));
    QN_TRY(qn_job_settle(j));
    if (j->settings.dynamic && j->options->save_scales)
        return qn_fail(j->ctx, QN_E_OPTION,
                       "dynamic quantization takes no scales from data: there is no scale file");
    if (j->settings.dynamic && j->options->n_input_types)
        return qn_fail(
            j->ctx, QN_E_OPTION,
            "dynamic quantization has float inputs: input types (-qid) do not go with it");
    if (j->options->scales)
        QN_TRY(open_scales(j));
    QN_TRY(qn_calibration_open(&j->calibration, j->ctx, model, &j->options->calibrate));
    QN_TRY(qn_nan_check(j->ctx, j->calibration.real->graph));
    if (j->scales)
        QN_TRY(qn_scales_check(j->scales, j->calibration.print));
    if (j->mix)
        QN_TRY(check_mix(j, model));
    QN_TRY(qn_job_rules(j));
    QN_TRY(check_wide_nodes(j));
    warn_of_saturation(j);
    tell_idle(j);
    return QN_OK;
}

/* ---- Statistics --------------------------------------------------------------------------------------------- */

static bool has_data(const qn_calibrate_options *o)
{
    return o->n_inputs || o->data.n_data;
}

/* Data that come with statistics, or where none are needed, only serve the comparison. */
static qn_status find_stats(qn_quantize_job *j)
{
    const char *path = j->options->stats;
    if (!path)
        return qn_calibration_collect(&j->stats, NULL, &j->calibration);
    QN_TRY(qn_stats_load(&j->stats, j->ctx, path));
    const qn_status status = qn_stats_check(j->stats, &j->calibration.print, NULL);
    return status == QN_OK ? QN_OK : qn_fail_within(j->ctx, status, "%s", path);
}

qn_status qn_job_calibrate(qn_quantize_job *j)
{
    j->given = !j->settings.dynamic && !j->scales && !j->options->stats &&
               !has_data(&j->options->calibrate) && qn_existing_find(j->quantizer) &&
               qn_existing_is_complete(j->quantizer);
    const bool none = j->settings.dynamic || j->scales || j->given;
    if ((!j->options->stats && !none) || has_data(&j->options->calibrate))
        QN_TRY(qn_calibration_feed(&j->calibration));
    const qn_status status = none ? QN_OK : find_stats(j);
    qn_calibration_drop_plan(&j->calibration);
    return status;
}

/* ---- Made --------------------------------------------------------------------------------------------------------- */

static qn_status derive(qn_quantize_job *j)
{
    if (j->scales)
        return qn_scales_apply(j->quantizer, j->scales);
    QN_TRY(qn_encodings_compute(j->quantizer, j->stats, &j->params));
    if (!j->options->save_scales)
        return QN_OK;
    qn_text_free(j->ctx, j->scale_text);
    j->scale_text = NULL;
    return qn_scales_write(&j->scale_text, j->quantizer, j->calibration.print,
                           j->stats ? j->stats->data : (qn_fingerprint){0}, &j->params);
}

qn_status qn_job_make(qn_quantize_job *j)
{
    QN_TRY(qn_job_rules(j));
    if (j->settings.dynamic) {
        QN_TRY(qn_dynamic_insert(j->quantizer, &j->params));
        return qn_job_describe(j);
    }
    QN_TRY(derive(j));
    QN_TRY(qn_encodings_apply(j->quantizer));
    QN_TRY(qn_quant_insert(j->quantizer));
    return qn_job_describe(j);
}

qn_status qn_job_write_scales(qn_output_file **out, const qn_quantize_job *j)
{
    *out = NULL;
    if (!j->scale_text)
        return QN_OK;
    QN_TRY(qn_output_open(out, j->ctx, j->options->save_scales));
    const qn_status status = qn_output_write(*out, j->scale_text, strlen(j->scale_text));
    if (status != QN_OK) {
        qn_output_discard(*out);
        *out = NULL;
    }
    return status;
}

void qn_job_free(qn_quantize_job *j)
{
    qn_text_free(j->ctx, j->scale_text);
    qn_scales_free(j->scales);
    qn_mix_free(j->mix);
    qn_stats_free(j->stats);
    qn_quantizer_free(j->quantizer);
    qn_calibration_close(&j->calibration);
    qn_arena_free(&j->arena);
}
