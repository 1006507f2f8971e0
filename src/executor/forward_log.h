/* The forwards of a float pass, so that one that was stopped goes on: what each was given and what
 * came out.
 *
 * The function feeds by itself, so it is called from its beginning again. As long as it gives what
 * it gave before it gets the outputs of then, and nothing is counted; behind that the statistics of
 * then are gone on from. */
#ifndef QN_FORWARD_LOG_H
#define QN_FORWARD_LOG_H

#include "calib/calib.h"

typedef struct qn_logged_forward {
    /* qn_sample_fingerprint of all that it was given */
    qn_fingerprint print;
    /* Outputs of all its pieces, one piece behind the other; 0: not kept */
    int64_t n_tensors;
    qn_tensor *tensors;
} qn_logged_forward;

typedef struct qn_forward_log {
    qn_context *ctx;
    const char *path;
    /* The print of all that the pass depends on */
    qn_fingerprint key;
    const int64_t *after;
    size_t n_after;
    qn_logged_forward *at;
    size_t count, capacity;
    /* The bytes of the outputs that are kept */
    size_t bytes;
    double written;
    /* Forwards in the file; 0: there is none, or it is of no use */
    size_t known;
    /* The statistics after the last of them */
    qn_stats *total;
    /* [n_after] of the caller: those that were reached by then; NULL: not yet */
    qn_stats **stats;
    /* The function gave something else on its way through them */
    bool other;
} qn_forward_log;

/* The path, key and numbers are set. Reads the file where there is one that fits. */
QN_MUST_CHECK qn_status qn_forward_log_open(qn_forward_log *log);
/* What came of it then, where forward `index` is one of the file's and was given the same; else
 * *out is NULL. */
void qn_forward_log_find(const qn_logged_forward **out, qn_forward_log *log, int64_t index,
                         qn_fingerprint print);
/* The next forward; its outputs are kept as long as there is room. */
QN_MUST_CHECK qn_status qn_forward_log_add(qn_forward_log *log, qn_fingerprint print,
                                           const qn_tensor *outputs, int64_t count);
/* Whether it is time to write again. */
bool qn_forward_log_due(const qn_forward_log *log);
/* `total` and log->stats of the caller are after the last forward. */
QN_MUST_CHECK qn_status qn_forward_log_write(qn_forward_log *log, const qn_stats *total,
                                             qn_stats *const *stats);
/* Forgets the forwards. */
void qn_forward_log_clear(qn_forward_log *log);
void qn_forward_log_close(qn_forward_log *log);

#endif
