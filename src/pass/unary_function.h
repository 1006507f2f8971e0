/* Functions of one number: nodes that compute each element of the result from one element of one
 * input, with everything else constant. */
#ifndef QN_UNARY_FUNCTION_H
#define QN_UNARY_FUNCTION_H

#include "ops/op.h"

/* The input slot that `node` is such a function of: operators with one input that become tables,
 * sums, differences and products with a constant number, quotients by one, and PRelu with one
 * slope. -1: it is none. */
int32_t qn_unary_function_slot(const qn_node *node);
/* Applies the function to x, a float32 or float64 tensor of one dimension. The result lies in
 * `arena`. */
QN_MUST_CHECK qn_status qn_unary_function_eval(qn_tensor **out, qn_arena *arena,
                                               const qn_node *node, const qn_tensor *x);

/* Removes the nodes from `node` back to `first`, a chain of functions whose last result is not read
 * any more. */
void qn_unary_function_remove(qn_node *node, const qn_node *first);

#endif
