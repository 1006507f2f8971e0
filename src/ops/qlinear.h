/* What the reference kernels of quantized operators share with the fast ones. */
#ifndef QN_QLINEAR_H
#define QN_QLINEAR_H

#include "base/real.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"

typedef struct qn_qsoftmax_attrs {
    int64_t axis;
    /* The opset of the Softmax that is meant: before 13 it goes over all dims from `axis` on */
    int64_t opset;
} qn_qsoftmax_attrs;

/* x as [outer, n, inner], n being what sums to 1. */
void qn_qsoftmax_shape(int64_t *outer, int64_t *n, int64_t *inner, const qn_qsoftmax_attrs *attrs,
                       const qn_tensor *x);
/* e^(-d * scale) * 2^23, rounded, for d in 0..255. */
void qn_qsoftmax_table(uint32_t *table, float scale, int64_t entries);
/* Differences of two numbers of the type: 256 or 65,536. */
static inline int64_t qn_qsoftmax_entries(qn_dtype dtype)
{
    return (int64_t)1 << qn_dtype_get(dtype)->bits;
}

/* Which axes QLinearReduceMean reduces; false: one is wrong or there twice. */
bool qn_qreduce_axes(bool *reduced, const qn_reduce_attrs *attrs, int32_t rank);

/* The factor k of a row of n elements whose sum is s1 and whose sum of squares is s2. Up to this
 * many elements n * s2 - s1 * s1 fits into 64 bits; longer rows compute it in double. */
enum { QN_QNORM_EXACT = 32768 };
float qn_qnorm_factor(int64_t n, int64_t s1, int64_t s2, float scale, float epsilon);

/* QLinearAveragePool, QLinearGlobalAveragePool. */
typedef struct qn_qpool_attrs {
    /* First: its rows name fields of it */
    qn_window_attrs window;
    int64_t channels_last;
} qn_qpool_attrs;

typedef struct qn_qconcat_attrs {
    int64_t axis;
} qn_qconcat_attrs;

#endif
