/* The backend of own kernels: what oneDNN has not, or not fast. */
#ifndef QN_CPU_BACKEND_H
#define QN_CPU_BACKEND_H

#include "run/backend.h"

extern const qn_backend qn_backend_cpu;

/* Weights as Winograd's algorithm has them are four times as large: they may take `added` bytes
 * more than plain ones where that is little, or as long as all of a plan's add no more than this
 * share of the model. Not in plans that compute directly: those are there for their results, not
 * for speed. */
QN_MUST_CHECK qn_status qn_cpu_allows_winograd(bool *out, qn_builder *builder, int64_t added,
                                               double share);

/* Between row-major, channels-last and this machine's blocked layout, of float32; between the first
 * two also of 8 and 16 bits. (convert.c, q_convert.c) */
QN_MUST_CHECK qn_status qn_convert_layout(qn_claim *claim);
QN_MUST_CHECK qn_status qn_convert_integers(qn_claim *claim, const qn_tensor *shape);

/* Floats from one sample to the next of a claim's first input and output. */
typedef struct qn_strides {
    int64_t in, out;
} qn_strides;
static inline qn_strides qn_claim_strides(const qn_claim *claim)
{
    return (qn_strides){(int64_t)(claim->in[0].stride / sizeof(float)),
                        (int64_t)(claim->out[0].stride / sizeof(float))};
}

/* One function per row of the table in cpu.c: takes the claim's node, perhaps with others, or
 * leaves *taken false. */
typedef qn_status qn_claim_fn(bool *taken, qn_claim *claim);

/* The node's in[0] is float32, no constant, of known dims and not empty, and out[0] is wanted. */
bool qn_claim_is_float(qn_tensor *shape, const qn_claim *claim);

/* Element-wise nodes, as long a chain of them as there is. (elementwise.c) */
qn_claim_fn qn_claim_elementwise;
/* Where, and functions of two elements with any broadcast. (rows.c) */
qn_claim_fn qn_claim_rows;
/* Cast and CastLike; Not; IsNaN and IsInf of float32. (cast.c) */
qn_claim_fn qn_claim_cast, qn_claim_not, qn_claim_is_nan, qn_claim_is_inf;
/* Convolutions for which shape rules name own kernels. (winograd.c, depthwise.c, pointwise.c) */
qn_claim_fn qn_claim_winograd, qn_claim_depthwise, qn_claim_pointwise;
/* Views where they can be. (reshape.c, concat.c, slice.c) */
qn_claim_fn qn_claim_reshape, qn_claim_dropout, qn_claim_split, qn_claim_slice, qn_claim_gather;
qn_claim_fn qn_claim_concat, qn_claim_q_concat;
/* Slices of an image that a Concat joins again. (space_to_depth.c) */
qn_claim_fn qn_claim_space_to_depth;
/* DepthToSpace and SpaceToDepth of any element type. (depth_to_space.c) */
qn_claim_fn qn_claim_depth_to_space;
/* Pad by zeros in blocked layouts. (pad_blocks.c) */
qn_claim_fn qn_claim_pad_blocks;

/* Softmax, LayerNormalization and RMSNormalization of float32. (softmax_norm.c) */
qn_claim_fn qn_claim_softmax, qn_claim_layer_norm;
/* ReduceMax and ReduceMin of bytes. (q_extreme.c) */
qn_claim_fn qn_claim_q_extreme;
/* The Reduce operators, and the normalizations by a group's own numbers. (reduce.c,
 * normalization.c) */
qn_claim_fn qn_claim_reduce;
qn_claim_fn qn_claim_channel_norm, qn_claim_lp_norm, qn_claim_mean_variance_norm,
    qn_claim_log_softmax;
/* ArgMax and ArgMin of float32. (arg.c) */
qn_claim_fn qn_claim_arg;
/* Attention, and a Split that only feeds one. (attention.c) */
qn_claim_fn qn_claim_attention, qn_claim_split_attention;
/* LSTM, GRU and RNN of constant weights and the usual activations. (recurrent.c) */
qn_claim_fn qn_claim_recurrent;
/* QuantizeLinear and DequantizeLinear in a row. (fake_quant.c) */
qn_claim_fn qn_claim_fake_quant;
/* Pad with constants, and with what is there. (pad.c, pad_modes.c) */
qn_claim_fn qn_claim_pad, qn_claim_pad_modes;
/* Transpose of any element type. (transpose.c) */
qn_claim_fn qn_claim_transpose;
/* GridSample and RoiAlign of float32. (grid_sample.c, roi_align.c) */
qn_claim_fn qn_claim_grid_sample, qn_claim_roi_align;
/* Resize by nearest and linear, over the last two of four dimensions. (resize.c) */
qn_claim_fn qn_claim_resize;
/* Multiply-accumulate of integers. (q_conv_claim.c, q_conv_3d.c, q_conv_transpose.c, q_gemm.c,
 * q_matmul.c) */
qn_claim_fn qn_claim_q_conv_concat, qn_claim_q_conv, qn_claim_q_conv_float, qn_claim_q_conv_3d,
    qn_claim_q_conv_3d_float, qn_claim_q_conv_transpose, qn_claim_q_conv_transpose_float,
    qn_claim_q_gemm, qn_claim_q_matmul, qn_claim_q_matmul_bias, qn_claim_q_matmul_two;
/* Numbers quantized while running, and their products. (q_dynamic.c) */
qn_claim_fn qn_claim_q_dynamic, qn_claim_q_product, qn_claim_q_product_float;

/* QLSTM, QGRU, QRNN and DynamicQuantizeLSTM. (q_recurrent_claim.c) */
qn_claim_fn qn_claim_q_recurrent;

/* Integers of 8 and 16 bits; formulas: docs/numerics.md. (q_quantize.c, q_unary.c, q_binary.c,
 * q_pool.c, int8_softmax_norm.c, int16_softmax_norm.c, q_resize.c) */
qn_claim_fn qn_claim_q_quantize, qn_claim_q_dequantize;
qn_claim_fn qn_claim_q_clip, qn_claim_q_table, qn_claim_q_requantize;
qn_claim_fn qn_claim_q_add, qn_claim_q_multiply, qn_claim_q_prelu;
qn_claim_fn qn_claim_q_max_pool, qn_claim_q_average_pool, qn_claim_mean_last;
qn_claim_fn qn_claim_q_global_pool, qn_claim_q_reduce_mean;
qn_claim_fn qn_claim_q_softmax, qn_claim_q_layer_norm;
qn_claim_fn qn_claim_q_softmax_int16, qn_claim_q_layer_norm_int16;
qn_claim_fn qn_claim_q_nearest, qn_claim_q_linear;

#endif
