/* QuantizeLinear and DequantizeLinear with one scale. Images that are row-major or in blocks become
 * channels last on the way to integers, where convolutions want them so, and those channels last
 * blocks on the way back. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/nn_attrs.h"

enum { BAND = 512, BLOCK = 16 }; /* positions and channels of a tile that is transposed */

typedef struct state {
    const qn_q_kernels *kernels;
    qn_q_cast cast;
    int64_t count;
    /* The map that is transposed, or is or gets in blocks. */
    int64_t channels, area, bands;
    /* Channels of a block; 0: none. */
    int64_t block;
    /* Floats from one sample in blocks to the next. */
    int64_t stride;
} state;

typedef struct work {
    const state *s;
    const void *x;
    void *y;
} work;

/* ---- Quantize -------------------------------------------------------------------------------- */

static void quantize_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t from = first * QN_Q_CHUNK, to = QN_MIN(last * QN_Q_CHUNK, s->count);
    uint8_t *y = w->y;
    s->kernels->quantize(y + (s->cast.is_int16 ? 2 * from : from), (const float *)w->x + from,
                         to - from, &s->cast);
}

/* Item: a band of positions of one sample, all channels. */
static void transpose_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    uint16_t tile[BLOCK * BAND];
    for (int64_t i = first; i < last; i++) {
        const int64_t sample = i / s->bands * s->channels * s->area;
        const int64_t p = i % s->bands * BAND, positions = QN_MIN(BAND, s->area - p);
        for (int64_t c = 0; c < s->channels; c += BLOCK) {
            const int64_t rows = QN_MIN(BLOCK, s->channels - c);
            const float *x = (const float *)w->x + sample + c * s->area + p;
            const int64_t to = sample + p * s->channels + c;
            for (int64_t r = 0; r < rows; r++)
                s->kernels->quantize(s->cast.is_int16 ? (void *)(tile + r * BAND)
                                                      : (void *)((uint8_t *)tile + r * BAND),
                                     x + r * s->area, positions, &s->cast);
            if (s->cast.is_int16)
                s->kernels->transpose_uint16((uint16_t *)w->y + to, tile, s->channels, BAND, rows,
                                             positions);
            else
                s->kernels->transpose_uint8((uint8_t *)w->y + to, (const uint8_t *)tile,
                                            s->channels, BAND, rows, positions);
        }
    }
}

/* Pieces of `size` bytes, which lie so many bytes apart. */
static void move_pieces(uint8_t *y, int64_t y_step, const uint8_t *x, int64_t x_step,
                        const int64_t size_count[2])
{
    const int64_t size = size_count[0], count = size_count[1];
    for (int64_t i = 0; i < count && size == 8; i++)
        memcpy(y + i * y_step, x + i * x_step, 8);
    for (int64_t i = 0; i < count && size == 16; i++)
        memcpy(y + i * y_step, x + i * x_step, 16);
    for (int64_t i = 0; i < count && size != 8 && size != 16; i++)
        memcpy(y + i * y_step, x + i * x_step, (size_t)size);
}

/* Item: a band of positions of one sample, all blocks. */
static void unblock_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t size = s->cast.is_int16 ? 2 : 1;
    uint16_t tile[BLOCK * BAND];
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / s->bands, p = i % s->bands * BAND, count = QN_MIN(BAND, s->area - p);
        uint8_t *y = (uint8_t *)w->y + (n * s->area + p) * s->channels * size;
        for (int64_t c = 0; c < s->channels; c += s->block) {
            const float *x = (const float *)w->x + n * s->stride + c * s->area + p * s->block;
            const int64_t piece[2] = {QN_MIN(s->block, s->channels - c) * size, count};
            s->kernels->quantize(tile, x, count * s->block, &s->cast);
            move_pieces(y + c * size, s->channels * size, (const uint8_t *)tile, s->block * size,
                        piece);
        }
    }
}

