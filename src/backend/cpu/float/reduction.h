/* Folds: the elements of a row-major float32 tensor joined along some of its axes, each group to one number.
 * Reductions are nothing else; normalizations fold first and then go over the elements once more.
 *
 * Neighbouring axes that are all kept, or all folded, go as one. The innermost kept one and the innermost
 * folded one are what kernels see: either the elements of a group are side by side (rows), or the groups are
 * (lanes). The others are walked. An item of work is a tile of results along the innermost kept axis; where
 * items are few and groups long, groups are cut into parts, at places that depend on the shape alone, so that
 * any number of threads gives the same bits. */
#ifndef QN_CPU_REDUCTION_H
#define QN_CPU_REDUCTION_H

#include "backend/cpu/float/kernels.h"
#include "run/backend.h"

enum { QN_FOLD_TILE = 512 }; /* results of an item, at most */

/* Axes that go together, innermost first. */
typedef struct qn_fold_axes {
    int32_t rank;
    int64_t dims[QN_MAX_RANK],
        steps[QN_MAX_RANK]; /* steps in floats; dims[0] is 1 where rank is 0 */
    int64_t count;
} qn_fold_axes;

typedef struct qn_fold_plan {
    const qn_kernels *kernels;
    qn_fold_axes kept, folded;
    bool by_lanes;
    int64_t tile, tiles; /* results of an item, items along kept.dims[0] */
    int64_t items, parts;
} qn_fold_plan;

/* For a tensor with elements and the axes that are marked. */
void qn_fold_plan_make(qn_fold_plan *plan, const qn_tensor *shape, const bool *folded);

/* Results [first, first + count) of a tile, and positions [from, to) of those in their groups. */
typedef struct qn_fold_piece {
    int64_t first, count, from, to;
} qn_fold_piece;
/* A run of positions along the innermost folded axis. */
typedef struct qn_fold_run {
    int64_t offset; /* into the tensor, of the first result's first element */
    int64_t from;   /* position of it */
    int64_t n;
} qn_fold_run;

/* One or two folds, and perhaps a last turn over all elements. */
typedef struct qn_fold_job {
    const qn_fold_plan *plan;
    const float *x;
    const float *shift; /* by result: for folds that want one */
    const qn_fold *folds;
    int rounds;
    /* Makes results [first, first + count) of the totals of a round. */
    void (*finish)(const struct qn_fold_job *job, int round, const double *totals, int64_t first,
                   int64_t count);
    /* NULL, or the last turn: once for every run. */
    void (*apply)(const struct qn_fold_job *job, const qn_fold_piece *piece,
                  const qn_fold_run *run);
    const void *user; /* what finish and apply want to know */
    double *partial;  /* qn_fold_scratch bytes */
} qn_fold_job;

size_t qn_fold_scratch(const qn_fold_plan *plan);
void qn_fold_do(const qn_fold_job *job, int threads);

#endif
