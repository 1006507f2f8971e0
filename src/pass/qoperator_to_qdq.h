/* Tools of the pass qoperator-to-qdq, which replaces operators on integers by float operators
 * between D and Q nodes. */
#ifndef QN_QOPERATOR_TO_QDQ_H
#define QN_QOPERATOR_TO_QDQ_H

#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"

/* Input `slot` of the node; NULL where there is none. */
qn_value *qn_qoperator_input(const qn_node *node, int32_t slot);
/* The number of elements of a scale or zero point; 1 for NULL. */
int64_t qn_qoperator_count(const qn_value *value);
/* Gives the float value of the integers: the result of a D that exists already, or of a new one
 * right behind their producer (before `before` where they have no producer, or parameters that are
 * computed). */
QN_MUST_CHECK qn_status qn_qoperator_dequantize(qn_value **out, const qn_quantized *x,
                                                qn_node *before);
/* Makes output `slot` of the node a float value; the integers that it wrote before have no producer
 * then. */
QN_MUST_CHECK qn_status qn_qoperator_float_output(qn_node *node, int32_t slot, qn_value *integers);
/* Adds a Q that makes the integers of `y` out of the float value. */
QN_MUST_CHECK qn_status qn_qoperator_quantize(qn_value *real, const qn_quantized *y);

/* qoperator_to_qdq_moves.c: rewrites an operator that moves the integers of a Q. */
QN_MUST_CHECK qn_status qn_qoperator_move_to_qdq(bool *done, qn_node *node);

#endif
