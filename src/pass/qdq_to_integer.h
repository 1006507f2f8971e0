/* The rules of the pass qdq-to-integer: float operators between DequantizeLinear (D) and
 * QuantizeLinear (Q) become integer operators. The formulas are those of docs/numerics.md. */
#ifndef QN_QDQ_TO_INTEGER_H
#define QN_QDQ_TO_INTEGER_H

#include "ir/qparams.h"
#include "pass/pass.h"

/* An integer value with its quantization parameters: what a D reads, or what a Q writes. */
typedef struct qn_quantized {
    /* The integers, of 8 or 16 bits. */
    qn_value *value;
    /* Constants; the zero point has the integers' type. */
    qn_value *scale, *zero;
    /* The D or Q. */
    qn_node *node;
    /* The parameters that these constants hold. */
    qn_qparams params;
} qn_quantized;

/* These two accept the operators of ONNX and those of com.microsoft. */
bool qn_is_quantize(const qn_node *node);
bool qn_is_dequantize(const qn_node *node);
/* Reads scale and zero point of a Q or D whose integers are q->value; *found is false where they
 * are not constants. */
QN_MUST_CHECK qn_status qn_qdq_parameters(bool *found, qn_quantized *q, qn_node *node);
/* Whether `value` is the result of a D with constant parameters, and which integers it reads. */
QN_MUST_CHECK qn_status qn_qdq_input(bool *found, qn_quantized *out, const qn_value *value);
/* Whether `value` is read by one Q with constant parameters and nothing else, and which integers it
 * writes. */
QN_MUST_CHECK qn_status qn_qdq_output(bool *found, qn_quantized *out, const qn_value *value);

bool qn_quantized_is_byte(const qn_quantized *q);
/* Whether the integers have 8 or 16 bits. */
bool qn_quantized_is_short(const qn_quantized *q);
/* The scale with index i along the axis. An index beyond the last begins anew: the filters of all
 * groups of a ConvTranspose share the scales of one group. */
static inline float qn_quantized_scale(const qn_quantized *q, int64_t i)
{
    return qn_qparams_scale_at(&q->params, i % q->params.count);
}
/* Whether both give the same integers for the same number: one scale each, equal, and of equal
 * type. */
bool qn_quantized_alike(const qn_quantized *a, const qn_quantized *b);

/* The integer node that replaces a float node. */
typedef struct qn_integer_node {
    const qn_op *op;
    qn_value *const *in;
    int32_t n_in;
    /* The first attrs_size bytes of the attributes; the rest has its defaults. */
    const void *attrs;
    size_t attrs_size;
} qn_integer_node;
/* Puts the integer node where the Q of `y` stands (y NULL: where `node` stands) and removes the Q
 * and `node`. */
QN_MUST_CHECK qn_status qn_qdq_replace(qn_node *node, const qn_quantized *y,
                                       const qn_integer_node *lowered);

/* A node with one input and one output, both integers with one scale. */
typedef struct qn_qdq_unary {
    qn_quantized x, y;
} qn_qdq_unary;
QN_MUST_CHECK qn_status qn_qdq_find_unary(bool *found, qn_qdq_unary *out, const qn_node *node);
/* The same for an operator with the inputs x, its scale and zero point, y's scale and zero point;
 * attrs NULL: the defaults. */
QN_MUST_CHECK qn_status qn_qdq_replace_unary(qn_node *node, const qn_qdq_unary *pair,
                                             const qn_op *op, const void *attrs, size_t attrs_size);

/* A rule: *done says whether it has made `node` integer, and `node` is removed then. */
typedef qn_status qn_qdq_rule(bool *done, qn_node *node);
/* qdq_to_integer_products.c: multiply-accumulate. */
qn_qdq_rule qn_qdq_conv, qn_qdq_conv_transpose, qn_qdq_gemm, qn_qdq_matmul;
/* qdq_to_integer_elements.c: element-wise operators, pools and functions of one number. */
qn_qdq_rule qn_qdq_add, qn_qdq_mul, qn_qdq_concat, qn_qdq_average_pool, qn_qdq_global_pool,
    qn_qdq_prelu, qn_qdq_table;
/* qdq_to_integer_activation.c: a function of one number between a product that is still float and a
 * Q. */
qn_qdq_rule qn_qdq_activation;
/* Whether that rule would apply, up to the point where something else than a factor or sum with a
 * number reads the product. */
bool qn_qdq_fuses_activation(qn_node *node);
/* qdq_to_integer_ort.c: whether ONNX Runtime has the integer operator that the node would become;
 * and rules for functions that it has an operator for, where others become tables. */
QN_MUST_CHECK qn_status qn_qdq_is_in_ort(bool *found, const qn_node *node);
qn_qdq_rule qn_qdq_ort_sigmoid, qn_qdq_ort_leaky_relu;
/* qdq_to_integer_norms.c: operators that combine many elements. */
qn_qdq_rule qn_qdq_softmax, qn_qdq_layer_norm, qn_qdq_reduce_mean, qn_qdq_resize;
/* qdq_to_integer_recurrent.c: LSTM, GRU and RNN. */
qn_qdq_rule qn_qdq_recurrent;

#endif
