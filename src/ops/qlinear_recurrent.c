/* QLSTM, QGRU, QRNN: recurrent layers of integers. X and the state h have one scale each, W and R
 * one for each row, or one, and no zero points. Y and Y_h are the state's integers; initial_h is
 * given as such. The cell comes and goes as floats. Formulas: docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/qrecurrent.h"

/* ---- Inference ------------------------------------------------------------------------------- */

static const qn_recurrent_slots slots = {.x = QN_QREC_X,
                                         .w = QN_QREC_W,
                                         .r = QN_QREC_R,
                                         .b = QN_QREC_B,
                                         .lengths = QN_QREC_LENGTHS,
                                         .initial_h = QN_QREC_H,
                                         .initial_c = QN_QREC_C,
                                         .peephole = QN_QREC_P};

static qn_status qrec_infer(qn_infer *self)
{
    static const int32_t singles[] = {QN_QREC_X_SCALE, QN_QREC_X_ZERO, QN_QREC_Y_SCALE,
                                      QN_QREC_Y_ZERO, -1};
    const int64_t gates = qn_qcell_gates(self->node->op);
    qn_recurrent_sizes sizes;
    if (self->in[QN_QREC_R]->rank != 3)
        return qn_infer_fail(self, "the recurrent weights need 3 dimensions");
    QN_TRY(qn_recurrent_find_sizes(&sizes, self, &slots));
    QN_TRY(qn_infer_singles(self, singles));
    QN_TRY(qn_recurrent_check_inputs(self, &slots, &sizes, gates));
    QN_TRY(qn_recurrent_check_scale(self, QN_QREC_W_SCALE, &sizes, gates));
    QN_TRY(qn_recurrent_check_scale(self, QN_QREC_R_SCALE, &sizes, gates));
    qn_recurrent_set_outputs(self, &sizes, self->in[QN_QREC_Y_ZERO]->dtype, QN_FLOAT32);
    return QN_OK;
}

static int64_t qrec_macs(const qn_infer *self)
{
    return qn_recurrent_macs(self, &slots);
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

typedef struct run {
    const qn_recurrent_attrs *attrs;
    int64_t sequence, batch, input, hidden, rows, both;
    /* Without zero points */
    double *x, *w, *r;
    qn_qcell cell[2];
    /* What a step works with: the state and, of a GRU, the state behind its reset gate, without
     * zero point, [hidden]; sums, [rows]. */
    double *h, *reset, *sum_x, *sum_h;
    /* [hidden] */
    int32_t *c;
} run;

static qn_status run_make(run *r, qn_eval *self)
{
    const qn_recurrent_attrs *a = self->attrs;
    const qn_tensor *x = self->in[QN_QREC_X], *in[QN_QREC_INPUTS] = {NULL};
    const int64_t count = qn_tensor_count(x), zero = qn_tensor_i64(self->in[QN_QREC_X_ZERO], 0);
    void *room, *block;
    for (int32_t i = 0; i < QN_QREC_INPUTS; i++)
        in[i] = qn_eval_in(self, i);
    *r = (run){.attrs = a,
               .sequence = x->dims[a->layout ? 1 : 0],
               .batch = x->dims[a->layout ? 0 : 1],
               .input = x->dims[2],
               .hidden = in[QN_QREC_R]->dims[2],
               .rows = in[QN_QREC_R]->dims[1],
               .both = qn_recurrent_directions(a)};
    QN_TRY(qn_eval_doubles(self, &r->x, x));
    QN_TRY(qn_eval_doubles(self, &r->w, in[QN_QREC_W]));
    QN_TRY(qn_eval_doubles(self, &r->r, in[QN_QREC_R]));
    for (int64_t i = 0; i < count; i++)
        r->x[i] -= (double)zero;
    for (int64_t d = 0; d < r->both; d++) {
        QN_TRY(
            qn_eval_scratch(self, &room, qn_qcell_room(self->node->op, r->hidden), sizeof(float)));
        qn_qcell_make(&r->cell[d], room, self->node->op, a, in, d);
    }
    QN_TRY(qn_eval_scratch(self, &block, 2 * (r->hidden + r->rows), sizeof(double)));
    r->h = block;
    r->reset = r->h + r->hidden;
    r->sum_x = r->reset + r->hidden;
    r->sum_h = r->sum_x + r->rows;
    QN_TRY(qn_eval_scratch(self, &block, r->hidden, sizeof(int32_t)));
    r->c = block;
    return QN_OK;
}

/* out = M x */
static void product(double *out, const double *m, const double *x, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < rows; j++)
        out[j] = 0;
    qn_matvec(out, m, x, rows, columns);
}

