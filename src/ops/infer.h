/* Tools for the `infer` functions of operators, and inference of whole graphs. */
#ifndef QN_INFER_H
#define QN_INFER_H

#include "ops/op.h"

/* Infers every value of the graph from its inputs and constants, in order. What is declared in the
 * file (value_info, outputs) serves where inference knows less; where the two contradict each other
 * inference wins, and a graph whose operators cannot take their inputs is an error naming the
 * node. */
QN_MUST_CHECK qn_status qn_graph_infer(qn_graph *graph);
/* Checks the node's inputs against its ports and infers its outputs. */
QN_MUST_CHECK qn_status qn_node_infer(qn_node *node);
/* The same with types and contents from elsewhere (a run with known inputs): checks `self->in`,
 * calls the operator's infer. */
QN_MUST_CHECK qn_status qn_infer_run(qn_infer *self);
/* Whether the types of the node's inputs alone, without what the file declares of its outputs, give
 * every output its dims: then a kernel can be called with memory of that size. */
QN_MUST_CHECK qn_status qn_node_is_certain(bool *certain, const qn_node *node);
/* Multiply-accumulates of a node whose types are inferred; 0 where shapes are not known. */
int64_t qn_node_macs(const qn_node *node);
/* False for a node that multiplies whose ranks are not known: its 0 says nothing. */
bool qn_node_macs_known(const qn_node *node);

/* The set that a type belongs to: its element type's, sequence or optional; 0 where not known. */
uint32_t qn_type_set(const qn_type *type);

/* ---- For operators --------------------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_infer_fail(const qn_infer *self, const char *format, ...)
    QN_PRINTF(2, 3);

static inline bool qn_infer_has(const qn_infer *self, int32_t i)
{
    return i < self->n_in && self->in[i];
}
static inline bool qn_infer_wants(const qn_infer *self, int32_t o)
{
    return o < self->n_out && self->out[o];
}
/* Rank of input i, -1 when not known. */
static inline int32_t qn_infer_rank(const qn_infer *self, int32_t i)
{
    return qn_infer_has(self, i) ? self->in[i]->rank : -1;
}

/* Sets output o, when it is wanted. */
void qn_infer_set(qn_infer *self, int32_t o, qn_dtype dtype, int32_t rank, const qn_dim *dims);
/* Only the element type; rank not known. */
void qn_infer_set_dtype(qn_infer *self, int32_t o, qn_dtype dtype);
/* Output o has the type of input i (elements not included). */
void qn_infer_copy(qn_infer *self, int32_t o, int32_t i);
/* Output o has the element type of `dtype` and the dims of input i. */
void qn_infer_copy_dims(qn_infer *self, int32_t o, int32_t i, qn_dtype dtype);
/* Known elements for output o (rank 0 or 1): copied. */
QN_MUST_CHECK qn_status qn_infer_set_elements(qn_infer *self, int32_t o, const qn_dim *elements,
                                              size_t count);

/* Numpy's broadcast of inputs [first, first + count) into output o with element type `dtype`. */
QN_MUST_CHECK qn_status qn_infer_broadcast(qn_infer *self, int32_t o, qn_dtype dtype, int32_t first,
                                           int32_t count);
/* Fails where input i does not broadcast to these dims (one direction: they stay as they are). */
QN_MUST_CHECK qn_status qn_infer_broadcast_to(const qn_infer *self, int32_t i, int32_t rank,
                                              const qn_dim *dims);
/* One dim of two broadcast ones; false when they do not fit. */
bool qn_dim_broadcast(qn_dim *out, qn_dim a, qn_dim b);
/* Two dims that must be equal: the better known of both; false when they contradict. */
bool qn_dim_merge(qn_dim *out, qn_dim a, qn_dim b);
/* Sum and product; unknown where a part is unknown (a product with a known 0 is 0; adding 0 and
 * multiplying by 1 keep the symbol). */
qn_dim qn_dim_add(qn_dim a, qn_dim b);
qn_dim qn_dim_mul(qn_dim a, qn_dim b);

/* The contents of integer input i when all of it is known: from its data or its elements. *count is
 * set and true returned; false when not known, left out, or more than `capacity`. */
bool qn_infer_ints(const qn_infer *self, int32_t i, int64_t *out, size_t capacity, size_t *count);
/* The same with unknown elements allowed (QN_UNKNOWN_ELEMENT, perhaps with a symbol): false only
 * when nothing is known of the contents. */
bool qn_infer_elements(const qn_infer *self, int32_t i, qn_dim *out, size_t capacity,
                       size_t *count);
/* -rank..rank-1 to 0..rank-1; fails naming the attribute or input. */
QN_MUST_CHECK qn_status qn_infer_axis(const qn_infer *self, int64_t *axis, int32_t rank,
                                      const char *what);

#endif
