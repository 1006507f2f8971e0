/* Functions of one number: what an operator makes of each element of one input, all else being
 * constant. */
#ifndef QN_UNARY_FUNCTION_H
#define QN_UNARY_FUNCTION_H

#include "ops/op.h"

/* The input that `node` is such a function of: operators of one input that become tables, sums,
 * differences and products with a constant of one number, quotients by one, and PRelu with one
 * slope. -1: it is none. */
int32_t qn_unary_function_slot(const qn_node *node);
/* What the function makes of x, a float32 or float64 tensor of one dimension. The result lies in
 * `arena`. */
QN_MUST_CHECK qn_status qn_unary_function_eval(qn_tensor **out, qn_arena *arena,
                                               const qn_node *node, const qn_tensor *x);

/* Removes a chain of them whose last result nobody reads any more: from `node` back to `first`. */
void qn_unary_function_remove(qn_node *node, const qn_node *first);

#endif
