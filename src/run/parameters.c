/* Parameters of a session: memory that lasts from run to run, read and written by its caller. */
#include <string.h>

#include "run/session.h"

typedef struct qn_parameter {
    int32_t slot;
    void *memory;
} qn_parameter;

static const qn_plan_space *space_of(const qn_session *s, const qn_parameter *p)
{
    return &s->plan->spaces[s->plan->slots.at[p->slot].space];
}

static size_t bytes_of(const qn_session *s, const qn_parameter *p)
{
    return s->plan->slots.at[p->slot].bytes;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static qn_status write_memory(const qn_session *s, const qn_parameter *p, const void *data)
{
    const qn_plan_space *there = space_of(s, p);
    const qn_copy copy = {
        .to = p->memory, .from = data, .bytes = bytes_of(s, p), .to_space = there->space};
    if (there->space)
        return qn_backend_fault(s->ctx, there->backend,
                                there->space->copy(there->space, s->ctx, &copy));
    if (copy.bytes)
        memcpy(copy.to, copy.from, copy.bytes);
    return QN_OK;
}

/* Writes it to all spaces that hold it. */
static qn_status write_value(const qn_session *s, const qn_value *value, const void *data)
{
    for (size_t i = 0; i < s->n_parameters; i++) {
        if (s->plan->slots.at[s->parameters[i].slot].value == value)
            QN_TRY(write_memory(s, &s->parameters[i], data));
    }
    return QN_OK;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static bool holds_parameter(const qn_plan *plan, size_t slot)
{
    return plan->slots.at[slot].place == QN_PLACE_PARAMETER &&
           plan->slots.at[slot].root == (int32_t)slot;
}

static qn_status open_one(qn_session *s, size_t slot)
{
    qn_parameter *p = &s->parameters[s->n_parameters];
    const qn_value *value = s->plan->slots.at[slot].value;
    *p = (qn_parameter){.slot = (int32_t)slot};
    const qn_plan_space *there = space_of(s, p);
    const size_t bytes = bytes_of(s, p);
    p->memory = qn_space_alloc(there->space, s->ctx, QN_MAX(bytes, 1));
    if (!p->memory)
        return qn_backend_fault(s->ctx, there->backend,
                                qn_fail_bytes(s->ctx, bytes, "parameter '%s'", value->name));
    s->n_parameters++;
    s->tensors[slot].data = p->memory;
    return write_memory(s, p, value->initial->data);
}

qn_status qn_parameters_open(qn_session *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->plan->slots.count; i++)
        count += holds_parameter(s->plan, i);
    if (count == 0)
        return QN_OK;
    s->parameters = qn_alloc_zero(s->ctx, count, sizeof *s->parameters);
    QN_TRY_ALLOC(s->ctx, s->parameters);
    for (size_t i = 0; i < s->plan->slots.count; i++) {
        if (holds_parameter(s->plan, i))
            QN_TRY(open_one(s, i));
    }
    return QN_OK;
}

void qn_parameters_close(qn_session *s)
{
    for (size_t i = 0; i < s->n_parameters; i++)
        qn_space_free(space_of(s, &s->parameters[i])->space, s->ctx, s->parameters[i].memory);
    qn_free(s->ctx, s->parameters);
}

/* ---- By name --------------------------------------------------------------------------------- */

/* The one on the host, which every parameter has; NULL: there is none of that name. */
static const qn_parameter *find(const qn_session *s, const char *name)
{
    for (size_t i = 0; i < s->n_parameters; i++) {
        const qn_slot *slot = &s->plan->slots.at[s->parameters[i].slot];
        if (slot->space == QN_HOST && strcmp(slot->value->name, name) == 0)
            return &s->parameters[i];
    }
    return NULL;
}

qn_status qn_session_parameter_get(const qn_tensor **out, qn_session *s, const char *name)
{
    const qn_parameter *p = find(s, name);
    *out = NULL;
    if (!p)
        return qn_fail(s->ctx, QN_E_INVALID, "the plan has no parameter '%s'", name);
    *out = &s->tensors[p->slot];
    return QN_OK;
}

qn_status qn_session_parameter_set(qn_session *s, const char *name, const qn_tensor *tensor)
{
    const qn_tensor *now;
    char wanted[256], got[256];
    QN_TRY(qn_session_parameter_get(&now, s, name));
    if (now->dtype != tensor->dtype || now->rank != tensor->rank ||
        memcmp(now->dims, tensor->dims, (size_t)now->rank * sizeof *now->dims) != 0) {
        const qn_type a = qn_type_of(now), b = qn_type_of(tensor);
        qn_type_format(wanted, sizeof wanted, &a);
        qn_type_format(got, sizeof got, &b);
        return qn_fail(s->ctx, QN_E_INVALID, "parameter '%s' must be %s, not %s", name, wanted,
                       got);
    }
    s->written++;
    return write_value(s, s->plan->slots.at[find(s, name)->slot].value, tensor->data);
}

/* A sibling's passes may have found that it has no use for one. */
qn_status qn_parameters_follow(qn_session *s, const qn_session *from)
{
    if (s == from || s->written == from->written)
        return QN_OK;
    for (size_t i = 0; i < from->n_parameters; i++) {
        const qn_slot *slot = &from->plan->slots.at[from->parameters[i].slot];
        const qn_parameter *p = slot->space == QN_HOST ? find(s, slot->value->name) : NULL;
        if (p)
            QN_TRY(write_value(s, s->plan->slots.at[p->slot].value, from->parameters[i].memory));
    }
    s->written = from->written;
    return QN_OK;
}