/* Items of one band each. */
static void run_bands(const state *s, const work *w, qn_range_fn *range, int threads)
{
    qn_parallel(threads, s->count / s->channels / s->area * s->bands,
                QN_Q_CHUNK * QN_Q_ALONE / (QN_MIN(BAND, s->area) * s->channels) + 1, range, w);
}

static qn_status quantize_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->in[0]->data, io->out[0]->data};
    (void)bound;
    if (s->bands)
        run_bands(s, &w, s->block ? unblock_range : transpose_range, io->threads);
    else
        qn_parallel(io->threads, (s->count + QN_Q_CHUNK - 1) / QN_Q_CHUNK, QN_Q_ALONE,
                    quantize_range, &w);
    return QN_OK;
}

static qn_status quantize_prepare(qn_claim *claim)
{
    ((state *)claim->state)->stride = (int64_t)(claim->in[0].stride / sizeof(float));
    return QN_OK;
}

static const qn_kernel quantize_kernel = {
    .name = "quantize", .prepare = quantize_prepare, .run = quantize_run};

/* Some reader works channels last. */
static bool wants_last(const qn_value *value)
{
    static const qn_op *const ops[] = {
        &qn_op_QLinearConv,
        &qn_op_ConvInteger,
        &qn_op_qn_ConvIntegerToFloat,
        &qn_op_qn_QLinearConvTranspose,
        &qn_op_qn_ConvTransposeIntegerToFloat,
        &qn_op_MaxPool,
        &qn_op_ms_QLinearAveragePool,
        &qn_op_qn_QLinearResize,
        &qn_op_ms_QLinearGlobalAveragePool,
    };
    for (size_t u = 0; u < value->n_users; u++) {
        for (size_t i = 0; i < QN_COUNT_OF(ops); i++) {
            if (value->users[u]->op == ops[i])
                return true;
        }
    }
    return false;
}

/* A float32 tensor with a single constant scale in float32. */
static bool is_plain(qn_qparams *param, qn_tensor *shape, const qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_quantize_attrs *a = node->attrs;
    return node->in[0] && !node->in[0]->data && node->out[0] && !a->block_size &&
           (!a->precision || a->precision == QN_FLOAT32) &&
           qn_build_shape(shape, claim->builder, node->in[0]) && qn_tensor_count(shape) > 0 &&
           qn_q_param_of(param, node, 1, 2) && param->scale > 0 &&
           node->in[1]->type.dtype == QN_FLOAT32;
}

static qn_status state_make(state **out, qn_claim *claim, const qn_tensor *shape)
{
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_q_kernels_get();
    s->count = qn_tensor_count(shape);
    claim->state = s;
    *out = s;
    return QN_OK;
}

static void set_bands(state *s, const qn_tensor *shape, int64_t block)
{
    s->channels = shape->dims[1];
    s->area = s->count / shape->dims[0] / s->channels;
    s->bands = (s->area + BAND - 1) / BAND;
    s->block = block;
}

qn_status qn_claim_q_quantize(bool *taken, qn_claim *claim)
{
    qn_value *value = claim->node->out[0];
    qn_tensor shape;
    qn_qparams param;
    state *s = NULL;
    if (!is_plain(&param, &shape, claim) || shape.dtype != QN_FLOAT32 ||
        !qn_q_is_integer(value->type.dtype))
        return QN_OK;
    QN_TRY(state_make(&s, claim, &shape));
    s->cast = (qn_q_cast){.scale = param.scale,
                          .round = qn_q_round_of(value->type.dtype, param.zero),
                          .is_int16 = qn_dtype_size(value->type.dtype) == 2};
    const qn_layout given = qn_build_layout(claim->builder, claim->node->in[0]);
    /* Bytes have no blocks, and are transposed more cheaply than floats where some reader wants
     * rows. */
    const bool blocked = shape.rank > 2 && qn_layout_same(given, qn_layout_native());
    const bool last = blocked || (shape.rank > 2 && wants_last(value));
    const qn_layout from = given.kind == QN_LAYOUT_BLOCKED && !blocked ? QN_ROWS : given;
    const qn_layout to = last ? QN_LAST : from;
    if (blocked)
        set_bands(s, &shape, given.block);
    else if (from.kind == QN_LAYOUT_ROWS && last && shape.dims[1] > 1 &&
             s->count > shape.dims[0] * shape.dims[1])
        set_bands(s, &shape, 0);
    qn_q_take_clips(claim, &value, &s->cast.round);
    qn_claim_in(claim, claim->node->in[0], from)->strided = blocked;
    qn_claim_out(claim, value, to);
    claim->kernel = &quantize_kernel;
    *taken = true;
    return QN_OK;
}

