/* Runs recurrent layers of integers. All items of a batch go through a step together; the products
 * with the sequence are done for some steps at once. */
#include <string.h>

#include "backend/cpu/int/recurrent/q_recurrent_layer.h"
#include "backend/cpu/parallel.h"
#include "ops/eval.h"

/* Products of weights that one thread does by itself. */
enum { ALONE_BELOW = 1 << 19 };

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct direction {
    const qn_qrl *state;
    const qn_qrl_direction *weights;
    const qn_step_io *io;
    int64_t number;
    /* [batch]; NULL: all steps. */
    const int32_t *lengths;
    /* X, and its scale where it was quantized here, else 1; its zero point as it is stored. */
    qn_tensor x;
    double x_unit, x_zero;
} direction;

static void *at(const qn_step_io *io, size_t offset)
{
    return (char *)io->scratch + offset;
}

static bool goes_on(const direction *d, int64_t step, int64_t b)
{
    return !d->lengths || step < d->lengths[b];
}

/* The time that item b is at in a step; behind its end those times that it leaves empty. */
static int64_t time_of(const direction *d, int64_t step, int64_t b)
{
    const int64_t length = d->lengths ? d->lengths[b] : d->state->n.steps;
    const bool backward = d->state->backward || d->number == 1;
    return backward && step < length ? length - 1 - step : step;
}

static int64_t state_at(const direction *d, int64_t b)
{
    const qn_qrl *s = d->state;
    return (s->by_batch ? b * s->n.directions + d->number : d->number * s->n.batch + b) *
           s->n.hidden;
}

static int64_t output_at(const direction *d, int64_t t, int64_t b)
{
    const qn_qrl *s = d->state;
    const int64_t plain = (t * s->n.directions + d->number) * s->n.batch + b;
    const int64_t by_batch = (b * s->n.steps + t) * s->n.directions + d->number;
    return (s->by_batch ? by_batch : plain) * s->n.hidden;
}

/* `count` numbers as products read them, from number `first` on. */
static void store(uint8_t *to, const void *from, int64_t first, int64_t count,
                  const qn_q_recurrent_form *form)
{
    const uint8_t *bytes = (const uint8_t *)from + first;
    const uint16_t *words = (const uint16_t *)from + first;
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
    const qn_qrl *state;
    qn_q_recurrent_product product;
} work;

static void product_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const qn_qrl *s = w->state;
    const int64_t columns = first * s->kernels->lanes;
    const int64_t vector = qn_qrl_vector(s, w->product.groups);
    qn_q_recurrent_product part = w->product;
    part.y = (char *)part.y + (size_t)columns * qn_qrl_sum_size(s);
    part.m += first * vector;
    part.sums += columns;
    part.vectors = last - first;
    s->kernels->product[s->product](&part);
}

/* All of a product from vector `first` on. */
static void run_product(const direction *d, const qn_q_recurrent_product *product, int64_t first)
{
    const qn_qrl *s = d->state;
    work w = {s, *product};
    const int64_t columns = first * s->kernels->lanes;
    const int64_t vector = qn_qrl_vector(s, product->groups);
    w.product.y = (char *)w.product.y + (size_t)columns * qn_qrl_sum_size(s);
    w.product.m += first * vector;
    w.product.sums += columns;
    qn_parallel(d->io->threads, product->vectors, ALONE_BELOW / (vector * product->rows) + 1,
                product_range, &w);
}

