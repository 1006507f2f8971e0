/* QLinearConv and ConvIntegerToFloat of three dimensions, plane by plane of the output: the planes
 * of the map that one sees are put together, [height, width, group, depth of the kernel, channel],
 * and are the channels of a convolution of two dimensions. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_layer.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"

typedef struct state {
    /* First: the layer's functions see it; its samples are planes of one run. */
    qn_q_layer layer;
    int64_t samples, channels, filters;
    /* The depth of the map, the results and the kernel, and the steps of the kernel. */
    int64_t depth, out_depth, kernel, stride, dilation, pad;
    /* Planes are read where they lie: a result sees one of them. */
    bool direct;
    /* Bytes: of a number of the map; from sample to sample of both; of planes. */
    int64_t size, x_stride, y_stride, x_plane, y_plane;
    /* In the scratch memory. */
    size_t planes_offset;
} state;

typedef struct work {
    const state *s;
    const uint8_t *x;
    uint8_t *to;
    /* The first plane of the results. */
    int64_t first;
} work;

/* ---- Running --------------------------------------------------------------------------------- */

/* Pixels of channels that are the zero point. */
static void fill(const state *s, uint8_t *to, int64_t numbers)
{
    const int32_t zero = s->layer.conv.source.zero;
    if (s->size == 1) {
        memset(to, zero, (size_t)numbers);
        return;
    }
    for (int64_t i = 0; i < numbers; i++)
        ((uint16_t *)(void *)to)[i] = (uint16_t)zero;
}

/* The part of every pixel of a row that comes from one plane, group by group. */
static void gather_part(const state *s, uint8_t *to, const uint8_t *from, int64_t k)
{
    const qn_q_conv_shape *c = &s->layer.conv.shape;
    const int64_t own = s->channels / c->groups, count = c->grid.width * c->groups;
    const size_t bytes = (size_t)(own * s->size);
    to += k * (int64_t)bytes;
    for (int64_t i = 0; i < count; i++, to += s->kernel * (int64_t)bytes) {
        if (from)
            memcpy(to, from + i * (int64_t)bytes, bytes);
        else
            fill(s, to, own);
    }
}

/* Item: one row of one plane. */
static void gather_rows(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const qn_q_conv_grid *g = &s->layer.conv.shape.grid;
    const int64_t row = g->width * s->channels * s->size;
    for (int64_t i = first; i < last; i++) {
        const int64_t top = (w->first + i / g->height) * s->stride - s->pad;
        for (int64_t k = 0; k < s->kernel; k++) {
            const int64_t plane = top + k * s->dilation;
            const bool inside = plane >= 0 && plane < s->depth;
            const uint8_t *from = w->x + plane * s->x_plane + i % g->height * row;
            gather_part(s, w->to + i * row * s->kernel, inside ? from : NULL, k);
        }
    }
}

