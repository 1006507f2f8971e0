/* What the kernels of QLSTM, QGRU and QRNN share, so that they agree bit for bit: multipliers,
 * tables and units (docs/numerics.md, Recurrent layers). */
#ifndef QN_QRECURRENT_H
#define QN_QRECURRENT_H

#include "ops/quantize.h"
#include "ops/recurrent.h"

/* The inputs of the operators; those of QGRU and QRNN end before the cell. */
enum {
    QN_QREC_X,
    QN_QREC_X_SCALE,
    QN_QREC_X_ZERO,
    QN_QREC_W,
    QN_QREC_W_SCALE,
    QN_QREC_R,
    QN_QREC_R_SCALE,
    QN_QREC_Y_SCALE,
    QN_QREC_Y_ZERO,
    QN_QREC_B,
    QN_QREC_LENGTHS,
    QN_QREC_H,
    QN_QREC_C,
    QN_QREC_P,
    QN_QREC_INPUTS
};

enum {
    /* A table has 2^10 pieces, of 2^6 numbers each. */
    QN_QSQUASH_PIECES = 1024,
    QN_QSQUASH_STEP_BITS = 6,
    /* The cell of an LSTM counts units of 2^-24. */
    QN_QCELL_BITS = 24,
    /* Biases have 8 bits behind the point. */
    QN_QCELL_BIAS_BITS = 8
};

/* A function of 16-bit numbers: from units of 2^-in_bits to units of 2^-out_bits. */
typedef struct qn_qsquash {
    int in_bits, out_bits;
    /* The function at the beginning of each piece and at the end of the last. */
    int16_t table[QN_QSQUASH_PIECES + 2];
} qn_qsquash;

/* The function of x, -32768 to 32767: a line through the ends of its piece. */
static inline int32_t qn_qsquash_at(const qn_qsquash *f, int32_t x)
{
    enum { STEP = 1 << QN_QSQUASH_STEP_BITS };
    const int32_t i = x + 32768, k = i / STEP, r = i % STEP;
    const int32_t sum = f->table[k] * (STEP - r) + f->table[k + 1] * r + STEP / 2;
    return sum >> QN_QSQUASH_STEP_BITS;
}

typedef enum qn_qcell_kind {
    QN_QCELL_LSTM,
    QN_QCELL_GRU,
    /* linear_before_reset */
    QN_QCELL_GRU_LINEAR,
    QN_QCELL_RNN,
    QN_QCELL_KINDS
} qn_qcell_kind;

/* One direction. */
typedef struct qn_qcell {
    qn_qcell_kind kind;
    int64_t gates, hidden;
    /* LSTM: f = 1 - i. */
    bool input_forget;
    /* Those of the gates, of the fresh state and of the cell. */
    qn_qsquash f, g, h;
    /* Multipliers of the sums, biases: [gates * hidden]; peepholes: [3 * hidden]; the state's bias
     * in the fresh state of a GRU_LINEAR: [hidden]. Floats hold them exactly. */
    float *x, *r, *bias, *peephole, *bias_r;
    /* Whether there are peepholes. */
    bool peeps;
    /* From the product of two functions, or of one, to the state. */
    double out;
    /* The unit of the gates' results; from the unit of the fresh state to the cell's, and from the
     * cell's to that of its function's argument. All are powers of two. */
    double gate_unit, fresh_unit, shown_unit;
    /* The state. */
    qn_qparams y;
    qn_limits range;
} qn_qcell;

/* Gates of the operator; 0: it is none of the three. */
int64_t qn_qcell_gates(const qn_op *op);
/* The floats that one direction needs. */
int64_t qn_qcell_room(const qn_op *op, int64_t hidden);
/* in: QN_QREC_...; NULL: left out. room: qn_qcell_room floats. Without Y_zero_point it is a
 * DynamicQuantizeLSTM's, whose multipliers lack the scales of X and the state, whose weights have
 * the gates last, and whose state is float. */
void qn_qcell_make(qn_qcell *cell, float *room, const qn_op *op, const qn_recurrent_attrs *attrs,
                   const qn_tensor *const *in, int64_t d);

/* Unit k of an LSTM, from the arguments of its gates i, o, f and of the fresh cell, peepholes not
 * yet in them: the next cell, and what is returned is the state as a multiple of `out`. */
double qn_qcell_lstm(const qn_qcell *cell, int64_t k, const double arguments[4], int32_t *c);
/* The argument of 16 bits that x is rounded to. */
int32_t qn_qcell_round(double x);

/* Whether the function of the activation is bounded. */
bool qn_activation_is_bounded(const qn_activation *a);

/* An LSTM's cell from and to floats. */
static inline int32_t qn_qcell_from_float(float c)
{
    const qn_limits range = {-INT32_MAX, INT32_MAX};
    return isnan(c) ? 0 : (int32_t)qn_round_clamp((double)c * (1 << QN_QCELL_BITS), 0, range);
}
static inline float qn_qcell_to_float(int32_t c)
{
    return (float)((double)c / (1 << QN_QCELL_BITS));
}

#endif
