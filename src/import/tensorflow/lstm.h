/* BlockLSTM in steps of its own, for what ONNX's LSTM does not say. */
#ifndef QN_TF_LSTM_H
#define QN_TF_LSTM_H

#include "import/tensorflow/tensorflow.h"

/* The output that has the states of all steps. */
enum { QN_TF_LSTM_STATES = 6 };

/* x [T, N, C], weights [C + H, 4 H]; cells are clipped. */
QN_MUST_CHECK qn_status qn_tf_lstm_steps(qn_tf_node *node, qn_value *x, qn_value *weights);

#endif