static qn_status conv_run(const void *opaque, void *bound, const qn_step_io *io)
{
    enum { ALONE = 8 };
    const state *s = opaque;
    const qn_q_conv *c = &s->layer.conv;
    uint8_t *scratch = io->scratch, *planes = scratch + s->planes_offset;
    const int64_t batch = c->shape.grid.samples, runs = s->out_depth / batch;
    (void)bound;
    for (int64_t i = 0; i < s->samples * runs; i++) {
        const int64_t n = i / runs, first = i % runs * batch;
        const work w = {s, (const uint8_t *)io->in[0]->data + n * s->x_stride, planes, first};
        if (!s->direct)
            qn_parallel(io->threads, batch * c->shape.grid.height, ALONE, gather_rows, &w);
        const qn_q_conv_data data = {.x = s->direct ? w.x + first * s->x_plane : planes,
                                     .y = (uint8_t *)io->out[0]->data + n * s->y_stride +
                                          first * s->y_plane,
                                     .scratch = scratch};
        qn_q_conv_run(c, &data, io->threads);
    }
    return QN_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------- */

/* As many planes a run as lie in the second cache and all runs have. */
static int64_t planes_of_run(const state *s)
{
    enum { BYTES = 512 * 1024 };
    const int64_t bytes = s->x_plane * s->kernel;
    int64_t count = QN_MIN(QN_MAX(BYTES / bytes, 1), s->out_depth);
    while (s->out_depth % count)
        count--;
    return count;
}

/* [filter][depth][channel][down][across] of [filter][channel][depth][down][across]. */
static qn_status turn_weights(state *s, const qn_claim *claim)
{
    const qn_tensor *w = claim->node->in[s->layer.ports.w]->data;
    const int64_t area = w->dims[3] * w->dims[4] * (int64_t)qn_dtype_size(w->dtype);
    const int64_t channels = w->dims[1], count = w->dims[0] * channels * s->kernel;
    uint8_t *to = qn_build_alloc(claim->builder, (size_t)(count * area));
    QN_TRY_ALLOC(qn_build_context(claim->builder), to);
    s->layer.weights = to;
    for (int64_t i = 0; i < count; i++) {
        const int64_t channel = i % channels, k = i / channels % s->kernel;
        const int64_t filter = i / channels / s->kernel;
        const int64_t from = (filter * channels + channel) * s->kernel + k;
        memcpy(to + i * area, (const uint8_t *)w->data + from * area, (size_t)area);
    }
    return QN_OK;
}

static qn_status conv_prepare(qn_claim *claim)
{
    state *s = claim->state;
    qn_q_conv_grid *g = &s->layer.conv.shape.grid;
    s->x_stride = (int64_t)claim->in[0].stride;
    s->y_stride = (int64_t)claim->out[0].stride;
    s->y_plane =
        g->out_height * g->out_width * s->filters * qn_q_epilogue_y_bytes(&s->layer.tail.epilogue);
    s->layer.x_stride = s->x_plane * s->kernel;
    s->layer.y_stride = s->y_plane;
    QN_TRY(qn_q_layer_prepare(claim));
    s->planes_offset = (claim->scratch + 63) / 64 * 64;
    if (!s->direct)
        claim->scratch = s->planes_offset + (size_t)(s->x_plane * s->kernel * g->samples);
    return QN_OK;
}

static const qn_kernel conv_kernels[] = {
    {.name = "int8 conv 3d", .prepare = conv_prepare, .run = conv_run},
    {.name = "int16 conv 3d", .prepare = conv_prepare, .run = conv_run}};

/* ---- Claiming -------------------------------------------------------------------------------- */

static void describe(state *s, const qn_claim *claim, const qn_geometry *g)
{
    s->samples = g->samples;
    s->channels = g->channels;
    s->filters = g->filters;
    s->depth = g->in[0];
    s->out_depth = g->out[0];
    s->kernel = g->kernel[0];
    s->stride = g->stride[0];
    s->dilation = g->dilation[0];
    s->pad = g->pad_begin[0];
    s->direct = s->kernel == 1 && s->stride == 1 && s->pad == 0 && s->depth == s->out_depth;
    s->size = (int64_t)qn_dtype_size(claim->node->in[0]->type.dtype);
    s->x_plane = g->in[1] * g->in[2] * g->channels * s->size;
    const qn_q_conv_grid grid = {.samples = planes_of_run(s),
                                 .height = g->in[1],
                                 .width = g->in[2],
                                 .out_height = g->out[1],
                                 .out_width = g->out[2],
                                 .kernel = {g->kernel[1], g->kernel[2]},
                                 .stride = {g->stride[1], g->stride[2]},
                                 .dilation = {g->dilation[1], g->dilation[2]},
                                 .pad = {g->pad_begin[1], g->pad_begin[2]}};
    s->layer.conv = (qn_q_conv){.shape = {.grid = grid,
                                          .channels = g->channels * s->kernel,
                                          .groups = g->groups,
                                          .group_channels = g->channels / g->groups * s->kernel,
                                          .group_filters = g->filters / g->groups}};
}

/* Every length is within reason, so that no product of them is too large. */
static bool is_usual(const qn_geometry *g)
{
    enum { MOST = 1 << 16 };
    for (int d = 0; d < QN_SPATIAL; d++) {
        if (g->kernel[d] > MOST || g->stride[d] > MOST || g->dilation[d] > MOST ||
            g->pad_begin[d] > MOST)
            return false;
    }
    return (double)g->in[1] * (double)g->in[2] * (double)g->channels * (double)g->kernel[0] <
           0x1p30;
}

static qn_status claim_conv(bool *taken, qn_claim *claim, const qn_q_ports *ports)
{
    qn_q_layer *base = NULL;
    qn_geometry g;
    if (!qn_geometry_q_conv(&g, claim) || g.rank != 3 || !is_usual(&g))
        return QN_OK;
    QN_TRY(qn_q_layer_create(&base, claim, ports));
    if (!base)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->layer = *base;
    describe(s, claim, &g);
    s->layer.layout = QN_LAST;
    s->layer.tail.alone = true;
    QN_TRY(turn_weights(s, claim));
    return qn_q_layer_claim(taken, claim, &s->layer, conv_kernels);
}

qn_status qn_claim_q_conv_3d(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    return claim_conv(taken, claim, &ports);
}

qn_status qn_claim_q_conv_3d_float(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, -1, -1, 6};
    return claim_conv(taken, claim, &ports);
}
