/* LSTM, GRU and RNN with the usual activations, of constant weights. All items of a batch go
 * through a step together. The products with the sequence, which wait for nothing, are done for a
 * few steps at once; those with the state follow step by step. Gates are padded to whole panels,
 * whose weights are 0. */
#include "ops/recurrent.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/eval.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };
enum { IN_X, IN_LENGTHS, IN_H, IN_C }; /* of the claim */
enum { Y, Y_H, Y_C, OUTPUTS };
enum {
    /* Products of weights that one thread does by itself. */
    ALONE_BELOW = 1 << 16,
    /* Rows of the sequence. */
    ROWS_AT_ONCE = 64
};

/* What differs between the cells. */
typedef struct cell {
    const qn_op *op;
    int64_t gates;
    /* The number of activations of one direction; the first row of an operator has its default. */
    int32_t activations;
    qn_squash usual[3];
    qn_cell_fn finish;
} cell;

static const cell cells[] = {
    {&qn_op_LSTM, 4, 3, {QN_SQUASH_SIGMOID, QN_SQUASH_TANH, QN_SQUASH_TANH}, QN_CELL_LSTM},
    {&qn_op_GRU, 3, 2, {QN_SQUASH_SIGMOID, QN_SQUASH_TANH}, QN_CELL_GRU},
    {&qn_op_RNN, 1, 1, {QN_SQUASH_TANH}, QN_CELL_RNN_TANH},
    {&qn_op_RNN, 1, 1, {QN_SQUASH_RELU}, QN_CELL_RNN_RELU},
};
enum { GRU_FRESH = 2 }; /* the gate of a GRU that the reset gate is for */

typedef struct recurrent_state {
    const qn_kernels *kernels;
    const qn_node *node;
    int64_t gates;
    qn_cell_fn finish;
    int64_t steps, batch, inputs, hidden;
    /* The size of a panel, and the panels of one gate. */
    int64_t panel, panels;
    /* panels * panel: `hidden` with what pads it */
    int64_t pitch;
    /* Steps whose products with the sequence are done at once. */
    int64_t chunk;
    int32_t directions;
    /* The first direction. */
    bool backwards;
    /* Per direction: [gates * panels, inputs or hidden, panel]. */
    float *weights_x, *weights_h;
    /* Per direction: [gates, pitch]. */
    float *bias;
    /* GRU_LINEAR, per direction: [pitch] of the state's product. */
    float *bias_h;
} recurrent_state;

/* ---- Running --------------------------------------------------------------------------------- */

/* One direction of a run. */
typedef struct direction {
    const recurrent_state *state;
    int32_t number;
    /* [batch]; NULL: all steps. */
    const int32_t *lengths;
    /* [batch, pitch]. */
    float *h, *next, *c;
    /* [batch, pitch]: GRU: h as the reset gate leaves it; GRU_LINEAR: R h. */
    float *extra;
    /* [chunk, batch, gates, pitch]. */
    float *sums;
    /* [chunk, batch] of the sequence. */
    const float **rows;
    /* [batch]. */
    const float **h_rows, **extra_rows;
} direction;

static bool goes_on(const direction *d, int64_t step, int64_t b)
{
    return !d->lengths || step < d->lengths[b];
}

/* The time that item b is at in a step; behind its end those times that it leaves empty. */
static int64_t time_of(const direction *d, int64_t step, int64_t b)
{
    const int64_t length = d->lengths ? d->lengths[b] : d->state->steps;
    const bool backwards = d->state->backwards || d->number == 1;
    return backwards && step < length ? length - 1 - step : step;
}

typedef struct work {
    const direction *d;
    /* project_range: of d->rows */
    int64_t rows;
    int64_t step;
    /* The sums of the step: [batch, gates, pitch]. */
    float *sums;
} work;