/* The products of steps [first, first + count) with the sequence. */
static void project(const direction *d, int64_t first, int64_t count)
{
    const qn_qrl *s = d->state;
    const size_t row = (size_t)s->n.groups_x * QN_QRL_GROUP_BYTES;
    uint8_t *x = at(d->io, s->at.x);
    const uint8_t **rows = at(d->io, s->at.rows);
    double *zeros = at(d->io, s->at.zeros);
    for (int64_t r = 0; r < count * s->n.batch; r++) {
        const int64_t b = r % s->n.batch, t = time_of(d, first + r / s->n.batch, b);
        const int64_t from = (s->by_batch ? b * s->n.steps + t : t * s->n.batch + b) * s->n.inputs;
        rows[r] = x + (size_t)r * row;
        store(x + (size_t)r * row, d->x.data, from, s->n.inputs, &s->x);
        zeros[r] = d->x_zero;
    }
    run_product(d,
                &(qn_q_recurrent_product){.y = at(d->io, s->at.sums_x),
                                          .y_stride = s->n.gates * s->n.pitch,
                                          .x = rows,
                                          .m = d->weights->x.weights,
                                          .sums = d->weights->x.sums,
                                          .zeros = zeros,
                                          .rows = count * s->n.batch,
                                          .groups = s->n.groups_x,
                                          .vectors = s->n.gates * s->n.vectors},
                0);
}

/* Quantizes `count` numbers while running. */
static qn_qparams quantize(uint8_t *to, const qn_qrl *s, const float *from, int64_t count)
{
    float ends[2];
    s->elements->ends(ends, from, count);
    const qn_qparams q = qn_dynamic_ends(ends[0], ends[1]);
    const qn_q_cast cast = {.scale = q.scale, .round = qn_q_round_of(QN_UINT8, q.zero)};
    s->elements->quantize(to, from, count, &cast);
    return q;
}

/* The state of item b, a DynamicQuantizeLSTM's; returns its zero point. */
static double quantize_state(const direction *d, int64_t b, uint8_t *stored)
{
    const qn_qrl *s = d->state;
    const float *real = (const float *)at(d->io, s->at.real) + b * s->n.pitch;
    uint8_t *bytes = at(d->io, s->at.bytes_h);
    const qn_qparams q = quantize(bytes, s, real, s->n.hidden);
    ((double *)at(d->io, s->at.units))[b] = (double)q.scale;
    store(stored, bytes, 0, s->n.hidden, &s->h);
    return (double)q.zero;
}

/* The state's products of gates [first, last), or those of what the reset gate leaves of it. */
static void recur(const direction *d, int64_t first, int64_t last, size_t stored_at)
{
    const qn_qrl *s = d->state;
    const uint8_t **rows = at(d->io, s->at.rows);
    double *zeros = at(d->io, s->at.zeros);
    for (int64_t b = 0; b < s->n.batch; b++) {
        uint8_t *stored = (uint8_t *)at(d->io, stored_at) + (size_t)b * qn_qrl_stored_size(s);
        rows[b] = stored;
        zeros[b] = s->is_dynamic ? quantize_state(d, b, stored)
                                 : (double)(d->weights->cell.y.zero - s->h.offset);
    }
    run_product(d,
                &(qn_q_recurrent_product){.y = at(d->io, s->at.sums_h),
                                          .y_stride = s->n.gates * s->n.pitch,
                                          .x = rows,
                                          .m = d->weights->h.weights,
                                          .sums = d->weights->h.sums,
                                          .zeros = zeros,
                                          .rows = s->n.batch,
                                          .groups = s->n.groups_h,
                                          .vectors = (last - first) * s->n.vectors},
                first * s->n.vectors);
}

/* What the kernels need of item b in a step, the row-th of those whose products are done. */
static qn_q_recurrent_step step_of(const direction *d, int64_t b, int64_t row)
{
    const qn_qrl *s = d->state;
    const size_t sums = (size_t)(s->n.gates * s->n.pitch) * qn_qrl_sum_size(s);
    return (qn_q_recurrent_step){
        .cell = &d->weights->cell,
        .pitch = s->n.pitch,
        .sum_x = (const char *)at(d->io, s->at.sums_x) + (size_t)row * sums,
        .sum_h = (const char *)at(d->io, s->at.sums_h) + (size_t)b * sums,
        .has_double_sums = s->has_double_sums,
        .x_unit = d->x_unit,
        .h_unit = s->is_dynamic ? ((const double *)at(d->io, s->at.units))[b] : 1,
        .real = s->is_dynamic ? (float *)at(d->io, s->at.real) + b * s->n.pitch : NULL,
        .h = (int32_t *)at(d->io, s->at.h) + b * s->n.pitch,
        .c = (int32_t *)at(d->io, s->at.c) + b * s->n.pitch,
        .stored = (uint8_t *)at(d->io, s->at.stored) + (size_t)b * qn_qrl_stored_size(s),
        .form = s->h,
        .y_is_int16 = qn_dtype_size(s->h.dtype) == sizeof(int16_t)};
}

