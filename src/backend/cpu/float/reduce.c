/* The Reduce operators on float32, along constant axes. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/reduction.h"

/* log(sum(e^x)) = max + log(sum(e^(x - max))): two rounds, in which the maximum is the shift. */
typedef struct reduction {
    const qn_op *op;
    int rounds;
    qn_reduction reductions[2];
    bool is_mean;
    /* NULL: the total itself. */
    double (*result)(double total);
} reduction;

static const reduction reductions[] = {
    {&qn_op_ReduceL1, 1, {QN_REDUCTION_ABS}, false, NULL},
    {&qn_op_ReduceL2, 1, {QN_REDUCTION_SQUARE}, false, sqrt},
    {&qn_op_ReduceLogSum, 1, {QN_REDUCTION_SUM}, false, log},
    {&qn_op_ReduceLogSumExp, 2, {QN_REDUCTION_MAX, QN_REDUCTION_EXP}, false, log},
    {&qn_op_ReduceMax, 1, {QN_REDUCTION_MAX}, false, NULL},
    {&qn_op_ReduceMean, 1, {QN_REDUCTION_SUM}, true, NULL},
    {&qn_op_ReduceMin, 1, {QN_REDUCTION_MIN}, false, NULL},
    {&qn_op_ReduceProd, 1, {QN_REDUCTION_PRODUCT}, false, NULL},
    {&qn_op_ReduceSum, 1, {QN_REDUCTION_SUM}, false, NULL},
    {&qn_op_ReduceSumSquare, 1, {QN_REDUCTION_SQUARE}, false, NULL},
};

/* ---- Kernel ---------------------------------------------------------------------------------- */

typedef struct reduce_state {
    qn_reduction_plan plan;
    const reduction *row;
} reduce_state;

typedef struct reduce_work {
    const reduction *row;
    float *y;
} reduce_work;

static void reduce_complete(const qn_reduction_job *job, int round, const double *totals,
                            int64_t first, int64_t count)
{
    const reduce_work *w = job->user;
    const reduction *row = w->row;
    const double divisor = row->is_mean ? (double)job->plan->reduced.count : 1;
    float *y = w->y + first;
    if (!row->result || round < row->rounds - 1) {
        for (int64_t i = 0; i < count; i++)
            y[i] = (float)(totals[i] / divisor);
    } else if (round == 0) {
        for (int64_t i = 0; i < count; i++)
            y[i] = (float)row->result(totals[i]);
    } else { /* an infinite maximum is the result */
        for (int64_t i = 0; i < count; i++)
            y[i] = isfinite(y[i]) ? (float)((double)y[i] + row->result(totals[i])) : y[i];
    }
}

static qn_status reduce_run(const void *state, void *bound, const qn_step_io *io)
{
    const reduce_state *s = state;
    const reduce_work w = {s->row, io->out[0]->data};
    const qn_reduction_job job = {.plan = &s->plan,
                                  .x = io->in[0]->data,
                                  .shift = s->row->rounds == 1 ? NULL : w.y,
                                  .reductions = s->row->reductions,
                                  .rounds = s->row->rounds,
                                  .complete = reduce_complete,
                                  .user = &w,
                                  .partial = io->scratch};
    (void)bound;
    qn_reduction_compute(&job, io->threads);
    return QN_OK;
}

static const qn_kernel reduce_kernel = {.name = "reduce", .run = reduce_run};

static const reduction *reduction_of(const qn_op *op)
{
    for (size_t i = 0; i < QN_COUNT_OF(reductions); i++) {
        if (reductions[i].op == op)
            return &reductions[i];
    }
    return NULL;
}

qn_status qn_claim_reduce(bool *taken, qn_claim *claim)
{
    qn_tensor shape;
    bool reduced[QN_MAX_RANK];
    const reduction *row = reduction_of(claim->node->op);
    if (!row || !qn_claim_is_float(&shape, claim) ||
        !qn_reduction_mark(reduced, claim->node, shape.rank))
        return QN_OK;
    reduce_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->row = row;
    qn_reduction_plan_make(&s->plan, &shape, reduced);
    qn_claim_in(claim, claim->node->in[0], QN_ROWS);
    qn_claim_out(claim, claim->node->out[0], QN_ROWS);
    claim->scratch = qn_reduction_scratch(&s->plan);
    claim->state = s;
    claim->kernel = &reduce_kernel;
    *taken = true;
    return QN_OK;
}
