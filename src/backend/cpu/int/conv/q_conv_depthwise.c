/* Depthwise convolutions of integers: runs of outputs (qn_depthwise_run in q_mac.h), or tiles over
 * pairs of rows (qn_depthwise_parity). The parity of a patch is 1 where its first row is the lower
 * one of a pair. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/int/conv/q_conv.h"

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Where patches are side by side a row of outputs is one run, whatever the channels; else a pixel
 * is. */
static void choose_runs(qn_q_conv *c)
{
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t bytes = c->plan.kernels->reads_int16 ? 2 : 1,
                  block = c->plan.kernels->depth_block;
    const bool whole = g->stride[1] == 1;
    c->depthwise.runs = whole ? 1 : g->out_width;
    c->depthwise.depth.count = whole ? g->out_width * c->shape.channels : c->shape.channels;
    c->depthwise.x_run = g->stride[1] * c->shape.channels * bytes;
    c->depthwise.depth.period = whole ? c->shape.channels / common_divisor(c->shape.channels, block)
                                      : qn_q_pieces(c->shape.channels, block);
    c->depthwise.depth.period =
        QN_MIN(c->depthwise.depth.period, qn_q_pieces(c->depthwise.depth.count, block));
}

/* The pair of rows that a row of the kernel lies in, where patches begin with row `parity` of the
 * first pair. */
static int64_t pair_of(const qn_q_conv *c, int64_t parity, int64_t row)
{
    return (parity + row * c->shape.grid.dilation[0]) / 2;
}

/* The row is the first of the kernel's in its pair. */
static bool is_first(const qn_q_conv *c, int64_t parity, int64_t row)
{
    return row == 0 || pair_of(c, parity, row) != pair_of(c, parity, row - 1);
}

static qn_status plan_parity(qn_q_conv *c, qn_builder *builder, int64_t parity)
{
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t most = g->kernel[0] * g->kernel[1];
    qn_mac_segment *at = qn_build_alloc(builder, (size_t)most * sizeof *at);
    QN_TRY_ALLOC(qn_build_context(builder), at);
    int64_t n = 0;
    for (int64_t row = 0; row < g->kernel[0]; row++) {
        for (int64_t k = 0; k < g->kernel[1] && is_first(c, parity, row); k++) {
            const int64_t pixel = pair_of(c, parity, row) * c->plan.copy_width + k * g->dilation[1];
            at[n++] = (qn_mac_segment){.offset = pixel * c->shape.channels * 4, .steps = 1};
        }
    }
    c->depthwise.parities[parity].segments = at;
    c->depthwise.parities[parity].n_segments = n;
    return QN_OK;
}

/* Taps row by row; those that fill the last group stand on the first one's place. */
qn_status qn_q_depthwise_plan(qn_q_conv *c, qn_builder *builder)
{
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t bytes = c->plan.kernels->reads_int16 ? 2 : 1, dot = c->plan.kernels->dot;
    c->depthwise = (qn_q_conv_depthwise){0};
    if (c->plan.kernels->depth_tiles) {
        c->depthwise.depth.period = qn_q_pieces(c->shape.channels, c->plan.kernels->depth_block);
        c->mac.x_step = g->stride[1] * c->shape.channels * 4;
        QN_TRY(plan_parity(c, builder, 0));
        return plan_parity(c, builder, 1);
    }
    const int64_t count = qn_q_conv_length(c), padded = qn_q_pieces(count, dot) * dot;
    int64_t *taps = qn_build_alloc(builder, (size_t)padded * sizeof *taps);
    QN_TRY_ALLOC(qn_build_context(builder), taps);
    for (int64_t k = 0; k < count; k++) {
        const int64_t down = k / g->kernel[1] * g->dilation[0];
        const int64_t right = k % g->kernel[1] * g->dilation[1];
        taps[k] = (down * c->plan.copy_width + right) * c->shape.channels * bytes;
    }
    c->depthwise.depth.taps = taps;
    c->depthwise.depth.n_taps = padded;
    choose_runs(c);
    return QN_OK;
}

/* Channel of a block that lane `lane` of vector `vector` sums. Mixing puts neighbours of 16 bytes
 * into one lane of 128 bits: four vectors of four channels each, or two of 16 bits. */
static int64_t mixed(const qn_mac_kernels *k, int64_t vector, int64_t lane)
{
    const int64_t vectors = k->depth_block / k->lanes;
    return lane / 4 * vectors * 4 + vector * 4 + lane % 4;
}

int64_t qn_q_depthwise_channel(const qn_q_conv *c, int64_t param)
{
    const qn_mac_kernels *k = c->plan.kernels;
    const int64_t block = param / k->depth_block, at = param % k->depth_block;
    /* Sums of 16-bit numbers are brought in order before they are finished. */
    const int64_t channel = k->reads_int16 ? at : mixed(k, at / k->lanes, at % k->lanes);
    return (block * k->depth_block + channel) % c->shape.channels;
}

