/* One caller's memory for a plan. */
#ifndef QN_SESSION_H
#define QN_SESSION_H

#include "run/plan.h"

struct qn_session {
    qn_context *ctx;
    qn_plan *plan;
    qn_tensor *tensors; /* one per slot */
    void *memory;       /* the arena of values */
    void *scratch;
    qn_tensor **pointers; /* in and out of all steps, one after the other */
    qn_step_io *io;       /* one per step */
    void **bound;         /* one per step */
    size_t n_bound;       /* steps that are bound */
    int32_t *moving;      /* slots whose address follows the caller's inputs */
    size_t n_moving;
    const qn_tensor **outputs;
};

/* Times of one run, for the profile: called after each step. */
typedef void qn_step_fn(void *user, size_t step);
QN_MUST_CHECK qn_status qn_session_run_observed(qn_session *session, const qn_tensor *inputs,
                                                size_t n_inputs, qn_step_fn *after, void *user);

#endif
