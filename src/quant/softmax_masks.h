/* Ranges of what a mask is added to, or put into, in front of a Softmax (docs/quantization.md,
 * Masks). */
#ifndef QN_QUANT_SOFTMAX_MASKS_H
#define QN_QUANT_SOFTMAX_MASKS_H

#include "quant/params.h"

/* What scale files have in the place of a method where a mask chose the range. */
#define QN_SOFTMAX_MASK_METHOD "mask"

/* Which values lead to nothing but Softmax (before_softmax). The values are numbered. */
QN_MUST_CHECK qn_status qn_softmax_masks_find(qn_quantizer *q);
/* Which roots are masked (masked, live), from statistics. */
QN_MUST_CHECK qn_status qn_softmax_masks_measure(qn_quantizer *q, const qn_stats *stats);
/* Of a masked root: its range in integers of `bits`. */
qn_range qn_softmax_mask_range(const qn_quant_value *root, const qn_stats_entry *entry, int bits);
/* The masks themselves (least), and cuts their ranges, once all are chosen. */
QN_MUST_CHECK qn_status qn_softmax_masks_cut(qn_quantizer *q, const qn_stats *stats);
/* Of an integer node: the least number of a constant that it adds of which its result tells; 0: no
 * limit. All parameters are derived. */
float qn_softmax_mask_min(const qn_quantizer *q, const qn_quant_node *n);

#endif
