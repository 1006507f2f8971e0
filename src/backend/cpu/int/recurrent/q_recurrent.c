/* QLSTM, QGRU and QRNN of constant weights. All items of a batch go through a step together; the
 * products with the sequence are done for some steps at once. */
#include "backend/cpu/int/recurrent/q_recurrent.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel.h"
#include "base/cpu.h"
#include "ops/eval.h"

enum { IN_X, IN_LENGTHS, IN_H, IN_C }; /* of the claim */
enum { Y, Y_H, Y_C, OUTPUTS };
enum {
    /* Rows of the sequence. */
    ROWS_AT_ONCE = 64,
    /* Products of weights that one thread does by itself. */
    ALONE_BELOW = 1 << 19,
    /* The longest row whose sum of products of 8 bits fits 32 bits. */
    LONGEST_ROW = 65536,
    GROUP_BYTES = 4
};

/* W or R of one direction, packed. */
typedef struct packed {
    uint8_t *weights;
    double *start;
} packed;

typedef struct direction_weights {
    /* Its lists are padded. */
    qn_qcell cell;
    packed x, h;
} direction_weights;

/* Bytes from the beginning of the scratch memory. */
typedef struct q_recurrent_scratch {
    size_t x, sums_x, sums_h, h, c, stored, reset, rows;
} q_recurrent_scratch;

typedef struct q_recurrent_state {
    const qn_q_recurrent_kernels *kernels;
    const qn_node *node;
    int64_t steps, batch, inputs, hidden, gates, directions;
    /* What pads a gate to whole vectors; vectors of a gate; groups of a row of W and R. */
    int64_t pitch, vectors, groups_x, groups_h;
    int64_t chunk;
    bool backward, by_batch, is_wide;
    /* How X and the state are stored. */
    qn_q_recurrent_form x, h;
    direction_weights dir[2];
    q_recurrent_scratch at;
} q_recurrent_state;

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct direction {
    const q_recurrent_state *state;
    const direction_weights *weights;
    const qn_step_io *io;
    int64_t number;
    /* [batch]; NULL: all steps. */
    const int32_t *lengths;
} direction;

static void *at(const qn_step_io *io, size_t offset)
{
    return (char *)io->scratch + offset;
}

static size_t sum_size(const q_recurrent_state *s)
{
    return s->is_wide ? sizeof(double) : sizeof(int32_t);
}

/* Bytes of a stored number of X or the state. */
static size_t form_size(const qn_q_recurrent_form *form)
{
    return form->as_int16 ? sizeof(int16_t) : 1;
}

static size_t stored_size(const q_recurrent_state *s)
{
    return (size_t)s->pitch * form_size(&s->h);
}

static bool goes_on(const direction *d, int64_t step, int64_t b)
{
    return !d->lengths || step < d->lengths[b];
}

/* The time that item b is at in a step; behind its end those times that it leaves empty. */
static int64_t time_of(const direction *d, int64_t step, int64_t b)
{
    const int64_t length = d->lengths ? d->lengths[b] : d->state->steps;
    const bool backward = d->state->backward || d->number == 1;
    return backward && step < length ? length - 1 - step : step;
}

static int64_t state_at(const direction *d, int64_t b)
{
    const q_recurrent_state *s = d->state;
    return (s->by_batch ? b * s->directions + d->number : d->number * s->batch + b) * s->hidden;
}

static int64_t output_at(const direction *d, int64_t t, int64_t b)
{
    const q_recurrent_state *s = d->state;
    const int64_t plain = (t * s->directions + d->number) * s->batch + b;
    const int64_t by_batch = (b * s->steps + t) * s->directions + d->number;
    return (s->by_batch ? by_batch : plain) * s->hidden;
}

