/* Concat, QLinearConcat and Split: parts lie in the whole from the start where they can, else they
 * are copied; quantized ones of another scale are requantized on the way. */
#include "backend/cpu/copy/parts.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/qlinear.h"
#include "ops/tensor_attrs.h"

/* Copies between the whole and its parts: one rectangle each. */
typedef struct state {
    qn_axis axis;
    const qn_q_kernels *kernels;
    int32_t n_parts;
    struct part {
        /* Lies there already. */
        bool skip;
        /* Is requantized. */
        bool changes;
        qn_q_cast cast;
        size_t offset;
        qn_rectangle rectangle;
    } parts[];
} state;

static int64_t axis_of(int64_t axis, int32_t rank)
{
    return axis < 0 ? axis + rank : axis;
}

/* Channels last serves integers of 8 and 16 bits. */
static bool keeps_last(const qn_claim *claim, const qn_value *value)
{
    return value->type.rank > 2 && qn_q_is_integer(value->type.dtype) &&
           qn_build_layout(claim->builder, value).kind == QN_LAYOUT_CHANNELS_LAST;
}

/* One layout for the whole and its parts: blocked if some input is and every cut is between
 * blocks. */
static bool cuts_everywhere(const qn_axis *a, qn_value *const *parts, int32_t count, int64_t axis,
                            int64_t total)
{
    int64_t start = 0;
    for (int32_t i = 0; i < count; i++) {
        const int64_t size = parts[i] ? parts[i]->type.dims[axis].value : 0;
        if (!qn_axis_cuts(a, start, size, total))
            return false;
        start += size;
    }
    return true;
}

static bool all_known(const qn_claim *claim, qn_value *const *values, int32_t count)
{
    qn_tensor shape;
    for (int32_t i = 0; i < count; i++) {
        if (!values[i] || !qn_build_shape(&shape, claim->builder, values[i]) || shape.rank < 1)
            return false;
    }
    return true;
}

static qn_status state_make(state **out, const qn_claim *claim, int32_t n_parts)
{
    state *s = qn_build_alloc(claim->builder, sizeof *s + (size_t)n_parts * sizeof(struct part));
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->n_parts = n_parts;
    *out = s;
    return QN_OK;
}

/* ---- Requantized parts ----------------------------------------------------------------------- */

typedef struct change_work {
    const state *s;
    const struct part *part;
    char *to;
    const char *from;
} change_work;

/* Item: one row of the part. */
static void change_range(const void *opaque, int64_t first, int64_t last)
{
    const change_work *w = opaque;
    const qn_rectangle *r = &w->part->rectangle;
    const int64_t count = (int64_t)r->width / (w->part->cast.is_int16 ? 2 : 1);
    for (int64_t i = first; i < last; i++) {
        const size_t plane = (size_t)(i / r->rows), row = (size_t)(i % r->rows);
        w->s->kernels->requantize(w->to + plane * r->to_plane + row * r->to_row,
                                  w->from + plane * r->from_plane + row * r->from_row, count,
                                  &w->part->cast);
    }
}

static void change(const state *s, const struct part *part, void *to, const void *from, int threads)
{
    const change_work w = {s, part, to, from};
    const qn_rectangle *r = &part->rectangle;
    qn_parallel(threads, r->planes * r->rows, QN_Q_CHUNK * QN_Q_ALONE / (int64_t)r->width + 1,
                change_range, &w);
}

/* ---- Concat ---------------------------------------------------------------------------------- */

static qn_status concat_prepare(qn_claim *claim)
{
    state *s = claim->state;
    for (int32_t i = 0; i < s->n_parts; i++) {
        qn_rectangle *r = &s->parts[i].rectangle;
        const size_t whole = claim->out[0].stride, part = claim->in[i].stride;
        r->to_plane = whole;
        r->from_plane = part;
    }
    return QN_OK;
}

static qn_status concat_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    (void)bound;
    for (int32_t i = 0; i < s->n_parts; i++) {
        char *to = (char *)io->out[0]->data + s->parts[i].offset;
        if (s->parts[i].changes)
            change(s, &s->parts[i], to, io->in[i]->data, io->threads);
        else if (!s->parts[i].skip)
            qn_copy_rectangle(to, io->in[i]->data, &s->parts[i].rectangle, io->threads);
    }
    return QN_OK;
}

static const qn_kernel concat_kernel = {
    .name = "concat", .prepare = concat_prepare, .run = concat_run};

