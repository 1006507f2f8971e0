/* From graph to plan: offers the nodes to the backends and records what they take. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "run/builder.h"

/* ---- Steps ----------------------------------------------------------------------------------- */

/* The claim with its lists, so that the kernel can be prepared when all nodes are claimed. */
static qn_claim *claim_keep(qn_plan *plan, const qn_claim *claim)
{
    qn_claim *kept = qn_arena_copy(&plan->arena, claim, sizeof *claim);
    if (!kept)
        return NULL;
    kept->nodes =
        qn_arena_copy(&plan->arena, claim->nodes, (size_t)claim->n_nodes * sizeof *claim->nodes);
    kept->in = qn_arena_copy(&plan->arena, claim->in, (size_t)claim->n_in * sizeof *claim->in);
    kept->out = qn_arena_copy(&plan->arena, claim->out, (size_t)claim->n_out * sizeof *claim->out);
    return kept->nodes && kept->in && kept->out ? kept : NULL;
}

/* Frees the state of a claim that never becomes a step. */
static void claim_drop(const qn_claim *claim)
{
    if (claim->kernel && claim->kernel->free)
        claim->kernel->free(claim->state);
}

static qn_status step_room(qn_plan *plan, const qn_claim *claim)
{
    qn_step *grown = qn_grow(plan->ctx, plan->steps, &plan->steps_capacity, plan->n_steps + 1,
                             sizeof *plan->steps);
    if (!grown) {
        claim_drop(claim);
        return qn_fail_nomem(plan->ctx);
    }
    plan->steps = grown;
    return QN_OK;
}

qn_status qn_build_step(qn_step **out, qn_builder *b, const qn_claim *claim)
{
    qn_plan *plan = b->plan;
    QN_TRY(step_room(plan, claim));
    qn_step *step = &plan->steps[plan->n_steps];
    *step = (qn_step){.backend = plan->backends[b->backend],
                      .space = qn_build_own_space(b),
                      .kernel = claim->kernel,
                      .state = claim->state,
                      .n_nodes = claim->n_nodes,
                      .n_in = claim->n_in,
                      .n_out = claim->n_out};
    step->claim = claim_keep(plan, claim);
    step->in = qn_arena_array(&plan->arena, (size_t)claim->n_in, sizeof *step->in);
    step->out = qn_arena_array(&plan->arena, (size_t)claim->n_out, sizeof *step->out);
    plan->n_steps++; /* from here on the plan frees its state */
    if (!step->claim || !step->in || !step->out)
        return qn_fail_nomem(plan->ctx);
    step->nodes = step->claim->nodes;
    for (int32_t i = 0; i < claim->n_in; i++)
        step->in[i] = -1;
    for (int32_t o = 0; o < claim->n_out; o++)
        step->out[o] = -1;
    *out = step;
    return QN_OK;
}

/* Weights that were packed and that nobody reads at run time leave memory at once, so that model
 * and packed copy never stand side by side. */
static void release_packed(qn_builder *b, const qn_claim *claim)
{
    for (int32_t n = 0; n < claim->n_nodes; n++) {
        for (int32_t i = 0; i < claim->nodes[n]->n_in; i++) {
            const qn_value *value = claim->nodes[n]->in[i];
            if (value && value->data && qn_build_is_packed(b, value))
                qn_model_release(b->plan->model, value->data);
        }
    }
}

static void claim_memory(qn_claim_value *values, const qn_plan *plan, const int32_t *slots,
                         int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const qn_slot *slot = slots[i] < 0 ? NULL : &plan->slots.at[slots[i]];
        values[i].stride = slot ? slot->stride : 0;
        values[i].space = slot ? plan->spaces[slot->space].space : NULL;
    }
}

/* Packed weights for which memory is short: the backend does not know their name. */
static qn_status name_refused(const qn_builder *b, const qn_claim *claim, qn_status status)
{
    if (status != QN_E_NOMEM || !b->wanted || claim->n_nodes < 1)
        return status;
    return qn_fail_bytes(b->plan->ctx, b->wanted, "packed weights of node '%s' (%s)",
                         claim->nodes[0]->name, claim->nodes[0]->op->name);
}

