/* Along which axes the Reduce operators and MeanVarianceNormalization go. */
#ifndef QN_REDUCE_H
#define QN_REDUCE_H

#include "ops/nn_attrs.h"

/* Marks the axes of a tensor of that rank, negative ones counted from the end. False: one is
 * outside or stands there twice. */
bool qn_axes_mark(bool *marked, int32_t rank, qn_ints axes);
/* Those of a Reduce node: none given means all, or none at all. */
bool qn_reduce_mark(bool *marked, const qn_reduce_attrs *attrs, int32_t rank, qn_ints axes);
/* Those of MeanVarianceNormalization: 0, 2 and 3 where it has no list. */
bool qn_mvn_mark(bool *marked, const qn_mvn_attrs *attrs, int32_t rank);

#endif
