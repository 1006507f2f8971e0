/* Where something is free over a time: addresses of memory, or lanes. Nearly linear in what is
 * placed. */
#ifndef QN_GAPS_H
#define QN_GAPS_H

#include "base/base.h"

typedef struct qn_gap_runs qn_gap_runs;
typedef struct qn_gaps {
    qn_context *ctx;
    qn_arena arena;
    /* Times, a power of two */
    size_t size;
    /* A tree of times, [2 * size] each; node 1 is the whole time, 2 n and 2 n + 1 are the halves of
     * n. */
    /* Taken during all of the node's time */
    qn_gap_runs *whole;
    /* Taken at some of it */
    qn_gap_runs *part;
} qn_gaps;

/* For times -1 to `last`. */
QN_MUST_CHECK qn_status qn_gaps_init(qn_gaps *gaps, qn_context *ctx, int32_t last);
/* *address: the lowest at which `bytes` are free from time `first` to `last`; they are taken from
 * now on. */
QN_MUST_CHECK qn_status qn_gaps_take(size_t *address, qn_gaps *gaps, size_t bytes, int32_t first,
                                     int32_t last);
void qn_gaps_free(qn_gaps *gaps);

#endif
