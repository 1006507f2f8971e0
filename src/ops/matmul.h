/* Geometry of matrix products, shared by MatMul, MatMulInteger and QLinearMatMul. */
#ifndef QN_MATMUL_H
#define QN_MATMUL_H

#include "ops/eval.h"
#include "ops/infer.h"

/* Y[b] = A[b] B[b] with A [m, k], B [k, n]; the batch broadcasts. */
typedef struct qn_matmul {
    int64_t m, k, n;
    int32_t batch_rank;
    /* Dims of the batch */
    int64_t batch[QN_MAX_RANK];
    /* Over it, in elements */
    int64_t a_strides[QN_MAX_RANK], b_strides[QN_MAX_RANK];
} qn_matmul;

/* Output 0 from inputs a and b: numpy's rule for vectors, matrices and stacks of matrices. */
QN_MUST_CHECK qn_status qn_infer_matmul(qn_infer *self, int32_t a, int32_t b, qn_dtype dtype);
int64_t qn_matmul_macs(const qn_infer *self, int32_t a);

void qn_matmul_geometry(qn_matmul *out, const qn_tensor *a, const qn_tensor *b);
int64_t qn_matmul_batches(const qn_matmul *g);
/* Y += A B, row-major. */
QN_MUST_CHECK qn_status qn_matmul_f64(double *y, qn_context *ctx, const double *a, const double *b,
                                      const qn_matmul *g);
QN_MUST_CHECK qn_status qn_matmul_i64(int64_t *y, qn_context *ctx, const int64_t *a,
                                      const int64_t *b, const qn_matmul *g);
/* All of Y [batch, m, n] (zeroed before) from all of A and B. */
QN_MUST_CHECK qn_status qn_matmul_all_f64(double *y, qn_context *ctx, const double *a,
                                          const double *b, const qn_matmul *g);
QN_MUST_CHECK qn_status qn_matmul_all_i64(int64_t *y, qn_context *ctx, const int64_t *a,
                                          const int64_t *b, const qn_matmul *g);

#endif
