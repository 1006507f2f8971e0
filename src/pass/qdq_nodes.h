/* Adds QuantizeLinear (Q) and DequantizeLinear (D) nodes, with the names that ONNX Runtime's tools
 * give them. */
#ifndef QN_QDQ_NODES_H
#define QN_QDQ_NODES_H

#include "pass/rewrite.h"

typedef struct qn_qdq_node_spec {
    /* &qn_op_QuantizeLinear or &qn_op_DequantizeLinear */
    const qn_op *op;
    /* The name that the names of node and result begin with. */
    const char *base;
    /* The input, the scale, and the zero point or NULL. */
    qn_value *in[3];
    /* The node to stand in front of; NULL: at the end of the graph. */
    qn_node *before;
    /* The axis of several scales; -1: there is one scale. */
    int64_t axis;
} qn_qdq_node_spec;

/* Adds BASE_QuantizeLinear with the result BASE_QuantizeLinear_Output, or BASE_DequantizeLinear;
 * *out is the result. */
QN_MUST_CHECK qn_status qn_qdq_node_add(qn_value **out, const qn_qdq_node_spec *spec);

/* The length of the float value's name at the front of `name`: all of it unless the name ends as a
 * Q's result does. */
size_t qn_qdq_base_length(const char *name);

#endif
