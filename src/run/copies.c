/* Copies between memory spaces, and what streams must be waited for. */
#include <string.h>

#include "run/builder.h"
#include "run/session.h"

/* ---- Spaces ---------------------------------------------------------------------------------- */

void *qn_space_alloc(const qn_space *space, qn_context *ctx, size_t size)
{
    return space ? space->alloc(space, ctx, size) : qn_alloc_aligned(&ctx->allocator, size);
}

void qn_space_free(const qn_space *space, qn_context *ctx, void *block)
{
    if (space)
        space->free(space, ctx, block);
    else
        qn_free_aligned(&ctx->allocator, block);
}

qn_status qn_backend_fault(qn_context *ctx, const qn_backend *backend, qn_status status)
{
    char why[QN_ERROR_SIZE];
    if (status == QN_OK || status == QN_E_CANCELLED || !backend || !backend->file)
        return status;
    memcpy(why, ctx->error, sizeof why);
    return qn_fail(ctx, status, "plug-in '%s': %s (to go without it name another backend)",
                   backend->file, why);
}

qn_status qn_space_upload(const qn_builder *b, int32_t space, void *to, const void *from,
                          size_t bytes)
{
    const qn_space *there = b->plan->spaces[space].space;
    const qn_copy copy = {.to = to, .from = from, .bytes = bytes, .to_space = there};
    if (!there) {
        memcpy(to, from, bytes);
        return QN_OK;
    }
    return there->copy(there, b->plan->ctx, &copy);
}

/* ---- Copies as steps ------------------------------------------------------------------------- */

/* The session runs them, since it knows the streams of both sides. */
const qn_kernel qn_copy_kernel = {.name = "copy"};

int32_t qn_copy_asked(const qn_plan *plan, int32_t to, int32_t from)
{
    const qn_space *a = plan->spaces[to].space, *b = plan->spaces[from].space;
    if (!a || !b)
        return a ? to : from;
    return a->reaches && a->reaches(a, b) ? to : -1;
}

/* Copies between two devices: the stream that copies waits for the other, and the other for it,
 * since the memory on that side is free again afterwards. */
static qn_status copy_across(qn_session *s, const qn_copy *copy, void *other)
{
    const qn_space *asked = copy->to_space;
    QN_TRY(asked->follow(asked, s->ctx, copy->stream, other));
    QN_TRY(asked->copy(asked, s->ctx, copy));
    return asked->follow(asked, s->ctx, other, copy->stream);
}

static qn_status copy_step(qn_session *s, const qn_step *step)
{
    const qn_plan *plan = s->plan;
    const qn_slot *from = &plan->slots.at[step->in[0]], *to = &plan->slots.at[step->out[0]];
    const qn_space *asked = plan->spaces[step->space].space;
    const qn_copy copy = {.to = s->tensors[step->out[0]].data,
                          .from = s->tensors[step->in[0]].data,
                          .bytes = qn_slot_sample(to) * qn_slot_samples(to),
                          .to_space = plan->spaces[to->space].space,
                          .from_space = plan->spaces[from->space].space,
                          .stream = s->streams[step->space]};
    if (copy.to_space && copy.from_space && asked->follow)
        return copy_across(s, &copy, s->streams[from->space]);
    return asked->copy(asked, s->ctx, &copy);
}

qn_status qn_session_copy(qn_session *s, const qn_step *step)
{
    return qn_backend_fault(s->ctx, step->backend, copy_step(s, step));
}

/* ---- Streams --------------------------------------------------------------------------------- */

qn_status qn_streams_open(qn_session *s)
{
    for (size_t i = 0; i < s->plan->n_spaces; i++) {
        const qn_plan_space *space = &s->plan->spaces[i];
        if (space->space && space->space->stream_open)
            QN_TRY(
                qn_backend_fault(s->ctx, space->backend,
                                 space->space->stream_open(space->space, s->ctx, &s->streams[i])));
    }
    return QN_OK;
}

qn_status qn_streams_wait(qn_session *s)
{
    for (size_t i = 0; i < s->plan->n_spaces; i++) {
        const qn_plan_space *space = &s->plan->spaces[i];
        if (s->streams[i])
            QN_TRY(qn_backend_fault(s->ctx, space->backend,
                                    space->space->wait(space->space, s->ctx, s->streams[i])));
    }
    return QN_OK;
}

void qn_streams_close(qn_session *s)
{
    for (size_t i = 0; s->streams && i < s->plan->n_spaces; i++) {
        const qn_space *space = s->plan->spaces[i].space;
        if (s->streams[i])
            space->stream_close(space, s->ctx, s->streams[i]);
    }
}

/* ---- What waits ------------------------------------------------------------------------------ */

/* Whether the step reads, on the host, memory that a stream may not have written yet. */
static bool reads_pending(const qn_plan *plan, const qn_step *step, const bool *pending)
{
    for (int32_t i = 0; i < step->n_in; i++) {
        const qn_slot *slot = step->in[i] < 0 ? NULL : &plan->slots.at[step->in[i]];
        if (slot && slot->space == QN_HOST && pending[slot->root])
            return true;
    }
    return false;
}

/* Memory for which no reader is left may be another value's from here on, while a stream still
 * writes to it. */
static bool ends_pending(const qn_plan *plan, const bool *pending, int32_t step)
{
    for (size_t i = 0; i < plan->slots.count; i++) {
        if (pending[i] && plan->slots.at[i].last < step)
            return true;
    }
    return false;
}

qn_status qn_plan_waits(qn_plan *plan)
{
    if (plan->n_spaces < 2)
        return QN_OK;
    bool *pending = qn_alloc_zero(plan->ctx, plan->slots.count + 1, sizeof *pending);
    QN_TRY_ALLOC(plan->ctx, pending);
    for (size_t i = 0; i < plan->n_steps; i++) {
        qn_step *step = &plan->steps[i];
        const bool writes_host = step->space == QN_HOST;
        step->waits = reads_pending(plan, step, pending) ||
                      (writes_host && ends_pending(plan, pending, (int32_t)i));
        if (step->waits)
            memset(pending, 0, plan->slots.count * sizeof *pending);
        const int32_t out = step->is_copy ? step->out[0] : -1;
        if (out >= 0 && plan->slots.at[out].space == QN_HOST)
            pending[plan->slots.at[out].root] = true;
    }
    qn_free(plan->ctx, pending);
    return QN_OK;
}
