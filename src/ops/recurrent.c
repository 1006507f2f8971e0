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

int64_t qn_recurrent_directions(const qn_recurrent_attrs *a)
{
    return a->direction == QN_DIRECTION_BOTH ? 2 : 1;
}

/* ---- Inference ------------------------------------------------------------------------------- */

typedef struct sizes {
    qn_dim sequence, batch, input, hidden, directions;
} sizes;

qn_status qn_recurrent_check_dims(const qn_infer *self, int32_t i, int32_t rank, const qn_dim *dims)
{
    qn_dim merged;
    const int32_t own = qn_infer_rank(self, i);
    if (own >= 0 && own != rank)
        return qn_infer_fail(self, "input %d has %d dimensions instead of %d", i, own, rank);
    for (int32_t d = 0; d < own; d++) {
        if (!qn_dim_merge(&merged, self->in[i]->dims[d], dims[d]))
            return qn_infer_fail(self, "dimension %d of input %d is %lld instead of %lld", d, i,
                                 (long long)self->in[i]->dims[d].value, (long long)dims[d].value);
    }
    return QN_OK;
}

static qn_status find_sizes(sizes *s, const qn_infer *self)
{
    const qn_recurrent_attrs *a = self->attrs;
    const qn_type *x = self->in[X], *r = self->in[R];
    const int first = a->layout ? 1 : 0;
    if ((x->rank >= 0 && x->rank != 3) || (r->rank >= 0 && r->rank != 3))
        return qn_infer_fail(self, "the sequence and the recurrent weights need 3 dimensions");
    *s = (sizes){qn_dim_unknown(), qn_dim_unknown(), qn_dim_unknown(), qn_dim_unknown(),
                 qn_dim_of(qn_recurrent_directions(a))};
    if (x->rank == 3) {
        s->sequence = x->dims[first];
        s->batch = x->dims[1 - first];
        s->input = x->dims[2];
    }
    if (r->rank == 3)
        s->hidden = r->dims[2];
    if (a->hidden_size != QN_ABSENT &&
        (a->hidden_size < 1 || !qn_dim_merge(&s->hidden, s->hidden, qn_dim_of(a->hidden_size))))
        return qn_infer_fail(self, "hidden_size is %lld, the weights have %lld",
                             (long long)a->hidden_size, (long long)s->hidden.value);
    return QN_OK;
}

static qn_status check_inputs(const qn_infer *self, const sizes *s, const kind *k)
{
    const qn_recurrent_attrs *a = self->attrs;
    const qn_dim rows = qn_dim_mul(s->hidden, qn_dim_of(k->gates));
    const qn_dim w[3] = {s->directions, rows, s->input}, r[3] = {s->directions, rows, s->hidden};
    const qn_dim b[2] = {s->directions, qn_dim_mul(rows, qn_dim_of(2))};
    const qn_dim p[2] = {s->directions, qn_dim_mul(s->hidden, qn_dim_of(3))};
    const qn_dim state[3] = {a->layout ? s->batch : s->directions,
                             a->layout ? s->directions : s->batch, s->hidden};
    QN_TRY(qn_recurrent_check_dims(self, W, 3, w));
    QN_TRY(qn_recurrent_check_dims(self, R, 3, r));
    QN_TRY(qn_recurrent_check_dims(self, B, 2, b));
    QN_TRY(qn_recurrent_check_dims(self, LENGTHS, 1, &s->batch));
    QN_TRY(qn_recurrent_check_dims(self, INITIAL_H, 3, state));
    QN_TRY(qn_recurrent_check_dims(self, INITIAL_C, 3, state));
    return qn_recurrent_check_dims(self, PEEPHOLE, 2, p);
}

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
    const qn_recurrent_attrs *a = self->attrs;
    const qn_dtype dtype = self->in[X]->dtype;
    sizes s;
    QN_TRY(check_activations(self, k));
    QN_TRY(find_sizes(&s, self));
    QN_TRY(check_inputs(self, &s, k));
    const qn_dim plain[4] = {s.sequence, s.directions, s.batch, s.hidden};
    const qn_dim by_batch[4] = {s.batch, s.sequence, s.directions, s.hidden};
    const qn_dim state[3] = {a->layout ? s.batch : s.directions, a->layout ? s.directions : s.batch,
                             s.hidden};
    qn_infer_set(self, 0, dtype, 4, a->layout ? by_batch : plain);
    qn_infer_set(self, 1, dtype, 3, state);
    qn_infer_set(self, 2, dtype, 3, state);
    return QN_OK;
}

static int64_t macs_of(const qn_infer *self)
{
    int64_t x[QN_MAX_RANK], w[QN_MAX_RANK], r[QN_MAX_RANK], steps, each;
    if (!qn_type_is_static(self->in[X], x) || !qn_type_is_static(self->in[W], w) ||
        !qn_type_is_static(self->in[R], r) || !qn_mul_int64(&steps, x[0], x[1]) ||
        !qn_mul_int64(&each, w[0] * w[1], w[2] + r[2]) || !qn_mul_int64(&each, each, steps))
        return 0;
    return each;
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
