/* What is watched while samples come in: how ranges settle, and which samples stand out. */
#ifndef QN_COURSE_H
#define QN_COURSE_H

#include "calib/bytes.h"

/* ---- Extremes: the two samples that reach farthest ------------------------------------------------------- */

typedef struct qn_reach {
    float end; /* of the sample, away from 0: 0 where it does not go there */
    int64_t sample;
} qn_reach;

typedef struct qn_extremes_entry {
    const char *name;
    qn_reach reach[2][2]; /* below and above 0: the farthest and the second; equal ones by sample */
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
QN_MUST_CHECK qn_status qn_get_extremes(qn_extremes *extremes, qn_bytes *in, int64_t samples);
/* Fills course->outliers. */
QN_MUST_CHECK qn_status qn_extremes_outliers(qn_course *course, const qn_extremes *extremes);

/* ---- Ranges at some moment -------------------------------------------------------------------------------- */

enum { QN_STAGE_METHODS = 2 };
typedef struct qn_snapshot_entry {
    const char *name; /* of the statistics it was taken of */
    qn_range range[QN_STAGE_METHODS];
} qn_snapshot_entry;

typedef struct qn_snapshot {
    qn_snapshot_entry *entries;
    size_t n_entries;
} qn_snapshot;

QN_MUST_CHECK qn_status qn_snapshot_take(qn_snapshot *out, qn_context *ctx, const qn_stats *stats);
void qn_snapshot_free(qn_snapshot *snapshot, qn_context *ctx);
/* Sets median and worst of the stage from what the ranges became. */
QN_MUST_CHECK qn_status qn_snapshot_compare(qn_stage *stage, qn_context *ctx,
                                            const qn_snapshot *early, const qn_stats *final);

#endif
