/* Tables and multipliers of integer recurrent cells. */
#include "ops/qrecurrent.h"

#include <string.h>

/* ---- Functions ------------------------------------------------------------------------------- */

bool qn_activation_is_bounded(const qn_activation *a)
{
    switch (a->kind) {
    case QN_SQUASH_HARD_SIGMOID:
    case QN_SQUASH_SCALED_TANH:
    case QN_SQUASH_SIGMOID:
    case QN_SQUASH_SOFTSIGN:
    case QN_SQUASH_TANH: return true;
    default: return false;
    }
}

/* Beyond this a bounded function is at its ends, by what a state of 16 bits can tell. */
static double reach_of(const qn_activation *a)
{
    enum { TANH = 8, SIGMOID = 16, SOFTSIGN = 64 };
    switch (a->kind) {
    case QN_SQUASH_HARD_SIGMOID: return fmax(fabs(a->beta), fabs(1 - a->beta)) / fabs(a->alpha);
    case QN_SQUASH_SCALED_TANH: return TANH / fabs(a->beta);
    case QN_SQUASH_SOFTSIGN: return SOFTSIGN;
    case QN_SQUASH_TANH: return TANH;
    default: return SIGMOID;
    }
}

/* Arguments reach to 2^r: to the ends of the function, or to where it is beyond ends[0] and
 * ends[1]. */
static int bits_of_reach(const qn_activation *a, const double ends[2])
{
    enum { LEAST = -4, MOST = 12 };
    const bool bounded = qn_activation_is_bounded(a);
    const double reach = bounded ? reach_of(a) : 1;
    int r = LEAST;
    while (r < MOST && ldexp(1, r) < reach)
        r++;
    while (r < MOST && !bounded &&
           (qn_activation_apply(a, ldexp(1, r)) < ends[1] ||
            qn_activation_apply(a, -ldexp(1, r)) > ends[0]))
        r++;
    return r;
}

static double clipped(const qn_activation *a, double x, double clip)
{
    return qn_activation_apply(a, fmin(fmax(x, -clip), clip));
}

