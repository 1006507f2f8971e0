/* Winograd's convolution with 3x3 kernels, tiles of 4x4 outputs from 6x6 inputs, in blocked layouts
 * [N, C/b, H, W, b].
 *
 *   V = B' d B   of every input tile d, 36 numbers xi for each channel
 *   M = V U      for each xi a product over the channels; U = G g G' comes from the weights
 *   y = A' M A   16 outputs
 *
 * G, B and A interpolate at 0, +-3/4, +-3/2 and infinity, which keeps the error at a few units of
 * the last place (with 0, +-1, +-2 it is five times as large). The powers and products of these
 * points that the transforms need are exact floats: with rounded ones A, B and G would not belong
 * together, and flat parts of a picture would all be wrong in the same direction. */
#ifndef QN_CPU_WINOGRAD_H
#define QN_CPU_WINOGRAD_H

#include "backend/cpu/float/conv/epilogue.h"

enum { QN_WINOGRAD_OUT = 4, QN_WINOGRAD_IN = 6, QN_WINOGRAD_XI = 36 };
#define QN_WINOGRAD_P 0.75 /* the points: 0, +-P, +-Q */
#define QN_WINOGRAD_Q 1.5

typedef struct qn_winograd {
    int64_t height, width, out_height, out_width, pad_top, pad_left;
    int64_t channel_blocks, filter_blocks;
    /* Tiles: of all samples. */
    int64_t tiles_across, tiles_of_sample, tiles;
    /* Floats from sample to sample. */
    int64_t x_stride;
    /* Tiles that are transformed at once. */
    int64_t batch;
    /* Few tiles: threads share V and split the filters. */
    bool split_filters;
    /* Else: as many for each thread. */
    int64_t batches;
    /* U: [filter_blocks / 2, xi, channels, 2, b]. */
    const float *weights;
    /* [filter_blocks * b]. */
    const float *bias;
    qn_epilogue end;
} qn_winograd;

/* Transforms tiles [first, last) of one block of channels: v[xi * xi_step + (tile - first) * b]. */
typedef void qn_winograd_input_fn(const qn_winograd *w, float *v, int64_t xi_step, const float *x,
                                  int64_t first, int64_t last);
/* m[k][tile][b] = sum over all channels of v times u, for `tiles` tiles and 1 or 2 blocks of
 * filters, whose m lie m_step apart; v has its blocks of channels v_step apart. */
typedef struct qn_winograd_product {
    float *m;
    const float *v, *u;
    int64_t m_step, v_step, channel_blocks;
    int64_t tiles;
    int blocks;
} qn_winograd_product;
typedef void qn_winograd_product_fn(const qn_winograd_product *p);
/* Writes tiles [first, last) of block `block` of the filters from m[xi * xi_step + ...]; r:
 * residual or NULL. y and r begin at that block. */
typedef struct qn_winograd_result {
    float *y;
    const float *r, *m;
    int64_t xi_step, block;
} qn_winograd_result;
typedef void qn_winograd_output_fn(const qn_winograd *w, const qn_winograd_result *to,
                                   int64_t first, int64_t last);

typedef struct qn_winograd_kernels {
    /* Tiles that a product takes at once, best used whole. */
    int64_t rows;
    qn_winograd_input_fn *input;
    qn_winograd_product_fn *product;
    qn_winograd_output_fn *output;
} qn_winograd_kernels;

#endif
