/* Attributes of the operators that only graphs being trained have: gradients, fake quantization,
 * steps of optimizers. */
#ifndef QN_GRAD_ATTRS_H
#define QN_GRAD_ATTRS_H

#include "ops/nn_attrs.h"

/* Gradients of convolutions and pools: the attributes of the operator that they belong to, and the
 * dims of the result, since a stride hides how large the input was. */
typedef struct qn_window_grad_attrs {
    qn_window_attrs window;
    qn_ints shape;
} qn_window_grad_attrs;

/* SliceGrad, ResizeGrad: the dims of the result. */
typedef struct qn_shape_attrs {
    qn_ints shape;
} qn_shape_attrs;

/* SgdStep */
typedef struct qn_sgd_attrs {
    float momentum, decay;
    int64_t nesterov;
} qn_sgd_attrs;

/* AdamStep */
typedef struct qn_adam_attrs {
    float beta1, beta2, epsilon, decay;
    /* The decay shrinks the weights beside the step (AdamW). */
    int64_t decoupled;
} qn_adam_attrs;

/* GradientScale */
typedef struct qn_gradient_scale_attrs {
    float max_norm;
} qn_gradient_scale_attrs;

/* FakeQuant, FakeQuantGrad */
typedef struct qn_fake_quant_attrs {
    /* Along which there is a scale each, where there are several */
    int64_t axis;
    int64_t qmin, qmax;
    /* The scale's gradient is that of the limits alone (PACT). */
    int64_t limits_only;
    /* What gradients of scale and offset are multiplied by */
    float factor;
} qn_fake_quant_attrs;

#endif
