/* Gradients whose dims stand in an attribute: what inference and kernels share. */
#ifndef QN_GRAD_SHAPE_H
#define QN_GRAD_SHAPE_H

#include "ops/eval.h"
#include "ops/grad_attrs.h"
#include "ops/infer.h"

/* Output 0 has the type of input 0 and these dims; false where they are no dims of a tensor. */
QN_MUST_CHECK qn_status qn_infer_grad_shape(qn_infer *self, const qn_ints *shape);
/* A tensor of these dims without data. */
qn_tensor qn_grad_tensor(qn_dtype dtype, const qn_ints *shape);

#endif
