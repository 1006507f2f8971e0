/* 128 bits that differ where contents do: not for secrets, but for noticing that a file is of
 * another model or other data. The same on every machine. */
#ifndef QN_FINGERPRINT_H
#define QN_FINGERPRINT_H

#include "base/base.h"

typedef struct qn_fingerprint {
    uint64_t word[2];
} qn_fingerprint;

/* Takes in `size` bytes; the result depends on how the bytes are divided between calls. */
void qn_fingerprint_bytes(qn_fingerprint *print, const void *data, size_t size);
void qn_fingerprint_int(qn_fingerprint *print, int64_t value);
/* NULL is not the same as "". */
void qn_fingerprint_text(qn_fingerprint *print, const char *text);
/* Adds as a number: the sum of several does not depend on their order. */
void qn_fingerprint_add(qn_fingerprint *sum, qn_fingerprint other);
static inline bool qn_fingerprint_same(qn_fingerprint a, qn_fingerprint b)
{
    return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}
enum { QN_FINGERPRINT_TEXT = 33 };
/* 32 hexadecimal digits. Returns out. */
const char *qn_fingerprint_format(char out[QN_FINGERPRINT_TEXT], qn_fingerprint print);
/* False, and *out untouched, where the text is not such digits. */
bool qn_fingerprint_parse(qn_fingerprint *out, const char *text);

/* Prints of files: of what they contain, and of what a folder lists (names, sizes, times). */
QN_MUST_CHECK qn_status qn_fingerprint_file(qn_fingerprint *print, qn_context *ctx,
                                            const char *path);
QN_MUST_CHECK qn_status qn_fingerprint_listing(qn_fingerprint *print, qn_context *ctx,
                                               const char *path);

#endif
