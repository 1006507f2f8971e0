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
    /* One per space of the plan; NULL where it has none */
    void **streams;
    /* The inputs and outputs of all steps, one after the other */
    qn_tensor **pointers;
    /* One per step */
    qn_step_io *io;
    /* One per step */
    void **bound;
    /* Steps that are bound */
    size_t n_bound;
    /* Memory of parameters, one per slot that holds one. */
    struct qn_parameter *parameters;
    size_t n_parameters;
    /* Counts what was written to parameters, so that siblings know what they have missed. */
    uint64_t written;
    /* Slots whose address follows the caller's inputs */
    int32_t *moving;
    size_t n_moving;
    const qn_tensor **outputs;
    /* The sessions for other input shapes, the last used first; NULL: free */
    qn_session *siblings[QN_SIBLINGS];
    /* The one that ran last: itself or a sibling */
    qn_session *active;
};

/* The copies and streams of a session. (copies.c) */
QN_MUST_CHECK qn_status qn_session_copy(qn_session *session, const qn_step *step);
QN_MUST_CHECK qn_status qn_streams_open(qn_session *session);
/* All that was put into them is done. */
QN_MUST_CHECK qn_status qn_streams_wait(qn_session *session);
void qn_streams_close(qn_session *session);

/* ---- Parameters (parameters.c) ------------------------------------------------------------------
 * Values whose contents a caller may read and write between runs (qn_value_parameter). They are the
 * session's: other sessions of the plan have others, and its siblings follow. Each space in which a
 * parameter is read holds it, and writing brings it to all of them; kernels read it in every run,
 * so that nothing made of it at plan time can be out of date. */

/* What the parameter of that name holds: valid, and not to be written, until the session ends. */
QN_MUST_CHECK qn_status qn_session_parameter_get(const qn_tensor **out, qn_session *session,
                                                 const char *name);
/* `tensor` has the parameter's type and dims; it is copied. Not while the session runs. */
QN_MUST_CHECK qn_status qn_session_parameter_set(qn_session *session, const char *name,
                                                 const qn_tensor *tensor);
/* Memory with the initial contents; of the session's tensors those of parameters are set. */
QN_MUST_CHECK qn_status qn_parameters_open(qn_session *session);
void qn_parameters_close(qn_session *session);
/* What was written to `from` since. */
QN_MUST_CHECK qn_status qn_parameters_follow(qn_session *session, const qn_session *from);

/* Whether the plan was made for these shapes. */
bool qn_session_fits(const qn_session *session, const qn_tensor *inputs);
/* The session for these inputs, whose number and types are right: `session` itself, a sibling
 * that it has, or a new one. (siblings.c) */
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