/* `count` numbers of a tensor as products read them. */
static void store(uint8_t *to, const qn_tensor *from, int64_t first, int64_t count,
                  const qn_q_recurrent_form *form)
{
    const uint8_t *bytes = (const uint8_t *)from->data + first;
    const uint16_t *words = (const uint16_t *)from->data + first;
    int16_t *as_int16 = (int16_t *)(void *)to;
    if (!form->as_int16) {
        const uint8_t flip = form->offset ? 0x80 : 0;
        for (int64_t i = 0; i < count; i++)
            to[i] = bytes[i] ^ flip;
    } else if (form->dtype == QN_UINT8) {
        for (int64_t i = 0; i < count; i++)
            as_int16[i] = bytes[i];
    } else if (form->dtype == QN_INT8) {
        for (int64_t i = 0; i < count; i++)
            as_int16[i] = (int8_t)bytes[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            as_int16[i] = (int16_t)(words[i] - (uint16_t)form->offset);
    }
}

/* Vectors [first, last) of a product. */
typedef struct work {
    const q_recurrent_state *state;
    qn_q_recurrent_product product;
} work;

static void product_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const q_recurrent_state *s = w->state;
    const int64_t columns = first * s->kernels->lanes;
    const int64_t vector = w->product.groups * GROUP_BYTES * s->kernels->lanes;
    qn_q_recurrent_product part = w->product;
    part.y = (char *)part.y + (size_t)columns * sum_size(s);
    part.m += first * vector * (s->is_wide ? 2 : 1);
    part.start += columns;
    part.vectors = last - first;
    s->kernels->product[s->is_wide](&part);
}

/* All of a product from vector `first` on. */
static void run_product(const direction *d, const qn_q_recurrent_product *product, int64_t first)
{
    const q_recurrent_state *s = d->state;
    work w = {s, *product};
    const int64_t columns = first * s->kernels->lanes;
    const int64_t vector = product->groups * GROUP_BYTES * s->kernels->lanes;
    w.product.y = (char *)w.product.y + (size_t)columns * sum_size(s);
    w.product.m += first * vector * (s->is_wide ? 2 : 1);
    w.product.start += columns;
    qn_parallel(d->io->threads, product->vectors, ALONE_BELOW / (vector * product->rows) + 1,
                product_range, &w);
}

/* The products of steps [first, first + count) with the sequence. */
static void project(const direction *d, int64_t first, int64_t count)
{
    const q_recurrent_state *s = d->state;
    const size_t row = (size_t)s->groups_x * GROUP_BYTES;
    uint8_t *x = at(d->io, s->at.x);
    const uint8_t **rows = at(d->io, s->at.rows);
    for (int64_t r = 0; r < count * s->batch; r++) {
        const int64_t b = r % s->batch, t = time_of(d, first + r / s->batch, b);
        const int64_t from = (s->by_batch ? b * s->steps + t : t * s->batch + b) * s->inputs;
        rows[r] = x + (size_t)r * row;
        store(x + (size_t)r * row, d->io->in[IN_X], from, s->inputs, &s->x);
    }
    run_product(d,
                &(qn_q_recurrent_product){.y = at(d->io, s->at.sums_x),
                                          .y_stride = s->gates * s->pitch,
                                          .x = rows,
                                          .m = d->weights->x.weights,
                                          .start = d->weights->x.start,
                                          .rows = count * s->batch,
                                          .groups = s->groups_x,
                                          .vectors = s->gates * s->vectors},
                0);
}

/* The state's products of gates [first, last), or those of what the reset gate leaves of it. */
static void recur(const direction *d, int64_t first, int64_t last, size_t stored_at)
{
    const q_recurrent_state *s = d->state;
    const uint8_t **rows = at(d->io, s->at.rows);
    for (int64_t b = 0; b < s->batch; b++)
        rows[b] = (const uint8_t *)at(d->io, stored_at) + (size_t)b * stored_size(s);
    run_product(d,
                &(qn_q_recurrent_product){.y = at(d->io, s->at.sums_h),
                                          .y_stride = s->gates * s->pitch,
                                          .x = rows,
                                          .m = d->weights->h.weights,
                                          .start = d->weights->h.start,
                                          .rows = s->batch,
                                          .groups = s->groups_h,
                                          .vectors = (last - first) * s->vectors},
                first * s->vectors);
}

