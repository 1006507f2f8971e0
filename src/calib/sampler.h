/* One thread's part in collecting statistics: a session and the statistics of what it ran. */
#ifndef QN_SAMPLER_H
#define QN_SAMPLER_H

#include "calib/convergence.h"

typedef struct qn_sampler qn_sampler;
struct qn_sampler {
    /* The context of its thread. */
    qn_context *ctx;
    qn_session *session;
    qn_accumulator *accumulator;
    /* The statistics since they were last handed in; NULL: nothing yet. */
    qn_stats *part;
    /* The axis of channels; NULL: 1, or the last of three dimensions, and none of one. */
    qn_axis_fn *axis;
    const void *axis_user;
    /* The remedy of qn_collect_options. */
    const char *(*remedy)(const qn_value *value);
    /* The extremes of samples; NULL: not wanted. */
    qn_extremes *extremes;
    /* The index of the current sample, for the extremes. */
    int64_t sample;
    /* Other samplers, idle while this one runs, whose threads help to count; each has a context,
     * and its part gets what it counted. NULL: none. */
    qn_sampler **helpers;
    int n_helpers;
    /* Its own accumulator and those of the helpers. */
    qn_accumulator_group accumulators;
};

/* Opens a session. The caller has set context, axis, extremes and helpers, and calls
 * qn_sampler_close also after a failure. */
QN_MUST_CHECK qn_status qn_sampler_open(qn_sampler *s, qn_plan *plan);
/* Runs one sample and adds the observed values to the part, which is unusable after a failure. */
QN_MUST_CHECK qn_status qn_sampler_run(qn_sampler *s, const qn_tensor *inputs, size_t n_inputs);
/* Frees the part. */
void qn_sampler_drop(qn_sampler *s);
void qn_sampler_close(qn_sampler *s);

#endif