/* Where Y has the state of item b at time t; NULL: it is not wanted. */
static void *result_at(const direction *d, int64_t t, int64_t b)
{
    const qn_tensor *y = d->io->out[QN_QRL_Y];
    return y ? (char *)y->data + (size_t)output_at(d, t, b) * qn_dtype_size(y->dtype) : NULL;
}

static void put_zeros(const direction *d, int64_t t, int64_t b)
{
    const qn_tensor *y = d->io->out[QN_QRL_Y];
    const int64_t zero = d->weights->cell.y.zero;
    if (y && d->state->is_dynamic)
        memset(result_at(d, t, b), 0, (size_t)d->state->n.hidden * sizeof(float));
    for (int64_t k = 0; y && !d->state->is_dynamic && k < d->state->n.hidden; k++)
        qn_store_i64(y->data, y->dtype, output_at(d, t, b) + k, &zero, 1);
}

static void reset_all(const direction *d, int64_t step, int64_t row)
{
    const qn_qrl *s = d->state;
    for (int64_t b = 0; b < s->n.batch; b++) {
        qn_q_recurrent_step item = step_of(d, b, row + b);
        item.stored = (uint8_t *)at(d->io, s->at.reset) + (size_t)b * qn_qrl_stored_size(s);
        if (goes_on(d, step, b))
            s->kernels->reset(&item);
    }
}

/* row: that of the step's first item among those whose products are done. */
static void run_step(const direction *d, int64_t step, int64_t row)
{
    const qn_qrl *s = d->state;
    const qn_qcell_kind kind = d->weights->cell.kind;
    const bool resets = kind == QN_QCELL_GRU;
    recur(d, 0, resets ? s->n.gates - 1 : s->n.gates, s->at.stored);
    if (resets) {
        reset_all(d, step, row);
        recur(d, s->n.gates - 1, s->n.gates, s->at.reset);
    }
    for (int64_t b = 0; b < s->n.batch; b++) {
        const int64_t t = time_of(d, step, b);
        qn_q_recurrent_step item = step_of(d, b, row + b);
        item.y = result_at(d, t, b);
        if (goes_on(d, step, b))
            s->kernels->steps[kind](&item);
        else
            put_zeros(d, t, b);
        if (goes_on(d, step, b) && item.real && item.y)
            memcpy(item.y, item.real, (size_t)s->n.hidden * sizeof(float));
    }
}

/* ---- States ---------------------------------------------------------------------------------- */

/* `count` numbers of the state, each plus `shift`, of which the low bits stay. */
static void put_integers(void *to, bool is_int16, const int32_t *h, int64_t shift, int64_t count)
{
    const uint32_t off = (uint32_t)shift;
    uint16_t *words = to;
    uint8_t *bytes = to;
    for (int64_t k = 0; is_int16 && k < count; k++)
        words[k] = (uint16_t)((uint32_t)h[k] + off);
    for (int64_t k = 0; !is_int16 && k < count; k++)
        bytes[k] = (uint8_t)((uint32_t)h[k] + off);
}

/* The states of item b where they are given. */
static void take_states(const direction *d, int64_t b, const qn_q_recurrent_step *item)
{
    const qn_tensor *h = d->io->in[QN_QRL_H], *c = d->io->in[QN_QRL_C];
    const int64_t first = state_at(d, b);
    for (int64_t k = 0; h && !item->real && k < d->state->n.hidden; k++)
        item->h[k] = (int32_t)(qn_tensor_i64(h, first + k) - d->weights->cell.y.zero);
    for (int64_t k = 0; c && k < d->state->n.hidden; k++)
        item->c[k] = qn_qcell_from_float(((const float *)c->data)[first + k]);
    if (h && item->real)
        memcpy(item->real, (const float *)h->data + first,
               (size_t)d->state->n.hidden * sizeof *item->real);
}

