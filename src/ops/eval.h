/* Tools for the reference kernels, and evaluation of single nodes (constant folding, tests). */
#ifndef QN_EVAL_H
#define QN_EVAL_H

#include "ops/op.h"

QN_MUST_CHECK qn_status qn_eval_fail(const qn_eval *self, const char *format, ...) QN_PRINTF(2, 3);

static inline const qn_tensor *qn_eval_in(const qn_eval *self, int32_t i)
{
    return i < self->n_in ? self->in[i] : NULL;
}
static inline qn_tensor *qn_eval_out(const qn_eval *self, int32_t o)
{
    return o < self->n_out ? self->out[o] : NULL;
}

/* For QN_OP_ALLOCATES: gives output o (must be wanted) its type, dims and memory. */
QN_MUST_CHECK qn_status qn_eval_output(qn_eval *self, int32_t o, qn_dtype dtype, int32_t rank,
                                       const int64_t *dims);
/* Makes output o a copy of `tensor` (deep). */
QN_MUST_CHECK qn_status qn_eval_output_copy(qn_eval *self, int32_t o, const qn_tensor *tensor);
/* Makes output o a sequence of `count` items, all QN_NONE at first; to be filled with
 * qn_eval_copy. */
QN_MUST_CHECK qn_status qn_eval_output_sequence(qn_eval *self, int32_t o, int64_t count);
/* Deep copy into memory that lives as long as the outputs. */
QN_MUST_CHECK qn_status qn_eval_copy(qn_eval *self, qn_tensor *out, const qn_tensor *tensor);
/* Scratch for `count` items, 64-byte aligned; sets the message and returns the status on
 * failure. */
QN_MUST_CHECK qn_status qn_eval_scratch(qn_eval *self, void **out, int64_t count, size_t size);

/* All of a numeric tensor as doubles or int64, in scratch memory. */
QN_MUST_CHECK qn_status qn_eval_doubles(qn_eval *self, double **out, const qn_tensor *tensor);
QN_MUST_CHECK qn_status qn_eval_ints(qn_eval *self, int64_t **out, const qn_tensor *tensor);
/* One element as a number; float32 and int64 without a call, for loops over whole tensors. */
double qn_tensor_f64_any(const qn_tensor *tensor, int64_t i);
static inline double qn_tensor_f64(const qn_tensor *tensor, int64_t i)
{
    return tensor->dtype == QN_FLOAT32 ? (double)((const float *)tensor->data)[i]
                                       : qn_tensor_f64_any(tensor, i);
}
int64_t qn_tensor_i64_any(const qn_tensor *tensor, int64_t i);
static inline int64_t qn_tensor_i64(const qn_tensor *tensor, int64_t i)
{
    return tensor->dtype == QN_INT64 ? ((const int64_t *)tensor->data)[i]
                                     : qn_tensor_i64_any(tensor, i);
}

/* Infers the outputs' types from the inputs at hand, with `scratch` for the work, and makes the
 * outputs, unless the operator does that itself. Kernels rely on inputs that inference has seen. */
QN_MUST_CHECK qn_status qn_eval_outputs(qn_eval *self, qn_arena *scratch);

/* ---- Evaluating one node --------------------------------------------------------------------- */

/* Computes a node from known inputs (in[i] NULL: left out) with its reference kernel: infers,
 * allocates the outputs in `arena`, evaluates. out[i] is NULL where the node does not want the
 * output. Subgraphs are evaluated the same way, node by node. */
QN_MUST_CHECK qn_status qn_node_eval(qn_tensor **out, qn_context *ctx, qn_arena *arena,
                                     const qn_node *node, const qn_tensor *const *in);
/* Evaluates a whole graph node by node: `in` has one per graph input, `captured` one per
 * capture. */
typedef struct qn_graph_args {
    const qn_tensor *const *in;
    const qn_tensor *const *captured;
} qn_graph_args;
QN_MUST_CHECK qn_status qn_graph_eval(const qn_tensor **out, qn_context *ctx, qn_arena *arena,
                                      const qn_graph *graph, const qn_graph_args *args);

#endif
