/* Layers that lie in a folder as files, with or without an index. */
#include "compare/dump_read.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/json.h"
#include "data/listing.h"

typedef struct reading {
    qn_context *ctx;
    qn_arena *arena;
    const qn_dump_choice *choice;
    /* The folder that has the index or the sides */
    const char *folder;
    qn_dump_side *out;
} reading;

/* ---- Names ----------------------------------------------------------------------------------- */

static const char *stem_of(qn_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return qn_arena_text(arena, name, dot ? (size_t)(dot - name) : strlen(name));
}

/* What stands behind the number that files of a dump begin with: "0012_". */
static const char *without_number(const char *stem)
{
    const size_t digits = strspn(stem, "0123456789");
    return digits && stem[digits] == '_' && stem[digits + 1] ? stem + digits + 1 : stem;
}

/* The same text but for what file names cannot have. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        const char x = *a == '/' || *a == '\\' ? '_' : *a, y = *b == '/' || *b == '\\' ? '_' : *b;
        if (x != y)
            return false;
    }
    return *a == *b;
}

const qn_dump_file *qn_dump_match(const qn_dump_side *side, const qn_dump_file *file)
{
    for (size_t i = 0; i < side->count; i++) {
        if (strcmp(side->files[i].name, file->name) == 0)
            return &side->files[i];
    }
    for (size_t i = 0; i < side->count; i++) {
        const qn_dump_file *f = &side->files[i];
        if (strcmp(f->stem, file->stem) == 0 ||
            same_name(without_number(f->stem), without_number(file->stem)) ||
            same_name(f->stem, file->name) || same_name(f->name, file->stem))
            return f;
    }
    return NULL;
}

/* ---- A plain folder -------------------------------------------------------------------------- */

static qn_status read_folder(reading *r, const char *folder)
{
    qn_listing listing = {.count = 0};
    QN_TRY(qn_listing_folder(&listing, r->ctx, r->arena, folder));
    if (listing.kind != QN_FILE_NPY)
        return qn_fail(r->ctx, QN_E_INVALID, "%s: has %s, and layers are .npy files", folder,
                       qn_file_kind_name(listing.kind));
    r->out->folder = folder;
    r->out->files = qn_arena_array(r->arena, (size_t)listing.count + 1, sizeof *r->out->files);
    QN_TRY_ALLOC(r->ctx, r->out->files);
    for (int64_t i = 0; i < listing.count; i++) {
        const char *stem = stem_of(r->arena, listing.paths[i]);
        QN_TRY_ALLOC(r->ctx, stem);
        r->out->files[r->out->count++] = (qn_dump_file){.index = i,
                                                        .name = without_number(stem),
                                                        .node = "",
                                                        .op = "",
                                                        .path = listing.paths[i],
                                                        .stem = stem};
    }
    return QN_OK;
}

/* ---- An index -------------------------------------------------------------------------------- */

static qn_status read_type(qn_dump_file *f, const qn_json_place *place)
{
    const char *name = NULL;
    QN_TRY(qn_json_get_text(&name, place));
    f->dtype = qn_dtype_by_name(name);
    return f->dtype != QN_UNDEFINED && qn_dtype_is_integer(f->dtype)
               ? QN_OK
               : qn_json_fail(place, QN_E_FORMAT, "'%s' is no type of integers", name);
}

static qn_status read_integers(qn_dump_file *f, const qn_json_place *row)
{
    qn_json_place type, scale, zero, flag;
    if (!qn_json_find(&type, row, "type"))
        return QN_OK;
    QN_TRY(read_type(f, &type));
    QN_TRY(qn_json_member(&scale, row, "scale"));
    QN_TRY(qn_json_get_float(&f->scale, &scale));
    if (!(f->scale > 0) || !isfinite(f->scale))
        return qn_json_fail(&scale, QN_E_FORMAT, "a scale is positive and finite");
    QN_TRY(qn_json_member(&zero, row, "zero_point"));
    QN_TRY(qn_json_get_int(&f->zero, &zero, INT32_MIN, INT32_MAX));
    if (qn_json_find(&flag, row, "through"))
        QN_TRY(qn_json_get_bool(&f->through, &flag));
    if (qn_json_find(&flag, row, "balanced"))
        QN_TRY(qn_json_get_bool(&f->smoothed, &flag));
    return QN_OK;
}

static qn_status read_texts(const char ***out, size_t *count, reading *r, const qn_json_place *row,
                            const char *key)
{
    qn_json_place list;
    size_t length = 0;
    if (!qn_json_find(&list, row, key))
        return QN_OK;
    QN_TRY(qn_json_length(&length, &list));
    *out = qn_arena_array(r->arena, length + 1, sizeof **out);
    QN_TRY_ALLOC(r->ctx, *out);
    for (; *count < length; (*count)++) {
        const qn_json_place item = qn_json_element(&list, *count);
        const char *text = NULL;
        QN_TRY(qn_json_get_text(&text, &item));
        (*out)[*count] = qn_arena_text(r->arena, text, strlen(text));
        QN_TRY_ALLOC(r->ctx, (*out)[*count]);
    }
    return QN_OK;
}

