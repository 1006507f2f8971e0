/* .npz files: zip archives with one .npy file per array. */
#include <string.h>

#include "base/zip.h"
#include "data/array.h"

static bool is_array(const qn_zip_entry *entry)
{
    const qn_string name = entry->name;
    return name.length > 4 && memcmp(name.text + name.length - 4, ".npy", 4) == 0;
}

static qn_string array_name(const qn_zip_entry *entry)
{
    return (qn_string){entry->name.text, entry->name.length - 4};
}

static bool is_called(const qn_zip_entry *entry, const char *name)
{
    const size_t length = strlen(name);
    return is_array(entry) && array_name(entry).length == length &&
           memcmp(entry->name.text, name, length) == 0;
}

qn_status qn_npz_list(size_t *count, qn_string *names, size_t most, qn_context *ctx,
                      const qn_map *file)
{
    qn_zip zip;
    qn_zip_entry entry;
    qn_zip_cursor cursor = {0, 0};
    bool more;
    *count = 0;
    QN_TRY(qn_zip_open(&zip, ctx, file->data, file->size));
    for (;;) {
        QN_TRY(qn_zip_next(&entry, &more, &cursor, &zip));
        if (!more)
            return QN_OK;
        if (!is_array(&entry))
            continue;
        if (*count < most)
            names[*count] = array_name(&entry);
        ++*count;
    }
}

/* The entries that may be meant: the arrays called `name`, or all arrays. *out is the last of
 * them. */
static qn_status find_entries(qn_zip_entry *out, size_t *count, const qn_zip *zip, const char *name)
{
    qn_zip_cursor cursor = {0, 0};
    qn_zip_entry entry;
    bool more;
    *count = 0;
    for (;;) {
        QN_TRY(qn_zip_next(&entry, &more, &cursor, zip));
        if (!more)
            return QN_OK;
        if (name ? !is_called(&entry, name) : !is_array(&entry))
            continue;
        *out = entry;
        ++*count;
    }
}

qn_status qn_npz_has(bool *out, qn_context *ctx, const qn_map *file, const char *name)
{
    qn_zip zip;
    qn_zip_entry entry;
    size_t count;
    *out = false;
    QN_TRY(qn_zip_open(&zip, ctx, file->data, file->size));
    QN_TRY(find_entries(&entry, &count, &zip, name));
    *out = count > 0;
    return QN_OK;
}

qn_status qn_npz_find(const uint8_t **data, size_t *size, qn_array *array, const char *name)
{
    qn_context *ctx = array->ctx;
    qn_zip zip;
    qn_zip_entry found = {.size = 0};
    qn_zip_contents contents;
    size_t count;
    QN_TRY(qn_zip_open(&zip, ctx, array->map.data, array->map.size));
    QN_TRY(find_entries(&found, &count, &zip, name));
    if (count == 0)
        return qn_fail(ctx, QN_E_INVALID, "there is no array%s%s%s", name ? " '" : "",
                       name ? name : "", name ? "'" : "");
    const qn_string called = array_name(&found);
    if (count > 1)
        return qn_fail(ctx, QN_E_INVALID,
                       "%zu arrays: name one behind the file, as in FILE.npz:%.*s", count,
                       (int)called.length, called.text);
    QN_TRY(qn_zip_read(&contents, &zip, &found));
    array->block = contents.block;
    *data = contents.data;
    *size = contents.size;
    return QN_OK;
}
