/* From graph to plan: offers the nodes to the backends and records what they take. */
#include <string.h>

#include "run/builder.h"

/* ---- Slots ------------------------------------------------------------------------------------------ */

static qn_status slot_add(int32_t *out, qn_builder *b, const qn_value *value, qn_layout layout)
{
    qn_plan *plan = b->plan;
    QN_TRY_GROW(plan->ctx, plan->slots.at, plan->slots.capacity, plan->slots.count + 1);
    const int32_t index = (int32_t)plan->slots.count++;
    qn_slot *slot = &plan->slots.at[index];
    *slot = (qn_slot){.value = value, .layout = layout, .place = QN_PLACE_ARENA, .root = index};
    slot->first = slot->last = (int32_t)plan->n_steps - 1; /* the step just added */
    *out = index;
    if (!qn_build_shape(&slot->shape, b, value)) {
        slot->place = QN_PLACE_DYNAMIC;
        slot->shape.rank = -1;
        return QN_OK;
    }
    if (!qn_layout_bytes(&slot->bytes, layout, &slot->shape) || slot->bytes > SIZE_MAX / 2)
        return qn_fail(plan->ctx, QN_E_INVALID, "value '%s' is too large", value->name);
    return QN_OK;
}

/* Constants and inputs are there before the first step. */
static qn_status slot_add_ready(qn_builder *b, const qn_value *value, qn_place place)
{
    qn_planned *planned = qn_planned_of(b, value);
    QN_TRY(slot_add(&planned->slot, b, value, QN_ROWS));
    qn_slot *slot = &b->plan->slots.at[planned->slot];
    slot->place = place;
    slot->first = -1;
    if (place == QN_PLACE_CONSTANT)
        slot->shape = *value->data;
    return QN_OK;
}

/* ---- Steps ------------------------------------------------------------------------------------------ */

static qn_status step_add(qn_step **out, qn_builder *b, const qn_claim *claim)
{
    qn_plan *plan = b->plan;
    QN_TRY_GROW(plan->ctx, plan->steps, plan->steps_capacity, plan->n_steps + 1);
    qn_step *step = &plan->steps[plan->n_steps];
    *step = (qn_step){.backend = b->backend,
                      .kernel = claim->kernel,
                      .n_nodes = claim->n_nodes,
                      .n_in = claim->n_in,
                      .n_out = claim->n_out};
    step->nodes =
        qn_arena_copy(&plan->arena, claim->nodes, (size_t)claim->n_nodes * sizeof *claim->nodes);
    step->in = qn_arena_array(&plan->arena, (size_t)claim->n_in, sizeof *step->in);
    step->out = qn_arena_array(&plan->arena, (size_t)claim->n_out, sizeof *step->out);
    if (!step->nodes || !step->in || !step->out)
        return qn_fail_nomem(plan->ctx);
    for (int32_t i = 0; i < claim->n_in; i++)
        step->in[i] = -1;
    for (int32_t o = 0; o < claim->n_out; o++)
        step->out[o] = -1;
    *out = step;
    return QN_OK;
}

/* ---- Layout conversions ------------------------------------------------------------------------------ */

typedef struct conversion {
    qn_layout from, to;
} conversion;

static qn_status convert_run(const void *state, void *bound, const qn_step_io *io)
{
    const conversion *c = state;
    (void)bound;
    qn_layout_convert(io->out[0]->data, c->to, io->in[0]->data, c->from, io->in[0]);
    return QN_OK;
}

static const qn_kernel convert_kernel = {.name = "convert", .run = convert_run};

static qn_status convert_plain(qn_claim *claim)
{
    conversion *c = qn_build_alloc(claim->builder, sizeof *c);
    QN_TRY_ALLOC(qn_build_context(claim->builder), c);
    *c = (conversion){claim->in[0].layout, claim->out[0].layout};
    claim->state = c;
    claim->kernel = &convert_kernel;
    return QN_OK;
}

static qn_status convert_claim(qn_builder *b, qn_claim *claim)
{
    for (size_t i = 0; b->config->backends[i]; i++) {
        b->backend = b->config->backends[i];
        if (!b->backend->convert)
            continue;
        QN_TRY(b->backend->convert(claim));
        if (claim->kernel)
            return QN_OK;
    }
    return convert_plain(claim);
}

