/* Depthwise convolution with 3x3 and 5x5 kernels in blocked layouts [N, C/b, H, W, b]: every
 * channel has its own kernel, so a vector is b channels of one place. */
#ifndef QN_CPU_DEPTHWISE_H
#define QN_CPU_DEPTHWISE_H

#include "backend/cpu/float/conv/epilogue.h"

typedef struct qn_depthwise {
    int64_t samples, blocks;
    int64_t height, width, out_height, out_width;
    int64_t pad_top, pad_left, stride_down;
    /* Floats from sample to sample. */
    int64_t x_stride;
    /* [blocks, kernel, kernel, b]. */
    const float *weights;
    /* [blocks * b]. */
    const float *bias;
    qn_epilogue end;
} qn_depthwise;

/* One row of outputs of one block: y and r (residual; or y itself) at the row, x, weights and bias
 * at the block. */
typedef struct qn_depthwise_row {
    float *y;
    const float *x, *r, *weights, *bias;
    /* Rows that will be read and written next but a few. */
    const float *x_soon, *y_soon;
    int64_t row;
} qn_depthwise_row;
typedef void qn_depthwise_fn(const qn_depthwise *d, const qn_depthwise_row *row);

#endif
