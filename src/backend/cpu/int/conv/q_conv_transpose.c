/* QLinearConvTranspose as a convolution of stride 1 with a set of filters for every phase.
 *
 * A phase is a place among `stride` neighbours of the output; behind the convolution the phases are
 * put side by side. Along both dims:
 *
 *   output s q + r = sum over k with r + pad - k dilation = s d of x[q + d] w[k]
 *
 * The patch is all d that some phase has; others have no weights there. The result may be float. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_layer.h"
#include "backend/cpu/parallel.h"

/* One dim: d from low to high, q from 0 to count - 1. */
typedef struct phases {
    int64_t stride, dilation, kernel, pad, out;
    int64_t low, high, count;
} phases;

typedef struct state {
    /* First: the layer's functions see it. */
    qn_q_layer layer;
    phases dims[2];
    /* Filters of a group; bytes of a result. */
    int64_t groups, filters, size;
    /* The bytes of one sample, with phases apart, and as it leaves. */
    int64_t phase_bytes, y_stride;
    /* In the scratch memory. */
    size_t phase_offset;
} state;

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct work {
    const state *s;
    const uint8_t *from;
    uint8_t *to;
} work;

/* The pixels of one row that phase `down` has, of pixels [group][phase down][phase across][filter].
 * Neighbours across of a group lie side by side already. */
static void shuffle_row(uint8_t *to, const state *s, const uint8_t *from, int64_t down)
{
    const phases *across = &s->dims[1];
    const int64_t part = s->filters * s->size, pixel = s->groups * part;
    const int64_t chunk = across->stride * part, group = s->dims[0].stride * chunk;
    for (int64_t q = 0; q < across->count; q++, from += s->groups * group) {
        const int64_t left = QN_MIN(across->stride, across->out - q * across->stride);
        uint8_t *at = to + q * across->stride * pixel;
        if (s->groups == 1) {
            memcpy(at, from + down * chunk, (size_t)(left * part));
            continue;
        }
        for (int64_t i = 0; i < left * s->groups; i++)
            memcpy(at + i * part,
                   from + i % s->groups * group + down * chunk + i / s->groups * part,
                   (size_t)part);
    }
}

/* Item: one row of the output. */
static void shuffle_rows(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const phases *down = &s->dims[0], *across = &s->dims[1];
    const int64_t pixel = s->groups * s->filters * s->size;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / down->out, row = i % down->out;
        const uint8_t *from =
            w->from + n * s->phase_bytes +
            row / down->stride * across->count * down->stride * across->stride * pixel;
        shuffle_row(w->to + n * s->y_stride + row * across->out * pixel, s, from,
                    row % down->stride);
    }
}

static qn_status deconv_run(const void *opaque, void *bound, const qn_step_io *io)
{
    enum { ALONE = 4 };
    const state *s = opaque;
    uint8_t *scratch = io->scratch, *apart = scratch + s->phase_offset;
    const qn_q_conv_data data = {.x = io->in[0]->data, .y = apart, .scratch = scratch};
    const work w = {s, apart, io->out[0]->data};
    (void)bound;
    qn_q_conv_run(&s->layer.conv, &data, io->threads);
    qn_parallel(io->threads, s->layer.conv.shape.grid.samples * s->dims[0].out, ALONE, shuffle_rows,
                &w);
    return QN_OK;
}

static qn_status deconv_prepare(qn_claim *claim)
{
    state *s = claim->state;
    const qn_q_epilogue *f = &s->layer.tail.epilogue;
    const int64_t filters = s->dims[0].stride * s->dims[1].stride * s->groups * s->filters;
    s->size = qn_q_epilogue_y_bytes(f);
    s->phase_bytes = s->dims[0].count * s->dims[1].count * filters * s->size;
    s->y_stride = (int64_t)claim->out[0].stride;
    s->layer.y_stride = s->phase_bytes;
    QN_TRY(qn_q_layer_prepare(claim));
    s->phase_offset = (claim->scratch + 63) / 64 * 64;
    claim->scratch = s->phase_offset + (size_t)(s->phase_bytes * s->layer.conv.shape.grid.samples);
    return QN_OK;
}

static const qn_kernel deconv_kernels[] = {
    {.name = "int8 deconv", .prepare = deconv_prepare, .run = deconv_run},
    {.name = "int16 deconv", .prepare = deconv_prepare, .run = deconv_run}};

/* ---- Claiming -------------------------------------------------------------------------------- */

static void make_phases(phases *p, const qn_geometry *g, int d)
{
    *p = (phases){.stride = g->stride[d],
                  .dilation = g->dilation[d],
                  .kernel = g->kernel[d],
                  .pad = g->pad_begin[d],
                  .out = g->out[d]};
    for (int64_t r = 0; r < p->stride; r++) {
        for (int64_t k = 0; k < p->kernel; k++) {
            const int64_t at = r + p->pad - k * p->dilation;
            if (at % p->stride != 0)
                continue;
            p->low = QN_MIN(p->low, at / p->stride);
            p->high = QN_MAX(p->high, at / p->stride);
        }
    }
    p->count = (p->out + p->stride - 1) / p->stride;
}

