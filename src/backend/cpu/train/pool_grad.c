/* MaxPoolGrad and AveragePoolGrad over two dimensions: a plane at a time. */
#include <string.h>

#include "backend/cpu/parallel.h"
#include "backend/cpu/train/train.h"
#include "ops/grad_attrs.h"
#include "ops/window.h"

typedef struct pool {
    qn_window window;
    bool counts_pads;
    int64_t planes, in, out;
} pool;

typedef struct work {
    const pool *pool;
    const float *dy, *x;
    float *dx;
} work;

/* Where a window lies inside the input, in one dimension: positions [first, first + count * step)
 * and, with pads, how many elements count for an average. */
typedef struct span {
    int64_t first, count, counted;
} span;

static span span_of(const qn_window *w, int32_t d, int64_t at, bool counts_pads)
{
    const int64_t start = at * w->stride[d] - w->pad_begin[d], step = w->dilation[d];
    const int64_t in = w->in[d].value, most = in + w->pad_end[d];
    span s = {.first = start};
    for (int64_t k = 0; k < w->kernel[d]; k++) {
        const int64_t x = start + k * step;
        if (x >= 0 && x < in && s.count++ == 0)
            s.first = x;
        s.counted += x < most;
    }
    if (!counts_pads)
        s.counted = s.count;
    return s;
}

/* ---- One window ------------------------------------------------------------------------------ */

static void spread_average(const pool *p, float *dx, span y, span x, float dy)
{
    const qn_window *w = &p->window;
    const float share = dy / (float)(y.counted * x.counted);
    for (int64_t i = 0; i < y.count; i++) {
        float *row = dx + (y.first + i * w->dilation[0]) * w->in[1].value + x.first;
        for (int64_t k = 0; k < x.count; k++)
            row[k * w->dilation[1]] += share;
    }
}

/* The first of the largest. */
static int64_t place_of_max(const pool *p, const float *image, span y, span x)
{
    const qn_window *w = &p->window;
    int64_t best = y.first * w->in[1].value + x.first;
    for (int64_t i = 0; i < y.count; i++) {
        const int64_t row = (y.first + i * w->dilation[0]) * w->in[1].value + x.first;
        for (int64_t k = 0; k < x.count; k++) {
            const int64_t at = row + k * w->dilation[1];
            if (image[at] > image[best] || (image[at] != image[at] && image[best] == image[best]))
                best = at;
        }
    }
    return best;
}

static void plane_grad(const void *opaque, int64_t plane, int thread)
{
    const work *j = opaque;
    const pool *p = j->pool;
    const qn_window *w = &p->window;
    float *dx = j->dx + plane * p->in;
    (void)thread;
    memset(dx, 0, (size_t)p->in * sizeof *dx);
    for (int64_t row = 0; row < w->out[0].value; row++) {
        const span y = span_of(w, 0, row, p->counts_pads);
        for (int64_t column = 0; column < w->out[1].value; column++) {
            const span x = span_of(w, 1, column, p->counts_pads);
            const float dy = j->dy[plane * p->out + row * w->out[1].value + column];
            if (y.count == 0 || x.count == 0)
                continue;
            if (j->x)
                dx[place_of_max(p, j->x + plane * p->in, y, x)] += dy;
            else
                spread_average(p, dx, y, x, dy);
        }
    }
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static qn_status run(const void *state, void *bound, const qn_step_io *io)
{
    const pool *p = state;
    const work j = {.pool = p,
                    .dy = io->in[0]->data,
                    .x = io->in[1] ? io->in[1]->data : NULL,
                    .dx = io->out[0]->data};
    (void)bound;
    qn_parallel_items(io->threads, p->planes, plane_grad, &j);
    return QN_OK;
}

static qn_status run_average(const void *state, void *bound, const qn_step_io *io)
{
    const pool *p = state;
    const work j = {.pool = p, .dy = io->in[0]->data, .dx = io->out[0]->data};
    (void)bound;
    qn_parallel_items(io->threads, p->planes, plane_grad, &j);
    return QN_OK;
}

static const qn_kernel max_kernel = {.name = "max pool gradient", .run = run};
static const qn_kernel average_kernel = {.name = "average pool gradient", .run = run_average};

static qn_status claim_pool(bool *taken, qn_claim *claim, const qn_kernel *kernel)
{
    const qn_node *node = claim->node;
    const qn_window_grad_attrs *a = node->attrs;
    qn_tensor dy, dx;
    if (!qn_claim_is_float(&dy, claim) || !qn_build_shape(&dx, claim->builder, node->out[0]) ||
        dx.rank != 4 || qn_tensor_count(&dx) == 0)
        return QN_OK;
    pool *p = qn_build_alloc(claim->builder, sizeof *p);
    QN_TRY_ALLOC(qn_build_context(claim->builder), p);
    const qn_type type = qn_type_of(&dx);
    if (!qn_window_resolve(&p->window, &a->window, 2, type.dims + 2, NULL))
        return QN_OK;
    p->counts_pads = a->window.count_include_pad != 0;
    p->planes = dx.dims[0] * dx.dims[1];
    p->in = qn_window_in_size(&p->window);
    p->out = qn_window_out_size(&p->window);
    for (int32_t i = 0; i < node->n_in; i++)
        qn_claim_in(claim, node->in[i], QN_ROWS);
    qn_claim_out(claim, node->out[0], QN_ROWS);
    claim->kernel = kernel;
    claim->state = p;
    *taken = true;
    return QN_OK;
}

qn_status qn_claim_max_pool_grad(bool *taken, qn_claim *claim)
{
    return claim_pool(taken, claim, &max_kernel);
}

qn_status qn_claim_average_pool_grad(bool *taken, qn_claim *claim)
{
    return claim_pool(taken, claim, &average_kernel);
}