/* A file of the folder: an index may come from anywhere. */
static qn_status read_path(qn_dump_file *f, reading *r, const qn_json_place *row, const char *side)
{
    const char *file = NULL;
    qn_json_place item;
    QN_TRY(qn_json_member(&item, row, side));
    QN_TRY(qn_json_get_text(&file, &item));
    if (file[0] == '/' || strstr(file, ".."))
        return qn_json_fail(&item, QN_E_FORMAT, "'%s' does not lie in the folder", file);
    f->path = qn_arena_format(r->arena, "%s/%s", r->folder, file);
    f->stem = stem_of(r->arena, file);
    return f->path && f->stem ? QN_OK : qn_fail_nomem(r->ctx);
}

static qn_status read_row(reading *r, const qn_json_place *row)
{
    const char *side = qn_dump_sides[r->choice->side];
    qn_dump_file *f = &r->out->files[r->out->count];
    qn_json_place item;
    if (r->choice->optional && !qn_json_find(&item, row, side))
        return QN_OK;
    *f = (qn_dump_file){.index = (int64_t)r->out->count};
    QN_TRY(qn_json_member_copy(&f->name, r->arena, row, "tensor"));
    QN_TRY(qn_json_member_copy(&f->node, r->arena, row, "node"));
    QN_TRY(qn_json_member_copy(&f->op, r->arena, row, "operator"));
    QN_TRY(read_texts(&f->names, &f->n_names, r, row, "names"));
    QN_TRY(read_texts(&f->ops, &f->n_ops, r, row, "operators"));
    if (qn_json_find(&item, row, "index"))
        QN_TRY(qn_json_get_int(&f->index, &item, 0, INT32_MAX));
    QN_TRY(read_integers(f, row));
    QN_TRY(read_path(f, r, row, side));
    r->out->count++;
    return QN_OK;
}

static qn_status read_rows(reading *r, const qn_json_document *document)
{
    const qn_json_place root = qn_json_root(document);
    qn_json_place list;
    size_t count = 0;
    QN_TRY(qn_json_member(&list, &root, "layers"));
    QN_TRY(qn_json_length(&count, &list));
    r->out->files = qn_arena_array(r->arena, count + 1, sizeof *r->out->files);
    QN_TRY_ALLOC(r->ctx, r->out->files);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place row = qn_json_element(&list, i);
        QN_TRY(read_row(r, &row));
    }
    return QN_OK;
}

static qn_status read_index(reading *r, const char *path)
{
    qn_json_document *document = NULL;
    QN_TRY(qn_json_load(&document, r->ctx, path));
    const qn_status status = read_rows(r, document);
    qn_json_document_free(document);
    r->out->folder = qn_arena_format(r->arena, "%s/%s", r->folder, qn_dump_sides[r->choice->side]);
    QN_TRY(status);
    QN_TRY_ALLOC(r->ctx, r->out->folder);
    return QN_OK;
}

/* ---- Which of them --------------------------------------------------------------------------- */

static bool is_file(const char *path)
{
    return access(path, F_OK) == 0 && !qn_folder_is(path);
}

/* The folder with an index: as given, or the dump in it. */
static qn_status find_index(const char **out, reading *r)
{
    static const char *const below[] = {"", "/dump"};
    *out = NULL;
    for (size_t i = 0; i < QN_COUNT_OF(below); i++) {
        const char *folder = qn_arena_format(r->arena, "%s%s", r->choice->folder, below[i]);
        const char *path = folder ? qn_arena_format(r->arena, "%s/" QN_DUMP_INDEX, folder) : NULL;
        QN_TRY_ALLOC(r->ctx, path);
        if (!is_file(path))
            continue;
        r->folder = folder;
        *out = path;
        return QN_OK;
    }
    return QN_OK;
}

qn_status qn_dump_open(qn_dump_side *out, qn_context *ctx, qn_arena *arena,
                       const qn_dump_choice *choice)
{
    reading r = {ctx, arena, choice, choice->folder, out};
    const char *index = NULL;
    *out = (qn_dump_side){.folder = choice->folder};
    if (!qn_folder_is(choice->folder))
        return qn_fail(ctx, QN_E_IO, "%s: is no folder", choice->folder);
    QN_TRY(find_index(&index, &r));
    if (index)
        return read_index(&r, index);
    const char *side = qn_arena_format(arena, "%s/%s", choice->folder, qn_dump_sides[choice->side]);
    QN_TRY_ALLOC(ctx, side);
    if (qn_folder_is(side))
        return read_folder(&r, side);
    if (choice->optional)
        return QN_OK;
    if (choice->side == QN_SIDE_FLOAT)
        return qn_fail(ctx, QN_E_INVALID,
                       "%s: has neither " QN_DUMP_INDEX " nor a folder %s: it is no dump of "
                       "`dump`",
                       choice->folder, qn_dump_sides[choice->side]);
    return read_folder(&r, choice->folder);
}
