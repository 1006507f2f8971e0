/* Convolutions of float32 with 1x1 kernels in blocks of channels: claims, packed weights, tiles. */
#include "backend/cpu/float/conv/pointwise.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/geometry.h"
#include "backend/cpu/parallel.h"

/* ---- Computing ------------------------------------------------------------------------------- */

/* Long sums are sums of shorter ones, which keeps rounding errors small. The order is always the
 * same, and the bias comes last. */
static void compute_tile(const qn_pointwise *p, qn_pointwise_tile *t)
{
    enum { CHANNELS = 256, WIDEST = 16 };
    _Alignas(64) float total[2 * QN_POINTWISE_PLACES * WIDEST];
    const int64_t b = p->block, run = CHANNELS / b, all = p->channel_blocks;
    const float *next = t->next, *weights = t->weights;
    t->total = total;
    for (int64_t from = 0; from < all; from += run, t->x = t->next) {
        t->channel_blocks = QN_MIN(run, all - from);
        t->has_total = from > 0;
        t->to_total = from + run < all;
        t->next = t->to_total ? t->x + run * t->x_step : next;
        t->weights = weights + from * b * t->blocks * b;
        p->kernels->tile(t, &p->end.fused);
    }
    t->weights = weights;
}

/* Where the result of a place stands. */
static int64_t out_place(const qn_pointwise *p, int64_t place)
{
    return (place / p->width + p->pad_top) * p->out_width + place % p->width + p->pad_left;
}

static qn_pointwise_tile tile_of(const qn_pointwise *p, const qn_pointwise_part *part, int64_t pair)
{
    const int64_t b = p->block, plane = p->out_places * b;
    return (qn_pointwise_tile){.weights = p->packed + pair * 2 * p->channel_blocks * b * b,
                               .bias = p->bias + pair * 2 * b,
                               .x_step = part->x_step,
                               .y_step = plane,
                               .r_step = plane,
                               .blocks = p->filter_blocks - pair * 2 > 1 ? 2 : 1};
}

static void aim(qn_pointwise_tile *t, const qn_pointwise_part *part, int64_t offset)
{
    t->y = part->y + offset;
    t->r = part->r ? part->r + offset : t->y;
}

/* Places [from, to) of the part, whose results stand side by side. */
static void compute_stretch(const qn_pointwise *p, const qn_pointwise_part *part, int64_t pair,
                            int64_t from, int64_t to)
{
    const int64_t b = p->block, count = to - from, most = p->kernels->places;
    const int64_t tiles = (count + most - 1) / most;
    const int64_t out = pair * 2 * p->out_places + out_place(p, part->first + from);
    qn_pointwise_tile t = tile_of(p, part, pair);
    for (int64_t i = 0, at = 0; i < tiles; i++, at += t.places) {
        t.places = count * (i + 1) / tiles - at;
        t.x = part->x + (from + at) * b;
        t.next = from + at + t.places < part->count ? t.x + t.places * b : part->x;
        aim(&t, part, (out + at) * b);
        compute_tile(p, &t);
    }
}

/* Tiles of no channels over what stands between the rows, and before and behind them. */
static void compute_border(const qn_pointwise *p, const qn_pointwise_part *part, int64_t pair)
{
    const int64_t rows = p->places / p->width;
    qn_pointwise_tile t = tile_of(p, part, pair);
    for (int64_t row = 0, at = 0; row <= rows; row++) {
        const int64_t end = row < rows ? out_place(p, row * p->width) : p->out_places;
        for (; at < end; at += t.places) {
            t.places = QN_MIN(end - at, p->kernels->places);
            aim(&t, part, (pair * 2 * p->out_places + at) * p->block);
            p->kernels->tile(&t, &p->end.fused);
        }
        at += p->width;
    }
}

static void compute_pair(const qn_pointwise *p, const qn_pointwise_part *part, int64_t pair)
{
    if (!qn_pointwise_has_border(p)) {
        compute_stretch(p, part, pair, 0, part->count);
        return;
    }
    for (int64_t at = 0, next; at < part->count; at = next) {
        next = QN_MIN(at + p->width - (part->first + at) % p->width, part->count);
        compute_stretch(p, part, pair, at, next);
    }
    if (part->first == 0)
        compute_border(p, part, pair);
}