/* The sums begin as biases and W x; panels of all gates. */
static void project_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const direction *d = w->d;
    const recurrent_state *s = d->state;
    const int64_t width = s->gates * s->pitch, at = first * s->panel;
    const float *bias = s->bias + d->number * width + at;
    for (int64_t r = 0; r < w->rows; r++)
        memcpy(d->sums + r * width + at, bias, (size_t)((last - first) * s->panel) * sizeof *bias);
    const qn_product product = {.y = d->sums + at,
                                .y_stride = width,
                                .x = d->rows,
                                .m = s->weights_x + (d->number * width + at) * s->inputs,
                                .rows = w->rows,
                                .depth = s->inputs,
                                .panels = last - first};
    s->kernels->product(&product);
}

/* The state's part of the sums of one gate. That of a GRU's fresh state is for the state behind the
 * reset gate, or, when it is linear, stays apart until that gate is known. */
static void recur(const work *w, int64_t gate, int64_t first, int64_t last)
{
    const direction *d = w->d;
    const recurrent_state *s = d->state;
    const bool apart = s->finish == QN_CELL_GRU_LINEAR && gate == GRU_FRESH;
    const bool behind = s->finish == QN_CELL_GRU && gate == GRU_FRESH;
    const int64_t at = first * s->panel, column = gate * s->pitch + at;
    for (int64_t b = 0; apart && b < s->batch; b++)
        memcpy(d->extra + b * s->pitch + at, s->bias_h + d->number * s->pitch + at,
               (size_t)((last - first) * s->panel) * sizeof *d->extra);
    const qn_product product = {.y = apart ? d->extra + at : w->sums + column,
                                .y_stride = apart ? s->pitch : s->gates * s->pitch,
                                .x = behind ? d->extra_rows : d->h_rows,
                                .m = s->weights_h +
                                     (d->number * s->gates * s->pitch + column) * s->hidden,
                                .rows = s->batch,
                                .depth = s->hidden,
                                .panels = last - first};
    s->kernels->product(&product);
}

/* `to` gets what `fn` makes of the sums; items that are at their end keep their state. */
static void finish(const work *w, qn_cell_fn fn, float *to, int64_t first, int64_t last)
{
    const direction *d = w->d;
    const recurrent_state *s = d->state;
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t at = b * s->pitch;
        const qn_gates step = {.sums = w->sums + at * s->gates,
                               .pitch = s->pitch,
                               .recurrent = d->extra + at,
                               .h = d->h + at,
                               .next = to + at,
                               .c = d->c + at};
        if (goes_on(d, w->step, b))
            s->kernels->gates[fn](&step, first * s->panel, last * s->panel);
        else
            memcpy(step.next + first * s->panel, step.h + first * s->panel,
                   (size_t)((last - first) * s->panel) * sizeof *to);
    }
}

/* Panels of units, with all their gates. */
static void step_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const recurrent_state *s = w->d->state;
    for (int64_t g = 0; g < s->gates; g++)
        recur(w, g, first, last);
    finish(w, s->finish, w->d->next, first, last);
}

/* The two halves of a GRU's step: the second needs the whole state behind the reset gate. */
static void reset_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    for (int64_t g = 0; g < GRU_FRESH; g++)
        recur(w, g, first, last);
    finish(w, QN_CELL_GRU_RESET, w->d->extra, first, last);
}

static void fresh_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    recur(w, GRU_FRESH, first, last);
    finish(w, QN_CELL_GRU, w->d->next, first, last);
}

static void run_step(direction *d, const qn_step_io *io, int64_t step, float *sums)
{
    const recurrent_state *s = d->state;
    const work w = {.d = d, .step = step, .sums = sums};
    const int64_t alone = ALONE_BELOW / (s->gates * s->panel * s->hidden * s->batch) + 1;
    for (int64_t b = 0; b < s->batch; b++)
        d->h_rows[b] = d->h + b * s->pitch;
    if (s->finish == QN_CELL_GRU) {
        qn_parallel(io->threads, s->panels, alone, reset_range, &w);
        qn_parallel(io->threads, s->panels, alone, fresh_range, &w);
    } else {
        qn_parallel(io->threads, s->panels, alone, step_range, &w);
    }
    float *before = d->h;
    d->h = d->next;
    d->next = before;
}

