/* Slice, and Gather of one index: a view where the part is one piece in every sample, else a copy,
 * in the layout that the input has where the cuts allow it. Slices of slices are one. */
#include <string.h>

#include "backend/cpu/copy/parts.h"
#include "backend/cpu/copy/slices.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/index.h"
#include "ops/move.h"

/* ---- Ranges ---------------------------------------------------------------------------------- */

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

bool qn_slice_ranges(qn_slice_range *ranges, const qn_claim *claim, const qn_node *node)
{
    const qn_tensor *lists[4];
    int64_t strides[QN_MAX_RANK], whole[QN_MAX_RANK], start;
    qn_tensor x, y;
    if (node->op != &qn_op_Slice || !node->in[0] || node->in[0]->data ||
        !qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || !lists_of(lists, node) ||
        qn_tensor_count(&y) == 0 || !qn_slice_walk(&start, strides, &x, lists))
        return false;
    qn_dims_strides(whole, x.rank, x.dims);
    for (int32_t d = 0; d < x.rank; d++) {
        ranges[d] = (qn_slice_range){start / whole[d], 1, y.dims[d]};
        start %= whole[d];
        if (y.dims[d] > 1)
            ranges[d].step = strides[d] / whole[d];
    }
    return true;
}

void qn_slice_compose(qn_slice_range *ranges, const qn_slice_range *inner, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++) {
        ranges[d].first += inner[d].first * ranges[d].step;
        ranges[d].step *= inner[d].step;
        ranges[d].count = inner[d].count;
    }
}

/* ---- Copy ------------------------------------------------------------------------------------ */

typedef struct state {
    int32_t rank;
    qn_slice_range ranges[QN_MAX_RANK];
    /* The dims of the result, in units. */
    int64_t dims[QN_MAX_RANK];
    /* Walk through the input, in units. */
    int64_t strides[QN_MAX_RANK];
    int64_t start;
    /* Units from sample to sample of the result. */
    int64_t y_stride;
    /* Bytes that stay together: an element, or a vector of the layout. */
    size_t unit;
} state;

typedef struct work {
    const state *s;
    char *y;
    const char *x;
} work;

/* Every second byte is what the first layer of detectors takes. */
static void copy_bytes(char *to, const char *from, int64_t count, int64_t stride)
{
    if (stride == 2) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[2 * i];
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * stride];
    }
}

static void copy_row(char *to, const char *from, int64_t count, int64_t stride, size_t unit)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)count * unit);
    } else if (unit == sizeof(uint32_t)) {
        uint32_t *out = (uint32_t *)(void *)to;
        const uint32_t *in = (const uint32_t *)(const void *)from;
        for (int64_t i = 0; i < count; i++)
            out[i] = in[i * stride];
    } else if (unit == 1) {
        copy_bytes(to, from, count, stride);
    } else {
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * unit, from + i * stride * (int64_t)unit, unit);
    }
}

/* Item: one run along the last dim. */
static void copy_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int32_t end = s->rank - 1;
    const int64_t width = s->dims[end], rows = qn_dims_product(s->dims, 1, end);
    for (int64_t row = first; row < last; row++) {
        const int64_t n = end ? row / rows : 0;
        int64_t at = s->start, rest = row;
        for (int32_t d = end - 1; d >= 0; d--) {
            at += rest % s->dims[d] * s->strides[d];
            rest /= s->dims[d];
        }
        copy_row(w->y + (size_t)(n * s->y_stride + (row - n * rows) * width) * s->unit,
                 w->x + at * (int64_t)s->unit, width, s->strides[end], s->unit);
    }
}

static qn_status slice_prepare(qn_claim *claim)
{
    state *s = claim->state;
    s->y_stride = (int64_t)(claim->out[0].stride / s->unit);
    if (s->rank > 1) {
        const int64_t stride = (int64_t)(claim->in[0].stride / s->unit);
        s->start += s->ranges[0].first * stride;
        s->strides[0] = s->ranges[0].step * stride;
    }
    return QN_OK;
}

static qn_status slice_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    const int64_t rows = qn_dims_product(s->dims, 0, s->rank - 1);
    const int64_t row_bytes = s->dims[s->rank - 1] * (int64_t)s->unit;
    (void)bound;
    qn_parallel(io->threads, rows, 65536 / row_bytes + 1, copy_range, &w);
    return QN_OK;
}

static const qn_kernel slice_kernel = {.name = "slice", .prepare = slice_prepare, .run = slice_run};

/* ---- Claim ----------------------------------------------------------------------------------- */

/* The one axis that is cut, in steps of 1; -1: there are several, or none. */
static int32_t cut_axis(const state *s, const qn_tensor *x)
{
    int32_t axis = -1;
    for (int32_t d = 0; d < x->rank; d++) {
        if (s->ranges[d].count == x->dims[d] && s->ranges[d].step == 1)
            continue;
        if (axis >= 0 || (s->ranges[d].step != 1 && s->ranges[d].count > 1))
            return -1;
        axis = d;
    }
    return axis;
}

