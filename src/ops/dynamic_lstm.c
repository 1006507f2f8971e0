/* com.microsoft's DynamicQuantizeLSTM: an LSTM with weights of 8 bits. The sequence is quantized as
 * a whole, as DynamicQuantizeLinear does it, the state of each item before every step. W is
 * [directions, inputs, 4 hidden] and R [directions, hidden, 4 hidden]; their scales and zero points
 * are one for a direction, or one for each of the 4 hidden columns. */
#include "ops/dynamic_lstm.h"

#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"

enum { GATES = 4 };

/* ---- Inference ------------------------------------------------------------------------------- */

/* One for a direction, or one for a column. */
static qn_status check_params(const qn_infer *self, int32_t i, const qn_dim dims[2])
{
    return qn_recurrent_check_dims(self, i, qn_infer_rank(self, i) == 1 ? 1 : 2, dims);
}

static qn_status check_activations(const qn_infer *self)
{
    const qn_recurrent_attrs *a = self->attrs;
    const size_t count = a->activations.count;
    qn_activation found;
    if (count != 0 && count != 3 && count != 3 * (size_t)qn_recurrent_directions(a))
        return qn_infer_fail(self, "%zu activations are given, 3 for each direction are needed",
                             count);
    for (size_t i = 0; i < count; i++) {
        if (!qn_activation_of(&found, a, i, QN_SQUASH_TANH))
            return qn_infer_fail(self, "activation %zu is not known", i);
    }
    return a->clip > 0 ? QN_OK : qn_infer_fail(self, "clip must be above 0");
}

static qn_status find_hidden(qn_dim *hidden, const qn_infer *self)
{
    const qn_recurrent_attrs *a = self->attrs;
    const qn_type *x = self->in[QN_DLSTM_X], *r = self->in[QN_DLSTM_R];
    if ((x->rank >= 0 && x->rank != 3) || (r->rank >= 0 && r->rank != 3))
        return qn_infer_fail(self, "the sequence and the recurrent weights need 3 dimensions");
    *hidden = r->rank == 3 ? r->dims[1] : qn_dim_unknown();
    if (a->hidden_size != QN_ABSENT &&
        (a->hidden_size < 1 || !qn_dim_merge(hidden, *hidden, qn_dim_of(a->hidden_size))))
        return qn_infer_fail(self, "hidden_size is %lld, the weights have %lld",
                             (long long)a->hidden_size, (long long)hidden->value);
    return QN_OK;
}

static qn_status dlstm_infer(qn_infer *self)
{
    const qn_type *x = self->in[QN_DLSTM_X];
    const qn_dim both = qn_dim_of(qn_recurrent_directions(self->attrs)), any = qn_dim_unknown();
    qn_dim hidden;
    QN_TRY(check_activations(self));
    QN_TRY(find_hidden(&hidden, self));
    const qn_dim time = x->rank == 3 ? x->dims[0] : any, batch = x->rank == 3 ? x->dims[1] : any;
    const qn_dim columns = qn_dim_mul(hidden, qn_dim_of(GATES));
    const qn_dim w[3] = {both, x->rank == 3 ? x->dims[2] : any, columns};
    const qn_dim r[3] = {both, hidden, columns}, state[3] = {both, batch, hidden};
    const qn_dim b[2] = {both, qn_dim_mul(columns, qn_dim_of(2))}, params[2] = {both, columns};
    const qn_dim p[2] = {both, qn_dim_mul(hidden, qn_dim_of(3))};
    const qn_dim y[4] = {time, both, batch, hidden};
    QN_TRY(qn_recurrent_check_dims(self, QN_DLSTM_W, 3, w));
    QN_TRY(qn_recurrent_check_dims(self, QN_DLSTM_R, 3, r));
    QN_TRY(qn_recurrent_check_dims(self, QN_DLSTM_B, 2, b));
    QN_TRY(qn_recurrent_check_dims(self, QN_DLSTM_LENGTHS, 1, &batch));
    QN_TRY(qn_recurrent_check_dims(self, QN_DLSTM_H, 3, state));
    QN_TRY(qn_recurrent_check_dims(self, QN_DLSTM_C, 3, state));
    QN_TRY(qn_recurrent_check_dims(self, QN_DLSTM_P, 2, p));
    for (int32_t i = QN_DLSTM_W_SCALE; i < QN_DLSTM_INPUTS; i++)
        QN_TRY(check_params(self, i, params));
    qn_infer_set(self, 0, QN_FLOAT32, 4, y);
    qn_infer_set(self, 1, QN_FLOAT32, 3, state);
    qn_infer_set(self, 2, QN_FLOAT32, 3, state);
    return QN_OK;
}

