/* What own convolutions do to a result before they store it: a few functions, and a residual before
 * or behind them. What is more than that is left to the chain. */
#ifndef QN_CPU_EPILOGUE_H
#define QN_CPU_EPILOGUE_H

#include "backend/cpu/float/elementwise/tail.h"

typedef enum qn_residual {
    QN_RESIDUAL_NONE,
    /* f(x + r) */
    QN_RESIDUAL_BEFORE,
    /* f(x) + r */
    QN_RESIDUAL_AFTER
} qn_residual;

typedef struct qn_epilogue_step {
    qn_fn fn;
    float a, b;
} qn_epilogue_step;

/* Networks made for phones have a scale and a shift before the activation and behind it. */
enum { QN_EPILOGUE_STEPS = 3 };

typedef struct qn_epilogue_fused {
    qn_epilogue_step steps[QN_EPILOGUE_STEPS];
    int32_t n_steps;
    qn_residual residual;
    /* The operand of the tail that is the residual; -1: none. */
    int32_t operand;
} qn_epilogue_fused;

/* The end of an own convolution: what stands behind it, and how much of that is in `fused`. */
typedef struct qn_epilogue {
    qn_epilogue_fused fused;
    qn_tail tail;
    /* Stages that are in `fused`. */
    int32_t n_fused;
    /* Floats from sample to sample, of the result and the residual. */
    int64_t y_stride, r_stride;
} qn_epilogue;

/* Takes the nodes behind `y`, which is in the native layout; the claim gets no output yet. */
QN_MUST_CHECK qn_status qn_epilogue_take(qn_epilogue *out, qn_claim *claim, qn_value *y);
/* Gives the claim the operands and the output, which takes the memory of the residual when that
 * ends here and is not the source itself. */
void qn_epilogue_close(qn_epilogue *epilogue, qn_claim *claim);
/* Nothing is left for the chain and nothing is read: the end can stay inside of a claim. */
bool qn_epilogue_is_inner(const qn_epilogue *epilogue);
/* In the kernel's prepare. */
void qn_epilogue_prepare(qn_epilogue *epilogue, const qn_claim *claim);
/* The residual's data, or NULL. */
const float *qn_epilogue_residual(const qn_epilogue *epilogue, const qn_step_io *io);
/* What the kernel has left to the chain. */
void qn_epilogue_run(const qn_epilogue *epilogue, const qn_step_io *io);

#endif
