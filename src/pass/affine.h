/* y = scale[c] * x + shift[c] along the channel axis: what a BatchNormalization and constants that
 * are multiplied and added amount to, and how they go into the weights of a neighbour. */
#ifndef QN_AFFINE_H
#define QN_AFFINE_H

#include "pass/pass.h"

typedef struct qn_affine {
    int64_t channels;
    /* [channels], in the arena given */
    double *scale, *shift;
    /* The input */
    qn_value *x;
} qn_affine;

/* What a node does to its input per channel; false where it is no affine map. */
QN_MUST_CHECK qn_status qn_affine_of_batchnorm(bool *found, qn_affine *out, qn_arena *arena,
                                               const qn_node *node);
QN_MUST_CHECK qn_status qn_affine_of_arithmetic(bool *found, qn_affine *out, qn_arena *arena,
                                                const qn_node *node);

/* Puts the affine map of `node` into the convolution or product that feeds it (*done), or into the
 * one that it alone feeds; `node` is gone then. */
QN_MUST_CHECK qn_status qn_affine_fold_forward(bool *done, qn_node *node, const qn_affine *affine);
QN_MUST_CHECK qn_status qn_affine_fold_backward(bool *done, qn_node *node, const qn_affine *affine);

/* Runs `read` over all nodes of `op` (any of the `count`) and folds what it finds. */
typedef qn_status qn_affine_reader(bool *found, qn_affine *out, qn_arena *arena,
                                   const qn_node *node);
QN_MUST_CHECK qn_status qn_affine_fold_all(qn_pass_context *self, const qn_op *const *ops,
                                           size_t count, qn_affine_reader *read);

#endif
