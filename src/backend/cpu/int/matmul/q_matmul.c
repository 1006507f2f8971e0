/* QLinearMatMul and QMatMul of two computed matrices, or of stacks of constant ones: B is packed
 * when it is there, one product of the batch a time. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_conv.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantize.h"

typedef struct state {
    /* The convolution that is one product; weights and start are the run's. */
    qn_q_conv conv;
    qn_matmul shape;
    qn_q_tail tail;
    qn_mac_source b;
    float multiplier;
    /* In fixed point. */
    bool fixed_point;
    /* The bytes of one product; start: doubles of the sums' beginnings (begin_bytes), then
     * integers. */
    size_t weight_bytes, begin_bytes, start_bytes, scratch;
} state;

typedef struct work {
    const state *s;
    const qn_step_io *io;
} work;

/* ---- Running --------------------------------------------------------------------------------- */

static int64_t size_of(const qn_mac_source *source)
{
    return source->is_int16 ? 2 : 1;
}

static int32_t element(const state *s, const uint8_t *b, int64_t k, int64_t column)
{
    const int64_t at = k * s->shape.n + column;
    const uint8_t raw = b[at];
    if (!s->b.is_int16)
        return (s->b.is_signed ? (int8_t)raw : raw) - s->b.zero;
    const uint16_t number = ((const uint16_t *)(const void *)b)[at];
    return (s->b.is_signed ? (int16_t)number : number) - s->b.zero;
}

/* The last step, where k ends within it: as if rows without numbers followed. */
static void pack_rest(const state *s, uint8_t *to, const uint8_t *b, int64_t first, int64_t count)
{
    const qn_mac_kernels *kernels = s->conv.plan.kernels;
    const int64_t dot = kernels->dot, from = s->shape.k / dot * dot, rest = s->shape.k - from;
    const int64_t lanes = kernels->lanes;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t d = 0; d < rest; d++) {
            const int32_t x = element(s, b, from + d, first + i);
            const int16_t as_int16 = (int16_t)x, low = (int16_t)(x & 255);
            const int16_t high = (int16_t)((x - low) / 256);
            if (s->conv.shape.kind == QN_MAC_INT16_SPLIT) {
                memcpy(to + i * 4 + d * 2, &low, sizeof low);
                memcpy(to + lanes * 4 + i * 4 + d * 2, &high, sizeof high);
            } else if (kernels->weight_bytes == 2 * dot) {
                memcpy(to + i * 4 + d * 2, &as_int16, sizeof as_int16);
            } else {
                to[i * dot + d] = (uint8_t)x;
            }
        }
    }
}

/* [block][step][vector][lane][dot] of one B [k, n]. */
static void pack(const state *s, uint8_t *to, const uint8_t *b)
{
    const qn_q_conv *c = &s->conv;
    const int64_t width = qn_q_conv_block_filters(c), dot = c->plan.kernels->dot, n = s->shape.n;
    const int64_t bytes = c->plan.kernels->weight_bytes, size = size_of(&s->b);
    memset(to, 0, s->weight_bytes);
    for (int64_t block = 0; block < c->plan.blocks; block++) {
        const int64_t first = block * width, count = QN_MIN(width, n - first);
        const int64_t step = qn_q_conv_vectors(c, block) * c->plan.kernels->lanes * bytes;
        uint8_t *at = to + block * c->tiles.steps * width * bytes;
        int64_t k = 0;
        for (; k + dot <= s->shape.k; k += dot, at += step)
            c->plan.kernels->pack(at, b + (k * n + first) * size, n * size, count, &s->b);
        if (k < s->shape.k)
            pack_rest(s, at, b, first, count);
    }
}

/* What the zero point of A adds to sums of bytes, whose packed B lies there: see qn_q_conv_pack. */
static void begin_int8(const state *s, int32_t *start, const uint8_t *packed)
{
    const qn_q_conv *c = &s->conv;
    const qn_mac_kernels *kernels = c->plan.kernels;
    const int32_t padding = qn_q_conv_padding(c);
    const int64_t width = qn_q_conv_block_filters(c);
    for (int64_t block = 0; block < c->plan.blocks && padding; block++) {
        const int64_t vectors = qn_q_conv_vectors(c, block);
        int32_t *sums = start + block * width;
        kernels->sum_weights(sums, packed + block * c->tiles.steps * width * kernels->weight_bytes,
                             c->tiles.steps, (int)vectors);
        for (int64_t i = 0; i < vectors * kernels->lanes; i++)
            sums[i] *= -padding;
    }
}

