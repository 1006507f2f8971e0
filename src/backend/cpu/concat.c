/* Concat and Split: parts lie in the whole from the start where they can, else they are copied. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/parts.h"
#include "backend/cpu/tail.h"
#include "ops/tensor_attrs.h"

/* Copies between the whole and its parts: one rectangle each. */
typedef struct state {
    qn_axis axis;
    int32_t n_parts;
    struct part {
        bool skip; /* lies there already */
        size_t offset;
        qn_rectangle rectangle;
    } parts[];
} state;

static int64_t axis_of(int64_t axis, int32_t rank)
{
    return axis < 0 ? axis + rank : axis;
}

/* One layout for the whole and its parts: blocked if some input is and every cut is between blocks. */
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

/* ---- Concat ------------------------------------------------------------------------------------------------ */

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
        if (!s->parts[i].skip)
            qn_copy_rectangle((char *)io->out[0]->data + s->parts[i].offset, io->in[i]->data,
                              &s->parts[i].rectangle, io->threads);
    }
    return QN_OK;
}

static const qn_kernel concat_kernel = {
    .name = "concat", .prepare = concat_prepare, .run = concat_run};

static qn_layout concat_layout(const qn_claim *claim, const qn_tensor *whole, int64_t axis)
{
    const qn_node *node = claim->node;
    const qn_layout native = qn_layout_native();
    bool blocked = false;
    for (int32_t i = 0; i < node->n_in; i++)
        blocked = blocked || qn_layout_same(qn_build_layout(claim->builder, node->in[i]), native);
    if (!blocked || axis == 0)
        return QN_ROWS;
    const qn_axis a = qn_axis_of(whole, native, axis);
    return cuts_everywhere(&a, node->in, node->n_in, axis, whole->dims[axis]) ? native : QN_ROWS;
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

static void concat_inputs(state *s, qn_claim *claim, qn_layout layout, int64_t axis, int64_t total)
{
    const qn_node *node = claim->node;
    int64_t start = 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        const int64_t size = node->in[i]->type.dims[axis].value;
        qn_claim_value *in = qn_claim_in(claim, node->in[i], layout);
        in->strided = axis > 0;
        in->offset = s->parts[i].offset = qn_axis_bytes(&s->axis, start);
        s->parts[i].rectangle = part_rectangle(&s->axis, size, total);
        start += size;
    }
}

qn_status qn_claim_concat(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    qn_tensor whole;
    state *s = NULL;
    if (!all_known(claim, node->in, node->n_in) || !all_known(claim, node->out, 1) ||
        !qn_build_shape(&whole, claim->builder, node->out[0]) || qn_tensor_count(&whole) == 0)
        return QN_OK;
    const int64_t axis = axis_of(((const qn_concat_attrs *)node->attrs)->axis, whole.rank);
    const qn_layout layout = concat_layout(claim, &whole, axis);
    QN_TRY(state_make(&s, claim, node->n_in));
    s->axis = qn_axis_of(&whole, layout, axis);
    concat_inputs(s, claim, layout, axis, whole.dims[axis]);
    qn_claim_out(claim, node->out[0], layout)->strided = axis > 0;
    bool copies = false;
    for (int32_t i = 0; i < node->n_in; i++) {
        /* Parts lie in one piece only where nothing runs between samples and the axis. */
        s->parts[i].skip = s->axis.outer == 1 && qn_build_can_place(claim, i);
        claim->in[i].placed = s->parts[i].skip;
        copies = copies || !s->parts[i].skip;
    }
    claim->kernel = copies ? &concat_kernel : NULL;
    claim->state = s;
    *taken = true;
    return QN_OK;
}

/* ---- Split -------------------------------------------------------------------------------------------------- */

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
    if (layout.kind == QN_LAYOUT_CHANNELS_LAST || axis == 0 ||
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
