/* Zip archives: entries of every kind that is read, and archives that lie about themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/zip.h"

enum { MOST = 1 << 20 };

static qn_context *ctx;

static int set_up(void **state)
{
    (void)state;
    return qn_context_create(&ctx, NULL) != QN_OK;
}

static int tear_down(void **state)
{
    (void)state;
    qn_context_free(ctx);
    return 0;
}

/* ---- A writer of small archives -------------------------------------------------------------- */

/* What an entry claims of itself; the rest follows from its contents. */
typedef struct member {
    const char *name;
    const uint8_t *contents;
    size_t size;
    bool deflated;
    bool zip64;
    unsigned flags;
    /* Instead of the size; 0: the truth */
    uint64_t claimed;
} member;

typedef struct archive {
    uint8_t bytes[MOST], directory[4096];
    size_t size, directory_size, count;
} archive;

static void put(uint8_t *to, size_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[(*at)++] = (uint8_t)(value >> 8 * i);
}

static size_t pack(uint8_t *to, const member *m)
{
    if (!m->deflated) {
        memcpy(to, m->contents, m->size);
        return m->size;
    }
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)m->contents,
                       .avail_in = (uInt)m->size,
                       .next_out = to,
                       .avail_out = MOST / 2};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const size_t size = stream.total_out;
    deflateEnd(&stream);
    return size;
}

static void add(archive *a, const member *m)
{
    const size_t local = a->size, name = strlen(m->name);
    const uint64_t crc = crc32(0, m->contents, (uInt)m->size);
    const uint64_t size = m->claimed ? m->claimed : m->size;
    put(a->bytes, &a->size, 0x04034b50, 4);
    put(a->bytes, &a->size, 0, 22);
    put(a->bytes, &a->size, name, 2);
    put(a->bytes, &a->size, 0, 2);
    memcpy(a->bytes + a->size, m->name, name);
    a->size += name;
    const size_t packed = pack(a->bytes + a->size, m);
    a->size += packed;
    uint8_t *d = a->directory;
    size_t *at = &a->directory_size;
    put(d, at, 0x02014b50, 4);
    put(d, at, 0, 4);
    put(d, at, m->flags, 2);
    put(d, at, m->deflated ? 8 : 0, 2);
    put(d, at, 0, 4);
    put(d, at, crc, 4);
    put(d, at, m->zip64 ? 0xffffffff : packed, 4);
    put(d, at, m->zip64 ? 0xffffffff : size, 4);
    put(d, at, name, 2);
    put(d, at, m->zip64 ? 28 : 0, 2);
    put(d, at, 0, 10);
    put(d, at, m->zip64 ? 0xffffffff : local, 4);
    memcpy(d + *at, m->name, name);
    *at += name;
    if (m->zip64) {
        put(d, at, 1, 2);
        put(d, at, 24, 2);
        put(d, at, size, 8);
        put(d, at, packed, 8);
        put(d, at, local, 8);
    }
    a->count++;
}

static void finish(archive *a, bool zip64)
{
    const size_t directory = a->size;
    memcpy(a->bytes + a->size, a->directory, a->directory_size);
    a->size += a->directory_size;
    if (zip64) {
        const size_t end = a->size;
        put(a->bytes, &a->size, 0x06064b50, 4);
        put(a->bytes, &a->size, 0, 28);
        put(a->bytes, &a->size, a->count, 8);
        put(a->bytes, &a->size, a->directory_size, 8);
        put(a->bytes, &a->size, directory, 8);
        put(a->bytes, &a->size, 0x07064b50, 4);
        put(a->bytes, &a->size, 0, 4);
        put(a->bytes, &a->size, end, 8);
        put(a->bytes, &a->size, 1, 4);
    }
    put(a->bytes, &a->size, 0x06054b50, 4);
    put(a->bytes, &a->size, 0, 6);
    put(a->bytes, &a->size, zip64 ? 0xffff : a->count, 2);
    put(a->bytes, &a->size, a->directory_size, 4);
    put(a->bytes, &a->size, zip64 ? 0xffffffff : directory, 4);
    put(a->bytes, &a->size, 0, 2);
}

