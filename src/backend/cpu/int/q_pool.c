/* Pools of integers, channels last, and means along neighbouring axes in any layout. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/geometry.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/qlinear.h"

/* ---- Windows: [N, D, H, W, C] ---------------------------------------------------------------- */

enum { MOST_TAPS = 1024, DEPTH = 0, DOWN = 1, ACROSS = 2 };

typedef struct pool_state {
    const qn_q_kernels *kernels;
    /* In two dimensions the depth is 1. */
    qn_geometry g;
    bool mean, with_pads;
    /* Bytes of an element. */
    int64_t size;
    /* The cast of means: the scale waits for the number of taps. */
    qn_q_cast cast;
    double x_scale, y_scale;
    int32_t flip;
} pool_state;

typedef struct pool_work {
    const pool_state *s;
    const uint8_t *x;
    uint8_t *y;
} pool_work;

/* Places that the window at output place `at` has inside: [*first, *last) of its kernel
 * elements. */
static void inside(int64_t *first, int64_t *last, const qn_geometry *g, int d, int64_t at)
{
    const int64_t start = at * g->stride[d] - g->pad_begin[d], step = g->dilation[d];
    *first = 0;
    *last = g->kernel[d];
    if (start >= 0 && start + (g->kernel[d] - 1) * step < g->in[d])
        return;
    *first = start < 0 ? (-start + step - 1) / step : 0;
    *last = QN_MIN(g->kernel[d], (g->in[d] - start + step - 1) / step);
    *last = QN_MAX(*last, *first);
}

/* Kernel elements in the input or its pads. */
static int64_t padded(const qn_geometry *g, int d, int64_t at)
{
    const int64_t start = at * g->stride[d] - g->pad_begin[d], step = g->dilation[d];
    return QN_MIN(g->kernel[d], (g->in[d] + g->pad_end[d] - start + step - 1) / step);
}

/* The taps of a row's windows: the kernel's planes [front, back) and rows [top, low). Windows that
 * lie in the map from left to right have the same offsets, from the window's own place on. */
typedef struct pool_row {
    int64_t plane, front, back;
    int64_t row, top, low;
    int64_t offsets[MOST_TAPS], n;
} pool_row;

/* Offsets of the kernel's elements, of which those in columns [left, right) are inside. */
static void row_taps(pool_row *r, const pool_state *s, int64_t left, int64_t right)
{
    const qn_geometry *g = &s->g;
    r->n = 0;
    for (int64_t k = r->front; k < r->back; k++) {
        const int64_t d =
            r->plane * g->stride[DEPTH] - g->pad_begin[DEPTH] + k * g->dilation[DEPTH];
        for (int64_t i = r->top; i < r->low; i++) {
            const int64_t h = r->row * g->stride[DOWN] - g->pad_begin[DOWN] + i * g->dilation[DOWN];
            const int64_t line = (d * g->in[DOWN] + h) * g->in[ACROSS];
            for (int64_t j = left; j < right; j++)
                r->offsets[r->n++] = (line + j * g->dilation[ACROSS]) * g->channels * s->size;
        }
    }
}

/* x: the window's first column in the map's first row. */
static void window(const pool_work *w, uint8_t *y, const uint8_t *x, const pool_row *r,
                   int64_t column)
{
    const pool_state *s = w->s;
    const qn_geometry *g = &s->g;
    const qn_q_taps taps = {x, r->offsets, r->n, 0};
    if (!s->mean) {
        (s->size == 2 ? s->kernels->largest_uint16 : s->kernels->largest)(y, &taps, g->channels,
                                                                          s->flip);
        return;
    }
    qn_q_cast cast = s->cast;
    const int64_t count = s->with_pads ? padded(g, DEPTH, r->plane) * padded(g, DOWN, r->row) *
                                             padded(g, ACROSS, column)
                                       : r->n;
    cast.scale = qn_mean_multiplier(s->x_scale, s->y_scale, count);
    if (cast.fixed_point)
        qn_q_cast_fixed_point(&cast);
    s->kernels->mean(y, &taps, g->channels, &cast);
}