/* What the kernels need of item b in a step, the row-th of those whose products are done. */
static qn_q_recurrent_step step_of(const direction *d, int64_t b, int64_t row)
{
    const q_recurrent_state *s = d->state;
    const size_t sums = (size_t)(s->gates * s->pitch) * sum_size(s);
    return (qn_q_recurrent_step){
        .cell = &d->weights->cell,
        .pitch = s->pitch,
        .sum_x = (const char *)at(d->io, s->at.sums_x) + (size_t)row * sums,
        .sum_h = (const char *)at(d->io, s->at.sums_h) + (size_t)b * sums,
        .is_wide = s->is_wide,
        .h = (int32_t *)at(d->io, s->at.h) + b * s->pitch,
        .c = (int32_t *)at(d->io, s->at.c) + b * s->pitch,
        .stored = (uint8_t *)at(d->io, s->at.stored) + (size_t)b * stored_size(s),
        .form = s->h,
        .y_is_int16 = qn_dtype_size(s->h.dtype) == sizeof(int16_t)};
}

/* Where Y has the state of item b at time t; NULL: it is not wanted. */
static void *result_at(const direction *d, int64_t t, int64_t b)
{
    const size_t size = qn_dtype_size(d->state->h.dtype);
    return d->io->out[Y] ? (char *)d->io->out[Y]->data + (size_t)output_at(d, t, b) * size : NULL;
}

static void put_zeros(const direction *d, int64_t t, int64_t b)
{
    const qn_qcell *cell = &d->weights->cell;
    for (int64_t k = 0; d->io->out[Y] && k < d->state->hidden; k++)
        qn_store_i64(d->io->out[Y]->data, d->state->h.dtype, output_at(d, t, b) + k, &cell->y.zero,
                     1);
}

static void reset_all(const direction *d, int64_t step, int64_t row)
{
    const q_recurrent_state *s = d->state;
    for (int64_t b = 0; b < s->batch; b++) {
        qn_q_recurrent_step item = step_of(d, b, row + b);
        item.stored = (uint8_t *)at(d->io, s->at.reset) + (size_t)b * stored_size(s);
        if (goes_on(d, step, b))
            s->kernels->reset(&item);
    }
}

/* row: that of the step's first item among those whose products are done. */
static void run_step(const direction *d, int64_t step, int64_t row)
{
    const q_recurrent_state *s = d->state;
    const qn_qcell_kind kind = d->weights->cell.kind;
    const bool resets = kind == QN_QCELL_GRU;
    recur(d, 0, resets ? s->gates - 1 : s->gates, s->at.stored);
    if (resets) {
        reset_all(d, step, row);
        recur(d, s->gates - 1, s->gates, s->at.reset);
    }
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t t = time_of(d, step, b);
        qn_q_recurrent_step item = step_of(d, b, row + b);
        item.y = result_at(d, t, b);
        if (goes_on(d, step, b))
            s->kernels->steps[kind](&item);
        else
            put_zeros(d, t, b);
    }
}

/* ---- States ---------------------------------------------------------------------------------- */

static void begin(const direction *d)
{
    const q_recurrent_state *s = d->state;
    const qn_tensor *h = d->io->in[IN_H], *c = d->io->in[IN_C];
    const int64_t zero = d->weights->cell.y.zero;
    for (int64_t b = 0; b < s->batch; b++) {
        const qn_q_recurrent_step item = step_of(d, b, 0);
        memset(item.stored, 0, stored_size(s));
        for (int64_t k = 0; k < s->pitch; k++) {
            const bool real = k < s->hidden;
            const int64_t i = state_at(d, b) + k;
            item.h[k] = real && h ? (int32_t)(qn_tensor_i64(h, i) - zero) : 0;
            item.c[k] = real && c ? qn_qcell_from_float(((const float *)c->data)[i]) : 0;
            const int64_t number = item.h[k] + zero - s->h.offset;
            qn_store_i64(item.stored, s->h.as_int16 ? QN_INT16 : QN_UINT8, k, &number, 1);
        }
    }
    memset(at(d->io, s->at.reset), 0, (size_t)s->batch * stored_size(s));
}

