/* .npz files: zip archives with one .npy file per array. The directory at the end of the archive is
 * what counts; everything in it is checked against the size of the file. */
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "data/array.h"

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, END64_SIZE = 56, LOCATOR64_SIZE = 20 };
enum { STORED = 0, DEFLATED = 8 };
enum { LOCAL_MARK = 0x04034b50 };

typedef struct zip {
    const uint8_t *file;
    size_t size;
    uint64_t at, left; /* the directory: place, entries not yet read */
} zip;

typedef struct entry {
    const char *name;
    size_t name_length;
    unsigned method;
    uint64_t packed, plain, local; /* sizes, place of the local header */
    uint64_t sum;                  /* CRC-32 of the plain bytes */
} entry;

static uint64_t number(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static bool fits(const zip *z, uint64_t at, uint64_t size)
{
    return at <= z->size && size <= z->size - at;
}

/* ---- Directory ---------------------------------------------------------------------------------------- */

/* Archives beyond 4 GB or 65535 entries have a second, wider end record before the usual one. */
static void open_wide(zip *z, size_t end)
{
    if (end < LOCATOR64_SIZE || number(z->file + end - LOCATOR64_SIZE, 4) != 0x07064b50)
        return;
    const uint64_t at = number(z->file + end - LOCATOR64_SIZE + 8, 8);
    if (!fits(z, at, END64_SIZE) || number(z->file + at, 4) != 0x06064b50)
        return;
    z->left = number(z->file + at + 32, 8);
    z->at = number(z->file + at + 48, 8);
}

/* The end record stands at the end, behind it at most a comment of 65535 bytes. */
static bool zip_open(zip *z, const uint8_t *file, size_t size)
{
    *z = (zip){.file = file, .size = size};
    for (size_t back = END_SIZE; back <= size && back <= END_SIZE + 0xffff; back++) {
        const uint8_t *end = file + size - back;
        if (number(end, 4) != 0x06054b50)
            continue;
        z->left = number(end + 10, 2);
        z->at = number(end + 16, 4);
        open_wide(z, size - back);
        return true;
    }
    return false;
}

/* Sizes that do not fit into four bytes stand in extra field 1, in this order. */
static void wide_sizes(entry *e, const uint8_t *extra, size_t length)
{
    uint64_t *const fields[] = {&e->plain, &e->packed, &e->local};
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

/* False at the end, or where the directory is broken. */
static bool zip_next(zip *z, entry *out)
{
    if (z->left == 0 || !fits(z, z->at, ENTRY_SIZE))
        return false;
    const uint8_t *at = z->file + z->at;
    const size_t name = (size_t)number(at + 28, 2), extra = (size_t)number(at + 30, 2);
    const size_t total = ENTRY_SIZE + name + extra + (size_t)number(at + 32, 2);
    if (number(at, 4) != 0x02014b50 || !fits(z, z->at, total))
        return false;
    *out = (entry){.name = (const char *)at + ENTRY_SIZE,
                   .name_length = name,
                   .method = (unsigned)number(at + 10, 2),
                   .sum = number(at + 16, 4),
                   .packed = number(at + 20, 4),
                   .plain = number(at + 24, 4),
                   .local = number(at + 42, 4)};
    wide_sizes(out, at + ENTRY_SIZE + name, extra);
    z->at += total;
    z->left--;
    return true;
}

static bool is_array(const entry *e)
{
    return e->name_length > 4 && memcmp(e->name + e->name_length - 4, ".npy", 4) == 0;
}

static bool is_called(const entry *e, const char *name)
{
    const size_t length = strlen(name);
    return is_array(e) && e->name_length == length + 4 && memcmp(e->name, name, length) == 0;
}

bool qn_npz_has(const uint8_t *file, size_t size, const char *name)
{
    zip z;
    entry e;
    if (!zip_open(&z, file, size))
        return false;
    while (zip_next(&z, &e)) {
        if (is_called(&e, name))
            return true;
    }
    return false;
}

size_t qn_npz_list(qn_string *names, size_t most, const uint8_t *file, size_t size)
{
    zip z;
    entry e;
    size_t count = 0;
    if (!zip_open(&z, file, size))
        return 0;
    while (zip_next(&z, &e)) {
        if (!is_array(&e))
            continue;
        if (count < most)
            names[count] = (qn_string){e.name, e.name_length - 4};
        count++;
    }
    return count;
}

/* ---- Contents ------------------------------------------------------------------------------------------- */

static void *zip_allocate(void *user, unsigned count, unsigned size)
{
    return qn_alloc_zero(user, count, size);
}

static void zip_release(void *user, void *block)
{
    qn_free(user, block);
}

static qn_status inflate_block(qn_array *array, const uint8_t *data, const entry *e)
{
    z_stream stream = {.zalloc = zip_allocate, .zfree = zip_release, .opaque = array->ctx};
    if (e->packed > UINT_MAX || e->plain > UINT_MAX)
        return qn_fail(array->ctx, QN_E_UNSUPPORTED, "compressed arrays beyond 4 GB");
    /* Deflate packs by a factor of about 1032 at most; what claims more is broken. */
    if (e->plain / 1100 > e->packed)
        return qn_fail(array->ctx, QN_E_FORMAT, "the compressed array claims an impossible size");
    array->block = qn_alloc_aligned(&array->ctx->allocator, (size_t)e->plain);
    if (!array->block)
        return qn_fail_bytes(array->ctx, (size_t)e->plain, "the unpacked array");
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return qn_fail_nomem(array->ctx);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)e->packed;
    stream.next_out = array->block;
    stream.avail_out = (uInt)e->plain;
    const int result = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR)
        return qn_fail_nomem(array->ctx);
    if (result != Z_STREAM_END || stream.avail_out != 0)
        return qn_fail(array->ctx, QN_E_FORMAT, "the compressed array is damaged");
    return QN_OK;
}

