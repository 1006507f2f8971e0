/* Tools for passes: constants read as numbers, patterns of nodes, common edits. */
#ifndef QN_REWRITE_H
#define QN_REWRITE_H

#include "ops/op.h"
#include "ops/tensor_attrs.h"

/* The node that produces `value`, where its operator is `op`; else NULL. */
qn_node *qn_match_op(const qn_value *value, const qn_op *op);
/* The same, where nothing else reads the value, so that the node may be changed. */
qn_node *qn_match_only(const qn_value *value, const qn_op *op);
/* Whether the value is a constant whose elements all are one number, of whatever shape. */
bool qn_match_number(const qn_value *value, double *number);
/* Whether the value is a constant with this number everywhere. */
bool qn_match_is(const qn_value *value, double number);
/* Whether the constant broadcasts over x without changing x's shape. */
bool qn_match_fits(const qn_tensor *constant, const qn_value *x);
/* Whether the value is a constant with this number everywhere, to float precision, that fits x: a
 * part of a formula in x that a file spells out. */
bool qn_match_near(const qn_value *value, const qn_value *x, double number);
/* Whether one input of a two-input node is a constant number (any input where the operator
 * commutes, else the second) that fits the other input, *other. */
bool qn_match_binary(const qn_node *node, qn_value **other, double *number);
/* Whether the node is a Relu or a Clip with constant limits, and these, infinite where there is
 * none. */
bool qn_match_limits(double limits[2], const qn_node *node);

/* Makes all readers of output 0 of `node` read `fresh` instead and removes the node. *done is false
 * where that is impossible, since output 0 is a graph output: nothing is changed then. */
QN_MUST_CHECK qn_status qn_rewrite_bypass(bool *done, qn_node *node, qn_value *fresh);
/* Creates a node of `op` with the given inputs that replaces `node` (output 0) and takes its names.
 * The caller sets attributes of the new node and calls qn_rewrite_finish, which infers types. */
QN_MUST_CHECK qn_status qn_rewrite_begin(qn_node **fresh, qn_node *node, const qn_op *op,
                                         qn_value *const *in, int32_t n_in);
QN_MUST_CHECK qn_status qn_rewrite_finish(qn_node *fresh, qn_node *node);

/* The name `base` followed by `tail`, in the graph's arena, for something made of `base`. */
QN_MUST_CHECK qn_status qn_rewrite_name(char **out, qn_graph *graph, const char *base,
                                        const char *tail);

/* Whether all inputs of the node are constants. */
bool qn_node_reads_constants(const qn_node *node);
/* Replaces such a node (at most three inputs, one output) by the constant that it computes. */
QN_MUST_CHECK qn_status qn_rewrite_fold(qn_node *node);

/* Whether nothing reads the node's results. */
bool qn_node_is_dead(const qn_node *node);

#endif
