/* Several quantizations from one float pass. */
#ifndef QN_STRATEGIES_H
#define QN_STRATEGIES_H

#include "api/executor.h"
#include "api/quantize.h"

/* ---- Functions by name (functions.c) ---------------------------------------------------------------------------------- */

typedef struct qn_function_row {
    const char *name;
    const char *brief;
    qn_infer_fn *
        run; /* NULL: the samples of qn_data_options, or random ones, are read and run side by side */
    /* Adds what it depends on besides the model; NULL: nothing that others do not know. */
    qn_status (*print)(qn_fingerprint *print, qn_context *ctx, const qn_function *function);
    bool random; /* data that were given are not looked at */
} qn_function_row;

/* Makes *function complete; *row is NULL where it was given with its code. */
QN_MUST_CHECK qn_status qn_function_find(const qn_function_row **row, qn_context *ctx,
                                         qn_function *function, bool has_data);

/* ---- What the float pass gave (cache.c) --------------------------------------------------------------------------------- */

typedef struct qn_float_pass {
    int64_t *after; /* forwards, or runs of data, ascending */
    size_t n_after;
    qn_stats **stats; /* [n_after] */
    qn_kept kept;
} qn_float_pass;

/* What it depends on: each its own print, so that a message can say which is another. */
enum { QN_PASS_MODEL, QN_PASS_FUNCTION, QN_PASS_DATA, QN_PASS_FLAGS, QN_PASS_PARTS };
typedef struct qn_pass_key {
    qn_fingerprint print[QN_PASS_PARTS];
} qn_pass_key;

/* Prints of files: of what they contain, and of what a folder lists (names, sizes, times). */
QN_MUST_CHECK qn_status qn_print_contents(qn_fingerprint *print, qn_context *ctx, const char *path);
QN_MUST_CHECK qn_status qn_print_listing(qn_fingerprint *print, qn_context *ctx, const char *path);

QN_MUST_CHECK qn_status qn_float_pass_save(qn_context *ctx, const qn_float_pass *pass,
                                           const qn_pass_key *key, const char *path);
/* *found false where there is no such file. QN_E_INVALID where it is of something else, with a message that says of
 * what. `after` of the pass is set already and must be the file's. */
QN_MUST_CHECK qn_status qn_float_pass_load(bool *found, qn_float_pass *pass, qn_context *ctx,
                                           const qn_pass_key *key, const char *path);

#endif