static int64_t dlstm_macs(const qn_infer *self)
{
    int64_t x[QN_MAX_RANK], r[QN_MAX_RANK], steps, each;
    if (!qn_type_is_static(self->in[QN_DLSTM_X], x) ||
        !qn_type_is_static(self->in[QN_DLSTM_R], r) || !qn_mul_int64(&steps, x[0], x[1]) ||
        !qn_mul_int64(&each, r[0] * r[2], x[2] + r[1]) || !qn_mul_int64(&each, each, steps))
        return 0;
    return each;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

typedef struct run {
    const qn_recurrent_attrs *attrs;
    int64_t time, batch, inputs, hidden, columns;
    /* [directions][rows][columns], zero points taken off */
    double *weights[2];
    qn_qcell cell[2];
    /* Integers without zero point */
    double *x;
    float x_scale;
    /* [hidden] */
    float *h;
    /* [2][columns], [hidden] */
    double *sums, *q;
    /* [hidden] */
    int32_t *c;
} run;

/* The parameters of every column. */
static double param(const qn_tensor *t, int64_t d, int64_t j, int64_t columns)
{
    return t->rank == 1 ? qn_tensor_f64(t, d) : qn_tensor_f64(t, d * columns + j);
}

static qn_status prepare_weights(run *r, qn_eval *self, int part)
{
    const qn_tensor *w = self->in[part ? QN_DLSTM_R : QN_DLSTM_W];
    const qn_tensor *zero = self->in[QN_DLSTM_W_ZERO + 2 * part];
    const int64_t count = qn_tensor_count(w), each = w->dims[1] * r->columns;
    QN_TRY(qn_eval_doubles(self, &r->weights[part], w));
    for (int64_t i = 0; i < count; i++)
        r->weights[part][i] -= param(zero, i / each, i % r->columns, r->columns);
    return QN_OK;
}

void qn_dlstm_inputs(const qn_tensor *to[QN_QREC_INPUTS], const qn_tensor *const *in)
{
    for (int32_t i = 0; i < QN_QREC_INPUTS; i++)
        to[i] = NULL;
    to[QN_QREC_X] = in[QN_DLSTM_X];
    to[QN_QREC_W] = in[QN_DLSTM_W];
    to[QN_QREC_W_SCALE] = in[QN_DLSTM_W_SCALE];
    to[QN_QREC_R] = in[QN_DLSTM_R];
    to[QN_QREC_R_SCALE] = in[QN_DLSTM_R_SCALE];
    to[QN_QREC_B] = in[QN_DLSTM_B];
    to[QN_QREC_P] = in[QN_DLSTM_P];
}

static qn_status make_cells(run *r, qn_eval *self)
{
    const qn_tensor *in[QN_QREC_INPUTS];
    void *room;
    qn_dlstm_inputs(in, self->in);
    for (int64_t d = 0; d < qn_recurrent_directions(self->attrs); d++) {
        const qn_op *op = self->node->op;
        QN_TRY(qn_eval_scratch(self, &room, qn_qcell_room(op, r->hidden), sizeof(float)));
        qn_qcell_make(&r->cell[d], room, op, self->attrs, in, d);
    }
    return QN_OK;
}

static qn_status run_make(run *r, qn_eval *self)
{
    const qn_tensor *x = self->in[QN_DLSTM_X];
    const int64_t count = qn_tensor_count(x);
    const qn_qparams q = qn_dynamic_quant(x->data, count);
    void *block;
    *r = (run){.attrs = self->attrs,
               .time = x->dims[0],
               .batch = x->dims[1],
               .inputs = x->dims[2],
               .hidden = self->in[QN_DLSTM_R]->dims[1],
               .x_scale = q.scale};
    r->columns = GATES * r->hidden;
    for (int part = 0; part < 2; part++)
        QN_TRY(prepare_weights(r, self, part));
    QN_TRY(make_cells(r, self));
    QN_TRY(qn_eval_doubles(self, &r->x, x));
    for (int64_t i = 0; i < count; i++)
        r->x[i] = (double)(qn_quantize((float)r->x[i], &q, qn_limits_of(QN_UINT8)) - q.zero);
    QN_TRY(qn_eval_scratch(self, &block, 2 * r->columns + r->hidden, sizeof(double)));
    r->sums = block;
    r->q = r->sums + 2 * r->columns;
    QN_TRY(qn_eval_scratch(self, &block, r->hidden, sizeof(float)));
    r->h = block;
    QN_TRY(qn_eval_scratch(self, &block, r->hidden, sizeof(int32_t)));
    r->c = block;
    return QN_OK;
}

/* out[j] = sum over i of x[i] * w[i][j] */
static void products(double *out, const double *x, const double *w, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++) {
        out[j] = 0;
        for (int64_t i = 0; i < rows; i++)
            out[j] += x[i] * w[i * columns + j];
    }
}