/* The sum of row j in units of its function's argument. */
static double argument(const run *r, const qn_qcell *cell, int64_t j)
{
    const double sum = r->sum_x[j] * (double)cell->x[j] + r->sum_h[j] * (double)cell->r[j];
    return sum + (double)cell->bias[j];
}

static int32_t gate(const run *r, const qn_qcell *cell, int64_t j)
{
    return qn_qsquash_at(&cell->f, qn_qcell_round(argument(r, cell, j)));
}

static void lstm_step(run *r, const qn_qcell *cell)
{
    const int64_t n = r->hidden;
    for (int64_t k = 0; k < n; k++) {
        const double arguments[] = {argument(r, cell, k), argument(r, cell, n + k),
                                    argument(r, cell, 2 * n + k), argument(r, cell, 3 * n + k)};
        const double y = qn_qcell_lstm(cell, k, arguments, &r->c[k]) * cell->out;
        r->h[k] = (double)(qn_round_clamp(y, cell->y.zero, cell->range) - cell->y.zero);
    }
}

/* The part of the state in the fresh one, of unit k: what its argument is. */
static double fresh_argument(const run *r, const qn_qcell *cell, int64_t k, int32_t reset)
{
    const qn_limits range = {-(1 << 20), 1 << 20};
    const int64_t j = 2 * r->hidden + k;
    if (cell->kind == QN_QCELL_GRU)
        return argument(r, cell, j);
    const double part = r->sum_h[j] * (double)cell->r[j] + (double)cell->bias_r[k];
    const double let = (double)qn_round_clamp(part, 0, range) * reset;
    const double x = r->sum_x[j] * (double)cell->x[j] + (double)cell->bias[j];
    return x + ldexp(let, -cell->f.out_bits);
}

/* Gates z, r and the fresh state. */
static void gru_step(run *r, const qn_qcell *cell, const double *weights)
{
    const int64_t n = r->hidden;
    const qn_qparams *y = &cell->y;
    const int bits = cell->f.out_bits;
    for (int64_t k = 0; k < n && cell->kind == QN_QCELL_GRU; k++) {
        const double kept = ldexp(r->h[k] * gate(r, cell, n + k), -bits);
        r->reset[k] = (double)(qn_round_clamp(kept, y->zero, cell->range) - y->zero);
    }
    if (cell->kind == QN_QCELL_GRU)
        product(r->sum_h + 2 * n, weights + 2 * n * n, r->reset, n, n);
    for (int64_t k = 0; k < n; k++) {
        const int32_t z = gate(r, cell, k), reset = gate(r, cell, n + k);
        const int32_t fresh =
            qn_qsquash_at(&cell->g, qn_qcell_round(fresh_argument(r, cell, k, reset)));
        const double added = (double)(((1 << bits) - z) * fresh) * cell->out;
        const double h = added + ldexp(r->h[k] * z, -bits);
        r->h[k] = (double)(qn_round_clamp(h, y->zero, cell->range) - y->zero);
    }
}

static void rnn_step(run *r, const qn_qcell *cell)
{
    for (int64_t k = 0; k < r->hidden; k++) {
        const double h = (double)gate(r, cell, k) * cell->out;
        r->h[k] = (double)(qn_round_clamp(h, cell->y.zero, cell->range) - cell->y.zero);
    }
}

