/* Edits that a user asks for and that change what a network computes: normalized inputs, other
 * outputs. */
#ifndef QN_EDIT_GRAPH_H
#define QN_EDIT_GRAPH_H

#include "ops/op.h"

/* One number for all channels, or one for each. */
typedef struct qn_channel_numbers {
    const double *at;
    size_t count;
} qn_channel_numbers;

/* Makes the first input x where it was (x - mean) / std before: a BatchNormalization behind it
 * computes that until passes fold it into weights. */
QN_MUST_CHECK qn_status qn_graph_normalize_input(qn_graph *graph, qn_channel_numbers mean,
                                                 qn_channel_numbers std);
/* Makes the tensors of these names, or the results of the nodes of these names, the outputs, in
 * this order. Nodes that are not needed any more stay for a pass to remove. */
QN_MUST_CHECK qn_status qn_graph_select_outputs(qn_graph *graph, const char *const *names,
                                                size_t count);

#endif
