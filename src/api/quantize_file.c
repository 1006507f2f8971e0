/* qn_quantize_file: quantizes, and writes the result. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "api/quantize.h"
#include "pass/forms.h"

enum { NARROW_OPSET = 13, WIDE_OPSET = 21 };

/* "<folder>/<name><suffix>" */
static qn_status output_path(char **out, qn_arena *arena, const qn_model *model, const char *folder,
                             const char *suffix)
{
    const char *path = model->path ? model->path : "model", *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    const size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    *out = qn_arena_format(arena, "%s/%.*s%s", folder, (int)length, name, suffix);
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

typedef struct target_file {
    qn_context *ctx;
    const char *path;
    const char *form; /* NULL: the default */
    int asked;        /* opset; 0: the least */
    int opset;        /* that was written */
} target_file;

/* With the first opset that has a form for every node. A qn_model_fn. */
static qn_status save(void *user, qn_model *model)
{
    target_file *file = user;
    const int last = file->asked ? file->asked : QN_LATEST_OPSET;
    qn_status status = QN_E_UNSUPPORTED;
    file->opset = file->asked ? file->asked : first_opset(model, file->form);
    for (;; file->opset++) {
        const qn_save_options options = {.opset = file->opset, .form = file->form};
        status = qn_model_save(file->ctx, model, file->path, &options);
        if (status != QN_E_UNSUPPORTED || file->opset == last)
            return status;
    }
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

static qn_status quantize_to(qn_report **out, target_file *file, qn_model *model,
                             const qn_quantize_options *options)
{
    qn_quantize_options watched = *options;
    qn_model *quantized = NULL;
    watched.better = save;
    watched.better_user = file;
    const qn_status reached = qn_model_quantize(&quantized, out, file->ctx, model, &watched);
    qn_status status = reached == QN_E_GOAL ? QN_OK : reached;
    if (status == QN_OK)
        status = save(file, quantized);
    qn_model_free(quantized);
    if (status == QN_OK) {
        tell_file(*out, model, file->path, file->opset);
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
    target_file file = {.ctx = ctx, .form = o->form, .asked = o->opset};
    qn_quantize_options quantize = o->quantize;
    char *path = NULL, *scales = NULL;
    const qn_form_row *form;
    qn_arena arena;
    *out = NULL;
    qn_arena_init(&arena, &ctx->allocator);
    qn_status status = o->form ? qn_form_find(&form, ctx, o->form) : QN_OK;
    if (status == QN_OK)
        status = make_folder(ctx, folder);
    if (status == QN_OK)
        status = output_path(&path, &arena, model, folder, "_quantize.onnx");
    file.path = path;
    if (status == QN_OK && o->scale_file)
        status = output_path(&scales, &arena, model, folder, "_scales.json");
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
