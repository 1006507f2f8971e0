/* Transpose of row-major tensors: dims that stay together are one dim, then either rows are copied
 * whole or tiles are transposed. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/tensor_attrs.h"

enum { TILE = 16, ALONE_BELOW = 8192 };

typedef struct transpose_state {
    /* After joining. */
    int32_t rank;
    /* The dims of the output. */
    int64_t dims[QN_MAX_RANK];
    /* The strides of the input, in elements, along the output's dims. */
    int64_t strides[QN_MAX_RANK];
    /* The size of an element. */
    size_t size;
    /* Output dim along which the input is contiguous. */
    int32_t transposed;
    /* Rows, or tiles of the transposed plane in all the rest. */
    int64_t items;
} transpose_state;

typedef struct transpose_work {
    const transpose_state *state;
    char *y;
    const char *x;
} transpose_work;

/* ---- Rows ------------------------------------------------------------------------------------ */

static void rows_range(const void *opaque, int64_t first, int64_t last)
{
    const transpose_work *w = opaque;
    const transpose_state *s = w->state;
    const size_t row = (size_t)s->dims[s->rank - 1] * s->size;
    for (int64_t r = first; r < last; r++) {
        int64_t rest = r, from = 0;
        for (int32_t d = s->rank - 2; d >= 0; d--) {
            from += rest % s->dims[d] * s->strides[d];
            rest /= s->dims[d];
        }
        memcpy(w->y + (size_t)r * row, w->x + (size_t)from * s->size, row);
    }
}

/* ---- Tiles: output [.., a, .., b] with the input contiguous along a -------------------------- */

#define TRANSPOSE(T)                                                                               \
    static void transpose_##T(char *y, int64_t y_step, const char *x, int64_t x_step,              \
                              int64_t rows, int64_t columns)                                       \
    {                                                                                              \
        T *out = (T *)(void *)y;                                                                   \
        const T *in = (const T *)(const void *)x;                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            for (int64_t c = 0; c < columns; c++)                                                  \
                out[r * y_step + c] = in[c * x_step + r];                                          \
        }                                                                                          \
    }
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)
#undef TRANSPOSE

static void transpose(const transpose_state *s, char *y, int64_t y_step, const char *x,
                      int64_t rows, int64_t columns)
{
    const int64_t x_step = s->strides[s->rank - 1];
    if (s->size == 4)
        transpose_uint32_t(y, y_step, x, x_step, rows, columns);
    else if (s->size == 8)
        transpose_uint64_t(y, y_step, x, x_step, rows, columns);
    else if (s->size == 2)
        transpose_uint16_t(y, y_step, x, x_step, rows, columns);
    else
        transpose_uint8_t(y, y_step, x, x_step, rows, columns);
}

/* Item: a band of TILE places along the transposed dim, for one place of all other dims but the
 * last. */
static void tiles_range(const void *opaque, int64_t first, int64_t last)
{
    const transpose_work *w = opaque;
    const transpose_state *s = w->state;
    const int64_t length = s->dims[s->transposed], columns = s->dims[s->rank - 1];
    const int64_t bands = (length + TILE - 1) / TILE;
    int64_t y_strides[QN_MAX_RANK];
    qn_dims_strides(y_strides, s->rank, s->dims);
    for (int64_t item = first; item < last; item++) {
        const int64_t band = item % bands * TILE, rows = QN_MIN(TILE, length - band);
        int64_t rest = item / bands, from = band, to = band * y_strides[s->transposed];
        for (int32_t d = s->rank - 2; d >= 0; d--) {
            if (d == s->transposed)
                continue;
            from += rest % s->dims[d] * s->strides[d];
            to += rest % s->dims[d] * y_strides[d];
            rest /= s->dims[d];
        }
        for (int64_t c = 0; c < columns; c += TILE)
            transpose(s, w->y + (size_t)(to + c) * s->size, y_strides[s->transposed],
                      w->x + (size_t)(from + c * s->strides[s->rank - 1]) * s->size, rows,
                      QN_MIN(TILE, columns - c));
    }
}

