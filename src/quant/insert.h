/* Puts QuantizeLinear and DequantizeLinear nodes where the parameters say that integers are. */
#ifndef QN_INSERT_H
#define QN_INSERT_H

#include "quant/params.h"

/* Changes the model's graph; the quantizer's tables of nodes and values are not valid
 * afterwards. */
QN_MUST_CHECK qn_status qn_quant_insert(qn_quantizer *q);

#endif
