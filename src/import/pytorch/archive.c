/* PyTorch's archives: entries by name, pickles, and the numbers of tensors. */
#include "import/pytorch/archive.h"

#include <stdio.h>
#include <string.h>

/* More entries than any model has tensors. */
enum { MOST_ENTRIES = 1 << 20 };

/* Weights hardly become smaller when somebody packs them: small files may unpack to so many bytes,
 * others to so many times their own. */
enum { FREE_BYTES = 1 << 28, MOST_TIMES = 16 };

void qn_torch_archive_init(qn_torch_archive *out, qn_model *model)
{
    *out = (qn_torch_archive){.ctx = model->ctx, .model = model};
    qn_names_init(&out->entries, model->ctx);
    qn_names_init(&out->storages, model->ctx);
}

void qn_torch_archive_close(qn_torch_archive *archive)
{
    if (!archive->ctx)
        return;
    for (size_t i = 0; i < archive->n_blocks; i++)
        qn_free_aligned(&archive->ctx->allocator, archive->blocks[i]);
    qn_free(archive->ctx, archive->blocks);
    qn_names_free(&archive->entries);
    qn_names_free(&archive->storages);
    *archive = (qn_torch_archive){.ctx = NULL};
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* The length of the folder that all entries lie in, with its slash; 0: there is none. */
static qn_status find_folder(size_t *length, const qn_zip *zip)
{
    qn_zip_cursor cursor = {0, 0};
    qn_zip_entry entry;
    qn_string first = {NULL, 0};
    bool more;
    *length = 0;
    for (;;) {
        QN_TRY(qn_zip_next(&entry, &more, &cursor, zip));
        if (!more)
            break;
        const char *slash = memchr(entry.name.text, '/', entry.name.length);
        if (!first.text)
            first = (qn_string){entry.name.text, slash ? (size_t)(slash - entry.name.text) + 1 : 0};
        if (!first.length || entry.name.length < first.length ||
            memcmp(entry.name.text, first.text, first.length) != 0)
            return QN_OK;
    }
    *length = first.length;
    return QN_OK;
}

/* Entries of one name are all the same to readers of zip files that take the last: so does this. */
static qn_status note_entry(qn_torch_archive *archive, const qn_zip_entry *entry, size_t folder)
{
    qn_arena *arena = &archive->model->arena;
    qn_zip_entry *kept = qn_arena_copy(arena, entry, sizeof *entry);
    const char *name = qn_arena_text(arena, entry->name.text + folder, entry->name.length - folder);
    QN_TRY_ALLOC(archive->ctx, kept);
    QN_TRY_ALLOC(archive->ctx, name);
    return qn_names_set(&archive->entries, name, kept);
}

qn_status qn_torch_archive_open(qn_torch_archive *out, qn_model *model, qn_string data,
                                uint64_t budget)
{
    qn_zip_cursor cursor = {0, 0};
    qn_zip_entry entry;
    size_t folder;
    bool more = true;
    qn_torch_archive_init(out, model);
    QN_TRY(qn_zip_open(&out->zip, model->ctx, (const uint8_t *)data.text, data.length));
    const uint64_t most = QN_MAX((uint64_t)FREE_BYTES, (uint64_t)data.length * MOST_TIMES);
    out->zip.budget = QN_MIN(QN_MIN(out->zip.budget, most), budget);
    if (out->zip.count > MOST_ENTRIES)
        return qn_fail(model->ctx, QN_E_FORMAT, "the archive claims %llu entries",
                       (unsigned long long)out->zip.count);
    QN_TRY(find_folder(&folder, &out->zip));
    for (;;) {
        QN_TRY(qn_zip_next(&entry, &more, &cursor, &out->zip));
        if (!more)
            return QN_OK;
        QN_TRY(note_entry(out, &entry, folder));
    }
}

bool qn_torch_archive_has(const qn_torch_archive *archive, const char *name)
{
    return qn_names_get(&archive->entries, name) != NULL;
}

static qn_status find_entry(const qn_zip_entry **out, const qn_torch_archive *archive,
                            const char *name)
{
    *out = qn_names_get(&archive->entries, name);
    if (!*out)
        return qn_fail(archive->ctx, QN_E_FORMAT, "the archive has no '%s'", name);
    return QN_OK;
}

qn_status qn_torch_archive_read(qn_string *out, qn_torch_archive *archive, const char *name)
{
    const qn_zip_entry *entry;
    qn_zip_contents contents;
    QN_TRY(find_entry(&entry, archive, name));
    QN_TRY_GROW(archive->ctx, archive->blocks, archive->blocks_capacity, archive->n_blocks + 1);
    QN_TRY(qn_zip_read(&contents, &archive->zip, entry));
    if (contents.block)
        archive->blocks[archive->n_blocks++] = contents.block;
    *out = (qn_string){(const char *)contents.data, contents.size};
    return QN_OK;
}

qn_status qn_torch_archive_pickle(qn_torch_value *out, qn_torch_archive *archive, const char *name,
                                  const char *folder)
{
    qn_pickle_text text = {.name = name, .folder = folder, .storages = &archive->storages};
    size_t used;
    QN_TRY(qn_torch_archive_read(&text.bytes, archive, name));
    return qn_pickle_read(out, &used, archive->ctx, &archive->model->arena, &text);
}

/* ---- Storages -------------------------------------------------------------------------------- */

/* Unpacked bytes become the model's. */
static qn_status keep_unpacked(qn_string *out, const qn_torch_archive *archive,
                               const qn_zip_contents *contents)
{
    const int64_t dims[1] = {(int64_t)contents->size};
    const qn_type type = qn_type_tensor(QN_UINT8, 1, dims);
    qn_tensor *tensor;
    QN_TRY(qn_model_tensor(&tensor, archive->model, &type));
    memcpy(tensor->data, contents->data, contents->size);
    *out = (qn_string){tensor->data, contents->size};
    return QN_OK;
}

qn_status qn_torch_archive_storage(qn_string *out, qn_torch_archive *archive,
                                   qn_torch_storage *storage)
{
    const qn_zip_entry *entry;
    qn_zip_contents contents;
    qn_status status = QN_OK;
    if (!storage->bytes.text) {
        QN_TRY(find_entry(&entry, archive, storage->key));
        QN_TRY(qn_zip_read(&contents, &archive->zip, entry));
        storage->bytes = (qn_string){(const char *)contents.data, contents.size};
        if (contents.block)
            status = keep_unpacked(&storage->bytes, archive, &contents);
        qn_free_aligned(&archive->ctx->allocator, contents.block);
    }
    *out = storage->bytes;
    return status;
}

/* ---- The form before archives ---------------------------------------------------------------- */

/* Pickles one after the other: a mark, the version, sizes of C's types, the object, the keys of
 * its storages; then for each key the number of elements in 8 bytes and the elements. */
typedef struct loose_reader {
    qn_torch_archive *archive;
    const char *name;
    qn_string data;
    size_t at;
} loose_reader;

static qn_status next_pickle(qn_torch_value *out, loose_reader *r)
{
    const qn_pickle_text text = {.bytes = {r->data.text + r->at, r->data.length - r->at},
                                 .name = r->name,
                                 .folder = "",
                                 .storages = &r->archive->storages};
    size_t used;
    QN_TRY(qn_pickle_read(out, &used, r->archive->ctx, &r->archive->model->arena, &text));
    r->at += used;
    return QN_OK;
}

/* The storages that the object has tell how large their elements are; one that it does not have
 * cannot be skipped. */
static qn_status read_loose_storage(loose_reader *r, const char *key)
{
    qn_context *ctx = r->archive->ctx;
    qn_torch_storage *storage = qn_names_get(&r->archive->storages, key);
    uint64_t count = 0;
    size_t bytes;
    if (!storage || r->data.length - r->at < 8)
        return qn_fail(ctx, QN_E_FORMAT, "%s: storage '%s' is not there", r->name, key);
    for (int i = 7; i >= 0; i--)
        count = count << 8 | (uint8_t)r->data.text[r->at + (size_t)i];
    r->at += 8;
    if (count > SIZE_MAX ||
        !qn_mul_size(&bytes, (size_t)count, qn_dtype_get(storage->dtype)->size) ||
        bytes > r->data.length - r->at)
        return qn_fail(ctx, QN_E_FORMAT, "%s ends inside storage '%s'", r->name, key);
    storage->bytes = (qn_string){r->data.text + r->at, bytes};
    r->at += bytes;
    return QN_OK;
}

static qn_status read_loose(qn_torch_value *out, loose_reader *r)
{
    qn_torch_value skipped, keys;
    for (int i = 0; i < 3; i++)
        QN_TRY(next_pickle(&skipped, r));
    QN_TRY(next_pickle(out, r));
    QN_TRY(next_pickle(&keys, r));
    if (keys.kind != QN_TORCH_LIST)
        return qn_fail(r->archive->ctx, QN_E_FORMAT, "%s has no list of its storages", r->name);
    for (size_t i = 0; i < keys.list->count; i++) {
        if (keys.list->at[i].kind != QN_TORCH_TEXT)
            return qn_fail(r->archive->ctx, QN_E_FORMAT, "%s: the key of a storage is no text",
                           r->name);
        QN_TRY(read_loose_storage(r, keys.list->at[i].text));
    }
    return QN_OK;
}

qn_status qn_torch_archive_saved(qn_torch_value *out, qn_torch_archive *archive, qn_model *model,
                                 qn_string data, const char *name, uint64_t budget)
{
    loose_reader loose = {.archive = archive, .name = name, .data = data};
    if (qn_zip_is_archive((const uint8_t *)data.text, data.length)) {
        QN_TRY(qn_torch_archive_open(archive, model, data, budget));
        return qn_torch_archive_pickle(out, archive, "data.pkl", "data/");
    }
    qn_torch_archive_init(archive, model);
    return read_loose(out, &loose);
}