static void step(run *r, int64_t d, int64_t at)
{
    const qn_qcell *cell = &r->cell[d];
    const double *weights = r->r + d * r->rows * r->hidden;
    product(r->sum_x, r->w + d * r->rows * r->input, r->x + at * r->input, r->rows, r->input);
    product(r->sum_h, weights, r->h, r->rows, r->hidden);
    if (cell->kind == QN_QCELL_LSTM)
        lstm_step(r, cell);
    else if (cell->kind == QN_QCELL_RNN)
        rnn_step(r, cell);
    else
        gru_step(r, cell, weights);
}

/* ---- States and results ---------------------------------------------------------------------- */

static int64_t state_at(const run *r, int64_t d, int64_t b)
{
    return (r->attrs->layout ? b * r->both + d : d * r->batch + b) * r->hidden;
}

static int64_t output_at(const run *r, int64_t d, int64_t b, int64_t t)
{
    return r->attrs->layout ? ((b * r->sequence + t) * r->both + d) * r->hidden
                            : ((t * r->both + d) * r->batch + b) * r->hidden;
}

static void begin(const qn_eval *self, const run *r, int64_t d, int64_t b)
{
    const qn_tensor *h = qn_eval_in(self, QN_QREC_H), *c = qn_eval_in(self, QN_QREC_C);
    const int64_t at = state_at(r, d, b);
    for (int64_t k = 0; k < r->hidden; k++) {
        r->h[k] = h ? (double)(qn_tensor_i64(h, at + k) - r->cell[d].y.zero) : 0;
        r->c[k] = c ? qn_qcell_from_float((float)qn_tensor_f64(c, at + k)) : 0;
    }
}

static void put(const qn_eval *self, int32_t o, int64_t at, const run *r, int64_t zero)
{
    const qn_tensor *out = qn_eval_out(self, o);
    for (int64_t k = 0; out && k < r->hidden; k++) {
        const int64_t q = (int64_t)r->h[k] + zero;
        qn_store_i64(out->data, out->dtype, at + k, &q, 1);
    }
}

static void put_cell(const qn_eval *self, int64_t at, const run *r)
{
    const qn_tensor *out = qn_eval_out(self, 2);
    for (int64_t k = 0; out && k < r->hidden; k++)
        ((float *)out->data)[at + k] = qn_qcell_to_float(r->c[k]);
}

/* One direction of one batch item; times behind its length give zeros. */
static qn_status run_item(const qn_eval *self, run *r, int64_t d, int64_t b)
{
    const bool backward = r->attrs->direction == QN_DIRECTION_REVERSE || d == 1;
    const qn_tensor *lengths = qn_eval_in(self, QN_QREC_LENGTHS);
    const int64_t length = lengths ? qn_tensor_i64(lengths, b) : r->sequence;
    const int64_t zero = r->cell[d].y.zero;
    begin(self, r, d, b);
    for (int64_t s = 0; s < length; s++) {
        const int64_t t = backward ? length - 1 - s : s;
        QN_TRY(qn_check_cancel(self->ctx));
        step(r, d, r->attrs->layout ? b * r->sequence + t : t * r->batch + b);
        put(self, 0, output_at(r, d, b, t), r, zero);
    }
    put(self, 1, state_at(r, d, b), r, zero);
    put_cell(self, state_at(r, d, b), r);
    memset(r->h, 0, (size_t)r->hidden * sizeof *r->h);
    for (int64_t t = length; t < r->sequence; t++)
        put(self, 0, output_at(r, d, b, t), r, zero);
    return QN_OK;
}

