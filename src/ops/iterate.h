/* What Loop and Scan share: subgraphs that run again and again, with values that go from one
 * iteration to the next and values that are gathered. */
#ifndef QN_ITERATE_H
#define QN_ITERATE_H

#include "ops/eval.h"

/* ---- Inference ------------------------------------------------------------------------------- */

/* What is sure of a value that is either a or b. */
qn_type qn_type_either(const qn_type *a, const qn_type *b);
/* Infers the body from `types`, of which those from `first` on are `carried` ones that come back as
 * the outputs from `first_out` on: they keep of their type what every iteration leaves as it is. */
QN_MUST_CHECK qn_status qn_infer_carried(qn_infer *self, qn_graph *body, qn_type *types,
                                         size_t first, size_t first_out, size_t carried);
/* Output o: `count` of what `one` is, along a new axis. */
void qn_infer_scanned(qn_infer *self, int32_t o, const qn_type *one, int64_t axis, qn_dim count);

/* ---- Evaluation ------------------------------------------------------------------------------ */

/* Results of one output, put together along a new axis when the last is known. */
typedef struct qn_stack {
    qn_tensor *items;
    int64_t count, capacity;
} qn_stack;

typedef struct qn_iteration {
    const qn_graph *body;
    int32_t carried;
    const qn_tensor **inputs;
    const qn_tensor **results;
    /* Copies of the carried values */
    qn_tensor *kept;
    /* One per output of the body */
    qn_stack *scanned;
} qn_iteration;

/* Memory for the arrays of r, whose body is set. */
QN_MUST_CHECK qn_status qn_iteration_room(qn_eval *self, qn_iteration *r);
/* Runs the body once. Carried values stand in the inputs from `first_in` on and in the results from
 * `first_out` on; the results behind them are gathered. */
QN_MUST_CHECK qn_status qn_iterate(qn_eval *self, qn_iteration *r, int32_t first_in,
                                   int32_t first_out);
/* Output o = the gathered items along `axis`, the last first where `backwards`. Without any item
 * the shape is taken from `type` as far as it is known. */
QN_MUST_CHECK qn_status qn_stack_join(qn_eval *self, int32_t o, const qn_stack *stack, int64_t axis,
                                      bool backwards, const qn_type *type);

#endif
