/* The weights of exported programs: a file for each of them in today's archives, one pickle of all
 * in those before. */
#include <stdio.h>
#include <string.h>

#include "import/pytorch/program.h"

qn_dtype qn_program_dtype(int64_t number)
{
    static const qn_dtype dtypes[] = {
        [1] = QN_UINT8, [2] = QN_INT8,      [3] = QN_INT16,   [4] = QN_INT32,
        [5] = QN_INT64, [6] = QN_FLOAT16,   [7] = QN_FLOAT32, [8] = QN_FLOAT64,
        [12] = QN_BOOL, [13] = QN_BFLOAT16, [28] = QN_UINT16,
    };
    return number >= 0 && (uint64_t)number < QN_COUNT_OF(dtypes) ? dtypes[number] : QN_UNDEFINED;
}

bool qn_program_find(qn_json_place *out, const qn_json_place *object, const char *key)
{
    return qn_json_find(out, object, key) && !qn_json_is_null(out);
}

/* "Symbol('s77', positive=True)" or "s77"; what is more than a name has none. */
static const char *symbol_of(qn_torch *t, const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const bool quoted = strncmp(text, "Symbol('", 8) == 0;
    text += quoted ? 8 : 0;
    const size_t length = strspn(text, letters);
    if (length == 0 || (quoted ? text[length] != '\'' : text[length] != 0))
        return NULL;
    if (quoted) {
        const char *end = strchr(text, ')');
        if (!end || end[1] != 0)
            return NULL;
    }
    return qn_arena_text(t->arena, text, length);
}

qn_status qn_program_size(qn_dim *out, qn_torch *t, const qn_json_place *size)
{
    qn_json_place number, expression, text;
    const char *symbol;
    *out = qn_dim_unknown();
    if (qn_program_find(&number, size, "as_int"))
        return qn_json_get_int(&out->value, &number, 0, INT64_MAX);
    if (!qn_program_find(&expression, size, "as_expr") ||
        !qn_program_find(&text, &expression, "expr_str"))
        return QN_OK;
    QN_TRY(qn_json_get_text(&symbol, &text));
    out->symbol = symbol_of(t, symbol);
    return QN_OK;
}

/* ---- One file each --------------------------------------------------------------------------- */

static qn_status read_sizes(int64_t *out, int32_t *rank, const qn_json_place *meta, const char *key)
{
    qn_json_place list;
    size_t count;
    QN_TRY(qn_json_member(&list, meta, key));
    QN_TRY(qn_json_length(&count, &list));
    if (count > QN_MAX_RANK)
        return qn_json_fail(&list, QN_E_UNSUPPORTED, "%zu axes", count);
    *rank = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        qn_json_place number;
        QN_TRY(qn_json_member(&number, &item, "as_int"));
        QN_TRY(qn_json_get_int(&out[i], &number, 0, INT64_MAX));
    }
    return QN_OK;
}

static qn_status read_meta(qn_torch_tensor *tensor, const qn_json_place *meta)
{
    qn_json_place member, number;
    int64_t dtype;
    int32_t strides;
    QN_TRY(qn_json_member(&member, meta, "dtype"));
    QN_TRY(qn_json_get_int(&dtype, &member, 0, 1000));
    tensor->dtype = qn_program_dtype(dtype);
    if (tensor->dtype == QN_UNDEFINED)
        return qn_json_fail(&member, QN_E_UNSUPPORTED, "element type %d", (int)dtype);
    QN_TRY(read_sizes(tensor->dims, &tensor->rank, meta, "sizes"));
    QN_TRY(read_sizes(tensor->strides, &strides, meta, "strides"));
    if (strides != tensor->rank)
        return qn_json_fail(meta, QN_E_FORMAT, "has strides of other axes");
    QN_TRY(qn_json_member(&member, meta, "storage_offset"));
    QN_TRY(qn_json_member(&number, &member, "as_int"));
    return qn_json_get_int(&tensor->offset, &number, 0, INT64_MAX);
}

static qn_status keep(qn_names *out, qn_torch *t, const char *name, const qn_torch_value *value)
{
    const char *kept = qn_arena_text(t->arena, name, strlen(name));
    qn_torch_value *copy = qn_arena_copy(t->arena, value, sizeof *value);
    QN_TRY_ALLOC(t->ctx, kept);
    QN_TRY_ALLOC(t->ctx, copy);
    if (copy->kind == QN_TORCH_TENSOR)
        copy->tensor->name = kept;
    return qn_names_set(out, kept, copy);
}

