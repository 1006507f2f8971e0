/* Dynamic quantization: weights become integers ahead of time, activations while the model runs. It
 * needs no calibration data. */
#ifndef QN_DYNAMIC_H
#define QN_DYNAMIC_H

#include "quant/params.h"

/* Replaces qn_rules_apply where the settings ask for dynamic quantization. */
QN_MUST_CHECK qn_status qn_dynamic_rules(qn_quantizer *q);
/* Replaces qn_quant_insert. It changes the model's graph; q->nodes and q->values are not valid
 * afterwards. */
QN_MUST_CHECK qn_status qn_dynamic_insert(qn_quantizer *q, const qn_param_options *options);

#endif
