/* Parameters that a quantized or trained file gave for its values (pass extract-scales): they are kept
 * rather than derived from data. */
#ifndef QN_GIVEN_H
#define QN_GIVEN_H

#include "quant/params.h"

/* Tells the roots what was given for one of the values that share their parameters, the value whose statistics would
 * count before others. How many roots have some. */
size_t qn_given_find(qn_quantizer *q);
/* Nothing needs statistics: every root has some. After qn_given_find. */
bool qn_given_is_complete(const qn_quantizer *q);
/* What the integers of one scale reach. */
qn_range qn_given_range(const qn_qparams *given);
/* Scale and zero point of an activation of p's type: the given ones where integers of as many bits can have them, else
 * those of the same range. */
void qn_given_apply(qn_qparams *p, const qn_qparams *given, bool symmetric);
/* Scales of weights in the form of p: false where none fit, since the weights have been changed since or the target
 * wants others. `w` are the weights. */
bool qn_given_weights(qn_qparams *p, const qn_quantizer *q, const qn_mac *mac, const float *w);

#endif
