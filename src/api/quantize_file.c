/* qn_quantize_file: quantizes, and writes the result. */
#include <sys/stat.h>

#include "api/quantize.h"
#include "api/save_dir.h"
#include "pass/forms.h"

static int64_t file_size(const char *path)
{
    struct stat status;
    return path && stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

void qn_quantized_tell(qn_report *report, const qn_model *model, const char *path, int opset)
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

static qn_status quantize_to(qn_report **out, qn_quantized_file *file, qn_model *model,
                             const qn_quantize_options *options)
{
    qn_quantize_options watched = *options;
    qn_model *quantized = NULL;
    watched.better = qn_quantized_save;
    watched.better_user = file;
    const qn_status reached = qn_model_quantize(&quantized, out, file->ctx, model, &watched);
    qn_status status = reached == QN_E_GOAL ? QN_OK : reached;
    if (status == QN_OK)
        status = qn_quantized_save(file, quantized);
    qn_model_free(quantized);
    if (status == QN_OK) {
        qn_quantized_tell(*out, model, file->path, file->opset);
        status = qn_report_finish(*out);
    }
    return status == QN_OK ? reached : status;
}

qn_status qn_quantize_file(qn_report **out, qn_context *ctx, qn_model *model,
                           const qn_quantize_file_options *options)
{
    const qn_quantize_file_options defaults = QN_QUANTIZE_FILE_OPTIONS_INIT;
    const qn_quantize_file_options *o = options ? options : &defaults;
    const char *folder = o->save_dir ? o->save_dir : "quench_out";
    qn_quantized_file file = {
        .ctx = ctx, .form = o->form, .asked = o->opset, .batch = o->batch, .original = model->path};
    qn_quantize_options quantize = o->quantize;
    char *path = NULL, *scales = NULL;
    const qn_form_row *form;
    qn_arena arena;
    *out = NULL;
    qn_arena_init(&arena, &ctx->allocator);
    qn_status status = o->form ? qn_form_find(&form, ctx, o->form) : QN_OK;
    if (status == QN_OK)
        status = qn_folder_make(ctx, folder);
    if (status == QN_OK)
        status = qn_folder_file(&path, &arena, model, folder, "_quantize.onnx");
    file.path = path;
    if (status == QN_OK && o->scale_file)
        status = qn_folder_file(&scales, &arena, model, folder, "_scales.json");
    if (scales)
        quantize.save_scales = scales;
    if (status == QN_OK)
        status = quantize_to(out, &file, model, &quantize);
    qn_arena_free(&arena);
    if (status != QN_OK && status != QN_E_GOAL) {
        qn_report_free(*out);
        *out = NULL;
    }
    return status;
}
