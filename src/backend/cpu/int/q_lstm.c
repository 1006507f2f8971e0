/* com.microsoft's DynamicQuantizeLSTM of constant weights: both products on integer tiles, that of
 * the sequence for all its steps at once; the gates are the reference's own. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/int/matmul/q_product.h"
#include "ops/dynamic_lstm.h"

enum { GATES = 4, X_IN = 0, H_IN = 1, C_IN = 2, OUTPUTS = 3 };

typedef struct direction {
    /* [time * batch, inputs] and [1, hidden] by [.., columns]. */
    qn_q_product x, h;
    qn_dlstm cell;
} direction;

typedef struct state {
    const qn_node *node;
    const qn_q_kernels *kernels;
    int64_t time, batch, inputs, hidden, columns, directions;
    const float *ones;
    direction dir[2];
    /* Scratch, in bytes from its beginning. */
    size_t x_at, h_at, x_sums_at, h_sums_at, state_at, cell_at, work_at, product_at;
} state;

/* ---- Running --------------------------------------------------------------------------------- */

static void *at(const qn_step_io *io, size_t offset)
{
    return (char *)io->scratch + offset;
}

/* Quantizes `count` numbers; returns how. */
static qn_qparams quantize(const state *s, uint8_t *to, const float *from, int64_t count)
{
    float ends[2];
    s->kernels->ends(ends, from, count);
    const qn_qparams q = qn_dynamic_ends(ends[0], ends[1]);
    const qn_q_cast cast = {.scale = q.scale, .round = qn_q_round_of(QN_UINT8, q.zero)};
    s->kernels->quantize(to, from, count, &cast);
    return q;
}

/* The state of an item before its first step. */
static void begin_item(const state *s, const qn_step_io *io, int64_t item)
{
    const float *from[2] = {io->in[H_IN] ? io->in[H_IN]->data : NULL,
                            io->in[C_IN] ? io->in[C_IN]->data : NULL};
    float *h = at(io, s->state_at);
    double *c = at(io, s->cell_at);
    for (int64_t k = 0; k < s->hidden; k++) {
        h[k] = from[0] ? from[0][item * s->hidden + k] : 0;
        c[k] = from[1] ? (double)from[1][item * s->hidden + k] : 0;
    }
}

static void put(const state *s, const qn_step_io *io, int32_t out, int64_t index, const float *h)
{
    if (io->out[out])
        memcpy((float *)io->out[out]->data + index * s->hidden, h, (size_t)s->hidden * sizeof *h);
}

/* One step, from the sums of the sequence's part. */
static void step(const state *s, const qn_step_io *io, const direction *d, const float *x_sums,
                 float x_scale)
{
    float *h = at(io, s->state_at), *h_sums = at(io, s->h_sums_at);
    const qn_qparams q = quantize(s, at(io, s->h_at), h, s->hidden);
    const qn_q_conv_data data = {
        .x = at(io, s->h_at), .y = (uint8_t *)h_sums, .scratch = at(io, s->product_at)};
    qn_q_product_run(&d->h, &data, (int32_t)q.zero, s->ones, io->threads);
    qn_dlstm_step(&d->cell, (const float *const[2]){x_sums, h_sums},
                  (const float[2]){x_scale, q.scale}, h, at(io, s->cell_at), at(io, s->work_at));
}

static void run_item(const state *s, const qn_step_io *io, int64_t d, int64_t b, float x_scale)
{
    const qn_recurrent_attrs *a = s->node->attrs;
    const bool backward = a->direction == QN_DIRECTION_REVERSE || d == 1;
    const float *sums = at(io, s->x_sums_at);
    float *h = at(io, s->state_at);
    const double *c = at(io, s->cell_at);
    begin_item(s, io, d * s->batch + b);
    for (int64_t i = 0; i < s->time; i++) {
        const int64_t t = backward ? s->time - 1 - i : i;
        step(s, io, &s->dir[d], sums + (t * s->batch + b) * s->columns, x_scale);
        put(s, io, 0, (t * s->directions + d) * s->batch + b, h);
    }
    put(s, io, 1, d * s->batch + b, h);
    for (int64_t k = 0; k < s->hidden; k++)
        h[k] = (float)c[k];
    put(s, io, 2, d * s->batch + b, h);
}

