/* Little-endian bytes, out of a text that grows and back. Numbers are written in one way only, so that
 * what reads back writes back the same. */
#ifndef QN_BYTES_H
#define QN_BYTES_H

#include "base/text.h"
#include "calib/calib.h"

void qn_put_u64(qn_text *out, uint64_t x);
void qn_put_f32(qn_text *out, float x);
/* Seven bits a byte, the lowest first. */
void qn_put_varint(qn_text *out, uint64_t x);
void qn_put_fixed(qn_text *out, qn_fixed x);
void qn_put_print(qn_text *out, qn_fingerprint x);
void qn_put_name(qn_text *out, const char *name);

/* Reading past the end, or what cannot be, sets `wrong` and gives 0. */
typedef struct qn_bytes {
    const uint8_t *at, *end;
    bool wrong;
} qn_bytes;

uint64_t qn_get_u64(qn_bytes *in);
float qn_get_f32(qn_bytes *in);
uint64_t qn_get_varint(qn_bytes *in);
/* At most `most`. */
uint64_t qn_get_count(qn_bytes *in, uint64_t most);
qn_fixed qn_get_fixed(qn_bytes *in);
qn_fingerprint qn_get_print(qn_bytes *in);
/* A terminated copy; NULL where it is wrong or memory is short (then in->wrong is not set). */
const char *qn_get_name(qn_bytes *in, qn_arena *arena);

/* ---- Files: eight letters, contents, fingerprint of both --------------------------------------------------- */

enum { QN_MAGIC = 8 };
void qn_put_seal(qn_text *out);
/* The contents of a sealed file. Fails where it does not begin with `magic`, is cut short or damaged. */
QN_MUST_CHECK qn_status qn_get_sealed(qn_bytes *out, qn_context *ctx, const void *data, size_t size,
                                      const char *magic);
/* Takes the text. */
QN_MUST_CHECK qn_status qn_write_sealed(qn_context *ctx, qn_text *text, const char *path);

/* ---- Statistics in bytes (stats_file.c) ------------------------------------------------------------------- */

/* Entries must be sorted. */
void qn_put_stats(qn_text *out, const qn_stats *stats);
QN_MUST_CHECK qn_status qn_get_stats(qn_stats **out, qn_context *ctx, qn_bytes *in);

#endif
