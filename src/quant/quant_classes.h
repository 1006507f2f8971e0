/* The quantization class of each operator: one row per operator, one for operators that move
 * numbers, and one for functions of one number. tests/unit/test_quant_classes.c checks the rows
 * against the operators' own qn_quant_rule. */
#ifndef QN_QUANT_CLASSES_H
#define QN_QUANT_CLASSES_H

#include "quant/quant.h"

typedef struct qn_quant_class_row {
    const qn_op *op;
    qn_quant_class quant_class;
    /* The number of inputs that become integers; 0: all. */
    int32_t n_data;
    /* QN_CAN_...: what the target must support; 0: nothing special. */
    unsigned can;
    /* The reason why this node stays float; NULL: it can be integer. */
    const char *(*refuse)(const qn_node *node);
} qn_quant_class_row;

/* The row for the node; NULL: it stays float. */
const qn_quant_class_row *qn_quant_class_of(const qn_node *node);
/* Whether the value comes out of a DequantizeLinear that the model already has. */
bool qn_value_is_dequantized(const qn_value *value);
/* Whether ONNX Runtime fails to load the node between Q and D: it makes a QLinearAveragePool of
 * dilated windows, and puts the channels of a cubic Resize last, where it has no kernel. */
bool qn_quant_class_breaks_in_ort(const qn_node *node);
/* Whether the node is a part of sqrt(a^2 + b^2): squares have twice the bits of what they are made
 * of, and integers between square and root lose the small half of them. */
bool qn_quant_class_is_norm_part(const qn_node *node);
/* The reason why a Gemm is more than a product and a row of biases; NULL: it is not. */
const char *qn_quant_class_refuse_scaled(const qn_node *gemm);
/* The reason why weights and biases cannot be integers; NULL: they can. */
const char *qn_quant_class_refuse_constants(const qn_node *node);

#endif
