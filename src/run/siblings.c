/* Inputs of other shapes than a session's plan was made for: each set of shapes gets a plan and a
 * session of its own, and the last few are kept. */
#include <string.h>

#include "run/session.h"

static bool same_dims(const qn_tensor *a, const qn_tensor *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

bool qn_session_fits(const qn_session *s, const qn_tensor *inputs)
{
    if (s->plan->deferred)
        return false;
    for (size_t i = 0; i < s->plan->model->graph->n_inputs; i++) {
        const qn_tensor *planned = &s->plan->slots.at[s->plan->inputs[i]].shape;
        if (planned->rank >= 0 && !same_dims(planned, &inputs[i]))
            return false;
    }
    return true;
}

static qn_status fail_shape(const qn_session *s, const qn_tensor *inputs)
{
    size_t i = 0;
    while (s->plan->slots.at[s->plan->inputs[i]].shape.rank < 0 ||
           same_dims(&s->plan->slots.at[s->plan->inputs[i]].shape, &inputs[i]))
        i++;
    char wanted[256], got[256];
    const qn_type a = qn_type_of(&s->plan->slots.at[s->plan->inputs[i]].shape);
    const qn_type b = qn_type_of(&inputs[i]);
    qn_type_format(wanted, sizeof wanted, &a);
    qn_type_format(got, sizeof got, &b);
    return qn_fail(s->ctx, QN_E_INVALID, "input '%s' must be %s, not %s",
                   s->plan->model->graph->inputs[i]->name, wanted, got);
}

static qn_status check_ranks(const qn_session *s, const qn_tensor *inputs)
{
    for (size_t i = 0; i < s->plan->model->graph->n_inputs; i++) {
        if (inputs[i].rank < 0 || inputs[i].rank > QN_MAX_RANK)
            return qn_fail(s->ctx, QN_E_INVALID, "input '%s': a tensor has 0 to %d dimensions",
                           s->plan->model->graph->inputs[i]->name, QN_MAX_RANK);
        for (int32_t d = 0; d < inputs[i].rank; d++) {
            if (inputs[i].dims[d] < 0)
                return qn_fail(s->ctx, QN_E_INVALID, "input '%s': dimension %d is %lld",
                               s->plan->model->graph->inputs[i]->name, d,
                               (long long)inputs[i].dims[d]);
        }
    }
    return QN_OK;
}

static qn_status make_sibling(qn_session **out, qn_session *s, const qn_tensor *inputs)
{
    qn_plan *plan;
    QN_TRY(s->plan->sibling(&plan, s->ctx, s->plan, inputs));
    const qn_status status = qn_session_create(out, s->ctx, plan);
    qn_plan_free(plan); /* the session keeps it */
    return status;
}

/* Puts a session in front, where it had place `from`. */
static void move_to_front(qn_session *s, qn_session *front, size_t from)
{
    memmove(&s->siblings[1], &s->siblings[0], from * sizeof s->siblings[0]);
    s->siblings[0] = front;
}

qn_status qn_session_sibling(qn_session **out, qn_session *s, const qn_tensor *inputs)
{
    *out = s;
    QN_TRY(check_ranks(s, inputs));
    if (qn_session_fits(s, inputs))
        return QN_OK;
    if (!s->plan->sibling)
        return fail_shape(s, inputs);
    for (size_t i = 0; i < QN_SIBLINGS && s->siblings[i]; i++) {
        if (!qn_session_fits(s->siblings[i], inputs))
            continue;
        *out = s->siblings[i];
        move_to_front(s, *out, i);
        return QN_OK;
    }
    QN_TRY(make_sibling(out, s, inputs));
    qn_session *oldest = s->siblings[QN_SIBLINGS - 1];
    if (s->active == oldest)
        s->active = s;
    qn_session_free(oldest);
    move_to_front(s, *out, QN_SIBLINGS - 1);
    return QN_OK;
}
