/* LSTM with the usual activations, of constant weights. W and R are packed as one matrix
 * [inputs + hidden, 4 * hidden], so that a step is one product with [x, h]. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/eval.h"
#include "ops/nn_attrs.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };
enum { Y, Y_H, Y_C, OUTPUTS };
enum { ALONE_BELOW = 1 << 16 }; /* products of weights that one thread does by itself */

typedef struct lstm_state {
    const qn_kernels *kernels;
    int64_t steps, batch, inputs, hidden;
    int32_t directions;
    bool backwards;        /* the first direction */
    float *weights, *bias; /* per direction: [inputs + hidden, 4 hidden], [4 hidden] */
} lstm_state;

/* ---- Running ---------------------------------------------------------------------------------------------- */

typedef struct step_work {
    const lstm_state *state;
    const float *weights, *x, *h;
    float *gates;
} step_work;

static void step_range(const void *opaque, int64_t first, int64_t last)
{
    const step_work *w = opaque;
    const lstm_state *s = w->state;
    const int64_t rows = 4 * s->hidden, unit = 16, from = first * unit;
    const int64_t count = QN_MIN(last * unit, rows) - from;
    const float *recurrent = w->weights + s->inputs * rows;
    s->kernels->product(w->gates + from, w->weights + from, w->x, s->inputs, rows, count);
    s->kernels->product(w->gates + from, recurrent + from, w->h, s->hidden, rows, count);
}

static const float *initial(const qn_step_io *io, int32_t slot)
{
    return io->in[slot] ? io->in[slot]->data : NULL;
}

/* The state of one sample before its first step. */
static void begin(float *to, const float *from, int64_t at, int64_t hidden)
{
    if (from)
        memcpy(to, from + at * hidden, (size_t)hidden * sizeof *to);
    else
        memset(to, 0, (size_t)hidden * sizeof *to);
}

static void put(const qn_step_io *io, int32_t output, int64_t at, const float *from, int64_t hidden)
{
    if (io->out[output])
        memcpy((float *)io->out[output]->data + at * hidden, from, (size_t)hidden * sizeof *from);
}

/* All steps of sample b in direction d. Scratch: h, c and the gates. */
static void run_sample(const lstm_state *s, const qn_step_io *io, int32_t d, int64_t b)
{
    const int64_t hidden = s->hidden, rows = 4 * hidden, at = d * s->batch + b;
    float *h = io->scratch, *c = h + hidden, *gates = c + hidden;
    const bool backwards = s->backwards || d == 1;
    const float *weights = s->weights + d * (s->inputs + hidden) * rows;
    begin(h, initial(io, 1), at, hidden);
    begin(c, initial(io, 2), at, hidden);
    for (int64_t i = 0; i < s->steps; i++) {
        const int64_t t = backwards ? s->steps - 1 - i : i;
        const float *x = (const float *)io->in[0]->data + (t * s->batch + b) * s->inputs;
        const step_work work = {s, weights, x, h, gates};
        memcpy(gates, s->bias + d * rows, (size_t)rows * sizeof *gates);
        qn_parallel(io->threads, (rows + 15) / 16, ALONE_BELOW / (16 * (s->inputs + hidden)) + 1,
                    step_range, &work);
        s->kernels->lstm_gates(h, c, gates, hidden);
        put(io, Y, (t * s->directions + d) * s->batch + b, h, hidden);
    }
    put(io, Y_H, at, h, hidden);
    put(io, Y_C, at, c, hidden);
}

static qn_status lstm_run(const void *state, void *bound, const qn_step_io *io)
{
    const lstm_state *s = state;
    (void)bound;
    for (int32_t d = 0; d < s->directions; d++) {
        for (int64_t b = 0; b < s->batch; b++)
            run_sample(s, io, d, b);
    }
    return QN_OK;
}

/* ---- Packing ---------------------------------------------------------------------------------------------- */