/* Prepares the claim's kernel and makes it the plan's newest step, which from then on owns it. */
static qn_status step_prepare(qn_step **out, qn_builder *b, qn_claim *claim)
{
    QN_TRY(step_add(out, b, claim));
    if (claim->kernel->prepare)
        QN_TRY(claim->kernel->prepare(claim));
    (*out)->state = claim->state;
    b->plan->scratch_bytes = QN_MAX(b->plan->scratch_bytes, claim->scratch);
    (*out)->scratch = claim->scratch;
    b->plan->n_steps++;
    return QN_OK;
}

/* Adds the step that brings slot `from` into `layout`; *out is the new slot. */
static qn_status convert_slot(int32_t *out, qn_builder *b, int32_t from, qn_layout layout)
{
    qn_value *value = (qn_value *)(uintptr_t)b->plan->slots.at[from].value;
    qn_claim_value in = {.value = value, .layout = b->plan->slots.at[from].layout, .view_of = -1};
    qn_claim_value to = {.value = value, .layout = layout, .view_of = -1};
    qn_claim claim = {.builder = b, .in = &in, .out = &to, .n_in = 1, .n_out = 1, .in_place = -1};
    const qn_backend *asked = b->backend;
    qn_step *step;
    QN_TRY(convert_claim(b, &claim));
    QN_TRY(step_prepare(&step, b, &claim));
    QN_TRY(slot_add(out, b, value, layout));
    step->in[0] = from;
    step->out[0] = *out;
    b->plan->slots.at[from].last = (int32_t)b->plan->n_steps - 1;
    b->backend = asked;
    return QN_OK;
}

/* The slot of `value` in `layout`: there already, or made by a conversion. */
static qn_status slot_in_layout(int32_t *out, qn_builder *b, const qn_value *value,
                                qn_layout layout)
{
    const int32_t primary = qn_planned_of(b, value)->slot;
    for (size_t i = 0; i < b->plan->slots.count; i++) {
        const qn_slot *slot = &b->plan->slots.at[i];
        if (slot->value == value && qn_layout_same(slot->layout, layout)) {
            *out = (int32_t)i;
            return QN_OK;
        }
    }
    return convert_slot(out, b, primary, layout);
}

/* ---- Recording a claim -------------------------------------------------------------------------------- */

static void mark_taken(qn_builder *b, const qn_claim *claim)
{
    for (int32_t n = 0; n < claim->n_nodes; n++) {
        const qn_node *node = claim->nodes[n];
        b->taken[node->mark] = true;
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i])
                qn_planned_of(b, node->in[i])->pending--;
        }
    }
}

/* Weights that were packed and that nobody reads at run time leave memory at once, so that model and
 * packed copy never stand side by side. */
static void release_packed(qn_builder *b, const qn_claim *claim)
{
    for (int32_t n = 0; n < claim->n_nodes; n++) {
        for (int32_t i = 0; i < claim->nodes[n]->n_in; i++) {
            const qn_value *value = claim->nodes[n]->in[i];
            if (value && value->data && !value->is_capture && value->n_users == 1 &&
                !value->is_output && qn_planned_of(b, value)->slot < 0)
                qn_model_release(b->plan->model, value->data);
        }
    }
}

