/* Writes numbers as little-endian bytes to a growing text and reads them back. Every number has
 * exactly one encoding, so that what is read back is written again as the same bytes. */
#ifndef QN_BYTE_STREAM_H
#define QN_BYTE_STREAM_H

#include "base/text.h"
#include "calib/calib.h"

void qn_put_u64(qn_text *out, uint64_t x);
void qn_put_f32(qn_text *out, float x);
/* Seven bits per byte, the lowest first. */
void qn_put_varint(qn_text *out, uint64_t x);
void qn_put_sum128(qn_text *out, qn_sum128 x);
void qn_put_fingerprint(qn_text *out, qn_fingerprint x);
void qn_put_name(qn_text *out, const char *name);

/* A position in bytes. Reading past the end, or reading what cannot be, sets `wrong` and gives
 * 0. */
typedef struct qn_byte_reader {
    const uint8_t *at, *end;
    bool wrong;
} qn_byte_reader;

uint64_t qn_get_u64(qn_byte_reader *in);
float qn_get_f32(qn_byte_reader *in);
uint64_t qn_get_varint(qn_byte_reader *in);
/* A number that is at most `most`. */
uint64_t qn_get_count(qn_byte_reader *in, uint64_t most);
qn_sum128 qn_get_sum128(qn_byte_reader *in);
qn_fingerprint qn_get_fingerprint(qn_byte_reader *in);
/* A terminated copy; NULL where the bytes are wrong or memory is short (then in->wrong is not
 * set). */
const char *qn_get_name(qn_byte_reader *in, qn_arena *arena);

/* ---- Files: eight letters, contents, fingerprint of both ------------------------------------- */

enum { QN_MAGIC = 8 };
void qn_put_checksum(qn_text *out);
/* The contents of a file with a checksum. Fails where it does not begin with `magic`, is cut short
 * or damaged. */
QN_MUST_CHECK qn_status qn_get_checked(qn_byte_reader *out, qn_context *ctx, const void *data,
                                       size_t size, const char *magic);
/* Writes the text as a file with a checksum, and frees the text. */
QN_MUST_CHECK qn_status qn_write_checked(qn_context *ctx, qn_text *text, const char *path);

/* ---- Statistics in bytes (stats_file.c) ------------------------------------------------------ */

/* The entries must be sorted. */
void qn_put_stats(qn_text *out, const qn_stats *stats);
QN_MUST_CHECK qn_status qn_get_stats(qn_stats **out, qn_context *ctx, qn_byte_reader *in);

#endif
