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
    int64_t approximate; /* QN_GELU_... */
} qn_gelu_attrs;

/* Softmax, LogSoftmax, Hardmax. */
typedef struct qn_softmax_attrs {
    int64_t axis; /* QN_ABSENT: the last */
} qn_softmax_attrs;
static inline int32_t qn_softmax_axis(const qn_softmax_attrs *attrs, int32_t rank)
{
    const int64_t axis = attrs->axis == QN_ABSENT ? -1 : attrs->axis;
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

typedef struct qn_cast_attrs {
    int64_t to; /* qn_dtype; QN_ABSENT in CastLike */
    int64_t saturate;
} qn_cast_attrs;

#endif
