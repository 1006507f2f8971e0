/* What is no number, or says nothing, in a model and its data: reported by the name of what is to
 * be repaired. */
#ifndef QN_NAN_CHECK_H
#define QN_NAN_CHECK_H

#include "calib/calib.h"

/* Fails, naming it, where a constant that is computed with has NaN elements: nothing behind it is a
 * number. */
QN_MUST_CHECK qn_status qn_nan_check(qn_context *ctx, const qn_graph *graph);
/* What to do about a value with infinite elements that leads to nothing but a Softmax: it is a
 * mask. NULL: it leads elsewhere. For qn_collect_options. */
const char *qn_nan_remedy(const qn_value *value);
/* Warns of inputs of which nothing but zeros was seen. */
void qn_zero_inputs_warn(qn_context *ctx, const qn_graph *graph, const qn_stats *stats);

#endif
