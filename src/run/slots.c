/* Where values lie: slots, conversions between layouts, views, parts placed in a whole. */
#include <string.h>

#include "run/builder.h"

static qn_status slot_add(int32_t *out, qn_builder *b, const qn_value *value, int32_t space,
                          qn_layout layout)
{
    qn_plan *plan = b->plan;
    QN_TRY_GROW(plan->ctx, plan->slots.at, plan->slots.capacity, plan->slots.count + 1);
    const int32_t index = (int32_t)plan->slots.count++;
    qn_slot *slot = &plan->slots.at[index];
    *slot = (qn_slot){
        .value = value, .space = space, .layout = layout, .place = QN_PLACE_ARENA, .root = index};
    slot->first = slot->last = (int32_t)plan->n_steps - 1; /* the step just added */
    *out = index;
    if (space != QN_HOST && qn_dtype_size(value->type.dtype) == 0)
        return qn_fail(plan->ctx, QN_E_UNSUPPORTED,
                       "value '%s' has no elements of a fixed size: it cannot lie in the memory "
                       "of '%s'",
                       value->name, plan->spaces[space].space->name);
    if (!qn_build_shape(&slot->shape, b, value)) {
        slot->place = QN_PLACE_DYNAMIC;
        slot->shape.rank = -1;
        return space == QN_HOST
                   ? QN_OK
                   : qn_fail(
                         plan->ctx, QN_E_UNSUPPORTED,
                         "value '%s' has a shape that is known only while running: it cannot lie "
                         "in the memory of '%s'",
                         value->name, plan->spaces[space].space->name);
    }
    if (!qn_layout_bytes(&slot->bytes, layout, &slot->shape) || slot->bytes > SIZE_MAX / 2)
        return qn_fail(plan->ctx, QN_E_INVALID, "value '%s' is too large", value->name);
    slot->stride = qn_slot_sample(slot);
    return QN_OK;
}

/* Constants that a mapped file holds at an odd address are copied for the kernels. */
static qn_status align_constant(qn_builder *b, qn_tensor *shape, const char *name)
{
    size_t bytes;
    if (qn_tensor_is_aligned(shape) ||
        !qn_tensor_bytes(&bytes, shape->dtype, shape->rank, shape->dims))
        return QN_OK;
    void *copy = qn_build_block(b, NULL, bytes);
    if (!copy)
        return qn_fail_bytes(b->plan->ctx, bytes, "constant '%s'", name);
    memcpy(copy, shape->data, bytes);
    shape->data = copy;
    return QN_OK;
}

qn_status qn_slot_add_ready(qn_builder *b, const qn_value *value, qn_place place)
{
    qn_planned *planned = qn_planned_of(b, value);
    QN_TRY(slot_add(&planned->slot, b, value, QN_HOST, QN_ROWS));
    qn_slot *slot = &b->plan->slots.at[planned->slot];
    slot->place = place;
    slot->first = -1;
    if (place != QN_PLACE_CONSTANT)
        return QN_OK;
    slot->shape = *value->data;
    return align_constant(b, &slot->shape, value->name);
}

/* A constant as the memory of a space has it, for as long as the plan lives. */
static qn_status constant_in_space(int32_t *out, qn_builder *b, const qn_value *value,
                                   int32_t space)
{
    size_t bytes;
    const qn_plan_space *there = &b->plan->spaces[space];
    QN_TRY(slot_add(out, b, value, space, QN_ROWS));
    qn_slot *slot = &b->plan->slots.at[*out];
    slot->place = QN_PLACE_CONSTANT;
    slot->first = -1;
    slot->shape = *value->data;
    if (!qn_layout_bytes(&bytes, QN_ROWS, value->data))
        return qn_fail(b->plan->ctx, QN_E_INVALID, "value '%s' is too large", value->name);
    slot->shape.data = qn_build_block(b, there->space, QN_MAX(bytes, 1));
    const qn_status status =
        slot->shape.data ? qn_space_upload(b, space, slot->shape.data, value->data->data, bytes)
                         : qn_fail_bytes(b->plan->ctx, bytes, "constant '%s' in the memory of '%s'",
                                         value->name, there->space->name);
    return qn_backend_fault(b->plan->ctx, there->backend, status);
}

static qn_status constant_add(qn_builder *b, const qn_value *value, int32_t space)
{
    if (space == QN_HOST)
        return qn_slot_add_ready(b, value, QN_PLACE_CONSTANT);
    return constant_in_space(&qn_planned_of(b, value)->slot, b, value, space);
}

/* ---- Views and conversions ------------------------------------------------------------------- */

/* With `strided` the view's samples are parts of the input's, at the same distance; else the
 * view needs the input as it is now. */
static void make_view(qn_builder *b, int32_t out, int32_t in, size_t offset, bool strided)
{
    qn_slot *view = &b->plan->slots.at[out];
    qn_slot *from = &b->plan->slots.at[in];
    view->root = from->root;
    view->offset = from->offset + offset;
    view->place = from->place;
    if (strided) {
        view->stride = from->stride;
    } else {
        view->together = true;
        from->together = true;
    }
}

