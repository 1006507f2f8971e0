/* Integer multiply-accumulate over patches of channels-last maps, without turning the map into a
 * matrix.
 *
 * A patch is a few segments of neighbouring bytes of the map (the rows of the kernel, or its single
 * elements); all patches have the same segments, at a distance from the patch's first byte. A tile
 * is a few patches by one block of filters: its sums stay in registers while the kernel goes along
 * the segments, four bytes of every patch a step:
 *
 *   sums[patch][filter] += dot(bytes of the patch, weights of the filter)
 *
 * Weights are packed as [block][step][vector][lane][dot]. The map is uint8 (with VNNI) or widened
 * to 16 bits; see vec_int32.h.
 *
 * Where multiplications are dear, Winograd's inner product needs half of them. With the numbers a
 * and b of two steps of a patch, and u and v of a filter:
 *
 *   dot(a, u) + dot(b, v) = dot(a + v, b + u) - dot(a, b) - dot(u, v)
 *
 * The last sum is part of what sums begin with; that of dot(a, b) is made once for each patch,
 * whatever the filters (int8_inner_product_kernels.h). Sums may wrap on the way.
 *
 * Where a side has 16 bits (int16_mac_kernels.h) the map is int16, shifted by the middle of its
 * range (x = s + 2^15 for uint16), and two products are summed a lane and step. Sums of 32 bits are
 * added to doubles before they can overflow:
 *
 *   weights of 8 bits    |s w| <= 2^15 * 2^7 = 2^22: at most 255 steps, 255 * 2 * 2^22 < 2^31
 *   weights of 16 bits   w = 256 h + l, -128 <= h <= 127, 0 <= l <= 255, two sums:
 *                        |s l| <= 2^15 * 255, at most 128 steps, 128 * 2 * 2^15 * 255 < 2^31;
 *                        together 256 * sum(s h) + sum(s l)
 *   less a zero point    17 bits, split when they are packed: -256 <= h <= 255, at most 127 steps
 *
 * Without AVX-512 weights of up to 16 bits are not split but summed in runs of steps
 * (int16_run_kernels.h), as many as a block's own weights allow: behind a run 16 bits of a sum are
 * left, and 2^16 + 2^15 * sum(|w|) <= 2^31. Two weights above -2^15 always fit, and so do
 * QN_MAC_RUN steps of 8-bit ones.
 *
 * A double holds every integer up to 2^53, and no sum of 65,536 products with its bias (limited to
 * 2^50) reaches that: all is exact up to the rounding to float, f32(acc + bias) of
 * docs/numerics.md. */
#ifndef QN_CPU_Q_MAC_H
#define QN_CPU_Q_MAC_H

#include "backend/cpu/int/epilogue/q_epilogue.h"

/* The most of any instruction set. */
enum { QN_MAC_PATCHES = 14, QN_MAC_VECTORS = 4 };
/* A run of steps has this many at most. */
enum { QN_MAC_RUN = 255 };

/* Sides of a map. */
enum { QN_MAC_LEFT = 1, QN_MAC_RIGHT = 2 };

typedef struct qn_mac_segment {
    /* Bytes from the patch's first one, and groups of four bytes. */
    int64_t offset, steps;
    /* The side at which the outermost patch sees padding here, which adds nothing; else 0. */
    int edge;
} qn_mac_segment;

/* What all tiles of a convolution have in common. */
typedef struct qn_mac {
    /* Bytes from one patch of a row to the next: in the map, the results, the residual. */
    int64_t x_step, y_step, r_step;
    /* Bytes of results from one vector of filters to the next. */
    int64_t y_vector;
    /* What the sum of each filter begins with. */
    const int32_t *start;
    /* The same where a side has 16 bits, with the bias; start holds zeros then. */
    double *begin;
    /* begin = near[0] + 65536 near[1], where no total reaches 2^40; else NULL. */
    const int32_t *near[2];
    qn_q_epilogue epilogue;
} qn_mac;

/* Up to QN_MAC_PATCHES patches by one block of filters. The first half of the patches (rounded up)
 * lies side by side from x[0] on, the rest from x[1] on, so that a tile can be a piece of one row
 * or whole rows of two. */
typedef struct qn_mac_tile {
    /* The map, the residual and the results. */
    const uint8_t *x[2], *r[2];
    uint8_t *y[2];
    /* The sums of dot(a, b) by patch, which Winograd's inner product subtracts. */
    const int32_t *pair_sums[2];
    const qn_mac_segment *segments;
    int64_t n_segments;
    /* The block's weights from the first segment on. */
    const uint8_t *weights;
    /* How many steps a run has that begins at each of these steps. NULL: as many as there may
     * be. */
    const uint8_t *runs;
    /* The block's index into start, bias and scale, and how many of its filters are real. */
    int64_t param, filters;
    /* The sides of the map at which the outermost patches, or those of both rows, stand. */
    int edges;
    /* The tile has whole rows of two. */
    bool two;
} qn_mac_tile;

typedef void qn_mac_fn(const qn_mac *mac, const qn_mac_tile *tile);

/* How the elements of a map, or of a computed matrix, are stored. */
typedef struct qn_mac_source {
    bool is_signed;
    /* The zero point. */
    int32_t zero;
    /* They have 16 bits, else 8. */
    bool is_int16;
} qn_mac_source;

