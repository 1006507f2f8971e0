/* Sessions: one caller's memory for a plan, and running the plan in it. */
#include "run/session.h"

#include <omp.h>
#include <string.h>

/* ---- Addresses ------------------------------------------------------------------------------- */

static void slot_address(qn_session *s, size_t i)
{
    const qn_slot *slot = &s->plan->slots.at[i];
    const qn_slot *root = &s->plan->slots.at[slot->root];
    qn_tensor *tensor = &s->tensors[i];
    char *base = s->tensors[slot->root].data;
    if (root->place == QN_PLACE_ARENA)
        base = (char *)s->memory[root->space] + root->address;
    tensor->data = base ? base + slot->offset : NULL;
}

static qn_status place_tensors(qn_session *s)
{
    const qn_slots *slots = &s->plan->slots;
    s->moving = qn_alloc_zero(s->ctx, slots->count + 1, sizeof *s->moving);
    QN_TRY_ALLOC(s->ctx, s->moving);
    for (size_t i = 0; i < slots->count; i++)
        s->tensors[i] = slots->at[i].shape;
    for (size_t i = 0; i < slots->count; i++) {
        const qn_slot *slot = &slots->at[i];
        if (slot->place == QN_PLACE_ARENA || slot->root != (int32_t)i)
            slot_address(s, i);
        if (slot->place == QN_PLACE_INPUT && slot->root != (int32_t)i)
            s->moving[s->n_moving++] = (int32_t)i;
    }
    return QN_OK;
}

static void step_tensors(qn_session *s, qn_tensor **out, const int32_t *slots, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        out[i] = slots[i] >= 0 ? &s->tensors[slots[i]] : NULL;
}

static qn_status place_steps(qn_session *s)
{
    const qn_plan *plan = s->plan;
    size_t total = 0, at = 0;
    for (size_t i = 0; i < plan->n_steps; i++)
        total += (size_t)(plan->steps[i].n_in + plan->steps[i].n_out);
    s->pointers = qn_alloc_zero(s->ctx, total + 1, sizeof *s->pointers);
    s->io = qn_alloc_zero(s->ctx, plan->n_steps + 1, sizeof *s->io);
    s->bound = qn_alloc_zero(s->ctx, plan->n_steps + 1, sizeof *s->bound);
    if (!s->pointers || !s->io || !s->bound)
        return qn_fail_nomem(s->ctx);
    for (size_t i = 0; i < plan->n_steps; i++) {
        const qn_step *step = &plan->steps[i];
        qn_tensor **in = s->pointers + at, **out = in + step->n_in;
        at += (size_t)(step->n_in + step->n_out);
        step_tensors(s, in, step->in, step->n_in);
        step_tensors(s, out, step->out, step->n_out);
        s->io[i] = (qn_step_io){s->ctx, in, out, s->scratch[step->space], plan->threads};
    }
    return QN_OK;
}

static qn_status bind_steps(qn_session *s)
{
    for (; s->n_bound < s->plan->n_steps; s->n_bound++) {
        const qn_step *step = &s->plan->steps[s->n_bound];
        if (step->kernel->bind)
            QN_TRY(step->kernel->bind(&s->bound[s->n_bound], step->state, &s->io[s->n_bound]));
    }
    return QN_OK;
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* Memory is short: which value or step is to blame. */
static qn_status fail_memory(const qn_session *s, size_t space)
{
    const qn_plan *plan = s->plan;
    const qn_slot *largest = NULL;
    for (size_t i = 0; i < plan->slots.count; i++) {
        const qn_slot *slot = &plan->slots.at[i];
        if (slot->place == QN_PLACE_ARENA && slot->space == (int32_t)space &&
            (!largest || slot->bytes > largest->bytes))
            largest = slot;
    }
    if (!largest)
        return qn_fail_nomem(s->ctx);
    return qn_fail_bytes(s->ctx, plan->spaces[space].arena_bytes,
                         "values between steps, the largest of them '%s' with %zu bytes",
                         largest->value->name, largest->bytes);
}

static qn_status fail_scratch(const qn_session *s, size_t space)
{
    const qn_plan *plan = s->plan;
    const size_t bytes = plan->spaces[space].scratch_bytes;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const qn_step *step = &plan->steps[i];
        if (step->space == (int32_t)space && step->scratch == bytes && step->n_nodes > 0)
            return qn_fail_bytes(s->ctx, bytes, "scratch of node '%s' (%s)", step->nodes[0]->name,
                                 step->nodes[0]->op->name);
    }
    return qn_fail_nomem(s->ctx);
}

