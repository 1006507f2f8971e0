/* The state of a collection of statistics, shared by collect.c, which runs it, and checkpoint.c.
 *
 * Samples are handed out in ascending order. They are divided into segments at the sample counts
 * for which statistics are wanted. A worker hands in its part when it leaves a segment, and a
 * segment with all its samples is merged into the total, so that the memory does not depend on the
 * number of segments. */
#ifndef QN_COLLECT_H
#define QN_COLLECT_H

#include "calib/convergence.h"

typedef struct qn_segment {
    /* The end of the segment's samples, which begin at the end of the segment before. */
    int64_t end;
    /* The parts handed in so far; NULL: none yet, or merged into the total already. */
    qn_stats *stats;
} qn_segment;

typedef struct qn_collection {
    qn_context *ctx;
    const qn_sample_source *source;
    const qn_collect_options *options;
    qn_arena arena;
    qn_segment *segments;
    size_t n_segments, folded;
    /* The statistics of the merged segments. */
    qn_stats *total;
    /* The caller's results. */
    qn_stats **out;
    /* One flag per sample. */
    uint8_t *done;
    int64_t next, n_done;
    qn_extremes extremes;
    qn_convergence_point points[QN_CONVERGENCE_POINTS];
    /* The ranges when each point was reached. */
    qn_range_snapshot snapshots[QN_CONVERGENCE_POINTS];
    size_t n_points;
} qn_collection;

/* Adds a part of the segment, which may be NULL, and merges complete segments. */
QN_MUST_CHECK qn_status qn_collection_add(qn_collection *collection, size_t segment,
                                          const qn_stats *part);
/* The fingerprint of a sample's inputs. */
qn_fingerprint qn_sample_fingerprint(const qn_tensor *inputs, size_t count);

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_checkpoint_write(qn_collection *collection, const char *path);
/* Continues from the file where there is a usable one; else nothing changes, and a warning gives
 * the reason. Fails only where memory is short, samples cannot be read, or no file can be written
 * there. */
QN_MUST_CHECK qn_status qn_checkpoint_resume(qn_collection *collection, const char *path,
                                             size_t n_inputs);

#endif