static void pool_line(const pool_work *w, uint8_t *y, const uint8_t *image, pool_row *r)
{
    const qn_geometry *g = &w->s->g;
    const int64_t pixel = g->channels * w->s->size;
    int64_t before[2] = {-1, -1}, now[2];
    for (int64_t column = 0; column < g->out[ACROSS]; column++) {
        inside(&now[0], &now[1], g, ACROSS, column);
        if (now[0] != before[0] || now[1] != before[1])
            row_taps(r, w->s, now[0], now[1]);
        before[0] = now[0];
        before[1] = now[1];
        window(w, y + column * pixel,
               image + (column * g->stride[ACROSS] - g->pad_begin[ACROSS]) * pixel, r, column);
    }
}

/* Item: one row of the output. */
static void pool_range(const void *opaque, int64_t first, int64_t last)
{
    const pool_work *w = opaque;
    const qn_geometry *g = &w->s->g;
    const int64_t pixel = g->channels * w->s->size;
    pool_row r;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / g->out[DOWN] / g->out[DEPTH];
        r.row = i % g->out[DOWN];
        r.plane = i / g->out[DOWN] % g->out[DEPTH];
        inside(&r.front, &r.back, g, DEPTH, r.plane);
        inside(&r.top, &r.low, g, DOWN, r.row);
        pool_line(w, w->y + i * g->out[ACROSS] * pixel,
                  w->x + n * g->in[DEPTH] * g->in[DOWN] * g->in[ACROSS] * pixel, &r);
    }
}

static int64_t taps_of(const qn_geometry *g)
{
    return g->kernel[DEPTH] * g->kernel[DOWN] * g->kernel[ACROSS];
}

static qn_status pool_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const pool_state *s = opaque;
    const pool_work w = {s, io->in[0]->data, io->out[0]->data};
    const int64_t each = s->g.out[ACROSS] * s->g.channels * taps_of(&s->g);
    (void)bound;
    qn_parallel(io->threads, s->g.samples * s->g.out[DEPTH] * s->g.out[DOWN],
                QN_Q_CHUNK * QN_Q_ALONE / each + 1, pool_range, &w);
    return QN_OK;
}

static const qn_kernel max_kernel = {.name = "int max pool", .run = pool_run};
static const qn_kernel average_kernel = {.name = "int average pool", .run = pool_run};

/* Two dimensions become three. */
static void deepen(qn_geometry *g)
{
    if (g->rank != 2)
        return;
    int64_t *const lists[] = {g->in,       g->out,       g->kernel, g->stride,
                              g->dilation, g->pad_begin, g->pad_end};
    for (size_t i = 0; i < QN_COUNT_OF(lists); i++) {
        lists[i][ACROSS] = lists[i][1];
        lists[i][DOWN] = lists[i][0];
        lists[i][DEPTH] = i < 5; /* sizes and steps are 1, pads 0 */
    }
}

/* Windows that all hold an element of the input. */
static bool is_usual(const qn_geometry *g)
{
    for (int d = 0; d < QN_SPATIAL; d++) {
        if (g->kernel[d] > MOST_TAPS)
            return false;
    }
    if (taps_of(g) > MOST_TAPS)
        return false;
    for (int d = 0; d < QN_SPATIAL; d++) {
        for (int64_t at = 0; at < g->out[d]; at++) {
            int64_t first, last;
            inside(&first, &last, g, d, at);
            if (first == last)
                return false;
        }
    }
    return true;
}

static qn_status pool_begin(pool_state **out, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_geometry g;
    *out = NULL;
    if (node->in[0]->data || !qn_geometry_pool(&g, claim))
        return QN_OK;
    deepen(&g);
    if (!is_usual(&g))
        return QN_OK;
    pool_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_q_kernels_get();
    s->g = g;
    s->size = (int64_t)qn_dtype_size(node->in[0]->type.dtype);
    *out = s;
    return QN_OK;
}

