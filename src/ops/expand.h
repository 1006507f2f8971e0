/* Operators in terms of older ones: how a file of an opset that lacks them says the same. */
#ifndef QN_EXPAND_H
#define QN_EXPAND_H

#include "ops/op.h"

/* Puts nodes of older operators in the place of *node, which becomes NULL; fails with
 * QN_E_UNSUPPORTED where there is no such form. The nodes stand before the place, in the latest
 * form. */
QN_MUST_CHECK qn_status qn_node_expand(qn_node **node);

/* For those who write several nodes in a row: the result of op(a, b) or op(a) in front of `place`,
 * with its type inferred. */
QN_MUST_CHECK qn_status qn_emit(qn_value **out, qn_node *place, const qn_op *op, qn_value *a,
                                qn_value *b);
/* The same with a number of a's type on the second side. */
QN_MUST_CHECK qn_status qn_emit_number(qn_value **out, qn_node *place, const qn_op *op, qn_value *a,
                                       double number);

#endif