/* The products of steps [first, first + count) with the sequence. */
static void project(const direction *d, const qn_step_io *io, int64_t first, int64_t count)
{
    const recurrent_state *s = d->state;
    const float *x = io->in[IN_X]->data;
    const work w = {.d = d, .rows = count * s->batch};
    for (int64_t r = 0; r < w.rows; r++) {
        const int64_t b = r % s->batch, t = time_of(d, first + r / s->batch, b);
        d->rows[r] = x + (t * s->batch + b) * s->inputs;
    }
    qn_parallel(io->threads, s->gates * s->panels,
                ALONE_BELOW / (s->panel * s->inputs * w.rows) + 1, project_range, &w);
}

/* ---- States and results ---------------------------------------------------------------------- */

static void begin(float *to, const direction *d, const qn_tensor *from)
{
    const recurrent_state *s = d->state;
    memset(to, 0, (size_t)(s->batch * s->pitch) * sizeof *to);
    for (int64_t b = 0; from && b < s->batch; b++)
        memcpy(to + b * s->pitch,
               (const float *)from->data + (d->number * s->batch + b) * s->hidden,
               (size_t)s->hidden * sizeof *to);
}

/* Row `at` of an output that somebody wants; zeros where `from` is NULL. */
static void put(const direction *d, const qn_step_io *io, int32_t output, int64_t at,
                const float *from)
{
    const int64_t hidden = d->state->hidden;
    if (!io->out[output])
        return;
    float *to = (float *)io->out[output]->data + at * hidden;
    if (from)
        memcpy(to, from, (size_t)hidden * sizeof *to);
    else
        memset(to, 0, (size_t)hidden * sizeof *to);
}

static void put_step(const direction *d, const qn_step_io *io, int64_t step)
{
    const recurrent_state *s = d->state;
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t at = (time_of(d, step, b) * s->directions + d->number) * s->batch + b;
        put(d, io, Y, at, goes_on(d, step, b) ? d->h + b * s->pitch : NULL);
    }
}

static void put_states(const direction *d, const qn_step_io *io)
{
    const recurrent_state *s = d->state;
    for (int64_t b = 0; b < s->batch; b++) {
        put(d, io, Y_H, d->number * s->batch + b, d->h + b * s->pitch);
        put(d, io, Y_C, d->number * s->batch + b, d->c + b * s->pitch);
    }
}

static qn_status run_direction(direction *d, const qn_step_io *io)
{
    const recurrent_state *s = d->state;
    begin(d->h, d, io->in[IN_H]);
    begin(d->c, d, io->in[IN_C]);
    for (int64_t first = 0; first < s->steps; first += s->chunk) {
        const int64_t count = QN_MIN(s->chunk, s->steps - first);
        QN_TRY(qn_check_cancel(io->ctx));
        project(d, io, first, count);
        for (int64_t i = 0; i < count; i++) {
            run_step(d, io, first + i, d->sums + i * s->batch * s->gates * s->pitch);
            put_step(d, io, first + i);
        }
    }
    put_states(d, io);
    return QN_OK;
}

static qn_status check_lengths(const recurrent_state *s, const qn_step_io *io)
{
    const int32_t *lengths = io->in[IN_LENGTHS] ? io->in[IN_LENGTHS]->data : NULL;
    for (int64_t b = 0; lengths && b < s->batch; b++) {
        if (lengths[b] < 0 || lengths[b] > s->steps)
            return qn_fail(io->ctx, QN_E_INVALID,
                           "node '%s' (%s): sequence length %d is outside [0, %lld]", s->node->name,
                           s->node->op->name, (int)lengths[b], (long long)s->steps);
    }
    return QN_OK;
}

