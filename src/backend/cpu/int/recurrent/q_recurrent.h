/* Kernels of QLSTM, QGRU, QRNN and DynamicQuantizeLSTM: products of rows with a packed matrix, and
 * what the cells make of the sums. Everything is padded to whole vectors of units; weights of what
 * pads are 0.
 *
 * Weights are [vector][group][lane][dot], of 8 bits unless widening them takes too long. Where a
 * side has 16 bits, weights w = 256 h + l have h and l in turns, [vector][group][h, l][lane][2],
 * whose sums over at most 127 groups fit 32 bits (q_mac.h), and totals are doubles, which hold them
 * exactly. */
#ifndef QN_CPU_Q_RECURRENT_H
#define QN_CPU_Q_RECURRENT_H

#include "ops/qrecurrent.h"

typedef struct qn_q_recurrent_product {
    /* [rows, vectors * lanes] of int32, or of doubles where a side has 16 bits. */
    void *y;
    int64_t y_stride;
    /* One pointer a row, to `groups` groups of four bytes. */
    const uint8_t *const *x;
    const uint8_t *m;
    /* The sums of the columns' weights, of which each row takes its zero point off. */
    const double *sums, *zeros;
    int64_t rows, groups, vectors;
} qn_q_recurrent_product;

/* How integers are stored for products: minus `offset`, as bytes or 16 bits. */
typedef struct qn_q_recurrent_form {
    qn_dtype dtype;
    int32_t offset;
    bool as_int16;
} qn_q_recurrent_form;

/* One step of one item. */
typedef struct qn_q_recurrent_step {
    /* Multipliers and lists padded to `pitch` for each gate. */
    const qn_qcell *cell;
    int64_t pitch;
    /* The sums of the gates; doubles where `has_double_sums`. */
    const void *sum_x, *sum_h;
    bool has_double_sums;
    /* What they are multiplied with first: the scales of what was quantized while running. */
    double x_unit, h_unit;
    /* The state without zero point, and the cell. */
    int32_t *h, *c;
    /* The state, or of the reset gate what it leaves of it, as products read it. */
    uint8_t *stored;
    qn_q_recurrent_form form;
    /* Y; NULL: not wanted. */
    void *y;
    bool y_is_int16;
    /* DynamicQuantizeLSTM: the state as floats, `pitch` of them, which is all that is made of
     * it. */
    float *real;
} qn_q_recurrent_step;
typedef void qn_q_recurrent_step_fn(const qn_q_recurrent_step *step);

/* Sides of 8 bits; one of 16; of 8 with weights in 16. */
typedef enum qn_qrl_product {
    QN_QRL_NARROW,
    QN_QRL_WIDE,
    QN_QRL_SHORT,
    QN_QRL_PRODUCTS
} qn_qrl_product;
/* Bytes that lie in a second cache together with what else a layer needs. */
enum { QN_QRL_NEAR = 320 * 1024 };

typedef struct qn_q_recurrent_kernels {
    int lanes;
    /* Products of 8 bits: numbers of a group; else it is 2. */
    int dot;
    /* Bytes of a weight of 8 bits. */
    int weight_bytes;
    /* The most bytes of a direction's weights with which 16 bits each are faster than 8. */
    int short_below;
    void (*product[QN_QRL_PRODUCTS])(const qn_q_recurrent_product *product);
    /* By kind. */
    qn_q_recurrent_step_fn *const *steps;
    /* QN_QCELL_GRU: the state behind the reset gate, before the last product. */
    qn_q_recurrent_step_fn *reset;
} qn_q_recurrent_kernels;

extern const qn_q_recurrent_kernels qn_q_recurrent_kernels_base, qn_q_recurrent_kernels_avx2,
    qn_q_recurrent_kernels_avx512, qn_q_recurrent_kernels_vnni;

#endif
