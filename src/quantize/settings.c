/* Settings of a quantization, as the options say them. */
#include <string.h>

#include "quantize/job.h"

/* The least KL to float on the classifiers that this was tried with. */
#define DEFAULT_METHOD "mse"

/* Why the target does not do what is asked for, and which option asks. */
static qn_status check_width(qn_context *ctx, const qn_profile *profile,
                             const qn_quantize_options *o)
{
    if (!profile->fixed_point)
        return QN_OK;
    const bool other = o->bits && !qn_profile_computes(profile, o->bits);
    const bool mixed = o->n_widths || o->mix || o->accuracy_budget;
    if (other || (mixed && !qn_profile_wider(profile, QN_WIDTH_STANDARD)))
        return qn_fail(ctx, QN_E_OPTION,
                       "chip '%s' computes with %d bits only: %s do not go with it", profile->name,
                       QN_WIDTH_STANDARD,
                       other                   ? "others"
                       : o->n_widths || o->mix ? "nodes of other widths"
                                               : "accuracy budgets, for which layers get more,");
    if (o->dynamic)
        return qn_fail(ctx, QN_E_OPTION,
                       "chip '%s' has no dynamic quantization: its scales are fixed",
                       profile->name);
    return QN_OK;
}

static const char *default_method(const qn_quant_settings *s)
{
    const char *own = s->profile->widths[qn_width_of_bits(s->bits)->index].method;
    return own ? own : DEFAULT_METHOD;
}

static qn_status choose_params(qn_quantize_settings *out, qn_context *ctx,
                               const qn_quantize_options *o)
{
    const bool plain = o->method && strcmp(o->method, "min_max") == 0;
    out->params = (qn_param_options){.range = QN_RANGE_OPTIONS_INIT,
                                     .function_ranges = !o->no_look_through && !plain,
                                     .plain = plain,
                                     .equalize = !o->no_equalization,
                                     .smooth_channels = !o->no_balancing,
                                     .clip_weights = !o->no_weight_clipping,
                                     .norm_limit = o->norm_limit,
                                     .correct_bias = !o->no_bias_correction};
    if (o->percentile > 0)
        out->params.range.percentile = o->percentile;
    return qn_method_find(&out->params.method, ctx,
                          o->method ? o->method : default_method(&out->rules));
}

qn_status qn_quantize_settings_init(qn_quantize_settings *out, const qn_quantize_input *input)
{
    qn_context *ctx = input->ctx;
    const qn_quantize_options *o = input->options;
    QN_TRY(qn_quant_settings_of(&out->rules, ctx, o));
    out->rules.may_be_empty = input->listing;
    out->rules.mix = input->mix;
    if (input->mix)
        out->rules.bits = QN_WIDTH_STANDARD; /* of what only moves numbers */
    QN_TRY(check_width(ctx, out->rules.profile, o));
    if (!input->scales)
        return choose_params(out, ctx, o);
    *out = (qn_quantize_settings){input->scales->settings, input->scales->params};
    out->rules.real_outputs = o->real_outputs != 0;
    out->rules.given = o->given;
    return QN_OK;
}