static qn_status read_file(qn_names *out, qn_torch *t, const char *folder,
                           const qn_json_place *entry)
{
    qn_torch_value value = {.kind = QN_TORCH_TENSOR,
                            .tensor = qn_arena_alloc(t->arena, sizeof *value.tensor)};
    qn_torch_storage *storage = qn_arena_alloc(t->arena, sizeof *storage);
    qn_json_place pickled, meta;
    const char *path;
    bool is_pickle = false;
    QN_TRY_ALLOC(t->ctx, value.tensor);
    QN_TRY_ALLOC(t->ctx, storage);
    if (qn_program_find(&pickled, entry, "use_pickle"))
        QN_TRY(qn_json_get_bool(&is_pickle, &pickled));
    if (is_pickle)
        return qn_json_fail(entry, QN_E_UNSUPPORTED, "is no plain tensor");
    QN_TRY(qn_json_member_text(&path, entry, "path_name"));
    QN_TRY(qn_json_member(&meta, entry, "tensor_meta"));
    QN_TRY(read_meta(value.tensor, &meta));
    storage->key = qn_arena_format(t->arena, "%s%s", folder, path);
    QN_TRY_ALLOC(t->ctx, storage->key);
    storage->dtype = value.tensor->dtype;
    value.tensor->storage = storage;
    return keep(out, t, entry->key, &value);
}

static qn_status read_files(qn_names *out, qn_torch *t, const char *folder, const char *list)
{
    const char *name = qn_arena_format(t->arena, "%s%s", folder, list);
    qn_json_document *document = NULL;
    qn_json_place root, config, entry;
    qn_status status = QN_OK;
    void *iterator = NULL;
    qn_string text;
    QN_TRY_ALLOC(t->ctx, name);
    if (!qn_torch_archive_has(&t->archive, name))
        return QN_OK;
    QN_TRY(qn_torch_archive_read(&text, &t->archive, name));
    QN_TRY(qn_json_read(&document, t->ctx, text.text, text.length, name));
    root = qn_json_root(document);
    QN_TRY_OR_DONE(qn_json_member(&config, &root, "config"));
    while (qn_json_next(&entry, &config, &iterator))
        QN_TRY_OR_DONE(read_file(out, t, folder, &entry));
done:
    qn_json_document_free(document);
    return status;
}

/* ---- One pickle ------------------------------------------------------------------------------ */

static qn_status keep_all(qn_names *out, qn_torch *t, qn_torch_archive *inner,
                          const qn_torch_value *dict)
{
    if (dict->kind != QN_TORCH_DICT)
        return QN_OK;
    for (size_t i = 0; i + 1 < dict->list->count; i += 2) {
        const qn_torch_value *key = &dict->list->at[i], *value = &dict->list->at[i + 1];
        qn_string bytes;
        if (key->kind != QN_TORCH_TEXT || value->kind != QN_TORCH_TENSOR)
            continue;
        QN_TRY(qn_torch_archive_storage(&bytes, inner, value->tensor->storage));
        QN_TRY(keep(out, t, key->text, value));
    }
    return QN_OK;
}

/* A file of torch.save inside the archive. */
static qn_status read_pickle(qn_names *out, qn_torch *t, const char *name)
{
    qn_torch_storage file = {.key = name};
    qn_torch_archive inner = {.ctx = NULL};
    qn_torch_value dict;
    qn_string bytes;
    if (!qn_torch_archive_has(&t->archive, name))
        return QN_OK;
    QN_TRY(qn_torch_archive_storage(&bytes, &t->archive, &file));
    qn_status status = QN_OK;
    if (bytes.length)
        status =
            qn_torch_archive_saved(&dict, &inner, t->b.model, bytes, name, t->archive.zip.budget);
    if (status == QN_OK && bytes.length)
        status = keep_all(out, t, &inner, &dict);
    qn_torch_archive_close(&inner);
    return status;
}

qn_status qn_program_weights(qn_names *out, qn_torch *t, bool flat)
{
    /* The first flat ones call their pickles JSON. */
    static const char *const flat_files[] = {"serialized_state_dict.pt", "serialized_constants.pt",
                                             "serialized_state_dict.json",
                                             "serialized_constants.json"};
    static const char *const files[] = {"data/weights/model.pt", "data/constants/model.pt"};
    for (size_t i = 0; i < (flat ? QN_COUNT_OF(flat_files) : QN_COUNT_OF(files)); i++)
        QN_TRY(read_pickle(out, t, flat ? flat_files[i] : files[i]));
    QN_TRY(read_files(out, t, "data/weights/", "model_weights_config.json"));
    return read_files(out, t, "data/constants/", "model_constants_config.json");
}