static qn_status qrec_eval(qn_eval *self)
{
    const qn_tensor *lengths = qn_eval_in(self, QN_QREC_LENGTHS);
    run r;
    QN_TRY(run_make(&r, self));
    for (int64_t b = 0; lengths && b < r.batch; b++) {
        const int64_t length = qn_tensor_i64(lengths, b);
        if (length < 0 || length > r.sequence)
            return qn_eval_fail(self, "sequence length %lld is outside [0, %lld]",
                                (long long)length, (long long)r.sequence);
    }
    for (int64_t d = 0; d < r.both; d++) {
        for (int64_t b = 0; b < r.batch; b++)
            QN_TRY(run_item(self, &r, d, b));
    }
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const char *const direction_words[] = {"forward", "reverse", "bidirectional", NULL};

static const qn_attr_spec specs[] = {
    QN_ATTR(qn_recurrent_attrs, activations, STRINGS),
    QN_ATTR(qn_recurrent_attrs, activation_alpha, FLOATS),
    QN_ATTR(qn_recurrent_attrs, activation_beta, FLOATS),
    QN_FLOAT_ATTR(qn_recurrent_attrs, clip, INFINITY),
    QN_ENUM_ATTR(qn_recurrent_attrs, direction, QN_DIRECTION_FORWARD, direction_words),
    QN_INT_ATTR(qn_recurrent_attrs, hidden_size, QN_ABSENT),
    QN_INT_ATTR(qn_recurrent_attrs, layout, 0),
    QN_INT_ATTR(qn_recurrent_attrs, linear_before_reset, 0),
    QN_INT_ATTR(qn_recurrent_attrs, input_forget, 0)};

#define SCALE QN_SET(QN_FLOAT32)
#define WEIGHTS (QN_SET(QN_INT8) | QN_SET(QN_INT16))
#define PORTS                                                                                      \
    {"X", 'X', QN_SET_QUANTIZED, 0}, {"X_scale", '\0', SCALE, 0},                                  \
        {"X_zero_point", 'X', QN_SET_QUANTIZED, 0}, {"W", '\0', WEIGHTS, 0},                       \
        {"W_scale", '\0', SCALE, 0}, {"R", '\0', WEIGHTS, 0}, {"R_scale", '\0', SCALE, 0},         \
        {"Y_scale", '\0', SCALE, 0}, {"Y_zero_point", 'Y', QN_SET_QUANTIZED, 0},                   \
        {"B", '\0', SCALE, QN_OPTIONAL}, {"sequence_lens", '\0', QN_SET(QN_INT32), QN_OPTIONAL},   \
    {                                                                                              \
        "initial_h", 'Y', QN_SET_QUANTIZED, QN_OPTIONAL                                            \
    }
#define STATES                                                                                     \
    {"Y", 'Y', QN_SET_QUANTIZED, QN_OPTIONAL},                                                     \
    {                                                                                              \
        "Y_h", 'Y', QN_SET_QUANTIZED, QN_OPTIONAL                                                  \
    }
static const qn_port rnn_in[] = {PORTS};
static const qn_port lstm_in[] = {
    PORTS, {"initial_c", '\0', SCALE, QN_OPTIONAL}, {"P", '\0', SCALE, QN_OPTIONAL}};
static const qn_port rnn_out[] = {STATES};
static const qn_port lstm_out[] = {STATES, {"Y_c", '\0', SCALE, QN_OPTIONAL}};

#define QRECURRENT(Name, IN, OUT, BRIEF)                                                           \
    const qn_op qn_op_qn_##Name = {.name = #Name,                                                  \
                                   .domain = "quench",                                             \
                                   .since = 1,                                                     \
                                   QN_PORTS(in, IN),                                               \
                                   QN_PORTS(out, OUT),                                             \
                                   QN_ATTRS(specs, qn_recurrent_attrs),                            \
                                   .quant = QN_QUANT_ALREADY,                                      \
                                   .infer = qrec_infer,                                            \
                                   .eval = qrec_eval,                                              \
                                   .macs = qrec_macs,                                              \
                                   .brief = BRIEF};

QRECURRENT(QGRU, rnn_in, rnn_out, "GRU of quantized tensors")
QRECURRENT(QLSTM, lstm_in, lstm_out, "LSTM of quantized tensors")
QRECURRENT(QRNN, rnn_in, rnn_out, "RNN of quantized tensors")
