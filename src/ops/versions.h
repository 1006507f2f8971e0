/* Tools for the `versions` rules of operators: the changes of form that many operators went
 * through. */
#ifndef QN_VERSIONS_H
#define QN_VERSIONS_H

#include "ops/op.h"

/* An attribute that became input `slot`: `field` of node->attrs is moved there, and back (which
 * fails where the input is not constant). */
QN_MUST_CHECK qn_status qn_upgrade_ints(qn_node *node, qn_ints *field, int32_t slot);
QN_MUST_CHECK qn_status qn_downgrade_ints(qn_node *node, qn_ints *field, int32_t slot);
/* The same of floats, back only. */
QN_MUST_CHECK qn_status qn_downgrade_floats(qn_node *node, qn_floats *field, int32_t slot);
/* The same for one number that became a scalar input; it gets the element type of input 0. */
QN_MUST_CHECK qn_status qn_upgrade_number(qn_node *node, double value, int32_t slot);
QN_MUST_CHECK qn_status qn_downgrade_number(double *value, qn_node *node, int32_t slot);

/* Rules of types that many operators have. */
extern const qn_type_rule qn_float8_21[1];
extern const qn_type_rule qn_bfloat16_22[1];
extern const qn_type_rule qn_bfloat16_28[1];

/* Before opset 7 operand `slot` was put along input 0 from dimension `axis` on (QN_ABSENT: at the
 * end): dimensions of 1 are appended to it so that numpy's broadcast does the same. */
QN_MUST_CHECK qn_status qn_upgrade_aligned(qn_node *node, int32_t slot, int64_t axis);

/* Operators of two tensors had these attributes before opset 7; operators that have no others use
 * them as their own. */
typedef struct qn_broadcast_attrs {
    int64_t axis, broadcast;
} qn_broadcast_attrs;
extern const qn_attr_spec qn_broadcast_specs[2];
extern const qn_version_rule qn_broadcast_versions[1];
#define QN_BROADCAST_BEFORE_7                                                                      \
    QN_ATTRS(qn_broadcast_specs, qn_broadcast_attrs), QN_VERSIONS(qn_broadcast_versions)
QN_MUST_CHECK qn_status qn_upgrade_broadcast(qn_node **node);
QN_MUST_CHECK qn_status qn_downgrade_broadcast(qn_node **node);
/* Input `slot` may have another element type than input 0 since `opset`: fails where it has. */
QN_MUST_CHECK qn_status qn_downgrade_one_type(const qn_node *node, int32_t slot, int opset);
/* A `downgrade` to opsets in which all inputs had to have one shape. */
QN_MUST_CHECK qn_status qn_downgrade_same_shapes(qn_node **node);

/* Whether the node has output `slot` and somebody reads it. */
bool qn_node_is_read(const qn_node *node, int32_t slot);
/* A node of `op` that takes over output `slot` of `node`, whose result becomes its first input;
 * more inputs can be set by the caller. */
QN_MUST_CHECK qn_status qn_node_append(qn_node **out, qn_node *node, int32_t slot, const qn_op *op);
/* A node of `op` on the way into input `slot` of `node`. */
QN_MUST_CHECK qn_status qn_node_prepend(qn_node **out, qn_node *node, int32_t slot,
                                        const qn_op *op);
/* Puts Flatten(axis) before input 0 of the node, and behind output 0 a Reshape to the input's
 * shape. */
QN_MUST_CHECK qn_status qn_node_flatten(qn_node *node, int64_t axis);
/* Lists that live as long as the model. */
QN_MUST_CHECK qn_status qn_ints_copy(qn_ints *out, qn_graph *graph, const int64_t *values,
                                     size_t count);
/* A constant scalar. */
QN_MUST_CHECK qn_status qn_value_number(qn_value **out, qn_graph *graph, qn_dtype dtype,
                                        double number);

#endif