static void *space_alloc(qn_context *ctx, const qn_space *space, size_t size)
{
    return space ? space->alloc(ctx, size) : qn_alloc_aligned(&ctx->allocator, size);
}

static void space_free(qn_context *ctx, const qn_space *space, void *block)
{
    if (space)
        space->free(ctx, block);
    else
        qn_free_aligned(&ctx->allocator, block);
}

static qn_status session_memory(qn_session *s)
{
    const qn_plan *plan = s->plan;
    s->memory = qn_alloc_zero(s->ctx, plan->n_spaces, sizeof *s->memory);
    s->scratch = qn_alloc_zero(s->ctx, plan->n_spaces, sizeof *s->scratch);
    if (!s->memory || !s->scratch)
        return qn_fail_nomem(s->ctx);
    for (size_t i = 0; i < plan->n_spaces; i++) {
        const qn_plan_space *space = &plan->spaces[i];
        s->memory[i] = space_alloc(s->ctx, space->space, space->arena_bytes);
        if (!s->memory[i])
            return fail_memory(s, i);
        s->scratch[i] = space_alloc(s->ctx, space->space, space->scratch_bytes);
        if (!s->scratch[i])
            return fail_scratch(s, i);
    }
    return QN_OK;
}

static void session_memory_free(qn_session *s)
{
    for (size_t i = 0; i < s->plan->n_spaces; i++) {
        if (s->memory)
            space_free(s->ctx, s->plan->spaces[i].space, s->memory[i]);
        if (s->scratch)
            space_free(s->ctx, s->plan->spaces[i].space, s->scratch[i]);
    }
    qn_free(s->ctx, s->memory);
    qn_free(s->ctx, s->scratch);
}

static qn_status session_fill(qn_session *s)
{
    const qn_plan *plan = s->plan;
    const size_t n_outputs = plan->model->graph->n_outputs;
    s->tensors = qn_alloc_zero(s->ctx, plan->slots.count + 1, sizeof *s->tensors);
    s->outputs = qn_alloc_zero(s->ctx, n_outputs + 1, sizeof *s->outputs);
    if (!s->tensors || !s->outputs)
        return qn_fail_nomem(s->ctx);
    QN_TRY(session_memory(s));
    for (size_t i = 0; i < n_outputs; i++)
        s->outputs[i] = &s->tensors[plan->outputs[i]];
    QN_TRY(place_tensors(s));
    QN_TRY(place_steps(s));
    return bind_steps(s);
}

qn_status qn_session_create(qn_session **out, qn_context *ctx, qn_plan *plan)
{
    *out = NULL;
    qn_session *s = qn_alloc_zero(ctx, 1, sizeof *s);
    QN_TRY_ALLOC(ctx, s);
    s->ctx = ctx;
    s->active = s;
    s->plan = qn_plan_retain(plan);
    const qn_status status = session_fill(s);
    if (status == QN_OK)
        *out = s;
    else
        qn_session_free(s);
    return status;
}

void qn_session_free(qn_session *s)
{
    if (!s)
        return;
    qn_context *ctx = s->ctx;
    for (size_t i = 0; i < QN_SIBLINGS; i++)
        qn_session_free(s->siblings[i]);
    for (size_t i = 0; i < s->n_bound; i++) {
        const qn_step *step = &s->plan->steps[i];
        if (step->kernel->unbind)
            step->kernel->unbind(ctx, step->state, s->bound[i]);
    }
    session_memory_free(s);
    qn_free(ctx, s->tensors);
    qn_free(ctx, s->outputs);
    qn_free(ctx, s->moving);
    qn_free(ctx, s->pointers);
    qn_free(ctx, s->io);
    qn_free(ctx, s->bound);
    qn_plan_free(s->plan);
    qn_free(ctx, s);
}

