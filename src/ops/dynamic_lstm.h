/* What the kernels of DynamicQuantizeLSTM share, so that they agree bit for bit
 * (docs/numerics.md). */
#ifndef QN_DYNAMIC_LSTM_H
#define QN_DYNAMIC_LSTM_H

#include "ops/qrecurrent.h"

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

/* The node's inputs as qn_qcell_make wants them. */
void qn_dlstm_inputs(const qn_tensor *to[QN_QREC_INPUTS], const qn_tensor *const *in);

#endif
