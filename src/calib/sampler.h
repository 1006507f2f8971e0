/* One thread's part in collecting statistics: a session and what it has seen. */
#ifndef QN_SAMPLER_H
#define QN_SAMPLER_H

#include "calib/convergence.h"

typedef struct qn_sampler qn_sampler;
struct qn_sampler {
    /* Of its thread */
    qn_context *ctx;
    qn_session *session;
    qn_accumulator *accumulator;
    /* Since it was taken last; NULL: nothing yet */
    qn_stats *part;
    /* NULL: 1, or the last of three dimensions; none of one */
    qn_axis_fn *axis;
    const void *axis_user;
    /* NULL: not wanted */
    qn_extremes *extremes;
    /* At hand, for the extremes */
    int64_t sample;
    /* Others, idle while this one runs, whose threads help to count: each has a context, and its
     * part gets what it counted. NULL: none. */
    qn_sampler **helpers;
    int n_helpers;
    /* Its own and theirs */
    qn_accumulator_group accumulators;
};

/* The context, axis, extremes and helpers are set by the caller. qn_sampler_close in any case. */
QN_MUST_CHECK qn_status qn_sampler_open(qn_sampler *s, qn_plan *plan);
/* Runs one sample and adds what was observed to the part, which is unusable after a failure. */
QN_MUST_CHECK qn_status qn_sampler_run(qn_sampler *s, const qn_tensor *inputs, size_t n_inputs);
/* Forgets the part. */
void qn_sampler_drop(qn_sampler *s);
void qn_sampler_close(qn_sampler *s);

#endif
