/* What the refinements are worth: the error of the outputs with all of them, and with all but one. */
#include <math.h>

#include "quant/refinement.h"
#include "quantize/output_check.h"

enum { PROOF_SAMPLES = 4 };

/* ---- One after the other ----------------------------------------------------------------------------------------- */

static qn_status measure_without(double *error, const qn_output_check *original, size_t which)
{
    qn_quantize_job *j = original->j;
    const qn_quantize_job kept = *j;
    j->quantized = NULL;
    j->quantizer = NULL;
    j->scale_text = NULL;
    *qn_refinement_flag(&j->params, which) = false;
    qn_status status = qn_job_make(j);
    if (status == QN_OK)
        status = qn_output_check_error(error, original);
    qn_text_free(j->ctx, j->scale_text);
    qn_quantizer_free(j->quantizer);
    qn_model_free(j->quantized);
    j->quantized = kept.quantized;
    j->quantizer = kept.quantizer;
    j->scale_text = kept.scale_text;
    j->params = kept.params;
    return status;
}

static qn_status prove(const qn_output_check *original)
{
    qn_quantize_job *j = original->j;
    double with = 0;
    bool again = false;
    QN_TRY(qn_output_check_error(&with, original));
    for (size_t i = 0; i < QN_REFINEMENTS; i++) {
        qn_proof_row *row = &j->proof[i];
        row->measured = true;
        row->before = row->after = with;
        if (row->told.layers == 0)
            continue;
        QN_TRY(measure_without(&row->before, original, i));
        row->left = qn_refinement_rows[i].may_be_left && row->before <= row->after;
        if (row->left)
            *qn_refinement_flag(&j->params, i) = false;
        again = again || row->left;
    }
    return again ? qn_job_make(j) : QN_OK;
}

qn_status qn_job_prove(qn_quantize_job *j)
{
    qn_output_check original;
    for (size_t i = 0; i < QN_REFINEMENTS; i++)
        j->proof[i] = (qn_proof_row){.told = j->quantizer->refined[i]};
    if (!j->options->prove || j->settings.dynamic || j->scales || !j->calibration.fed ||
        !j->calibration.with_data)
        return QN_OK;
    qn_status status = qn_output_check_open(&original, j, PROOF_SAMPLES);
    if (status == QN_OK)
        status = prove(&original);
    qn_output_check_free(&original);
    return status;
}

/* Root of the mean over the layers. */
static double share(double sum, int64_t layers)
{
    return layers > 0 ? sqrt(sum / (double)layers) : 0;
}

void qn_proof_report(qn_item *root, const qn_quantize_job *j)
{
    if (j->settings.dynamic || j->scales)
        return;
    qn_item *table = qn_item_table(root, "refinements");
    for (size_t i = 0; i < QN_REFINEMENTS; i++) {
        const qn_proof_row *row = &j->proof[i];
        qn_item *item = qn_item_row(table);
        qn_item_text(item, "refinement", qn_refinement_rows[i].name);
        qn_item_int(item, "layers", row->left ? 0 : row->told.layers);
        qn_item_real(item, "noise_before", share(row->told.before, row->told.layers), 6);
        qn_item_real(item, "noise_after", share(row->told.after, row->told.layers), 6);
        if (row->measured) {
            qn_item_real(item, "error_without", row->before, 6);
            qn_item_real(item, "error_with", row->after, 6);
        }
    }
}