typedef struct conversion {
    /* The tensors without data */
    qn_laid_out from, to;
} conversion;

static qn_status convert_prepare(qn_claim *claim)
{
    conversion *c = claim->state;
    *c = (conversion){{NULL, claim->in[0].layout, claim->in[0].stride},
                      {NULL, claim->out[0].layout, claim->out[0].stride}};
    return QN_OK;
}

static qn_status convert_run(const void *state, void *bound, const qn_step_io *io)
{
    const conversion *c = state;
    const qn_laid_out to = {io->out[0]->data, c->to.layout, c->to.stride};
    const qn_laid_out from = {io->in[0]->data, c->from.layout, c->from.stride};
    (void)bound;
    qn_layout_convert(&to, &from, io->in[0]);
    return QN_OK;
}

static const qn_kernel convert_kernel = {
    .name = "convert", .prepare = convert_prepare, .run = convert_run};

static qn_status convert_claim(qn_builder *b, qn_claim *claim)
{
    const qn_space *space = claim->in[0].space;
    for (b->backend = 0; b->plan->backends[b->backend]; b->backend++) {
        const qn_backend *backend = b->plan->backends[b->backend];
        if (!backend->convert || backend->space != space)
            continue;
        claim->backend = backend;
        QN_TRY(qn_backend_fault(b->plan->ctx, backend, backend->convert(claim)));
        if (claim->kernel)
            return QN_OK;
    }
    if (space)
        return qn_fail(b->plan->ctx, QN_E_UNSUPPORTED,
                       "value '%s': no backend converts it to what is wanted in the memory of '%s'",
                       claim->in[0].value->name, space->name);
    b->backend--;
    claim->state = qn_build_alloc(b, sizeof(conversion));
    QN_TRY_ALLOC(b->plan->ctx, claim->state);
    claim->kernel = &convert_kernel;
    return QN_OK;
}

/* A copy is the step of a backend of the space that is asked. */
static void copy_claim(qn_builder *b, qn_claim *claim, int32_t asked)
{
    b->backend = 0;
    while (b->plan->backends[b->backend] != b->plan->spaces[asked].backend)
        b->backend++;
    claim->kernel = &qn_copy_kernel;
}

/* The step that brings slot `from` into `layout` in `space`; *out is the new slot. */
static qn_status convert_slot(int32_t *out, qn_builder *b, int32_t from, int32_t space,
                              qn_layout layout)
{
    const qn_plan_space *spaces = b->plan->spaces;
    const qn_slot source = b->plan->slots.at[from];
    const bool is_copy = source.space != space;
    qn_value *value = (qn_value *)(uintptr_t)source.value;
    qn_claim_value in = {.value = value,
                         .layout = source.layout,
                         .strided = true,
                         .view_of = -1,
                         .space = spaces[source.space].space};
    qn_claim_value to = {.value = value,
                         .layout = layout,
                         .strided = true,
                         .view_of = -1,
                         .space = spaces[space].space};
    qn_claim claim = {.builder = b, .in = &in, .out = &to, .n_in = 1, .n_out = 1, .in_place = -1};
    const size_t asked = b->backend;
    qn_step *step;
    if (is_copy)
        copy_claim(b, &claim, qn_copy_asked(b->plan, space, source.space));
    else
        QN_TRY(convert_claim(b, &claim));
    QN_TRY(qn_build_step(&step, b, &claim));
    QN_TRY(slot_add(out, b, value, space, layout));
    step->is_copy = b->plan->slots.at[*out].together = is_copy;
    step->in[0] = from;
    step->out[0] = *out;
    b->plan->slots.at[from].last = (int32_t)b->plan->n_steps - 1;
    b->backend = asked;
    return QN_OK;
}

static bool slot_serves(const qn_slot *slot, const qn_value *value, qn_wanted w)
{
    return slot->value == value && slot->space == w.space &&
           qn_layout_same(slot->layout, w.layout) && (w.strided || qn_slot_is_together(slot));
}

/* The first slot of the value in the space, -1: none. */
static int32_t first_in_space(const qn_builder *b, const qn_value *value, int32_t space)
{
    const int32_t primary = qn_planned_of(b, value)->slot;
    if (b->plan->slots.at[primary].space == space)
        return primary;
    for (size_t i = 0; i < b->plan->slots.count; i++) {
        if (b->plan->slots.at[i].value == value && b->plan->slots.at[i].space == space)
            return (int32_t)i;
    }
    return -1;
}

/* Written whenever the one on the host is. */
static qn_status parameter_in_space(int32_t *out, qn_builder *b, const qn_value *value,
                                    int32_t space)
{
    QN_TRY(slot_add(out, b, value, space, QN_ROWS));
    b->plan->slots.at[*out].place = QN_PLACE_PARAMETER;
    b->plan->slots.at[*out].first = -1;
    return QN_OK;
}

