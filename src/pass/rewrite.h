/* Tools for passes: constants read as numbers, shapes of patterns, common edits. */
#ifndef QN_REWRITE_H
#define QN_REWRITE_H

#include "ops/op.h"
#include "ops/tensor_attrs.h"

/* The node that produces `value`, when it is one of `op`; else NULL. */
qn_node *qn_match_op(const qn_value *value, const qn_op *op);
/* The same, and nobody else reads the value: it may be taken apart. */
qn_node *qn_match_only(const qn_value *value, const qn_op *op);
/* A constant whose elements are all one number, whatever its shape. */
bool qn_match_number(const qn_value *value, double *number);
/* A constant that is just this number everywhere. */
bool qn_match_is(const qn_value *value, double number);
/* A constant that broadcasts over x and leaves x's shape as it is. */
bool qn_match_fits(const qn_tensor *constant, const qn_value *x);
/* A constant that is this number everywhere, to float precision, and fits x: a part of a function
 * of x that a file spells out. */
bool qn_match_near(const qn_value *value, const qn_value *x, double number);
/* A two-input node with a constant number on one side (any side where it commutes, else the second)
 * that fits the other input, *other. */
bool qn_match_binary(const qn_node *node, qn_value **other, double *number);
/* A Relu or a Clip with constant limits: these, infinite where there is none. */
bool qn_match_limits(double limits[2], const qn_node *node);

/* Makes every reader of output 0 of `node` read `fresh` instead, and removes the node when that
 * worked. *done false: nothing was changed, since a graph output cannot be renamed so. */
QN_MUST_CHECK qn_status qn_rewrite_bypass(bool *done, qn_node *node, qn_value *fresh);
/* A node of `op` with the given inputs takes the place of `node` (output 0); its names go over.
 * Types are inferred. The fresh node is returned to set attributes before that: call
 * qn_rewrite_finish. */
QN_MUST_CHECK qn_status qn_rewrite_begin(qn_node **fresh, qn_node *node, const qn_op *op,
                                         qn_value *const *in, int32_t n_in);
QN_MUST_CHECK qn_status qn_rewrite_finish(qn_node *fresh, qn_node *node);

/* `base` with `tail` behind it, in the graph's arena: the name of what is made of something
 * else. */
QN_MUST_CHECK qn_status qn_rewrite_name(char **out, qn_graph *graph, const char *base,
                                        const char *tail);

/* All its inputs are constants. */
bool qn_node_reads_constants(const qn_node *node);
/* What such a node (three inputs at most, one output) computes becomes a constant, and the node
 * goes. */
QN_MUST_CHECK qn_status qn_rewrite_fold(qn_node *node);

/* Nobody reads what the node writes. */
bool qn_node_is_dead(const qn_node *node);

#endif
