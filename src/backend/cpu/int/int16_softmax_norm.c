/* QLinearSoftmax and QLayerNormalization where a side has 16 bits: rows are read, computed as
 * floats and quantized. Formulas: docs/numerics.md. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/qlinear.h"

enum { PARTS = 16 }; /* items of a run, each with scratch of its own */

typedef struct state {
    const qn_q_kernels *kernels;
    /* Lines of n elements that are `inner` apart. */
    int64_t lines, n, inner;
    int64_t y_size;
    qn_q_side from;
    /* From the floats of a line. */
    qn_q_cast to;
    /* The exponentials of softmax, by the distance from the largest. */
    const uint32_t *table;
    float x_scale, epsilon;
    bool has_beta;
} state;

typedef struct work {
    const state *s;
    const void *x;
    uint8_t *y, *scratch;
    const float *gamma, *beta;
} work;

/* A line while it is computed: numbers, then floats in their place, then results of up to 16
 * bits. */
typedef struct line {
    int32_t *numbers;
    float *floats;
    uint8_t *results;
} line;

static size_t line_bytes(const state *s)
{
    return ((size_t)s->n * (2 * sizeof(float) + sizeof(uint16_t)) + 63) / 64 * 64;
}

static int64_t first_of(const state *s, int64_t index)
{
    return index / s->inner * s->n * s->inner + index % s->inner;
}

/* Stored ^ flip, which orders all types as unsigned. */
static void read_line(const line *l, const work *w, int64_t first)
{
    const state *s = w->s;
    const uint16_t *numbers = (const uint16_t *)w->x + first;
    const uint8_t *bytes = (const uint8_t *)w->x + first;
    for (int64_t i = 0; i < s->n; i++)
        l->numbers[i] =
            (s->from.is_int16 ? numbers[i * s->inner] : bytes[i * s->inner]) ^ s->from.flip;
}

static void write_line(const line *l, const work *w, int64_t first)
{
    const state *s = w->s;
    uint8_t *y = w->y + first * s->y_size;
    if (s->inner == 1) {
        s->kernels->quantize(y, l->floats, s->n, &s->to);
        return;
    }
    s->kernels->quantize(l->results, l->floats, s->n, &s->to);
    for (int64_t i = 0; i < s->n; i++)
        memcpy(y + i * s->inner * s->y_size, l->results + i * s->y_size, (size_t)s->y_size);
}

typedef void compute_fn(const line *l, const work *w);

static void softmax_line(const line *l, const work *w)
{
    const state *s = w->s;
    int32_t most = 0;
    uint64_t sum = 0;
    for (int64_t i = 0; i < s->n; i++)
        most = QN_MAX(most, l->numbers[i]);
    for (int64_t i = 0; i < s->n; i++) {
        const uint32_t e = s->table[most - l->numbers[i]];
        sum += e;
        l->floats[i] = (float)e;
    }
    const float whole = (float)sum;
    for (int64_t i = 0; i < s->n; i++)
        l->floats[i] = l->floats[i] / whole;
}

static void norm_line(const line *l, const work *w)
{
    const state *s = w->s;
    int64_t s1 = 0, s2 = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t a = l->numbers[i] - s->from.zero;
        s1 += a;
        s2 += a * a;
    }
    const float k = qn_qnorm_factor(s->n, s1, s2, s->x_scale, s->epsilon);
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t a = l->numbers[i] - s->from.zero;
        const float v = (float)(s->n * a - s1) * k * w->gamma[i];
        l->floats[i] = w->beta ? v + w->beta[i] : v;
    }
}

/* Item: a share of the lines. */
static void run_lines(const work *w, compute_fn *compute, int64_t item)
{
    const state *s = w->s;
    uint8_t *scratch = w->scratch + (size_t)item * line_bytes(s);
    const line l = {.numbers = (int32_t *)(void *)scratch,
                    .floats = (float *)(void *)scratch + s->n,
                    .results = scratch + (size_t)s->n * 2 * sizeof(float)};
    for (int64_t i = s->lines * item / PARTS; i < s->lines * (item + 1) / PARTS; i++) {
        read_line(&l, w, first_of(s, i));
        compute(&l, w);
        write_line(&l, w, first_of(s, i));
    }
}

static void softmax_range(const void *opaque, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        run_lines(opaque, softmax_line, i);
}

static void norm_range(const void *opaque, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        run_lines(opaque, norm_line, i);
}

static qn_status softmax_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const work w = {
        .s = opaque, .x = io->in[0]->data, .y = io->out[0]->data, .scratch = io->scratch};
    (void)bound;
    qn_parallel(io->threads, PARTS, 2, softmax_range, &w);
    return QN_OK;
}

