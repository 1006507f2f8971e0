/* The gradient of a graph, as more nodes of the same graph. */
#ifndef QN_DIFFERENTIATE_H
#define QN_DIFFERENTIATE_H

#include "ir/graph.h"

/* Adds, behind the nodes that are there, those that compute the gradient of `loss` (a value of one
 * element) by each value of by[count]: constants, parameters, inputs, results of nodes. out[i] is
 * NULL where the loss does not depend on by[i]. Types are inferred, and all shapes known. An
 * operator that cannot be differentiated fails with QN_E_UNSUPPORTED and names its node. Sums are
 * always added up in the same order. */
QN_MUST_CHECK qn_status qn_differentiate(qn_value **out, qn_graph *graph, qn_value *loss,
                                         qn_value *const *by, size_t count);

#endif
