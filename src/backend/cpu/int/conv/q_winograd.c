/* Winograd's convolution of integers: choice, transformed weights, batches of tiles. */
#include "backend/cpu/int/conv/q_winograd.h"

#include <string.h>

#include "backend/cpu/parallel.h"

/* ---- Choice ---------------------------------------------------------------------------------- */

static int64_t tiles_across(const qn_q_conv *c)
{
    return qn_q_pieces(c->shape.grid.out_width, QN_Q_WINOGRAD_OUT);
}

/* Channels in whole vectors of 16-bit numbers, filters of a block. */
static int64_t padded_channels(const qn_q_conv *c)
{
    const int64_t lanes = 2 * (int64_t)c->plan.kernels->lanes;
    return qn_q_pieces(c->shape.channels, lanes) * lanes;
}

static int64_t block_filters(const qn_q_conv *c)
{
    return QN_Q_WINOGRAD_VECTORS * (int64_t)c->plan.kernels->lanes;
}

static int64_t weight_bytes(const qn_q_conv *c) /* of a block */
{
    return QN_Q_WINOGRAD_XI * padded_channels(c) * block_filters(c) * 2;
}

/* The rule compares what both algorithms take, in products: a transform is worth some tens of them
 * for each number, and so is a byte of weights that comes from far away. */
bool qn_q_winograd_wanted(const qn_q_conv *c)
{
    const qn_q_conv_grid *g = &c->shape.grid;
    enum { REACH = 1 << 25, INPUT = 130, OUTPUT = 320, FETCH = 6, LEAST = 12 };
    for (int d = 0; d < 2; d++) {
        if (g->kernel[d] != 3 || g->stride[d] != 1 || g->dilation[d] != 1)
            return false;
    }
    if (!c->plan.kernels->wino || c->shape.kind != QN_MAC_INT8 || c->shape.groups != 1 ||
        c->shape.channels < LEAST || c->shape.group_filters < LEAST ||
        c->weight_info.largest == 0 || 255 * c->weight_info.largest >= REACH)
        return false;
    const double channels = (double)padded_channels(c);
    const double blocks = (double)qn_q_pieces(c->shape.group_filters, block_filters(c));
    const double filters = blocks * (double)block_filters(c);
    const double outputs = (double)(g->samples * g->out_height * g->out_width);
    const double tiles = (double)(g->samples * qn_q_pieces(g->out_height, QN_Q_WINOGRAD_OUT)) *
                         (double)tiles_across(c);
    const double direct =
        (double)(9 * c->shape.channels * c->shape.group_filters) * (outputs + 2 * FETCH);
    const double own =
        tiles * (QN_Q_WINOGRAD_XI * channels * filters + INPUT * channels + OUTPUT * filters) +
        blocks * (double)weight_bytes(c) * FETCH;
    return own < direct;
}

void qn_q_winograd_plan(qn_q_conv *c)
{
    enum { V_BYTES = 512 * 1024 };
    const int64_t patches = c->plan.kernels->patches;
    const int64_t tile = QN_Q_WINOGRAD_XI * padded_channels(c) * 2;
    c->plan.vectors = QN_Q_WINOGRAD_VECTORS;
    c->plan.blocks = qn_q_pieces(c->shape.group_filters, block_filters(c));
    c->plan.copy_width = tiles_across(c) * QN_Q_WINOGRAD_OUT + 2;
    c->winograd.batch = QN_MAX(V_BYTES / tile / patches, 1) * patches;
}

size_t qn_q_winograd_scratch(const qn_q_conv *c)
{
    return (size_t)(QN_Q_WINOGRAD_XI * c->winograd.batch *
                    (padded_channels(c) * 2 + block_filters(c) * 4));
}

/* ---- Weights --------------------------------------------------------------------------------- */

typedef struct work {
    const qn_q_conv *c;
    const qn_q_weights *w;
    uint8_t *to;
} work;