/* A view, when the cut part is one piece in every sample. */
static bool as_view(qn_claim *claim, const state *s, const qn_tensor *x, qn_layout layout,
                    qn_value *out)
{
    const int32_t axis = cut_axis(s, x);
    if (axis < 0)
        return false;
    const qn_axis a = qn_axis_of(x, layout, axis);
    if (a.outer != 1 ||
        !qn_axis_cuts(&a, s->ranges[axis].first, s->ranges[axis].count, x->dims[axis]) ||
        (axis == 0 && layout.kind != QN_LAYOUT_ROWS))
        return false;
    qn_claim_in(claim, claim->node->in[0], layout)->strided = axis > 0;
    qn_claim_value *view = qn_claim_out(claim, out, layout);
    view->strided = axis > 0;
    view->view_of = 0;
    view->offset = qn_axis_bytes(&a, s->ranges[axis].first);
    return true;
}

/* The blocked layout stays where channels are cut between blocks. */
static qn_layout layout_for(const qn_claim *claim, const state *s, const qn_tensor *x)
{
    const qn_layout layout = qn_build_layout(claim->builder, claim->node->in[0]);
    if (layout.kind == QN_LAYOUT_CHANNELS_LAST && x->rank > 2 && qn_q_is_integer(x->dtype))
        return layout;
    if (layout.kind != QN_LAYOUT_BLOCKED)
        return QN_ROWS;
    const qn_axis a = qn_axis_of(x, layout, 1);
    const qn_slice_range *c = &s->ranges[1];
    return c->step == 1 && qn_axis_cuts(&a, c->first, c->count, x->dims[1]) ? layout : QN_ROWS;
}

/* Strides in units; those of dim 0 wait for prepare. */
static void describe(state *s, const qn_tensor *x, qn_layout layout)
{
    int64_t dims[QN_MAX_RANK], strides[QN_MAX_RANK];
    const int64_t block = layout.kind == QN_LAYOUT_BLOCKED ? layout.block : 1;
    s->unit = qn_dtype_size(x->dtype) * (size_t)block;
    for (int32_t d = 0; d < x->rank; d++) {
        const int64_t per_unit = d == 1 ? block : 1;
        dims[d] = (x->dims[d] + per_unit - 1) / per_unit;
        s->dims[d] = (s->ranges[d].count + per_unit - 1) / per_unit;
    }
    qn_dims_strides(strides, x->rank, dims);
    for (int32_t d = x->rank > 1 ? 1 : 0; d < x->rank; d++) {
        s->start += s->ranges[d].first / (d == 1 ? block : 1) * strides[d];
        s->strides[d] = s->ranges[d].step * strides[d];
    }
}

/* Ranges and dims in the order of memory, [N, spatial..., C]: a row-major tensor from there on. */
static void put_last(state *s, qn_tensor *x)
{
    const qn_slice_range channels = s->ranges[1];
    const int32_t end = x->rank - 1;
    int64_t dims[QN_MAX_RANK];
    qn_dims_last(dims, x->dims, x->rank);
    memcpy(x->dims, dims, (size_t)x->rank * sizeof *dims);
    memmove(s->ranges + 1, s->ranges + 2, (size_t)(end - 1) * sizeof *s->ranges);
    s->ranges[end] = channels;
}

qn_status qn_claim_slice(bool *taken, qn_claim *claim)
{
    qn_tensor x;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    if (!qn_slice_ranges(s->ranges, claim, claim->node) ||
        !qn_build_shape(&x, claim->builder, claim->node->in[0]) || x.dtype == QN_STRING)
        return QN_OK;
    qn_value *out = claim->node->out[0];
    qn_slice_range inner[QN_MAX_RANK];
    for (qn_node *next = qn_build_fusible(claim->builder, out);
         next && qn_slice_ranges(inner, claim, next) && claim->n_nodes < QN_CLAIM_SPARE;
         next = qn_build_fusible(claim->builder, out)) {
        qn_slice_compose(s->ranges, inner, x.rank);
        qn_claim_add(claim, next);
        out = next->out[0];
    }
    s->rank = x.rank;
    *taken = true;
    const qn_layout layout = layout_for(claim, s, &x);
    if (as_view(claim, s, &x, layout, out))
        return QN_OK;
    if (layout.kind == QN_LAYOUT_CHANNELS_LAST)
        put_last(s, &x);
    describe(s, &x, layout);
    qn_claim_in(claim, claim->node->in[0], layout)->strided = true;
    qn_claim_out(claim, out, layout)->strided = x.rank > 1;
    claim->kernel = &slice_kernel;
    claim->state = s;
    return QN_OK;
}

/* ---- Gather ---------------------------------------------------------------------------------- */

/* With one index that is known, and that is one piece in every sample: a view. */
qn_status qn_claim_gather(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_tensor *indices = node->in[1]->data;
    qn_tensor x;
    if (node->in[0]->data || !indices || qn_tensor_count(indices) != 1 ||
        !qn_build_shape(&x, claim->builder, node->in[0]) || x.dtype == QN_STRING)
        return QN_OK;
    const int64_t axis = qn_gather_axis(node, x.rank), given = qn_tensor_i64(indices, 0);
    const int64_t index = given < 0 ? given + x.dims[axis] : given;
    const qn_axis a = qn_axis_of(&x, QN_ROWS, axis);
    if (a.outer != 1 || index < 0 || index >= x.dims[axis] || qn_tensor_count(&x) == 0)
        return QN_OK;
    qn_claim_in(claim, node->in[0], QN_ROWS)->strided = axis > 0;
    qn_claim_value *view = qn_claim_out(claim, node->out[0], QN_ROWS);
    view->strided = axis > 0;
    view->view_of = 0;
    view->offset = qn_axis_bytes(&a, index);
    *taken = true;
    return QN_OK;
}
