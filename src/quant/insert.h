/* Inserts QuantizeLinear and DequantizeLinear nodes around the values that become integers. */
#ifndef QN_INSERT_H
#define QN_INSERT_H

#include "quant/params.h"

/* Changes the model's graph; q->nodes and q->values are not valid afterwards. */
QN_MUST_CHECK qn_status qn_quant_insert(qn_quantizer *q);

#endif
