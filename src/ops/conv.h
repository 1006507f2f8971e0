/* Convolution over doubles, which hold sums of 8-bit products exactly: Conv, ConvInteger,
 * QLinearConv. */
#ifndef QN_CONV_H
#define QN_CONV_H

#include "ops/window.h"

/* X [batch, channels, in...], W [filters, channels / group, kernel...], Y [batch, filters,
 * out...]. */
typedef struct qn_conv {
    qn_window window;
    int64_t batch, channels, filters, group;
} qn_conv;

/* Output 0 from inputs x and w, and bias b (-1: none such); checks them all. */
QN_MUST_CHECK qn_status qn_infer_conv(qn_infer *self, int32_t x, int32_t w, int32_t b,
                                      qn_dtype dtype);
/* Input b (-1: none such) is a list of one number per filter, where it is there. */
QN_MUST_CHECK qn_status qn_infer_conv_bias(const qn_infer *self, int32_t b, qn_dim filters);
/* The kernel's dims, from the weights' [., ., kernel...]; false where they are not known. */
bool qn_conv_kernel(int64_t *kernel, const qn_type *w);
int64_t qn_conv_macs(const qn_infer *self, int32_t w);

QN_MUST_CHECK qn_status qn_conv_make(qn_conv *out, qn_eval *self, const qn_tensor *x,
                                     const qn_tensor *w);
/* All of Y; taps outside X count as 0. */
QN_MUST_CHECK qn_status qn_conv_f64(double *y, qn_eval *self, const qn_conv *conv, const double *x,
                                    const double *w);

/* The transposed convolution: X is input 0, W [channels, filters / group, kernel...]. y is added
 * to. */
QN_MUST_CHECK qn_status qn_infer_conv_transpose(qn_infer *self, int32_t x, int32_t w, int32_t b,
                                                qn_dtype dtype);
int64_t qn_conv_transpose_macs(const qn_infer *self, int32_t w);
QN_MUST_CHECK qn_status qn_conv_transpose_f64(double *y, qn_eval *self, int32_t w_at,
                                              const double *x, const double *w);
enum { QN_CONV_TRANSPOSE_SPECS = 8 };
extern const qn_attr_spec qn_conv_transpose_specs[QN_CONV_TRANSPOSE_SPECS];

#endif
