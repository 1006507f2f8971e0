/* The variables of a SavedModel: variables.index is a sorted table of blocks whose keys are
 * compressed by their common beginnings, variables.data-* have the contents. */
#include <stdio.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

enum { FOOTER = 48, TRAILER = 5, MOST_SHARDS = 1024, MOST_KEY = 1 << 16 };
static const uint8_t magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

struct qn_tf_variables {
    qn_tf_import *import;
    const char *prefix;
    qn_map index;
    /* Key -> qn_string, the entry's bytes in the index */
    qn_names entries;
    int64_t n_shards;
    /* The contents, NULL where not open yet; they are the model's. */
    qn_map *shards;
};

static qn_status fail(const qn_tf_variables *v, const char *what)
{
    return qn_fail(v->import->ctx, QN_E_FORMAT, "the index of the variables: %s", what);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* The checksum of blocks, CRC-32C. */
static uint32_t checksum(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

static uint32_t take32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool take_varint(uint64_t *out, qn_string *rest)
{
    *out = 0;
    for (int shift = 0; shift < 64 && rest->length; shift += 7) {
        const uint8_t byte = (uint8_t)*rest->text;
        *rest = (qn_string){rest->text + 1, rest->length - 1};
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* The entries of the block that a place and a size name, its checksum compared. */
static qn_status block_at(qn_string *out, const qn_tf_variables *v, qn_string *handle)
{
    uint64_t offset, size;
    if (!take_varint(&offset, handle) || !take_varint(&size, handle) || v->index.size < FOOTER ||
        offset > v->index.size - FOOTER || size > v->index.size - FOOTER - offset ||
        v->index.size - FOOTER - offset - size < TRAILER)
        return fail(v, "a block lies outside the file");
    const uint8_t *data = v->index.data + offset;
    if (data[size] != 0)
        return qn_fail(v->import->ctx, QN_E_UNSUPPORTED,
                       "the index of the variables has a compressed block");
    const uint32_t crc = checksum(data, (size_t)size + 1);
    if (take32(data + size + 1) != ((crc >> 15 | crc << 17) + UINT32_C(0xa282ead8)))
        return fail(v, "the checksum of a block is wrong");
    const uint64_t restarts = size < 4 ? 0 : take32(data + size - 4);
    if (size < 4 || restarts > (size - 4) / 4)
        return fail(v, "a block is damaged");
    *out = (qn_string){(const char *)data, (size_t)(size - 4 - 4 * restarts)};
    return QN_OK;
}

/* The next entry: `key` keeps what it has in common with the one before. */
static qn_status next_entry(char *key, size_t *length, qn_string *value, qn_string *block,
                            const qn_tf_variables *v)
{
    uint64_t shared, own, size;
    if (!take_varint(&shared, block) || !take_varint(&own, block) || !take_varint(&size, block) ||
        shared > *length || own > block->length || size > block->length - own ||
        shared + own >= MOST_KEY)
        return fail(v, "an entry is damaged");
    memcpy(key + shared, block->text, (size_t)own);
    *length = (size_t)(shared + own);
    key[*length] = 0;
    *value = (qn_string){block->text + own, (size_t)size};
    const size_t used = (size_t)(own + size);
    *block = (qn_string){block->text + used, block->length - used};
    return QN_OK;
}

static qn_status read_block(qn_tf_variables *v, qn_string block, char *key)
{
    qn_arena *arena = &v->import->arena;
    size_t length = 0;
    while (block.length) {
        qn_string value;
        QN_TRY(next_entry(key, &length, &value, &block, v));
        const char *name = qn_arena_text(arena, key, length);
        const qn_string *kept = qn_arena_copy(arena, &value, sizeof value);
        QN_TRY_ALLOC(v->import->ctx, name);
        QN_TRY_ALLOC(v->import->ctx, kept);
        QN_TRY(qn_names_set(&v->entries, name, (void *)(uintptr_t)kept));
    }
    return QN_OK;
}

static qn_status read_index(qn_tf_variables *v)
{
    qn_string blocks, data;
    uint64_t skipped;
    size_t length = 0;
    char *keys = qn_arena_alloc(&v->import->arena, 2 * MOST_KEY);
    QN_TRY_ALLOC(v->import->ctx, keys);
    const uint8_t *end = v->index.data + v->index.size;
    if (v->index.size < FOOTER || memcmp(end - 8, magic, sizeof magic) != 0)
        return fail(v, "this is no table of variables");
    qn_string footer = {(const char *)end - FOOTER, FOOTER - 8};
    if (!take_varint(&skipped, &footer) || !take_varint(&skipped, &footer))
        return fail(v, "the end of the table is damaged");
    QN_TRY(block_at(&blocks, v, &footer));
    while (blocks.length) {
        qn_string handle;
        QN_TRY(next_entry(keys, &length, &handle, &blocks, v));
        QN_TRY(block_at(&data, v, &handle));
        QN_TRY(read_block(v, data, keys + MOST_KEY));
    }
    return QN_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qn_status read_header(qn_tf_variables *v)
{
    qn_proto_tree tree;
    const qn_string *bytes = qn_names_get(&v->entries, "");
    if (!bytes)
        return fail(v, "it has no header");
    qn_proto_tree_init(&tree, v->import->ctx, &qn_tf_bundle_header_schema);
    qn_status status = qn_proto_parse_wire(&tree, bytes->text, bytes->length);
    v->n_shards = qn_proto_int(&tree.root, QN_TF_BUNDLE_SHARDS, 0);
    const int64_t endianness = qn_proto_int(&tree.root, QN_TF_BUNDLE_ENDIANNESS, 0);
    qn_proto_tree_free(&tree);
    if (status == QN_OK && (v->n_shards < 1 || v->n_shards > MOST_SHARDS || endianness != 0))
        status = fail(v, "its files of contents are too many, or of another byte order");
    return status;
}

qn_status qn_tf_variables_open(qn_tf_variables **out, qn_tf_import *import, const char *prefix)
{
    qn_tf_variables *v = qn_arena_alloc(&import->arena, sizeof *v);
    *out = v;
    QN_TRY_ALLOC(import->ctx, v);
    *v = (qn_tf_variables){.import = import};
    qn_names_init(&v->entries, import->ctx);
    v->prefix = prefix;
    const char *path = qn_arena_format(&import->arena, "%s.index", prefix);
    QN_TRY_ALLOC(import->ctx, path);
    QN_TRY(qn_map_open(&v->index, import->ctx, path));
    QN_TRY(read_index(v));
    QN_TRY(read_header(v));
    v->shards = qn_arena_array(&import->arena, (size_t)v->n_shards, sizeof *v->shards);
    QN_TRY_ALLOC(import->ctx, v->shards);
    return QN_OK;
}

void qn_tf_variables_close(qn_tf_variables *v)
{
    if (!v)
        return;
    qn_names_free(&v->entries);
    qn_map_close(&v->index);
}

bool qn_tf_variables_has(const qn_tf_variables *v, const char *key)
{
    return v && qn_names_get(&v->entries, key) != NULL;
}

/* ---- Contents -------------------------------------------------------------------------------- */

static qn_status open_shard(qn_tf_variables *v, int64_t shard)
{
    qn_map map;
    qn_model *model = v->import->builder.model;
    if (v->shards[shard].data)
        return QN_OK;
    const char *path = qn_arena_format(&v->import->arena, "%s.data-%05lld-of-%05lld", v->prefix,
                                       (long long)shard, (long long)v->n_shards);
    QN_TRY_ALLOC(v->import->ctx, path);
    QN_TRY(qn_map_open(&map, v->import->ctx, path));
    v->shards[shard] = map;
    const qn_status status = qn_import_keep_map(model, &map);
    if (status != QN_OK) {
        qn_map_close(&map);
        v->shards[shard] = (qn_map){.data = NULL};
    }
    return status;
}

static qn_status bytes_of(qn_string *out, qn_tf_variables *v, const qn_proto_message *entry,
                          const char *key)
{
    const int64_t shard = qn_proto_int(entry, QN_TF_ENTRY_SHARD, 0);
    const int64_t offset = qn_proto_int(entry, QN_TF_ENTRY_OFFSET, 0);
    const int64_t size = qn_proto_int(entry, QN_TF_ENTRY_SIZE, 0);
    if (shard < 0 || shard >= v->n_shards)
        return qn_fail(v->import->ctx, QN_E_FORMAT, "variable '%s' lies in no file", key);
    QN_TRY(open_shard(v, shard));
    const qn_map *map = &v->shards[shard];
    if (offset < 0 || size < 0 || (uint64_t)offset > map->size ||
        (uint64_t)size > map->size - (uint64_t)offset)
        return qn_fail(v->import->ctx, QN_E_FORMAT, "variable '%s' lies outside its file", key);
    *out = (qn_string){(const char *)map->data + offset, (size_t)size};
    return QN_OK;
}

static qn_status parse_entry(qn_proto_tree *tree, const qn_tf_variables *v, const char *key)
{
    const qn_string *bytes = v ? qn_names_get(&v->entries, key) : NULL;
    if (!bytes)
        return qn_fail(tree->ctx, QN_E_FORMAT, "there is no variable '%s'", key);
    return qn_proto_parse_wire(tree, bytes->text, bytes->length);
}

qn_status qn_tf_variables_read(qn_value **out, qn_tf_import *import, const char *key)
{
    qn_proto_tree tree;
    qn_type type = {.kind = QN_TYPE_TENSOR};
    qn_string bytes;
    qn_status status;
    qn_graph_builder *b = &import->builder;
    qn_proto_tree_init(&tree, import->ctx, &qn_tf_bundle_entry_schema);
    QN_TRY_OR_DONE(parse_entry(&tree, import->variables, key));
    const qn_proto_message *shape = qn_proto_get_message(&tree.root, QN_TF_ENTRY_SHAPE);
    QN_TRY_OR_DONE(qn_tf_shape(&type, import, shape));
    type.rank = shape ? type.rank : 0;
    type.dtype = qn_tf_dtype(qn_proto_int(&tree.root, QN_TF_ENTRY_DTYPE, 0));
    if (type.dtype == QN_UNDEFINED || type.dtype == QN_STRING || type.rank < 0) {
        status = qn_graph_builder_fail(b, QN_E_UNSUPPORTED, "variable '%s' has no numbers", key);
        goto done;
    }
    QN_TRY_OR_DONE(bytes_of(&bytes, import->variables, &tree.root, key));
    status = qn_graph_build_constant(out, b, key, &type, bytes);
done:
    qn_proto_tree_free(&tree);
    return status;
}

/* A tensor of one text: its length, four bytes that check that, and the bytes. */
qn_status qn_tf_variables_text(qn_string *out, qn_tf_import *import, const char *key)
{
    qn_proto_tree tree;
    qn_string bytes;
    uint64_t length;
    qn_status status;
    *out = (qn_string){NULL, 0};
    if (!qn_tf_variables_has(import->variables, key))
        return QN_OK;
    qn_proto_tree_init(&tree, import->ctx, &qn_tf_bundle_entry_schema);
    QN_TRY_OR_DONE(parse_entry(&tree, import->variables, key));
    QN_TRY_OR_DONE(bytes_of(&bytes, import->variables, &tree.root, key));
    if (!take_varint(&length, &bytes) || bytes.length < 4 || length > bytes.length - 4)
        status = qn_fail(import->ctx, QN_E_FORMAT, "variable '%s' is damaged", key);
    else
        *out = (qn_string){bytes.text + 4, (size_t)length};
done:
    qn_proto_tree_free(&tree);
    return status;
}
