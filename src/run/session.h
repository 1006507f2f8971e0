/* One caller's memory for a plan. */
#ifndef QN_SESSION_H
#define QN_SESSION_H

#include "run/plan.h"

enum { QN_SIBLINGS = 3 }; /* plans of other shapes that a session keeps */

struct qn_session {
    qn_context *ctx;
    qn_plan *plan;
    /* One per slot */
    qn_tensor *tensors;
    /* The arenas of values, one per space of the plan */
    void **memory;
    void **scratch;
    /* In and out of all steps, one after the other */
    qn_tensor **pointers;
    /* One per step */
    qn_step_io *io;
    /* One per step */
    void **bound;
    /* Steps that are bound */
    size_t n_bound;
    /* Slots whose address follows the caller's inputs */
    int32_t *moving;
    size_t n_moving;
    const qn_tensor **outputs;
    /* For other input shapes, the last used first; NULL: free */
    qn_session *siblings[QN_SIBLINGS];
    /* The one that ran last: itself or a sibling */
    qn_session *active;
};

/* Whether the plan was made for these shapes. */
bool qn_session_fits(const qn_session *session, const qn_tensor *inputs);
/* The session for these inputs, whose number and types are right: `session` itself, a sibling that
 * it has, or a new one. (siblings.c) */
QN_MUST_CHECK qn_status qn_session_sibling(qn_session **out, qn_session *session,
                                           const qn_tensor *inputs);

/* A value as it lies in memory at that moment. */
typedef struct qn_observation {
    const qn_value *value;
    /* Type, row-major dims, data */
    const qn_tensor *tensor;
    qn_layout layout;
    /* Bytes from one sample (index of dim 0) to the next */
    size_t stride;
} qn_observation;

/* What a run tells on its way. Functions may be NULL. */
typedef struct qn_session_hooks {
    void *user;
    /* Each step, for the profile */
    void (*after)(void *user, size_t step);
    /* Each observed value of the plan, once. The steps behind read what it leaves there. */
    qn_status (*seen)(void *user, const qn_observation *observation);
} qn_session_hooks;
QN_MUST_CHECK qn_status qn_session_run_hooked(qn_session *session, const qn_tensor *inputs,
                                              size_t n_inputs, const qn_session_hooks *hooks);

#endif
