/* What Pad adds to a tensor, for those that look into nodes: passes and backends. */
#ifndef QN_PAD_H
#define QN_PAD_H

#include "ops/op.h"

/* Elements before and after each dimension; negative ones crop. */
typedef struct qn_pad_amounts {
    int64_t before[QN_MAX_RANK], after[QN_MAX_RANK];
} qn_pad_amounts;

/* From a Pad's inputs: two numbers for each of `axes` (NULL: of all dimensions), all befores first.
 * False where they do not fit `rank` dimensions. */
bool qn_pad_read(qn_pad_amounts *out, int32_t rank, const qn_tensor *pads, const qn_tensor *axes);
/* The same of a node; false also where the amounts are not constant or the rank is not known. */
bool qn_pad_read_node(qn_pad_amounts *out, const qn_node *node);

/* The place in 0 .. dim - 1 that place x, outside too, shows in a qn_pad_mode; -1: the constant. */
int64_t qn_pad_source(int64_t mode, int64_t x, int64_t dim);

#endif