static void begin(const direction *d)
{
    const qn_qrl *s = d->state;
    const size_t pitch = (size_t)s->n.pitch;
    for (int64_t b = 0; b < s->n.batch; b++) {
        const qn_q_recurrent_step item = step_of(d, b, 0);
        memset(item.h, 0, pitch * sizeof *item.h);
        memset(item.c, 0, pitch * sizeof *item.c);
        if (item.real)
            memset(item.real, 0, pitch * sizeof *item.real);
        take_states(d, b, &item);
        put_integers(item.stored, s->h.as_int16, item.h, d->weights->cell.y.zero - s->h.offset,
                     s->n.pitch);
    }
    memset(at(d->io, s->at.reset), 0, (size_t)s->n.batch * qn_qrl_stored_size(s));
}

static void end(const direction *d)
{
    const qn_tensor *h = d->io->out[QN_QRL_Y_H], *c = d->io->out[QN_QRL_Y_C];
    const int64_t hidden = d->state->n.hidden;
    for (int64_t b = 0; b < d->state->n.batch; b++) {
        const qn_q_recurrent_step item = step_of(d, b, 0);
        const int64_t first = state_at(d, b);
        if (h && item.real)
            memcpy((float *)h->data + first, item.real, (size_t)hidden * sizeof *item.real);
        else if (h)
            put_integers((char *)h->data + (size_t)first * qn_dtype_size(h->dtype), item.y_is_int16,
                         item.h, d->weights->cell.y.zero, hidden);
        for (int64_t k = 0; c && k < hidden; k++)
            ((float *)c->data)[first + k] = qn_qcell_to_float(item.c[k]);
    }
}

static qn_status check_lengths(const qn_qrl *s, const qn_step_io *io)
{
    const int32_t *lengths = io->in[QN_QRL_LENGTHS] ? io->in[QN_QRL_LENGTHS]->data : NULL;
    for (int64_t b = 0; lengths && b < s->n.batch; b++) {
        if (lengths[b] < 0 || lengths[b] > s->n.steps)
            return qn_fail(io->ctx, QN_E_INVALID,
                           "node '%s' (%s): sequence length %d is outside [0, %lld]", s->node->name,
                           s->node->op->name, (int)lengths[b], (long long)s->n.steps);
    }
    return QN_OK;
}

static qn_status run_direction(const direction *d)
{
    const qn_qrl_sizes *n = &d->state->n;
    begin(d);
    for (int64_t first = 0; first < n->steps; first += n->chunk) {
        const int64_t count = QN_MIN(n->chunk, n->steps - first);
        QN_TRY(qn_check_cancel(d->io->ctx));
        project(d, first, count);
        for (int64_t i = 0; i < count; i++)
            run_step(d, first + i, i * n->batch);
    }
    end(d);
    return QN_OK;
}

qn_status qn_qrl_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const qn_qrl *s = opaque;
    const qn_qrl_sizes *n = &s->n;
    direction d = {.state = s, .io = io, .x = *io->in[QN_QRL_X], .x_unit = 1, .x_zero = s->x_zero};
    (void)bound;
    QN_TRY(check_lengths(s, io));
    memset(at(io, s->at.x), 0, (size_t)(n->chunk * n->batch * n->groups_x) * QN_QRL_GROUP_BYTES);
    if (s->is_dynamic) {
        const qn_qparams q =
            quantize(at(io, s->at.bytes_x), s, d.x.data, n->steps * n->batch * n->inputs);
        d.x.data = at(io, s->at.bytes_x);
        d.x_unit = (double)q.scale;
        d.x_zero = (double)q.zero;
    }
    d.lengths = io->in[QN_QRL_LENGTHS] ? io->in[QN_QRL_LENGTHS]->data : NULL;
    for (d.number = 0; d.number < n->directions; d.number++) {
        d.weights = &s->dir[d.number];
        QN_TRY(run_direction(&d));
    }
    return QN_OK;
}
