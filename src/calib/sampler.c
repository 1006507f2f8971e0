/* One thread's session, whose observed values go into statistics. */
#include "calib/sampler.h"

#include <stdio.h>

#include "calib/collect.h"

static int32_t axis_of(const qn_sampler *s, const qn_value *value, int32_t rank)
{
    if (s->axis)
        return s->axis(s->axis_user, value);
    return rank < 2 ? -1 : rank == 3 ? 2 : 1;
}

/* What a helper has no memory for, in the context that is asked for messages. */
static qn_status own_failure(const qn_sampler *s, qn_status of_helper)
{
    return of_helper == QN_OK ? QN_OK : qn_fail_nomem(s->ctx);
}

/* After NaN or infinite elements: the collection knows the value, so nobody has to read the
 * message. */
static qn_status fail_with_remedy(const qn_sampler *s, const qn_value *value)
{
    char message[QN_ERROR_SIZE];
    const char *remedy = s->remedy ? s->remedy(value) : NULL;
    if (!remedy)
        return QN_E_INVALID;
    snprintf(message, sizeof message, "%s", qn_context_error(s->ctx));
    return qn_fail(s->ctx, QN_E_INVALID, "%s: %s", message, remedy);
}

static qn_status observe_value(void *user, const qn_observation *seen)
{
    qn_sampler *s = user;
    const char *name = seen->value->name;
    qn_stats_entry **entries = s->accumulators.entries;
    if (!qn_dtype_is_float(seen->tensor->dtype) || qn_tensor_count(seen->tensor) == 0)
        return QN_OK;
    const int32_t axis = axis_of(s, seen->value, seen->tensor->rank);
    QN_TRY(qn_stats_entry_get(&entries[0], s->part, name, axis));
    for (int i = 0; i < s->n_helpers; i++)
        QN_TRY(
            own_failure(s, qn_stats_entry_get(&entries[i + 1], s->helpers[i]->part, name, axis)));
    const qn_status status = qn_entry_add_shared(&s->accumulators, seen);
    if (status != QN_OK)
        return status == QN_E_INVALID ? fail_with_remedy(s, seen->value) : status;
    if (!s->extremes)
        return QN_OK;
    return qn_extremes_add(s->extremes, name, qn_accumulator_extremes(s->accumulator), s->sample);
}

static qn_status make_counter(qn_sampler *s)
{
    return s->accumulator ? QN_OK : qn_accumulator_create(&s->accumulator, s->ctx);
}

qn_status qn_sampler_open(qn_sampler *s, qn_plan *plan)
{
    qn_accumulator_group *all = &s->accumulators;
    const size_t count = (size_t)s->n_helpers + 1;
    all->at = qn_alloc_zero(s->ctx, count, sizeof *all->at);
    QN_TRY_ALLOC(s->ctx, all->at);
    all->entries = qn_alloc_zero(s->ctx, count, sizeof *all->entries);
    QN_TRY_ALLOC(s->ctx, all->entries);
    QN_TRY(make_counter(s));
    all->at[all->count++] = s->accumulator;
    for (int i = 0; i < s->n_helpers; i++) {
        QN_TRY(own_failure(s, make_counter(s->helpers[i])));
        all->at[all->count++] = s->helpers[i]->accumulator;
    }
    return qn_session_create(&s->session, s->ctx, plan);
}

static qn_status make_part(qn_sampler *s)
{
    return s->part ? QN_OK : qn_stats_create(&s->part, s->ctx);
}

qn_status qn_sampler_run(qn_sampler *s, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_session_hooks hooks = {.user = s, .seen = observe_value};
    QN_TRY(make_part(s));
    for (int i = 0; i < s->n_helpers; i++)
        QN_TRY(own_failure(s, make_part(s->helpers[i])));
    QN_TRY(qn_session_run_hooked(s->session, inputs, n_inputs, &hooks));
    qn_fingerprint_add(&s->part->data, qn_sample_fingerprint(inputs, n_inputs));
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
    qn_accumulator_free(s->accumulator);
    qn_sampler_drop(s);
    if (!s->ctx)
        return;
    qn_free(s->ctx, s->accumulators.at);
    qn_free(s->ctx, s->accumulators.entries);
}