qn_status qn_claim_q_max_pool(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    pool_state *s;
    if (!qn_q_is_integer(node->in[0]->type.dtype) || !node->out[0] ||
        (node->n_out > 1 && node->out[1]))
        return QN_OK;
    QN_TRY(pool_begin(&s, claim));
    if (!s)
        return QN_OK;
    s->flip = qn_q_side_of(node->in[0]->type.dtype, 0).flip;
    qn_claim_in(claim, node->in[0], QN_LAST);
    qn_claim_out(claim, node->out[0], QN_LAST);
    claim->state = s;
    claim->kernel = &max_kernel;
    *taken = true;
    return QN_OK;
}

/* Constant parameters, and the largest sum fits into 32 bits. */
static bool read_mean(qn_q_cast *cast, double scales[2], const qn_node *node, int64_t n)
{
    qn_qparams x, y;
    const qn_dtype from = node->in[0]->type.dtype, to = node->out[0]->type.dtype;
    if (!qn_q_is_integer(from) || !qn_q_is_integer(to) || !qn_q_param_of(&x, node, 1, 2) ||
        !qn_q_param_of(&y, node, 3, 4) || n >= (qn_dtype_size(from) == 2 ? 1 << 14 : 1 << 22))
        return false;
    *cast = (qn_q_cast){.from = qn_q_side_of(from, x.zero),
                        .round = qn_q_round_of(to, y.zero),
                        .is_int16 = qn_dtype_size(to) == 2,
                        .fixed_point = qn_qparams_is_fixed_point(&y)};
    scales[0] = (double)x.scale;
    scales[1] = (double)y.scale;
    return true;
}

qn_status qn_claim_q_average_pool(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_qpool_attrs *a = node->attrs;
    qn_value *value = node->out[0];
    double scales[2];
    qn_q_cast cast;
    pool_state *s;
    if (a->channels_last || !read_mean(&cast, scales, node, MOST_TAPS) ||
        qn_dtype_size(value->type.dtype) != qn_dtype_size(node->in[0]->type.dtype))
        return QN_OK;
    QN_TRY(pool_begin(&s, claim));
    if (!s)
        return QN_OK;
    s->mean = true;
    s->with_pads = a->window.count_include_pad;
    s->cast = cast;
    s->x_scale = scales[0];
    s->y_scale = scales[1];
    qn_q_take_clips(claim, &value, &s->cast.round);
    qn_claim_in(claim, node->in[0], QN_LAST);
    qn_claim_out(claim, value, QN_LAST);
    claim->state = s;
    claim->kernel = &average_kernel;
    *taken = true;
    return QN_OK;
}

/* ---- Means of x as [outer, n, inner] over n -------------------------------------------------- */

typedef struct mean_state {
    const qn_q_kernels *kernels;
    qn_q_cast cast;
    int64_t outer, n, inner;
    int64_t x_size, y_size;
    /* The part of `inner` that one item does, and the number of parts. */
    int64_t part, parts;
} mean_state;

typedef struct mean_work {
    const mean_state *s;
    const uint8_t *x;
    uint8_t *y;
} mean_work;

static void mean_range(const void *opaque, int64_t first, int64_t last)
{
    const mean_work *w = opaque;
    const mean_state *s = w->s;
    for (int64_t i = first; i < last; i++) {
        const int64_t outer = i / s->parts, at = i % s->parts * s->part;
        const uint8_t *x = w->x + (outer * s->n * s->inner + at) * s->x_size;
        uint8_t *y = w->y + (outer * s->inner + at) * s->y_size;
        if (s->inner == 1) {
            s->kernels->mean_row(y, x, s->n, &s->cast);
            continue;
        }
        const qn_q_taps taps = {x, NULL, s->n, s->inner * s->x_size};
        s->kernels->mean(y, &taps, QN_MIN(s->part, s->inner - at), &s->cast);
    }
}

static qn_status mean_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const mean_state *s = opaque;
    const mean_work w = {s, io->in[0]->data, io->out[0]->data};
    (void)bound;
    qn_parallel(io->threads, s->outer * s->parts,
                QN_Q_CHUNK * QN_Q_ALONE / (s->n * QN_MIN(s->part, s->inner)) + 1, mean_range, &w);
    return QN_OK;
}

static const qn_kernel mean_kernel = {.name = "int mean", .run = mean_run};

