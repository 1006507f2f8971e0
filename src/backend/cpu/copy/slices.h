/* What a Slice takes of its input, for the kernels that merge slices. */
#ifndef QN_CPU_SLICES_H
#define QN_CPU_SLICES_H

#include "run/backend.h"

/* Indices first, first + step, ... of one dim. */
typedef struct qn_slice_range {
    int64_t first, step, count;
} qn_slice_range;

/* One per dim of the input; false where node is no Slice of a computed value by constant lists, or
 * takes nothing. */
bool qn_slice_ranges(qn_slice_range *ranges, const qn_claim *claim, const qn_node *node);
/* A slice by `inner` of a slice by `ranges`. */
void qn_slice_compose(qn_slice_range *ranges, const qn_slice_range *inner, int32_t rank);

#endif
