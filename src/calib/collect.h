/* The state of a collection of statistics, shared by collect.c, which runs it, checkpoint.c and
 * shared.c.
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
    /* One flag per sample: its statistics are here. */
    uint8_t *done;
    int64_t n_done;
    /* One flag per sample: another rank has, or runs, it. */
    uint8_t *elsewhere;
    /* The samples that are done when this process has ended its share. */
    int64_t n_share;
    /* The file of this process; NULL: none. */
    const char *checkpoint;
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

/* The end of the collection: a new one has nothing but empty statistics. */
void qn_collection_clear(qn_collection *collection);

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

/* Writes the collection's checkpoint. */
QN_MUST_CHECK qn_status qn_checkpoint_write(qn_collection *collection);
/* The same bytes, without a checksum. */
void qn_checkpoint_put(qn_text *out, qn_collection *collection);
/* Adds what another process collected: samples that are done in neither place twice. */
QN_MUST_CHECK qn_status qn_checkpoint_merge(qn_collection *collection, const void *data,
                                            size_t size);
/* The same from another process's file. One that cannot be used is left out, with a warning. */
QN_MUST_CHECK qn_status qn_checkpoint_merge_file(qn_collection *collection, const char *path,
                                                 size_t n_inputs);
/* Continues from the collection's checkpoint where there is a usable one; else nothing changes, and
 * a warning gives the reason. Fails only where memory is short, samples cannot be read, or no file
 * can be written there. */
QN_MUST_CHECK qn_status qn_checkpoint_resume(qn_collection *collection, size_t n_inputs);

/* ---- shared.c: one collection, many processes ------------------------------------------------ */

/* Chooses the samples of this process: `elsewhere`, n_share, checkpoint. Rank 0 resumes from the
 * checkpoints of all ranks that a killed run left. */
QN_MUST_CHECK qn_status qn_collection_share(qn_collection *collection, size_t n_inputs);
/* Brings the shares together: rank 0 has the whole collection, all have its total. */
QN_MUST_CHECK qn_status qn_collection_unite(qn_collection *collection);

#endif