/* Which numbers are multiplied. */
typedef enum qn_mac_kind {
    /* Both sides have 8 bits. */
    QN_MAC_INT8,
    /* A map of 16 bits is multiplied by weights of 8. */
    QN_MAC_INT16_BY_INT8,
    /* Any map is multiplied by weights of 16 bits. */
    QN_MAC_INT16,
    /* Any map is multiplied by weights of 17 bits, split into low and high bytes. */
    QN_MAC_INT16_SPLIT
} qn_mac_kind;

/* A run of outputs of a depthwise convolution: every byte of a row of outputs has its own weights,
 * which repeat after some blocks, and is a sum over taps. Maps are as qn_mac_kernels.copy makes
 * them. */
typedef struct qn_depthwise_run {
    /* Bytes from the output's own place in the map to the elements of its patch, in whole groups of
     * `dot`. */
    const int64_t *taps;
    int64_t n_taps;
    /* [period][group][vector][lane][dot], lanes as the kernel mixes them. */
    const uint8_t *weights;
    /* What sums begin with: [period][vector][lane]. */
    const int32_t *start;
    /* The same where a side has 16 bits, in the order of the channels. */
    const double *begin;
    /* Blocks after which the weights repeat. */
    int64_t period;
    /* Outputs of the run. */
    int64_t count;
    /* Its bias and scale are [period][vector][lane]. */
    qn_q_epilogue epilogue;
} qn_depthwise_run;
typedef void qn_depthwise_run_fn(const qn_depthwise_run *depth, uint8_t *y, const uint8_t *x);

/* Depthwise tiles, for instruction sets that widen bytes: a few pixels by all channels, whose sums
 * lie in the order of the channels. The map is copied in pairs of rows, [pair][pixel][channel][2],
 * so that a lane has two numbers of its channel. Segments are single columns of the kernel in such
 * a pair; a row of the pair that is none of the kernel's has weights of 0. They are not the same
 * for patches that begin with the upper row of a pair and with the lower one. */
typedef struct qn_depthwise_parity {
    const qn_mac_segment *segments;
    int64_t n_segments;
    /* [block][segment][vector][lane][2]: blocks of two vectors, or one at last. */
    const uint8_t *weights;
} qn_depthwise_parity;

/* See q_winograd.h. */
typedef struct qn_q_winograd_kernels qn_q_winograd_kernels;

typedef struct qn_mac_kernels {
    /* Filters of a vector; products of a lane and step. */
    int lanes, dot;
    /* Bytes of weights of a lane and step. */
    int weight_bytes;
    /* The most vectors of a block. */
    int vectors;
    /* The most patches of a tile with blocks of up to two vectors. */
    int patches;
    /* The most patches of a tile with blocks of four. */
    int patches_by_4;
    /* Tiles read maps as int16. */
    bool reads_int16;
    /* Sums are made by runs of steps; weights of 16 bits are above -2^15. */
    bool by_runs;
    /* Copies `count` elements as tiles read them. */
    void (*copy)(uint8_t *to, const uint8_t *from, int64_t count, const qn_mac_source *source);
    /* Packs one step of weights for `count` filters, whose `dot` numbers stand below each other,
     * `row` bytes apart. NULL: the kernels are for constant weights only. */
    void (*pack)(uint8_t *to, const uint8_t *from, int64_t row, int64_t count,
                 const qn_mac_source *source);
    /* The sums of `vectors` vectors of filters over all steps. NULL: 8 bits have it alone. */
    void (*sum_weights)(int32_t *sums, const uint8_t *weights, int64_t steps, int vectors);
    /* Runs of depthwise outputs. NULL: there are tiles only. */
    qn_depthwise_run_fn *depth;
    /* Channels of a depthwise block: all lanes of some vectors. */
    int depth_block;
    /* Depthwise tiles by their number of patches - 1. NULL: there are runs only. */
    qn_mac_fn *const *depth_tiles;
    /* The most patches of those. */
    int depth_patches;
    /* Copies `count` elements of two rows as depth_tiles read them. A row that is NULL has zero
     * points. */
    void (*pair)(uint8_t *to, const uint8_t *const rows[2], int64_t count,
                 const qn_mac_source *source);
    /* Tiles by log2 of the vectors of a block, then by their number of patches - 1. */
    qn_mac_fn *const *tiles[3];
    /* NULL: there are none, or they are not faster. */
    const qn_q_winograd_kernels *wino;
    /* Tiles of Winograd's inner product, for blocks of two vectors, by their number of patches - 1.
     * NULL: there are none, or they are not faster. */
    qn_mac_fn *const *inner_product;
    /* The most patches of those. */
    int inner_product_patches;
    /* Makes the sums of dot(a, b) of `pixels` pixels of `channels` numbers each. */
    void (*pair_sums)(int32_t *pair_sums, const uint8_t *x, int64_t pixels, int64_t channels);
} qn_mac_kernels;

/* The best kernels that CPU and environment allow. `fit_int8`: the weights without zero points fit
 * int8, which VNNI needs. */
const qn_mac_kernels *qn_mac_kernels_get(qn_mac_kind kind, bool fit_int8);

extern const qn_mac_kernels qn_int8_mac_kernels_base, qn_int8_mac_kernels_avx2,
    qn_int8_mac_kernels_avx512, qn_int8_mac_kernels_vnni;
/* By kind, from QN_MAC_INT16_BY_INT8 on. */
extern const qn_mac_kernels qn_int16_mac_kernels_base[3], qn_int16_mac_kernels_avx2[3],
    qn_int16_mac_kernels_avx512[3], qn_int16_mac_kernels_vnni[3];

#endif