/* ---- Running --------------------------------------------------------------------------------- */

static qn_status check_inputs(const qn_session *s, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_graph *graph = s->plan->model->graph;
    if (n_inputs != graph->n_inputs)
        return qn_fail(s->ctx, QN_E_INVALID, "the model has %zu inputs, %zu were given",
                       graph->n_inputs, n_inputs);
    for (size_t i = 0; i < n_inputs; i++) {
        const bool known = inputs[i].rank >= 0 && inputs[i].rank <= QN_MAX_RANK;
        const bool empty =
            known && inputs[i].dtype < QN_SEQUENCE && qn_tensor_count(&inputs[i]) == 0;
        if (!inputs[i].data && !empty && inputs[i].dtype != QN_NONE)
            return qn_fail(s->ctx, QN_E_INVALID, "input '%s' has no data", graph->inputs[i]->name);
    }
    for (size_t i = 0; i < n_inputs; i++) {
        const qn_type *type = &graph->inputs[i]->type;
        if (type->kind == QN_TYPE_TENSOR && type->dtype != QN_UNDEFINED &&
            inputs[i].dtype != type->dtype)
            return qn_fail(s->ctx, QN_E_INVALID, "input '%s' must be %s, not %s",
                           graph->inputs[i]->name, qn_dtype_name(type->dtype),
                           qn_dtype_name(inputs[i].dtype));
    }
    return QN_OK;
}

static void set_inputs(qn_session *s, const qn_tensor *inputs)
{
    for (size_t i = 0; i < s->plan->model->graph->n_inputs; i++)
        s->tensors[s->plan->inputs[i]] = inputs[i];
    for (size_t i = 0; i < s->n_moving; i++)
        slot_address(s, (size_t)s->moving[i]);
}

/* Shows the observed values from *next on that are complete after `step`. */
static qn_status show_values(const qn_session *s, size_t *next, int32_t step,
                             const qn_session_hooks *hooks)
{
    const qn_plan *plan = s->plan;
    if (!hooks->seen)
        return QN_OK;
    for (; *next < plan->n_observed && plan->observed[*next].step == step; ++*next) {
        const int32_t i = plan->observed[*next].slot;
        const qn_slot *slot = &plan->slots.at[i];
        const qn_observation seen = {slot->value, &s->tensors[i], slot->layout, slot->stride};
        QN_TRY(hooks->seen(hooks->user, &seen));
    }
    return QN_OK;
}

static qn_status run_steps(qn_session *s, const qn_session_hooks *hooks)
{
    const qn_plan *plan = s->plan;
    const int outside = omp_get_max_threads();
    size_t next = 0;
    omp_set_num_threads(plan->threads);
    qn_status status = show_values(s, &next, -1, hooks);
    for (size_t i = 0; i < plan->n_steps && status == QN_OK; i++) {
        const qn_step *step = &plan->steps[i];
        status = qn_check_cancel(s->ctx);
        if (status == QN_OK)
            status = step->kernel->run(step->state, s->bound[i], &s->io[i]);
        if (hooks->after)
            hooks->after(hooks->user, i);
        if (status == QN_OK)
            status = show_values(s, &next, (int32_t)i, hooks);
    }
    omp_set_num_threads(outside);
    return status;
}

qn_status qn_session_run_hooked(qn_session *session, const qn_tensor *inputs, size_t n_inputs,
                                const qn_session_hooks *hooks)
{
    qn_session *s;
    QN_TRY(check_inputs(session, inputs, n_inputs));
    QN_TRY(qn_session_sibling(&s, session, inputs));
    session->active = s;
    set_inputs(s, inputs);
    return run_steps(s, hooks);
}

qn_status qn_session_run(qn_session *session, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_session_hooks none = {NULL, NULL, NULL};
    return qn_session_run_hooked(session, inputs, n_inputs, &none);
}

const qn_tensor *qn_session_output(const qn_session *session, size_t i)
{
    return i < session->plan->model->graph->n_outputs ? session->active->outputs[i] : NULL;
}
