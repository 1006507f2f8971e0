/* Which values of a float graph calibration looks at: whatever a graph is quantized with, its
 * integers are among these. Those who run the float graph (calibration, the executor) ask here, so
 * that all of them see the same values. */
#ifndef QN_OBSERVE_H
#define QN_OBSERVE_H

#include "calib/calib.h"

/* The values of a graph (passes done) that are looked at: floats that are no constants, except
 * those that a Relu, Clip or bias behind them changes at once. Whatever target and patterns a model
 * is quantized with, its integers are among these. A qn_observe_fn. */
bool qn_observe_default(const void *user, const qn_value *value);
/* None, of plans whose outputs alone are wanted. A qn_observe_fn. */
bool qn_observe_none(const void *user, const qn_value *value);
/* The dimension of a value that counts channels. A qn_axis_fn. */
int32_t qn_channel_axis(const void *user, const qn_value *value);

#endif
