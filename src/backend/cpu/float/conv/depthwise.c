/* Depthwise convolutions of float32 in blocks of channels: claims, rows shared among threads. */
#include "backend/cpu/float/conv/depthwise.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/conv/pointwise.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/geometry.h"
#include "backend/cpu/parallel.h"

/* A 1x1 convolution behind it is computed on rows that are still in the cache, so that its input is
 * never in memory as a whole. */
typedef struct state {
    qn_depthwise d;
    int64_t block, kernel, channels;
    qn_depthwise_fn *row;
    bool split_channels;
    const qn_tensor *weights, *bias;
    /* NULL: none. */
    qn_pointwise *then;
    /* Rows before `then` takes them. */
    int64_t at_once;
} state;

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct work {
    const state *s;
    float *y;
    const float *x, *r;
    float *scratch;
} work;

/* Rows [first, last) of a sample; y, r: their place in the first block of channels. */
typedef struct part {
    float *y;
    const float *x, *r;
    /* Floats from block to block, as in r. */
    int64_t y_step;
    int64_t first, last;
} part;

/* What will be read and written some vectors later, in this block or in the one behind it. */
static void look_ahead(qn_depthwise_row *row, const state *s, const part *p)
{
    enum { VECTORS = 32 };
    const qn_depthwise *d = &s->d;
    const int64_t rows = p->last - p->first, b = s->block;
    const int64_t ahead = row->row - p->first + (VECTORS + d->out_width - 1) / d->out_width;
    const int64_t to = p->first + ahead % rows, block = ahead / rows;
    const int64_t below = to * d->stride_down - d->pad_top + s->kernel - d->stride_down;
    const int64_t from = QN_MAX(QN_MIN(below, d->height - d->stride_down), 0);
    row->y_soon = row->y + block * p->y_step + (to - row->row) * d->out_width * b;
    row->x_soon = row->x + (block * d->height + from) * d->width * b;
}

static void run_block(const state *s, const part *p, int64_t block)
{
    const qn_depthwise *d = &s->d;
    const int64_t b = s->block, across = d->out_width * b;
    qn_depthwise_row row = {.x = p->x + block * d->height * d->width * b,
                            .weights = d->weights + block * s->kernel * s->kernel * b,
                            .bias = d->bias + block * b};
    for (row.row = p->first; row.row < p->last; row.row++) {
        const int64_t at = block * p->y_step + (row.row - p->first) * across;
        row.y = p->y + at;
        row.r = p->r ? p->r + at : row.y;
        look_ahead(&row, s, p);
        s->row(d, &row);
    }
}

/* Rows [from, to) of sample n in the tensors. */
static part part_of(const work *w, int64_t n, int64_t from, int64_t to)
{
    const qn_depthwise *d = &w->s->d;
    const int64_t across = d->out_width * w->s->block;
    return (part){.y = w->y + n * d->end.y_stride + from * across,
                  .x = w->x + n * d->x_stride,
                  .r = w->r ? w->r + n * d->end.r_stride + from * across : NULL,
                  .y_step = d->out_height * across,
                  .first = from,
                  .last = to};
}

/* Rows [first, last) of those of all samples, every block of channels. */
static void run_rows(const void *opaque, int64_t first, int64_t last, int thread)
{
    const work *w = opaque;
    const int64_t height = w->s->d.out_height;
    (void)thread;
    for (int64_t n = first / height; n * height < last; n++) {
        const part p =
            part_of(w, n, QN_MAX(first - n * height, 0), QN_MIN(last - n * height, height));
        for (int64_t block = 0; block < w->s->d.blocks; block++)
            run_block(w->s, &p, block);
    }
}

/* Blocks [first, last) of channels of every sample. */
static void run_channels(const void *opaque, int64_t first, int64_t last, int thread)
{
    const work *w = opaque;
    (void)thread;
    for (int64_t n = 0; n < w->s->d.samples; n++) {
        const part p = part_of(w, n, 0, w->s->d.out_height);
        for (int64_t block = first; block < last; block++)
            run_block(w->s, &p, block);
    }
}