/* The argument of column j, from the sums and the scales of their integers. */
static double argument(const run *r, const qn_qcell *cell, float h_scale, int64_t j)
{
    const double x = r->sums[j] * (double)r->x_scale * (double)cell->x[j];
    const double h = r->sums[r->columns + j] * (double)h_scale * (double)cell->r[j];
    return x + h + (double)cell->bias[j];
}

static void step(const run *r, int64_t d, int64_t at)
{
    const qn_qparams q = qn_dynamic_quant(r->h, r->hidden);
    const qn_qcell *cell = &r->cell[d];
    for (int64_t i = 0; i < r->hidden; i++)
        r->q[i] = (double)(qn_quantize(r->h[i], &q, qn_limits_of(QN_UINT8)) - q.zero);
    products(r->sums, r->x + at * r->inputs, r->weights[0] + d * r->inputs * r->columns, r->inputs,
             r->columns);
    products(r->sums + r->columns, r->q, r->weights[1] + d * r->hidden * r->columns, r->hidden,
             r->columns);
    for (int64_t k = 0; k < r->hidden; k++) {
        double arguments[GATES];
        for (int64_t g = 0; g < GATES; g++)
            arguments[g] = argument(r, cell, q.scale, g * r->hidden + k);
        r->h[k] = (float)(qn_qcell_lstm(cell, k, arguments, &r->c[k]) * cell->out);
    }
}

static void store(const qn_eval *self, int32_t o, int64_t at, const float *h, const run *r)
{
    if (qn_eval_out(self, o))
        memcpy((float *)self->out[o]->data + at * r->hidden, h, (size_t)r->hidden * sizeof *h);
}

static float initial(const qn_eval *self, int32_t slot, int64_t i)
{
    const qn_tensor *t = qn_eval_in(self, slot);
    return t ? ((const float *)t->data)[i] : 0;
}

