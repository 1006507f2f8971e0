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

/* `value` comes out of a D with constant parameters: *found. */
QN_MUST_CHECK qn_status qn_lower_source(bool *found, qn_quantized *out, const qn_value *value);
/* `value` is read by one Q with constant parameters, and nobody else. */
QN_MUST_CHECK qn_status qn_lower_target(bool *found, qn_quantized *out, const qn_value *value);

bool qn_quantized_is_byte(const qn_quantized *q);
/* Scale number i, counted along the axis. */
float qn_quantized_scale(const qn_quantized *q, int64_t i);
int64_t qn_quantized_zero(const qn_quantized *q);
/* Same integers for the same number: one scale each, equal, of equal type. */
bool qn_quantized_alike(const qn_quantized *a, const qn_quantized *b);

/* A node of `op` with the inputs and, where the first `attrs_size` bytes are given, the attributes of `node`. It
 * takes the place of `y`'s Q (y NULL: of `node`), and both are gone. */
typedef struct qn_lowered {
    const qn_op *op;
    qn_value *const *in;
    int32_t n_in;
    size_t attrs_size;
} qn_lowered;
QN_MUST_CHECK qn_status qn_lower_replace(qn_node *node, const qn_quantized *y,
                                         const qn_lowered *lowered);

/* One rule: *done says whether `node` has become integer, and is gone. */
typedef qn_status qn_lower_fn(bool *done, qn_node *node);
/* Multiply-accumulate. (lower_mac.c) */
qn_lower_fn qn_lower_conv, qn_lower_gemm, qn_lower_matmul;
/* Operators on single numbers or windows of them. (lower_elements.c) */
qn_lower_fn qn_lower_add, qn_lower_mul, qn_lower_concat, qn_lower_average_pool,
    qn_lower_global_pool, qn_lower_table;

#endif