static void end(const direction *d)
{
    const q_recurrent_state *s = d->state;
    for (int64_t b = 0; b < s->batch; b++) {
        const qn_q_recurrent_step item = step_of(d, b, 0);
        for (int64_t k = 0; k < s->hidden; k++) {
            const int64_t i = state_at(d, b) + k, h = item.h[k] + d->weights->cell.y.zero;
            if (d->io->out[Y_H])
                qn_store_i64(d->io->out[Y_H]->data, s->h.dtype, i, &h, 1);
            if (d->io->out[Y_C])
                ((float *)d->io->out[Y_C]->data)[i] = qn_qcell_to_float(item.c[k]);
        }
    }
}

static qn_status check_lengths(const q_recurrent_state *s, const qn_step_io *io)
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

static qn_status q_recurrent_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const q_recurrent_state *s = opaque;
    (void)bound;
    QN_TRY(check_lengths(s, io));
    memset(at(io, s->at.x), 0, (size_t)(s->chunk * s->batch * s->groups_x) * GROUP_BYTES);
    for (int64_t number = 0; number < s->directions; number++) {
        const direction d = {.state = s,
                             .weights = &s->dir[number],
                             .io = io,
                             .number = number,
                             .lengths = io->in[IN_LENGTHS] ? io->in[IN_LENGTHS]->data : NULL};
        begin(&d);
        for (int64_t first = 0; first < s->steps; first += s->chunk) {
            const int64_t count = QN_MIN(s->chunk, s->steps - first);
            QN_TRY(qn_check_cancel(io->ctx));
            project(&d, first, count);
            for (int64_t i = 0; i < count; i++)
                run_step(&d, first + i, i * s->batch);
        }
        end(&d);
    }
    return QN_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------- */

static const qn_tensor *constant(const qn_node *node, int32_t i)
{
    return i < node->n_in && node->in[i] ? node->in[i]->data : NULL;
}

/* Numbers of a group. */
static int64_t dot_of(const q_recurrent_state *s)
{
    return s->is_wide ? 2 : s->kernels->dot;
}

/* Number k of the weights of a lane whose vector begins at `to`. */
static void put_weight(uint8_t *to, const q_recurrent_state *s, int64_t lane, int64_t k, int64_t w)
{
    enum { BYTE = 256 };
    const int64_t dot = dot_of(s), lanes = s->kernels->lanes, group = k / dot * lanes * dot;
    const int64_t i = lane * dot + k % dot, low = w & (BYTE - 1), high = (w - low) / BYTE;
    if (s->is_wide) {
        qn_store_i64(to, QN_INT16, 2 * group + i, &high, 1);
        qn_store_i64(to, QN_INT16, 2 * group + lanes * dot + i, &low, 1);
    } else {
        qn_store_i64(to, dot == GROUP_BYTES ? QN_INT8 : QN_INT16, group + i, &w, 1);
    }
}

static qn_status pack(packed *to, const q_recurrent_state *s, qn_claim *claim, int64_t d, int part)
{
    const qn_tensor *w = constant(s->node, part ? QN_QREC_R : QN_QREC_W);
    const int64_t depth = w->dims[2], groups = part ? s->groups_h : s->groups_x;
    const int64_t lanes = s->kernels->lanes, columns = s->gates * s->pitch;
    const int64_t vector = groups * GROUP_BYTES * lanes * (s->is_wide ? 2 : 1);
    const int64_t zero = part ? s->dir[d].cell.y.zero - s->h.offset
                              : qn_tensor_i64(constant(s->node, QN_QREC_X_ZERO), 0) - s->x.offset;
    const size_t bytes = (size_t)(columns / lanes * vector);
    to->weights = qn_build_alloc_weights(claim->builder, bytes);
    to->start = qn_build_alloc_weights(claim->builder, (size_t)columns * sizeof(double));
    if (!to->weights || !to->start)
        return qn_fail_nomem(qn_build_context(claim->builder));
    memset(to->weights, 0, bytes);
    for (int64_t i = 0; i < columns; i++) {
        const int64_t gate = i / s->pitch, k = i % s->pitch;
        const int64_t row = (d * s->gates + gate) * s->hidden + k;
        int64_t sum = 0;
        for (int64_t j = 0; k < s->hidden && j < depth; j++) {
            const int64_t number = qn_tensor_i64(w, row * depth + j);
            put_weight(to->weights + i / lanes * vector, s, i % lanes, j, number);
            sum += number;
        }
        to->start[i] = (double)(-zero * sum);
    }
    return QN_OK;
}

