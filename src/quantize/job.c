/* The input of a quantization: the float model, what files say, and whether all that is asked for
 * goes together. */
#include "quantize/job.h"

#include <stdio.h>

#include "base/cpu.h"
#include "quant/existing_encodings.h"
#include "quant/reasons.h"
#include "quantize/nan_check.h"

/* ---- Files ----------------------------------------------------------------------------------- */

/* The file says what for and how it was made. */
static qn_status open_scales(qn_quantize_job *j)
{
    const qn_quantize_options *o = j->input.options;
    QN_TRY(qn_scales_load(&j->scales, j->ctx, o->scales));
    if (o->target && j->settings.rules.profile != j->scales->settings.profile)
        return qn_fail(j->ctx, QN_E_INVALID, "%s: the scales are for target '%s', not '%s'",
                       o->scales, j->scales->settings.profile->name, o->target);
    j->input.scales = j->scales;
    return qn_quantize_settings_init(&j->settings, &j->input);
}

static qn_status open_mix(qn_quantize_job *j)
{
    const qn_quantize_options *o = j->input.options;
    QN_TRY(qn_mix_load(&j->mix, j->ctx, o->mix));
    j->input.mix = j->mix;
    return QN_OK;
}

/* Names first: one that is misspelled would be reported as a node that is missing. */
static qn_status check_mix(qn_quantize_job *j, const qn_model *model)
{
    qn_quantize_settings without = j->settings;
    qn_quantized_model ruled = {.ctx = NULL};
    without.rules.mix = NULL;
    qn_status status = qn_quantize_rules(&ruled, &j->input, &without);
    if (status == QN_OK)
        status = qn_mix_check_names(ruled.quantizer, j->mix, model->graph);
    qn_quantized_model_free(&ruled);
    return status;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static bool has_integer(const qn_quantizer *q, const qn_op *op)
{
    bool found = false;
    for (size_t i = 0; i < q->n_nodes && !found; i++)
        found = q->nodes[i].node->op == op && (q->nodes[i].integer || op == &qn_op_ScatterND);
    return found;
}

static void log_idle_options(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->input.options;
    if (o->norm_limit > 0 && !has_integer(j->ruled.quantizer, &qn_op_LayerNormalization))
        qn_log(j->ctx, QN_LOG_NOTE, "`norm_limit` has no effect here: none is quantized");
    if (o->unify_inputs && !has_integer(j->ruled.quantizer, &qn_op_Concat) &&
        !has_integer(j->ruled.quantizer, &qn_op_ScatterND))
        qn_log(j->ctx, QN_LOG_NOTE,
               "`unify_inputs` has no effect here: no Concat is "
               "quantized, and there is no ScatterND");
}

/* Files have integers of a width that is not the standard one where they are computed with. */
static qn_status check_widths(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->input.options;
    const qn_profile *profile = j->settings.rules.profile;
    const qn_quant_node *nodes = j->ruled.quantizer->nodes;
    bool refused = false;
    int bits = 0;
    size_t count = 0;
    for (size_t i = 0; i < j->ruled.quantizer->n_nodes; i++) {
        const qn_profile_width *width = &profile->widths[qn_width_of_bits(nodes[i].bits)->index];
        if (!nodes[i].integer || width->computed)
            continue;
        count++;
        bits = nodes[i].bits;
        refused = refused || width->refused;
    }
    if (!count)
        return QN_OK;
    char width[24];
    snprintf(width, sizeof width, "`bits` %d", bits);
    const char *option = o->bits == bits ? width
                         : o->n_widths   ? "`widths`"
                         : o->mix        ? "`mix`"
                                         : "`scales`";
    if (refused)
        return qn_fail(j->ctx, QN_E_OPTION,
                       "%s: target '%s' has no integers of %d bits and takes no such file: leave "
                       "nodes in float instead (`keep_float`, `max_drop`)",
                       option, profile->name, bits);
    qn_log(
        j->ctx, QN_LOG_WARN,
        "%s: target '%s' computes the %zu nodes of %d bits in float: that is slower than %d bits",
        option, profile->name, count, bits, QN_WIDTH_STANDARD);
    return QN_OK;
}

static void warn_of_saturation(const qn_quantize_job *j)
{
    const qn_quant_settings *s = &j->settings.rules;
    if (s->profile->saturates && !s->reduce_range && s->bits == QN_WIDTH_STANDARD &&
        !qn_cpu_has_vnni())
        qn_log(j->ctx, QN_LOG_WARN,
               "target '%s' saturates on CPUs without VNNI, such as this one, and may lose many "
               "points there: `reduce_range` makes a file that does not",
               s->profile->name);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* After the rules: whether the model brings all scales itself. */
static bool is_given(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->input.options;
    return !j->settings.rules.dynamic && !j->scales && !o->stats &&
           !qn_calibrate_has_data(&o->calibrate) && qn_existing_find(j->ruled.quantizer) &&
           qn_existing_is_complete(j->ruled.quantizer);
}

static qn_status open_files(qn_quantize_job *j)
{
    if (j->input.options->mix)
        QN_TRY(open_mix(j));
    QN_TRY(qn_quantize_settings_init(&j->settings, &j->input));
    return j->input.options->scales ? open_scales(j) : QN_OK;
}

qn_status qn_quantize_job_open(qn_quantize_job *j, qn_context *ctx, qn_model *model,
                               const qn_quantize_options *options, bool listing)
{
    *j = (qn_quantize_job){.ctx = ctx};
    j->input =
        (qn_quantize_input){.ctx = ctx, .options = options, .data = &j->data, .listing = listing};
    QN_TRY(open_files(j));
    QN_TRY(qn_calibration_open(&j->data, ctx, model, &options->calibrate));
    QN_TRY(qn_nan_check(ctx, j->data.real->graph));
    if (j->scales)
        QN_TRY(qn_scales_check(j->scales, j->data.print, options->given));
    if (j->mix)
        QN_TRY(check_mix(j, model));
    QN_TRY(qn_quantize_rules(&j->ruled, &j->input, &j->settings));
    QN_TRY(check_widths(j));
    warn_of_saturation(j);
    qn_reasons_note_software(j->ruled.quantizer);
    log_idle_options(j);
    j->input.trained = !j->settings.rules.dynamic && qn_existing_find(j->ruled.quantizer) > 0;
    j->input.given = is_given(j);
    return QN_OK;
}

void qn_quantize_job_free(qn_quantize_job *j)
{
    qn_quantized_model_free(&j->ruled);
    qn_scales_free(j->scales);
    qn_mix_free(j->mix);
    qn_calibration_close(&j->data);
}
