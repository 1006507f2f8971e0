/* Ranges of values in front of a Softmax to which a mask is added, or into which it is put
 * (docs/quantization.md, Softmax masks). */
#ifndef QN_QUANT_SOFTMAX_MASKS_H
#define QN_QUANT_SOFTMAX_MASKS_H

#include "quant/params.h"

/* The method that scale files name where a mask chose the range. */
#define QN_SOFTMAX_MASK_METHOD "mask"

/* Sets before_softmax for the values that lead to nothing but a Softmax. The values are
 * numbered. */
QN_MUST_CHECK qn_status qn_softmax_masks_find(qn_quantizer *q);
/* Sets masked and unmasked_min of roots from statistics. */
QN_MUST_CHECK qn_status qn_softmax_masks_measure(qn_quantizer *q, const qn_stats *stats);
/* The range of a masked root in integers of `bits`. */
qn_range qn_softmax_mask_range(const qn_quant_value *root, const qn_stats_entry *entry, int bits);
/* Sets mask_min of the roots that are masks, and limits their ranges, once all ranges are
 * chosen. */
QN_MUST_CHECK qn_status qn_softmax_masks_cut(qn_quantizer *q, const qn_stats *stats);
/* The least element of a constant mask that still changes the result of integer node n; 0: no
 * limit. All parameters must be computed. */
float qn_softmax_mask_min(const qn_quantizer *q, const qn_quant_node *n);

#endif
