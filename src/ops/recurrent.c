/* RNN, GRU, LSTM: a cell carried along a sequence, forward, backward or both. */
#include "ops/recurrent.h"

#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/versions.h"

/* What differs between the three. */
typedef struct kind {
    int64_t gates;
    /* The number of activations of one direction */
    size_t activations;
    qn_squash standard[3];
    qn_cell_step *step;
    /* A second state, C, and peepholes */
    bool has_cell;
} kind;

static const kind rnn = {1, 1, {QN_SQUASH_TANH}, qn_cell_rnn, false};
static const kind gru = {3, 2, {QN_SQUASH_SIGMOID, QN_SQUASH_TANH}, qn_cell_gru, false};
static const kind lstm = {
    4, 3, {QN_SQUASH_SIGMOID, QN_SQUASH_TANH, QN_SQUASH_TANH}, qn_cell_lstm, true};

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLE, INPUTS };

static const qn_recurrent_slots slots = {.x = X,
                                         .w = W,
                                         .r = R,
                                         .b = B,
                                         .lengths = LENGTHS,
                                         .initial_h = INITIAL_H,
                                         .initial_c = INITIAL_C,
                                         .peephole = PEEPHOLE};

/* ---- Inference ------------------------------------------------------------------------------- */

static qn_status check_activations(const qn_infer *self, const kind *k)
{
    const qn_recurrent_attrs *a = self->attrs;
    const size_t count = a->activations.count;
    qn_activation found;
    if (count != 0 && count != k->activations &&
        count != k->activations * (size_t)qn_recurrent_directions(a))
        return qn_infer_fail(self, "%zu activations are given, %zu for each direction are needed",
                             count, k->activations);
    for (size_t i = 0; i < count; i++) {
        if (!qn_activation_of(&found, a, i, k->standard[0]))
            return qn_infer_fail(self, "activation %zu is not known", i);
    }
    if (!(a->clip > 0))
        return qn_infer_fail(self, "clip must be above 0");
    return QN_OK;
}

static qn_status infer_recurrent(qn_infer *self, const kind *k)
{
    const qn_dtype dtype = self->in[X]->dtype;
    qn_recurrent_sizes sizes;
    QN_TRY(check_activations(self, k));
    QN_TRY(qn_recurrent_find_sizes(&sizes, self, &slots));
    QN_TRY(qn_recurrent_check_inputs(self, &slots, &sizes, k->gates));
    qn_recurrent_set_outputs(self, &sizes, dtype, dtype);
    return QN_OK;
}

