/* qn_convert_file: a model after the passes, as a file. */
#include <sys/stat.h>

#include "api/convert_check.h"
#include "api/inspect.h"
#include "base/map.h"
#include "base/options.h"
#include "export/export.h"
#include "import/import.h"
#include "model/prepare.h"
#include "model/save_dir.h"
#include "pass/pass.h"

/* What was written is read again: a file that quench itself refuses is none to hand out as done. */
static qn_status write_file(qn_model **written, qn_item *root, qn_model *model, const char *path,
                            const qn_export_options *options)
{
    QN_TRY(qn_export_onnx(model->ctx, model, path, options));
    QN_TRY(qn_import_onnx(written, model->ctx, path));
    return qn_inspect_model(root, *written);
}

/* A device or a pipe cannot be read again: what goes there is read before, from memory. */
static qn_status write_stream(qn_model **written, qn_item *root, qn_model *model, const char *path,
                              const qn_export_options *options)
{
    qn_context *ctx = model->ctx;
    qn_onnx_bytes bytes;
    QN_TRY(qn_export_onnx_memory(&bytes, ctx, model, options));
    qn_status status = qn_import_onnx_memory(written, ctx, bytes.data, bytes.size);
    if (status == QN_OK) {
        qn_item_text(root, "file", path);
        status = qn_inspect_model(root, *written);
    }
    if (status == QN_OK)
        status = qn_output_save(ctx, path, bytes.data, bytes.size);
    /* The tensors of the model point into the bytes. */
    qn_model_free(*written);
    *written = NULL;
    qn_free(ctx, bytes.data);
    return status;
}

static bool is_stream(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* *written NULL: it went to a stream. */
static qn_status write_out(qn_model **written, qn_item *root, qn_model *model, const char *path,
                           const qn_save_options *o)
{
    const qn_export_options wanted = {.opset = o->opset, .external_from = o->external_from};
    if (o->form)
        QN_TRY(qn_prepare_format(model, o->form));
    return (is_stream(path) ? write_stream : write_file)(written, root, model, path, &wanted);
}

static qn_status convert(qn_item *root, qn_model *model, const char *path,
                         const qn_convert_options *options)
{
    qn_context *ctx = root->report->ctx;
    int64_t *changes = qn_arena_array(&root->report->arena, qn_passes_count, sizeof *changes);
    qn_model *better;
    QN_TRY_ALLOC(ctx, changes);
    QN_TRY(qn_prepare_optimized(&better, ctx, model, &options->graph, QN_PURPOSE_CONVERT, changes));
    qn_model *written = NULL;
    qn_status status = write_out(&written, root, better, path, &options->save);
    if (status == QN_OK)
        status = qn_convert_check(root, model, written ? written : better, options);
    qn_model_free(written);
    qn_model_free(better);
    QN_TRY(status);
    qn_inspect_passes(root, &options->graph, changes);
    return qn_report_finish(root->report);
}

qn_status qn_convert_file(qn_report **out, qn_context *ctx, qn_model *model, const char *path,
                          const qn_convert_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_convert_options, taken, ctx, options);
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    const qn_status status = convert(&report->root, model, path, &taken);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

qn_status qn_convert_model(qn_report **out, qn_context *ctx, qn_model *model, const char *save_dir,
                           const qn_convert_options *options)
{
    const char *folder = save_dir ? save_dir : "quench_out";
    qn_arena arena;
    char *path = NULL;
    *out = NULL;
    qn_arena_init(&arena, &ctx->allocator);
    qn_status status = qn_folder_make(ctx, folder);
    if (status == QN_OK)
        status = qn_folder_file(&path, &arena, model, folder, ".onnx");
    if (status == QN_OK)
        status = qn_folder_spare(ctx, path, model->path, "the model");
    if (status == QN_OK)
        status = qn_convert_file(out, ctx, model, path, options);
    qn_arena_free(&arena);
    return status;
}
