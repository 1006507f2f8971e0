/* What a node could be as integers: a row for each operator, one for those that move numbers, and
 * one for functions of one number. tests/unit/test_quant_classes.c holds them and what operators
 * say of themselves (qn_quant_rule) together. */
#ifndef QN_QUANT_CLASSES_H
#define QN_QUANT_CLASSES_H

#include "quant/quant.h"

typedef struct qn_quant_class_row {
    const qn_op *op;
    qn_quant_class quant_class;
    /* Inputs that become integers; 0: all */
    int32_t n_data;
    /* What the target must have; 0: nothing special */
    unsigned can;
    /* Why this node cannot, or NULL */
    const char *(*refuse)(const qn_node *node);
} qn_quant_class_row;

/* NULL: it stays float. */
const qn_quant_class_row *qn_quant_class_of(const qn_node *node);
/* The model has the value as integers already, in front of a DequantizeLinear. */
bool qn_value_is_dequantized(const qn_value *value);
/* ONNX Runtime fails to load it behind a pair: it makes a QLinearAveragePool of windows with gaps,
 * and puts the channels of a cubic Resize last, where it has none. */
bool qn_quant_class_breaks_in_ort(const qn_node *node);
/* Why a Gemm is more than a product with a row of biases, or NULL. */
const char *qn_quant_class_refuse_scaled(const qn_node *gemm);
/* Why weights and biases cannot be integers, or NULL. */
const char *qn_quant_class_refuse_constants(const qn_node *node);

#endif
