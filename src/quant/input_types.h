/* Inputs of a quantized model that are integers. */
#ifndef QN_INPUT_TYPES_H
#define QN_INPUT_TYPES_H

#include "quant/quant.h"

/* The type that the settings ask for an input of the graph; QN_UNDEFINED: none, or float32. */
QN_MUST_CHECK qn_status qn_input_type(qn_dtype *out, const qn_quant_settings *settings,
                                      const qn_graph *graph, size_t i);
/* Part of qn_rules_apply, before values are settled: inputs with a type become integers. */
QN_MUST_CHECK qn_status qn_input_types_claim(qn_quantizer *q);
/* Behind it: their widths. Fails where int16 would go to a node of 8 bits. */
QN_MUST_CHECK qn_status qn_input_types_settle(qn_quantizer *q);
/* Parameters of an input with a type, from its range. Where all numbers seen are integers of that
 * type they are taken as they are, with scale 1: then *raw. */
void qn_input_types_params(qn_qparams *p, bool *raw, const qn_quant_value *root,
                           const qn_stats_entry *entry, bool symmetric);

/* Makes the integers behind the inputs' QuantizeLinear the inputs themselves. */
QN_MUST_CHECK qn_status qn_input_types_apply(qn_model *model, const qn_quant_settings *settings);

#endif