static void begin_int16(const state *s, double *begin, const uint8_t *b)
{
    const int32_t padding = qn_q_conv_padding(&s->conv);
    for (int64_t k = 0; k < s->shape.k && padding; k++) {
        for (int64_t j = 0; j < s->shape.n; j++)
            begin[j] -= (double)padding * element(s, b, k, j);
    }
}

static void run_product(const work *w, int64_t index, uint8_t *scratch)
{
    const state *s = w->s;
    const qn_matmul *g = &s->shape;
    const uint8_t *a = w->io->in[0]->data, *b = w->io->in[1]->data;
    uint8_t *sums = scratch + s->weight_bytes;
    qn_q_conv c = s->conv;
    a += qn_offset_of(index, g->batch_rank, g->batch, g->a_strides) * size_of(&c.source);
    b += qn_offset_of(index, g->batch_rank, g->batch, g->b_strides) * size_of(&s->b);
    memset(sums, 0, s->start_bytes);
    c.mac.begin = (double *)(void *)sums;
    c.mac.start = (int32_t *)(void *)(sums + s->begin_bytes);
    pack(s, scratch, b);
    if (s->conv.shape.kind == QN_MAC_INT8)
        begin_int8(s, (int32_t *)(void *)(sums + s->begin_bytes), scratch);
    else
        begin_int16(s, c.mac.begin, b);
    c.packed.weights = scratch;
    const qn_q_conv_data data = {.x = a,
                                 .y = (uint8_t *)w->io->out[0]->data + index * g->m * c.mac.y_step,
                                 .scratch = sums + s->start_bytes};
    qn_q_conv_run(&c, &data, 1);
}

/* Item: the share of one thread. */
static void run_shares(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const int64_t count = qn_matmul_batches(&w->s->shape), threads = w->io->threads;
    for (int64_t i = first; i < last; i++) {
        uint8_t *scratch = (uint8_t *)w->io->scratch + (size_t)i * w->s->scratch;
        for (int64_t k = count * i / threads; k < count * (i + 1) / threads; k++)
            run_product(w, k, scratch);
    }
}

static qn_status matmul_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const work w = {opaque, io};
    (void)bound;
    qn_parallel(io->threads, io->threads, 2, run_shares, &w);
    return QN_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------- */

static size_t in_lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void measure(state *s, qn_claim *claim, int64_t params)
{
    const qn_q_conv *c = &s->conv;
    s->weight_bytes =
        in_lines((size_t)(c->plan.blocks * c->tiles.steps * qn_q_conv_block_filters(c) *
                          c->plan.kernels->weight_bytes));
    s->begin_bytes = in_lines((size_t)params * sizeof(double));
    s->start_bytes = s->begin_bytes + in_lines((size_t)params * sizeof(int32_t));
    s->scratch = s->weight_bytes + s->start_bytes + in_lines(qn_q_conv_scratch(c));
    claim->scratch = s->scratch * (size_t)qn_build_threads(claim->builder);
}

static qn_status matmul_prepare(qn_claim *claim)
{
    state *s = claim->state;
    qn_q_conv *c = &s->conv;
    c->mac.epilogue = s->tail.epilogue;
    QN_TRY(qn_q_conv_make_plan(c, claim->builder, 1));
    const int64_t params = qn_q_conv_params(c);
    if (s->fixed_point && !c->mac.epilogue.floats) {
        qn_q_fixed_point fixed_point;
        QN_TRY(qn_q_fixed_point_make(&fixed_point, claim, params));
        for (int64_t i = 0; i < params; i++)
            fixed_point.multipliers[i] = qn_normal_value(qn_normal_of((double)s->multiplier));
        qn_q_fixed_point_set(&c->mac.epilogue, &fixed_point, params);
        measure(s, claim, params);
        return QN_OK;
    }
    float *bias = qn_build_alloc(claim->builder, (size_t)params * sizeof *bias);
    float *scale = qn_build_alloc(claim->builder, (size_t)params * sizeof *scale);
    if (!bias || !scale)
        return qn_fail_nomem(qn_build_context(claim->builder));
    for (int64_t i = 0; i < params; i++)
        scale[i] = s->multiplier;
    c->mac.epilogue.bias = bias;
    c->mac.epilogue.scale = scale;
    qn_q_epilogue_bound(&c->mac.epilogue, 255.0 * 255.0 * (double)s->shape.k, params);
    measure(s, claim, params);
    return QN_OK;
}

