/* Bytes whose zero point is known only while running, multiplied by constant weights:
 *
 *   y[row][column] = f32(sum over k of (x[row][k] - zero) * w[k][column]) * scale[column]
 *
 * in floats, with what epilogue adds. x is [rows, k], y [rows, columns]. */
#ifndef QN_CPU_Q_PRODUCT_H
#define QN_CPU_Q_PRODUCT_H

#include "backend/cpu/int/conv/q_conv.h"

typedef struct qn_q_product {
    qn_q_conv conv;
    int64_t columns;
    /* The sums of weights, by parameter. */
    const int32_t *sums;
    /* Bytes of scratch: for first sums, for the convolution. */
    size_t start, own;
} qn_q_product;

/* The shape. conv.mac.epilogue may get `added` and `relu` before it is packed. */
void qn_q_product_open(qn_q_product *p, int64_t rows, int64_t k, int64_t columns, bool is_signed);
/* Its sums fit; the weights are by column. */
bool qn_q_product_fits(qn_q_product *p, const qn_q_weights *w);
QN_MUST_CHECK qn_status qn_q_product_pack(qn_q_product *p, qn_builder *builder,
                                          const qn_q_weights *w);
/* The numbers of a list (one, or one for each column from `first` on) by parameter; NULL: zeros. */
QN_MUST_CHECK qn_status qn_q_product_list(float **out, const qn_q_product *p, qn_builder *builder,
                                          const qn_tensor *list, int64_t first);
size_t qn_q_product_scratch(const qn_q_product *p);
/* scale: by parameter, that is by column and then some that nobody reads (qn_q_conv_params). */
void qn_q_product_run(const qn_q_product *p, const qn_q_conv_data *data, int32_t zero,
                      const float *scale, int threads);

#endif
