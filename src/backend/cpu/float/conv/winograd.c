/* Winograd's convolution of float32: claims, transformed weights, batches of tiles. */
#include "backend/cpu/float/conv/winograd.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/geometry.h"
#include "backend/cpu/parallel.h"

/* ---- Weights --------------------------------------------------------------------------------- */

/* Rows of G: 1, x, x^2 at every point, over the product of its distances to the others. */
static void transform_matrix(double g[QN_WINOGRAD_IN][3])
{
    static const double points[] = {0, QN_WINOGRAD_P, -QN_WINOGRAD_P, QN_WINOGRAD_Q,
                                    -QN_WINOGRAD_Q};
    for (int i = 0; i < 5; i++) {
        double scale = 1;
        for (int j = 0; j < 5; j++)
            scale *= j == i ? 1 : points[i] - points[j];
        g[i][0] = 1 / scale;
        g[i][1] = points[i] / scale;
        g[i][2] = points[i] * points[i] / scale;
    }
    g[5][0] = g[5][1] = 0;
    g[5][2] = 1;
}

/* G k G' of one 3x3 kernel, in doubles and rounded once. */
static void transform_kernel(float *u, double g[QN_WINOGRAD_IN][3], const float *k)
{
    double t[QN_WINOGRAD_IN][3];
    for (int i = 0; i < QN_WINOGRAD_IN; i++) {
        for (int j = 0; j < 3; j++)
            t[i][j] =
                g[i][0] * (double)k[j] + g[i][1] * (double)k[3 + j] + g[i][2] * (double)k[6 + j];
    }
    for (int i = 0; i < QN_WINOGRAD_IN; i++) {
        for (int j = 0; j < QN_WINOGRAD_IN; j++)
            u[i * QN_WINOGRAD_IN + j] =
                (float)(t[i][0] * g[j][0] + t[i][1] * g[j][1] + t[i][2] * g[j][2]);
    }
}

static size_t weight_floats(const qn_winograd *w, int64_t block)
{
    return (size_t)((w->filter_blocks + 1) / 2 * 2 * block * QN_WINOGRAD_XI * w->channel_blocks *
                    block);
}

typedef struct packing {
    const qn_winograd *w;
    float *to;
    /* [filters, channels, 3, 3] at any address. */
    const char *weights;
    int64_t channels, block;
    /* [QN_WINOGRAD_IN]. */
    double (*matrix)[3];
} packing;

