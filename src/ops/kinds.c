/* Kinds of operators. */
#include "ops/kinds.h"

bool qn_op_is_limit(const qn_op *op)
{
    return op == &qn_op_Relu || op == &qn_op_Clip;
}

bool qn_op_is_convolution(const qn_op *op)
{
    return op == &qn_op_Conv || op == &qn_op_ConvTranspose;
}

bool qn_op_is_recurrent(const qn_op *op)
{
    return op == &qn_op_RNN || op == &qn_op_LSTM || op == &qn_op_GRU;
}

bool qn_op_is_quantize(const qn_op *op)
{
    return op == &qn_op_QuantizeLinear || op == &qn_op_ms_QuantizeLinear;
}

bool qn_op_is_dequantize(const qn_op *op)
{
    return op == &qn_op_DequantizeLinear || op == &qn_op_ms_DequantizeLinear;
}