static qn_status input_slots(int32_t *slots, qn_builder *b, const qn_claim *claim)
{
    for (int32_t i = 0; i < claim->n_in; i++) {
        const qn_value *value = claim->in[i].value;
        slots[i] = -1;
        if (!value)
            continue;
        if (value->data && qn_planned_of(b, value)->slot < 0)
            QN_TRY(slot_add_ready(b, value, QN_PLACE_CONSTANT));
        QN_TRY(slot_in_layout(&slots[i], b, value, claim->in[i].layout));
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
    if (to->place == QN_PLACE_ARENA && slot->bytes == to->bytes &&
        qn_planned_of(b, value)->slot == from && qn_build_dies(claim, value))
        to->root = from;
}

static void make_view(qn_builder *b, int32_t out, int32_t in, size_t offset)
{
    qn_slot *view = &b->plan->slots.at[out];
    const qn_slot *from = &b->plan->slots.at[in];
    view->root = from->root;
    view->offset = from->offset + offset;
    view->place = from->place;
}

/* Slots that lay in `part` already go along: can_place has made sure that there are none. */
static void place_inputs(qn_builder *b, const qn_claim *claim, const int32_t *in, int32_t whole)
{
    for (int32_t i = 0; i < claim->n_in; i++) {
        b->plan->slots.at[in[i]].root = whole;
        b->plan->slots.at[in[i]].offset = claim->in[i].offset;
    }
}

static qn_status output_slots(int32_t *slots, qn_builder *b, const qn_claim *claim,
                              const int32_t *in)
{
    for (int32_t o = 0; o < claim->n_out; o++) {
        const qn_claim_value *out = &claim->out[o];
        slots[o] = -1;
        if (!out->value)
            continue;
        QN_TRY(slot_add(&slots[o], b, out->value, out->layout));
        qn_planned_of(b, out->value)->slot = slots[o];
        if (out->view_of >= 0)
            make_view(b, slots[o], in[out->view_of], out->offset);
    }
    if (claim->place_inputs)
        place_inputs(b, claim, in, slots[0]);
    if (claim->n_out > 0)
        share_memory(b, claim, in, slots[0]);
    return QN_OK;
}

static qn_status record_slots(qn_builder *b, qn_claim *claim, int32_t *in, int32_t *out)
{
    qn_step *step = NULL;
    QN_TRY(input_slots(in, b, claim));
    if (claim->kernel)
        QN_TRY(step_prepare(&step, b, claim));
    QN_TRY(output_slots(out, b, claim, in));
    for (int32_t i = 0; i < claim->n_in; i++) {
        if (in[i] >= 0)
            b->plan->slots.at[in[i]].last = (int32_t)b->plan->n_steps - 1;
    }
    if (step) {
        memcpy(step->in, in, (size_t)claim->n_in * sizeof *in);
        memcpy(step->out, out, (size_t)claim->n_out * sizeof *out);
    }
    return QN_OK;
}

static qn_status record(qn_builder *b, qn_claim *claim)
{
    /* One spare, since a copy of zero bytes needs a pointer too. */
    int32_t *in = qn_arena_array(&b->plan->arena, (size_t)claim->n_in + 1, sizeof *in);
    int32_t *out = qn_arena_array(&b->plan->arena, (size_t)claim->n_out + 1, sizeof *out);
    if (!in || !out)
        return qn_fail_nomem(b->plan->ctx);
    QN_TRY(record_slots(b, claim, in, out));
    release_packed(b, claim);
    mark_taken(b, claim);
    return QN_OK;
}

static qn_status claim_node(qn_builder *b, qn_node *node)
{
    for (size_t i = 0; b->config->backends[i]; i++) {
        qn_claim claim = {.builder = b,
                          .node = node,
                          .nodes = b->nodes,
                          .in = b->in,
                          .out = b->out,
                          .in_place = -1};
        bool taken = false;
        b->backend = b->config->backends[i];
        qn_claim_add(&claim, node);
        QN_TRY(b->backend->claim(&taken, &claim));
        if (taken)
            return record(b, &claim);
    }
    return qn_node_fail(node, QN_E_UNSUPPORTED, "no backend of this build can run it");
}

/* ---- The whole graph ------------------------------------------------------------------------------------ */

/* Room for the claims: the widest node and what fusion may add. */
static qn_status claim_room(qn_builder *b)
{
    int32_t n_in = 0, n_out = 0;
    for (const qn_node *node = b->graph->first; node; node = node->next) {
        n_in = QN_MAX(n_in, node->n_in);
        n_out = QN_MAX(n_out, node->n_out);
    }
    qn_arena *arena = &b->plan->arena;
    b->nodes = qn_arena_array(arena, QN_CLAIM_SPARE, sizeof(qn_node *));
    b->in = qn_arena_array(arena, (size_t)n_in + QN_CLAIM_SPARE, sizeof *b->in);
    b->out = qn_arena_array(arena, (size_t)n_out + QN_CLAIM_SPARE, sizeof *b->out);
    return b->nodes && b->in && b->out ? QN_OK : qn_fail_nomem(b->plan->ctx);
}

static qn_status builder_init(qn_builder *b)
{
    qn_graph *graph = b->graph;
    uint32_t nodes = 0;
    b->planned = qn_alloc_zero(b->plan->ctx, graph->n_values, sizeof *b->planned);
    b->taken = qn_alloc_zero(b->plan->ctx, graph->n_nodes, sizeof *b->taken);
    if (!b->planned || !b->taken)
        return qn_fail_nomem(b->plan->ctx);
    for (size_t i = 0; i < graph->n_values; i++) {
        qn_value *value = graph->values[i];
        value->mark = (uint32_t)i;
        b->planned[i] = (qn_planned){-1, (int32_t)value->n_users + (value->is_output ? 1 : 0)};
    }
    for (qn_node *node = graph->first; node; node = node->next)
        node->mark = nodes++;
    return claim_room(b);
}

/* Outputs end row-major and live to the end. */
static qn_status finish_outputs(qn_builder *b)
{
    qn_graph *graph = b->graph;
    qn_plan *plan = b->plan;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const qn_value *value = graph->outputs[i];
        if (value->data && qn_planned_of(b, value)->slot < 0)
            QN_TRY(slot_add_ready(b, value, QN_PLACE_CONSTANT));
        if (qn_planned_of(b, value)->slot < 0)
            return qn_fail(plan->ctx, QN_E_FORMAT, "output '%s' is never computed", value->name);
        QN_TRY(slot_in_layout(&plan->outputs[i], b, value, QN_ROWS));
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        plan->slots.at[plan->outputs[i]].last = (int32_t)plan->n_steps;
    return QN_OK;
}

static qn_status build_steps(qn_builder *b)
{
    qn_graph *graph = b->graph;
    qn_plan *plan = b->plan;
    plan->inputs = qn_arena_array(&plan->arena, graph->n_inputs, sizeof *plan->inputs);
    plan->outputs = qn_arena_array(&plan->arena, graph->n_outputs, sizeof *plan->outputs);
    if (!plan->inputs || !plan->outputs)
        return qn_fail_nomem(plan->ctx);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        QN_TRY(slot_add_ready(b, graph->inputs[i], QN_PLACE_INPUT));
        plan->inputs[i] = qn_planned_of(b, graph->inputs[i])->slot;
    }
    for (qn_node *node = graph->first; node; node = node->next) {
        QN_TRY(qn_check_cancel(plan->ctx));
        if (!b->taken[node->mark])
            QN_TRY(claim_node(b, node));
    }
    QN_TRY(finish_outputs(b));
    return qn_plan_memory(plan);
}

