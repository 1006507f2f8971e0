/* Quantization parameters that a quantized or trained file already has for its values (pass
 * extract-scales). They are kept instead of being computed from data. */
#ifndef QN_EXISTING_ENCODINGS_H
#define QN_EXISTING_ENCODINGS_H

#include "quant/params.h"

/* Gives each root the parameters that the file has for one of the values in its group; the value
 * whose statistics would count comes first. Returns how many roots have some. */
size_t qn_existing_find(qn_quantizer *q);
/* Whether every root has parameters, so that no statistics are needed. Call it after
 * qn_existing_find. */
bool qn_existing_is_complete(const qn_quantizer *q);
/* The float range that the integers of these parameters (one scale) cover. */
qn_range qn_existing_range(const qn_qparams *existing);
/* Sets scale and zero point of an activation: the existing ones where integers of p's width can
 * have them, else those of the same range. */
void qn_existing_apply(qn_qparams *p, const qn_qparams *existing, bool symmetric);
/* Takes the existing scales for the weights `w` in the layout of p. False where they do not fit:
 * the weights have been changed since, or the target wants another layout. */
bool qn_existing_weights(qn_qparams *p, const qn_quantizer *q, const qn_weighted_node *layer,
                         const float *w);

#endif
