/* How ranges converge while samples come in, and which samples are outliers. */
#ifndef QN_CONVERGENCE_H
#define QN_CONVERGENCE_H

#include "calib/byte_stream.h"

/* ---- Extremes: the two samples with the largest values --------------------------------------- */

typedef struct qn_extreme {
    /* The sample's extreme on this side of 0; 0 where it has no element there. */
    float end;
    int64_t sample;
} qn_extreme;

typedef struct qn_extremes_entry {
    const char *name;
    /* reach[0] below and reach[1] above 0: the farthest extreme and the second; of equal ones the
     * earlier sample first. */
    qn_extreme reach[2][2];
} qn_extremes_entry;

typedef struct qn_extremes {
    qn_context *ctx;
    qn_arena arena;
    qn_extremes_entry **entries;
    size_t n_entries, capacity;
    qn_names by_name;
} qn_extremes;

void qn_extremes_init(qn_extremes *extremes, qn_context *ctx);
void qn_extremes_free(qn_extremes *extremes);
QN_MUST_CHECK qn_status qn_extremes_add(qn_extremes *extremes, const char *name, qn_range ends,
                                        int64_t sample);
QN_MUST_CHECK qn_status qn_extremes_merge(qn_extremes *to, const qn_extremes *from);
void qn_put_extremes(qn_text *out, const qn_extremes *extremes);
QN_MUST_CHECK qn_status qn_get_extremes(qn_extremes *extremes, qn_byte_reader *in, int64_t samples);
/* Finds convergence->outliers. */
QN_MUST_CHECK qn_status qn_extremes_outliers(qn_convergence *convergence,
                                             const qn_extremes *extremes);

/* ---- Ranges after some of the samples -------------------------------------------------------- */

enum { QN_CONVERGENCE_METHODS = 2 };
typedef struct qn_range_snapshot_entry {
    /* The name, which belongs to the statistics. */
    const char *name;
    qn_range range[QN_CONVERGENCE_METHODS];
} qn_range_snapshot_entry;

typedef struct qn_range_snapshot {
    qn_range_snapshot_entry *entries;
    size_t n_entries;
} qn_range_snapshot;

QN_MUST_CHECK qn_status qn_range_snapshot_take(qn_range_snapshot *out, qn_context *ctx,
                                               const qn_stats *stats);
void qn_range_snapshot_free(qn_range_snapshot *snapshot, qn_context *ctx);
/* Sets the point's median and worst differences from the final ranges. */
QN_MUST_CHECK qn_status qn_range_snapshot_compare(qn_convergence_point *stage, qn_context *ctx,
                                                  const qn_range_snapshot *early,
                                                  const qn_stats *final);

#endif