/* A row-major copy of the value in a space where it is not yet, directly or by way of the host. */
static qn_status copy_to_space(int32_t *out, qn_builder *b, const qn_value *value, int32_t space)
{
    const int32_t primary = qn_build_slot(b, value)->space;
    const int32_t from = qn_copy_asked(b->plan, space, primary) < 0 ? QN_HOST : primary;
    int32_t rows;
    if (value->data)
        return constant_in_space(out, b, value, space);
    if (value->initial)
        return parameter_in_space(out, b, value, space);
    QN_TRY(qn_slot_find(&rows, b, value, (qn_wanted){from, QN_ROWS, false}));
    return convert_slot(out, b, rows, space, QN_ROWS);
}

qn_status qn_slot_find(int32_t *out, qn_builder *b, const qn_value *value, qn_wanted w)
{
    int32_t from = first_in_space(b, value, w.space);
    if (from < 0)
        QN_TRY(copy_to_space(&from, b, value, w.space));
    /* The value's slots begin with the one that it was computed into. */
    for (size_t i = (size_t)qn_planned_of(b, value)->slot; i < b->plan->slots.count; i++) {
        qn_slot *slot = &b->plan->slots.at[i];
        if (slot_serves(slot, value, w)) {
            slot->together = slot->together || !w.strided;
            *out = (int32_t)i;
            return QN_OK;
        }
    }
    const qn_slot *first = &b->plan->slots.at[from];
    if (first->shape.rank < 0 || !qn_layout_alike(first->layout, w.layout, &first->shape) ||
        !(w.strided || qn_slot_is_together(first)))
        return convert_slot(out, b, from, w.space, w.layout);
    QN_TRY(slot_add(out, b, value, w.space, w.layout));
    make_view(b, *out, from, 0, w.strided);
    return QN_OK;
}

qn_status qn_slot_output(int32_t *out, qn_builder *b, const qn_value *value)
{
    QN_TRY(qn_slot_find(out, b, value, (qn_wanted){QN_HOST, QN_ROWS, false}));
    if (b->plan->slots.at[*out].place == QN_PLACE_INPUT)
        return convert_slot(out, b, *out, QN_HOST, QN_ROWS);
    return QN_OK;
}

/* ---- What a claim reads and writes ----------------------------------------------------------- */

qn_status qn_slot_inputs(int32_t *slots, qn_builder *b, const qn_claim *claim)
{
    const int32_t space = qn_build_own_space(b);
    for (int32_t i = 0; i < claim->n_in; i++) {
        const qn_claim_value *in = &claim->in[i];
        slots[i] = -1;
        if (!in->value)
            continue;
        if (in->value->data && qn_planned_of(b, in->value)->slot < 0)
            QN_TRY(constant_add(b, in->value, space));
        QN_TRY(qn_slot_find(&slots[i], b, in->value, (qn_wanted){space, in->layout, in->strided}));
    }
    return QN_OK;
}

/* Out[0] in the memory of an input that ends here. */
static void share_memory(qn_builder *b, const qn_claim *claim, const int32_t *in, int32_t out)
{
    if (claim->in_place < 0 || out < 0)
        return;
    const qn_value *value = claim->in[claim->in_place].value;
    qn_slot *to = &b->plan->slots.at[out];
    const int32_t from = in[claim->in_place];
    const qn_slot *slot = &b->plan->slots.at[from];
    if (to->place == QN_PLACE_ARENA && slot->bytes == to->bytes && slot->stride == to->stride &&
        qn_planned_of(b, value)->slot == from && qn_build_dies(claim, value)) {
        to->root = slot->root;
        to->offset = slot->offset;
    }
}

/* All that lies in `part` goes along. */
static void place_slot(qn_builder *b, int32_t part, int32_t whole, size_t offset)
{
    const qn_slots *slots = &b->plan->slots;
    const bool several = qn_slot_samples(&slots->at[whole]) > 1;
    for (size_t i = 0; i < slots->count; i++) {
        qn_slot *slot = &slots->at[i];
        if (slot->root != part)
            continue;
        slot->root = whole;
        slot->offset += offset;
        if (several)
            slot->stride = slots->at[whole].stride;
    }
}

static void place_inputs(qn_builder *b, const qn_claim *claim, const int32_t *in, int32_t whole)
{
    for (int32_t i = 0; i < claim->n_in; i++) {
        if (!claim->in[i].placed)
            continue;
        const qn_slot *slot = &b->plan->slots.at[in[i]];
        if (slot->root != whole)
            place_slot(b, slot->root, whole, claim->in[i].offset - slot->offset);
    }
}

qn_status qn_slot_outputs(int32_t *slots, qn_builder *b, const qn_claim *claim, const int32_t *in)
{
    for (int32_t o = 0; o < claim->n_out; o++) {
        const qn_claim_value *out = &claim->out[o];
        slots[o] = -1;
        if (!out->value)
            continue;
        QN_TRY(slot_add(&slots[o], b, out->value, qn_build_own_space(b), out->layout));
        qn_planned_of(b, out->value)->slot = slots[o];
        if (out->view_of >= 0)
            make_view(b, slots[o], in[out->view_of], out->offset, out->strided);
        else
            b->plan->slots.at[slots[o]].together = !out->strided;
    }
    if (claim->n_out > 0) {
        place_inputs(b, claim, in, slots[0]);
        share_memory(b, claim, in, slots[0]);
    }
    return QN_OK;
}
