/* Slice: a view of a run of the first axis that is cut, else a copy in row-major form. */
#include <omp.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/parts.h"
#include "ops/move.h"

typedef struct state {
    int32_t rank;
    int64_t dims[QN_MAX_RANK], strides[QN_MAX_RANK]; /* of the result; walk through the input */
    int64_t start;
    size_t size; /* of an element */
} state;

/* ---- Copy ---------------------------------------------------------------------------------------------------- */

/* `count` elements from `stride` to `stride`. */
static void copy_row(char *to, const char *from, int64_t count, int64_t stride, size_t size)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)count * size);
    } else if (size == sizeof(uint32_t)) {
        uint32_t *out = (uint32_t *)(void *)to;
        const uint32_t *in = (const uint32_t *)(const void *)from;
        for (int64_t i = 0; i < count; i++)
            out[i] = in[i * stride];
    } else {
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * size, from + i * stride * (int64_t)size, size);
    }
}

static void copy_share(char *to, const char *from, const state *s, int64_t id, int64_t threads)
{
    const int32_t last = s->rank - 1;
    const int64_t width = s->dims[last], rows = qn_dims_product(s->dims, 0, last);
    for (int64_t row = rows * id / threads; row < rows * (id + 1) / threads; row++) {
        int64_t at = s->start, rest = row;
        for (int32_t d = last - 1; d >= 0; d--) {
            at += rest % s->dims[d] * s->strides[d];
            rest /= s->dims[d];
        }
        copy_row(to + (size_t)(row * width) * s->size, from + at * (int64_t)s->size, width,
                 s->strides[last], s->size);
    }
}

static qn_status slice_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    (void)bound;
    if (io->threads == 1 || qn_dims_product(s->dims, 0, s->rank) < 16384) {
        copy_share(io->out[0]->data, io->in[0]->data, s, 0, 1);
        return QN_OK;
    }
#pragma omp parallel num_threads(io->threads)
    copy_share(io->out[0]->data, io->in[0]->data, s, omp_get_thread_num(), omp_get_num_threads());
    return QN_OK;
}

static const qn_kernel slice_kernel = {.name = "slice", .run = slice_run};

/* ---- Claim ---------------------------------------------------------------------------------------------------- */

/* The one axis that is cut, all of it in steps of 1; -1: there are several, or none. */
static int32_t cut_axis(const state *s, const qn_tensor *x)
{
    int64_t whole[QN_MAX_RANK];
    int32_t axis = -1;
    qn_dims_strides(whole, x->rank, x->dims);
    for (int32_t d = 0; d < x->rank; d++) {
        if (s->dims[d] == x->dims[d] && (s->strides[d] == whole[d] || s->dims[d] == 1))
            continue;
        if (axis >= 0 || (s->dims[d] > 1 && s->strides[d] != whole[d]))
            return -1;
        axis = d;
    }
    return axis;
}

/* A view, when the cut part is one piece in every sample. */
static bool as_view(qn_claim *claim, const state *s, const qn_tensor *x, int32_t axis)
{
    const qn_node *node = claim->node;
    const qn_layout layout = qn_build_layout(claim->builder, node->in[0]);
    if (axis < 0 || layout.kind == QN_LAYOUT_CHANNELS_LAST)
        return false;
    int64_t whole[QN_MAX_RANK];
    qn_dims_strides(whole, x->rank, x->dims);
    const int64_t first = s->start / whole[axis];
    const qn_axis a = qn_axis_of(x, layout, axis);
    if (a.outer != 1 || !qn_axis_cuts(&a, first, s->dims[axis], x->dims[axis]) ||
        (axis == 0 && layout.kind != QN_LAYOUT_ROWS))
        return false;
    qn_claim_in(claim, node->in[0], layout)->strided = axis > 0;
    qn_claim_value *out = qn_claim_out(claim, node->out[0], layout);
    out->strided = axis > 0;
    out->view_of = 0;
    out->offset = qn_axis_bytes(&a, first);
    return true;
}

static bool lists_of(const qn_tensor **lists, const qn_node *node)
{
    for (int32_t i = 0; i < 4; i++) {
        const qn_value *value = i + 1 < node->n_in ? node->in[i + 1] : NULL;
        lists[i] = value ? value->data : NULL;
        if (value && (!value->data || !qn_tensor_is_aligned(value->data)))
            return false;
    }
    return lists[0] && lists[1];
}

qn_status qn_claim_slice(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_tensor *lists[4];
    qn_tensor x, y;
    if (!node->in[0] || node->in[0]->data || !qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || !lists_of(lists, node) ||
        qn_tensor_count(&y) == 0 || x.dtype == QN_STRING)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->rank = x.rank;
    s->size = qn_dtype_size(x.dtype);
    memcpy(s->dims, y.dims, sizeof s->dims);
    if (!qn_slice_walk(&s->start, s->strides, &x, lists))
        return QN_OK;
    *taken = true;
    if (as_view(claim, s, &x, cut_axis(s, &x)))
        return QN_OK;
    qn_claim_in(claim, node->in[0], QN_ROWS);
    qn_claim_out(claim, node->out[0], QN_ROWS);
    claim->kernel = &slice_kernel;
    claim->state = s;
    return QN_OK;
}
