/* Kernels that only graphs being trained need. */
#ifndef QN_CPU_TRAIN_H
#define QN_CPU_TRAIN_H

#include "backend/cpu/cpu.h"

/* Steps of optimizers. (steps.c) */
qn_claim_fn qn_claim_sgd_step, qn_claim_adam_step;
/* Gradients of pools over two dimensions, row-major. (pool_grad.c) */
qn_claim_fn qn_claim_max_pool_grad, qn_claim_average_pool_grad;
/* Batch normalization by the statistics of the batch, and its gradient, row-major.
 * (batchnorm.c) */
qn_claim_fn qn_claim_batchnorm_training, qn_claim_batchnorm_grad;

#endif