static qn_status entry_data(const uint8_t **data, size_t *size, qn_array *array, const zip *z,
                            const entry *e)
{
    qn_context *ctx = array->ctx;
    if (!fits(z, e->local, LOCAL_SIZE) || number(z->file + e->local, 4) != LOCAL_MARK)
        return qn_fail(ctx, QN_E_FORMAT, "the archive is damaged");
    const uint8_t *local = z->file + e->local;
    const uint64_t begin = e->local + LOCAL_SIZE + number(local + 26, 2) + number(local + 28, 2);
    if (!fits(z, begin, e->packed))
        return qn_fail(ctx, QN_E_FORMAT, "the archive ends inside array '%.*s'",
                       (int)e->name_length, e->name);
    *data = z->file + begin;
    *size = (size_t)e->plain;
    if (e->method == DEFLATED) {
        QN_TRY(inflate_block(array, *data, e));
        *data = array->block;
    } else if (e->method != STORED || e->plain != e->packed) {
        return qn_fail(ctx, QN_E_UNSUPPORTED, "array '%.*s' is compressed by method %u",
                       (int)e->name_length, e->name, e->method);
    }
    if (crc32_z(0, *data, *size) != e->sum)
        return qn_fail(ctx, QN_E_FORMAT, "array '%.*s' is damaged: its checksum differs",
                       (int)e->name_length, e->name);
    return QN_OK;
}

/* Without an end record: one that begins as an archive does was cut short. */
static qn_status fail_closed(qn_context *ctx, const zip *z)
{
    const bool begun = z->size >= 4 && number(z->file, 4) == LOCAL_MARK;
    return qn_fail(ctx, QN_E_FORMAT,
                   begun ? "the archive ends after %zu bytes, before its directory"
                         : "not a .npz file",
                   z->size);
}

qn_status qn_npz_find(const uint8_t **data, size_t *size, qn_array *array, const char *name)
{
    zip z;
    entry e, found = {0};
    size_t count = 0;
    if (!zip_open(&z, array->map.data, array->map.size))
        return fail_closed(array->ctx, &z);
    while (zip_next(&z, &e)) {
        if (name ? !is_called(&e, name) : !is_array(&e))
            continue;
        found = e;
        count++;
    }
    if (z.left)
        return qn_fail(array->ctx, QN_E_FORMAT, "the directory of the archive is damaged");
    if (count == 0)
        return qn_fail(array->ctx, QN_E_INVALID, "there is no array%s%s%s", name ? " '" : "",
                       name ? name : "", name ? "'" : "");
    if (count > 1)
        return qn_fail(array->ctx, QN_E_INVALID,
                       "%zu arrays: name one behind the file, as in FILE.npz:%.*s", count,
                       (int)found.name_length - 4, found.name);
    return entry_data(data, size, array, &z, &found);
}
