/* What the kernels of DynamicQuantizeLSTM share, so that they agree bit for bit
 * (docs/numerics.md). */
#ifndef QN_DYNAMIC_LSTM_H
#define QN_DYNAMIC_LSTM_H

#include "ops/quantize.h"
#include "ops/recurrent.h"

enum {
    QN_DLSTM_X,
    QN_DLSTM_W,
    QN_DLSTM_R,
    QN_DLSTM_B,
    QN_DLSTM_LENGTHS,
    QN_DLSTM_H,
    QN_DLSTM_C,
    QN_DLSTM_P,
    QN_DLSTM_W_SCALE,
    QN_DLSTM_W_ZERO,
    QN_DLSTM_R_SCALE,
    QN_DLSTM_R_ZERO,
    QN_DLSTM_INPUTS
};

/* One direction. */
typedef struct qn_dlstm {
    /* The cell, whose weights and bias are not set. */
    qn_cell cell;
    /* The scales of W and R: [4 * hidden] */
    const float *scale[2];
    /* [4 * hidden] each; NULL: 0 */
    const double *bias[2];
} qn_dlstm;

/* A step: gates = part(x) + part(h), part = f32(sum) * (s * scale[j]) + bias[j], the sums of W's
 * and R's products with integers of scales s. Makes the next h and c, [hidden]; `work` has room for
 * 8 * hidden. */
void qn_dlstm_step(const qn_dlstm *l, const float *const sums[2], const float scales[2], float *h,
                   double *c, double *work);
/* f, g and h of direction d. */
void qn_dlstm_cell(qn_cell *cell, const qn_recurrent_attrs *attrs, int64_t hidden, int64_t d);

#endif
