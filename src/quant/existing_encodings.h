/* Parameters that a quantized or trained file gave for its values (pass extract-scales): they are
 * kept rather than derived from data. */
#ifndef QN_EXISTING_ENCODINGS_H
#define QN_EXISTING_ENCODINGS_H

#include "quant/params.h"

/* Tells the roots what was existing for one of the values that share their parameters, the value
 * whose statistics would count before others. How many roots have some. */
size_t qn_existing_find(qn_quantizer *q);
/* Nothing needs statistics: every root has some. After qn_existing_find. */
bool qn_existing_is_complete(const qn_quantizer *q);
/* What the integers of one scale reach. */
qn_range qn_existing_range(const qn_qparams *existing);
/* Scale and zero point of an activation of p's type: the existing ones where integers of as many
 * bits can have them, else those of the same range. */
void qn_existing_apply(qn_qparams *p, const qn_qparams *existing, bool symmetric);
/* Scales of weights in the form of p: false where none fit, since the weights have been changed
 * since or the target wants others. `w` are the weights. */
bool qn_existing_weights(qn_qparams *p, const qn_quantizer *q, const qn_weighted_node *layer,
                         const float *w);

#endif