static qn_status lstm_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const qn_qparams q =
        quantize(s, at(io, s->x_at), io->in[X_IN]->data, s->time * s->batch * s->inputs);
    const qn_q_conv_data data = {
        .x = at(io, s->x_at), .y = at(io, s->x_sums_at), .scratch = at(io, s->product_at)};
    (void)bound;
    for (int64_t d = 0; d < s->directions; d++) {
        qn_q_product_run(&s->dir[d].x, &data, (int32_t)q.zero, s->ones, io->threads);
        for (int64_t b = 0; b < s->batch; b++)
            run_item(s, io, d, b, q.scale);
    }
    return QN_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------- */

static const qn_tensor *constant(const qn_node *node, int32_t i)
{
    return i < node->n_in && node->in[i] ? node->in[i]->data : NULL;
}

/* Parameters are one for a direction, or one for a column. */
static int64_t param_of(const qn_tensor *list, int64_t d, int64_t column, int64_t columns)
{
    return list->rank == 1 ? d : d * columns + column;
}

/* W (part 0) or R of direction d. */
static qn_status weights_of(qn_q_weights *out, const state *s, qn_builder *builder, int64_t d,
                            int part)
{
    const qn_tensor *w = constant(s->node, part ? QN_DLSTM_R : QN_DLSTM_W);
    const qn_tensor *zero = constant(s->node, QN_DLSTM_W_ZERO + 2 * part);
    int32_t *zeros = qn_build_alloc(builder, (size_t)s->columns * sizeof *zeros);
    QN_TRY_ALLOC(qn_build_context(builder), zeros);
    for (int64_t j = 0; j < s->columns; j++)
        zeros[j] = (int32_t)qn_tensor_f64(zero, param_of(zero, d, j, s->columns));
    *out = (qn_q_weights){.data = (const uint8_t *)w->data + d * w->dims[1] * s->columns,
                          .is_signed = w->dtype == QN_INT8,
                          .by_column = true,
                          .zeros = zeros};
    return QN_OK;
}

/* `count` numbers of a list as doubles; NULL where there is none. */
static qn_status doubles_of(const double **out, qn_builder *builder, const qn_tensor *list,
                            int64_t first, int64_t count)
{
    *out = NULL;
    if (!list)
        return QN_OK;
    double *to = qn_build_alloc(builder, (size_t)count * sizeof *to);
    QN_TRY_ALLOC(qn_build_context(builder), to);
    for (int64_t i = 0; i < count; i++)
        to[i] = qn_tensor_f64(list, first + i);
    *out = to;
    return QN_OK;
}

/* One part of a direction: weights, scales, bias. */
static qn_status prepare_part(state *s, qn_builder *builder, int64_t d, int part)
{
    const qn_tensor *scale = constant(s->node, QN_DLSTM_W_SCALE + 2 * part);
    direction *to = &s->dir[d];
    qn_q_weights w;
    QN_TRY(weights_of(&w, s, builder, d, part));
    QN_TRY(qn_q_product_pack(part ? &to->h : &to->x, builder, &w));
    float *scales = qn_build_alloc(builder, (size_t)s->columns * sizeof *scales);
    QN_TRY_ALLOC(qn_build_context(builder), scales);
    for (int64_t j = 0; j < s->columns; j++)
        scales[j] = (float)qn_tensor_f64(scale, param_of(scale, d, j, s->columns));
    to->cell.scale[part] = scales;
    return doubles_of(&to->cell.bias[part], builder, constant(s->node, QN_DLSTM_B),
                      (2 * d + part) * s->columns, s->columns);
}

static size_t take(size_t *at, int64_t count, size_t size)
{
    const size_t first = *at;
    *at += ((size_t)count * size + 63) / 64 * 64;
    return first;
}

static void place_scratch(state *s, qn_claim *claim)
{
    size_t end = 0, most = 0;
    for (int64_t d = 0; d < s->directions; d++) {
        most = QN_MAX(most, qn_q_product_scratch(&s->dir[d].x));
        most = QN_MAX(most, qn_q_product_scratch(&s->dir[d].h));
    }
    s->x_at = take(&end, s->time * s->batch * s->inputs, 1);
    s->h_at = take(&end, s->hidden, 1);
    s->x_sums_at = take(&end, s->time * s->batch * s->columns, sizeof(float));
    s->h_sums_at = take(&end, s->columns, sizeof(float));
    s->state_at = take(&end, s->hidden, sizeof(float));
    s->cell_at = take(&end, s->hidden, sizeof(double));
    s->work_at = take(&end, 2 * s->columns + s->hidden, sizeof(double));
    s->product_at = end;
    claim->scratch = end + most;
}