static int64_t macs_of(const qn_infer *self)
{
    return qn_recurrent_macs(self, &slots);
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

typedef struct run {
    const kind *kind;
    const qn_recurrent_attrs *attrs;
    int64_t sequence, batch, input, hidden, directions;
    /* The inputs as doubles; NULL: left out */
    double *in[INPUTS];
    /* [hidden], [hidden], [gates * hidden], twice that */
    double *h, *c, *projected, *work;
} run;

static qn_status run_make(run *r, qn_eval *self, const kind *k)
{
    const qn_recurrent_attrs *a = self->attrs;
    const qn_tensor *x = self->in[X];
    void *block;
    *r = (run){.kind = k,
               .attrs = a,
               .sequence = x->dims[a->layout ? 1 : 0],
               .batch = x->dims[a->layout ? 0 : 1],
               .input = x->dims[2],
               .hidden = self->in[R]->dims[2],
               .directions = qn_recurrent_directions(a)};
    for (int32_t i = 0; i < INPUTS; i++) {
        if (qn_eval_in(self, i))
            QN_TRY(qn_eval_doubles(self, &r->in[i], self->in[i]));
    }
    QN_TRY(qn_eval_scratch(self, &block, (2 + 3 * QN_MOST_GATES) * r->hidden, sizeof(double)));
    r->h = block;
    r->c = r->h + r->hidden;
    r->projected = r->c + r->hidden;
    r->work = r->projected + QN_MOST_GATES * r->hidden;
    return QN_OK;
}

static void cell_make(qn_cell *cell, const run *r, int64_t d)
{
    const int64_t rows = r->kind->gates * r->hidden;
    const size_t first = (size_t)d * r->kind->activations;
    qn_activation list[3];
    for (size_t i = 0; i < 3; i++)
        (void)qn_activation_of(&list[i], r->attrs, first + QN_MIN(i, r->kind->activations - 1),
                               r->kind->standard[i]);
    *cell = (qn_cell){.attrs = r->attrs,
                      .hidden = r->hidden,
                      .recurrent = r->in[R] + d * rows * r->hidden,
                      .bias_r = r->in[B] ? r->in[B] + d * 2 * rows + rows : NULL,
                      .peephole = r->in[PEEPHOLE] ? r->in[PEEPHOLE] + d * 3 * r->hidden : NULL,
                      .f = list[0],
                      .g = list[1],
                      .h = list[2]};
}

/* projected = W x + Wb at time t of batch item b. */
static void project(const run *r, int64_t d, int64_t b, int64_t t)
{
    const int64_t rows = r->kind->gates * r->hidden;
    const double *x =
        r->in[X] + (r->attrs->layout ? b * r->sequence + t : t * r->batch + b) * r->input;
    for (int64_t i = 0; i < rows; i++)
        r->projected[i] = r->in[B] ? r->in[B][d * 2 * rows + i] : 0;
    qn_matvec(r->projected, r->in[W] + d * rows * r->input, x, rows, r->input);
}

static int64_t state_at(const run *r, int64_t d, int64_t b)
{
    return (r->attrs->layout ? b * r->directions + d : d * r->batch + b) * r->hidden;
}

static void state_load(const run *r, double *state, int32_t input, int64_t d, int64_t b)
{
    for (int64_t i = 0; i < r->hidden; i++)
        state[i] = r->in[input] ? r->in[input][state_at(r, d, b) + i] : 0;
}

static void store(const qn_eval *self, int32_t o, int64_t at, const double *values, int64_t count)
{
    const qn_tensor *out = qn_eval_out(self, o);
    if (out)
        qn_store_f64(out->data, out->dtype, at, values, count);
}

static int64_t output_at(const run *r, int64_t d, int64_t b, int64_t t)
{
    const int64_t plain = (t * r->directions + d) * r->batch + b;
    const int64_t by_batch = (b * r->sequence + t) * r->directions + d;
    return (r->attrs->layout ? by_batch : plain) * r->hidden;
}

/* One direction of one batch item; times behind its length give zeros. */
static qn_status run_item(const qn_eval *self, const run *r, int64_t d, int64_t b)
{
    const bool backward = r->attrs->direction == QN_DIRECTION_REVERSE || d == 1;
    const int64_t length = r->in[LENGTHS] ? (int64_t)r->in[LENGTHS][b] : r->sequence;
    qn_cell cell;
    cell_make(&cell, r, d);
    state_load(r, r->h, INITIAL_H, d, b);
    state_load(r, r->c, INITIAL_C, d, b);
    for (int64_t s = 0; s < length; s++) {
        const int64_t t = backward ? length - 1 - s : s;
        QN_TRY(qn_check_cancel(self->ctx));
        project(r, d, b, t);
        r->kind->step(&cell, r->projected, r->h, r->c, r->work);
        store(self, 0, output_at(r, d, b, t), r->h, r->hidden);
    }
    memset(r->work, 0, (size_t)r->hidden * sizeof *r->work);
    for (int64_t t = length; t < r->sequence; t++)
        store(self, 0, output_at(r, d, b, t), r->work, r->hidden);
    store(self, 1, state_at(r, d, b), r->h, r->hidden);
    if (r->kind->has_cell)
        store(self, 2, state_at(r, d, b), r->c, r->hidden);
    return QN_OK;
}

static qn_status eval_recurrent(qn_eval *self, const kind *k)
{
    run r;
    QN_TRY(run_make(&r, self, k));
    for (int64_t b = 0; r.in[LENGTHS] && b < r.batch; b++) {
        if (!(r.in[LENGTHS][b] >= 0 && r.in[LENGTHS][b] <= (double)r.sequence))
            return qn_eval_fail(self, "sequence length %lld is outside [0, %lld]",
                                (long long)r.in[LENGTHS][b], (long long)r.sequence);
    }
    for (int64_t d = 0; d < r.directions; d++) {
        for (int64_t b = 0; b < r.batch; b++)
            QN_TRY(run_item(self, &r, d, b));
    }
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const char *const direction_words[] = {"forward", "reverse", "bidirectional", NULL};

#define SPECS                                                                                      \
    QN_ATTR(qn_recurrent_attrs, activations, STRINGS),                                             \
        QN_ATTR(qn_recurrent_attrs, activation_alpha, FLOATS),                                     \
        QN_ATTR(qn_recurrent_attrs, activation_beta, FLOATS),                                      \
        QN_FLOAT_ATTR(qn_recurrent_attrs, clip, INFINITY),                                         \
        QN_ENUM_ATTR(qn_recurrent_attrs, direction, QN_DIRECTION_FORWARD, direction_words),        \
        QN_INT_ATTR(qn_recurrent_attrs, hidden_size, QN_ABSENT),                                   \
        QN_INT_ATTR(qn_recurrent_attrs, layout, 0, .since = 14),                                   \
        QN_INT_ATTR(qn_recurrent_attrs, output_sequence, 0, .until = 7)
static const qn_attr_spec rnn_specs[] = {SPECS};
static const qn_attr_spec gru_specs[] = {
    SPECS, QN_INT_ATTR(qn_recurrent_attrs, linear_before_reset, 0, .since = 3)};
static const qn_attr_spec lstm_specs[] = {SPECS, QN_INT_ATTR(qn_recurrent_attrs, input_forget, 0)};

#define REQUIRED(name)                                                                             \
    {                                                                                              \
        name, 'T', QN_SET_FLOAT, 0                                                                 \
    }
#define OPTIONAL(name)                                                                             \
    {                                                                                              \
        name, 'T', QN_SET_FLOAT, QN_OPTIONAL                                                       \
    }
#define PORTS                                                                                      \
    REQUIRED("X"), REQUIRED("W"), REQUIRED("R"), OPTIONAL("B"),                                    \
        {"sequence_lens", '\0', QN_SET(QN_INT32), QN_OPTIONAL}, OPTIONAL("initial_h")
static const qn_port rnn_in[] = {PORTS};
static const qn_port lstm_in[] = {PORTS, OPTIONAL("initial_c"), OPTIONAL("P")};
static const qn_port rnn_out[] = {OPTIONAL("Y"), OPTIONAL("Y_h")};
static const qn_port lstm_out[] = {OPTIONAL("Y"), OPTIONAL("Y_h"), OPTIONAL("Y_c")};

/* It only announced that output 0 is wanted. */
static qn_status upgrade_7(qn_node **node)
{
    ((qn_recurrent_attrs *)(*node)->attrs)->output_sequence = 0;
    return QN_OK;
}

static qn_status downgrade_7(qn_node **node)
{
    const bool wanted = (*node)->n_out > 0 && (*node)->out[0];
    ((qn_recurrent_attrs *)(*node)->attrs)->output_sequence = wanted;
    return QN_OK;
}

static const qn_version_rule versions[] = {{7, upgrade_7, downgrade_7}};

#define RECURRENT(Name, k, IN, OUT, BRIEF)                                                         \
    static qn_status Name##_infer(qn_infer *self)                                                  \
    {                                                                                              \
        return infer_recurrent(self, &k);                                                          \
    }                                                                                              \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return eval_recurrent(self, &k);                                                           \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                QN_PORTS(in, IN),                                                  \
                                QN_PORTS(out, OUT),                                                \
                                QN_ATTRS(k##_specs, qn_recurrent_attrs),                           \
                                QN_VERSIONS(versions),                                             \
                                QN_TYPE_RULES(qn_bfloat16_22),                                     \
                                .quant = QN_QUANT_MAC,                                             \
                                .infer = Name##_infer,                                             \
                                .eval = Name##_eval,                                               \
                                .macs = macs_of,                                                   \
                                .brief = BRIEF};

RECURRENT(GRU, gru, rnn_in, rnn_out, "gated recurrent units along a sequence")
RECURRENT(LSTM, lstm, lstm_in, lstm_out, "long short-term memory along a sequence")
RECURRENT(RNN, rnn, rnn_in, rnn_out, "a simple recurrent layer along a sequence")
