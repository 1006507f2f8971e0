/* Attributes of the operators that compute, for those that look into nodes: passes and backends. */
#ifndef QN_NN_ATTRS_H
#define QN_NN_ATTRS_H

#include "ops/op.h"

/* Celu, Elu, LeakyRelu, Selu, HardSigmoid, Swish, ThresholdedRelu: the fields that each has. */
typedef struct qn_activation_attrs {
    float alpha, beta, gamma;
} qn_activation_attrs;

enum { QN_GELU_ERF, QN_GELU_TANH };
typedef struct qn_gelu_attrs {
    /* QN_GELU_... */
    int64_t approximate;
} qn_gelu_attrs;

/* Softmax, LogSoftmax, Hardmax. */
typedef struct qn_softmax_attrs {
    /* QN_ABSENT: the last */
    int64_t axis;
} qn_softmax_attrs;
static inline int32_t qn_softmax_axis(const qn_softmax_attrs *attrs, int32_t rank)
{
    const int64_t axis = attrs->axis == QN_ABSENT ? -1 : attrs->axis;
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

typedef struct qn_einsum_attrs {
    const char *equation;
} qn_einsum_attrs;

typedef struct qn_cast_attrs {
    /* qn_dtype; QN_ABSENT in CastLike */
    int64_t to;
    int64_t saturate;
    /* How float8e8m0 is rounded: up, down or to the nearest. */
    int64_t round_mode;
    /* Before opset 6: "FLOAT" */
    const char *to_name;
} qn_cast_attrs;

typedef struct qn_gemm_attrs {
    float alpha, beta;
    int64_t transA, transB;
    /* Before opset 7 */
    int64_t broadcast;
} qn_gemm_attrs;

/* QuantizeLinear, DequantizeLinear. */
typedef struct qn_quantize_attrs {
    int64_t axis, block_size;
    /* The qn_dtype of the result; 0: that of the inputs. */
    int64_t output_dtype, precision;
    int64_t saturate;
} qn_quantize_attrs;

/* ReduceSum and the others. */
typedef struct qn_reduce_attrs {
    int64_t keepdims, noop_with_empty_axes;
    /* Before opset 18; of ReduceSum before 13 */
    qn_ints axes;
} qn_reduce_attrs;

/* ArgMax, ArgMin. */
typedef struct qn_arg_attrs {
    int64_t axis, keepdims, select_last_index;
} qn_arg_attrs;

/* The other normalizations: the fields that each has. */
typedef struct qn_norm_attrs {
    float epsilon;
    /* LayerNormalization, RMSNormalization: the first one normalized */
    int64_t axis;
    /* qn_dtype of the statistics */
    int64_t stash_type;
    /* GroupNormalization */
    int64_t num_groups;
} qn_norm_attrs;

typedef struct qn_lp_attrs {
    /* LpNormalization */
    int64_t axis, p;
} qn_lp_attrs;

typedef struct qn_mvn_attrs {
    /* MeanVarianceNormalization; absent: 0, 2, 3 */
    qn_ints axes;
} qn_mvn_attrs;

typedef struct qn_shrink_attrs {
    float bias, lambd;
} qn_shrink_attrs;

typedef struct qn_isinf_attrs {
    int64_t detect_negative, detect_positive;
} qn_isinf_attrs;

typedef struct qn_lrn_attrs {
    float alpha, beta, bias;
    int64_t size;
} qn_lrn_attrs;

/* Convolutions and pools: the fields that each has. ops/window.h resolves them. */
enum { QN_AUTO_PAD_NOTSET, QN_AUTO_PAD_SAME_UPPER, QN_AUTO_PAD_SAME_LOWER, QN_AUTO_PAD_VALID };
typedef struct qn_window_attrs {
    qn_ints kernel_shape, strides, pads, dilations;
    /* QN_AUTO_PAD_... */
    int64_t auto_pad;
    int64_t group;
    /* ConvTranspose */
    qn_ints output_padding, output_shape;
    /* DeformConv */
    int64_t offset_group;
    int64_t ceil_mode, count_include_pad, storage_order;
    /* LpPool, GlobalLpPool */
    int64_t p;
    /* The same in opset 1 */
    float p_float;
} qn_window_attrs;

typedef struct qn_batchnorm_attrs {
    float epsilon, momentum;
    int64_t training_mode;
    /* Before opsets 9 and 7 */
    int64_t spatial, is_test;
    /* Before opset 6 */
    qn_ints consumed_inputs;
} qn_batchnorm_attrs;

/* RNN, GRU, LSTM. */
enum { QN_DIRECTION_FORWARD, QN_DIRECTION_REVERSE, QN_DIRECTION_BOTH };
typedef struct qn_recurrent_attrs {
    qn_strings activations;
    qn_floats activation_alpha, activation_beta;
    /* Infinity: none */
    float clip;
    /* QN_DIRECTION_... */
    int64_t direction;
    int64_t hidden_size, layout;
    /* GRU */
    int64_t linear_before_reset;
    /* LSTM */
    int64_t input_forget;
    /* Before opset 7 */
    int64_t output_sequence;
} qn_recurrent_attrs;

typedef struct qn_attention_attrs {
    int64_t is_causal, q_num_heads, kv_num_heads;
    int64_t qk_matmul_output_mode, softmax_precision;
    /* -1: no limit */
    int64_t left_window_size, right_window_size;
    /* 0: 1 / sqrt(head size) */
    float scale;
    /* 0: none */
    float softcap;
} qn_attention_attrs;

typedef struct qn_rotary_attrs {
    int64_t interleaved, num_heads, rotary_embedding_dim;
} qn_rotary_attrs;

#endif