static void squash_make(qn_qsquash *out, const qn_activation *a, const double ends[2], double clip)
{
    enum { WHOLE = 15, OUT_BITS = 14 };
    const qn_limits range = qn_limits_of(QN_INT16);
    double most = 0, at[QN_QSQUASH_PIECES + 1];
    out->in_bits = WHOLE - bits_of_reach(a, ends);
    for (int k = 0; k <= QN_QSQUASH_PIECES; k++) {
        const double x = ldexp(k - QN_QSQUASH_PIECES / 2, QN_QSQUASH_STEP_BITS - out->in_bits);
        at[k] = clipped(a, x, clip);
        most = fmax(most, fabs(at[k]));
    }
    out->out_bits = OUT_BITS;
    while (out->out_bits > -OUT_BITS && ldexp(most, out->out_bits) > (double)range.max)
        out->out_bits--;
    for (int k = 0; k <= QN_QSQUASH_PIECES; k++)
        out->table[k] = (int16_t)qn_round_clamp(ldexp(at[k], out->out_bits), 0, range);
    out->table[QN_QSQUASH_PIECES + 1] = 0;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* What differs between the operators. */
typedef struct family {
    const qn_op *op;
    int64_t gates;
    int32_t activations;
    qn_squash standard[3];
} family;

static const family families[] = {
    {&qn_op_qn_QGRU, 3, 2, {QN_SQUASH_SIGMOID, QN_SQUASH_TANH}},
    {&qn_op_qn_QLSTM, 4, 3, {QN_SQUASH_SIGMOID, QN_SQUASH_TANH, QN_SQUASH_TANH}},
    {&qn_op_qn_QRNN, 1, 1, {QN_SQUASH_TANH}},
    {&qn_op_ms_DynamicQuantizeLSTM, 4, 3, {QN_SQUASH_SIGMOID, QN_SQUASH_TANH, QN_SQUASH_TANH}},
};

static const family *family_of(const qn_op *op)
{
    for (size_t i = 0; i < QN_COUNT_OF(families); i++) {
        if (families[i].op == op)
            return &families[i];
    }
    return NULL;
}

int64_t qn_qcell_gates(const qn_op *op)
{
    const family *f = family_of(op);
    return f ? f->gates : 0;
}

int64_t qn_qcell_room(const qn_op *op, int64_t hidden)
{
    enum { PEEPHOLES = 3, LISTS = 3 };
    return (LISTS * qn_qcell_gates(op) + PEEPHOLES + 1) * hidden;
}

static qn_qcell_kind kind_of(const qn_op *op, const qn_recurrent_attrs *attrs)
{
    if (op == &qn_op_qn_QRNN)
        return QN_QCELL_RNN;
    if (op == &qn_op_qn_QGRU)
        return attrs->linear_before_reset ? QN_QCELL_GRU_LINEAR : QN_QCELL_GRU;
    return QN_QCELL_LSTM;
}

static void make_functions(qn_qcell *cell, const family *f, const qn_recurrent_attrs *attrs,
                           int64_t d)
{
    const double ends[2] = {(double)qn_dequantize(cell->range.min, &cell->y),
                            (double)qn_dequantize(cell->range.max, &cell->y)};
    qn_qsquash *const to[3] = {&cell->f, &cell->g, &cell->h};
    for (size_t i = 0; i < 3; i++) {
        const size_t last = (size_t)f->activations - 1, own = QN_MIN(i, last);
        const double clip = i == 2 ? (double)INFINITY : (double)attrs->clip;
        qn_activation a;
        (void)qn_activation_of(&a, attrs, (size_t)d * (last + 1) + own, f->standard[own]);
        squash_make(to[i], &a, ends, clip);
    }
}

/* The normal form of a ratio of any sign, which a float holds. */
static float normal(double ratio)
{
    const double size = qn_normal_value(qn_normal_of(fabs(ratio)));
    return (float)(ratio < 0 ? -size : size);
}

static float bias_of(double bias, int bits)
{
    const qn_limits range = {-(1 << 24), 1 << 24};
    const int64_t units = qn_round_clamp(ldexp(bias, bits + QN_QCELL_BIAS_BITS), 0, range);
    return (float)ldexp((double)units, -QN_QCELL_BIAS_BITS);
}

static double scale_at(const qn_tensor *scale, int64_t j)
{
    return qn_tensor_f64(scale, qn_tensor_count(scale) == 1 ? 0 : j);
}

/* A DynamicQuantizeLSTM has one scale for a direction, or one for each of its columns. */
static double column_scale(const qn_tensor *scale, int64_t d, int64_t j)
{
    return qn_tensor_f64(scale, scale->rank == 1 ? d : d * scale->dims[1] + j);
}

/* Those of row j of direction d; its argument has `bits` behind the point. */
static void make_row(qn_qcell *cell, const qn_tensor *const *in, int64_t d, int64_t j, int bits)
{
    const int64_t rows = cell->gates * cell->hidden;
    const qn_tensor *b = in[QN_QREC_B];
    const double parts[2] = {b ? qn_tensor_f64(b, 2 * d * rows + j) : 0,
                             b ? qn_tensor_f64(b, (2 * d + 1) * rows + j) : 0};
    const bool apart = cell->kind == QN_QCELL_GRU_LINEAR && j >= 2 * cell->hidden;
    if (in[QN_QREC_Y_ZERO]) {
        const double x = qn_tensor_f64(in[QN_QREC_X_SCALE], 0), y = (double)cell->y.scale;
        cell->x[j] = normal(ldexp(x * scale_at(in[QN_QREC_W_SCALE], j), bits));
        cell->r[j] = normal(ldexp(y * scale_at(in[QN_QREC_R_SCALE], j), bits));
    } else {
        cell->x[j] = (float)ldexp(column_scale(in[QN_QREC_W_SCALE], d, j), bits);
        cell->r[j] = (float)ldexp(column_scale(in[QN_QREC_R_SCALE], d, j), bits);
    }
    cell->bias[j] = bias_of(apart ? parts[0] : parts[0] + parts[1], bits);
    if (apart)
        cell->bias_r[j - 2 * cell->hidden] = bias_of(parts[1], bits);
}

/* The gate whose function is g, not f: the last one of a GRU and an LSTM. */
static bool is_fresh(const qn_qcell *cell, int64_t j)
{
    return cell->gates > 1 && j / cell->hidden == cell->gates - 1;
}

static double out_of(const qn_qcell *cell)
{
    int bits = cell->f.out_bits;
    if (cell->kind != QN_QCELL_RNN)
        bits += cell->kind == QN_QCELL_LSTM ? cell->h.out_bits : cell->g.out_bits;
    return qn_normal_value(qn_normal_of(ldexp(1, -bits) / (double)cell->y.scale));
}

void qn_qcell_make(qn_qcell *cell, float *room, const qn_op *op, const qn_recurrent_attrs *attrs,
                   const qn_tensor *const *in, int64_t d)
{
    const family *f = family_of(op);
    const qn_tensor *zero = in[QN_QREC_Y_ZERO], *p = in[QN_QREC_P];
    const qn_dtype dtype = zero ? zero->dtype : QN_INT8;
    const int64_t hidden = in[QN_QREC_R]->dims[zero ? 2 : 1], rows = f->gates * hidden;
    *cell = (qn_qcell){.kind = kind_of(op, attrs),
                       .gates = f->gates,
                       .hidden = hidden,
                       .input_forget = attrs->input_forget != 0,
                       .x = room,
                       .r = room + rows,
                       .bias = room + 2 * rows,
                       .peephole = room + 3 * rows,
                       .bias_r = room + 3 * rows + 3 * hidden,
                       .y = qn_qparams_of_type(dtype),
                       .range = qn_limits_of(dtype)};
    cell->y.scale = zero ? (float)qn_tensor_f64(in[QN_QREC_Y_SCALE], 0) : 1;
    cell->y.zero = zero ? qn_tensor_i64(zero, 0) : 0;
    make_functions(cell, f, attrs, d);
    for (int64_t j = 0; j < rows; j++)
        make_row(cell, in, d, j, is_fresh(cell, j) ? cell->g.in_bits : cell->f.in_bits);
    for (int64_t j = 0; j < 3 * hidden; j++)
        cell->peephole[j] =
            p ? normal(ldexp(qn_tensor_f64(p, d * 3 * hidden + j), cell->f.in_bits - QN_QCELL_BITS))
              : 0;
    for (int64_t j = 0; j < hidden && cell->kind != QN_QCELL_GRU_LINEAR; j++)
        cell->bias_r[j] = 0;
    cell->peeps = p != NULL;
    cell->out = zero ? out_of(cell) : ldexp(1, -cell->f.out_bits - cell->h.out_bits);
    cell->gate_unit = ldexp(1, -cell->f.out_bits);
    cell->fresh_unit = ldexp(1, QN_QCELL_BITS - cell->g.out_bits);
    cell->shown_unit = ldexp(1, cell->h.in_bits - QN_QCELL_BITS);
}

/* ---- A step of an LSTM ----------------------------------------------------------------------- */

int32_t qn_qcell_round(double x)
{
    return (int32_t)qn_round_clamp(x, 0, qn_limits_of(QN_INT16));
}

/* Gate i, o or f, with its peephole into the cell. */
static int32_t lstm_gate(const qn_qcell *cell, int64_t gate, int64_t k, double argument, int32_t c)
{
    const double seen =
        cell->peeps ? (double)c * (double)cell->peephole[gate * cell->hidden + k] : 0;
    return qn_qsquash_at(&cell->f, qn_qcell_round(argument + seen));
}

double qn_qcell_lstm(const qn_qcell *cell, int64_t k, const double arguments[4], int32_t *c)
{
    enum { I, O, F, FRESH };
    const qn_limits range = {-INT32_MAX, INT32_MAX};
    const int32_t i = lstm_gate(cell, I, k, arguments[I], *c);
    const int32_t forget =
        cell->input_forget ? (1 << cell->f.out_bits) - i : lstm_gate(cell, F, k, arguments[F], *c);
    const int32_t fresh = qn_qsquash_at(&cell->g, qn_qcell_round(arguments[FRESH]));
    const double kept = (double)forget * (double)*c;
    const double added = (double)(i * fresh) * cell->fresh_unit;
    *c = (int32_t)qn_round_clamp((kept + added) * cell->gate_unit, 0, range);
    const int32_t o = lstm_gate(cell, O, k, arguments[O], *c);
    const int32_t shown = qn_qsquash_at(&cell->h, qn_qcell_round((double)*c * cell->shown_unit));
    return (double)(o * shown);
}
