/* Softmax, LayerNormalization and RMSNormalization. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/nn_attrs.h"

enum { ALONE_BELOW = 4096 }; /* elements that one thread does faster by itself */

static int64_t rows_alone(int64_t n)
{
    return ALONE_BELOW / n + 1;
}

/* ---- Softmax --------------------------------------------------------------------------------- */

typedef struct softmax_state {
    const qn_kernels *kernels;
    /* x as [outer, n, inner] */
    int64_t outer, n, inner;
    /* Rows without a softmax become this number. */
    bool guarded;
    float instead;
} softmax_state;

typedef struct softmax_work {
    const softmax_state *state;
    float *y;
    const float *x;
} softmax_work;

static void softmax_range_rows(const void *opaque, int64_t first, int64_t last)
{
    const softmax_work *w = opaque;
    const int64_t n = w->state->n;
    w->state->kernels->softmax_rows(w->y + first * n, w->x + first * n, last - first, n);
    for (int64_t i = first; i < last && w->state->guarded; i++) {
        float *row = w->y + i * n;
        for (int64_t k = isnan(*row) ? 0 : n; k < n; k++) /* all of a row, or nothing */
            row[k] = w->state->instead;
    }
}

/* Items are vectors of lanes: `per` of them in each of the outer slices. */
static void softmax_range_lanes(const void *opaque, int64_t first, int64_t last)
{
    const softmax_work *w = opaque;
    const softmax_state *s = w->state;
    const int64_t width = s->kernels->width, per = (s->inner + width - 1) / width;
    for (int64_t i = first; i < last; i++) {
        const int64_t lane = i % per * width, at = i / per * s->n * s->inner + lane;
        s->kernels->softmax_lanes(w->y + at, w->x + at, s->n, s->inner,
                                  QN_MIN(width, s->inner - lane));
    }
}

static qn_status softmax_run(const void *state, void *bound, const qn_step_io *io)
{
    const softmax_state *s = state;
    const softmax_work w = {s, io->out[0]->data, io->in[0]->data};
    const int64_t width = s->kernels->width, per = (s->inner + width - 1) / width;
    (void)bound;
    if (s->inner == 1)
        qn_parallel(io->threads, s->outer, rows_alone(s->n), softmax_range_rows, &w);
    else
        qn_parallel(io->threads, s->outer * per, rows_alone(s->n * width), softmax_range_lanes, &w);
    return QN_OK;
}

static const qn_kernel softmax_kernel = {.name = "softmax", .run = softmax_run, .byte_ns = 0.03F};

/* The nodes of Where(IsNaN(y), number, y), which PyTorch's exporter puts behind a Softmax y for
 * rows that are masked completely; nothing else reads y. */
typedef struct nan_guard {
    qn_node *is_nan, *where;
    float number;
} nan_guard;

static bool find_guard(nan_guard *g, const qn_claim *claim)
{
    const qn_value *y = claim->node->out[0];
    for (size_t u = 0; u < y->n_users; u++) {
        qn_node *user = y->users[u];
        if (user->op == &qn_op_IsNaN)
            g->is_nan = user;
        else if (user->op == &qn_op_Where)
            g->where = user;
        else
            return false;
    }
    if (y->n_users != 2 || !g->is_nan || !g->where || qn_build_shown(claim->builder, y) ||
        qn_build_taken(claim->builder, g->is_nan) ||
        qn_build_fusible(claim->builder, g->is_nan->out[0]) != g->where)
        return false;
    const qn_tensor *number = g->where->in[1]->data;
    if (g->where->in[0] != g->is_nan->out[0] || g->where->in[2] != y || !number ||
        qn_tensor_count(number) != 1 || number->rank > y->type.rank)
        return false;
    g->number = *(const float *)number->data;
    return true;
}