static qn_status depthwise_run(const void *opaque, void *bound, const qn_step_io *io)
{
    enum { LEAST_BLOCKS = 2, LEAST_ROWS = 4 };
    const state *s = opaque;
    const work w = {.s = s,
                    .y = io->out[0]->data,
                    .x = io->in[0]->data,
                    .r = qn_epilogue_residual(&s->d.end, io)};
    (void)bound;
    if (s->split_channels)
        qn_parallel_parts(io->threads, s->d.blocks, LEAST_BLOCKS, run_channels, &w);
    else
        qn_parallel_parts(io->threads, s->d.samples * s->d.out_height, LEAST_ROWS, run_rows, &w);
    qn_epilogue_run(&s->d.end, io);
    return QN_OK;
}

/* ---- Running with a 1x1 convolution behind it ------------------------------------------------ */

/* Floats of the rows between the two, which every thread has for itself. */
static int64_t between(const state *s)
{
    return s->d.blocks * s->at_once * s->d.out_width * s->block;
}

/* Rows [from, to) of sample n. */
static void run_both(const work *w, float *rows, int64_t n, int64_t from, int64_t to)
{
    const state *s = w->s;
    const qn_depthwise *d = &s->d;
    const int64_t step = s->at_once * d->out_width * s->block;
    const part p = {
        .y = rows, .x = w->x + n * d->x_stride, .y_step = step, .first = from, .last = to};
    for (int64_t block = 0; block < d->blocks; block++)
        run_block(s, &p, block);
    const qn_pointwise_part then = {.y = w->y + n * s->then->end.y_stride,
                                    .r = w->r ? w->r + n * s->then->end.r_stride : NULL,
                                    .x = rows,
                                    .x_step = step,
                                    .first = from * d->out_width,
                                    .count = (to - from) * d->out_width,
                                    .from = 0,
                                    .to = (s->then->filter_blocks + 1) / 2};
    qn_pointwise_compute(s->then, &then);
}

/* Rows [first, last) of those of all samples. */
static void run_rows_of_both(const void *opaque, int64_t first, int64_t last, int thread)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t height = s->d.out_height;
    float *rows = w->scratch + thread * between(s);
    while (first < last) {
        const int64_t n = first / height, from = first % height;
        const int64_t left = QN_MIN(height - from, last - first);
        const int64_t parts = (left + s->at_once - 1) / s->at_once,
                      now = (left + parts - 1) / parts;
        run_both(w, rows, n, from, from + now);
        first += now;
    }
}

static qn_status separable_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {.s = s,
                    .y = io->out[0]->data,
                    .x = io->in[0]->data,
                    .r = qn_epilogue_residual(&s->then->end, io),
                    .scratch = io->scratch};
    (void)bound;
    qn_parallel_parts(io->threads, s->d.samples * s->d.out_height, (s->at_once + 1) / 2,
                      run_rows_of_both, &w);
    qn_epilogue_run(&s->then->end, io);
    return QN_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------- */

/* weights: [channels, 1, kernel, kernel] at any address, to [blocks, kernel, kernel, b] */
static void pack(float *out, const state *s)
{
    const int64_t size = s->kernel * s->kernel;
    const char *from = s->weights->data;
    for (int64_t c = 0; c < s->channels; c++) {
        for (int64_t i = 0; i < size; i++)
            memcpy(&out[(c / s->block * size + i) * s->block + c % s->block],
                   from + (size_t)(c * size + i) * sizeof *out, sizeof *out);
    }
}

static qn_status depthwise_prepare(qn_claim *claim)
{
    state *s = claim->state;
    qn_depthwise *d = &s->d;
    const size_t padded = (size_t)(d->blocks * s->block);
    float *weights =
        qn_build_alloc(claim->builder, padded * (size_t)(s->kernel * s->kernel) * sizeof *weights);
    float *bias = qn_build_alloc(claim->builder, padded * sizeof *bias);
    if (!weights || !bias)
        return qn_fail_nomem(qn_build_context(claim->builder));
    pack(weights, s);
    if (s->bias)
        memcpy(bias, s->bias->data, (size_t)s->channels * sizeof *bias);
    d->weights = weights;
    d->bias = bias;
    d->x_stride = (int64_t)(claim->in[0].stride / sizeof(float));
    if (!s->then) {
        qn_epilogue_prepare(&d->end, claim);
        return QN_OK;
    }
    claim->scratch = (size_t)(qn_build_threads(claim->builder) * between(s)) * sizeof(float);
    return qn_pointwise_prepare(s->then, claim);
}

