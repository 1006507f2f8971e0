/* Element-wise nodes that a claim takes behind its own: x -> stages -> out. Convolutions and matrix
 * products fuse what they can of the stages and leave the others to the chain; an element-wise node
 * by itself is nothing but a tail. */
#ifndef QN_CPU_TAIL_H
#define QN_CPU_TAIL_H

#include "backend/cpu/float/elementwise/chain.h"
#include "run/backend.h"

typedef struct qn_tail_operand {
    /* NULL: numbers. */
    qn_value *value;
    /* The input of the claim, where value is set. */
    int32_t in;
    /* Constants per channel, with the layout's padding. */
    float *numbers;
    qn_layout layout;
    /* Unblocked: floats along each of `dims`, 0 where it repeats. */
    int64_t steps[QN_MAX_RANK];
} qn_tail_operand;

typedef struct qn_tail {
    /* The shape of x and of all that follows. */
    qn_tensor shape;
    qn_layout layout;
    /* The dims of x in the order of memory, unblocked. */
    int64_t dims[QN_MAX_RANK];
    /* Before the first stage and after the last. */
    qn_value *x, *out;
    /* Stages; geometry once prepared. */
    qn_chain chain;
    /* As many as chain.n_operands. */
    qn_tail_operand operands[QN_MOST_OPERANDS];
} qn_tail;

/* A tail without stages behind `x`, which has (or gets from the claim) this layout. Blocked ones
 * must be qn_layout_native. False when its shape or type is not for chains. */
bool qn_tail_begin(qn_tail *tail, const qn_claim *claim, qn_value *x, qn_layout layout);
/* Takes `node`, which reads the tail's end, into tail and claim; *taken false: it does not fit. */
QN_MUST_CHECK qn_status qn_tail_take(bool *taken, qn_tail *tail, qn_claim *claim, qn_node *node);
/* Takes as many of the following nodes as it can. */
QN_MUST_CHECK qn_status qn_tail_grow(qn_tail *tail, qn_claim *claim);
/* Adds the operands to the claim's inputs, behind those that are there, and the end as out[0]. */
void qn_tail_close(qn_tail *tail, qn_claim *claim);

/* In the kernel's prepare: the geometry. x is input `x_in` of the claim, or -1: what lies in
 * out[0]. */
void qn_tail_prepare(qn_tail *tail, const qn_claim *claim, int32_t x_in);
/* The operands' data for one run. */
void qn_tail_data(const float **data, const qn_tail *tail, const qn_step_io *io);
/* Stages [first, ...) over x into out[0]. */
void qn_tail_run(const qn_tail *tail, const float *x, const qn_step_io *io);
/* Operand i has all elements of x, in the same layout. */
bool qn_tail_is_whole(const qn_tail *tail, int32_t i);
/* Leaves out the first `count` stages: somebody else does them. Operands keep their numbers. */
void qn_tail_skip(qn_tail *tail, int32_t count);

/* The layout in which kernels of this machine want [N, C, spatial...]. */
qn_layout qn_layout_native(void);

#endif
