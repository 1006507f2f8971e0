/* Ground-truth boxes from a folder or file, whichever format it has. */
#include "task/box_labels.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "data/listing.h"

struct qn_box_labels {
    qn_context *ctx;
    qn_arena arena;
    /* NULL: a COCO file */
    const char *folder;
    qn_coco *coco;
    int64_t missing;
    bool generated;
};

static bool ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), own = strlen(ending);
    return length >= own && strcasecmp(name + length - own, ending) == 0;
}

/* The only .json file of a folder without .txt files; NULL: there is none. */
static qn_status find_json(const char **out, qn_box_labels *t, const char *folder)
{
    DIR *dir = opendir(folder);
    size_t found = 0, texts = 0;
    const char *name = NULL;
    *out = NULL;
    if (!dir)
        return qn_fail(t->ctx, QN_E_IO, "%s: cannot open the folder of labels", folder);
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        texts += ends_with(entry->d_name, ".txt");
        if (!ends_with(entry->d_name, ".json"))
            continue;
        found++;
        name = qn_arena_format(&t->arena, "%s/%s", folder, entry->d_name);
        if (!name)
            break;
    }
    closedir(dir);
    if (found && !name)
        return qn_fail_nomem(t->ctx);
    if (!texts && found > 1)
        return qn_fail(t->ctx, QN_E_INVALID, "%s has %zu .json files: name the one with the boxes",
                       folder, found);
    *out = texts ? NULL : name;
    return QN_OK;
}

static qn_status find_note(qn_box_labels *t)
{
    const char *path = qn_arena_format(&t->arena, "%s/%s", t->folder, QN_GENERATED_NOTE);
    QN_TRY_ALLOC(t->ctx, path);
    t->generated = access(path, F_OK) == 0;
    return QN_OK;
}

bool qn_box_labels_there(const char *path)
{
    DIR *dir = opendir(path);
    bool found = !dir && ends_with(path, ".json") && access(path, F_OK) == 0;
    if (!dir)
        return found;
    for (const struct dirent *entry = readdir(dir); entry && !found; entry = readdir(dir))
        found = ends_with(entry->d_name, ".txt") || ends_with(entry->d_name, ".json");
    closedir(dir);
    return found;
}

bool qn_box_labels_generated(const qn_box_labels *labels)
{
    return labels->generated;
}

static qn_status open_path(qn_box_labels *t, const char *path)
{
    const char *json = path;
    if (qn_path_is_folder(path)) {
        QN_TRY(find_json(&json, t, path));
        if (!json) {
            t->folder = qn_arena_text(&t->arena, path, strlen(path));
            QN_TRY_ALLOC(t->ctx, t->folder);
            return find_note(t);
        }
    } else if (!ends_with(path, ".json")) {
        return qn_fail(t->ctx, QN_E_INVALID,
                       "%s: labels of detection are a folder of .txt files or a .json file", path);
    }
    return qn_coco_open(&t->coco, t->ctx, json);
}

qn_status qn_box_labels_open(qn_box_labels **out, qn_context *ctx, const char *path)
{
    qn_box_labels *t = qn_alloc_zero(ctx, 1, sizeof *t);
    *out = NULL;
    QN_TRY_ALLOC(ctx, t);
    t->ctx = ctx;
    qn_arena_init(&t->arena, &ctx->allocator);
    const qn_status status = open_path(t, path);
    if (status == QN_OK)
        *out = t;
    else
        qn_box_labels_free(t);
    return status;
}

void qn_box_labels_free(qn_box_labels *ground_truth)
{
    if (!ground_truth)
        return;
    qn_coco_free(ground_truth->coco);
    qn_arena_free(&ground_truth->arena);
    qn_free(ground_truth->ctx, ground_truth);
}

/* "sub/name.jpg" is "sub/name.txt" there, or "name.txt". */
static qn_status find_file(const char **out, qn_box_labels *t, const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strrchr(base, '.');
    const char *const starts[] = {name, base};
    *out = NULL;
    for (size_t i = 0; i < QN_COUNT_OF(starts) && !*out; i++) {
        const size_t length = dot && dot > base ? (size_t)(dot - starts[i]) : strlen(starts[i]);
        const char *path =
            qn_arena_format(&t->arena, "%s/%.*s.txt", t->folder, (int)length, starts[i]);
        QN_TRY_ALLOC(t->ctx, path);
        if (access(path, F_OK) == 0)
            *out = path;
    }
    return QN_OK;
}

qn_status qn_box_labels_boxes(qn_boxes *out, qn_box_labels *ground_truth, const char *name,
                              const qn_picture_place *place)
{
    const char *path;
    out->count = 0;
    if (ground_truth->coco)
        return qn_coco_boxes(out, ground_truth->coco, name);
    QN_TRY(find_file(&path, ground_truth, name));
    ground_truth->missing += path == NULL;
    return path ? qn_yolo_read(out, ground_truth->ctx, path, place) : QN_OK;
}

int64_t qn_box_labels_missing(const qn_box_labels *ground_truth)
{
    return ground_truth->missing;
}

const char *const *qn_box_labels_names(size_t *count, const qn_box_labels *ground_truth)
{
    *count = 0;
    return ground_truth->coco ? qn_coco_names(count, ground_truth->coco) : NULL;
}
