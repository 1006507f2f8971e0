/* One caller's memory for a plan. */
#ifndef QN_SESSION_H
#define QN_SESSION_H

#include "run/plan.h"

enum { QN_SIBLINGS = 3 }; /* plans of other shapes that a session keeps */

struct qn_session {
    qn_context *ctx;
    qn_plan *plan;
    qn_tensor *tensors; /* one per slot */
    void **memory;      /* the arenas of values, one per space of the plan */
    void **scratch;
    qn_tensor **pointers; /* in and out of all steps, one after the other */
    qn_step_io *io;       /* one per step */
    void **bound;         /* one per step */
    size_t n_bound;       /* steps that are bound */
    int32_t *moving;      /* slots whose address follows the caller's inputs */
    size_t n_moving;
    const qn_tensor **outputs;
    qn_session *siblings[QN_SIBLINGS]; /* for other input shapes, the last used first; NULL: free */
    qn_session *active;                /* the one that ran last: itself or a sibling */
};

/* Whether the plan was made for these shapes. */
bool qn_session_fits(const qn_session *session, const qn_tensor *inputs);
/* The session for these inputs, whose number and types are right: `session` itself, a sibling that it
 * has, or a new one. (siblings.c) */
QN_MUST_CHECK qn_status qn_session_sibling(qn_session **out, qn_session *session,
                                           const qn_tensor *inputs);

/* A value as it lies in memory at that moment. */
typedef struct qn_observation {
    const qn_value *value;
    const qn_tensor *tensor; /* type, row-major dims, data */
    qn_layout layout;
    size_t stride; /* bytes from one sample (index of dim 0) to the next */
} qn_observation;

/* What a run tells on its way. Functions may be NULL. */
typedef struct qn_session_hooks {
    void *user;
    void (*after)(void *user, size_t step); /* each step, for the profile */
    /* Each observed value of the plan, once. The steps behind read what it leaves there. */
    qn_status (*seen)(void *user, const qn_observation *observation);
} qn_session_hooks;
QN_MUST_CHECK qn_status qn_session_run_hooked(qn_session *session, const qn_tensor *inputs,
                                              size_t n_inputs, const qn_session_hooks *hooks);

#endif