/* The element of the kernel by which phase r takes x[q + d]; -1: none. */
static int64_t element_of(const phases *p, int64_t r, int64_t d)
{
    const int64_t at = r + p->pad - d * p->stride;
    return at >= 0 && at % p->dilation == 0 && at / p->dilation < p->kernel ? at / p->dilation : -1;
}

/* Weights of one filter and channel: [down][across], the zero point where a phase has none. */
static void spread_kernel(uint8_t *to, const state *s, const uint8_t *from, const int64_t at[2],
                          const uint8_t *zero)
{
    const phases *down = &s->dims[0], *across = &s->dims[1];
    const size_t size = qn_dtype_size(s->layer.node->in[3]->type.dtype);
    for (int64_t y = down->low; y <= down->high; y++) {
        for (int64_t x = across->low; x <= across->high; x++, to += size) {
            const int64_t ky = element_of(down, at[0], y), kx = element_of(across, at[1], x);
            const bool real = ky >= 0 && kx >= 0;
            memcpy(to, real ? from + (size_t)(ky * across->kernel + kx) * size : zero, size);
        }
    }
}

/* [group][phase down][phase across][filter][channel][down][across] of
 * [group][channel][filter][down][across]. */
static qn_status spread_weights(state *s, const qn_claim *claim)
{
    const qn_tensor *w = claim->node->in[3]->data, *zeros = claim->node->in[5]->data;
    const int64_t channels = w->dims[0] / s->groups, filters = s->filters;
    const int64_t area = s->dims[0].kernel * s->dims[1].kernel;
    const int64_t spread = s->layer.conv.shape.grid.kernel[0] * s->layer.conv.shape.grid.kernel[1];
    const int64_t phases_all = s->dims[0].stride * s->dims[1].stride;
    const int64_t count = s->groups * phases_all * filters * channels;
    const int64_t size = (int64_t)qn_dtype_size(w->dtype);
    const uint8_t *from = w->data, *zero = zeros->data;
    uint8_t *to = qn_build_alloc(claim->builder, (size_t)(count * spread * size));
    QN_TRY_ALLOC(qn_build_context(claim->builder), to);
    s->layer.weights = to;
    for (int64_t i = 0; i < count; i++, to += spread * size) {
        const int64_t filter = i / channels % filters, phase = i / channels / filters % phases_all,
                      group = i / channels / filters / phases_all;
        const int64_t at[2] = {phase / s->dims[1].stride, phase % s->dims[1].stride};
        const int64_t channel = group * channels + i % channels;
        spread_kernel(to, s, from + (channel * filters + filter) * area * size, at,
                      zero + (qn_tensor_count(zeros) == 1 ? 0 : group * filters + filter) * size);
    }
    return QN_OK;
}

static void describe(state *s, const qn_geometry *g)
{
    qn_q_conv_grid grid = {.samples = g->samples,
                           .height = g->in[0],
                           .width = g->in[1],
                           .stride = {1, 1},
                           .dilation = {1, 1}};
    for (int d = 0; d < 2; d++) {
        make_phases(&s->dims[d], g, d);
        grid.kernel[d] = s->dims[d].high - s->dims[d].low + 1;
        grid.pad[d] = -s->dims[d].low;
    }
    grid.out_height = s->dims[0].count;
    grid.out_width = s->dims[1].count;
    s->groups = g->groups;
    s->filters = g->filters / g->groups;
    s->layer.conv =
        (qn_q_conv){.shape = {.grid = grid,
                              .channels = g->channels,
                              .groups = g->groups,
                              .group_channels = g->channels / g->groups,
                              .group_filters = s->dims[0].stride * s->dims[1].stride * s->filters}};
}

static qn_status claim_deconv(bool *taken, qn_claim *claim, const qn_q_ports *ports)
{
    enum { STRIDE_MOST = 16, PATCH_MOST = 32 }; /* beyond that patches are mostly empty */
    qn_q_layer *base = NULL;
    qn_geometry g;
    if (!qn_geometry_q_conv(&g, claim) || g.rank != 2 || g.stride[0] > STRIDE_MOST ||
        g.stride[1] > STRIDE_MOST || !claim->node->in[5])
        return QN_OK;
    QN_TRY(qn_q_layer_create(&base, claim, ports));
    if (base)
        QN_TRY(qn_q_conv_transpose_depthwise(taken, claim, base, &g));
    if (!base || *taken)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->layer = *base;
    describe(s, &g);
    if (s->layer.conv.shape.grid.kernel[0] > PATCH_MOST ||
        s->layer.conv.shape.grid.kernel[1] > PATCH_MOST)
        return QN_OK;
    s->layer.layout = (qn_layout){QN_LAYOUT_CHANNELS_LAST, 0};
    s->layer.period = s->filters;
    QN_TRY(spread_weights(s, claim));
    return qn_q_layer_claim(taken, claim, &s->layer, deconv_kernels);
}

qn_status qn_claim_q_conv_transpose(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    return claim_deconv(taken, claim, &ports);
}

qn_status qn_claim_q_conv_transpose_float(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, -1, -1, 6};
    return claim_deconv(taken, claim, &ports);
}
