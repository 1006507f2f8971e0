/* Files that may be packed with gzip. */
#include <limits.h>
#include <string.h>

#include <zlib.h>

#include "data/dataset_source.h"

static void *zip_allocate(void *user, unsigned count, unsigned size)
{
    return qn_alloc_zero(user, count, size);
}

static void zip_release(void *user, void *block)
{
    qn_free(user, block);
}

/* The block is grown by hand: an aligned one has no resize. */
static bool grow(uint8_t **block, size_t *capacity, qn_context *ctx, size_t used)
{
    const size_t larger = *capacity ? *capacity * 2 : 1 << 16;
    uint8_t *grown = larger > *capacity ? qn_alloc_aligned(&ctx->allocator, larger) : NULL;
    if (!grown)
        return false;
    if (used)
        memcpy(grown, *block, used);
    qn_free_aligned(&ctx->allocator, *block);
    *block = grown;
    *capacity = larger;
    return true;
}

/* Adds what the stream gives to the block until it ends. Z_STREAM_END: all there. */
static int inflate_all(uint8_t **block, size_t *size, z_stream *stream, qn_context *ctx)
{
    size_t capacity = 0;
    int result = Z_OK;
    while (result == Z_OK) {
        if (*size == capacity && !grow(block, &capacity, ctx, *size))
            return Z_MEM_ERROR;
        const size_t room = QN_MIN(capacity - *size, (size_t)UINT_MAX);
        stream->next_out = *block + *size;
        stream->avail_out = (uInt)room;
        result = inflate(stream, Z_NO_FLUSH);
        *size += room - stream->avail_out;
        /* A file may hold several streams, one behind the other. */
        if (result == Z_STREAM_END && stream->avail_in)
            result = inflateReset(stream);
    }
    return result;
}

qn_status qn_gunzip(uint8_t **out, size_t *size, qn_context *ctx, const uint8_t *packed,
                    size_t packed_size)
{
    enum { GZIP = 16 };
    z_stream stream = {.zalloc = zip_allocate, .zfree = zip_release, .opaque = ctx};
    uint8_t *block = NULL;
    *out = NULL;
    *size = 0;
    if (packed_size > UINT_MAX)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "gzip files beyond 4 GB");
    if (inflateInit2(&stream, MAX_WBITS + GZIP) != Z_OK)
        return qn_fail_nomem(ctx);
    stream.next_in = (Bytef *)(uintptr_t)packed;
    stream.avail_in = (uInt)packed_size;
    const int result = inflate_all(&block, size, &stream, ctx);
    inflateEnd(&stream);
    if (result == Z_STREAM_END) {
        *out = block;
        return QN_OK;
    }
    qn_free_aligned(&ctx->allocator, block);
    if (result == Z_MEM_ERROR)
        return qn_fail_nomem(ctx);
    return qn_fail(ctx, QN_E_FORMAT, "the gzip data is damaged or ends too early");
}

qn_status qn_file_bytes_open(qn_file_bytes *out, qn_context *ctx, const char *path)
{
    *out = (qn_file_bytes){.block = NULL};
    QN_TRY(qn_map_open(&out->map, ctx, path));
    out->data = out->map.data;
    out->size = out->map.size;
    if (out->size < 2 || out->data[0] != 0x1f || out->data[1] != 0x8b)
        return QN_OK;
    const qn_status status = qn_gunzip(&out->block, &out->size, ctx, out->map.data, out->map.size);
    qn_map_close(&out->map);
    out->map = (qn_map){.data = NULL};
    out->data = out->block;
    return status == QN_OK ? QN_OK : qn_fail_within(ctx, status, "%s", path);
}

void qn_file_bytes_close(qn_file_bytes *bytes, qn_context *ctx)
{
    qn_map_close(&bytes->map);
    qn_free_aligned(&ctx->allocator, bytes->block);
    *bytes = (qn_file_bytes){.block = NULL};
}
