/* What own convolutions do to a result before they store it: a few functions, and a residual before or behind
 * them. What is more than that is left to the chain. */
#ifndef QN_CPU_EPILOGUE_H
#define QN_CPU_EPILOGUE_H

#include "backend/cpu/float/elementwise/tail.h"

typedef enum qn_residual {
    QN_RESIDUAL_NONE,
    QN_RESIDUAL_BEFORE, /* f(x + r) */
    QN_RESIDUAL_AFTER   /* f(x) + r */
} qn_residual;

typedef struct qn_finish_step {
    qn_fn fn;
    float a, b;
} qn_finish_step;

/* Networks made for phones have a scale and a shift before the activation and behind it. */
enum { QN_FINISH_STEPS = 3 };

typedef struct qn_finish {
    qn_finish_step steps[QN_FINISH_STEPS];
    int32_t n_steps;
    qn_residual residual;
    int32_t operand; /* of the tail: the residual; -1: none */
} qn_finish;

/* The end of an own convolution: what stands behind it, and how much of that is in `finish`. */
typedef struct qn_ending {
    qn_finish finish;
    qn_tail tail;
    int32_t n_fused;            /* stages that are in `finish` */
    int64_t y_stride, r_stride; /* floats from sample to sample, of the result and the residual */
} qn_ending;

/* Takes the nodes behind `y`, which is in the native layout; the claim gets no output yet. */
QN_MUST_CHECK qn_status qn_ending_take(qn_ending *out, qn_claim *claim, qn_value *y);
/* Gives the claim the operands and the output, which takes the memory of the residual when that ends
 * here and is not the source itself. */
void qn_ending_close(qn_ending *ending, qn_claim *claim);
/* Nothing is left for the chain and nothing is read: the end can stay inside of a claim. */
bool qn_ending_is_inner(const qn_ending *ending);
/* In the kernel's prepare. */
void qn_ending_prepare(qn_ending *ending, const qn_claim *claim);
/* The residual's data, or NULL. */
const float *qn_ending_residual(const qn_ending *ending, const qn_step_io *io);
/* What the kernel has left to the chain. */
void qn_ending_run(const qn_ending *ending, const qn_step_io *io);

#endif