/* Finishes the claim of a mean over the dims of x (in the order of memory) that are marked. */
static qn_status claim_mean(bool *taken, qn_claim *claim, const int64_t *dims, const bool *reduced,
                            int32_t rank, const qn_layout layouts[2])
{
    const qn_node *node = claim->node;
    qn_value *value = node->out[0];
    double scales[2];
    qn_q_cast cast;
    int64_t outer = 1, n = 1, inner = 1;
    bool begun = false, ended = false;
    for (int32_t d = 0; d < rank; d++) {
        if (reduced[d] && ended && dims[d] != 1)
            return QN_OK; /* not neighbours */
        begun = begun || reduced[d];
        ended = ended || (begun && !reduced[d] && dims[d] != 1);
        *(reduced[d] ? &n : begun ? &inner : &outer) *= dims[d];
    }
    if (outer * n * inner == 0 || !read_mean(&cast, scales, node, n))
        return QN_OK;
    mean_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (mean_state){.kernels = qn_q_kernels_get(),
                      .cast = cast,
                      .outer = outer,
                      .n = n,
                      .inner = inner,
                      .x_size = cast.from.is_int16 ? 2 : 1,
                      .y_size = cast.is_int16 ? 2 : 1,
                      .part = 64};
    s->cast.scale = qn_mean_multiplier(scales[0], scales[1], n);
    if (s->cast.fixed_point)
        qn_q_cast_fixed_point(&s->cast);
    s->parts = (inner + s->part - 1) / s->part;
    qn_q_take_clips(claim, &value, &s->cast.round);
    qn_claim_in(claim, node->in[0], layouts[0]);
    qn_claim_out(claim, value, layouts[1]);
    claim->state = s;
    claim->kernel = &mean_kernel;
    *taken = true;
    return QN_OK;
}

/* x in the order of memory: [N, spatial..., C] where the channels are last. */
static void reorder(int64_t *dims, bool *reduced, const qn_tensor *x, const bool *marks, bool last)
{
    for (int32_t d = 0; d < x->rank; d++) {
        const int32_t from = !last || d == 0 ? d : d == x->rank - 1 ? 1 : d + 1;
        dims[d] = x->dims[from];
        reduced[d] = marks[from];
    }
}

qn_status qn_claim_q_global_pool(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const bool channels_last = ((const qn_qpool_attrs *)node->attrs)->channels_last;
    bool marks[QN_MAX_RANK], reduced[QN_MAX_RANK];
    int64_t dims[QN_MAX_RANK];
    qn_tensor x;
    if (node->in[0]->data || !qn_build_shape(&x, claim->builder, node->in[0]) || x.rank < 3)
        return QN_OK;
    for (int32_t d = 0; d < x.rank; d++)
        marks[d] = channels_last ? d > 0 && d < x.rank - 1 : d > 1;
    const qn_layout layout = channels_last ? QN_ROWS : qn_q_layout(claim, node->in[0]);
    const qn_layout layouts[2] = {layout, layout};
    reorder(dims, reduced, &x, marks, layout.kind == QN_LAYOUT_CHANNELS_LAST);
    return claim_mean(taken, claim, dims, reduced, x.rank, layouts);
}

qn_status qn_claim_q_reduce_mean(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    bool marks[QN_MAX_RANK], reduced[QN_MAX_RANK];
    int64_t dims[QN_MAX_RANK];
    qn_tensor x, y;
    if (node->in[0]->data || !qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) ||
        !qn_qreduce_axes(marks, node->attrs, x.rank))
        return QN_OK;
    /* Channels last only where all of the image goes: what is left is [N, C], however it is
     * called. */
    bool image = x.rank > 2 && !marks[0] && !marks[1];
    for (int32_t d = 2; d < x.rank; d++)
        image = image && marks[d];
    const qn_layout layout = image ? qn_q_layout(claim, node->in[0]) : QN_ROWS;
    const qn_layout layouts[2] = {layout, y.rank == x.rank ? layout : QN_ROWS};
    reorder(dims, reduced, &x, marks, layout.kind == QN_LAYOUT_CHANNELS_LAST);
    return claim_mean(taken, claim, dims, reduced, x.rank, layouts);
}
