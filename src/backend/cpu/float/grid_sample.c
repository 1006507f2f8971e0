/* GridSample of float32: for a block of points the elements that each is made of, and their
 * weights, are worked out once; then every channel sums them up. Taps that lie outside are zeros:
 * they count as another element with weight 0, unless that makes no number of a sum. */
#include "ops/grid_sample.h"

#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel.h"
#include "ops/eval.h"
#include "ops/move.h"

enum {
    MOST_SPATIAL = 3,
    /* Four along each of three axes. */
    MOST_TAPS = 64,
    /* Taps of all points of a block. */
    BLOCK_TAPS = 1024,
    /* Taps of all channels that one thread does by itself. */
    ALONE_BELOW = 1 << 14
};

typedef struct grid_state {
    const qn_grid_attrs *attrs;
    int32_t spatial;
    /* The dims of X. */
    int64_t dims[MOST_SPATIAL];
    /* Plane: elements of X in one channel. */
    int64_t channels, plane;
    /* The points of one sample. */
    int64_t points;
    /* The taps of a point that lies inside; the points of a block. */
    int64_t taps, block;
    /* The blocks of one sample. */
    int64_t blocks;
} grid_state;

typedef struct grid_work {
    const grid_state *state;
    const qn_tensor *grid;
    const float *x;
    float *y;
} grid_work;

/* Tap k of point p stands at p * taps + k. */
typedef struct block {
    int64_t points;
    /* No tap of any point is missing. */
    bool whole;
    int32_t at[BLOCK_TAPS];
    float weight[BLOCK_TAPS];
    uint8_t count[BLOCK_TAPS];
} block;

/* Point p: every combination of its taps along the axes. */
static void join_taps(block *b, int64_t p, const grid_state *s, const qn_grid_taps *axes)
{
    int64_t at[2][MOST_TAPS];
    double weight[2][MOST_TAPS];
    int count = 1;
    at[0][0] = 0;
    weight[0][0] = 1;
    for (int32_t d = 0; d < s->spatial; d++) {
        const int from = d % 2, to = 1 - from;
        int joined = 0;
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < axes[d].count; k++, joined++) {
                at[to][joined] = at[from][i] * s->dims[d] + axes[d].at[k];
                weight[to][joined] = weight[from][i] * axes[d].weight[k];
            }
        }
        count = joined;
    }
    for (int k = 0; k < s->taps; k++) {
        const int last = s->spatial % 2;
        b->at[p * s->taps + k] = k < count ? (int32_t)at[last][k] : 0;
        b->weight[p * s->taps + k] = k < count ? (float)weight[last][k] : 0;
    }
    b->count[p] = (uint8_t)count;
    b->whole = b->whole && count == s->taps;
}

/* Points [first, first + count) of the grid, counted through all samples. */
static void find_taps(block *b, const grid_work *w, int64_t first, int64_t count)
{
    const grid_state *s = w->state;
    b->points = count;
    b->whole = true;
    for (int64_t p = 0; p < count; p++) {
        qn_grid_taps axes[MOST_SPATIAL];
        /* The last number of a point is for the first axis. */
        for (int32_t d = 0; d < s->spatial; d++)
            qn_grid_taps_of(&axes[d], s->attrs,
                            qn_tensor_f64(w->grid, (first + p + 1) * s->spatial - 1 - d),
                            s->dims[d]);
        join_taps(b, p, s, axes);
    }
}

/* y[p] = sum over the taps of point p; their number may be one that the compiler knows. */
static inline void sum_each(float *y, const float *plane, const block *b, int64_t taps)
{
    for (int64_t p = 0; p < b->points; p++) {
        float sum = 0;
        for (int64_t k = 0; k < taps; k++)
            sum += b->weight[p * taps + k] * plane[b->at[p * taps + k]];
        y[p] = sum;
    }
}

static void sum_taps(float *y, const float *plane, const block *b, int64_t taps)
{
    switch (taps) {
    case 1: sum_each(y, plane, b, 1); break;
    case 4: sum_each(y, plane, b, 4); break;
    case 8: sum_each(y, plane, b, 8); break;
    case 16: sum_each(y, plane, b, 16); break;
    default: sum_each(y, plane, b, taps); break;
    }
}

/* Sums that are no number, once more without the taps that are not there. */
static void sum_again(float *y, const float *plane, const block *b, const grid_state *s)
{
    int odd = 0;
    for (int64_t p = 0; p < b->points; p++)
        odd |= isnan(y[p]);
    for (int64_t p = 0; odd && p < b->points; p++) {
        float sum = 0;
        for (int64_t k = 0; isnan(y[p]) && k < b->count[p]; k++)
            sum += b->weight[p * s->taps + k] * plane[b->at[p * s->taps + k]];
        y[p] = isnan(y[p]) ? sum : y[p];
    }
}

/* Items are blocks of all samples. */
static void grid_range(const void *opaque, int64_t first, int64_t last)
{
    const grid_work *w = opaque;
    const grid_state *s = w->state;
    block b;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / s->blocks, start = i % s->blocks * s->block;
        find_taps(&b, w, n * s->points + start, QN_MIN(s->block, s->points - start));
        for (int64_t c = n * s->channels; c < (n + 1) * s->channels; c++) {
            float *y = w->y + c * s->points + start;
            const float *plane = w->x + c * s->plane;
            sum_taps(y, plane, &b, s->taps);
            if (!b.whole)
                sum_again(y, plane, &b, s);
        }
    }
}

static qn_status grid_run(const void *state, void *bound, const qn_step_io *io)
{
    const grid_state *s = state;
    const grid_work work = {s, io->in[1], io->in[0]->data, io->out[0]->data};
    (void)bound;
    qn_parallel(io->threads, io->out[0]->dims[0] * s->blocks,
                ALONE_BELOW / (BLOCK_TAPS * s->channels) + 1, grid_range, &work);
    return QN_OK;
}

static const qn_kernel grid_kernel = {.name = "grid sample", .run = grid_run};

qn_status qn_claim_grid_sample(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    const qn_grid_attrs *a = node->attrs;
    qn_tensor x, grid, y;
    if (!qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&grid, claim->builder, node->in[1]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || x.dtype != QN_FLOAT32 ||
        x.rank > MOST_SPATIAL + 2 || qn_tensor_count(&x) == 0 || qn_tensor_count(&y) == 0 ||
        qn_dims_product(x.dims, 2, x.rank) > INT32_MAX)
        return QN_OK;
    grid_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (grid_state){.attrs = a,
                      .spatial = x.rank - 2,
                      .channels = x.dims[1],
                      .plane = qn_dims_product(x.dims, 2, x.rank),
                      .points = qn_dims_product(y.dims, 2, y.rank),
                      .taps = 1};
    for (int32_t d = 0; d < s->spatial; d++) {
        s->dims[d] = x.dims[d + 2];
        s->taps *= a->mode == QN_GRID_NEAREST ? 1 : a->mode == QN_GRID_CUBIC ? 4 : 2;
    }
    s->block = BLOCK_TAPS / QN_MAX(s->taps, 4);
    s->blocks = (s->points + s->block - 1) / s->block;
    qn_claim_in(claim, node->in[0], QN_ROWS);
    qn_claim_in(claim, node->in[1], QN_ROWS);
    qn_claim_out(claim, node->out[0], QN_ROWS);
    claim->state = s;
    claim->kernel = &grid_kernel;
    *taken = true;
    return QN_OK;
}