static qn_status step_prepare(qn_builder *b, qn_step *step)
{
    qn_plan *plan = b->plan;
    qn_claim *claim = step->claim;
    claim_memory(claim->in, plan, step->in, step->n_in);
    claim_memory(claim->out, plan, step->out, step->n_out);
    while (plan->backends[b->backend] != step->backend)
        b->backend = plan->backends[b->backend + 1] ? b->backend + 1 : 0;
    if (claim->kernel->prepare)
        QN_TRY(qn_backend_fault(plan->ctx, step->backend,
                                name_refused(b, claim, claim->kernel->prepare(claim))));
    qn_plan_space *space = &plan->spaces[step->space];
    step->scratch = claim->scratch;
    space->scratch_bytes = QN_MAX(space->scratch_bytes, claim->scratch);
    release_packed(b, claim);
    step->claim = NULL;
    return QN_OK;
}

static qn_status prepare_steps(qn_builder *b)
{
    for (size_t i = 0; i < b->plan->n_steps; i++) {
        QN_TRY(qn_check_cancel(b->plan->ctx));
        QN_TRY(step_prepare(b, &b->plan->steps[i]));
    }
    return QN_OK;
}

/* ---- Recording a claim ----------------------------------------------------------------------- */

static void mark_taken(qn_builder *b, const qn_claim *claim)
{
    for (int32_t n = 0; n < claim->n_nodes; n++) {
        const qn_node *node = claim->nodes[n];
        b->taken[node->number] = true;
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i])
                qn_planned_of(b, node->in[i])->pending--;
        }
    }
}

static qn_status record_slots(qn_builder *b, qn_claim *claim, int32_t *in, int32_t *out)
{
    qn_step *step = NULL;
    const qn_status status = qn_slot_inputs(in, b, claim);
    if (status != QN_OK) {
        claim_drop(claim);
        return status;
    }
    if (claim->kernel)
        QN_TRY(qn_build_step(&step, b, claim));
    QN_TRY(qn_slot_outputs(out, b, claim, in));
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

/* Observed values that lie elsewhere come to the host at once: later steps may write over them. */
static qn_status show_outputs(qn_builder *b, const qn_claim *claim)
{
    int32_t copy;
    if (qn_build_own_space(b) == QN_HOST)
        return QN_OK;
    for (int32_t o = 0; o < claim->n_out; o++) {
        const qn_value *value = claim->out[o].value;
        if (value && qn_planned_of(b, value)->observed)
            QN_TRY(qn_slot_find(&copy, b, value, (qn_wanted){QN_HOST, QN_ROWS, true}));
    }
    return QN_OK;
}

static qn_status record(qn_builder *b, qn_claim *claim)
{
    /* One spare, since a copy of zero bytes needs a pointer too. */
    int32_t *in = qn_arena_array(&b->plan->arena, (size_t)claim->n_in + 1, sizeof *in);
    int32_t *out = qn_arena_array(&b->plan->arena, (size_t)claim->n_out + 1, sizeof *out);
    if (!in || !out) {
        claim_drop(claim);
        return qn_fail_nomem(b->plan->ctx);
    }
    QN_TRY(record_slots(b, claim, in, out));
    QN_TRY(show_outputs(b, claim));
    mark_taken(b, claim);
    return QN_OK;
}

static qn_status claim_node(qn_builder *b, qn_node *node)
{
    for (size_t i = 0; b->plan->backends[i]; i++) {
        const qn_backend *backend = b->plan->backends[i];
        qn_claim claim = {.builder = b,
                          .backend = backend,
                          .node = node,
                          .nodes = b->nodes,
                          .in = b->in,
                          .out = b->out,
                          .in_place = -1};
        bool taken = false;
        b->backend = i;
        qn_claim_add(&claim, node);
        QN_TRY(qn_backend_fault(b->plan->ctx, backend, backend->claim(&taken, &claim)));
        if (taken)
            return record(b, &claim);
    }
    return qn_node_fail(node, QN_E_UNSUPPORTED, "no backend of this build can run it");
}

/* ---- The whole graph ------------------------------------------------------------------------- */

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

/* The spaces of the backends, each once. */
static qn_status keep_spaces(qn_plan *plan, size_t n_backends)
{
    plan->spaces = qn_arena_array(&plan->arena, n_backends + 1, sizeof *plan->spaces);
    QN_TRY_ALLOC(plan->ctx, plan->spaces);
    plan->n_spaces = 1; /* the host's */
    for (size_t i = 0; i < n_backends; i++) {
        const qn_backend *backend = plan->backends[i];
        size_t known = 0;
        if (backend->space && !backend->space->copy)
            return qn_backend_fault(
                plan->ctx, backend,
                qn_fail(plan->ctx, QN_E_UNSUPPORTED,
                        "backend '%s' works in the memory of '%s' and has no way to copy values "
                        "there and back: leave it out",
                        backend->name, backend->space->name));
        while (known < plan->n_spaces && plan->spaces[known].space != backend->space)
            known++;
        if (known == plan->n_spaces)
            plan->spaces[plan->n_spaces++] =
                (qn_plan_space){.space = backend->space, .backend = backend};
    }
    return QN_OK;
}

static qn_status keep_backends(qn_builder *b)
{
    qn_plan *plan = b->plan;
    size_t count = 0;
    while (b->config->backends[count])
        count++;
    plan->shared = qn_arena_array(&plan->arena, count + 1, sizeof *plan->shared);
    plan->backends =
        qn_arena_copy(&plan->arena, b->config->backends, (count + 1) * sizeof *b->config->backends);
    if (!plan->shared || !plan->backends)
        return qn_fail_nomem(plan->ctx);
    return keep_spaces(plan, count);
}

static qn_status builder_init(qn_builder *b)
{
    qn_graph *graph = b->graph;
    QN_TRY(keep_backends(b));
    b->planned = qn_alloc_zero(b->plan->ctx, graph->n_values, sizeof *b->planned);
    b->taken = qn_alloc_zero(b->plan->ctx, graph->made.numbers + 1, sizeof *b->taken);
    if (!b->planned || !b->taken)
        return qn_fail_nomem(b->plan->ctx);
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_value *value = graph->values[i];
        b->planned[i] =
            (qn_planned){-1, (int32_t)value->n_users + (value->is_output ? 1 : 0),
                         b->config->observe && b->config->observe(b->config->observe_user, value)};
    }
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
            QN_TRY(qn_slot_add_ready(b, value, QN_PLACE_CONSTANT));
        if (qn_planned_of(b, value)->slot < 0)
            return qn_fail(plan->ctx, QN_E_FORMAT, "output '%s' is never computed", value->name);
        QN_TRY(qn_slot_output(&plan->outputs[i], b, value));
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        plan->slots.at[plan->outputs[i]].last = (int32_t)plan->n_steps;
    return QN_OK;
}

