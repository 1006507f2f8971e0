/* A collection of statistics under way: shared by collect.c, which runs it, and checkpoint.c.
 *
 * Samples are handed out in ascending order. They are divided into segments at the places where
 * somebody wants to know how things stood; a worker gives its part away when it leaves a segment,
 * and a segment whose samples are all in is folded into the total: so the memory does not depend on
 * their number. */
#ifndef QN_COLLECT_H
#define QN_COLLECT_H

#include "calib/convergence.h"

typedef struct qn_segment {
    /* Of its samples, which begin at the end of the one before */
    int64_t end;
    /* What is in so far; NULL: nothing, or folded already */
    qn_stats *stats;
} qn_segment;

typedef struct qn_collection {
    qn_context *ctx;
    const qn_sample_source *source;
    const qn_collect_options *options;
    qn_arena arena;
    qn_segment *segments;
    size_t n_segments, folded;
    /* Of the folded segments */
    qn_stats *total;
    /* Of the caller */
    qn_stats **out;
    /* One per sample */
    uint8_t *done;
    int64_t next, n_done;
    qn_extremes extremes;
    qn_convergence_point points[QN_CONVERGENCE_POINTS];
    /* Taken when the stage was reached */
    qn_range_snapshot snapshots[QN_CONVERGENCE_POINTS];
    size_t n_points;
} qn_collection;

/* Adds a part of the segment, which may be NULL, and folds what is complete. */
QN_MUST_CHECK qn_status qn_collection_add(qn_collection *collection, size_t segment,
                                          const qn_stats *part);
/* Fingerprint of the inputs of a sample. */
qn_fingerprint qn_sample_fingerprint(const qn_tensor *inputs, size_t count);

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_checkpoint_write(qn_collection *collection, const char *path);
/* Goes on from the file where there is one that fits; else nothing changes, and a warning says why.
 * Fails only where memory is short, samples cannot be read, or no file can be written there. */
QN_MUST_CHECK qn_status qn_checkpoint_resume(qn_collection *collection, const char *path,
                                             size_t n_inputs);

#endif
