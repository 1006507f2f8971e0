/* Chains of element-wise functions in one loop over memory: x -> f1 -> f2 ... Each stage is a
 * function of functions.def, perhaps with an operand (a residual, a factor per channel). Used by
 * itself for element-wise nodes, and behind convolutions and matrix products for what these do not
 * fuse. */
#ifndef QN_CPU_CHAIN_H
#define QN_CPU_CHAIN_H

#include "base/base.h"

typedef enum qn_fn {
#define QN_FN1(name, expression) QN_FN_##name,
#define QN_FN2(name, expression) QN_FN_##name,
#include "backend/cpu/float/elementwise/functions.def"
#undef QN_FN1
#undef QN_FN2
    QN_FN_COUNT
} qn_fn;

/* How an operand goes along with x, which is [samples, planes, length]. */
typedef enum qn_spread {
    /* Element by element along `length`. */
    QN_SPREAD_FULL,
    /* One vector of the layout's block, again and again. */
    QN_SPREAD_LANES,
    /* One number. */
    QN_SPREAD_ONE
} qn_spread;

enum { QN_MOST_STAGES = 12, QN_MOST_OPERANDS = 6 };

typedef struct qn_stage {
    qn_fn fn;
    float a, b, c;
    /* Index, -1: none. */
    int32_t operand;
} qn_stage;

/* 0 stays 0, where the operand is 0 too. */
bool qn_stage_keeps_zero(const qn_stage *stage);

typedef struct qn_operand {
    qn_spread spread;
    /* Floats. */
    int64_t sample_stride, plane_stride;
} qn_operand;

typedef struct qn_kernels qn_kernels;

typedef struct qn_chain {
    const qn_kernels *kernels;
    /* x and y: samples at distances of their own, planes of `length` floats side by side. In a
     * blocked layout a plane is one block of channels, `lanes` of them; only the first `tail` lanes
     * of the last plane are channels, and the others are kept 0. Elsewhere lanes = tail = 1. */
    int64_t samples, planes, length;
    int64_t lanes, tail;
    /* Floats. */
    int64_t x_stride, y_stride;
    qn_stage stages[QN_MOST_STAGES];
    int32_t n_stages;
    qn_operand operands[QN_MOST_OPERANDS];
    int32_t n_operands;
} qn_chain;

/* y may be x, or an operand that is FULL with the same strides. `threads` may share the work. */
void qn_chain_run(const qn_chain *chain, float *y, const float *x, const float *const *operands,
                  int threads);

#endif