qn_status qn_plan_build(qn_plan **out, qn_model *model, const qn_plan_config *config)
{
    qn_context *ctx = model->ctx;
    qn_plan *plan = qn_alloc_zero(ctx, 1, sizeof *plan);
    *out = NULL;
    if (!plan) {
        qn_model_free(model);
        return qn_fail_nomem(ctx);
    }
    plan->ctx = ctx;
    atomic_init(&plan->references, 1);
    qn_arena_init(&plan->arena, &ctx->allocator);
    plan->model = model;
    plan->threads = config->threads;
    qn_builder builder = {.plan = plan, .graph = model->graph, .config = config};
    qn_status status = builder_init(&builder);
    if (status == QN_OK)
        status = build_steps(&builder);
    qn_free(ctx, builder.planned);
    qn_free(ctx, builder.taken);
    if (status == QN_OK)
        *out = plan;
    else
        qn_plan_free(plan);
    return status;
}

qn_plan *qn_plan_retain(qn_plan *plan)
{
    atomic_fetch_add(&plan->references, 1);
    return plan;
}

void qn_plan_free(qn_plan *plan)
{
    if (!plan || atomic_fetch_sub(&plan->references, 1) > 1)
        return;
    qn_context *ctx = plan->ctx;
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kernel && plan->steps[i].kernel->free)
            plan->steps[i].kernel->free(plan->steps[i].state);
    }
    for (size_t i = 0; i < plan->n_weights; i++)
        qn_free_aligned(&ctx->allocator, plan->weights[i]);
    qn_free(ctx, plan->weights);
    qn_free(ctx, plan->steps);
    qn_free(ctx, plan->slots.at);
    qn_model_free(plan->model);
    qn_arena_free(&plan->arena);
    qn_free(ctx, plan);
}
