/* What searches share: opened, closed, and the order in which they come. */
#include "quantize/search.h"

#include "quant/pattern.h"
#include "quantize/accuracy_budget.h"
#include "quantize/layer_times.h"
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
    if (o->accuracy_budget && input->data->fed && !input->data->with_data)
        return qn_fail(input->ctx, QN_E_OPTION,
                       "max_drop: random numbers tell nothing, it needs `data`");
    if (input->data->fed || (!o->fastest && !o->accuracy_budget && !o->fix_worst))
        return QN_OK;
    return qn_fail(input->ctx, QN_E_OPTION, "%s: beside statistics it needs `data` too",
                   o->accuracy_budget ? "max_drop"
                   : o->fix_worst     ? "fix_worst"
                                      : "fastest");
}

static qn_status check_repair(const qn_quantize_input *input)
{
    const qn_quantize_options *o = input->options;
    if (!o->fix_worst || !input->given)
        return QN_OK;
    return qn_fail(input->ctx, QN_E_OPTION,
                   "fix_worst: the model is quantized already, and its scales are kept");
}

/* Who asks for widths gets them. */
static bool may_leave_slow(const qn_search *s)
{
    const qn_quantize_input *input = s->input;
    return s->asked.rules.profile->planned && !input->options->bits && !s->asked.rules.n_widths &&
           !s->asked.rules.dynamic && !input->scales && !input->mix && !input->trained;
}

/* Floats take as long there as integers; the sum that a norm reads stays float with it and keeps
 * its precision, so that errors of transformers are a third to two thirds of what they are with
 * integers. */
static qn_status leave_exact(qn_search *s)
{
    const qn_quantizer *q = s->ruled.quantizer;
    const char **names = qn_arena_array(s->arena, q->n_nodes + 1, sizeof *names);
    size_t count = 0, products = 0;
    QN_TRY_ALLOC(s->input->ctx, names);
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        products += n->integer && n->quant_class == QN_CLASS_MAC;
        if (n->integer && qn_quant_wants_float(n->node))
            names[count++] = n->node->out[0]->name;
    }
    if (!count || !products)
        return QN_OK;
    QN_TRY(qn_leave_values(&s->asked.rules, s->input->ctx, s->arena, names, count));
    qn_quantized_model_free(&s->ruled);
    return qn_quantize_rules(&s->ruled, s->input, &s->asked);
}

/* *made becomes the model that the planner has the fastest kernels for. */
static qn_status make_fastest(qn_quantized_model *made, qn_search *s)
{
    qn_layer_times times;
    qn_status status = qn_layer_times_estimate(&times, s->input, made);
    if (status == QN_OK)
        status = qn_faster_layers_search(&times, made, s->input, s->arena, qn_layer_times_estimate);
    qn_layer_times_free(&times);
    return status;
}

/* What the planner has only slow integers for stays float. How ranges are chosen does not matter
 * to it. */
static qn_status leave_slow(qn_search *s)
{
    qn_quantized_model made = {.ctx = NULL};
    qn_quantize_settings settings = {.rules = s->asked.rules};
    settings.params = (qn_param_options){.range = s->asked.params.range};
    QN_TRY(qn_method_find(&settings.params.method, s->input->ctx, "min_max"));
    qn_status status = qn_quantize_make(&made, s->input, &settings);
    if (status == QN_OK)
        status = make_fastest(&made, s);
    if (status == QN_OK && made.settings.rules.n_slow) {
        s->asked.rules = made.settings.rules;
        qn_quantized_model_free(&s->ruled);
        status = qn_quantize_rules(&s->ruled, s->input, &s->asked);
    }
    qn_quantized_model_free(&made);
    return status;
}

qn_status qn_quantize_decide(qn_quantize_result *out, qn_search *s)
{
    const qn_quantize_options *o = s->input->options;
    qn_layers layers;
    QN_TRY(check_runs(s->input));
    QN_TRY(check_repair(s->input));
    if (may_leave_slow(s)) {
        QN_TRY(leave_exact(s));
        QN_TRY(leave_slow(s));
    }
    QN_TRY(qn_layers_find(&layers, s));
    if (o->accuracy_budget)
        return qn_accuracy_budget_search(out, s, &layers);
    QN_TRY(qn_search_make_first(&out->made, s));
    QN_TRY(qn_mixed_precision_search(out, s, &layers));
    /* Beside layers that became float others may not be worth their integers any more. */
    if (out->mixed && may_leave_slow(s))
        QN_TRY(make_fastest(&out->made, s));
    QN_TRY(qn_refinements_prove(out, s));
    return o->fix_worst ? qn_repair_worst(out, s, &layers, o->fix_worst) : QN_OK;
}
