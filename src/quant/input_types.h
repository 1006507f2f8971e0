/* Inputs of a quantized model that take integers (option --input-type). */
#ifndef QN_INPUT_TYPES_H
#define QN_INPUT_TYPES_H

#include "quant/quant.h"

/* The integer type that the settings ask for at graph input i; QN_UNDEFINED: none, or float32. */
QN_MUST_CHECK qn_status qn_input_type(qn_dtype *out, const qn_quant_settings *settings,
                                      const qn_graph *graph, size_t i);
/* Marks inputs with an integer type as integer values; part of qn_rules_apply, before values are
 * settled. */
QN_MUST_CHECK qn_status qn_input_types_claim(qn_quantizer *q);
/* Sets the widths of these inputs afterwards. Fails where an int16 input would go to an 8-bit
 * node. */
QN_MUST_CHECK qn_status qn_input_types_settle(qn_quantizer *q);
/* Parameters of an input with an integer type, from its range. Where every number seen is an
 * integer of that type the inputs are taken as they are, with scale 1: then *raw is true. */
void qn_input_types_params(qn_qparams *p, bool *raw, const qn_quant_value *root,
                           const qn_stats_entry *entry, bool symmetric);

/* Makes the integers behind the inputs' QuantizeLinear nodes the model's inputs. */
QN_MUST_CHECK qn_status qn_input_types_apply(qn_model *model, const qn_quant_settings *settings);

#endif