static int by_step(const void *a, const void *b)
{
    const qn_observed *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* A value is complete after the step that was the newest when its slot was made: the one that
 * writes it, or, where no step does (views, a Concat of placed parts), one behind those that
 * write its parts. Its memory is alive then. */
static qn_status list_observed(qn_builder *b)
{
    qn_plan *plan = b->plan;
    const qn_graph *graph = b->graph;
    plan->observed = qn_arena_array(&plan->arena, graph->n_values + 1, sizeof *plan->observed);
    QN_TRY_ALLOC(plan->ctx, plan->observed);
    for (size_t i = 0; i < graph->n_values; i++) {
        if (!b->planned[i].observed)
            continue;
        if (graph->values[i]->data && b->planned[i].slot < 0)
            QN_TRY(qn_slot_add_ready(b, graph->values[i], QN_PLACE_CONSTANT));
        int32_t slot = b->planned[i].slot;
        if (slot >= 0 && plan->slots.at[slot].space != QN_HOST)
            QN_TRY(qn_slot_find(&slot, b, graph->values[i], (qn_wanted){QN_HOST, QN_ROWS, true}));
        if (slot >= 0)
            plan->observed[plan->n_observed++] = (qn_observed){slot, plan->slots.at[slot].first};
    }
    qsort(plan->observed, plan->n_observed, sizeof *plan->observed, by_step);
    return QN_OK;
}

static qn_status build_inputs(qn_builder *b)
{
    qn_graph *graph = b->graph;
    qn_plan *plan = b->plan;
    plan->inputs = qn_arena_array(&plan->arena, graph->n_inputs, sizeof *plan->inputs);
    plan->outputs = qn_arena_array(&plan->arena, graph->n_outputs, sizeof *plan->outputs);
    if (!plan->inputs || !plan->outputs)
        return qn_fail_nomem(plan->ctx);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        QN_TRY(qn_slot_add_ready(b, graph->inputs[i], QN_PLACE_INPUT));
        plan->inputs[i] = qn_planned_of(b, graph->inputs[i])->slot;
    }
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_value *value = graph->values[i];
        if (value->initial && qn_planned_of(b, value)->pending > 0)
            QN_TRY(qn_slot_add_ready(b, value, QN_PLACE_PARAMETER));
    }
    return QN_OK;
}

