/* QLinearConvTranspose of every channel by itself, as the depthwise convolution by the flipped
 * kernel of a map that holds the pixels of x `stride` apart, with zero points between. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_layer.h"
#include "backend/cpu/parallel.h"

typedef struct state {
    /* First: the layer's functions see it. */
    qn_q_layer layer;
    /* The strides and the width of x. */
    int64_t stride[2], width;
    /* Bytes. */
    int64_t pixel, x_stride;
    /* In the scratch memory. */
    size_t map_offset;
} state;

typedef struct work {
    const state *s;
    const uint8_t *from;
    uint8_t *to;
} work;

/* ---- Running --------------------------------------------------------------------------------- */

static void fill_zeros(uint8_t *to, const qn_mac_source *x, int64_t bytes)
{
    const uint16_t as_int16 = (uint16_t)x->zero;
    if (!x->is_int16)
        memset(to, (uint8_t)x->zero, (size_t)bytes);
    for (int64_t i = 0; x->is_int16 && i < bytes; i += 2)
        memcpy(to + i, &as_int16, sizeof as_int16);
}

/* Item: one row of the map. */
static void spread_rows(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const qn_q_conv_grid *map = &s->layer.conv.shape.grid;
    const int64_t bytes = map->width * s->pixel;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / map->height, row = i % map->height;
        uint8_t *to = w->to + i * bytes;
        fill_zeros(to, &s->layer.conv.source, bytes);
        if (row % s->stride[0] != 0)
            continue;
        const uint8_t *from = w->from + n * s->x_stride + row / s->stride[0] * s->width * s->pixel;
        for (int64_t x = 0; x < s->width; x++)
            memcpy(to + x * s->stride[1] * s->pixel, from + x * s->pixel, (size_t)s->pixel);
    }
}

static qn_status depth_run(const void *opaque, void *bound, const qn_step_io *io)
{
    enum { ALONE = 4 };
    const state *s = opaque;
    const qn_q_conv_grid *grid = &s->layer.conv.shape.grid;
    uint8_t *scratch = io->scratch, *map = scratch + s->map_offset;
    const work w = {s, io->in[s->layer.x]->data, map};
    qn_q_conv_data data = {.x = map, .y = io->out[0]->data, .scratch = scratch};
    (void)bound;
    if (s->layer.tail.residual >= 0)
        data.r = io->in[s->layer.tail.residual]->data;
    qn_parallel(io->threads, grid->samples * grid->height, ALONE, spread_rows, &w);
    qn_q_conv_run(&s->layer.conv, &data, io->threads);
    return QN_OK;
}

static qn_status depth_prepare(qn_claim *claim)
{
    state *s = claim->state;
    s->x_stride = (int64_t)claim->in[s->layer.x].stride;
    const qn_q_conv_grid *grid = &s->layer.conv.shape.grid;
    s->layer.x_stride = grid->height * grid->width * s->pixel;
    QN_TRY(qn_q_layer_prepare(claim));
    s->map_offset = (claim->scratch + 63) / 64 * 64;
    claim->scratch = s->map_offset + (size_t)(s->layer.x_stride * grid->samples);
    return QN_OK;
}

static const qn_kernel kernels[] = {
    {.name = "int8 deconv", .prepare = depth_prepare, .run = depth_run},
    {.name = "int16 deconv", .prepare = depth_prepare, .run = depth_run}};

/* ---- Claiming -------------------------------------------------------------------------------- */

/* Elements of each kernel in the other order. */
static qn_status flip_weights(state *s, const qn_claim *claim)
{
    const qn_tensor *w = claim->node->in[3]->data;
    const size_t size = qn_dtype_size(w->dtype);
    const int64_t area = s->layer.conv.shape.grid.kernel[0] * s->layer.conv.shape.grid.kernel[1];
    const int64_t count = qn_tensor_count(w);
    uint8_t *to = qn_build_alloc(claim->builder, (size_t)count * size);
    QN_TRY_ALLOC(qn_build_context(claim->builder), to);
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = i / area * area + area - 1 - i % area;
        memcpy(to + (size_t)i * size, (const uint8_t *)w->data + (size_t)from * size, size);
    }
    s->layer.weights = to;
    return QN_OK;
}

static bool describe(state *s, const qn_geometry *g)
{
    qn_q_conv_grid grid = {.samples = g->samples,
                           .height = (g->in[0] - 1) * g->stride[0] + 1,
                           .width = (g->in[1] - 1) * g->stride[1] + 1,
                           .out_height = g->out[0],
                           .out_width = g->out[1],
                           .stride = {1, 1}};
    for (int d = 0; d < 2; d++) {
        s->stride[d] = g->stride[d];
        grid.kernel[d] = g->kernel[d];
        grid.dilation[d] = g->dilation[d];
        grid.pad[d] = (g->kernel[d] - 1) * g->dilation[d] - g->pad_begin[d];
    }
    s->width = g->in[1];
    s->layer.conv = (qn_q_conv){.shape = {.grid = grid,
                                          .channels = g->channels,
                                          .groups = g->groups,
                                          .group_channels = 1,
                                          .group_filters = 1}};
    return grid.pad[0] >= 0 && grid.pad[1] >= 0;
}

qn_status qn_q_conv_transpose_depthwise(bool *taken, qn_claim *claim, const qn_q_layer *base,
                                        const qn_geometry *g)
{
    if (g->groups != g->channels || g->groups != g->filters)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->layer = *base;
    if (!describe(s, g))
        return QN_OK;
    s->layer.layout = (qn_layout){QN_LAYOUT_CHANNELS_LAST, 0};
    s->pixel = g->channels * (int64_t)qn_dtype_size(claim->node->in[0]->type.dtype);
    QN_TRY(flip_weights(s, claim));
    return qn_q_layer_claim(taken, claim, &s->layer, kernels);
}
