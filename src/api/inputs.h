/* Input tensors for jobs that bring their own. */
#ifndef QN_INPUTS_H
#define QN_INPUTS_H

#include "ir/tensor.h"

/* A tensor of this type and shape in `arena`, with contents that the seed decides: floats from [-1, 1),
 * integers and bools 0 or 1 (small enough for an index), strings empty. */
QN_MUST_CHECK qn_status qn_tensor_random(qn_tensor *out, qn_context *ctx, qn_arena *arena,
                                         const qn_tensor *shape, uint64_t seed);

/* One random tensor per input of the plan, in its order. */
QN_MUST_CHECK qn_status qn_inputs_random(qn_tensor **out, qn_context *ctx, qn_arena *arena,
                                         const qn_plan *plan, uint64_t seed);

#endif
