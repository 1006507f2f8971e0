/* Convolution with 1x1 kernels and no strides in blocked layouts [N, C/b, H, W, b]: a matrix
 * product whose rows are the places of the map. With pads there is a border around it that knows
 * nothing but the bias. */
#ifndef QN_CPU_POINTWISE_H
#define QN_CPU_POINTWISE_H

#include "backend/cpu/float/conv/epilogue.h"

enum { QN_POINTWISE_PLACES = 14 }; /* of a tile, at most */

/* Some places by one or two blocks of filters: the sums over a run of channels, which stay in
 * registers. */
typedef struct qn_pointwise_tile {
    float *y;
    /* r: residual; or y itself */
    const float *x, *r;
    /* x of the tile after this one */
    const float *next;
    /* [channel_blocks * b, blocks, b]. */
    const float *weights;
    /* [blocks * b]. */
    const float *bias;
    /* Floats from block to block of channels. */
    int64_t x_step, y_step, r_step;
    int64_t channel_blocks;
    int64_t places;
    int blocks;
    /* [blocks, places, b]. */
    float *total;
    /* There are runs before this one, or behind it: y is not written. */
    bool has_total, to_total;
} qn_pointwise_tile;

typedef struct qn_pointwise_kernels {
    /* Most of a tile, up to QN_POINTWISE_PLACES. */
    int places;
    void (*tile)(const qn_pointwise_tile *tile, const qn_epilogue_fused *fused);
} qn_pointwise_kernels;

typedef struct qn_pointwise {
    /* The samples, and the places of one map without its border. */
    int64_t samples, places;
    /* Out: with the border. */
    int64_t width, out_width, pad_left, pad_top, out_places;
    int64_t channels, filters, channel_blocks, filter_blocks, block;
    /* How threads share it; else by places. */
    bool split_filters;
    const qn_pointwise_kernels *kernels;
    /* [filters, channels, 1, 1]; bias or NULL. */
    const qn_tensor *weights, *constant;
    /* [filter_blocks / 2, channel_blocks * b, 2, b]; an odd last one [..., 1, b]. */
    float *packed;
    /* [filter_blocks * b]. */
    float *bias;
    qn_epilogue end;
} qn_pointwise;

/* A part of one sample: places [first, first + count) by pairs [from, to) of filter blocks. The one
 * with the first place makes the border. */
typedef struct qn_pointwise_part {
    /* The sample's, as r. */
    float *y;
    /* Residual or NULL. */
    const float *r;
    /* At `first`. */
    const float *x;
    /* Floats from block to block of channels. */
    int64_t x_step;
    int64_t first, count, from, to;
} qn_pointwise_part;

bool qn_pointwise_has_border(const qn_pointwise *p);
/* Places whose channels take a good part of the second cache. */
int64_t qn_pointwise_places(int64_t channels);
/* False where the node is none of these convolutions, or where oneDNN's is better. */
bool qn_pointwise_describe(qn_pointwise *out, const qn_builder *builder, const qn_node *node);
/* Packs weights and bias; out[0] of the claim is the result. */
QN_MUST_CHECK qn_status qn_pointwise_prepare(qn_pointwise *p, const qn_claim *claim);
void qn_pointwise_compute(const qn_pointwise *p, const qn_pointwise_part *part);

#endif