static qn_status build_steps(qn_builder *b)
{
    QN_TRY(build_inputs(b));
    for (qn_node *node = b->graph->first; node; node = node->next) {
        QN_TRY(qn_check_cancel(b->plan->ctx));
        if (!b->taken[node->number])
            QN_TRY(claim_node(b, node));
    }
    QN_TRY(finish_outputs(b));
    QN_TRY(list_observed(b));
    if (b->config->only_claims)
        return QN_OK;
    QN_TRY(prepare_steps(b));
    QN_TRY(qn_plan_memory(b->plan));
    return qn_plan_waits(b->plan);
}

/* Inputs and outputs have slots, so that types can be asked for. */
static qn_status build_deferred(qn_builder *b)
{
    qn_graph *graph = b->graph;
    QN_TRY(build_inputs(b));
    for (size_t i = 0; i < graph->n_outputs; i++) {
        QN_TRY(qn_slot_add_ready(b, graph->outputs[i], QN_PLACE_DYNAMIC));
        b->plan->outputs[i] = qn_planned_of(b, graph->outputs[i])->slot;
    }
    return QN_OK;
}

static qn_status plan_create(qn_plan **out, qn_model *model, const qn_plan_config *config)
{
    qn_context *ctx = model->ctx;
    qn_plan *plan = qn_alloc_zero(ctx, 1, sizeof *plan);
    *out = plan;
    if (!plan) {
        qn_model_free(model);
        return qn_fail_nomem(ctx);
    }
    plan->ctx = ctx;
    atomic_init(&plan->references, 1);
    qn_arena_init(&plan->arena, &ctx->allocator);
    plan->model = model;
    plan->threads = config->threads;
    return QN_OK;
}

typedef qn_status build_fn(qn_builder *b);

static qn_status plan_fill(qn_plan *plan, const qn_plan_config *config, build_fn *build)
{
    qn_builder builder = {.plan = plan, .graph = plan->model->graph, .config = config};
    /* Kernels are made for the number of threads that will run them. */
    const int outside = omp_get_max_threads();
    omp_set_num_threads(plan->threads);
    qn_status status = builder_init(&builder);
    if (status == QN_OK)
        status = build(&builder);
    omp_set_num_threads(outside);
    qn_free(plan->ctx, builder.planned);
    qn_free(plan->ctx, builder.taken);
    return status;
}

qn_status qn_plan_build(qn_plan **out, qn_model *model, const qn_plan_config *config)
{
    QN_TRY(plan_create(out, model, config));
    const qn_status status = plan_fill(*out, config, build_steps);
    if (status == QN_OK)
        return QN_OK;
    qn_plan_free(*out);
    *out = NULL;
    return status;
}

qn_status qn_plan_defer(qn_plan **out, qn_model *model, const qn_plan_config *config,
                        const char *why)
{
    QN_TRY(plan_create(out, model, config));
    qn_status status = plan_fill(*out, config, build_deferred);
    (*out)->deferred = qn_arena_text(&(*out)->arena, why, strlen(why));
    if (status == QN_OK && !(*out)->deferred)
        status = qn_fail_nomem((*out)->ctx);
    if (status == QN_OK)
        return QN_OK;
    qn_plan_free(*out);
    *out = NULL;
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
    for (size_t i = 0; plan->shared && plan->backends && plan->backends[i]; i++) {
        if (plan->shared[i] && plan->backends[i]->release)
            plan->backends[i]->release(plan->shared[i]);
    }
    for (size_t i = 0; i < plan->n_weights; i++)
        qn_space_free(plan->weights[i].space, ctx, plan->weights[i].at);
    qn_free(ctx, plan->weights);
    qn_free(ctx, plan->steps);
    qn_free(ctx, plan->slots.at);
    qn_model_free(plan->model);
    qn_arena_free(&plan->arena);
    qn_free(ctx, plan);
}
