/* Zip archives in memory. The directory at the end of an archive is what counts; everything in it
 * is checked against the archive's size, so that neither a damaged nor a hostile file is read past
 * its end or unpacked to more than it can hold. */
#ifndef QN_ZIP_H
#define QN_ZIP_H

#include "base/base.h"

typedef struct qn_zip {
    qn_context *ctx;
    const uint8_t *data;
    size_t size;
    /* The place of the directory and the number of its entries. */
    uint64_t directory, count;
    /* The bytes that may still be unpacked: an archive that claims more is a bomb. */
    uint64_t budget;
} qn_zip;

typedef struct qn_zip_entry {
    /* The name lies in the archive and is not terminated. */
    qn_string name;
    unsigned method, flags;
    /* Bytes in the archive and of the contents. */
    uint64_t packed, size;
    /* The place of the local header. */
    uint64_t local;
    uint32_t crc;
} qn_zip_entry;

/* Where a walk through the directory stands; zeroed at its begin. */
typedef struct qn_zip_cursor {
    uint64_t at, seen;
} qn_zip_cursor;

/* The contents of an entry: in the archive itself, or unpacked into a block of its own. */
typedef struct qn_zip_contents {
    const uint8_t *data;
    size_t size;
    /* From qn_alloc_aligned, or NULL. The owner frees it with qn_free_aligned. */
    void *block;
} qn_zip_contents;

/* Whether the data begin as an archive with entries does. */
bool qn_zip_is_archive(const uint8_t *data, size_t size);
/* Fails with QN_E_FORMAT where there is no directory. The data outlive the archive. */
QN_MUST_CHECK qn_status qn_zip_open(qn_zip *out, qn_context *ctx, const uint8_t *data, size_t size);
/* The next entry of the directory; *more is false, without an entry, past the last one. */
QN_MUST_CHECK qn_status qn_zip_next(qn_zip_entry *out, bool *more, qn_zip_cursor *cursor,
                                    const qn_zip *zip);
/* The entry of that name; *found is false where there is none. Two of one name are an error. */
QN_MUST_CHECK qn_status qn_zip_find(qn_zip_entry *out, bool *found, const qn_zip *zip,
                                    const char *name);
/* Contents that are stored stay where they are; others are unpacked. The checksum is compared. */
QN_MUST_CHECK qn_status qn_zip_read(qn_zip_contents *out, qn_zip *zip, const qn_zip_entry *entry);

#endif
