/* Masks of attention: numbers far below all others that are added, or put in their place, in front
 * of a Softmax. */
#ifndef QN_SOFTMAX_MASKS_H
#define QN_SOFTMAX_MASKS_H

#include "ops/op.h"

/* out[value->mark] (this numbers the graph's values in their order) is whether a value goes nowhere
 * but into Softmax, on ways on which what is far below all others stays so: sums, choices (Where)
 * and moves. `out` has room for all. */
void qn_softmax_masks_mark(bool *out, const qn_graph *graph);

#endif