/* All taps of one lane: [group][vector][lane][dot] beginning at `to`. Returns their sum. */
static int64_t pack_lane(const qn_q_conv *c, uint8_t *to, const qn_q_weights *w, int64_t channel)
{
    const qn_mac_kernels *k = c->plan.kernels;
    const int64_t taps = qn_q_conv_length(c), group = (int64_t)k->depth_block * 4;
    int64_t sum = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int32_t x = qn_q_weight(w, channel, channel * taps + t);
        const int16_t as_int16 = (int16_t)x;
        uint8_t *at = to + t / k->dot * group + t % k->dot * (4 / k->dot);
        sum += x;
        if (k->reads_int16)
            memcpy(at, &as_int16, sizeof as_int16);
        else
            *at = (uint8_t)x;
    }
    return sum;
}

/* The weights of one channel for patches of a parity, from the place of its lane of the first
 * segment on; what is none of the kernel's stays 0. */
static void pack_channel(const qn_q_conv *c, int16_t *to, const qn_q_weights *w, int64_t parity,
                         int64_t channel)
{
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t lanes = c->plan.kernels->lanes, block = c->plan.kernels->depth_block;
    const int64_t rest = c->shape.channels - channel / block * block;
    const int64_t step = 2 * (rest <= lanes ? lanes : block);
    int16_t *pair = to;
    for (int64_t row = 0; row < g->kernel[0]; row++) {
        const int64_t half = (parity + row * g->dilation[0]) % 2;
        if (row > 0 && is_first(c, parity, row))
            pair += g->kernel[1] * step;
        for (int64_t k = 0; k < g->kernel[1]; k++) {
            const int64_t at = channel * qn_q_conv_length(c) + row * g->kernel[1] + k;
            pair[k * step + half] = (int16_t)qn_q_weight(w, channel, at);
        }
    }
}

static qn_status pack_parity(qn_q_conv *c, qn_builder *builder, const qn_q_weights *w,
                             int64_t parity)
{
    const int64_t block = c->plan.kernels->depth_block,
                  n = c->depthwise.parities[parity].n_segments;
    const size_t count = (size_t)(c->depthwise.depth.period * block * n * 2);
    int16_t *to = qn_build_alloc_weights(builder, count * sizeof *to);
    QN_TRY_ALLOC(qn_build_context(builder), to);
    memset(to, 0, count * sizeof *to);
    for (int64_t i = 0; i < c->shape.channels; i++)
        pack_channel(c, to + i / block * block * n * 2 + i % block * 2, w, parity, i);
    c->depthwise.parities[parity].weights = (const uint8_t *)to;
    return QN_OK;
}

/* Sums are in the order of the channels, and the map has no zero point. */
static qn_status pack_tiles(qn_q_conv *c, qn_builder *builder, const qn_q_weights *w)
{
    const int64_t count = qn_q_conv_params(c), length = qn_q_conv_length(c);
    c->packed.start = qn_build_alloc(builder, (size_t)count * sizeof *c->packed.start);
    c->packed.reach = qn_build_alloc(builder, (size_t)count * sizeof *c->packed.reach);
    c->mac.begin = qn_build_alloc(builder, (size_t)count * sizeof *c->mac.begin);
    if (!c->packed.start || !c->packed.reach || !c->mac.begin)
        return qn_fail_nomem(qn_build_context(builder));
    for (int64_t i = 0; i < c->shape.channels * length; i++)
        c->packed.reach[i / length] += 255.0 * abs(qn_q_weight(w, i / length, i));
    c->mac.start = c->packed.start;
    QN_TRY(pack_parity(c, builder, w, 0));
    return pack_parity(c, builder, w, 1);
}

qn_status qn_q_depthwise_pack(qn_q_conv *c, qn_builder *builder, const qn_q_weights *w)
{
    if (c->plan.kernels->depth_tiles)
        return pack_tiles(c, builder, w);
    const qn_mac_kernels *k = c->plan.kernels;
    const int64_t lanes = c->depthwise.depth.period * k->depth_block,
                  groups = c->depthwise.depth.n_taps / k->dot;
    const size_t bytes = (size_t)(lanes * groups * 4);
    const int32_t padding = qn_q_conv_padding(c);
    uint8_t *to = qn_build_alloc_weights(builder, bytes);
    int32_t *start = qn_build_alloc(builder, (size_t)lanes * sizeof *start);
    double *begin = qn_build_alloc(builder, (size_t)lanes * sizeof *begin);
    c->packed.reach = qn_build_alloc(builder, (size_t)lanes * sizeof *c->packed.reach);
    if (!to || !start || !begin || !c->packed.reach)
        return qn_fail_nomem(qn_build_context(builder));
    memset(to, 0, bytes);
    for (int64_t i = 0; i < lanes; i++) {
        const int64_t block = i / k->depth_block, at = i % k->depth_block;
        const int64_t first = block * k->depth_block;
        const int64_t place = first + mixed(k, at / k->lanes, at % k->lanes);
        const int64_t sum =
            pack_lane(c, to + first * groups * 4 + at * 4, w, place % c->shape.channels);
        start[i] = (int32_t)(0u - (uint32_t)padding * (uint32_t)sum);
        begin[place] = -(double)padding * (double)sum;
        c->packed.reach[i] = 255.0 * 255.0 * (double)qn_q_conv_length(c);
    }
    c->depthwise.depth.weights = to;
    c->packed.start = start;
    c->depthwise.depth.start = start;
    c->mac.begin = begin;
    c->depthwise.depth.begin = begin;
    return QN_OK;
}
