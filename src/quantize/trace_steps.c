/* Models of the steps of a quantization. */
#include "ops/clone.h"
#include "ops/infer.h"
#include "quant/input_types.h"
#include "quantize/quantized_file.h"
#include "quantize/traces.h"

static qn_status save_step(qn_model *model, const char *folder, const char *name,
                           const qn_quantized_file *like)
{
    qn_quantized_file file = *like;
    qn_arena arena;
    char *path = NULL;
    qn_arena_init(&arena, &like->ctx->allocator);
    qn_status status = QN_OK;
    if (name[0] == '_')
        status = qn_folder_file(&path, &arena, model, folder, name);
    else
        path = qn_arena_format(&arena, "%s/%s", folder, name);
    if (status == QN_OK && !path)
        status = qn_fail_nomem(like->ctx);
    file.path = path;
    if (status == QN_OK)
        status = qn_quantized_save(&file, model);
    qn_arena_free(&arena);
    if (status != QN_E_UNSUPPORTED)
        return status;
    qn_log(like->ctx, QN_LOG_WARN, "steps: %s cannot be written: %s", name,
           qn_context_error(like->ctx));
    return QN_OK;
}

static qn_status add_outputs(qn_graph *graph)
{
    for (const qn_node *node = graph->first; node; node = node->next) {
        for (int32_t i = 0; i < node->n_out; i++) {
            qn_value *value = node->out[i];
            if (value && !value->is_output && value->type.kind == QN_TYPE_TENSOR &&
                value->type.dtype != QN_UNDEFINED)
                QN_TRY(qn_graph_add_output(graph, value));
        }
    }
    return QN_OK;
}

static qn_status save_all_layers(qn_model *quantized, const char *folder,
                                 const qn_quantized_file *like)
{
    qn_model *all = NULL;
    QN_TRY(qn_model_clone(&all, like->ctx, quantized));
    qn_quantized_file file = *like;
    qn_status status = qn_graph_infer(all->graph);
    file.settings = NULL; /* what would be taken away is an output too, later */
    if (status == QN_OK && like->settings)
        status = qn_input_types_apply(all, like->settings);
    if (status == QN_OK)
        status = add_outputs(all->graph);
    if (status == QN_OK)
        status = save_step(all, folder, "output_all_layers_quantize.onnx", &file);
    qn_model_free(all);
    return status;
}

qn_status qn_trace_steps(const qn_quantize_input *input, const qn_quantized_model *quantized,
                         qn_model *model, const char *folder, const qn_quantized_file *file)
{
    const qn_quantized_file plain = {.ctx = input->ctx, .original = model->path};
    qn_arena arena;
    qn_arena_init(&arena, &input->ctx->allocator);
    const char *steps = qn_arena_format(&arena, "%s/steps", folder);
    qn_status status = steps ? qn_folder_make(input->ctx, steps) : qn_fail_nomem(input->ctx);
    if (status == QN_OK)
        status = save_step(model, steps, "_converted.onnx", &plain);
    if (status == QN_OK)
        status = save_step(input->data->real, steps, "_optimized.onnx", &plain);
    if (status == QN_OK)
        status = save_step(quantized->model, steps, "_quantized.onnx", file);
    if (status == QN_OK)
        status = save_all_layers(quantized->model, steps, file);
    qn_arena_free(&arena);
    return status;
}