static qn_layout concat_layout(const qn_claim *claim, qn_value *const *parts, int32_t count,
                               const qn_tensor *whole, int64_t axis)
{
    const qn_layout native = qn_layout_native();
    bool blocked = false, last = false;
    for (int32_t i = 0; i < count; i++) {
        blocked = blocked || qn_layout_same(qn_build_layout(claim->builder, parts[i]), native);
        last = last || keeps_last(claim, parts[i]);
    }
    if (axis == 0 || !(blocked || last))
        return QN_ROWS;
    if (last)
        return QN_LAST;
    const qn_axis a = qn_axis_of(whole, native, axis);
    return cuts_everywhere(&a, parts, count, axis, whole->dims[axis]) ? native : QN_ROWS;
}

/* A row of the whole holds one row of each part. */
static qn_rectangle part_rectangle(const qn_axis *a, int64_t part, int64_t total)
{
    return (qn_rectangle){.planes = a->samples,
                          .rows = a->outer,
                          .width = qn_axis_bytes(a, part),
                          .to_row = qn_axis_bytes(a, total),
                          .from_row = qn_axis_bytes(a, part)};
}

/* What a Concat joins along which axis. */
typedef struct pieces {
    qn_value **parts;
    int32_t count;
    int64_t axis;
} pieces;

static void concat_inputs(state *s, qn_claim *claim, const pieces *p, qn_layout layout,
                          int64_t total)
{
    int64_t start = 0;
    for (int32_t i = 0; i < p->count; i++) {
        const int64_t size = p->parts[i]->type.dims[p->axis].value;
        qn_claim_value *in = qn_claim_in(claim, p->parts[i], layout);
        in->strided = p->axis > 0;
        in->offset = s->parts[i].offset = qn_axis_bytes(&s->axis, start);
        s->parts[i].rectangle = part_rectangle(&s->axis, size, total);
        start += size;
    }
}

/* Takes the node; parts of `s` that change are marked. */
static void take_concat(bool *taken, qn_claim *claim, state *s, const pieces *p,
                        const qn_tensor *whole)
{
    const qn_layout layout = concat_layout(claim, p->parts, p->count, whole, p->axis);
    s->axis = qn_axis_of(whole, layout, p->axis);
    concat_inputs(s, claim, p, layout, whole->dims[p->axis]);
    qn_claim_out(claim, claim->node->out[0], layout)->strided = p->axis > 0;
    bool copies = false;
    for (int32_t i = 0; i < p->count; i++) {
        /* Parts lie in one piece only where nothing runs between samples and the axis. */
        s->parts[i].skip =
            s->axis.outer == 1 && !s->parts[i].changes && qn_build_can_place(claim, i);
        claim->in[i].placed = s->parts[i].skip;
        copies = copies || !s->parts[i].skip;
    }
    claim->kernel = copies ? &concat_kernel : NULL;
    claim->state = s;
    *taken = true;
}

qn_status qn_claim_concat(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    qn_tensor whole;
    state *s = NULL;
    if (!all_known(claim, node->in, node->n_in) || !all_known(claim, node->out, 1) ||
        !qn_build_shape(&whole, claim->builder, node->out[0]) || qn_tensor_count(&whole) == 0)
        return QN_OK;
    const pieces p = {node->in, node->n_in,
                      axis_of(((const qn_concat_attrs *)node->attrs)->axis, whole.rank)};
    QN_TRY(state_make(&s, claim, node->n_in));
    take_concat(taken, claim, s, &p, &whole);
    return QN_OK;
}

/* The parameters of part i beside those of the whole. */
static bool read_part(struct part *part, const qn_node *node, int32_t i, const qn_qparams *whole)
{
    const qn_dtype from = node->in[2 + 3 * i]->type.dtype, to = node->out[0]->type.dtype;
    qn_qparams x;
    if (!qn_q_param_of(&x, node, 3 + 3 * i, 4 + 3 * i) || !qn_q_is_integer(from) ||
        qn_dtype_size(from) != qn_dtype_size(to))
        return false;
    part->changes = from != to || x.scale != whole->scale || x.zero != whole->zero;
    part->cast = (qn_q_cast){.from = qn_q_side_of(from, x.zero),
                             .scale = (x.scale / whole->scale),
                             .round = qn_q_round_of(to, whole->zero),
                             .is_int16 = qn_dtype_size(to) == 2};
    if (qn_qparams_is_fixed_point(whole))
        qn_q_cast_fixed_point(&part->cast);
    return true;
}