bool qn_pointwise_has_border(const qn_pointwise *p)
{
    return p->out_places > p->places;
}

void qn_pointwise_compute(const qn_pointwise *p, const qn_pointwise_part *part)
{
    for (int64_t pair = part->from; pair < part->to; pair++)
        compute_pair(p, part, pair);
}

int64_t qn_pointwise_places(int64_t channels)
{
    enum { CACHE_BYTES = 256 * 1024, LEAST = QN_POINTWISE_PLACES };
    return QN_MAX(CACHE_BYTES / (channels * (int64_t)sizeof(float)), LEAST);
}

/* ---- Preparing ------------------------------------------------------------------------------- */

/* One block of filters: rows of [filters, channels] in `band`, to [channel_blocks * b, b] whose
 * rows stand `step` floats apart. */
static void pack_block(float *to, const qn_pointwise *p, const float *band, int64_t rows,
                       int64_t step)
{
    const int64_t b = p->block;
    for (int64_t c = 0; c < p->channels; c += b) {
        const qn_transpose_tile t = {.y = to + c * step,
                                     .x = band + c,
                                     .y_step = step,
                                     .x_step = p->channels,
                                     .rows = rows,
                                     .columns = QN_MIN(b, p->channels - c),
                                     .fill = true};
        qn_kernels_get()->transpose(&t);
    }
}

/* The file may have the weights at any address. */
static qn_status pack(const qn_pointwise *p, qn_context *ctx)
{
    const int64_t b = p->block, depth = p->channel_blocks * b;
    const char *from = p->weights->data;
    float *band = qn_alloc_aligned(&ctx->allocator, (size_t)(p->channels * b) * sizeof *band);
    QN_TRY_ALLOC(ctx, band);
    for (int64_t block = 0; block < p->filter_blocks; block++) {
        const int64_t rows = QN_MIN(b, p->filters - block * b);
        const bool alone = block % 2 == 0 && block + 1 == p->filter_blocks;
        memcpy(band, from + (size_t)(block * b * p->channels) * sizeof *band,
               (size_t)(rows * p->channels) * sizeof *band);
        pack_block(p->packed + block / 2 * 2 * depth * b + block % 2 * b, p, band, rows,
                   alone ? b : 2 * b);
    }
    qn_free_aligned(&ctx->allocator, band);
    return QN_OK;
}

qn_status qn_pointwise_prepare(qn_pointwise *p, const qn_claim *claim)
{
    qn_context *ctx = qn_build_context(claim->builder);
    const size_t padded = (size_t)(p->filter_blocks * p->block);
    const size_t bytes = padded * (size_t)(p->channel_blocks * p->block) * sizeof(float);
    p->packed = qn_build_alloc_weights(claim->builder, bytes);
    p->bias = qn_build_alloc(claim->builder, padded * sizeof *p->bias);
    if (!p->packed || !p->bias)
        return qn_fail_nomem(ctx);
    if (p->channels % p->block != 0)
        memset(p->packed, 0, bytes);
    if (p->constant)
        memcpy(p->bias, p->constant->data, (size_t)p->filters * sizeof *p->bias);
    qn_epilogue_prepare(&p->end, claim);
    return pack(p, ctx);
}

/* On maps of few places the kernel would fill few registers, and read the weights again for every
 * sample; on one such map it waits for nothing but the weights. Few channels come row-major.
 * `alone`: a sample by itself may be computed in another way. */
static bool is_wanted(const qn_geometry *g, bool alone)
{
    enum { FEW_PLACES = 8, FEW_CHANNELS = 8 };
    for (int d = 0; d < 2; d++) {
        if (g->kernel[d] != 1 || g->stride[d] != 1 || g->pad_begin[d] < 0 || g->pad_end[d] < 0)
            return false;
    }
    return g->rank == 2 && g->groups == 1 && g->channels >= FEW_CHANNELS &&
           ((alone && g->samples == 1) || g->in[0] * g->in[1] >= FEW_PLACES);
}

