/* Gradients of operators, as nodes: gradients.def has a row for each operator that has one, with a
 * function that adds the nodes of its gradient to the graph. How a whole graph is differentiated is
 * in differentiate.h.
 *
 * Formulas are written with the functions below. They add a node, infer its type and give its
 * output; what fails is kept in the job, and from then on they do nothing and give NULL, so that a
 * formula needs no checks in between. Shapes must be known: who differentiates binds them first. */
#ifndef QN_GRADIENT_H
#define QN_GRADIENT_H

#include "ops/op.h"

/* One node that is being differentiated. */
typedef struct qn_grad_job {
    qn_graph *graph;
    const qn_node *node;
    /* The gradients of its outputs; NULL: the result does not depend on that one. */
    qn_value *const *dy;
    /* Whether the gradient of an input is wanted, and the gradients, to be filled where it is. What
     * stays NULL is zero. */
    const bool *wants;
    qn_value **dx;
    qn_status status;
} qn_grad_job;

typedef void qn_grad_fn(qn_grad_job *job);

typedef struct qn_gradient {
    const qn_op *op;
    /* NULL: the gradient is zero wherever there is one. */
    qn_grad_fn *fn;
} qn_gradient;

#define QN_GRADIENT(id, name) qn_grad_fn qn_grad_##name;
#define QN_ZERO_GRADIENT(id)
#include "train/gradients.def"
#undef QN_GRADIENT
#undef QN_ZERO_GRADIENT

extern const qn_gradient qn_gradients[];
extern const size_t qn_gradients_count;
/* NULL: the operator cannot be differentiated. */
const qn_gradient *qn_gradient_find(const qn_op *op);

/* ---- Parts of formulas ----------------------------------------------------------------------- */

/* The operator applied to one value, two, or a list of them (NULL: an input left out). */
qn_value *qn_grad_unary(qn_grad_job *job, const qn_op *op, qn_value *x);
qn_value *qn_grad_binary(qn_grad_job *job, const qn_op *op, qn_value *a, qn_value *b);
qn_value *qn_grad_apply(qn_grad_job *job, const qn_op *op, qn_value *const *in, int32_t n_in);
/* The node, with default attributes and fresh outputs, whose types are not inferred yet: for
 * attributes to be set, then qn_grad_infer. NULL after a failure. */
qn_node *qn_grad_node(qn_grad_job *job, const qn_op *op, qn_value *const *in, int32_t n_in,
                      int32_t n_out);
/* Output 0 */
qn_value *qn_grad_infer(qn_grad_job *job, qn_node *node);
/* The node has the attributes of another one of its operator, or of one whose attributes begin
 * with the same struct of `size` bytes. */
void qn_grad_copy_attrs(const qn_grad_job *job, qn_node *to, const qn_node *from, size_t size);
void qn_grad_set_int(qn_grad_job *job, qn_node *node, const char *attribute, int64_t value);
void qn_grad_set_dims(qn_grad_job *job, qn_ints *attribute, const qn_value *of);

/* A constant number of the type of `like`. */
qn_value *qn_grad_number(qn_grad_job *job, const qn_value *like, double number);
qn_value *qn_grad_ints(qn_grad_job *job, const int64_t *list, size_t count);
/* Zeros in the shape of `like`. */
qn_value *qn_grad_zeros(qn_grad_job *job, const qn_value *like);

qn_value *qn_grad_add(qn_grad_job *job, qn_value *a, qn_value *b);
qn_value *qn_grad_sub(qn_grad_job *job, qn_value *a, qn_value *b);
qn_value *qn_grad_mul(qn_grad_job *job, qn_value *a, qn_value *b);
qn_value *qn_grad_div(qn_grad_job *job, qn_value *a, qn_value *b);
/* a times a number */
qn_value *qn_grad_scale(qn_grad_job *job, qn_value *a, double factor);
/* a plus a number */
qn_value *qn_grad_shift(qn_grad_job *job, qn_value *a, double number);
/* `value` where `condition`, else 0. */
qn_value *qn_grad_where(qn_grad_job *job, qn_value *condition, qn_value *value);

qn_value *qn_grad_reshape(qn_grad_job *job, qn_value *x, const int64_t *dims, int32_t rank);
/* x in the shape of `like`, which has as many elements. */
qn_value *qn_grad_reshape_like(qn_grad_job *job, qn_value *x, const qn_value *like);
/* x repeated along dims of 1 (numpy's broadcast) to the shape of `like`. */
qn_value *qn_grad_expand_like(qn_grad_job *job, qn_value *x, const qn_value *like);
/* The sum (of ReduceSum, ReduceMean) over these axes, whose dims stay as 1. */
qn_value *qn_grad_reduce(qn_grad_job *job, const qn_op *op, qn_value *x, const int64_t *axes,
                         size_t count);
/* The sum over all dims along which `like` was repeated to make x, in the shape of `like`. */
qn_value *qn_grad_sum_like(qn_grad_job *job, qn_value *x, const qn_value *like);
/* The last two axes exchanged. */
qn_value *qn_grad_transpose(qn_grad_job *job, qn_value *x);

/* The dims of a value; fails where they are not known. */
bool qn_grad_dims(qn_grad_job *job, int64_t *dims, const qn_value *value);
/* The constant list that the value is; fails where it is none. */
bool qn_grad_list(qn_grad_job *job, int64_t *list, size_t *count, const qn_value *value);
void qn_grad_fail(qn_grad_job *job, const char *format, ...) QN_PRINTF(2, 3);

#endif