/* ---- Dequantize ------------------------------------------------------------------------------ */

static void dequantize_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t from = first * QN_Q_CHUNK, to = QN_MIN(last * QN_Q_CHUNK, s->count);
    const uint8_t *x = w->x;
    s->kernels->dequantize((float *)w->y + from, x + (s->cast.from.is_int16 ? 2 * from : from),
                           to - from, &s->cast);
}

/* Item: a band of positions of one sample, all blocks, which are whole. */
static void block_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t size = s->cast.from.is_int16 ? 2 : 1;
    uint16_t tile[BLOCK * BAND];
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / s->bands, p = i % s->bands * BAND, count = QN_MIN(BAND, s->area - p);
        const uint8_t *x = (const uint8_t *)w->x + (n * s->area + p) * s->channels * size;
        for (int64_t c = 0; c < s->channels; c += s->block) {
            float *y = (float *)w->y + n * s->stride + c * s->area + p * s->block;
            const int64_t piece[2] = {s->block * size, count};
            move_pieces((uint8_t *)tile, s->block * size, x + c * size, s->channels * size, piece);
            s->kernels->dequantize(y, tile, count * s->block, &s->cast);
        }
    }
}

static qn_status dequantize_prepare(qn_claim *claim)
{
    ((state *)claim->state)->stride = (int64_t)(claim->out[0].stride / sizeof(float));
    return QN_OK;
}

static qn_status dequantize_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->in[0]->data, io->out[0]->data};
    (void)bound;
    if (s->bands) {
        run_bands(s, &w, block_range, io->threads);
        return QN_OK;
    }
    qn_parallel(io->threads, (s->count + QN_Q_CHUNK - 1) / QN_Q_CHUNK, QN_Q_ALONE, dequantize_range,
                &w);
    return QN_OK;
}

static const qn_kernel dequantize_kernel = {
    .name = "dequantize", .prepare = dequantize_prepare, .run = dequantize_run};

qn_status qn_claim_q_dequantize(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    qn_tensor shape;
    qn_qparams param;
    state *s = NULL;
    if (!is_plain(&param, &shape, claim) || !qn_q_is_integer(shape.dtype) ||
        node->out[0]->type.dtype != QN_FLOAT32)
        return QN_OK;
    QN_TRY(state_make(&s, claim, &shape));
    s->cast = (qn_q_cast){.from = qn_q_side_of(shape.dtype, param.zero), .scale = param.scale};
    /* What leaves the plan is row-major: bytes are transposed more cheaply than floats. */
    const qn_layout layout = node->out[0]->is_output ? QN_ROWS : qn_q_layout(claim, node->in[0]);
    const qn_layout native = qn_layout_native();
    const bool blocked = layout.kind == QN_LAYOUT_CHANNELS_LAST && shape.rank > 2 &&
                         shape.dims[1] % native.block == 0 && qn_q_wants_blocks(node->out[0]);
    if (blocked)
        set_bands(s, &shape, native.block);
    qn_claim_in(claim, node->in[0], layout);
    qn_claim_out(claim, node->out[0], blocked ? native : layout)->strided = blocked;
    claim->kernel = &dequantize_kernel;
    *taken = true;
    return QN_OK;
}
