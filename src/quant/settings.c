/* Settings of the rules, and the options that ask for them: from one to the other. */
#include <string.h>

#include "ops/numerics.h"
#include "pass/qdq_to_integer.h"
#include "quant/mix.h"
#include "quant/params.h"

qn_status qn_quant_settings_of(qn_quant_settings *out, qn_context *ctx,
                               const qn_quantize_options *o)
{
    *out = (qn_quant_settings){.bits = o->bits ? o->bits : QN_WIDTH_STANDARD,
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
    QN_TRY(qn_profile_find(&out->profile, ctx, o->target));
    if (!out->table_bits && out->profile->fixed_point)
        out->table_bits = QN_TABLE_BITS_CHIP;
    return QN_OK;
}

static bool has_percentile(const qn_quant_settings *s, const qn_param_options *params)
{
    return strcmp(params->method->name, "percentile") == 0 ||
           qn_mix_has_method(s->mix, "percentile");
}

qn_quantize_options qn_quant_settings_options(const qn_quant_settings *s,
                                              const qn_param_options *params)
{
    return (qn_quantize_options){.target = s->profile->name,
                                 .method = params->method->name,
                                 .percentile =
                                     has_percentile(s, params) ? params->range.percentile : 0,
                                 .bits = s->bits,
                                 .keep_float = s->keep_float,
                                 .n_keep_float = s->n_float,
                                 .widths = s->widths,
                                 .n_widths = s->n_widths,
                                 .unify_inputs = s->unify,
                                 .reduce_range = s->reduce_range,
                                 .table_bits = s->table_bits,
                                 .input_types = s->input_types,
                                 .n_input_types = s->n_input_types};
}
