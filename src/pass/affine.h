/* Affine maps y = scale[c] * x + shift[c] along the channel axis: what a BatchNormalization
 * computes, and Mul and Add of constants. They are folded into the weights of a neighbouring
 * convolution or product. */
#ifndef QN_AFFINE_H
#define QN_AFFINE_H

#include "pass/pass.h"

typedef struct qn_affine {
    int64_t channels;
    /* [channels], in the caller's arena. */
    double *scale, *shift;
    /* The input of the map. */
    qn_value *x;
} qn_affine;

/* Reads the affine map that a node computes; *found is false where it computes none. */
QN_MUST_CHECK qn_status qn_affine_of_batchnorm(bool *found, qn_affine *out, qn_arena *arena,
                                               const qn_node *node);
QN_MUST_CHECK qn_status qn_affine_of_arithmetic(bool *found, qn_affine *out, qn_arena *arena,
                                                const qn_node *node);

/* Folds the affine map of `node` into the convolution or product that feeds it, or into the only
 * one that reads it. *done says whether; `node` is removed then. */
QN_MUST_CHECK qn_status qn_affine_fold_forward(bool *done, qn_node *node, const qn_affine *affine);
QN_MUST_CHECK qn_status qn_affine_fold_backward(bool *done, qn_node *node, const qn_affine *affine);

/* Reads and folds the affine maps of all nodes whose operator is one of the `count` given ones. */
typedef qn_status qn_affine_reader(bool *found, qn_affine *out, qn_arena *arena,
                                   const qn_node *node);
QN_MUST_CHECK qn_status qn_affine_fold_all(qn_pass_context *self, const qn_op *const *ops,
                                           size_t count, qn_affine_reader *read);

#endif
