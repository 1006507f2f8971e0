/* Reductions: the elements of a row-major float32 tensor joined along some of its axes, each group
 * to one number. The Reduce operators are nothing else; normalizations reduce first and then go
 * over the elements once more.
 *
 * Neighbouring axes that are all kept, or all reduced, go as one. The innermost kept one and the
 * innermost reduced one are what kernels see: either the elements of a group are side by side
 * (rows), or the groups are (lanes). Loops go over the others. An item of work is a tile of results
 * along the innermost kept axis; where items are few and groups long, groups are cut into parts, at
 * places that depend on the shape alone, so that any number of threads gives the same bits. */
#ifndef QN_CPU_REDUCTION_H
#define QN_CPU_REDUCTION_H

#include "backend/cpu/float/kernels.h"
#include "run/backend.h"

enum { QN_REDUCTION_TILE = 512 }; /* results of an item, at most */

/* Axes that go together, innermost first. */
typedef struct qn_reduction_axes {
    int32_t rank;
    /* Steps in floats; dims[0] is 1 where rank is 0. */
    int64_t dims[QN_MAX_RANK], steps[QN_MAX_RANK];
    int64_t count;
} qn_reduction_axes;

typedef struct qn_reduction_plan {
    const qn_kernels *kernels;
    qn_reduction_axes kept, reduced;
    bool by_lanes;
    /* Results of an item, items along kept.dims[0]. */
    int64_t tile, tiles;
    int64_t items, parts;
} qn_reduction_plan;

/* The axes of a Reduce node; false where they are not constant. */
bool qn_reduction_mark(bool *reduced, const qn_node *node, int32_t rank);
/* For a tensor with elements and the axes that are marked. */
void qn_reduction_plan_make(qn_reduction_plan *plan, const qn_tensor *shape, const bool *reduced);

/* Results [first, first + count) of a tile, and positions [from, to) of those in their groups. */
typedef struct qn_reduction_piece {
    int64_t first, count, from, to;
} qn_reduction_piece;
/* A run of positions along the innermost reduced axis. */
typedef struct qn_reduction_run {
    /* Into the tensor, of the first result's first element. */
    int64_t offset;
    /* Position of it. */
    int64_t from;
    int64_t n;
} qn_reduction_run;

/* One or two reductions, and perhaps a last turn over all elements. */
typedef struct qn_reduction_job {
    const qn_reduction_plan *plan;
    const float *x;
    /* By result: for reductions that want one. */
    const float *shift;
    const qn_reduction *reductions;
    int rounds;
    /* Makes results [first, first + count) of the totals of a round. */
    void (*complete)(const struct qn_reduction_job *job, int round, const double *totals,
                     int64_t first, int64_t count);
    /* NULL, or the last turn: once for every run. */
    void (*apply)(const struct qn_reduction_job *job, const qn_reduction_piece *piece,
                  const qn_reduction_run *run);
    /* What finish and apply want to know. */
    const void *user;
    /* qn_reduction_scratch bytes */
    double *partial;
} qn_reduction_job;

size_t qn_reduction_scratch(const qn_reduction_plan *plan);
void qn_reduction_compute(const qn_reduction_job *job, int threads);

#endif
