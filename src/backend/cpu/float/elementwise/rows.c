/* Functions of two elements, and Where, with any broadcast and of the types that rows.def has: row
 * by row of what all operands go through alike. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/elementwise.h"

/* Elements of an item, at most; items that one thread does alone. */
enum { CHUNK = 8192, ALONE_BELOW = 4, OPERANDS = 3 };

typedef struct rows_state {
    qn_row_kernel *kernel;
    int32_t operands;
    /* Bytes of an element. */
    int64_t sizes[OPERANDS], y_size;
    /* Joined; the last dim is a row. */
    int32_t rank;
    int64_t dims[QN_MAX_RANK], strides[OPERANDS][QN_MAX_RANK];
    /* Items of a row, and all of them. */
    int64_t chunks, items;
    /* Bit i: operand i is one element in each row. */
    int single;
} rows_state;

typedef struct rows_work {
    const rows_state *s;
    uint8_t *y;
    const uint8_t *in[OPERANDS];
} rows_work;

/* ---- Running --------------------------------------------------------------------------------- */

static void rows_range(const void *opaque, int64_t first, int64_t last)
{
    const rows_work *w = opaque;
    const rows_state *s = w->s;
    const int32_t inner = s->rank - 1;
    const int64_t width = s->dims[inner];
    for (int64_t item = first; item < last; item++) {
        const int64_t row = item / s->chunks, start = item % s->chunks * CHUNK;
        const void *in[OPERANDS];
        for (int32_t i = 0; i < s->operands; i++) {
            const int64_t at =
                qn_offset_of(row, inner, s->dims, s->strides[i]) + start * s->strides[i][inner];
            in[i] = w->in[i] + at * s->sizes[i];
        }
        s->kernel(w->y + (row * width + start) * s->y_size, in, QN_MIN(CHUNK, width - start),
                  s->single);
    }
}

static qn_status rows_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const rows_state *s = opaque;
    rows_work w = {.s = s, .y = io->out[0]->data};
    (void)bound;
    for (int32_t i = 0; i < s->operands; i++)
        w.in[i] = io->in[i]->data;
    qn_parallel(io->threads, s->items, ALONE_BELOW * CHUNK / s->dims[s->rank - 1] + 1, rows_range,
                &w);
    return QN_OK;
}

static const qn_kernel rows_kernel = {.name = "rows", .run = rows_run};

/* ---- Claim ----------------------------------------------------------------------------------- */

static const struct {
    const qn_op *op;
    qn_dtype dtype;
    qn_row_fn_id id;
} functions[] = {
#define QN_ROW(id, Operator, dtype, Y, X, expression) {&qn_op_##Operator, dtype, QN_ROW_##id},
#include "backend/cpu/float/elementwise/rows.def"
#undef QN_ROW
};

static qn_row_fn_id where_of(qn_dtype dtype)
{
    switch (qn_dtype_size(dtype)) {
    case 1: return QN_ROW_WHERE_1;
    case 2: return QN_ROW_WHERE_2;
    case 4: return QN_ROW_WHERE_4;
    case 8: return QN_ROW_WHERE_8;
    default: return QN_ROW_COUNT;
    }
}

static qn_row_fn_id function_of(const qn_node *node)
{
    if (node->op == &qn_op_Where)
        return where_of(node->in[1]->type.dtype);
    for (size_t i = 0; i < QN_COUNT_OF(functions); i++) {
        if (node->n_in == 2 && functions[i].op == node->op && node->in[0] && node->in[1] &&
            functions[i].dtype == node->in[0]->type.dtype)
            return functions[i].id;
    }
    return QN_ROW_COUNT;
}

/* Dim d goes on where the one before it ends, in all operands. */
static bool continues(const rows_state *s, int64_t dim, const int64_t *const *strides, int32_t d)
{
    for (int32_t i = 0; i < s->operands; i++) {
        if (s->strides[i][s->rank - 1] != strides[i][d] * dim)
            return false;
    }
    return s->rank > 0;
}

static void join(rows_state *s, const qn_tensor *y, const int64_t *const *strides)
{
    for (int32_t d = 0; d < y->rank; d++) {
        if (y->dims[d] == 1)
            continue;
        if (continues(s, y->dims[d], strides, d)) {
            s->dims[s->rank - 1] *= y->dims[d];
        } else {
            s->dims[s->rank++] = y->dims[d];
        }
        for (int32_t i = 0; i < s->operands; i++)
            s->strides[i][s->rank - 1] = strides[i][d];
    }
    if (s->rank == 0)
        s->dims[s->rank++] = 1;
}

static void plan_rows(rows_state *s, const qn_tensor *y)
{
    const int64_t width = s->dims[s->rank - 1];
    for (int32_t i = 0; i < s->operands; i++)
        s->single |= width > 1 && s->strides[i][s->rank - 1] == 0 ? 1 << i : 0;
    s->chunks = (width + CHUNK - 1) / CHUNK;
    s->items = qn_tensor_count(y) / width * s->chunks;
}

qn_status qn_claim_rows(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_row_fn_id id = function_of(node);
    int64_t strides[OPERANDS][QN_MAX_RANK];
    const int64_t *const lists[] = {strides[0], strides[1], strides[2]};
    qn_tensor x, y;
    if (id == QN_ROW_COUNT || !qn_build_shape(&y, claim->builder, node->out[0]) ||
        qn_tensor_count(&y) == 0)
        return QN_OK;
    rows_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (rows_state){.kernel = qn_kernels_get()->rows[id],
                      .operands = node->n_in,
                      .y_size = (int64_t)qn_dtype_size(y.dtype)};
    for (int32_t i = 0; i < s->operands; i++) {
        if (!qn_build_shape(&x, claim->builder, node->in[i]))
            return QN_OK;
        qn_broadcast_strides(strides[i], &x, y.rank, y.dims);
        s->sizes[i] = (int64_t)qn_dtype_size(x.dtype);
    }
    join(s, &y, lists);
    plan_rows(s, &y);
    qn_claim_plain(claim);
    claim->state = s;
    claim->kernel = &rows_kernel;
    *taken = true;
    return QN_OK;
}