/* to[i][r] = from[r][i] */
static void pack(float *to, const qn_tensor *from, int64_t offset, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < columns; i++)
            to[i * rows + r] = (float)qn_tensor_f64(from, offset + r * columns + i);
    }
}

static qn_status lstm_prepare(qn_claim *claim)
{
    lstm_state *s = claim->state;
    const qn_node *node = claim->node;
    const qn_tensor *bias = node->n_in > B && node->in[B] ? node->in[B]->data : NULL;
    const int64_t rows = 4 * s->hidden, columns = s->inputs + s->hidden;
    const size_t count = (size_t)(s->directions * rows);
    s->weights =
        qn_build_alloc_weights(claim->builder, count * (size_t)columns * sizeof *s->weights);
    s->bias = qn_build_alloc_weights(claim->builder, count * sizeof *s->bias);
    if (!s->weights || !s->bias)
        return qn_fail_nomem(qn_build_context(claim->builder));
    for (int32_t d = 0; d < s->directions; d++) {
        float *weights = s->weights + d * columns * rows;
        pack(weights, node->in[W]->data, d * rows * s->inputs, rows, s->inputs);
        pack(weights + s->inputs * rows, node->in[R]->data, d * rows * s->hidden, rows, s->hidden);
        for (int64_t r = 0; r < rows; r++)
            s->bias[d * rows + r] = bias ? (float)(qn_tensor_f64(bias, 2 * d * rows + r) +
                                                   qn_tensor_f64(bias, (2 * d + 1) * rows + r))
                                         : 0;
    }
    return QN_OK;
}

static const qn_kernel lstm_kernel = {.name = "lstm", .prepare = lstm_prepare, .run = lstm_run};

/* ---- Claim ------------------------------------------------------------------------------------------------- */

static bool is_usual(const qn_node *node)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const qn_recurrent_attrs *a = node->attrs;
    for (size_t i = 0; i < a->activations.count; i++) {
        const qn_string *name = &a->activations.at[i];
        if (name->length != strlen(usual[i % 3]) ||
            memcmp(name->text, usual[i % 3], name->length) != 0)
            return false;
    }
    for (int32_t i = W; i <= B; i++) {
        if (i < node->n_in && node->in[i] && !node->in[i]->data)
            return false;
    }
    const bool extras = (node->n_in > LENGTHS && node->in[LENGTHS]) ||
                        (node->n_in > PEEPHOLES && node->in[PEEPHOLES]);
    return !extras && isinf(a->clip) && !a->input_forget && !a->layout;
}

qn_status qn_claim_lstm(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    const qn_recurrent_attrs *a = node->attrs;
    qn_tensor x, r;
    if (!is_usual(node) || !qn_build_shape(&x, claim->builder, node->in[X]) ||
        !qn_build_shape(&r, claim->builder, node->in[R]) || x.dtype != QN_FLOAT32 ||
        qn_tensor_count(&x) == 0)
        return QN_OK;
    lstm_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (lstm_state){.kernels = qn_kernels_get(),
                      .steps = x.dims[0],
                      .batch = x.dims[1],
                      .inputs = x.dims[2],
                      .hidden = r.dims[2],
                      .directions = a->direction == QN_DIRECTION_BOTH ? 2 : 1,
                      .backwards = a->direction == QN_DIRECTION_REVERSE};
    qn_claim_in(claim, node->in[X], QN_ROWS);
    qn_claim_in(claim, node->n_in > INITIAL_H ? node->in[INITIAL_H] : NULL, QN_ROWS);
    qn_claim_in(claim, node->n_in > INITIAL_C ? node->in[INITIAL_C] : NULL, QN_ROWS);
    for (int32_t o = 0; o < OUTPUTS; o++)
        qn_claim_out(claim, o < node->n_out ? node->out[o] : NULL, QN_ROWS);
    claim->scratch = (size_t)(6 * s->hidden) * sizeof(float);
    claim->state = s;
    claim->kernel = &lstm_kernel;
    *taken = true;
    return QN_OK;
}