/* `gates` lists of `hidden` numbers, padded. */
static qn_status pad(float **list, const q_recurrent_state *s, qn_claim *claim, int64_t gates)
{
    const size_t bytes = (size_t)(gates * s->pitch) * sizeof(float);
    float *to = qn_build_alloc_weights(claim->builder, bytes);
    QN_TRY_ALLOC(qn_build_context(claim->builder), to);
    memset(to, 0, bytes);
    for (int64_t g = 0; g < gates; g++)
        memcpy(to + g * s->pitch, *list + g * s->hidden, (size_t)s->hidden * sizeof *to);
    *list = to;
    return QN_OK;
}

static qn_status prepare_direction(q_recurrent_state *s, qn_claim *claim, int64_t d)
{
    enum { PEEPHOLES = 3 };
    const int64_t room = qn_qcell_room(s->node->op, s->hidden);
    const qn_tensor *in[QN_QREC_INPUTS];
    qn_qcell *cell = &s->dir[d].cell;
    float *lists = qn_build_alloc(claim->builder, (size_t)room * sizeof *lists);
    QN_TRY_ALLOC(qn_build_context(claim->builder), lists);
    for (int32_t i = 0; i < QN_QREC_INPUTS; i++)
        in[i] = constant(s->node, i);
    qn_qcell_make(cell, lists, s->node->op, s->node->attrs, in, d);
    QN_TRY(pad(&cell->x, s, claim, s->gates));
    QN_TRY(pad(&cell->r, s, claim, s->gates));
    QN_TRY(pad(&cell->bias, s, claim, s->gates));
    QN_TRY(pad(&cell->peephole, s, claim, PEEPHOLES));
    QN_TRY(pad(&cell->bias_r, s, claim, 1));
    QN_TRY(pack(&s->dir[d].x, s, claim, d, 0));
    return pack(&s->dir[d].h, s, claim, d, 1);
}

static qn_status q_recurrent_prepare(qn_claim *claim)
{
    q_recurrent_state *s = claim->state;
    for (int64_t d = 0; d < s->directions; d++)
        QN_TRY(prepare_direction(s, claim, d));
    return QN_OK;
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static const qn_q_recurrent_kernels *kernels_get(void)
{
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_VNNI)
        return &qn_q_recurrent_kernels_vnni;
    if (isa >= QN_ISA_AVX512)
        return &qn_q_recurrent_kernels_avx512;
    if (isa >= QN_ISA_AVX2)
        return &qn_q_recurrent_kernels_avx2;
#endif
    return &qn_q_recurrent_kernels_base;
}

static qn_q_recurrent_form form_of(const q_recurrent_state *s, qn_dtype dtype)
{
    const bool as_int16 = s->is_wide || s->kernels->dot == 2;
    const int32_t offset = dtype == QN_UINT16 ? 32768 : dtype == QN_INT8 && !as_int16 ? -128 : 0;
    return (qn_q_recurrent_form){dtype, offset, as_int16};
}

static size_t take(size_t *end, int64_t count, size_t size)
{
    const size_t first = *end;
    *end += ((size_t)count * size + 63) / 64 * 64;
    return first;
}

static void place_scratch(q_recurrent_state *s, qn_claim *claim)
{
    const int64_t rows = s->chunk * s->batch, columns = s->gates * s->pitch;
    size_t end = 0;
    s->at.x = take(&end, rows * s->groups_x, GROUP_BYTES);
    s->at.sums_x = take(&end, rows * columns, sum_size(s));
    s->at.sums_h = take(&end, s->batch * columns, sum_size(s));
    s->at.h = take(&end, s->batch * s->pitch, sizeof(int32_t));
    s->at.c = take(&end, s->batch * s->pitch, sizeof(int32_t));
    s->at.stored = take(&end, s->batch, stored_size(s));
    s->at.reset = take(&end, s->batch, stored_size(s));
    s->at.rows = take(&end, rows, sizeof(void *));
    claim->scratch = end;
}