qn_status qn_claim_q_concat(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    const int32_t count = (node->n_in - 2) / 3;
    qn_tensor whole;
    qn_qparams y;
    state *s = NULL;
    qn_value **parts = qn_build_alloc(claim->builder, (size_t)count * sizeof *parts);
    QN_TRY_ALLOC(qn_build_context(claim->builder), parts);
    for (int32_t i = 0; i < count; i++)
        parts[i] = node->in[2 + 3 * i];
    if (!all_known(claim, parts, count) || !all_known(claim, node->out, 1) ||
        !qn_build_shape(&whole, claim->builder, node->out[0]) || qn_tensor_count(&whole) == 0 ||
        !qn_q_param_of(&y, node, 0, 1))
        return QN_OK;
    const pieces p = {parts, count,
                      axis_of(((const qn_qconcat_attrs *)node->attrs)->axis, whole.rank)};
    QN_TRY(state_make(&s, claim, count));
    s->kernels = qn_q_kernels_get();
    for (int32_t i = 0; i < count; i++) {
        if (!read_part(&s->parts[i], node, i, &y))
            return QN_OK;
    }
    take_concat(taken, claim, s, &p, &whole);
    return QN_OK;
}

/* ---- Split ----------------------------------------------------------------------------------- */

static qn_status split_prepare(qn_claim *claim)
{
    state *s = claim->state;
    for (int32_t o = 0; o < s->n_parts; o++) {
        s->parts[o].rectangle.to_plane = claim->out[o].stride;
        s->parts[o].rectangle.from_plane = claim->in[0].stride;
    }
    return QN_OK;
}

static qn_status split_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    (void)bound;
    for (int32_t o = 0; o < s->n_parts; o++) {
        if (io->out[o])
            qn_copy_rectangle(io->out[o]->data, (const char *)io->in[0]->data + s->parts[o].offset,
                              &s->parts[o].rectangle, io->threads);
    }
    return QN_OK;
}

static const qn_kernel split_kernel = {.name = "split", .prepare = split_prepare, .run = split_run};

static void split_outputs(state *s, qn_claim *claim, const qn_tensor *whole, qn_layout layout,
                          int64_t axis)
{
    const qn_node *node = claim->node;
    const bool as_views = s->axis.outer == 1;
    int64_t start = 0;
    for (int32_t o = 0; o < node->n_out; o++) {
        const int64_t size = node->out[o]->type.dims[axis].value;
        qn_claim_value *out = qn_claim_out(claim, node->out[o], layout);
        struct part *part = &s->parts[o];
        part->offset = qn_axis_bytes(&s->axis, start);
        part->rectangle = part_rectangle(&s->axis, size, whole->dims[axis]);
        part->rectangle.from_row = part->rectangle.to_row;
        part->rectangle.to_row = part->rectangle.width;
        out->strided = axis > 0;
        out->view_of = as_views ? 0 : -1;
        out->offset = as_views ? part->offset : 0;
        start += size;
    }
    claim->kernel = as_views ? NULL : &split_kernel;
}

qn_status qn_claim_split(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    qn_tensor whole;
    state *s = NULL;
    if (!all_known(claim, node->in, 1) || !all_known(claim, node->out, node->n_out) ||
        node->in[0]->data || !qn_build_shape(&whole, claim->builder, node->in[0]) ||
        qn_tensor_count(&whole) == 0)
        return QN_OK;
    const int64_t axis = axis_of(((const qn_split_attrs *)node->attrs)->axis, whole.rank);
    qn_layout layout = qn_build_layout(claim->builder, node->in[0]);
    qn_axis a = qn_axis_of(&whole, layout, axis);
    if ((layout.kind == QN_LAYOUT_CHANNELS_LAST && !keeps_last(claim, node->in[0])) || axis == 0 ||
        !cuts_everywhere(&a, node->out, node->n_out, axis, whole.dims[axis])) {
        layout = QN_ROWS;
        a = qn_axis_of(&whole, layout, axis);
    }
    QN_TRY(state_make(&s, claim, node->n_out));
    s->axis = a;
    qn_claim_in(claim, node->in[0], layout)->strided = axis > 0;
    split_outputs(s, claim, &whole, layout, axis);
    claim->state = s;
    *taken = true;
    return QN_OK;
}
