/* How float operators between DequantizeLinear (D) and QuantizeLinear (Q) become integer ones; the
 * formulas are those of docs/numerics.md. */
#ifndef QN_QDQ_TO_INTEGER_H
#define QN_QDQ_TO_INTEGER_H

#include "ir/qparams.h"
#include "pass/pass.h"

/* Integers and what they mean: what a D reads, or what a Q writes. */
typedef struct qn_quantized {
    /* Of 8 or 16 bits */
    qn_value *value;
    /* Constants; zero is of the integers' type */
    qn_value *scale, *zero;
    /* The D or Q */
    qn_node *node;
    /* What the constants say */
    qn_qparams params;
} qn_quantized;

/* Of ONNX or of com.microsoft. */
bool qn_is_quantize(const qn_node *node);
bool qn_is_dequantize(const qn_node *node);
/* Scale and zero point of a Q or D whose integers are q->value: *found where they are constants. */
QN_MUST_CHECK qn_status qn_qdq_parameters(bool *found, qn_quantized *q, qn_node *node);
/* `value` comes out of a D with constant parameters: *found. */
QN_MUST_CHECK qn_status qn_qdq_input(bool *found, qn_quantized *out, const qn_value *value);
/* `value` is read by one Q with constant parameters, and nobody else. */
QN_MUST_CHECK qn_status qn_qdq_output(bool *found, qn_quantized *out, const qn_value *value);

bool qn_quantized_is_byte(const qn_quantized *q);
/* 8 or 16 bits. */
bool qn_quantized_is_short(const qn_quantized *q);
/* Scale number i, counted along the axis; what goes beyond it starts again: filters of all groups
 * of a ConvTranspose share the scales of one. */
static inline float qn_quantized_scale(const qn_quantized *q, int64_t i)
{
    return qn_qparams_scale_at(&q->params, i % q->params.count);
}
/* Same integers for the same number: one scale each, equal, of equal type. */
bool qn_quantized_alike(const qn_quantized *a, const qn_quantized *b);

/* What takes the place of a node. */
typedef struct qn_integer_node {
    const qn_op *op;
    qn_value *const *in;
    int32_t n_in;
    /* The first attrs_size bytes of the attributes; the rest has its defaults */
    const void *attrs;
    size_t attrs_size;
} qn_integer_node;
/* Puts it where the Q of `y` stands (y NULL: `node`); the Q and `node` are gone then. */
QN_MUST_CHECK qn_status qn_qdq_replace(qn_node *node, const qn_quantized *y,
                                       const qn_integer_node *lowered);

/* One input and one output that are integers with one scale each. */
typedef struct qn_qdq_unary {
    qn_quantized x, y;
} qn_qdq_unary;
QN_MUST_CHECK qn_status qn_qdq_find_unary(bool *found, qn_qdq_unary *out, const qn_node *node);
/* qn_qdq_replace by an operator of x and y with their scales and zero points; attrs NULL: its
 * defaults. */
QN_MUST_CHECK qn_status qn_qdq_replace_unary(qn_node *node, const qn_qdq_unary *pair,
                                             const qn_op *op, const void *attrs, size_t attrs_size);

/* One rule: *done says whether `node` has become integer, and is gone. */
typedef qn_status qn_qdq_rule(bool *done, qn_node *node);
/* Multiply-accumulate. (lower_mac.c) */
qn_qdq_rule qn_qdq_conv, qn_qdq_conv_transpose, qn_qdq_gemm, qn_qdq_matmul;
/* Operators on single numbers or windows of them. (lower_elements.c) */
qn_qdq_rule qn_qdq_add, qn_qdq_mul, qn_qdq_concat, qn_qdq_average_pool, qn_qdq_global_pool,
    qn_qdq_prelu, qn_qdq_table;
/* Functions of one number between a product that is float yet and a Q. (lower_function.c) */
qn_qdq_rule qn_qdq_activation;
/* Whether it would be, up to where something else than a factor or sum with a number reads it. */
bool qn_qdq_fuses_activation(qn_node *node);
/* Whether ONNX Runtime has what the node would become; and functions that it has an operator for,
 * where others become tables. (lower_portable.c) */
QN_MUST_CHECK qn_status qn_qdq_is_in_ort(bool *found, const qn_node *node);
qn_qdq_rule qn_qdq_ort_sigmoid, qn_qdq_ort_leaky_relu;
/* Operators on many numbers at once. (lower_rows.c) */
qn_qdq_rule qn_qdq_softmax, qn_qdq_layer_norm, qn_qdq_reduce_mean, qn_qdq_resize;

#endif