static qn_status norm_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {.s = s,
                    .x = io->in[0]->data,
                    .y = io->out[0]->data,
                    .scratch = io->scratch,
                    .gamma = io->in[1]->data,
                    .beta = s->has_beta ? io->in[2]->data : NULL};
    (void)bound;
    qn_parallel(io->threads, PARTS, 2, norm_range, &w);
    return QN_OK;
}

static const qn_kernel softmax_kernel = {.name = "int16 softmax", .run = softmax_run};
static const qn_kernel norm_kernel = {.name = "int16 layer norm", .run = norm_run};

/* ---- Claiming -------------------------------------------------------------------------------- */

/* Which inputs hold scale and zero point of x and y. */
static qn_status begin(state **out, qn_tensor *shape, const qn_claim *claim, const int32_t at[4])
{
    const qn_node *node = claim->node;
    qn_qparams x, y;
    *out = NULL;
    if (!node->in[0] || node->in[0]->data || !node->out[0] ||
        !qn_q_is_integer(node->in[0]->type.dtype) || !qn_q_is_integer(node->out[0]->type.dtype) ||
        !qn_build_shape(shape, claim->builder, node->in[0]) || qn_tensor_count(shape) == 0 ||
        !qn_q_param_of(&x, node, at[0], at[1]) || !qn_q_param_of(&y, node, at[2], at[3]))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    const qn_dtype to = node->out[0]->type.dtype;
    s->kernels = qn_q_kernels_get();
    s->x_scale = x.scale;
    s->from = qn_q_side_of(shape->dtype, x.zero);
    s->y_size = (int64_t)qn_dtype_size(to);
    s->to = (qn_q_cast){
        .scale = y.scale, .round = qn_q_round_of(to, y.zero), .is_int16 = s->y_size == 2};
    *out = s;
    return QN_OK;
}

static void close_claim(state *s, qn_claim *claim, const qn_kernel *kernel)
{
    qn_claim_out(claim, claim->node->out[0], QN_ROWS);
    claim->scratch = line_bytes(s) * PARTS;
    claim->state = s;
    claim->kernel = kernel;
}

qn_status qn_claim_q_softmax_int16(bool *taken, qn_claim *claim)
{
    qn_tensor shape;
    int64_t outer;
    state *s;
    QN_TRY(begin(&s, &shape, claim, (const int32_t[4]){1, 2, 3, 4}));
    if (!s)
        return QN_OK;
    const int64_t entries = qn_qsoftmax_entries(shape.dtype);
    uint32_t *table = qn_build_alloc(claim->builder, (size_t)entries * sizeof *table);
    QN_TRY_ALLOC(qn_build_context(claim->builder), table);
    qn_qsoftmax_shape(&outer, &s->n, &s->inner, claim->node->attrs, &shape);
    qn_qsoftmax_table(table, s->x_scale, entries);
    s->table = table;
    s->lines = outer * s->inner;
    qn_claim_in(claim, claim->node->in[0], QN_ROWS);
    close_claim(s, claim, &softmax_kernel);
    *taken = true;
    return QN_OK;
}

static bool is_row(const qn_claim *claim, const qn_value *value, int64_t n)
{
    qn_tensor shape;
    return qn_build_shape(&shape, claim->builder, value) && shape.dtype == QN_FLOAT32 &&
           qn_tensor_count(&shape) == n;
}

qn_status qn_claim_q_layer_norm_int16(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_norm_attrs *a = node->attrs;
    qn_tensor shape;
    state *s;
    QN_TRY(begin(&s, &shape, claim, (const int32_t[4]){1, 2, 5, 6}));
    if (!s)
        return QN_OK;
    const int32_t axis = (int32_t)(a->axis < 0 ? a->axis + shape.rank : a->axis);
    s->n = qn_dims_product(shape.dims, axis, shape.rank);
    s->inner = 1;
    s->lines = qn_tensor_count(&shape) / s->n;
    s->epsilon = a->epsilon;
    s->has_beta = node->in[4] != NULL;
    if (!is_row(claim, node->in[3], s->n) || (s->has_beta && !is_row(claim, node->in[4], s->n)))
        return QN_OK;
    qn_claim_in(claim, node->in[0], QN_ROWS);
    qn_claim_in(claim, node->in[3], QN_ROWS);
    if (s->has_beta)
        qn_claim_in(claim, node->in[4], QN_ROWS);
    close_claim(s, claim, &norm_kernel);
    *taken = true;
    return QN_OK;
}
