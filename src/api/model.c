/* What the public header tells of a model. */
#include "import/import.h"

qn_status qn_model_load(qn_model **out, qn_context *ctx, const char *path)
{
    return qn_import_onnx(out, ctx, path);
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
