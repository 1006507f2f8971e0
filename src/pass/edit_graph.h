/* What is done to a network at its ends, at somebody's wish: these change what it computes. */
#ifndef QN_EDIT_GRAPH_H
#define QN_EDIT_GRAPH_H

#include "ops/op.h"

/* One number for all channels, or one for each. */
typedef struct qn_channel_numbers {
    const double *at;
    size_t count;
} qn_channel_numbers;

/* The first input is x instead of (x - mean) / std: a BatchNormalization behind it does that, until
 * passes put it into weights. */
QN_MUST_CHECK qn_status qn_graph_normalize_input(qn_graph *graph, qn_channel_numbers mean,
                                                 qn_channel_numbers std);
/* The tensors of these names, or what the nodes of these names write, become the outputs, in this
 * order. What they do not need stays for a pass to remove. */
QN_MUST_CHECK qn_status qn_graph_select_outputs(qn_graph *graph, const char *const *names,
                                                size_t count);

#endif
