/* qn_convert_file: a model after the passes, as a file. */
#include "api/inspect.h"
#include "api/prepare.h"
#include "api/save_dir.h"
#include "import/import.h"
#include "pass/pass.h"

/* What was written is read again: a file that quench itself refuses is none to hand out as done. */
static qn_status describe(qn_item *root, qn_context *ctx, const char *path)
{
    qn_model *written;
    QN_TRY(qn_import_onnx(&written, ctx, path));
    const qn_status status = qn_inspect_model(root, written);
    qn_model_free(written);
    return status;
}

static qn_status convert(qn_item *root, qn_model *model, const char *path,
                         const qn_convert_options *options)
{
    qn_context *ctx = root->report->ctx;
    int64_t *changes = qn_arena_array(&root->report->arena, qn_passes_count, sizeof *changes);
    qn_model *better;
    QN_TRY_ALLOC(ctx, changes);
    QN_TRY(qn_prepare_optimized(&better, ctx, model, &options->graph, QN_PURPOSE_CONVERT, changes));
    const qn_status status = qn_model_save(ctx, better, path, &options->save);
    qn_model_free(better);
    QN_TRY(status);
    QN_TRY(describe(root, ctx, path));
    qn_inspect_passes(root, &options->graph, changes);
    return qn_report_finish(root->report);
}

qn_status qn_convert_file(qn_report **out, qn_context *ctx, qn_model *model, const char *path,
                          const qn_convert_options *options)
{
    const qn_convert_options defaults = QN_CONVERT_OPTIONS_INIT;
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, ctx));
    const qn_status status = convert(&report->root, model, path, options ? options : &defaults);
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
