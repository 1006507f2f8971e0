#ifndef QN_REASONS_H
#define QN_REASONS_H

#include "quant/quant.h"

/* Whether the node, of a model that is quantized already, computes with integers (Q and D nodes do
 * not count). */
bool qn_reason_is_integer(const qn_node *node);
/* Gives every node that computes and stays float its reason (`why`), after the rules are applied.
 * Constants, arithmetic on shapes and nodes that only move numbers need none. */
QN_MUST_CHECK qn_status qn_reasons_add(qn_quantizer *q);
/* Notes which layers of a chip's model its software computes, if there are any that nobody asked
 * for. */
void qn_reasons_note_software(const qn_quantizer *q);
/* Fails where nothing is quantized, with the reason. */
QN_MUST_CHECK qn_status qn_reasons_check(const qn_quantizer *q);

#endif
