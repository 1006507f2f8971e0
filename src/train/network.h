/* A network made ready to learn: which of its constants are parameters, a copy that stays as it is,
 * batch normalization with the statistics of the batch. */
#ifndef QN_TRAIN_NETWORK_H
#define QN_TRAIN_NETWORK_H

#include "train/optimizer.h"

/* The constants that learn, as parameters from now on: weights and biases of convolutions,
 * products and norms, slopes of activations, and lists of numbers that are added or multiplied.
 * Nodes from `end` on (NULL: none) do not
 * learn. They are in the arena of the graph. */
QN_MUST_CHECK qn_status qn_train_parameters(qn_value ***out, size_t *count, qn_graph *graph,
                                            const qn_node *end);

/* A second network behind the first, which reads the same inputs and whose constants stay: *out is
 * its value for `of`. To be called before anything else is changed. */
QN_MUST_CHECK qn_status qn_train_copy(qn_value **out, qn_graph *graph, const qn_value *of);

/* Batch normalization with fixed statistics becomes that with statistics of the batch, and what it
 * has as fixed ones becomes their moving average, with this share of the batch in each step. Nodes
 * from `end` on stay as they are. */
QN_MUST_CHECK qn_status qn_train_norms(qn_train_updates *updates, qn_graph *graph,
                                       const qn_node *end, double share);

#endif
