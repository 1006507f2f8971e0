/* How float operators between DequantizeLinear (D) and QuantizeLinear (Q) become integer ones; the formulas
 * are those of docs/numerics.md. */
#ifndef QN_LOWER_H
#define QN_LOWER_H

#include "pass/pass.h"

/* Integers and what they mean: what a D reads, or what a Q writes. */
typedef struct qn_quantized {
    qn_value *value;        /* of 8 or 16 bits */
    qn_value *scale, *zero; /* constants; zero is of the integers' type */
    qn_node *node;          /* the D or Q */
    int64_t axis;           /* along which there are several scales; -1: there is one */
} qn_quantized;

/* Of ONNX or of com.microsoft. */
bool qn_is_quantize(const qn_node *node);
bool qn_is_dequantize(const qn_node *node);
/* Scale and zero point of a Q or D whose integers are q->value: *found where they are constants. */
QN_MUST_CHECK qn_status qn_lower_parameters(bool *found, qn_quantized *q, qn_node *node);
/* `value` comes out of a D with constant parameters: *found. */
QN_MUST_CHECK qn_status qn_lower_source(bool *found, qn_quantized *out, const qn_value *value);
/* `value` is read by one Q with constant parameters, and nobody else. */
QN_MUST_CHECK qn_status qn_lower_target(bool *found, qn_quantized *out, const qn_value *value);

bool qn_quantized_is_byte(const qn_quantized *q);
/* 8 or 16 bits. */
bool qn_quantized_is_short(const qn_quantized *q);
/* Scale number i, counted along the axis; what goes beyond it starts again: filters of all groups of a ConvTranspose
 * share the scales of one. */
float qn_quantized_scale(const qn_quantized *q, int64_t i);
int64_t qn_quantized_zero(const qn_quantized *q);
/* Same integers for the same number: one scale each, equal, of equal type. */
bool qn_quantized_alike(const qn_quantized *a, const qn_quantized *b);

/* What takes the place of a node. */
typedef struct qn_lowered {
    const qn_op *op;
    qn_value *const *in;
    int32_t n_in;
    const void *attrs; /* the first attrs_size bytes of the attributes; the rest has its defaults */
    size_t attrs_size;
} qn_lowered;
/* Puts it where the Q of `y` stands (y NULL: `node`); the Q and `node` are gone then. */
QN_MUST_CHECK qn_status qn_lower_replace(qn_node *node, const qn_quantized *y,
                                         const qn_lowered *lowered);

/* One input and one output that are integers with one scale each. */
typedef struct qn_quantized_pair {
    qn_quantized x, y;
} qn_quantized_pair;
QN_MUST_CHECK qn_status qn_lower_pair(bool *found, qn_quantized_pair *out, const qn_node *node);
/* qn_lower_replace by an operator of x and y with their scales and zero points; attrs NULL: its defaults. */
QN_MUST_CHECK qn_status qn_lower_replace_pair(qn_node *node, const qn_quantized_pair *pair,
                                              const qn_op *op, const void *attrs,
                                              size_t attrs_size);

/* One rule: *done says whether `node` has become integer, and is gone. */
typedef qn_status qn_lower_fn(bool *done, qn_node *node);
/* Multiply-accumulate. (lower_mac.c) */
qn_lower_fn qn_lower_conv, qn_lower_conv_transpose, qn_lower_gemm, qn_lower_matmul;
/* Operators on single numbers or windows of them. (lower_elements.c) */
qn_lower_fn qn_lower_add, qn_lower_mul, qn_lower_concat, qn_lower_average_pool,
    qn_lower_global_pool, qn_lower_prelu, qn_lower_table;
/* Functions of one number between a product that is float yet and a Q. (lower_function.c) */
qn_lower_fn qn_lower_function;
/* Whether it would be, up to where something else than a factor or sum with a number reads it. */
bool qn_lower_knows_function(qn_node *node);
/* Whether ONNX Runtime has what the node would become; and functions that it has an operator for, where others
 * become tables. (lower_portable.c) */
QN_MUST_CHECK qn_status qn_lower_is_portable(bool *found, const qn_node *node);
qn_lower_fn qn_lower_sigmoid, qn_lower_leaky_relu;
/* Operators on many numbers at once. (lower_rows.c) */
qn_lower_fn qn_lower_softmax, qn_lower_layer_norm, qn_lower_reduce_mean, qn_lower_resize;

/* ---- Tables of 16 bits -------------------------------------------------------------------------------------- */

/* In the model's metadata: n of tables that have 2^n steps and straight lines between (docs/numerics.md). Without it they
 * have all numbers. */
#define QN_TABLE_KEY "quench.table_bits"
enum { QN_TABLE_LEAST = 8, QN_TABLE_MOST = 12, QN_TABLE_CHIP = 10 };

#endif
