/* What the public header tells of a model. */
#include <string.h>

#include "base/options.h"
#include "export/export.h"
#include "import/import.h"
#include "model/prepare.h"
#include "ops/clone.h"
#include "pass/quant_formats.h"
#include "quant/output_scale.h"

qn_status qn_model_load(qn_model **out, qn_context *ctx, const char *path)
{
    return qn_import(out, ctx, path, NULL);
}

qn_status qn_model_load_with(qn_model **out, qn_context *ctx, const char *path,
                             const qn_model_load_options *options)
{
    return qn_import(out, ctx, path, options);
}

const char *qn_framework_name(size_t i)
{
    return i < qn_importers_count ? qn_importers[i]->name : NULL;
}

int qn_framework_is_read(const char *name)
{
    for (size_t i = 0; i < qn_importers_count; i++) {
        const qn_importer *importer = qn_importers[i];
        if (importer->load && (strcmp(importer->name, name) == 0 ||
                               (importer->family && strcmp(importer->family, name) == 0)))
            return 1;
    }
    return 0;
}

size_t qn_model_input_count(const qn_model *model)
{
    return model->graph->n_inputs;
}

size_t qn_model_output_count(const qn_model *model)
{
    return model->graph->n_outputs;
}

const char *qn_model_input_name(const qn_model *model, size_t i)
{
    return i < model->graph->n_inputs ? model->graph->inputs[i]->name : NULL;
}

const char *qn_model_output_name(const qn_model *model, size_t i)
{
    return i < model->graph->n_outputs ? model->graph->outputs[i]->name : NULL;
}

void qn_value_describe(qn_value_info *out, const qn_value *value)
{
    const qn_type *type = &value->type;
    const bool tensor = type->kind == QN_TYPE_TENSOR;
    *out = (qn_value_info){.name = value->name,
                           .dtype = tensor ? type->dtype : QN_UNDEFINED,
                           .rank = tensor ? type->rank : -1};
    for (int32_t d = 0; d < out->rank; d++) {
        out->dims[d] = type->dims[d].value;
        out->symbols[d] = type->dims[d].symbol;
    }
}

void qn_model_input_info(qn_value_info *out, const qn_model *model, size_t i)
{
    qn_value_describe(out, model->graph->inputs[i]);
}

void qn_model_output_info(qn_value_info *out, const qn_model *model, size_t i)
{
    qn_value_describe(out, model->graph->outputs[i]);
}

double qn_model_output_scale(const qn_model *model, size_t i)
{
    return qn_output_scale(model, model->graph->outputs[i]->name);
}

qn_status qn_model_optimize(qn_model **out, qn_context *ctx, qn_model *model,
                            const qn_graph_options *options)
{
    QN_TAKE_OPTIONS(qn_graph_options, taken, ctx, options);
    return qn_prepare_optimized(out, ctx, model, &taken, QN_PURPOSE_CONVERT, NULL);
}

const char *qn_form_name(size_t i)
{
    return i < qn_quant_formats_count ? qn_quant_formats[i].name : NULL;
}

qn_status qn_prepare_format(qn_model *model, const char *name)
{
    const qn_quant_format *form = NULL;
    QN_TRY(qn_quant_format_find(&form, model->ctx, name));
    if (!qn_graph_is_quantized(model->graph)) {
        qn_log(model->ctx, QN_LOG_WARN,
               "nothing in this model is quantized: `form` %s changes nothing", name);
        return QN_OK;
    }
    QN_TRY(qn_model_set_metadata(model, QN_QUANT_FORMAT_KEY, form->name));
    return form->apply(model);
}

qn_status qn_model_save(qn_context *ctx, qn_model *model, const char *path,
                        const qn_save_options *options)
{
    QN_TAKE_OPTIONS(qn_save_options, taken, ctx, options);
    const qn_save_options *o = &taken;
    const qn_export_options wanted = {.opset = o->opset, .external_from = o->external_from};
    qn_model *formed = NULL;
    if (!o->form)
        return qn_export_onnx(ctx, model, path, &wanted);
    QN_TRY(qn_model_clone(&formed, ctx, model)); /* so that the model stays what it is */
    qn_status status = qn_prepare_format(formed, o->form);
    if (status == QN_OK)
        status = qn_export_onnx(ctx, formed, path, &wanted);
    qn_model_free(formed);
    return status;
}