static qn_status recurrent_run(const void *state, void *bound, const qn_step_io *io)
{
    const recurrent_state *s = state;
    const int64_t all = s->batch * s->pitch;
    float *block = io->scratch;
    (void)bound;
    QN_TRY(check_lengths(s, io));
    for (int32_t number = 0; number < s->directions; number++) {
        direction d = {.state = s, .number = number};
        d.lengths = io->in[IN_LENGTHS] ? io->in[IN_LENGTHS]->data : NULL;
        d.h = block;
        d.next = block + all;
        d.c = block + 2 * all;
        d.extra = block + 3 * all;
        d.sums = block + 4 * all;
        d.rows = (const float **)(d.sums + s->chunk * all * s->gates);
        d.h_rows = d.rows + s->chunk * s->batch;
        d.extra_rows = d.h_rows + s->batch;
        for (int64_t b = 0; b < s->batch; b++)
            d.extra_rows[b] = d.extra + b * s->pitch;
        QN_TRY(run_direction(&d, io));
    }
    return QN_OK;
}

static size_t scratch_of(const recurrent_state *s)
{
    const size_t rows = (size_t)s->batch, pitch = (size_t)s->pitch, chunk = (size_t)s->chunk;
    return rows * pitch * (4 + chunk * (size_t)s->gates) * sizeof(float) +
           rows * (chunk + 2) * sizeof(float *);
}

/* ---- Packing --------------------------------------------------------------------------------- */

/* W or R of one direction, [gates, hidden, depth], as panels */
static void pack(float *to, const recurrent_state *s, const qn_tensor *from, int64_t d,
                 int64_t depth)
{
    for (int64_t g = 0; g < s->gates; g++) {
        for (int64_t k = 0; k < s->hidden; k++) {
            float *column = to + (g * s->pitch + k / s->panel * s->panel) * depth + k % s->panel;
            const int64_t row = (d * s->gates + g) * s->hidden + k;
            for (int64_t i = 0; i < depth; i++)
                column[i * s->panel] = (float)qn_tensor_f64(from, row * depth + i);
        }
    }
}

/* Wb + Rb; of a linear GRU's fresh state they stay apart. */
static void pack_bias(recurrent_state *s, const qn_tensor *from, int64_t d)
{
    const int64_t rows = s->gates * s->hidden;
    for (int64_t r = 0; from && r < rows; r++) {
        const int64_t gate = r / s->hidden, k = r % s->hidden;
        const double x = qn_tensor_f64(from, 2 * d * rows + r);
        const double h = qn_tensor_f64(from, (2 * d + 1) * rows + r);
        const bool apart = s->finish == QN_CELL_GRU_LINEAR && gate == GRU_FRESH;
        s->bias[(d * s->gates + gate) * s->pitch + k] = (float)(apart ? x : x + h);
        if (apart)
            s->bias_h[d * s->pitch + k] = (float)h;
    }
}

static qn_status alloc_zero(float **out, qn_claim *claim, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof **out;
    *out = qn_build_alloc_weights(claim->builder, bytes);
    QN_TRY_ALLOC(qn_build_context(claim->builder), *out);
    memset(*out, 0, bytes);
    return QN_OK;
}

static qn_status recurrent_prepare(qn_claim *claim)
{
    recurrent_state *s = claim->state;
    const qn_node *node = claim->node;
    const qn_tensor *bias = node->n_in > B && node->in[B] ? node->in[B]->data : NULL;
    const int64_t width = s->gates * s->pitch;
    QN_TRY(alloc_zero(&s->weights_x, claim, s->directions * width * s->inputs));
    QN_TRY(alloc_zero(&s->weights_h, claim, s->directions * width * s->hidden));
    QN_TRY(alloc_zero(&s->bias, claim, s->directions * width));
    QN_TRY(alloc_zero(&s->bias_h, claim, s->directions * s->pitch));
    for (int64_t d = 0; d < s->directions; d++) {
        pack(s->weights_x + d * width * s->inputs, s, node->in[W]->data, d, s->inputs);
        pack(s->weights_h + d * width * s->hidden, s, node->in[R]->data, d, s->hidden);
        pack_bias(s, bias, d);
    }
    return QN_OK;
}

/* ---- Claim ----------------------------------------------------------------------------------- */

