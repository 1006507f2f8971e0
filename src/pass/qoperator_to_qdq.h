/* Float operators between pairs in place of operators of integers: what both kinds of rules
 * need. */
#ifndef QN_QOPERATOR_TO_QDQ_H
#define QN_QOPERATOR_TO_QDQ_H

#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"

/* NULL where there is no such input. */
qn_value *qn_qoperator_input(const qn_node *node, int32_t slot);
/* How many numbers a scale or zero point has; NULL has one. */
int64_t qn_qoperator_count(const qn_value *value);
/* What a D makes of the integers: one that stands there already, or a fresh one right behind them
 * (before `before` where they have no producer or parameters that are computed). */
QN_MUST_CHECK qn_status qn_qoperator_dequantize(qn_value **out, const qn_quantized *x,
                                                qn_node *before);
/* Output `slot` of the node is a float number from here on; the integers that it wrote before lack
 * a producer. */
QN_MUST_CHECK qn_status qn_qoperator_float_output(qn_node *node, int32_t slot, qn_value *integers);
/* A Q makes these integers of the float number. */
QN_MUST_CHECK qn_status qn_qoperator_quantize(qn_value *real, const qn_quantized *y);

/* raise_moves.c: an operator that moves integers of a Q. */
QN_MUST_CHECK qn_status qn_qoperator_move_to_qdq(bool *done, qn_node *node);

#endif
