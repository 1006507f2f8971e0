/* One step of the recurrent cells, in doubles. */
#ifndef QN_RECURRENT_H
#define QN_RECURRENT_H

#include "ops/nn_attrs.h"

enum { QN_MOST_GATES = 4 };

typedef enum qn_squash {
    QN_SQUASH_AFFINE,
    QN_SQUASH_ELU,
    QN_SQUASH_HARD_SIGMOID,
    QN_SQUASH_LEAKY_RELU,
    QN_SQUASH_RELU,
    QN_SQUASH_SCALED_TANH,
    QN_SQUASH_SIGMOID,
    QN_SQUASH_SOFTPLUS,
    QN_SQUASH_SOFTSIGN,
    QN_SQUASH_TANH,
    QN_SQUASH_THRESHOLDED_RELU,
    QN_SQUASH_COUNT
} qn_squash;

typedef struct qn_activation {
    qn_squash kind;
    double alpha, beta;
} qn_activation;

/* Activation number i of the node's list; `standard` where there is no list. Alphas and betas are
 * handed out in order to those that take one. False: an unknown name. */
bool qn_activation_of(qn_activation *out, const qn_recurrent_attrs *attrs, size_t i,
                      qn_squash standard);
double qn_activation_apply(const qn_activation *a, double x);

/* What one direction of one node has: weights [gates, hidden, ...] and parameters. */
typedef struct qn_cell {
    const qn_recurrent_attrs *attrs;
    int64_t hidden;
    /* R [gates * hidden, hidden] */
    const double *recurrent;
    /* [gates * hidden], NULL: 0 */
    const double *bias_r;
    /* LSTM: [3 * hidden] for i, o, f; NULL: 0 */
    const double *peephole;
    qn_activation f, g, h;
} qn_cell;

/* From the input's part (W x + Wb, [gates * hidden]) and the state to the next state. `work` has
 * room for 2 * gates * hidden numbers. */
typedef void qn_cell_step(const qn_cell *cell, const double *input, double *h, double *c,
                          double *work);
qn_cell_step qn_cell_rnn, qn_cell_gru, qn_cell_lstm;

/* y[rows] += M x, M [rows, columns]. */
void qn_matvec(double *y, const double *matrix, const double *x, int64_t rows, int64_t columns);

/* 1, or 2 of a bidirectional node. */
int64_t qn_recurrent_directions(const qn_recurrent_attrs *a);

/* ---- Inference (recurrent_infer.c) ----------------------------------------------------------- */

/* The places of a node's inputs. */
typedef struct qn_recurrent_slots {
    int32_t x, w, r, b, lengths, initial_h, initial_c, peephole;
} qn_recurrent_slots;

typedef struct qn_recurrent_sizes {
    qn_dim sequence, batch, input, hidden, directions;
} qn_recurrent_sizes;

/* Fails where input i, as far as it is known, has other dimensions. */
QN_MUST_CHECK qn_status qn_recurrent_check_dims(const qn_infer *self, int32_t i, int32_t rank,
                                                const qn_dim *dims);
/* As far as they are known. */
QN_MUST_CHECK qn_status qn_recurrent_find_sizes(qn_recurrent_sizes *out, const qn_infer *self,
                                                const qn_recurrent_slots *slots);
/* Fails where an input has other dimensions. */
QN_MUST_CHECK qn_status qn_recurrent_check_inputs(const qn_infer *self,
                                                  const qn_recurrent_slots *slots,
                                                  const qn_recurrent_sizes *sizes, int64_t gates);
/* Input i has one scale, or one for each row of the weights. */
QN_MUST_CHECK qn_status qn_recurrent_check_scale(const qn_infer *self, int32_t i,
                                                 const qn_recurrent_sizes *sizes, int64_t gates);
/* Y and Y_h have the state's type, Y_c the cell's. */
void qn_recurrent_set_outputs(qn_infer *self, const qn_recurrent_sizes *sizes, qn_dtype state,
                              qn_dtype cell);
int64_t qn_recurrent_macs(const qn_infer *self, const qn_recurrent_slots *slots);

#endif
