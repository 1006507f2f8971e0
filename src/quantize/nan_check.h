/* What is no number, or says nothing, in a model and its data: told by the name of what is to be
 * mended. */
#ifndef QN_NAN_CHECK_H
#define QN_NAN_CHECK_H

#include "calib/calib.h"

/* Fails, naming it, where a constant that is computed with has NaN elements: nothing behind it is a
 * number. */
QN_MUST_CHECK qn_status qn_nan_check(qn_context *ctx, const qn_graph *graph);
/* Says what to do where statistics failed for infinite numbers in front of a Softmax: a mask.
 * Returns the status. */
QN_MUST_CHECK qn_status qn_nan_explain(qn_context *ctx, const qn_graph *graph, qn_status status);
/* Warns of inputs of which nothing but zeros was seen. */
void qn_zero_inputs_warn(qn_context *ctx, const qn_graph *graph, const qn_stats *stats);

#endif
