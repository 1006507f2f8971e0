/* What searches share: opened, closed, and the order in which they come. */
#include "quantize/search.h"

#include "quantize/accuracy_budget.h"
#include "quantize/mixed_precision.h"
#include "quantize/repair_worst.h"

void qn_quantize_result_move(qn_quantize_result *to, qn_quantize_result *from)
{
    qn_quantize_result_free(to);
    *to = *from;
    *from = (qn_quantize_result){.noise = 0};
}

void qn_quantize_result_free(qn_quantize_result *result)
{
    qn_quantized_model_free(&result->made);
    *result = (qn_quantize_result){.noise = 0};
}

qn_status qn_search_open(qn_search *out, const qn_quantize_input *input,
                         const qn_quantize_settings *settings, qn_quantized_model *ruled,
                         qn_baseline *baseline)
{
    *out = (qn_search){.input = input, .asked = *settings};
    if (ruled && ruled->ctx) {
        qn_quantized_model_move(&out->ruled, ruled);
        out->ruled.settings.params = settings->params;
    } else {
        QN_TRY(qn_quantize_rules(&out->ruled, input, settings));
    }
    return input->data->fed ? qn_output_check_open(&out->check, input->ctx, input->data, baseline)
                            : QN_OK;
}

qn_status qn_search_make_first(qn_quantized_model *out, qn_search *s)
{
    qn_quantized_model_move(out, &s->ruled);
    return qn_quantize_finish(out, s->input);
}

void qn_search_close(qn_search *s)
{
    qn_quantized_model_free(&s->ruled);
    qn_output_check_free(&s->check);
}

/* ---- Which searches -------------------------------------------------------------------------- */

static qn_status check_runs(const qn_quantize_input *input)
{
    const qn_quantize_options *o = input->options;
    if (o->goal && input->data->fed && !input->data->with_data)
        return qn_fail(input->ctx, QN_E_OPTION,
                       "--max-drop measures: random numbers tell nothing, it needs data (-d)");
    if (input->data->fed || (!o->fastest && !o->goal && !o->fix_worst))
        return QN_OK;
    return qn_fail(input->ctx, QN_E_OPTION, "%s measures: beside statistics it needs data too (-d)",
                   o->goal        ? "--max-drop"
                   : o->fix_worst ? "--fix-worst"
                                  : "--fastest");
}

static qn_status check_repair(const qn_quantize_input *input)
{
    const qn_quantize_options *o = input->options;
    if (!o->fix_worst || (!o->goal && !o->dynamic && !input->given))
        return QN_OK;
    return qn_fail(input->ctx, QN_E_OPTION, "--fix-worst does not go with %s",
                   o->goal      ? "--max-drop, which chooses layers itself"
                   : o->dynamic ? "dynamic quantization: there are no scales to be too coarse"
                                : "a model that is quantized already: its scales are kept");
}

qn_status qn_quantize_decide(qn_quantize_result *out, qn_search *s)
{
    const qn_quantize_options *o = s->input->options;
    qn_layers layers;
    QN_TRY(check_runs(s->input));
    QN_TRY(check_repair(s->input));
    QN_TRY(qn_layers_find(&layers, s));
    if (o->goal)
        return qn_accuracy_budget_search(out, s, &layers);
    QN_TRY(qn_mixed_precision_search(out, s, &layers));
    QN_TRY(qn_refinements_prove(out, s));
    return o->fix_worst ? qn_repair_worst(out, s, &layers, o->fix_worst) : QN_OK;
}
