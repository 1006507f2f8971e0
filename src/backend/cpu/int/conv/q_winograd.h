/* Winograd's convolution of integers with 3x3 kernels, exact: tiles of 4x4 outputs from 6x6 inputs,
 * 36 multiplications for each channel and filter where the direct algorithm has 144. It is for
 * instruction sets that multiply numbers of 16 bits (vec_int32.h); where bytes are multiplied the
 * direct algorithm is faster.
 *
 *   V = B' d B           of every input tile d, without its zero point: |V| <= 100 * 255 < 2^15
 *   U = (K G) g (K G)'   of every kernel g; K makes fractions of G whole: |U| <= 49 * 255 < 2^15
 *   M = V U              for each of the 36 numbers xi of a tile a product over the channels
 *   Y = (A K')' M (A K') 576 times the outputs; A K' has powers of two only
 *
 *        4  0 -5  0  1  0             3  0  0            2  4  4  1  1  0
 *        0 -4 -4  1  1  0            -1 -1 -1    (AK')'  0  4 -4  2 -2  0
 *   B' = 0  4 -4 -1  1  0   K G =    -1  1 -1     =      0  4  4  4  4  0
 *        0 -2 -1  2  1  0             1  2  4            0  4 -4  8 -8  8
 *        0  2 -1 -2  1  0             1 -2  4
 *        0  4  0 -5  0  1             0  0  3
 *
 * Sums of M and Y wrap, which loses nothing as long as what they stand for is small: Y / 9 modulo
 * 2^32 is a multiplication by the inverse of 9, and an arithmetic shift by 6 bits then leaves the
 * output itself where that has at most 26 bits. So a filter must have 255 * sum |g| < 2^25: seen to
 * when an algorithm is chosen. */
#ifndef QN_CPU_Q_WINOGRAD_H
#define QN_CPU_Q_WINOGRAD_H

#include "backend/cpu/int/conv/q_conv.h"

enum { QN_Q_WINOGRAD_IN = 6, QN_Q_WINOGRAD_XI = 36, QN_Q_WINOGRAD_VECTORS = 2 };

/* One tile of the map as qn_mac_kernels.copy makes it. */
typedef struct qn_q_winograd_input {
    const uint8_t *x;
    /* Bytes to the next one. */
    int64_t row, pixel;
    /* [xi][channels], xi_step bytes apart. */
    uint8_t *v;
    int64_t xi_step;
    /* Whole vectors: what stands behind the last one is multiplied by zero. */
    int64_t channels;
} qn_q_winograd_input;

/* One tile of a block of filters. tile.y and .r: of the first output. */
typedef struct qn_q_winograd_output {
    /* [xi][vector][lane], xi_step bytes apart. */
    const uint8_t *m;
    int64_t xi_step;
    /* Bytes to the next row. */
    int64_t y_row, r_row;
    int64_t rows, columns;
    qn_mac_tile tile;
} qn_q_winograd_output;

/* Products of a few tiles by a block of filters, for some xi in a row. */
typedef struct qn_q_winograd_product {
    /* u: [xi][step][vector][lane][2] */
    const uint8_t *v, *u;
    uint8_t *m;
    /* How many. */
    int64_t xi;
    /* Bytes from one to the next. */
    int64_t v_xi, m_xi;
    /* Bytes from tile to tile of v; pairs of channels. */
    int64_t tile, steps;
} qn_q_winograd_product;
typedef void qn_q_winograd_product_fn(const qn_q_winograd_product *p);

struct qn_q_winograd_kernels {
    void (*input)(const qn_q_winograd_input *in);
    /* By tiles - 1. */
    qn_q_winograd_product_fn *const *products;
    void (*output)(const qn_mac *mac, const qn_q_winograd_output *out);
};

/* The algorithm is right for this shape and faster than the direct one. */
bool qn_q_winograd_wanted(const qn_q_conv *c);
/* Blocks and batches, instead of segments. */
void qn_q_winograd_plan(qn_q_conv *c);
QN_MUST_CHECK qn_status qn_q_winograd_pack(qn_q_conv *c, qn_builder *builder,
                                           const qn_q_weights *w);
/* Bytes that a thread needs beside its copy of a band. */
size_t qn_q_winograd_scratch(const qn_q_conv *c);

/* Rows of outputs and the copy of the map that they see. */
typedef struct qn_q_winograd_band {
    const uint8_t *x, *r;
    uint8_t *y, *scratch;
    int64_t rows;
    /* It was the last one with this scratch memory. */
    bool seen_before;
} qn_q_winograd_band;
/* Blocks [first, last) of the filters over a band. */
void qn_q_winograd_run(const qn_q_conv *c, const qn_q_winograd_band *band, const int64_t blocks[2]);

#endif
