/* The passes fold-batchnorm and fold-mul-add: scales and shifts per channel go into the weights of
 * a neighbouring convolution or product. */
#include "pass/affine.h"

static qn_status fold_batchnorm(qn_pass_context *self)
{
    static const qn_op *const ops[] = {&qn_op_BatchNormalization};
    return qn_affine_fold_all(self, ops, QN_COUNT_OF(ops), qn_affine_of_batchnorm);
}

const qn_pass qn_pass_fold_batchnorm = {
    "fold-batchnorm", "puts BatchNormalization into the weights before or behind it",
    fold_batchnorm};

static qn_status fold_mul_add(qn_pass_context *self)
{
    static const qn_op *const ops[] = {&qn_op_Mul, &qn_op_Div, &qn_op_Add, &qn_op_Sub};
    return qn_affine_fold_all(self, ops, QN_COUNT_OF(ops), qn_affine_of_arithmetic);
}

const qn_pass qn_pass_fold_mul_add = {
    "fold-mul-add", "puts constants multiplied or added per channel into the weights beside them",
    fold_mul_add};