static const qn_kernel depthwise_kernel = {
    .name = "depthwise", .prepare = depthwise_prepare, .run = depthwise_run};
static const qn_kernel separable_kernel = {
    .name = "separable", .prepare = depthwise_prepare, .run = separable_run};

/* ---- Claiming -------------------------------------------------------------------------------- */

static bool is_wanted(const qn_geometry *g)
{
    for (int d = 0; d < 2; d++) {
        if ((g->kernel[d] != 3 && g->kernel[d] != 5) || g->kernel[d] != g->kernel[0] ||
            g->stride[d] > 2 || g->dilation[d] != 1)
            return false;
    }
    return g->rank == 2 && g->groups > 1 && g->groups == g->channels && g->groups == g->filters;
}

static void describe(state *s, const qn_geometry *g)
{
    s->kernel = g->kernel[0];
    s->channels = g->channels;
    s->d = (qn_depthwise){.samples = g->samples,
                          .blocks = (g->channels + s->block - 1) / s->block,
                          .height = g->in[0],
                          .width = g->in[1],
                          .out_height = g->out[0],
                          .out_width = g->out[1],
                          .pad_top = g->pad_begin[0],
                          .pad_left = g->pad_begin[1],
                          .stride_down = g->stride[0]};
}

/* Takes the 1x1 convolution behind it, where threads share both by rows, and where its weights are
 * so few that reading them for some rows at a time costs less than the map between the two. */
static qn_status take_pointwise(state *s, qn_claim *claim)
{
    enum { MOST_WEIGHTS = 1 << 16 };
    const qn_depthwise *d = &s->d;
    const int64_t rows = d->samples * d->out_height, threads = qn_build_threads(claim->builder);
    qn_value *y = d->end.tail.out;
    qn_node *next = qn_build_fusible(claim->builder, y);
    qn_pointwise p;
    if (!qn_epilogue_is_inner(&d->end) || (rows % threads != 0 && rows < 8 * threads) || !next ||
        next->op != &qn_op_Conv || next->in[0] != y ||
        !qn_pointwise_describe(&p, claim->builder, next) || qn_pointwise_has_border(&p) ||
        p.split_filters || p.channels * p.filters > MOST_WEIGHTS)
        return QN_OK;
    s->then = qn_build_alloc(claim->builder, sizeof *s->then);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s->then);
    *s->then = p;
    s->at_once = QN_MIN(QN_MAX(qn_pointwise_places(s->channels) / d->out_width, 1), d->out_height);
    qn_claim_add(claim, next);
    return qn_epilogue_take(&s->then->end, claim, next->out[0]);
}

qn_status qn_claim_depthwise(bool *taken, qn_claim *claim)
{
    const qn_kernels *kernels = qn_kernels_get();
    const qn_node *node = claim->node;
    qn_geometry g;
    if (!kernels->depthwise || !qn_geometry_conv(&g, claim->builder, node) || !is_wanted(&g))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->block = kernels->width;
    s->row = kernels->depthwise[g.kernel[0] == 5][g.stride[1] == 2];
    s->split_channels = qn_split_filters(&g, qn_build_threads(claim->builder));
    s->weights = node->in[1]->data;
    s->bias = node->n_in > 2 && node->in[2] ? node->in[2]->data : NULL;
    describe(s, &g);
    qn_claim_in(claim, node->in[0], qn_layout_native())->strided = true;
    QN_TRY(qn_epilogue_take(&s->d.end, claim, node->out[0]));
    QN_TRY(take_pointwise(s, claim));
    qn_epilogue_close(s->then ? &s->then->end : &s->d.end, claim);
    claim->state = s;
    claim->kernel = s->then ? &separable_kernel : &depthwise_kernel;
    *taken = true;
    return QN_OK;
}