static qn_value *input(const qn_node *node, int32_t i)
{
    return i < node->n_in ? node->in[i] : NULL;
}

/* The row whose activations the node has in all its directions; NULL: none. */
static const cell *cell_of(const qn_node *node)
{
    const qn_recurrent_attrs *a = node->attrs;
    for (size_t i = 0; i < QN_COUNT_OF(cells); i++) {
        const cell *c = &cells[i];
        const int32_t count = c->activations * (int32_t)qn_recurrent_directions(a);
        bool same = c->op == node->op;
        for (int32_t k = 0; same && k < count; k++) {
            qn_activation found;
            const qn_squash wanted = c->usual[k % c->activations];
            same = qn_activation_of(&found, a, (size_t)k, wanted) && found.kind == wanted;
        }
        if (same)
            return c;
    }
    return NULL;
}

static bool is_usual(const qn_node *node)
{
    const qn_recurrent_attrs *a = node->attrs;
    for (int32_t i = W; i <= B; i++) {
        if (input(node, i) && !input(node, i)->data)
            return false;
    }
    return !input(node, PEEPHOLES) && isinf(a->clip) && !a->input_forget && !a->layout;
}

/* Left out, or of `count` elements when the plan is made. */
static bool fits(const qn_claim *claim, int32_t i, int64_t count)
{
    const qn_value *value = input(claim->node, i);
    qn_tensor shape;
    return !value ||
           (qn_build_shape(&shape, claim->builder, value) && qn_tensor_count(&shape) == count);
}

static void set_sizes(recurrent_state *s, const qn_tensor *x, const qn_tensor *r)
{
    s->steps = x->dims[0];
    s->batch = x->dims[1];
    s->inputs = x->dims[2];
    s->hidden = r->dims[2];
    s->panel = QN_PANEL_VECTORS * s->kernels->width;
    s->panels = (s->hidden + s->panel - 1) / s->panel;
    s->pitch = s->panels * s->panel;
    s->chunk = QN_MIN(s->steps, QN_MAX(ROWS_AT_ONCE / s->batch, 1));
}

static const qn_kernel recurrent_kernel = {
    .name = "recurrent", .prepare = recurrent_prepare, .run = recurrent_run};

qn_status qn_claim_recurrent(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    const qn_recurrent_attrs *a = node->attrs;
    const cell *c = cell_of(node);
    qn_tensor x, r;
    if (!c || !is_usual(node) || !qn_build_shape(&x, claim->builder, node->in[X]) ||
        !qn_build_shape(&r, claim->builder, node->in[R]) || x.dtype != QN_FLOAT32 ||
        qn_tensor_count(&x) == 0 || r.dims[2] == 0)
        return QN_OK;
    recurrent_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (recurrent_state){.kernels = qn_kernels_get(),
                           .node = node,
                           .gates = c->gates,
                           .finish = a->linear_before_reset ? QN_CELL_GRU_LINEAR : c->finish,
                           .directions = (int32_t)qn_recurrent_directions(a),
                           .backwards = a->direction == QN_DIRECTION_REVERSE};
    set_sizes(s, &x, &r);
    const int64_t states = s->directions * s->batch * s->hidden;
    if (!fits(claim, LENGTHS, s->batch) || !fits(claim, INITIAL_H, states) ||
        !fits(claim, INITIAL_C, states))
        return QN_OK;
    qn_claim_in(claim, node->in[X], QN_ROWS);
    qn_claim_in(claim, input(node, LENGTHS), QN_ROWS);
    qn_claim_in(claim, input(node, INITIAL_H), QN_ROWS);
    qn_claim_in(claim, input(node, INITIAL_C), QN_ROWS);
    for (int32_t o = 0; o < OUTPUTS; o++)
        qn_claim_out(claim, o < node->n_out ? node->out[o] : NULL, QN_ROWS);
    claim->scratch = scratch_of(s);
    claim->state = s;
    claim->kernel = &recurrent_kernel;
    *taken = true;
    return QN_OK;
}