qn_status qn_claim_softmax(bool *taken, qn_claim *claim)
{
    qn_tensor shape;
    nan_guard guard = {NULL, NULL, 0};
    if (!qn_claim_is_float(&shape, claim) || shape.rank == 0)
        return QN_OK;
    const int32_t axis = qn_softmax_axis(claim->node->attrs, shape.rank);
    softmax_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (softmax_state){.kernels = qn_kernels_get(),
                         .outer = qn_dims_product(shape.dims, 0, axis),
                         .n = shape.dims[axis],
                         .inner = qn_dims_product(shape.dims, axis + 1, shape.rank)};
    s->guarded = s->inner == 1 && find_guard(&guard, claim);
    s->instead = guard.number;
    if (s->guarded) {
        qn_claim_add(claim, guard.is_nan);
        qn_claim_add(claim, guard.where);
    }
    qn_claim_in(claim, claim->node->in[0], QN_ROWS);
    qn_claim_out(claim, (s->guarded ? guard.where : claim->node)->out[0], QN_ROWS);
    claim->in_place = 0;
    claim->state = s;
    claim->kernel = &softmax_kernel;
    *taken = true;
    return QN_OK;
}

/* ---- LayerNormalization, RMSNormalization ---------------------------------------------------- */

typedef struct norm_state {
    const qn_kernels *kernels;
    int64_t rows, n;
    float epsilon;
    bool has_bias, centered;
} norm_state;

typedef struct norm_work {
    const norm_state *state;
    float *y;
    const float *x;
    qn_norm_row row;
} norm_work;

static void norm_range(const void *opaque, int64_t first, int64_t last)
{
    const norm_work *w = opaque;
    const int64_t n = w->state->n;
    w->state->kernels->norm_rows(w->y + first * n, w->x + first * n, last - first, n, &w->row);
}

static qn_status norm_run(const void *state, void *bound, const qn_step_io *io)
{
    const norm_state *s = state;
    const norm_work w = {
        s,
        io->out[0]->data,
        io->in[0]->data,
        {io->in[1]->data, s->has_bias ? io->in[2]->data : NULL, s->epsilon, s->centered}};
    (void)bound;
    qn_parallel(io->threads, s->rows, rows_alone(s->n), norm_range, &w);
    return QN_OK;
}

static const qn_kernel norm_kernel = {.name = "layer norm", .run = norm_run};

/* Has the normalized dims of x and no other. */
static bool is_row(const qn_tensor *p, const qn_tensor *x, int32_t axis)
{
    for (int32_t d = axis; d < x->rank; d++) {
        const int32_t own = d - x->rank + p->rank;
        if ((own < 0 ? 1 : p->dims[own]) != x->dims[d])
            return false;
    }
    return qn_tensor_count(p) == qn_dims_product(x->dims, axis, x->rank);
}

/* Scale and bias of exactly the normalized dims; statistics as outputs are left to the
 * reference. */
static bool fits_norm(const qn_claim *claim, const qn_tensor *x, int32_t axis)
{
    const qn_node *node = claim->node;
    for (int32_t i = 1; i < node->n_in; i++) {
        qn_tensor shape;
        if (node->in[i] && (!qn_build_shape(&shape, claim->builder, node->in[i]) ||
                            shape.dtype != QN_FLOAT32 || !is_row(&shape, x, axis)))
            return false;
    }
    return !(node->n_out > 1 && node->out[1]) && !(node->n_out > 2 && node->out[2]);
}

qn_status qn_claim_layer_norm(bool *taken, qn_claim *claim)
{
    const qn_norm_attrs *a = claim->node->attrs;
    qn_tensor shape;
    if (!qn_claim_is_float(&shape, claim) || shape.rank == 0)
        return QN_OK;
    const int32_t axis = (int32_t)(a->axis < 0 ? a->axis + shape.rank : a->axis);
    const int64_t n = qn_dims_product(shape.dims, axis, shape.rank);
    if (!fits_norm(claim, &shape, axis))
        return QN_OK;
    norm_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (norm_state){qn_kernels_get(),
                      qn_dims_product(shape.dims, 0, axis),
                      n,
                      a->epsilon,
                      claim->node->n_in > 2 && claim->node->in[2],
                      claim->node->op == &qn_op_LayerNormalization};
    qn_claim_plain(claim);
    claim->n_out = 1;
    claim->in_place = 0;
    claim->state = s;
    claim->kernel = &norm_kernel;
    *taken = true;
    return QN_OK;
}
