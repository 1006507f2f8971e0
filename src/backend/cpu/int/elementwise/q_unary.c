/* One integer to another, element by element in any layout: Clip, QTable, Requantize. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/quantize.h"

typedef struct state state;
typedef void chunk_fn(const state *s, uint8_t *y, const uint8_t *x, int64_t count);

struct state {
    const qn_q_kernels *kernels;
    chunk_fn *chunk;
    /* Elements, and their bytes. */
    int64_t count, x_size, y_size;
    qn_q_cast cast;
    int32_t limits[2];
    /* By the byte itself. */
    uint8_t table[256];
    /* By the number itself, where a side has 16 bits. */
    uint16_t *table_uint16;
    qn_q_look_up_fn *look_up;
};

typedef struct work {
    const state *s;
    uint8_t *y;
    const uint8_t *x;
} work;

static void unary_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t from = first * QN_Q_CHUNK, to = QN_MIN(last * QN_Q_CHUNK, s->count);
    s->chunk(s, w->y + from * s->y_size, w->x + from * s->x_size, to - from);
}

static qn_status unary_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    qn_parallel(io->threads, (s->count + QN_Q_CHUNK - 1) / QN_Q_CHUNK, QN_Q_ALONE, unary_range, &w);
    return QN_OK;
}

/* Input 0 and output 0 in the input's layout; *out NULL: not for here. */
static qn_status begin(state **out, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor shape;
    *out = NULL;
    if (!node->in[0] || node->in[0]->data || !node->out[0] ||
        !qn_build_shape(&shape, claim->builder, node->in[0]) || !qn_q_is_integer(shape.dtype) ||
        qn_tensor_count(&shape) == 0)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_q_kernels_get();
    s->count = qn_tensor_count(&shape);
    s->x_size = (int64_t)qn_dtype_size(shape.dtype);
    *out = s;
    return QN_OK;
}

static void close_claim(state *s, qn_claim *claim, qn_value *result, const qn_kernel *kernel)
{
    const qn_layout layout = qn_q_layout(claim, claim->node->in[0]);
    s->y_size = (int64_t)qn_dtype_size(result->type.dtype);
    qn_claim_in(claim, claim->node->in[0], layout);
    qn_claim_out(claim, result, layout);
    claim->in_place = s->x_size == s->y_size ? 0 : -1;
    claim->state = s;
    claim->kernel = kernel;
}

/* ---- Requantize ------------------------------------------------------------------------------ */

static void requantize_chunk(const state *s, uint8_t *y, const uint8_t *x, int64_t count)
{
    s->kernels->requantize(y, x, count, &s->cast);
}

static const qn_kernel requantize_kernel = {.name = "requantize", .run = unary_run};

qn_status qn_claim_q_requantize(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_value *value = node->out[0];
    qn_qparams x, y;
    state *s;
    QN_TRY(begin(&s, claim));
    if (!s || !qn_q_param_of(&x, node, 1, 2) || !qn_q_param_of(&y, node, 3, 4))
        return QN_OK;
    s->chunk = requantize_chunk;
    s->cast = (qn_q_cast){.from = qn_q_side_of(node->in[0]->type.dtype, x.zero),
                          .scale = (x.scale / y.scale),
                          .round = qn_q_round_of(value->type.dtype, y.zero),
                          .is_int16 = qn_dtype_size(value->type.dtype) == 2};
    if (qn_qparams_is_fixed_point(&y))
        qn_q_cast_fixed_point(&s->cast);
    qn_q_take_clips(claim, &value, &s->cast.round);
    close_claim(s, claim, value, &requantize_kernel);
    *taken = true;
    return QN_OK;
}

/* ---- Clip ------------------------------------------------------------------------------------ */

static void clip_chunk(const state *s, uint8_t *y, const uint8_t *x, int64_t count)
{
    s->kernels->clip(y, x, count, s->cast.from, s->limits);
}

static const qn_kernel clip_kernel = {.name = "clip", .run = unary_run};

qn_status qn_claim_q_clip(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_value *value = node->out[0];
    double limits[2];
    state *s;
    QN_TRY(begin(&s, claim));
    if (!s)
        return QN_OK;
    const qn_limits all = qn_limits_of(value->type.dtype);
    const double ends[2] = {(double)all.min, (double)all.max};
    for (int32_t i = 0; i < 2; i++) {
        limits[i] = ends[i];
        if (i + 1 < node->n_in && node->in[i + 1] && !qn_q_number(&limits[i], node, i + 1))
            return QN_OK;
    }
    qn_q_round *r = &s->cast.round;
    *r = (qn_q_round){(float)QN_MIN(limits[0], limits[1]), (float)limits[1], 0};
    qn_q_take_clips(claim, &value, r);
    s->cast.scale = 1;
    s->cast.from = qn_q_side_of(value->type.dtype, 0);
    s->cast.is_int16 = s->cast.from.is_int16;
    s->limits[0] = (int32_t)r->low + s->cast.from.flip;
    s->limits[1] = (int32_t)r->high + s->cast.from.flip;
    s->chunk = s->cast.is_int16 ? requantize_chunk : clip_chunk;
    close_claim(s, claim, value, &clip_kernel);
    *taken = true;
    return QN_OK;
}

/* ---- QTable ---------------------------------------------------------------------------------- */

static void table_chunk(const state *s, uint8_t *y, const uint8_t *x, int64_t count)
{
    s->look_up(y, x, count, s->table);
}

/* 8 to 16 bits, 16 to 8, 16 to 16: the table has 16 bits. */
static void table_uint16_chunk(const state *s, uint8_t *y, const uint8_t *x, int64_t count)
{
    const uint16_t *from = (const uint16_t *)(const void *)x, *table = s->table_uint16;
    uint16_t *to = (uint16_t *)(void *)y;
    if (s->x_size == 1) {
        for (int64_t i = 0; i < count; i++)
            to[i] = table[x[i]];
    } else if (s->y_size == 1) {
        for (int64_t i = 0; i < count; i++)
            y[i] = (uint8_t)table[from[i]];
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = table[from[i]];
    }
}

static const qn_kernel table_kernel = {.name = "table", .run = unary_run};

/* The table by the bits of x themselves. */
static qn_status make_table(state *s, const qn_claim *claim, const qn_tensor *from)
{
    const int64_t count = qn_tensor_count(from);
    const int64_t flip = qn_q_side_of(claim->node->in[0]->type.dtype, 0).flip;
    if (s->x_size == 1 && qn_dtype_size(from->dtype) == 1) {
        for (int64_t i = 0; i < count; i++)
            s->table[i] = ((const uint8_t *)from->data)[i ^ flip];
        s->look_up = qn_q_look_up_get();
        s->chunk = table_chunk;
        return QN_OK;
    }
    s->table_uint16 = qn_build_alloc(claim->builder, (size_t)count * sizeof *s->table_uint16);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s->table_uint16);
    for (int64_t i = 0; i < count; i++)
        s->table_uint16[i] = (uint16_t)(int64_t)qn_q_element(from, i ^ flip);
    s->chunk = table_uint16_chunk;
    return QN_OK;
}

qn_status qn_claim_q_table(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_tensor *table = node->in[1] ? node->in[1]->data : NULL;
    state *s;
    QN_TRY(begin(&s, claim));
    if (!s || !table || qn_tensor_count(table) != (s->x_size == 1 ? 256 : 65536))
        return QN_OK;
    QN_TRY(make_table(s, claim, table));
    close_claim(s, claim, node->out[0], &table_kernel);
    *taken = true;
    return QN_OK;
}