static qn_status transpose_run(const void *state, void *bound, const qn_step_io *io)
{
    const transpose_state *s = state;
    const transpose_work w = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    const bool rows = s->transposed == s->rank - 1;
    const int64_t each = s->dims[s->rank - 1] * (rows ? 1 : TILE);
    qn_parallel(io->threads, s->items, ALONE_BELOW / each + 1, rows ? rows_range : tiles_range, &w);
    return QN_OK;
}

static const qn_kernel transpose_kernel = {.name = "transpose", .run = transpose_run};

/* ---- Claim ----------------------------------------------------------------------------------- */

/* Joins output dims that follow each other in the input too, and drops those of 1. */
static void join(transpose_state *s, const qn_tensor *in, const qn_transpose_attrs *a)
{
    int64_t strides[QN_MAX_RANK];
    qn_dims_strides(strides, in->rank, in->dims);
    s->rank = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        const int64_t from = a->perm.at ? a->perm.at[d] : in->rank - 1 - d;
        const int64_t dim = in->dims[from], stride = strides[from];
        if (dim == 1)
            continue;
        const int32_t last = s->rank - 1;
        if (last >= 0 && s->strides[last] == dim * stride) {
            s->dims[last] *= dim;
            s->strides[last] = stride;
            continue;
        }
        s->dims[s->rank] = dim;
        s->strides[s->rank++] = stride;
    }
    if (s->rank == 0) {
        s->dims[0] = s->strides[0] = 1;
        s->rank = 1;
    }
}

static void count_items(transpose_state *s)
{
    s->transposed = s->rank - 1;
    for (int32_t d = 0; d < s->rank; d++)
        s->transposed = s->strides[d] == 1 ? d : s->transposed;
    s->items = 1;
    for (int32_t d = 0; d < s->rank - 1; d++)
        s->items *= d == s->transposed ? (s->dims[d] + TILE - 1) / TILE : s->dims[d];
}

/* Integers that are channels last need not move to become [N, spatial..., C], nor the other way
 * round. */
static bool only_renames(qn_layout *from, qn_layout *to, const qn_claim *claim, const qn_tensor *x)
{
    const qn_transpose_attrs *a = claim->node->attrs;
    const int32_t rank = x->rank;
    bool leaves = a->perm.at && rank > 2 && qn_q_is_integer(x->dtype), enters = leaves;
    for (int32_t d = 0; leaves && d < rank; d++)
        leaves = a->perm.at[d] == (d == 0 ? 0 : d == rank - 1 ? 1 : d + 1);
    for (int32_t d = 0; enters && d < rank; d++)
        enters = a->perm.at[d] == (d == 0 ? 0 : d == 1 ? rank - 1 : d - 1);
    *from = qn_build_layout(claim->builder, claim->node->in[0]);
    leaves = leaves && from->kind == QN_LAYOUT_CHANNELS_LAST; /* of rank 3 both may hold */
    enters = enters && from->kind == QN_LAYOUT_ROWS;
    *to = leaves ? QN_ROWS : QN_LAST;
    return leaves || enters;
}

qn_status qn_claim_transpose(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor shape;
    if (node->in[0]->data || !qn_build_shape(&shape, claim->builder, node->in[0]))
        return QN_OK;
    const size_t size = qn_dtype_size(shape.dtype);
    if ((size != 1 && size != 2 && size != 4 && size != 8) || qn_tensor_count(&shape) == 0)
        return QN_OK;
    qn_layout from, to;
    if (only_renames(&from, &to, claim, &shape)) {
        qn_claim_in(claim, node->in[0], from);
        qn_claim_out(claim, node->out[0], to)->view_of = 0;
        *taken = true;
        return QN_OK;
    }
    transpose_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->size = size;
    join(s, &shape, node->attrs);
    count_items(s);
    qn_claim_plain(claim);
    *taken = true;
    if (s->rank == 1) { /* nothing moves */
        claim->out[0].view_of = 0;
        return QN_OK;
    }
    claim->state = s;
    claim->kernel = &transpose_kernel;
    return QN_OK;
}
