/* Settings of a quantization, as the options say them. */
#include <string.h>

#include "ops/numerics.h"
#include "pass/qdq_to_integer.h"
#include "quantize/job.h"

/* The least KL to float on the classifiers that this was tried with. */
#define DEFAULT_METHOD "mse"

static qn_status settings_of(qn_quant_settings *out, qn_context *ctx, const qn_quantize_options *o)
{
    *out = (qn_quant_settings){.bits = o->bits ? o->bits : 8,
                               .keep_float = o->keep_float,
                               .n_float = o->n_keep_float,
                               .widths = o->widths,
                               .n_widths = o->n_widths,
                               .unify = o->unify_inputs != 0,
                               .bits_asked = o->bits != 0,
                               .reduce_range = o->reduce_range != 0,
                               .table_bits = o->table_bits,
                               .input_types = o->input_types,
                               .n_input_types = o->n_input_types,
                               .dynamic = o->dynamic != 0,
                               .real_outputs = o->real_outputs != 0,
                               .given = o->given};
    if (!qn_width_is_computed(out->bits)) {
        char list[64];
        qn_width_list(list, sizeof list);
        return qn_fail(ctx, QN_E_INVALID, "bits: %d is not %s", out->bits, list);
    }
    if (o->table_bits && (o->table_bits < QN_TABLE_BITS_MIN || o->table_bits > QN_TABLE_BITS_MAX))
        return qn_fail(ctx, QN_E_INVALID, "table_bits: %d is not %d to %d", o->table_bits,
                       QN_TABLE_BITS_MIN, QN_TABLE_BITS_MAX);
    QN_TRY(qn_profile_find(&out->profile, ctx, o->target));
    if (!out->table_bits && out->profile->fixed_point)
        out->table_bits = QN_TABLE_BITS_CHIP;
    return QN_OK;
}

/* Why the target does not do what is asked for, and which option asks. */
static qn_status check_width(qn_context *ctx, const qn_profile *profile,
                             const qn_quantize_options *o)
{
    if (!profile->fixed_point)
        return QN_OK;
    if (!qn_profile_wider(profile, 8) && (o->bits > 8 || o->n_widths || o->mix || o->goal))
        return qn_fail(ctx, QN_E_OPTION,
                       "chip '%s' computes with 8 bits only: %s do not go with it", profile->name,
                       o->bits > 8             ? "16 bits"
                       : o->n_widths || o->mix ? "nodes of other widths"
                                               : "goals, for which layers get 16 bits,");
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
    QN_TRY(settings_of(&out->rules, ctx, o));
    out->rules.may_be_empty = input->listing;
    out->rules.mix = input->mix;
    if (input->mix)
        out->rules.bits = 8; /* of what only moves numbers */
    QN_TRY(check_width(ctx, out->rules.profile, o));
    if (!input->scales)
        return choose_params(out, ctx, o);
    *out = (qn_quantize_settings){input->scales->settings, input->scales->params};
    out->rules.real_outputs = o->real_outputs != 0;
    out->rules.given = o->given;
    return QN_OK;
}
