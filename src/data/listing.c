/* Lists of sample files, from folders and text files. */
#include "data/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/names.h"
#include "base/nearest.h"
#include "image/image.h"

/* ---- Kinds of files -------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), own = strlen(ending);
    return length > own && strcasecmp(path + length - own, ending) == 0;
}

static const struct {
    const char *ending;
    qn_file_kind kind;
} endings[] = {{".npy", QN_FILE_NPY},          {".npz", QN_FILE_NPZ},
               {".bin", QN_FILE_RAW},          {".raw", QN_FILE_RAW},
               {".gif", QN_FILE_UNDECODABLE},  {".heic", QN_FILE_UNDECODABLE},
               {".avif", QN_FILE_UNDECODABLE}, {".jp2", QN_FILE_UNDECODABLE}};

qn_file_kind qn_file_kind_of(const char *path)
{
    if (qn_image_is_file(path))
        return QN_FILE_PICTURE;
    for (size_t i = 0; i < QN_COUNT_OF(endings); i++) {
        if (ends_with(path, endings[i].ending))
            return endings[i].kind;
    }
    return QN_FILE_OTHER;
}

static bool is_sample(const char *path)
{
    const qn_file_kind kind = qn_file_kind_of(path);
    return kind != QN_FILE_OTHER && kind != QN_FILE_UNDECODABLE;
}

qn_status qn_fail_undecodable(qn_context *ctx, const char *path)
{
    return qn_fail(ctx, QN_E_UNSUPPORTED,
                   "%s: an image of a kind that cannot be read: convert to JPEG or PNG", path);
}

const char *qn_file_kind_name(qn_file_kind kind)
{
    static const char *const names[QN_FILE_KINDS] = {
        [QN_FILE_OTHER] = "other files", [QN_FILE_PICTURE] = "pictures",
        [QN_FILE_NPY] = ".npy files",    [QN_FILE_NPZ] = ".npz files",
        [QN_FILE_RAW] = "raw files",     [QN_FILE_UNDECODABLE] = "images of other kinds",
    };
    return names[kind];
}

bool qn_path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* ---- Folders --------------------------------------------------------------------------------- */

/* Names while they are collected. */
typedef struct collection {
    qn_context *ctx;
    qn_arena *arena;
    /* Names within the folder. */
    const char **names;
    /* One class per name. */
    int64_t *labels;
    size_t count, name_capacity, label_capacity;
    /* Files that are no samples by their names */
    size_t skipped;
    /* An image, if there is one among them */
    const char *first_skipped;
} collection;

static void collection_free(collection *c)
{
    qn_free(c->ctx, c->names);
    qn_free(c->ctx, c->labels);
}

