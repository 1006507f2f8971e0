/* qn_quantize_file: quantizes, and writes the result. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "api/quantize.h"
#include "pass/forms.h"

enum { NARROW_OPSET = 13, WIDE_OPSET = 21 };

/* "<folder>/<name>_quantize.onnx" */
static qn_status output_path(char **out, qn_arena *arena, const qn_model *model, const char *folder)
{
    const char *path = model->path ? model->path : "model", *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    const size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    *out = qn_arena_format(arena, "%s/%.*s_quantize.onnx", folder, (int)length, name);
    QN_TRY_ALLOC(model->ctx, *out);
    return QN_OK;
}

static qn_status make_folder(qn_context *ctx, const char *folder)
{
    struct stat status;
    if (mkdir(folder, 0777) == 0 ||
        (errno == EEXIST && stat(folder, &status) == 0 && S_ISDIR(status.st_mode)))
        return QN_OK;
    return qn_fail(ctx, QN_E_IO, "cannot make folder '%s': %s", folder,
                   errno == EEXIST ? "a file has that name" : strerror(errno));
}

static bool is_wide(const qn_model *model)
{
    for (size_t i = 0; i < model->graph->n_values; i++) {
        const qn_qparams *p = model->graph->values[i]->qparams;
        if (p && qn_dtype_get(p->dtype)->bits == 16)
            return true;
    }
    return false;
}

static int first_opset(const qn_model *model, const char *form)
{
    const bool has_integers = !form || strcmp(form, "fake") != 0;
    return has_integers && is_wide(model) ? WIDE_OPSET : NARROW_OPSET;
}

/* The first opset that has a form for every node. */
static qn_status save(int *opset, qn_context *ctx, qn_model *model, const char *path,
                      const char *form)
{
    const int first = *opset ? *opset : first_opset(model, form);
    const int last = *opset ? *opset : QN_LATEST_OPSET;
    qn_status status = QN_E_UNSUPPORTED;
    for (*opset = first; status == QN_E_UNSUPPORTED; ++*opset) {
        const qn_save_options options = {.opset = *opset, .form = form};
        status = qn_model_save(ctx, model, path, &options);
        if (status != QN_E_UNSUPPORTED || *opset == last)
            break;
    }
    return status;
}

static int64_t file_size(const char *path)
{
    struct stat status;
    return path && stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

/* The report's first lines. */
static void tell_file(qn_report *report, const qn_model *model, const char *path, int opset)
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

qn_status qn_quantize_file(qn_report **out, qn_context *ctx, qn_model *model,
                           const qn_quantize_file_options *options)
{
    const qn_quantize_file_options defaults = QN_QUANTIZE_FILE_OPTIONS_INIT;
    const qn_quantize_file_options *o = options ? options : &defaults;
    const char *folder = o->save_dir ? o->save_dir : "quench_out";
    qn_model *quantized = NULL;
    qn_report *report = NULL;
    char *path = NULL;
    const qn_form_row *form;
    int opset = o->opset;
    *out = NULL;
    qn_status status = o->form ? qn_form_find(&form, ctx, o->form) : QN_OK;
    if (status == QN_OK)
        status = make_folder(ctx, folder);
    if (status == QN_OK)
        status = qn_model_quantize(&quantized, &report, ctx, model, &o->quantize);
    if (status == QN_OK)
        status = output_path(&path, &report->arena, model, folder);
    if (status == QN_OK)
        status = save(&opset, ctx, quantized, path, o->form);
    if (status == QN_OK) {
        tell_file(report, model, path, opset);
        status = qn_report_finish(report);
    }
    qn_model_free(quantized);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