bool qn_pointwise_describe(qn_pointwise *p, const qn_builder *builder, const qn_node *node)
{
    const qn_kernels *kernels = qn_kernels_get();
    const int64_t b = kernels->width;
    qn_geometry g;
    if (!kernels->pointwise || !qn_geometry_conv(&g, builder, node) ||
        !is_wanted(&g, !qn_build_direct(builder)))
        return false;
    *p = (qn_pointwise){
        .samples = g.samples,
        .places = g.in[0] * g.in[1],
        .width = g.in[1],
        .out_width = g.out[1],
        .pad_left = g.pad_begin[1],
        .pad_top = g.pad_begin[0],
        .out_places = g.out[0] * g.out[1],
        .channels = g.channels,
        .filters = g.filters,
        .channel_blocks = (g.channels + b - 1) / b,
        .filter_blocks = (g.filters + b - 1) / b,
        .block = b,
        .split_filters = qn_split_filters(&g, qn_build_threads(builder)),
        .kernels = kernels->pointwise,
        .weights = node->in[1]->data,
        .constant = node->n_in > 2 && node->in[2] ? node->in[2]->data : NULL,
    };
    return true;
}

/* ---- A step of its own ----------------------------------------------------------------------- */

typedef struct state {
    qn_pointwise p;
    /* Floats from sample to sample. */
    int64_t x_stride;
} state;

typedef struct work {
    const state *s;
    float *y;
    const float *x, *r;
} work;

/* Places [first, last) of those of all samples. */
static void run_part(const work *w, qn_pointwise_part part, int64_t first, int64_t last)
{
    const qn_pointwise *p = &w->s->p;
    const int64_t at_once = qn_pointwise_places(p->channels);
    for (; first < last; first += part.count) {
        const int64_t n = first / p->places;
        part.first = first % p->places;
        part.count = QN_MIN(QN_MIN(last - first, p->places - part.first), at_once);
        part.x_step = p->places * p->block;
        part.x = w->x + n * w->s->x_stride + part.first * p->block;
        part.y = w->y + n * p->end.y_stride;
        part.r = w->r ? w->r + n * p->end.r_stride : NULL;
        qn_pointwise_compute(p, &part);
    }
}

static void run_places(const void *opaque, int64_t first, int64_t last, int thread)
{
    const work *w = opaque;
    const qn_pointwise_part part = {.from = 0, .to = (w->s->p.filter_blocks + 1) / 2};
    (void)thread;
    run_part(w, part, first, last);
}

static void run_filters(const void *opaque, int64_t first, int64_t last, int thread)
{
    const work *w = opaque;
    const qn_pointwise_part part = {.from = first, .to = last};
    (void)thread;
    run_part(w, part, 0, w->s->p.samples * w->s->p.places);
}

static qn_status pointwise_run(const void *opaque, void *bound, const qn_step_io *io)
{
    enum { LEAST_PAIRS = 2, LEAST_TILES = 8 };
    const state *s = opaque;
    const qn_pointwise *p = &s->p;
    const work w = {s, io->out[0]->data, io->in[0]->data, qn_epilogue_residual(&p->end, io)};
    (void)bound;
    if (p->split_filters)
        qn_parallel_parts(io->threads, (p->filter_blocks + 1) / 2, LEAST_PAIRS, run_filters, &w);
    else
        qn_parallel_parts(io->threads, p->samples * p->places,
                          LEAST_TILES * (int64_t)p->kernels->places, run_places, &w);
    qn_epilogue_run(&p->end, io);
    return QN_OK;
}

static qn_status step_prepare(qn_claim *claim)
{
    state *s = claim->state;
    s->x_stride = (int64_t)(claim->in[0].stride / sizeof(float));
    return qn_pointwise_prepare(&s->p, claim);
}

static const qn_kernel pointwise_kernel = {
    .name = "pointwise", .prepare = step_prepare, .run = pointwise_run};

qn_status qn_claim_pointwise(bool *taken, qn_claim *claim)
{
    qn_pointwise p;
    if (!qn_pointwise_describe(&p, claim->builder, claim->node))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->p = p;
    qn_claim_in(claim, claim->node->in[0], qn_layout_native())->strided = true;
    QN_TRY(qn_epilogue_take(&s->p.end, claim, claim->node->out[0]));
    qn_epilogue_close(&s->p.end, claim);
    claim->state = s;
    claim->kernel = &pointwise_kernel;
    *taken = true;
    return QN_OK;
}
