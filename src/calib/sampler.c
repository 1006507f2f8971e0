#include "calib/sampler.h"

#include "calib/collect.h"

static int32_t axis_of(const qn_sampler *s, const qn_value *value, int32_t rank)
{
    if (s->axis)
        return s->axis(s->axis_user, value);
    return rank < 2 ? -1 : rank == 3 ? 2 : 1;
}

static qn_status see(void *user, const qn_observation *seen)
{
    qn_sampler *s = user;
    qn_stats_entry *entry;
    if (!qn_dtype_is_float(seen->tensor->dtype) || qn_tensor_count(seen->tensor) == 0)
        return QN_OK;
    const int32_t axis = axis_of(s, seen->value, seen->tensor->rank);
    QN_TRY(qn_stats_entry_get(&entry, s->part, seen->value->name, axis));
    QN_TRY(qn_entry_add(entry, s->counter, seen));
    if (!s->extremes)
        return QN_OK;
    return qn_extremes_add(s->extremes, entry->name, qn_counter_ends(s->counter), s->sample);
}

qn_status qn_sampler_open(qn_sampler *s, qn_plan *plan)
{
    QN_TRY(qn_counter_create(&s->counter, s->ctx));
    return qn_session_create(&s->session, s->ctx, plan);
}

qn_status qn_sampler_run(qn_sampler *s, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_session_hooks hooks = {.user = s, .seen = see};
    if (!s->part)
        QN_TRY(qn_stats_create(&s->part, s->ctx));
    QN_TRY(qn_session_run_hooked(s->session, inputs, n_inputs, &hooks));
    qn_fingerprint_add(&s->part->data, qn_sample_print(inputs, n_inputs));
    s->part->samples++;
    return QN_OK;
}

void qn_sampler_drop(qn_sampler *s)
{
    qn_stats_free(s->part);
    s->part = NULL;
}

void qn_sampler_close(qn_sampler *s)
{
    qn_session_free(s->session);
    qn_counter_free(s->counter);
    qn_sampler_drop(s);
}