/* Times behind the item's length give zeros. */
static void run_item(const qn_eval *self, const run *r, int64_t d, int64_t b, int64_t length)
{
    const bool backward = r->attrs->direction == QN_DIRECTION_REVERSE || d == 1;
    const int64_t both = qn_recurrent_directions(r->attrs), at = d * r->batch + b;
    for (int64_t k = 0; k < r->hidden; k++) {
        r->h[k] = initial(self, QN_DLSTM_H, at * r->hidden + k);
        r->c[k] = qn_qcell_from_float(initial(self, QN_DLSTM_C, at * r->hidden + k));
    }
    for (int64_t s = 0; s < length; s++) {
        const int64_t t = backward ? length - 1 - s : s;
        step(r, d, t * r->batch + b);
        store(self, 0, (t * both + d) * r->batch + b, r->h, r);
    }
    store(self, 1, at, r->h, r);
    for (int64_t k = 0; k < r->hidden; k++)
        r->h[k] = qn_qcell_to_float(r->c[k]);
    store(self, 2, at, r->h, r);
    memset(r->h, 0, (size_t)r->hidden * sizeof *r->h);
    for (int64_t t = length; t < r->time; t++)
        store(self, 0, (t * both + d) * r->batch + b, r->h, r);
}

static qn_status dlstm_eval(qn_eval *self)
{
    const qn_tensor *lengths = qn_eval_in(self, QN_DLSTM_LENGTHS);
    run r;
    QN_TRY(run_make(&r, self));
    for (int64_t b = 0; b < r.batch; b++) {
        const int64_t length = lengths ? ((const int32_t *)lengths->data)[b] : r.time;
        if (length < 0 || length > r.time)
            return qn_eval_fail(self, "sequence length %lld is outside [0, %lld]",
                                (long long)length, (long long)r.time);
        for (int64_t d = 0; d < qn_recurrent_directions(r.attrs); d++)
            run_item(self, &r, d, b, length);
    }
    return QN_OK;
}

/* ---- Operator -------------------------------------------------------------------------------- */

static const char *const direction_words[] = {"forward", "reverse", "bidirectional", NULL};
static const qn_attr_spec specs[] = {
    QN_ATTR(qn_recurrent_attrs, activations, STRINGS),
    QN_ATTR(qn_recurrent_attrs, activation_alpha, FLOATS),
    QN_ATTR(qn_recurrent_attrs, activation_beta, FLOATS),
    QN_FLOAT_ATTR(qn_recurrent_attrs, clip, INFINITY),
    QN_ENUM_ATTR(qn_recurrent_attrs, direction, QN_DIRECTION_FORWARD, direction_words),
    QN_INT_ATTR(qn_recurrent_attrs, hidden_size, QN_ABSENT),
    QN_INT_ATTR(qn_recurrent_attrs, input_forget, 0)};

#define FLOATS_OPTIONAL(name)                                                                      \
    {                                                                                              \
        name, '\0', QN_SET(QN_FLOAT32), QN_OPTIONAL                                                \
    }
#define BYTES (QN_SET(QN_INT8) | QN_SET(QN_UINT8))
static const qn_port in[] = {{"X", '\0', QN_SET(QN_FLOAT32), 0},
                             {"W", 'Q', BYTES, 0},
                             {"R", 'Q', BYTES, 0},
                             FLOATS_OPTIONAL("B"),
                             {"sequence_lens", '\0', QN_SET(QN_INT32), QN_OPTIONAL},
                             FLOATS_OPTIONAL("initial_h"),
                             FLOATS_OPTIONAL("initial_c"),
                             FLOATS_OPTIONAL("P"),
                             {"W_scale", '\0', QN_SET(QN_FLOAT32), 0},
                             {"W_zero_point", 'Q', BYTES, 0},
                             {"R_scale", '\0', QN_SET(QN_FLOAT32), 0},
                             {"R_zero_point", 'Q', BYTES, 0}};
static const qn_port out[] = {FLOATS_OPTIONAL("Y"), FLOATS_OPTIONAL("Y_h"), FLOATS_OPTIONAL("Y_c")};

const qn_op qn_op_ms_DynamicQuantizeLSTM = {
    .name = "DynamicQuantizeLSTM",
    .domain = "com.microsoft",
    .since = 1,
    QN_PORTS(in, in),
    QN_PORTS(out, out),
    QN_ATTRS(specs, qn_recurrent_attrs),
    .quant = QN_QUANT_ALREADY,
    .infer = dlstm_infer,
    .eval = dlstm_eval,
    .macs = dlstm_macs,
    .brief = "LSTM of quantized weights whose activations are quantized while running"};
