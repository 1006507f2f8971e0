/* What the refinements are worth: the error of the outputs with all of them, and with all but
 * one. */
#include <math.h>

#include "quant/refinement.h"
#include "quantize/search.h"

enum { PROOF_SAMPLES = 4 };

/* ---- One after the other --------------------------------------------------------------------- */

static qn_status measure_without(double *error, const qn_quantize_result *result, qn_search *s,
                                 size_t which)
{
    qn_quantized_model without;
    qn_quantize_settings settings = result->made.settings;
    *qn_refinement_flag(&settings.params, which) = false;
    qn_status status = qn_quantize_make(&without, s->input, &settings);
    if (status == QN_OK)
        status = qn_output_check_error(error, &s->check, &without);
    qn_quantized_model_free(&without);
    return status;
}

/* One that is left out is left out while the next ones are measured. */
static qn_status prove(qn_quantize_result *result, qn_search *s)
{
    qn_quantize_settings *settings = &result->made.settings;
    double with = 0;
    bool again = false;
    QN_TRY(qn_output_check_error(&with, &s->check, &result->made));
    for (size_t i = 0; i < QN_REFINEMENTS; i++) {
        qn_proof_row *row = &result->proof[i];
        row->measured = true;
        row->before = row->after = with;
        if (row->estimated.layers == 0)
            continue;
        QN_TRY(measure_without(&row->before, result, s, i));
        row->left = qn_refinement_rows[i].may_be_left && row->before <= row->after;
        if (row->left)
            *qn_refinement_flag(&settings->params, i) = false;
        again = again || row->left;
    }
    if (!again)
        return QN_OK;
    qn_quantized_model proved;
    const qn_status status = qn_quantize_make(&proved, s->input, settings);
    qn_quantized_model_move(&result->made, &proved);
    return status;
}

qn_status qn_refinements_prove(qn_quantize_result *result, qn_search *s)
{
    const qn_quantize_input *input = s->input;
    for (size_t i = 0; i < QN_REFINEMENTS; i++)
        result->proof[i] = (qn_proof_row){.estimated = result->made.quantizer->refined[i]};
    if (!input->options->prove || result->made.settings.rules.dynamic || input->scales ||
        !input->data->fed || !input->data->with_data)
        return QN_OK;
    QN_TRY(qn_output_check_use(&s->check, PROOF_SAMPLES));
    return prove(result, s);
}

/* Root of the mean over the layers. */
static double share(double sum, int64_t layers)
{
    return layers > 0 ? sqrt(sum / (double)layers) : 0;
}

void qn_refinements_report(qn_item *root, const qn_quantize_result *result,
                           const qn_quantize_input *input)
{
    if (result->made.settings.rules.dynamic || input->scales)
        return;
    qn_item *table = qn_item_table(root, "refinements");
    for (size_t i = 0; i < QN_REFINEMENTS; i++) {
        const qn_proof_row *row = &result->proof[i];
        qn_item *item = qn_item_row(table);
        qn_item_text(item, "refinement", qn_refinement_rows[i].name);
        qn_item_int(item, "layers", row->left ? 0 : row->estimated.layers);
        qn_item_real(item, "noise_before", share(row->estimated.before, row->estimated.layers), 6);
        qn_item_real(item, "noise_after", share(row->estimated.after, row->estimated.layers), 6);
        if (row->measured) {
            qn_item_real(item, "error_without", row->before, 6);
            qn_item_real(item, "error_with", row->after, 6);
        }
    }
}