static void transform(int32_t u[QN_Q_WINOGRAD_XI], const int32_t g[9])
{
    static const int8_t matrix[QN_Q_WINOGRAD_IN][3] = {{3, 0, 0}, {-1, -1, -1}, {-1, 1, -1},
                                                       {1, 2, 4}, {1, -2, 4},   {0, 0, 3}};
    for (int i = 0; i < QN_Q_WINOGRAD_IN; i++) {
        int32_t row[3];
        for (int j = 0; j < 3; j++)
            row[j] = matrix[i][0] * g[j] + matrix[i][1] * g[3 + j] + matrix[i][2] * g[6 + j];
        for (int j = 0; j < QN_Q_WINOGRAD_IN; j++)
            u[i * QN_Q_WINOGRAD_IN + j] =
                matrix[j][0] * row[0] + matrix[j][1] * row[1] + matrix[j][2] * row[2];
    }
}

/* All channels of filters [first, last): [block][xi][pair of channels][filter][2]. */
static void pack_filters(const void *opaque, int64_t first, int64_t last)
{
    const work *k = opaque;
    const qn_q_conv *c = k->c;
    const int64_t filters = block_filters(c), channels = padded_channels(c);
    for (int64_t f = first; f < last; f++) {
        int16_t *block = (int16_t *)(void *)(k->to + f / filters * weight_bytes(c));
        int64_t size = 0;
        for (int64_t i = 0; i < c->shape.channels; i++) {
            int32_t g[9], u[QN_Q_WINOGRAD_XI];
            for (int64_t t = 0; t < 9; t++) {
                g[t] = qn_q_weight(k->w, f, (f * c->shape.channels + i) * 9 + t);
                size += g[t] < 0 ? -g[t] : g[t];
            }
            transform(u, g);
            for (int64_t xi = 0; xi < QN_Q_WINOGRAD_XI; xi++)
                block[((xi * channels + i / 2 * 2) * filters) + f % filters * 2 + i % 2] =
                    (int16_t)u[xi];
        }
        c->packed.reach[f] = 255.0 * (double)size;
    }
}

qn_status qn_q_winograd_pack(qn_q_conv *c, qn_builder *builder, const qn_q_weights *w)
{
    enum { ALONE = 1 << 14 };
    const size_t bytes = (size_t)(c->plan.blocks * weight_bytes(c));
    const size_t count = (size_t)qn_q_conv_params(c);
    const work k = {c, w, qn_build_alloc_weights(builder, bytes)};
    c->packed.start = qn_build_alloc(builder, count * sizeof *c->packed.start);
    c->mac.begin = qn_build_alloc(builder, count * sizeof *c->mac.begin);
    c->packed.reach = qn_build_alloc(builder, count * sizeof *c->packed.reach);
    if (!k.to || !c->packed.start || !c->mac.begin || !c->packed.reach)
        return qn_fail_nomem(qn_build_context(builder));
    memset(k.to, 0, bytes);
    qn_parallel(qn_build_threads(builder), c->shape.group_filters, ALONE / qn_q_conv_length(c) + 1,
                pack_filters, &k);
    c->packed.weights = k.to;
    c->mac.start = c->packed.start;
    return QN_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Tiles [first, first + count) of a band, row by row. */
typedef struct batch {
    const qn_q_conv *c;
    const qn_q_winograd_band *band;
    int64_t first, count;
    uint8_t *v, *m;
} batch;

static void transform_inputs(const batch *b)
{
    const qn_q_conv *c = b->c;
    const int64_t channels = padded_channels(c), across = tiles_across(c);
    const int64_t pixel = c->shape.channels * 2, row = c->plan.copy_width * pixel;
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t down = (b->first + i) / across, right = (b->first + i) % across;
        const qn_q_winograd_input in = {b->band->x +
                                            QN_Q_WINOGRAD_OUT * (down * row + right * pixel),
                                        row,
                                        pixel,
                                        b->v + i * channels * 2,
                                        b->count * channels * 2,
                                        channels};
        c->plan.kernels->wino->input(&in);
    }
}

