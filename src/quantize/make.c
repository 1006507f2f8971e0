/* A quantized model made: rules, parameters, nodes. */
#include <string.h>

#include "base/map.h"
#include "ops/clone.h"
#include "ops/infer.h"
#include "quant/dynamic.h"
#include "quantize/job.h"

qn_status qn_quantize_rules(qn_quantized_model *out, const qn_quantize_input *input,
                            const qn_quantize_settings *settings)
{
    *out = (qn_quantized_model){.ctx = input->ctx, .settings = *settings};
    QN_TRY(qn_model_clone(&out->model, input->ctx, input->data->real));
    QN_TRY(qn_graph_infer(out->model->graph));
    return qn_quantizer_create(&out->quantizer, out->model, &settings->rules);
}

static qn_status derive(qn_quantized_model *q, const qn_quantize_input *input)
{
    const qn_param_options *params = &q->settings.params;
    if (input->scales)
        return qn_scales_apply(q->quantizer, input->scales);
    QN_TRY(qn_encodings_compute(q->quantizer, input->stats, params));
    if (!input->options->save_scales)
        return QN_OK;
    const qn_fingerprint data = input->stats ? input->stats->data : (qn_fingerprint){{0, 0}};
    return qn_scales_write(&q->scale_text, q->quantizer, input->data->print, data, params);
}

qn_status qn_quantize_finish(qn_quantized_model *q, const qn_quantize_input *input)
{
    if (q->settings.rules.dynamic) {
        QN_TRY(qn_dynamic_insert(q->quantizer, &q->settings.params));
        return qn_quantized_model_describe(q, input);
    }
    QN_TRY(derive(q, input));
    QN_TRY(qn_encodings_apply(q->quantizer));
    QN_TRY(qn_quant_insert(q->quantizer));
    return qn_quantized_model_describe(q, input);
}

qn_status qn_quantize_make(qn_quantized_model *out, const qn_quantize_input *input,
                           const qn_quantize_settings *settings)
{
    QN_TRY(qn_quantize_rules(out, input, settings));
    return qn_quantize_finish(out, input);
}

void qn_quantized_model_move(qn_quantized_model *to, qn_quantized_model *from)
{
    qn_quantized_model_free(to);
    *to = *from;
    *from = (qn_quantized_model){.ctx = NULL};
}

void qn_quantized_model_free(qn_quantized_model *q)
{
    if (!q->ctx)
        return;
    qn_quantizer_free(q->quantizer);
    qn_model_free(q->model);
    qn_text_free(q->ctx, q->scale_text);
    *q = (qn_quantized_model){.ctx = NULL};
}

qn_status qn_quantized_model_write_scales(qn_output_file **out, const qn_quantized_model *q,
                                          const char *path)
{
    *out = NULL;
    if (!q->scale_text)
        return QN_OK;
    QN_TRY(qn_output_open(out, q->ctx, path));
    const qn_status status = qn_output_write(*out, q->scale_text, strlen(q->scale_text));
    if (status != QN_OK) {
        qn_output_discard(*out);
        *out = NULL;
    }
    return status;
}
