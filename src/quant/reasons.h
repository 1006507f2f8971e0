#ifndef QN_REASONS_H
#define QN_REASONS_H

#include "quant/quant.h"

/* A node of a model that is quantized already that computes with integers, other than Q and D. */
bool qn_reason_is_integer(const qn_node *node);
/* After the rules: every node that computes and stays float says why. Constants, arithmetic of
 * shapes and what only moves numbers need no word. */
QN_MUST_CHECK qn_status qn_reasons_add(qn_quantizer *q);
/* Then: fails where nothing is quantized, and says why. */
QN_MUST_CHECK qn_status qn_reasons_check(const qn_quantizer *q);

#endif
