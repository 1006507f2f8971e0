/* The integer program that gives every layer its width.
 *
 * Of every layer l one width w(l) is chosen, so that the sum of loss[l, w(l)] is as small as can be
 * while the sum of cost[l, w(l)] stays within the budget and all bonds hold. The answer is exact: a
 * multiple-choice knapsack, cut down by its Lagrangian bound and solved by dynamic programming over
 * pairs of cost and loss. */
#ifndef QN_QUANT_WIDTH_PROGRAM_H
#define QN_QUANT_WIDTH_PROGRAM_H

#include "base/base.h"

/* The width of layer a equals that of layer b, or does not exceed it. */
typedef struct qn_width_bond {
    size_t a, b;
    bool at_most;
} qn_width_bond;

typedef struct qn_width_program {
    size_t layers;
    /* The narrowest first. */
    size_t widths;
    /* [layers, widths], cost not negative; a cost of infinity: the layer cannot have that width. */
    const double *loss, *cost;
    /* [n_bonds] */
    const qn_width_bond *bonds;
    size_t n_bonds;
    double budget;
} qn_width_program;

typedef struct qn_width_result {
    double loss, cost;
    /* False: the program was too large to be solved to the end; the widths meet it all the same. */
    bool is_optimal;
} qn_width_result;

/* width [layers] receives indices of widths. Fails where no widths meet budget and bonds. */
QN_MUST_CHECK qn_status qn_width_program_solve(size_t *width, qn_width_result *result,
                                               qn_context *ctx, const qn_width_program *program);

#endif
