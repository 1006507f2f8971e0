/* Zip archives: directory, zip64, stored and deflated entries. */
#include "base/zip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, END64_SIZE = 56, LOCATOR64_SIZE = 20 };
enum { STORED = 0, DEFLATED = 8 };
enum { ENCRYPTED = 1 };
enum { LOCAL_MARK = 0x04034b50, ENTRY_MARK = 0x02014b50, END_MARK = 0x06054b50 };
enum { END64_MARK = 0x06064b50, LOCATOR64_MARK = 0x07064b50 };

/* Deflate packs by a factor of about 1032 at most; what claims more is broken. */
enum { MOST_RATIO = 1100 };

static uint64_t number(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static bool fits(const qn_zip *zip, uint64_t at, uint64_t size)
{
    return at <= zip->size && size <= zip->size - at;
}

bool qn_zip_is_archive(const uint8_t *data, size_t size)
{
    return size >= 4 && number(data, 4) == LOCAL_MARK;
}

/* ---- Directory ------------------------------------------------------------------------------- */

/* Archives beyond 4 GB or 65535 entries have a second, larger end record before the usual one. */
static void open_zip64(qn_zip *zip, size_t end)
{
    if (end < LOCATOR64_SIZE || number(zip->data + end - LOCATOR64_SIZE, 4) != LOCATOR64_MARK)
        return;
    const uint64_t at = number(zip->data + end - LOCATOR64_SIZE + 8, 8);
    if (!fits(zip, at, END64_SIZE) || number(zip->data + at, 4) != END64_MARK)
        return;
    zip->count = number(zip->data + at + 32, 8);
    zip->directory = number(zip->data + at + 48, 8);
}

/* The end record stands at the end, behind it at most a comment of 65535 bytes. */
qn_status qn_zip_open(qn_zip *out, qn_context *ctx, const uint8_t *data, size_t size)
{
    *out = (qn_zip){.ctx = ctx, .data = data, .size = size};
    out->budget = size > UINT64_MAX / MOST_RATIO ? UINT64_MAX : (uint64_t)size * MOST_RATIO;
    for (size_t back = END_SIZE; back <= size && back <= END_SIZE + 0xffff; back++) {
        const uint8_t *end = data + size - back;
        if (number(end, 4) != END_MARK)
            continue;
        out->count = number(end + 10, 2);
        out->directory = number(end + 16, 4);
        open_zip64(out, size - back);
        return QN_OK;
    }
    if (qn_zip_is_archive(data, size))
        return qn_fail(ctx, QN_E_FORMAT, "the archive ends after %zu bytes, before its directory",
                       size);
    return qn_fail(ctx, QN_E_FORMAT, "not a zip archive");
}

/* Sizes that do not fit into four bytes stand in extra field 1, in this order. */
static void read_zip64_sizes(qn_zip_entry *entry, const uint8_t *extra, size_t length)
{
    uint64_t *const fields[] = {&entry->size, &entry->packed, &entry->local};
    while (length >= 4) {
        const size_t own = (size_t)number(extra + 2, 2);
        const uint8_t *at = extra + 4;
        if (own > length - 4)
            return;
        size_t left = own;
        for (size_t f = 0; number(extra, 2) == 1 && f < QN_COUNT_OF(fields); f++) {
            if (*fields[f] != 0xffffffff || left < 8)
                continue;
            *fields[f] = number(at, 8);
            at += 8;
            left -= 8;
        }
        extra += 4 + own;
        length -= 4 + own;
    }
}

qn_status qn_zip_next(qn_zip_entry *out, bool *more, qn_zip_cursor *cursor, const qn_zip *zip)
{
    const uint64_t place = cursor->seen ? cursor->at : zip->directory;
    *more = false;
    if (cursor->seen == zip->count)
        return QN_OK;
    if (!fits(zip, place, ENTRY_SIZE))
        return qn_fail(zip->ctx, QN_E_FORMAT, "the directory of the archive is damaged");
    const uint8_t *at = zip->data + place;
    const size_t name = (size_t)number(at + 28, 2), extra = (size_t)number(at + 30, 2);
    const size_t total = ENTRY_SIZE + name + extra + (size_t)number(at + 32, 2);
    if (number(at, 4) != ENTRY_MARK || !fits(zip, place, total))
        return qn_fail(zip->ctx, QN_E_FORMAT, "the directory of the archive is damaged");
    *out = (qn_zip_entry){.name = {(const char *)at + ENTRY_SIZE, name},
                          .flags = (unsigned)number(at + 8, 2),
                          .method = (unsigned)number(at + 10, 2),
                          .crc = (uint32_t)number(at + 16, 4),
                          .packed = number(at + 20, 4),
                          .size = number(at + 24, 4),
                          .local = number(at + 42, 4)};
    read_zip64_sizes(out, at + ENTRY_SIZE + name, extra);
    cursor->at = place + total;
    cursor->seen++;
    *more = true;
    return QN_OK;
}

qn_status qn_zip_find(qn_zip_entry *out, bool *found, const qn_zip *zip, const char *name)
{
    qn_zip_cursor cursor = {0, 0};
    qn_zip_entry entry;
    const size_t length = strlen(name);
    bool more;
    *found = false;
    for (;;) {
        QN_TRY(qn_zip_next(&entry, &more, &cursor, zip));
        if (!more)
            return QN_OK;
        if (entry.name.length != length || memcmp(entry.name.text, name, length) != 0)
            continue;
        if (*found)
            return qn_fail(zip->ctx, QN_E_FORMAT, "the archive has '%s' twice", name);
        *out = entry;
        *found = true;
    }
}

/* ---- Contents -------------------------------------------------------------------------------- */

static void *zip_allocate(void *user, unsigned count, unsigned size)
{
    return qn_alloc_zero(user, count, size);
}

static void zip_release(void *user, void *block)
{
    qn_free(user, block);
}

/* zlib counts in 32 bits: larger entries are handed over in pieces. Gives Z_STREAM_END when all of
 * the entry has become exactly `size` bytes. */
static int inflate_all(z_stream *stream, const uint8_t *packed, uint64_t packed_size, uint8_t *to,
                       uint64_t size)
{
    int result = Z_OK;
    while (result == Z_OK) {
        const uInt in = (uInt)QN_MIN(packed_size, UINT_MAX), out = (uInt)QN_MIN(size, UINT_MAX);
        stream->next_in = (Bytef *)(uintptr_t)packed;
        stream->avail_in = in;
        stream->next_out = to;
        stream->avail_out = out;
        result = inflate(stream, Z_NO_FLUSH);
        packed += in - stream->avail_in;
        packed_size -= in - stream->avail_in;
        to += out - stream->avail_out;
        size -= out - stream->avail_out;
    }
    return result == Z_STREAM_END && size ? Z_DATA_ERROR : result;
}

static qn_status unpack(void **out, qn_zip *zip, const uint8_t *data, const qn_zip_entry *entry)
{
    qn_context *ctx = zip->ctx;
    z_stream stream = {.zalloc = zip_allocate, .zfree = zip_release, .opaque = ctx};
    const int shown = (int)entry->name.length;
    if (entry->size / MOST_RATIO > entry->packed || entry->size > zip->budget)
        return qn_fail(ctx, QN_E_FORMAT, "'%.*s' claims an impossible size", shown,
                       entry->name.text);
    zip->budget -= entry->size;
    uint8_t *block = qn_alloc_aligned(&ctx->allocator, (size_t)entry->size);
    if (!block)
        return qn_fail_bytes(ctx, (size_t)entry->size, "'%.*s' unpacked", shown, entry->name.text);
    int result = inflateInit2(&stream, -MAX_WBITS);
    if (result == Z_OK) {
        result = inflate_all(&stream, data, entry->packed, block, entry->size);
        inflateEnd(&stream);
    }
    if (result == Z_STREAM_END) {
        *out = block;
        return QN_OK;
    }
    qn_free_aligned(&ctx->allocator, block);
    if (result == Z_MEM_ERROR)
        return qn_fail_nomem(ctx);
    return qn_fail(ctx, QN_E_FORMAT, "'%.*s' is damaged: its compressed data break off", shown,
                   entry->name.text);
}

static qn_status find_data(const uint8_t **out, const qn_zip *zip, const qn_zip_entry *entry)
{
    qn_context *ctx = zip->ctx;
    const int shown = (int)entry->name.length;
    if (!fits(zip, entry->local, LOCAL_SIZE) || number(zip->data + entry->local, 4) != LOCAL_MARK)
        return qn_fail(ctx, QN_E_FORMAT, "the archive is damaged");
    const uint8_t *local = zip->data + entry->local;
    const uint64_t begin =
        entry->local + LOCAL_SIZE + number(local + 26, 2) + number(local + 28, 2);
    if (!fits(zip, begin, entry->packed))
        return qn_fail(ctx, QN_E_FORMAT, "the archive ends inside '%.*s'", shown, entry->name.text);
    if (entry->flags & ENCRYPTED)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "'%.*s' is encrypted", shown, entry->name.text);
    if (entry->method != DEFLATED && (entry->method != STORED || entry->size != entry->packed))
        return qn_fail(ctx, QN_E_UNSUPPORTED, "'%.*s' is compressed by method %u", shown,
                       entry->name.text, entry->method);
    *out = zip->data + begin;
    return QN_OK;
}

qn_status qn_zip_read(qn_zip_contents *out, qn_zip *zip, const qn_zip_entry *entry)
{
    *out = (qn_zip_contents){.block = NULL};
    QN_TRY(find_data(&out->data, zip, entry));
    if (entry->method == DEFLATED) {
        QN_TRY(unpack(&out->block, zip, out->data, entry));
        out->data = out->block;
    }
    out->size = (size_t)entry->size;
    if (crc32_z(0, out->data, out->size) == entry->crc)
        return QN_OK;
    qn_free_aligned(&zip->ctx->allocator, out->block);
    *out = (qn_zip_contents){.block = NULL};
    return qn_fail(zip->ctx, QN_E_FORMAT, "'%.*s' is damaged: its checksum differs",
                   (int)entry->name.length, entry->name.text);
}