static qn_status collect(collection *c, const char *name, size_t length, int64_t label)
{
    QN_TRY_GROW(c->ctx, c->names, c->name_capacity, c->count + 1);
    QN_TRY_GROW(c->ctx, c->labels, c->label_capacity, c->count + 1);
    const char *copy = qn_arena_text(c->arena, name, length);
    QN_TRY_ALLOC(c->ctx, copy);
    c->names[c->count] = copy;
    c->labels[c->count++] = label;
    return QN_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static qn_status cannot_open(qn_context *ctx, const char *path)
{
    return qn_fail(ctx, QN_E_IO, "%s: cannot open: %s", path, strerror(errno));
}

/* Whether the warning names this skipped file instead of `named`: an image rather than another
 * file, else the first by name. */
static bool is_named_first(const char *path, const char *named)
{
    if (!named)
        return true;
    const bool image = qn_file_kind_of(path) == QN_FILE_UNDECODABLE;
    const bool other = qn_file_kind_of(named) == QN_FILE_UNDECODABLE;
    return image == other ? strcmp(path, named) < 0 : image;
}

static void skip(collection *c, const char *path)
{
    if (qn_path_is_folder(path))
        return;
    c->skipped++;
    if (is_named_first(path, c->first_skipped))
        c->first_skipped = path;
}

/* Collects the sub-folders of a folder, or its files, sorted. Names that begin with a dot are
 * ignored. */
static qn_status collect_entries(collection *c, const char *folder, bool folders)
{
    qn_status status = QN_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return cannot_open(c->ctx, folder);
    for (struct dirent *entry; status == QN_OK && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        char *path = qn_arena_format(c->arena, "%s/%s", folder, entry->d_name);
        if (!path)
            status = qn_fail_nomem(c->ctx);
        else if (!folders && !is_sample(entry->d_name))
            skip(c, path);
        else if (qn_path_is_folder(path) == folders)
            status = collect(c, entry->d_name, strlen(entry->d_name), -1);
    }
    closedir(dir);
    if (c->count)
        qsort(c->names, c->count, sizeof *c->names, compare_names);
    return status;
}

static qn_status collect_class(collection *c, const char *folder, const char *name, int64_t label)
{
    collection own = {.ctx = c->ctx, .arena = c->arena};
    const char *path = qn_arena_format(c->arena, "%s/%s", folder, name);
    QN_TRY_ALLOC(c->ctx, path);
    qn_status status = collect_entries(&own, path, false);
    for (size_t i = 0; status == QN_OK && i < own.count; i++) {
        const char *within = qn_arena_format(c->arena, "%s/%s", name, own.names[i]);
        status = within ? collect(c, within, strlen(within), label) : qn_fail_nomem(c->ctx);
    }
    c->skipped += own.skipped;
    if (own.first_skipped && is_named_first(own.first_skipped, c->first_skipped))
        c->first_skipped = own.first_skipped;
    collection_free(&own);
    return status;
}

static qn_status collect_classes(collection *c, const char *folder)
{
    collection classes = {.ctx = c->ctx, .arena = c->arena};
    qn_status status = collect_entries(&classes, folder, true);
    for (size_t i = 0; status == QN_OK && i < classes.count; i++)
        status = collect_class(c, folder, classes.names[i], (int64_t)i);
    collection_free(&classes);
    return status;
}

/* ---- From names to a listing ----------------------------------------------------------------- */

static qn_status check_kind(qn_listing *listing, qn_context *ctx, const char *path)
{
    listing->kind = qn_file_kind_of(listing->names[0]);
    if (listing->kind == QN_FILE_UNDECODABLE)
        return qn_fail_undecodable(ctx, listing->paths[0]);
    for (int64_t i = 1; i < listing->count; i++) {
        const qn_file_kind kind = qn_file_kind_of(listing->names[i]);
        if (kind != listing->kind)
            return qn_fail(
                ctx, QN_E_INVALID, "%s holds %s and %s ('%s'): samples must be of one kind", path,
                qn_file_kind_name(listing->kind), qn_file_kind_name(kind), listing->names[i]);
    }
    return QN_OK;
}

/* Names are relative to `folder`; NULL: they stay as they are. */
static qn_status make_listing(qn_listing *out, const collection *c, const char *folder)
{
    *out = (qn_listing){.count = (int64_t)c->count};
    out->paths = qn_arena_array(c->arena, c->count, sizeof *out->paths);
    out->names = qn_arena_copy(c->arena, c->names, c->count * sizeof *c->names);
    QN_TRY_ALLOC(c->ctx, out->paths);
    QN_TRY_ALLOC(c->ctx, out->names);
    for (size_t i = 0; i < c->count; i++) {
        const bool absolute = !folder || c->names[i][0] == '/';
        out->paths[i] =
            absolute ? c->names[i] : qn_arena_format(c->arena, "%s/%s", folder, c->names[i]);
        QN_TRY_ALLOC(c->ctx, out->paths[i]);
    }
    if (c->labels[0] < 0)
        return QN_OK;
    out->labels = qn_arena_copy(c->arena, c->labels, c->count * sizeof *c->labels);
    QN_TRY_ALLOC(c->ctx, out->labels);
    return QN_OK;
}

static qn_status fail_empty(const collection *c, const char *path)
{
    char list[256] = "";
    const char *ending;
    for (size_t i = 0; (ending = qn_image_ending(i)) != NULL; i++)
        qn_word_list(list, sizeof list, "%s", ending);
    for (size_t i = 0; i < QN_COUNT_OF(endings); i++) {
        if (endings[i].kind != QN_FILE_UNDECODABLE)
            qn_word_list(list, sizeof list, "%s", endings[i].ending);
    }
    if (c->first_skipped && qn_file_kind_of(c->first_skipped) == QN_FILE_UNDECODABLE)
        return qn_fail_undecodable(c->ctx, c->first_skipped);
    return qn_fail(c->ctx, QN_E_INVALID, "%s: the folder has no samples (%s)", path, list);
}

static void warn_skipped(const collection *c, const char *path)
{
    if (!c->skipped)
        return;
    const bool foreign = qn_file_kind_of(c->first_skipped) == QN_FILE_UNDECODABLE;
    qn_log(c->ctx, QN_LOG_NOTE, "%s: %zu files are no samples and left out, such as %s%s", path,
           c->skipped, c->first_skipped,
           foreign ? ", an image of a kind that cannot be read (convert to JPEG or PNG)" : "");
}

qn_status qn_listing_folder(qn_listing *out, qn_context *ctx, qn_arena *arena, const char *path)
{
    collection c = {.ctx = ctx, .arena = arena};
    qn_status status = collect_entries(&c, path, false);
    if (status == QN_OK && c.count == 0)
        status = collect_classes(&c, path);
    if (status == QN_OK && c.count == 0)
        status = fail_empty(&c, path);
    if (status == QN_OK)
        status = make_listing(out, &c, path);
    if (status == QN_OK)
        status = check_kind(out, ctx, path);
    if (status == QN_OK)
        warn_skipped(&c, path);
    collection_free(&c);
    return status;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool qn_lines_next(const char **line, size_t *length, qn_lines *lines)
{
    static const char mark[] = "\xef\xbb\xbf"; /* that some editors put before UTF-8 */
    const char *text = (const char *)lines->map.data;
    if (lines->at == 0 && lines->map.size >= 3 && memcmp(text, mark, 3) == 0)
        lines->at = 3;
    while (lines->at < lines->map.size) {
        const char *start = text + lines->at;
        const char *newline = memchr(start, '\n', lines->map.size - lines->at);
        const char *end = newline ? newline : text + lines->map.size;
        lines->at += (size_t)(end - start) + 1;
        lines->number++;
        while (start < end && is_blank(*start))
            start++;
        while (end > start && is_blank(end[-1]))
            end--;
        if (start == end)
            continue;
        *line = start;
        *length = (size_t)(end - start);
        return true;
    }
    return false;
}

/* A name from its class. */
static bool divides(char c)
{
    return is_blank(c) || c == ',';
}

int64_t qn_line_label(const char *line, size_t *length)
{
    enum { MOST_DIGITS = 18 };
    size_t at = *length;
    int64_t value = 0;
    while (at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9')
        at--;
    const size_t digits = *length - at;
    if (digits == 0 || digits > MOST_DIGITS || at == 0 || !divides(line[at - 1]))
        return -1;
    for (size_t i = at; i < *length; i++)
        value = value * 10 + (line[i] - '0');
    while (at > 0 && divides(line[at - 1]))
        at--;
    *length = at;
    return at ? value : -1;
}

/* One line of a list of files. */
static qn_status collect_line(collection *c, const char *path, const qn_lines *lines,
                              const char *line, size_t length)
{
    const int64_t label = qn_line_label(line, &length);
    if (c->count && (label < 0) != (c->labels[0] < 0))
        return qn_fail(c->ctx, QN_E_INVALID, "%s:%lld: %s a class, unlike the lines before", path,
                       (long long)lines->number, label < 0 ? "lacks" : "has");
    if (memchr(line, 0, length))
        return qn_fail(c->ctx, QN_E_FORMAT, "%s:%lld: not a text", path, (long long)lines->number);
    return collect(c, line, length, label);
}

static qn_status collect_lines(collection *c, const char *path)
{
    qn_lines lines = {.at = 0};
    const char *line;
    size_t length;
    qn_status status = qn_map_open(&lines.map, c->ctx, path);
    while (status == QN_OK && qn_lines_next(&line, &length, &lines))
        status = collect_line(c, path, &lines, line, length);
    qn_map_close(&lines.map);
    if (status == QN_OK && c->count == 0)
        status = qn_fail(c->ctx, QN_E_INVALID, "%s: the list is empty", path);
    return status;
}

static qn_status check_there(const qn_listing *listing, qn_context *ctx, const char *list)
{
    struct stat info;
    for (int64_t i = 0; i < listing->count; i++) {
        if (stat(listing->paths[i], &info) != 0)
            return qn_fail(ctx, QN_E_IO, "%s names '%s', which cannot be opened: %s", list,
                           listing->paths[i], strerror(errno));
    }
    return QN_OK;
}

qn_status qn_listing_file(qn_listing *out, qn_context *ctx, qn_arena *arena, const char *path)
{
    collection c = {.ctx = ctx, .arena = arena};
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? qn_arena_text(arena, path, (size_t)(slash - path)) : NULL;
    qn_status status = slash && !folder ? qn_fail_nomem(ctx) : collect_lines(&c, path);
    if (status == QN_OK)
        status = make_listing(out, &c, folder);
    if (status == QN_OK)
        status = check_kind(out, ctx, path);
    if (status == QN_OK)
        status = check_there(out, ctx, path);
    collection_free(&c);
    return status;
}

/* ---- A choice among the files of a folder ---------------------------------------------------- */

/* The name without its ending. */
static const char *stem_of(qn_arena *arena, const char *name)
{
    const char *dot = strrchr(name, '.');
    return qn_arena_text(arena, name, dot ? (size_t)(dot - name) : strlen(name));
}

/* Maps names, with and without their endings, to pointers into listing->names. */
static qn_status index_names(qn_names *names, const qn_listing *listing, qn_context *ctx,
                             qn_arena *arena)
{
    for (int64_t i = 0; i < listing->count; i++) {
        const char *stem = stem_of(arena, listing->names[i]);
        QN_TRY_ALLOC(ctx, stem);
        QN_TRY(qn_names_set(names, stem, &listing->names[i]));
    }
    for (int64_t i = 0; i < listing->count; i++)
        QN_TRY(qn_names_set(names, listing->names[i], &listing->names[i]));
    return QN_OK;
}

static qn_status select_names(qn_listing *out, const qn_listing *from, const collection *chosen,
                              const qn_names *names, const char *list)
{
    int64_t *labels = from->labels || chosen->labels[0] >= 0
                          ? qn_arena_array(chosen->arena, chosen->count, sizeof *labels)
                          : NULL;
    for (size_t i = 0; i < chosen->count; i++) {
        const char **found = qn_names_get(names, chosen->names[i]);
        if (!found)
            return qn_fail(chosen->ctx, QN_E_INVALID, "%s names '%s', which the folder has not",
                           list, chosen->names[i]);
        const int64_t at = found - from->names;
        out->names[i] = from->names[at];
        out->paths[i] = from->paths[at];
        if (labels)
            labels[i] = chosen->labels[0] >= 0 ? chosen->labels[i] : from->labels[at];
    }
    out->count = (int64_t)chosen->count;
    out->labels = labels;
    return QN_OK;
}

static qn_status select_listed(qn_listing *listing, const collection *chosen, const char *list)
{
    const qn_listing all = *listing;
    qn_names names;
    qn_names_init(&names, chosen->ctx);
    listing->names = qn_arena_array(chosen->arena, chosen->count, sizeof *listing->names);
    listing->paths = qn_arena_array(chosen->arena, chosen->count, sizeof *listing->paths);
    qn_status status = listing->names && listing->paths
                           ? index_names(&names, &all, chosen->ctx, chosen->arena)
                           : qn_fail_nomem(chosen->ctx);
    if (status == QN_OK)
        status = select_names(listing, &all, chosen, &names, list);
    qn_names_free(&names);
    return status;
}

qn_status qn_listing_select(qn_listing *listing, qn_context *ctx, qn_arena *arena, const char *list)
{
    collection chosen = {.ctx = ctx, .arena = arena};
    qn_status status = collect_lines(&chosen, list);
    if (status == QN_OK)
        status = select_listed(listing, &chosen, list);
    collection_free(&chosen);
    return status;
}
