/* Labels of the built-in infer function. */
#include <string.h>
#include <unistd.h>

#include "data/listing.h"
#include "executor/infer_default.h"
#include "task/box_labels.h"

const char *qn_sibling_folder(qn_arena *arena, const char *data_dir, const char *name)
{
    size_t end = strlen(data_dir);
    while (end > 1 && data_dir[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && data_dir[start - 1] != '/')
        start--;
    const bool dots = strncmp(data_dir + start, ".", end - start) == 0 ||
                      strncmp(data_dir + start, "..", end - start) == 0;
    if (dots)
        return qn_arena_format(arena, "%.*s/../%s", (int)end, data_dir, name);
    return qn_arena_format(arena, "%.*s%s", (int)start, data_dir, name);
}

/* The file of classes: given itself, or by its folder. */
static const char *class_file(qn_arena *arena, const char *path)
{
    return qn_path_is_folder(path) ? qn_arena_format(arena, "%s/%s", path, QN_CLASS_LABELS)
                                   : qn_arena_text(arena, path, strlen(path));
}

typedef struct found {
    /* The file to read */
    const char *path;
    bool there, generated;
} found;

static qn_status look(found *out, qn_context *ctx, qn_arena *arena, const char *path, bool boxes)
{
    const char *note = qn_arena_format(arena, "%s/%s", path, QN_GENERATED_NOTE);
    out->path = boxes ? path : class_file(arena, path);
    if (!note || !out->path)
        return qn_fail_nomem(ctx);
    out->there = boxes ? qn_box_labels_there(path)
                       : !qn_path_is_folder(out->path) && access(out->path, F_OK) == 0;
    out->generated = access(note, F_OK) == 0;
    return QN_OK;
}

qn_status qn_label_place_find(qn_label_place *out, qn_context *ctx, qn_arena *arena,
                              const qn_input_config *config, bool is_float)
{
    const bool named = config->outputs.label_dir && *config->outputs.label_dir;
    const char *path =
        named ? config->outputs.label_dir : qn_sibling_folder(arena, config->data_dir, "labels");
    found f = {.path = NULL};
    *out = (qn_label_place){.labels = NULL};
    QN_TRY_ALLOC(ctx, path);
    QN_TRY(look(&f, ctx, arena, path, config->is_yolo));
    if (f.there && !f.generated && !named) {
        out->ignored = path;
        path = qn_arena_format(arena, "%s_float", path);
        QN_TRY_ALLOC(ctx, path);
        QN_TRY(look(&f, ctx, arena, path, config->is_yolo));
    }
    if (f.there && !f.generated) {
        out->labels = f.path;
        return QN_OK;
    }
    out->generated = true;
    if (is_float)
        out->made = path;
    else if (f.there)
        out->labels = f.path;
    else
        return qn_fail(ctx, QN_E_INVALID,
                       "there are no labels in %s, and a quantized model is no measure of itself: "
                       "give label_dir, or run the float model first, whose outputs become labels",
                       path);
    return QN_OK;
}