static qn_status lstm_prepare(qn_claim *claim)
{
    state *s = claim->state;
    const qn_tensor *peephole = constant(s->node, QN_DLSTM_P);
    for (int64_t d = 0; d < s->directions; d++) {
        for (int part = 0; part < 2; part++)
            QN_TRY(prepare_part(s, claim->builder, d, part));
        qn_dlstm_cell(&s->dir[d].cell.cell, s->node->attrs, s->hidden, d);
        QN_TRY(doubles_of(&s->dir[d].cell.cell.peephole, claim->builder, peephole,
                          d * 3 * s->hidden, 3 * s->hidden));
    }
    const int64_t params = qn_q_conv_params(&s->dir[0].x.conv);
    const int64_t count = QN_MAX(params, qn_q_conv_params(&s->dir[0].h.conv));
    float *ones = qn_build_alloc(claim->builder, (size_t)count * sizeof *ones);
    QN_TRY_ALLOC(qn_build_context(claim->builder), ones);
    for (int64_t i = 0; i < count; i++)
        ones[i] = 1;
    s->ones = ones;
    place_scratch(s, claim);
    return QN_OK;
}

static const qn_kernel lstm_kernel = {
    .name = "dynamic int8 lstm", .prepare = lstm_prepare, .run = lstm_run};

/* ---- Claiming -------------------------------------------------------------------------------- */

/* Everything but the sequence and the states is constant, and all items are of one length. */
static bool is_wanted(const qn_node *node)
{
    static const int32_t needed[] = {QN_DLSTM_W,      QN_DLSTM_R,       QN_DLSTM_W_SCALE,
                                     QN_DLSTM_W_ZERO, QN_DLSTM_R_SCALE, QN_DLSTM_R_ZERO};
    static const int32_t either[] = {QN_DLSTM_B, QN_DLSTM_P};
    for (size_t i = 0; i < QN_COUNT_OF(needed); i++) {
        if (!constant(node, needed[i]))
            return false;
    }
    for (size_t i = 0; i < QN_COUNT_OF(either); i++) {
        if (node->in[either[i]] && !constant(node, either[i]))
            return false;
    }
    return !node->in[QN_DLSTM_LENGTHS];
}

static qn_status open_state(state *s, bool *fits, const qn_claim *claim, const qn_tensor *x)
{
    const qn_node *node = claim->node;
    qn_q_weights w;
    *s = (state){.node = node,
                 .kernels = qn_q_kernels_get(),
                 .time = x->dims[0],
                 .batch = x->dims[1],
                 .inputs = x->dims[2],
                 .hidden = constant(node, QN_DLSTM_R)->dims[1],
                 .directions = qn_recurrent_directions(node->attrs)};
    s->columns = GATES * s->hidden;
    *fits = true;
    for (int64_t d = 0; d < s->directions; d++) {
        qn_q_product_open(&s->dir[d].x, s->time * s->batch, s->inputs, s->columns, false);
        qn_q_product_open(&s->dir[d].h, 1, s->hidden, s->columns, false);
        QN_TRY(weights_of(&w, s, claim->builder, d, 0));
        *fits = *fits && qn_q_product_fits(&s->dir[d].x, &w);
        QN_TRY(weights_of(&w, s, claim->builder, d, 1));
        *fits = *fits && qn_q_product_fits(&s->dir[d].h, &w);
    }
    return QN_OK;
}

qn_status qn_claim_q_lstm(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    bool fits = false;
    qn_tensor x;
    if (node->n_in < QN_DLSTM_INPUTS || !is_wanted(node) || node->in[QN_DLSTM_X]->data ||
        !qn_build_shape(&x, claim->builder, node->in[QN_DLSTM_X]) || qn_tensor_count(&x) == 0)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    QN_TRY(open_state(s, &fits, claim, &x));
    if (!fits)
        return QN_OK;
    qn_claim_in(claim, node->in[QN_DLSTM_X], QN_ROWS);
    qn_claim_in(claim, node->in[QN_DLSTM_H], QN_ROWS);
    qn_claim_in(claim, node->in[QN_DLSTM_C], QN_ROWS);
    for (int32_t o = 0; o < OUTPUTS; o++)
        qn_claim_out(claim, o < node->n_out ? node->out[o] : NULL, QN_ROWS);
    claim->state = s;
    claim->kernel = &lstm_kernel;
    *taken = true;
    return QN_OK;
}
