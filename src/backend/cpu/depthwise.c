#include "backend/cpu/depthwise.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/geometry.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"

typedef struct state {
    qn_depthwise d;
    int64_t block, kernel, channels;
    qn_depthwise_fn *row;
    qn_tail tail;
    int32_t n_fused;
    const qn_tensor *weights, *bias;
} state;

/* ---- Running --------------------------------------------------------------------------------------------- */

typedef struct work {
    const state *s;
    float *y;
    const float *x, *r;
} work;

/* Rows [first, last) of those of all samples, every block of channels: threads get the part of the map
 * that the convolutions before and after give them, and find it in their cache. */
static void run_rows(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const qn_depthwise *d = &w->s->d;
    const int64_t b = w->s->block, height = d->out_height;
    for (int64_t n = first / height; n * height < last; n++) {
        const int64_t from = QN_MAX(first - n * height, 0), to = QN_MIN(last - n * height, height);
        for (int64_t block = 0; block < d->blocks; block++) {
            const int64_t plane = block * height * d->out_width * b;
            qn_depthwise_row row = {.x = w->x + n * d->x_stride + block * d->height * d->width * b,
                                    .weights = d->weights + block * w->s->kernel * w->s->kernel * b,
                                    .bias = d->bias + block * b};
            for (row.row = from; row.row < to; row.row++) {
                const int64_t at = plane + row.row * d->out_width * b;
                row.y = w->y + n * d->y_stride + at;
                row.r = w->r ? w->r + n * d->r_stride + at : row.y;
                w->s->row(d, &row);
            }
        }
    }
}

static qn_status depthwise_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    work w = {s, io->out[0]->data, io->in[0]->data, NULL};
    (void)bound;
    if (s->d.finish.operand >= 0)
        w.r = io->in[s->tail.operands[s->d.finish.operand].in]->data;
    qn_parallel(io->threads, s->d.samples * s->d.out_height, 2, run_rows, &w);
    if (s->tail.chain.n_stages > 0)
        qn_tail_run(&s->tail, io->out[0]->data, io);
    return QN_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------------------- */

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
    d->y_stride = (int64_t)(claim->out[0].stride / sizeof(float));
    if (d->finish.operand >= 0)
        d->r_stride =
            (int64_t)(claim->in[s->tail.operands[d->finish.operand].in].stride / sizeof(float));
    qn_tail_prepare(&s->tail, claim, -1);
    qn_tail_skip(&s->tail, s->n_fused);
    return QN_OK;
}

static const qn_kernel depthwise_kernel = {
    .name = "depthwise", .prepare = depthwise_prepare, .run = depthwise_run};

/* ---- Claiming ---------------------------------------------------------------------------------------------- */

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

qn_status qn_claim_depthwise(bool *taken, qn_claim *claim)
{
    const qn_kernels *kernels = qn_kernels_get();
    const qn_node *node = claim->node;
    qn_geometry g;
    if (!kernels->depthwise || !qn_geometry_conv(&g, claim) || !is_wanted(&g))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->block = kernels->width;
    s->row = kernels->depthwise[g.kernel[0] == 5][g.stride[1] == 2];
    s->weights = node->in[1]->data;
    s->bias = node->n_in > 2 && node->in[2] ? node->in[2]->data : NULL;
    describe(s, &g);
    const qn_layout layout = qn_layout_native();
    qn_claim_in(claim, node->in[0], layout)->strided = true;
    (void)qn_tail_begin(&s->tail, claim, node->out[0], layout);
    QN_TRY(qn_tail_grow(&s->tail, claim));
    s->n_fused = qn_finish_take(&s->d.finish, &s->tail, g.channels % s->block != 0);
    qn_tail_finish(&s->tail, claim);
    qn_finish_place(claim, &s->d.finish, &s->tail);
    claim->state = s;
    claim->kernel = &depthwise_kernel;
    *taken = true;
    return QN_OK;
}