/* M of one block, a few tiles at once: for one xi after the other, so that its weights stay in the
 * first cache, or for all of them where that holds them anyway. */
static void multiply(const batch *b, int64_t block)
{
    enum { FEW_CHANNELS = 32 };
    const qn_q_conv *c = b->c;
    const int64_t channels = padded_channels(c), filters = block_filters(c);
    const int64_t parts = qn_q_pieces(b->count, c->plan.kernels->patches);
    qn_q_winograd_product p = {.xi = channels <= FEW_CHANNELS ? QN_Q_WINOGRAD_XI : 1,
                               .v_xi = b->count * channels * 2,
                               .m_xi = b->count * filters * 4,
                               .tile = channels * 2,
                               .steps = channels / 2};
    for (int64_t xi = 0; xi < QN_Q_WINOGRAD_XI; xi += p.xi) {
        p.u = c->packed.weights + block * weight_bytes(c) + xi * channels * filters * 2;
        for (int64_t part = 0, at = 0; part < parts; part++) {
            const int64_t next = b->count * (part + 1) / parts;
            p.v = b->v + xi * p.v_xi + at * p.tile;
            p.m = b->m + xi * p.m_xi + at * filters * 4;
            c->plan.kernels->wino->products[next - at - 1](&p);
            at = next;
        }
    }
}

static void transform_outputs(const batch *b, int64_t block)
{
    const qn_q_conv *c = b->c;
    const qn_q_conv_grid *g = &c->shape.grid;
    const qn_q_winograd_band *band = b->band;
    const int64_t filters = block_filters(c), first = block * filters, across = tiles_across(c);
    const int64_t y = qn_q_conv_filter_bytes(c, first);
    const int64_t r = first * qn_q_epilogue_r_bytes(&c->mac.epilogue);
    qn_q_winograd_output out = {.xi_step = b->count * filters * 4,
                                .y_row = g->out_width * c->mac.y_step,
                                .r_row = g->out_width * c->mac.r_step};
    out.tile.param = first;
    out.tile.filters = QN_MIN(filters, c->shape.group_filters - first);
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t row = (b->first + i) / across * QN_Q_WINOGRAD_OUT;
        const int64_t column = (b->first + i) % across * QN_Q_WINOGRAD_OUT;
        const int64_t pixel = row * g->out_width + column;
        out.m = b->m + i * filters * 4;
        out.rows = QN_MIN(band->rows - row, QN_Q_WINOGRAD_OUT);
        out.columns = QN_MIN(g->out_width - column, QN_Q_WINOGRAD_OUT);
        out.tile.y[0] = band->y + pixel * c->mac.y_step + y;
        out.tile.r[0] = band->r ? band->r + pixel * c->mac.r_step + r : out.tile.y[0];
        c->plan.kernels->wino->output(&c->mac, &out);
    }
}

void qn_q_winograd_run(const qn_q_conv *c, const qn_q_winograd_band *band, const int64_t blocks[2])
{
    const int64_t tiles = qn_q_pieces(band->rows, QN_Q_WINOGRAD_OUT) * tiles_across(c);
    const int64_t batches = qn_q_pieces(tiles, c->winograd.batch);
    batch b = {.c = c, .band = band, .v = band->scratch};
    b.m = b.v + QN_Q_WINOGRAD_XI * c->winograd.batch * padded_channels(c) * 2;
    for (int64_t i = 0; i < batches; i++) {
        const int64_t next = tiles * (i + 1) / batches;
        b.first = tiles * i / batches;
        b.count = next - b.first;
        if (!band->seen_before || batches > 1)
            transform_inputs(&b);
        for (int64_t block = blocks[0]; block < blocks[1]; block++) {
            multiply(&b, block);
            transform_outputs(&b, block);
        }
    }
}
