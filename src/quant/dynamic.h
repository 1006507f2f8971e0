/* Dynamic quantization: weights ahead of time, activations while running. It needs no data. */
#ifndef QN_DYNAMIC_H
#define QN_DYNAMIC_H

#include "quant/params.h"

/* Takes the place of qn_rules_apply where the settings say so. */
QN_MUST_CHECK qn_status qn_dynamic_rules(qn_quantizer *q);
/* Changes the model's graph; the tables of nodes and values are not valid afterwards. */
QN_MUST_CHECK qn_status qn_dynamic_insert(qn_quantizer *q, const qn_param_options *options);

#endif
