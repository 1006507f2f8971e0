/* Softmax masks, as of attention: elements far below all others that are added, or selected, in
 * front of a Softmax. */
#ifndef QN_SOFTMAX_MASKS_H
#define QN_SOFTMAX_MASKS_H

#include "ops/op.h"

/* Sets out[value->mark] to whether the value leads to nothing but a Softmax, through operators that
 * keep far-away elements far away: sums, Where and operators that move elements. The function
 * numbers the graph's values by `mark`, and `out` has room for all. */
void qn_softmax_masks_mark(bool *out, const qn_graph *graph);

#endif