static const qn_kernel matmul_kernels[] = {
    {.name = "int8 matmul", .prepare = matmul_prepare, .run = matmul_run},
    {.name = "int16 matmul", .prepare = matmul_prepare, .run = matmul_run}};

/* ---- Claiming -------------------------------------------------------------------------------- */

static qn_mac_source source_of(const qn_value *value, int64_t zero)
{
    return (qn_mac_source){.is_signed = qn_dtype_get(value->type.dtype)->kind == QN_KIND_INT,
                           .zero = (int32_t)zero,
                           .is_int16 = !qn_q_is_byte(value)};
}

/* params: of A, B and the result. */
static void describe(state *s, const qn_node *node, const qn_qparams params[3])
{
    const qn_matmul *g = &s->shape;
    const bool floats = node->out[0]->type.dtype == QN_FLOAT32;
    s->b = source_of(node->in[3], params[1].zero);
    s->multiplier = floats ? params[0].scale * params[1].scale
                           : qn_multiplier(params[0].scale, params[1].scale, params[2].scale);
    s->fixed_point = !floats && qn_qparams_is_fixed_point(&params[2]);
    s->conv = qn_q_conv_of_rows(g->m, g->k, g->n);
    s->conv.weight_info.fit_int8 = !s->b.is_int16 && s->b.zero == (s->b.is_signed ? 0 : 128);
    s->conv.source = source_of(node->in[0], params[0].zero);
    if (!s->conv.source.is_int16 && !s->b.is_int16)
        s->conv.shape.kind = QN_MAC_INT8;
    else
        s->conv.shape.kind =
            s->conv.weight_info.fit_int8 ? QN_MAC_INT16_BY_INT8 : QN_MAC_INT16_SPLIT;
}

/* Integers, one scale for each side, no bias; the result may be floats. */
static bool params_of(qn_qparams params[3], const qn_node *node)
{
    const bool floats = node->out[0]->type.dtype == QN_FLOAT32;
    return qn_q_is_integer(node->in[0]->type.dtype) && qn_q_is_integer(node->in[3]->type.dtype) &&
           (node->n_in <= 8 || !node->in[8]) && qn_q_param_of(&params[0], node, 1, 2) &&
           qn_q_param_of(&params[1], node, 4, 5) &&
           (floats ||
            (qn_q_is_integer(node->out[0]->type.dtype) && qn_q_param_of(&params[2], node, 6, 7)));
}

static bool shapes_of(qn_matmul *out, const qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor a, b;
    if (!qn_build_shape(&a, claim->builder, node->in[0]) ||
        !qn_build_shape(&b, claim->builder, node->in[3]) || a.rank < 2 || b.rank < 2 ||
        qn_tensor_count(&a) == 0 || qn_tensor_count(&b) == 0)
        return false;
    qn_matmul_geometry(out, &a, &b);
    return true;
}

qn_status qn_claim_q_matmul_two(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_qparams params[3] = {{.scale = 1}, {.scale = 1}, {.scale = 1}};
    qn_matmul shape;
    if (!params_of(params, node) || !shapes_of(&shape, claim))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->shape = shape;
    describe(s, node, params);
    if (!qn_q_conv_fits(&s->conv))
        return QN_OK;
    qn_claim_in(claim, node->in[0], QN_ROWS);
    qn_claim_in(claim, node->in[3], QN_ROWS);
    qn_q_tail_begin(&s->tail, node->out[0], params[2].zero);
    if (!s->tail.epilogue.floats)
        qn_q_take_clips(claim, &s->tail.out, &s->tail.epilogue.first);
    qn_claim_out(claim, s->tail.out, QN_ROWS);
    claim->state = s;
    claim->kernel = &matmul_kernels[s->conv.shape.kind != QN_MAC_INT8];
    *taken = true;
    return QN_OK;
}