/* All but sequence, lengths and states are constants. */
static bool is_wanted(const qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const bool given =
            i == QN_QREC_X || i == QN_QREC_LENGTHS || i == QN_QREC_H || i == QN_QREC_C;
        if (!given && node->in[i] && !node->in[i]->data)
            return false;
    }
    return true;
}

/* Left out, or of `count` elements when the plan is made. */
static bool fits(const qn_claim *claim, int32_t i, int64_t count)
{
    const qn_value *value = i < claim->node->n_in ? claim->node->in[i] : NULL;
    qn_tensor shape;
    return !value ||
           (qn_build_shape(&shape, claim->builder, value) && qn_tensor_count(&shape) == count);
}

static void open_state(q_recurrent_state *s, const qn_node *node, const qn_tensor *x)
{
    const qn_recurrent_attrs *a = node->attrs;
    const qn_tensor *r = constant(node, QN_QREC_R);
    const int64_t width = (int64_t)qn_dtype_size(x->dtype) + (int64_t)qn_dtype_size(r->dtype) +
                          (int64_t)qn_dtype_size(constant(node, QN_QREC_Y_ZERO)->dtype) +
                          (int64_t)qn_dtype_size(constant(node, QN_QREC_W)->dtype);
    *s = (q_recurrent_state){.kernels = kernels_get(),
                             .node = node,
                             .steps = x->dims[a->layout ? 1 : 0],
                             .batch = x->dims[a->layout ? 0 : 1],
                             .inputs = x->dims[2],
                             .hidden = r->dims[2],
                             .gates = qn_qcell_gates(node->op),
                             .directions = qn_recurrent_directions(a),
                             .backward = a->direction == QN_DIRECTION_REVERSE,
                             .by_batch = a->layout != 0,
                             .is_wide = width > 4};
    s->vectors = (s->hidden + s->kernels->lanes - 1) / s->kernels->lanes;
    s->pitch = s->vectors * s->kernels->lanes;
    s->groups_x = (s->inputs + dot_of(s) - 1) / dot_of(s);
    s->groups_h = (s->hidden + dot_of(s) - 1) / dot_of(s);
    s->chunk = QN_MIN(s->steps, QN_MAX(ROWS_AT_ONCE / QN_MAX(s->batch, 1), 1));
    s->x = form_of(s, x->dtype);
    s->h = form_of(s, constant(node, QN_QREC_Y_ZERO)->dtype);
}

static const qn_kernel q_recurrent_kernel = {
    .name = "int recurrent", .prepare = q_recurrent_prepare, .run = q_recurrent_run};

static void add_ends(qn_claim *claim)
{
    static const int32_t given[] = {QN_QREC_X, QN_QREC_LENGTHS, QN_QREC_H, QN_QREC_C};
    const qn_node *node = claim->node;
    for (size_t i = 0; i < QN_COUNT_OF(given); i++)
        qn_claim_in(claim, given[i] < node->n_in ? node->in[given[i]] : NULL, QN_ROWS);
    for (int32_t o = 0; o < OUTPUTS; o++)
        qn_claim_out(claim, o < node->n_out ? node->out[o] : NULL, QN_ROWS);
}

qn_status qn_claim_q_recurrent(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor x;
    if (!is_wanted(node) || node->in[QN_QREC_X]->data ||
        !qn_build_shape(&x, claim->builder, node->in[QN_QREC_X]) || qn_tensor_count(&x) == 0 ||
        constant(node, QN_QREC_R)->dims[2] == 0)
        return QN_OK;
    q_recurrent_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    open_state(s, node, &x);
    const int64_t states = s->directions * s->batch * s->hidden;
    if (s->inputs > LONGEST_ROW || s->hidden > LONGEST_ROW ||
        !fits(claim, QN_QREC_LENGTHS, s->batch) || !fits(claim, QN_QREC_H, states) ||
        !fits(claim, QN_QREC_C, states))
        return QN_OK;
    add_ends(claim);
    place_scratch(s, claim);
    claim->state = s;
    claim->kernel = &q_recurrent_kernel;
    *taken = true;
    return QN_OK;
}
