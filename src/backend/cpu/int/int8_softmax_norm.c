/* QLinearSoftmax and QLayerNormalization of rows of bytes. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/qlinear.h"

typedef struct state {
    const qn_q_kernels *kernels;
    /* Part: rows of an item. */
    int64_t rows, n, part;
    /* Softmax of [outer, n, inner]: a "row" is a band of columns. */
    int64_t inner, bands;
    uint32_t table[256];
    qn_q_softmax softmax;
    qn_q_norm norm;
    bool has_beta;
} state;

typedef struct work {
    const state *s;
    const uint8_t *x;
    uint8_t *y;
    /* [items, n] of softmax. */
    uint32_t *scratch;
    qn_q_norm norm;
} work;

enum {
    /* Items of a run at most, each with scratch of its own. */
    PARTS = 16,
    COLUMNS = 64,
    /* Lanes of the widest vector. */
    LANES = 16
};

static void cut(state *s)
{
    const int64_t fair = (s->rows + PARTS - 1) / PARTS;
    s->part = QN_MAX(fair, 1);
}

/* A row-major tensor of bytes on both sides. */
static bool is_bytes(qn_tensor *shape, const qn_claim *claim)
{
    const qn_node *node = claim->node;
    return node->in[0] && !node->in[0]->data && node->out[0] && qn_q_is_byte(node->in[0]) &&
           qn_q_is_byte(node->out[0]) && qn_build_shape(shape, claim->builder, node->in[0]) &&
           qn_tensor_count(shape) > 0;
}

/* ---- Softmax --------------------------------------------------------------------------------- */

static void softmax_row(const work *w, int64_t r, uint32_t *scratch)
{
    const state *s = w->s;
    if (s->inner == 1) {
        s->kernels->softmax(w->y + r * s->n, w->x + r * s->n, s->n, &s->softmax, scratch);
        return;
    }
    const int64_t column = r % s->bands * COLUMNS;
    const int64_t at = r / s->bands * s->n * s->inner + column;
    const qn_q_columns columns = {s->n, s->inner, QN_MIN(COLUMNS, s->inner - column)};
    s->kernels->softmax_columns(w->y + at, w->x + at, &columns, &s->softmax, scratch);
}

static void softmax_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    for (int64_t i = first; i < last; i++) {
        for (int64_t r = i * s->part; r < QN_MIN((i + 1) * s->part, s->rows); r++)
            softmax_row(w, r, w->scratch + i * s->n * (s->inner == 1 ? 1 : LANES));
    }
}

static qn_status softmax_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {.s = s, .x = io->in[0]->data, .y = io->out[0]->data, .scratch = io->scratch};
    (void)bound;
    qn_parallel(io->threads, (s->rows + s->part - 1) / s->part, QN_Q_CHUNK / (s->part * s->n) + 1,
                softmax_range, &w);
    return QN_OK;
}

static const qn_kernel softmax_kernel = {
    .name = "int softmax", .run = softmax_run, .byte_ns = 0.2F};

qn_status qn_claim_q_softmax(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_qparams x, y;
    qn_tensor shape;
    int64_t outer, n, inner;
    if (!is_bytes(&shape, claim) || !qn_q_param_of(&x, node, 1, 2) ||
        !qn_q_param_of(&y, node, 3, 4))
        return QN_OK;
    qn_qsoftmax_shape(&outer, &n, &inner, node->attrs, &shape);
    if (inner != 1 && n > 255)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_q_kernels_get();
    s->inner = inner;
    s->bands = inner == 1 ? 1 : (inner + COLUMNS - 1) / COLUMNS;
    s->rows = outer * s->bands;
    s->n = n;
    cut(s);
    qn_qsoftmax_table(s->table, x.scale, 256);
    s->softmax = (qn_q_softmax){.table = s->table,
                                .is_signed = shape.dtype == QN_INT8,
                                .y_scale = y.scale,
                                .round = qn_q_round_of(node->out[0]->type.dtype, y.zero)};
    qn_claim_in(claim, node->in[0], QN_ROWS);
    qn_claim_out(claim, node->out[0], QN_ROWS);
    claim->in_place = 0;
    claim->scratch = (size_t)n * PARTS * sizeof(uint32_t) * (inner == 1 ? 1 : LANES);
    claim->state = s;
    claim->kernel = &softmax_kernel;
    *taken = true;
    return QN_OK;
}

/* ---- LayerNormalization ---------------------------------------------------------------------- */

static void norm_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const int64_t n = w->s->n;
    for (int64_t r = first; r < last; r++)
        w->s->kernels->norm(w->y + r * n, w->x + r * n, n, &w->norm);
}

static qn_status norm_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    work w = {.s = s, .x = io->in[0]->data, .y = io->out[0]->data, .norm = s->norm};
    (void)bound;
    w.norm.gamma = io->in[1]->data;
    w.norm.beta = s->has_beta ? io->in[2]->data : NULL;
    qn_parallel(io->threads, s->rows, QN_Q_CHUNK / s->n + 1, norm_range, &w);
    return QN_OK;
}

static const qn_kernel norm_kernel = {.name = "int layer norm", .run = norm_run, .byte_ns = 0.09F};

/* gamma or beta: one number for each element of a row. */
static bool is_row(const qn_claim *claim, const qn_value *value, int64_t n)
{
    qn_tensor shape;
    return qn_build_shape(&shape, claim->builder, value) && shape.dtype == QN_FLOAT32 &&
           qn_tensor_count(&shape) == n;
}

qn_status qn_claim_q_layer_norm(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_norm_attrs *a = node->attrs;
    qn_qparams x, y;
    qn_tensor shape;
    if (!is_bytes(&shape, claim) || !qn_q_param_of(&x, node, 1, 2) ||
        !qn_q_param_of(&y, node, 5, 6))
        return QN_OK;
    const int32_t axis = (int32_t)(a->axis < 0 ? a->axis + shape.rank : a->axis);
    const int64_t n = qn_dims_product(shape.dims, axis, shape.rank);
    if (n > QN_QNORM_EXACT || !is_row(claim, node->in[3], n) ||
        (node->in[4] && !is_row(claim, node->in[4], n)))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_q_kernels_get();
    s->rows = qn_tensor_count(&shape) / n;
    s->n = n;
    s->has_beta = node->in[4] != NULL;
    s->norm = (qn_q_norm){.from = qn_q_side_of(shape.dtype, x.zero),
                          .x_scale = x.scale,
                          .epsilon = a->epsilon,
                          .y_scale = y.scale,
                          .round = qn_q_round_of(node->out[0]->type.dtype, y.zero)};
    qn_claim_in(claim, node->in[0], QN_ROWS);
    qn_claim_in(claim, node->in[3], QN_ROWS);
    if (s->has_beta)
        qn_claim_in(claim, node->in[4], QN_ROWS);
    qn_claim_out(claim, node->out[0], QN_ROWS);
    claim->in_place = 0;
    claim->state = s;
    claim->kernel = &norm_kernel;
    *taken = true;
    return QN_OK;
}