static void pack_filters(const void *opaque, int64_t first, int64_t last)
{
    const packing *p = opaque;
    const int64_t block = p->block, padded = p->w->channel_blocks * block;
    for (int64_t k = first; k < last; k++) {
        for (int64_t c = 0; c < p->channels; c++) {
            float kernel[9], u[QN_WINOGRAD_XI];
            memcpy(kernel, p->weights + (size_t)(k * p->channels + c) * sizeof kernel,
                   sizeof kernel);
            transform_kernel(u, p->matrix, kernel);
            for (int64_t xi = 0; xi < QN_WINOGRAD_XI; xi++) {
                const int64_t row = (k / block / 2 * QN_WINOGRAD_XI + xi) * padded + c;
                p->to[(row * 2 + k / block % 2) * block + k % block] = u[xi];
            }
        }
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct run {
    const qn_winograd *w;
    const qn_winograd_kernels *kernels;
    int64_t block;
    float *y;
    const float *x, *r;
    float *scratch;
} run;

/* Tiles [first, last), and where a thread has what comes before and behind the products. */
typedef struct batch {
    const run *r;
    float *v, *m;
    int64_t first, last;
} batch;

static batch batch_of(const run *r, int64_t first, int64_t last, int thread)
{
    const int64_t v_floats = QN_WINOGRAD_XI * r->w->batch * r->w->channel_blocks * r->block;
    const int64_t m_floats = QN_WINOGRAD_XI * r->w->batch * 2 * r->block;
    float *own = r->scratch + thread * (v_floats + m_floats);
    return (batch){r, own, own + v_floats, first, last};
}

static void transform_block(const batch *b, int64_t c)
{
    const qn_winograd *w = b->r->w;
    const int64_t block = b->r->block, tiles = b->last - b->first;
    b->r->kernels->input(w, b->v + c * tiles * block, w->channel_blocks * tiles * block,
                         b->r->x + c * w->height * w->width * block, b->first, b->last);
}

/* Products and output of a pair of filter blocks. */
static void compute_pair(const batch *b, int64_t pair)
{
    const run *r = b->r;
    const qn_winograd *w = r->w;
    const int64_t tiles = b->last - b->first, block = r->block;
    const int64_t xi_step = w->channel_blocks * tiles * block,
                  m_step = QN_WINOGRAD_XI * tiles * block;
    const int64_t parts = (tiles + r->kernels->rows - 1) / r->kernels->rows;
    const int64_t plane = w->out_height * w->out_width * block;
    const int64_t u_step = w->channel_blocks * block * 2 * block;
    const int blocks = w->filter_blocks - pair * 2 >= 2 ? 2 : 1;
    for (int64_t xi = 0; xi < QN_WINOGRAD_XI; xi++) {
        for (int64_t part = 0, at = 0; part < parts; part++) {
            const int64_t next = tiles * (part + 1) / parts;
            const qn_winograd_product p = {b->m + (xi * tiles + at) * block,
                                           b->v + xi * xi_step + at * block,
                                           w->weights + (pair * QN_WINOGRAD_XI + xi) * u_step,
                                           m_step,
                                           tiles * block,
                                           w->channel_blocks,
                                           next - at,
                                           blocks};
            r->kernels->product(&p);
            at = next;
        }
    }
    for (int64_t k = 0; k < blocks; k++) {
        const int64_t filters = pair * 2 + k;
        const qn_winograd_result to = {r->y + filters * plane, r->r ? r->r + filters * plane : NULL,
                                       b->m + k * m_step, tiles * block, filters};
        r->kernels->output(w, &to, b->first, b->last);
    }
}

static int64_t count_pairs(const qn_winograd *w)
{
    return (w->filter_blocks + 1) / 2;
}

/* One of w->batches by itself. */
static void run_batch(const void *opaque, int64_t item, int thread)
{
    const run *r = opaque;
    const qn_winograd *w = r->w;
    const batch b =
        batch_of(r, w->tiles * item / w->batches, w->tiles * (item + 1) / w->batches, thread);
    for (int64_t c = 0; c < w->channel_blocks; c++)
        transform_block(&b, c);
    for (int64_t pair = 0; pair < count_pairs(w); pair++)
        compute_pair(&b, pair);
}

static void share_block(const void *opaque, int64_t c, int thread)
{
    (void)thread;
    transform_block(opaque, c);
}

static void share_pair(const void *opaque, int64_t pair, int thread)
{
    const batch *shared = opaque;
    batch b = batch_of(shared->r, shared->first, shared->last, thread);
    b.v = shared->v;
    compute_pair(&b, pair);
}

/* The batches in turn, each by all threads. */
static void run_shared(const run *r, int threads)
{
    const qn_winograd *w = r->w;
    for (int64_t first = 0; first < w->tiles; first += w->batch) {
        const batch b = batch_of(r, first, QN_MIN(first + w->batch, w->tiles), 0);
        qn_parallel_items(threads, w->channel_blocks, share_block, &b);
        qn_parallel_items(threads, count_pairs(w), share_pair, &b);
    }
}

/* ---- Claim ----------------------------------------------------------------------------------- */

typedef struct state {
    qn_winograd wino;
    qn_geometry g;
    int64_t block;
    const qn_winograd_kernels *kernels;
    const qn_tensor *weights, *bias;
} state;

static void pack(float *to, const state *s, int threads)
{
    enum { ALONE = 16 };
    double matrix[QN_WINOGRAD_IN][3];
    const packing p = {&s->wino, to, s->weights->data, s->g.channels, s->block, matrix};
    transform_matrix(matrix);
    memset(to, 0, weight_floats(&s->wino, s->block) * sizeof *to);
    qn_parallel(threads, s->g.filters, ALONE, pack_filters, &p);
}

static qn_status wino_prepare(qn_claim *claim)
{
    state *s = claim->state;
    qn_winograd *w = &s->wino;
    qn_context *ctx = qn_build_context(claim->builder);
    const int64_t threads = qn_build_threads(claim->builder);
    float *weights =
        qn_build_alloc_weights(claim->builder, weight_floats(w, s->block) * sizeof *weights);
    float *bias =
        qn_build_alloc(claim->builder, (size_t)(w->filter_blocks * s->block) * sizeof *bias);
    if (!weights || !bias)
        return qn_fail_nomem(ctx);
    pack(weights, s, (int)threads);
    if (s->bias)
        memcpy(bias, s->bias->data, (size_t)s->g.filters * sizeof *bias);
    w->weights = weights;
    w->bias = bias;
    w->x_stride = (int64_t)(claim->in[0].stride / sizeof(float));
    qn_epilogue_prepare(&w->end, claim);
    claim->scratch =
        (size_t)(threads * QN_WINOGRAD_XI * w->batch * (w->channel_blocks + 2) * s->block) *
        sizeof(float);
    return QN_OK;
}

static qn_status wino_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const run r = {.w = &s->wino,
                   .kernels = s->kernels,
                   .block = s->block,
                   .y = io->out[0]->data,
                   .x = io->in[0]->data,
                   .r = qn_epilogue_residual(&s->wino.end, io),
                   .scratch = io->scratch};
    (void)bound;
    if (s->wino.split_filters)
        run_shared(&r, io->threads);
    else
        qn_parallel_items(io->threads, s->wino.batches, run_batch, &r);
    qn_epilogue_run(&s->wino.end, io);
    return QN_OK;
}

static const qn_kernel wino_kernel = {
    .name = "winograd", .prepare = wino_prepare, .run = wino_run, .mac_ns = 0.004F};

/* How many tiles at once: V should stay in the second cache, and threads should get equal parts. */
static void choose_batch(state *s, int64_t threads)
{
    enum { V_BYTES = 400 * 1024, MOST = 56 };
    qn_winograd *w = &s->wino;
    const int64_t rows = s->kernels->rows;
    const int64_t tile_bytes =
        QN_WINOGRAD_XI * w->channel_blocks * s->block * (int64_t)sizeof(float);
    w->split_filters =
        w->tiles < rows * threads * 2 && w->filter_blocks >= 2 * threads && w->channel_blocks >= 4;
    if (w->split_filters) {
        w->batch = QN_MIN(w->tiles, MOST);
        return;
    }
    const int64_t most = QN_MIN(QN_MAX(V_BYTES / tile_bytes, rows), MOST) / rows * rows;
    const int64_t each = (w->tiles + threads - 1) / threads;
    const int64_t batches = (each + most - 1) / most;
    w->batches = batches * threads;
    w->batch = (each + batches - 1) / batches;
}

static void describe(state *s, const qn_geometry *g)
{
    qn_winograd *w = &s->wino;
    const int64_t b = s->block;
    s->g = *g;
    w->height = g->in[0];
    w->width = g->in[1];
    w->out_height = g->out[0];
    w->out_width = g->out[1];
    w->pad_top = g->pad_begin[0];
    w->pad_left = g->pad_begin[1];
    w->channel_blocks = (g->channels + b - 1) / b;
    w->filter_blocks = (g->filters + b - 1) / b;
    w->tiles_across = (g->out[1] + QN_WINOGRAD_OUT - 1) / QN_WINOGRAD_OUT;
    w->tiles_of_sample = (g->out[0] + QN_WINOGRAD_OUT - 1) / QN_WINOGRAD_OUT * w->tiles_across;
    w->tiles = w->tiles_of_sample * g->samples;
}

/* Bytes that transformed weights need beyond the plain ones. */
static int64_t added_bytes(const qn_geometry *g)
{
    return (QN_WINOGRAD_XI - 9) * g->channels * g->filters * (int64_t)sizeof(float);
}

/* The rule: 3x3, no strides, enough channels to fill vectors and a map that is more than a few
 * tiles. */
static bool is_fit(const qn_geometry *g)
{
    for (int d = 0; d < 2; d++) {
        if (g->kernel[d] != 3 || g->stride[d] != 1 || g->dilation[d] != 1 || g->in[d] < 8)
            return false;
    }
    return g->rank == 2 && g->groups == 1 && g->channels >= 12 && g->filters >= 16;
}

/* Many transformed weights pay only where many tiles share them. */
static qn_status is_allowed(bool *out, const qn_geometry *g, qn_builder *builder)
{
    enum { MANY_TILES = 64 };
    const int64_t tiles = g->samples * ((g->out[0] + 3) / 4) * ((g->out[1] + 3) / 4);
    return qn_cpu_allows_winograd(out, builder, added_bytes(g), tiles >= MANY_TILES ? 0.5 : 0);
}

qn_status qn_claim_winograd(bool *taken, qn_claim *claim)
{
    const qn_kernels *kernels = qn_kernels_get();
    const qn_node *node = claim->node;
    qn_geometry g;
    bool allowed;
    if (!kernels->wino || !qn_geometry_conv(&g, claim->builder, node) || !is_fit(&g))
        return QN_OK;
    QN_TRY(is_allowed(&allowed, &g, claim->builder));
    if (!allowed)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = kernels->wino;
    s->block = kernels->width;
    s->weights = node->in[1]->data;
    s->bias = node->n_in > 2 && node->in[2] ? node->in[2]->data : NULL;
    describe(s, &g);
    choose_batch(s, qn_build_threads(claim->builder));
    qn_claim_in(claim, node->in[0], qn_layout_native())->strided = true;
    QN_TRY(qn_epilogue_take(&s->wino.end, claim, node->out[0]));
    qn_epilogue_close(&s->wino.end, claim);
    claim->state = s;
    claim->kernel = &wino_kernel;
    *taken = true;
    return QN_OK;
}
