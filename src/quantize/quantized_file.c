/* Quantized models in files. */
#include "quantize/quantized_file.h"

#include <string.h>
#include <sys/stat.h>

#include "ir/qparams.h"
#include "ir/width.h"
#include "model/prepare.h"
#include "ops/infer.h"
#include "ops/kinds.h"
#include "quant/input_types.h"

enum { FIRST_OPSET = 13 };

/* ---- Saving ---------------------------------------------------------------------------------- */

/* The first opset that has QuantizeLinear for all integers of the model. */
static int first_opset(const qn_model *model, const char *form)
{
    const bool has_integers = !form || strcmp(form, "fake") != 0;
    int opset = FIRST_OPSET;
    for (size_t i = 0; i < model->graph->n_values && has_integers; i++) {
        const qn_qparams *p = model->graph->values[i]->qparams;
        const qn_width *width = p ? qn_width_of(p->dtype) : NULL;
        opset = width ? QN_MAX(opset, width->opset) : opset;
    }
    return opset;
}

/* Saves it with the first opset that has a form for every node. */
static qn_status save(qn_quantized_file *file, qn_model *model)
{
    const int last = file->asked ? file->asked : QN_LATEST_OPSET;
    file->opset = file->asked ? file->asked : first_opset(model, file->form);
    for (;; file->opset++) {
        const qn_save_options options = {QN_OPTIONS_VERSION, .opset = file->opset,
                                         .form = file->form};
        const qn_status status = qn_model_save(file->ctx, model, file->path, &options);
        if (status != QN_E_UNSUPPORTED || file->opset == last)
            return status;
    }
}

static bool has_open_batch(const qn_model *model)
{
    for (size_t i = 0; i < model->graph->n_inputs; i++) {
        const qn_type *type = &model->graph->inputs[i]->type;
        if (type->kind == QN_TYPE_TENSOR && type->rank > 0 && type->dims[0].value < 0)
            return true;
    }
    return false;
}

static bool same_open(const qn_dim *a, const qn_dim *b)
{
    return a->value < 0 && b->value < 0 && a->symbol && b->symbol &&
           strcmp(a->symbol, b->symbol) == 0;
}

/* The first dimension of an input is the batch, unless a recurrent node takes it for its steps. */
static void note_steps(const qn_quantized_file *file, const qn_graph *graph, const qn_value *input)
{
    for (const qn_node *node = graph->first; node; node = node->next) {
        const qn_type *type = qn_op_is_recurrent(node->op) ? &node->in[0]->type : NULL;
        if (!type || type->rank != 3 || !same_open(&type->dims[0], &input->type.dims[0]))
            continue;
        qn_log(file->ctx, QN_LOG_NOTE,
               "input '%s': its open dimension '%s' is the steps of %s '%s', and %lld of them are "
               "in the file: say how many with `shapes`",
               input->name, input->type.dims[0].symbol, node->op->name, node->name,
               (long long)file->batch);
        return;
    }
}

static void note_all_steps(const qn_quantized_file *file, const qn_graph *graph)
{
    for (size_t i = 0; file->batch && i < graph->n_inputs; i++) {
        if (graph->inputs[i]->type.kind == QN_TYPE_TENSOR && graph->inputs[i]->type.rank > 0)
            note_steps(file, graph, graph->inputs[i]);
    }
}

/* A copy with the inputs that are asked for. */
static qn_status save_changed(qn_quantized_file *file, qn_model *model)
{
    const qn_graph_options graph = {QN_OPTIONS_VERSION,
                                    .batch = has_open_batch(model) ? file->batch : 0};
    qn_model *changed = NULL;
    note_all_steps(file, model->graph);
    QN_TRY(qn_prepare_shapes(&changed, file->ctx, model, &graph, false));
    qn_status status = qn_graph_infer(changed->graph);
    if (status == QN_OK && file->settings)
        status = qn_input_types_apply(changed, file->settings);
    if (status == QN_OK)
        status = save(file, changed);
    qn_model_free(changed);
    return status;
}

qn_status qn_quantized_save(void *user, qn_model *model)
{
    qn_quantized_file *file = user;
    QN_TRY(qn_folder_spare(file->ctx, file->path, file->original, "the model"));
    const bool typed = file->settings && file->settings->n_input_types;
    return typed || (file->batch && has_open_batch(model)) ? save_changed(file, model)
                                                           : save(file, model);
}

/* ---- Report ---------------------------------------------------------------------------------- */

static int64_t file_size(const char *path)
{
    struct stat status;
    return path && stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

void qn_quantized_file_report(qn_report *report, const qn_model *model, const char *path, int opset)
{
    qn_item *root = &report->root, *rest = root->first;
    root->first = root->last = NULL;
    qn_item_text(root, "file", path);
    qn_item_int(root, "opset", opset);
    qn_item_int(root, "bytes_before", file_size(model->path));
    qn_item_int(root, "bytes_after", file_size(path));
    if (root->last) {
        root->last->next = rest;
        while (root->last->next)
            root->last = root->last->next;
    }
}
