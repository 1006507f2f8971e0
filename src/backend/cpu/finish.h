/* What own convolutions do to a result before they store it: a function and a residual, in the order
 * that the graph has. What is more than that is left to the chain. */
#ifndef QN_FINISH_H
#define QN_FINISH_H

#include "backend/cpu/tail.h"

typedef enum qn_residual {
    QN_RESIDUAL_NONE,
    QN_RESIDUAL_BEFORE, /* f(x + r) */
    QN_RESIDUAL_AFTER   /* f(x) + r */
} qn_residual;

typedef struct qn_finish {
    qn_fn fn; /* QN_FN_COUNT: none */
    float a, b;
    qn_residual residual;
    int32_t operand; /* of the tail: the residual; -1: none */
} qn_finish;

/* The first stages of the tail that fit into `out`; returns how many. `padded`: the result has padding
 * that must stay 0. */
int32_t qn_finish_take(qn_finish *out, const qn_tail *tail, bool padded);

/* Lets the result take the memory of the residual, when that ends here and is not the source itself. */
void qn_finish_place(qn_claim *claim, const qn_finish *finish, const qn_tail *tail);

#endif