static archive *made(const member *members, size_t count, bool zip64)
{
    archive *a = calloc(1, sizeof *a);
    assert_non_null(a);
    for (size_t i = 0; i < count; i++)
        add(a, &members[i]);
    finish(a, zip64);
    return a;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static uint8_t zeros[200000];
static const uint8_t words[] = "some words, some words, some words";

static void expect(const archive *a, const char *name, qn_status status, const char *message)
{
    qn_zip zip;
    qn_zip_entry entry;
    qn_zip_contents contents;
    bool found = false;
    qn_status got = qn_zip_open(&zip, ctx, a->bytes, a->size);
    if (got == QN_OK)
        got = qn_zip_find(&entry, &found, &zip, name);
    if (got == QN_OK) {
        assert_true(found);
        got = qn_zip_read(&contents, &zip, &entry);
    }
    assert_int_equal(got, status);
    assert_non_null(strstr(qn_context_error(ctx), message));
}

static void entries_are_read(void **state)
{
    const member members[] = {
        {.name = "stored", .contents = words, .size = sizeof words},
        {.name = "packed", .contents = words, .size = sizeof words, .deflated = true},
        {.name = "far", .contents = words, .size = sizeof words, .deflated = true, .zip64 = true},
        {.name = "folder/", .contents = words, .size = 0}};
    (void)state;
    for (int zip64 = 0; zip64 < 2; zip64++) {
        archive *a = made(members, QN_COUNT_OF(members), zip64);
        qn_zip zip;
        qn_zip_entry entry;
        qn_zip_cursor cursor = {0, 0};
        bool more;
        size_t count = 0;
        assert_int_equal(qn_zip_open(&zip, ctx, a->bytes, a->size), QN_OK);
        while (qn_zip_next(&entry, &more, &cursor, &zip) == QN_OK && more) {
            qn_zip_contents contents;
            assert_int_equal(entry.name.length, strlen(members[count].name));
            assert_int_equal(qn_zip_read(&contents, &zip, &entry), QN_OK);
            assert_int_equal(contents.size, members[count].size);
            assert_memory_equal(contents.data, members[count].contents, contents.size);
            assert_int_equal(contents.block != NULL, members[count].deflated);
            qn_free_aligned(&ctx->allocator, contents.block);
            count++;
        }
        assert_int_equal(count, QN_COUNT_OF(members));
        free(a);
    }
}

static void bombs_are_refused(void **state)
{
    /* Little that claims to be much: more than deflate can pack into the bytes. */
    const member liar = {.name = "x",
                         .contents = words,
                         .size = sizeof words,
                         .deflated = true,
                         .zip64 = true,
                         .claimed = UINT64_C(1) << 40};
    (void)state;
    archive *a = made(&liar, 1, false);
    expect(a, "x", QN_E_FORMAT, "'x' claims an impossible size");
    free(a);
    /* Entries that share their bytes: each is honest, together they are more than there can be. */
    const member zero = {.name = "x", .contents = zeros, .size = sizeof zeros, .deflated = true};
    a = made(&zero, 1, false);
    qn_zip zip;
    qn_zip_entry entry;
    qn_zip_contents contents;
    bool found;
    assert_int_equal(qn_zip_open(&zip, ctx, a->bytes, a->size), QN_OK);
    assert_int_equal(qn_zip_find(&entry, &found, &zip, "x"), QN_OK);
    int read = 0;
    while (read < 100 && qn_zip_read(&contents, &zip, &entry) == QN_OK) {
        qn_free_aligned(&ctx->allocator, contents.block);
        read++;
    }
    assert_in_range(read, 1, 10);
    free(a);
}

static void faults_are_named(void **state)
{
    const member secret = {.name = "x", .contents = words, .size = sizeof words, .flags = 1};
    const member twice[] = {{.name = "x", .contents = words, .size = sizeof words},
                            {.name = "x", .contents = words, .size = 3}};
    (void)state;
    archive *a = made(&secret, 1, false);
    expect(a, "x", QN_E_UNSUPPORTED, "'x' is encrypted");
    free(a);
    a = made(twice, 2, false);
    expect(a, "x", QN_E_FORMAT, "twice");
    free(a);
    a = made(twice, 1, false);
    a->bytes[40]++;
    expect(a, "x", QN_E_FORMAT, "its checksum differs");
    a->size -= 1;
    expect(a, "x", QN_E_FORMAT, "before its directory");
    free(a);
    /* A size that is too large, or too small, for what the data unpack to. */
    for (uint64_t claimed = 10; claimed < 60; claimed += 40) {
        const member wrong = {.name = "x",
                              .contents = words,
                              .size = sizeof words,
                              .deflated = true,
                              .claimed = claimed};
        a = made(&wrong, 1, false);
        expect(a, "x", QN_E_FORMAT, "'x' is damaged");
        free(a);
    }
}

/* An archive cut off anywhere, or with any byte changed, is read within its bounds. */
static void damage_is_survived(void **state)
{
    const member members[] = {
        {.name = "a", .contents = words, .size = sizeof words},
        {.name = "b", .contents = words, .size = sizeof words, .deflated = true, .zip64 = true}};
    (void)state;
    archive *a = made(members, 2, true);
    for (size_t i = 0; i < 2 * a->size; i++) {
        const size_t size = i < a->size ? i : a->size;
        uint8_t *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, a->bytes, size);
        if (i >= a->size)
            copy[i - a->size] ^= 0x91;
        qn_zip zip;
        qn_zip_entry entry;
        qn_zip_cursor cursor = {0, 0};
        bool more = qn_zip_open(&zip, ctx, copy, size) == QN_OK;
        while (more && qn_zip_next(&entry, &more, &cursor, &zip) == QN_OK && more) {
            qn_zip_contents contents;
            if (qn_zip_read(&contents, &zip, &entry) == QN_OK)
                qn_free_aligned(&ctx->allocator, contents.block);
        }
        free(copy);
    }
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_read),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
