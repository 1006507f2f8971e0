/* Kinds of operators that are asked for outside this room. What is true of one operator alone
 * stands in its qn_op; what makes several of them a kind stands here, and nowhere else. */
#ifndef QN_KINDS_H
#define QN_KINDS_H

#include "ops/op.h"

/* Relu and Clip, which an integer network does by the limits of the integers before them. */
bool qn_op_is_limit(const qn_op *op);
/* Conv and ConvTranspose: windows over channels that stand second. */
bool qn_op_is_convolution(const qn_op *op);
/* RNN, LSTM and GRU. */
bool qn_op_is_recurrent(const qn_op *op);
/* QuantizeLinear and DequantizeLinear, of ONNX and of com.microsoft. */
bool qn_op_is_quantize(const qn_op *op);
bool qn_op_is_dequantize(const qn_op *op);

#endif
