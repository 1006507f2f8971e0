/* A float pass: statistics after numbers of forwards, and the float baseline; kept in a file, the
 * cache. */
#ifndef QN_FLOAT_PASS_H
#define QN_FLOAT_PASS_H

#include "executor/executor.h"
#include "executor/functions.h"

typedef struct qn_float_pass {
    /* Forwards, or runs of data, ascending */
    int64_t *after;
    size_t n_after;
    /* [n_after] */
    qn_stats **stats;
    qn_baseline baseline;
} qn_float_pass;

/* What it depends on: each its own print, so that a message can say which is another. */
enum { QN_PASS_MODEL, QN_PASS_FUNCTION, QN_PASS_DATA, QN_PASS_FLAGS, QN_PASS_PARTS };
typedef struct qn_pass_key {
    qn_fingerprint print[QN_PASS_PARTS];
} qn_pass_key;

QN_MUST_CHECK qn_status qn_float_pass_save(qn_context *ctx, const qn_float_pass *pass,
                                           const qn_pass_key *key, const char *path);
/* *found false where there is no such file. QN_E_INVALID where it is of something else, with a
 * message that says of what. `after` of the pass is set already and must be the file's. */
QN_MUST_CHECK qn_status qn_float_pass_load(bool *found, qn_float_pass *pass, qn_context *ctx,
                                           const qn_pass_key *key, const char *path);

#endif
