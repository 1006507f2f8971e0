/* QuantizeLinear and DequantizeLinear: how they are added, and how they and their results are
 * called (as ONNX Runtime's tools call them). */
#ifndef QN_QDQ_NODES_H
#define QN_QDQ_NODES_H

#include "pass/rewrite.h"

typedef struct qn_qdq_node_spec {
    /* &qn_op_QuantizeLinear or &qn_op_DequantizeLinear */
    const qn_op *op;
    /* Of the names */
    const char *base;
    /* What it reads, scale, zero point or NULL */
    qn_value *in[3];
    /* NULL: at the end */
    qn_node *before;
    /* -1: one scale */
    int64_t axis;
} qn_qdq_node_spec;

/* BASE_QuantizeLinear, which writes BASE_QuantizeLinear_Output, or BASE_DequantizeLinear; *out is
 * what it writes. */
QN_MUST_CHECK qn_status qn_qdq_node_add(qn_value **out, const qn_qdq_node_spec *spec);

/* How much of the name is that of the number that a Q made integers of: less than all where the
 * name tells that. */
size_t qn_qdq_base_length(const char *name);

#endif
