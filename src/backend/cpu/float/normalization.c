/* Normalizations by a group's own numbers, of float32: InstanceNormalization, GroupNormalization,
 * LpNormalization, MeanVarianceNormalization, LogSoftmax. y = (x - centre) * factor + bias, for
 * some with a scale and a bias by channel. (LayerNormalization, which has them by element, and
 * Softmax are in softmax_norm.c.) */
#include <float.h>
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/reduction.h"
#include "ops/move.h"
#include "ops/reduce.h"

/* ---- Factors, from the last reduction of n elements ------------------------------------------ */

static double by_spread(double total, double n, double epsilon)
{
    return 1 / sqrt(total / n + epsilon);
}

static double by_spread_alone(double total, double n, double epsilon)
{
    (void)epsilon;
    return 1 / (sqrt(total / n) + 1e-9);
}

/* Zeros stay zeros. */
static double by_norm_1(double total, double n, double epsilon)
{
    (void)n;
    (void)epsilon;
    return total == 0 ? 1 : 1 / total;
}

static double by_norm_2(double total, double n, double epsilon)
{
    return by_norm_1(sqrt(total), n, epsilon);
}

/* What is to be added is -log(total). */
static double by_one(double total, double n, double epsilon)
{
    (void)total;
    (void)n;
    (void)epsilon;
    return 1;
}

typedef struct norm_kind {
    const qn_reduction *reductions;
    /* 2: the first one finds the centre */
    int rounds;
    bool is_log;
    double (*factor)(double total, double n, double epsilon);
} norm_kind;

static const qn_reduction moments[] = {QN_REDUCTION_SUM, QN_REDUCTION_DEVIATION};
static const qn_reduction exponentials[] = {QN_REDUCTION_MAX, QN_REDUCTION_EXP};
static const qn_reduction sizes[] = {QN_REDUCTION_ABS}, squares[] = {QN_REDUCTION_SQUARE};
static const norm_kind channels_kind = {moments, 2, false, by_spread};
static const norm_kind spread_kind = {moments, 2, false, by_spread_alone};
static const norm_kind norm_1_kind = {sizes, 1, false, by_norm_1};
static const norm_kind norm_2_kind = {squares, 1, false, by_norm_2};
static const norm_kind log_kind = {exponentials, 2, true, by_one};

/* ---- Kernel ---------------------------------------------------------------------------------- */

typedef struct norms_state {
    qn_reduction_plan plan;
    const norm_kind *kind;
    double epsilon;
    /* Groups of a sample, channels of a group, elements of a channel; 0: no scales. */
    int64_t groups, each, area;
} norms_state;

typedef struct norms_work {
    const norms_state *state;
    float *y;
    /* By channel. */
    const float *scales, *biases;
    /* By group. */
    float *centre, *factor, *bias;
} norms_work;

static void norms_complete(const qn_reduction_job *job, int round, const double *totals,
                           int64_t first, int64_t count)
{
    const norms_work *w = job->user;
    const norms_state *s = w->state;
    const double n = (double)job->plan->reduced.count;
    for (int64_t i = 0; i < count && round == 0; i++) {
        const double centre = s->kind->is_log ? totals[i] : totals[i] / n;
        w->centre[first + i] = s->kind->rounds == 2 ? (float)centre : 0;
    }
    for (int64_t i = 0; i < count && round == s->kind->rounds - 1; i++) {
        const double factor = s->kind->factor(totals[i], n, s->epsilon);
        w->factor[first + i] = factor > (double)FLT_MAX ? FLT_MAX : (float)factor;
        w->bias[first + i] = s->kind->is_log ? (float)-log(totals[i]) : 0;
    }
}

/* Positions [from, from + n) of a group, channel by channel. */
static void scale_row(const norms_work *w, int64_t group, int64_t offset, int64_t from, int64_t n,
                      const float *x)
{
    const norms_state *s = w->state;
    for (int64_t at = from, run; at < from + n; at += run) {
        const int64_t channel = group % s->groups * s->each + at / s->area;
        const float factor = w->factor[group] * w->scales[channel];
        const qn_center center = {&w->centre[group], &factor, &w->biases[channel]};
        run = QN_MIN(s->area - at % s->area, from + n - at);
        s->plan.kernels->center_row(w->y + offset + at - from, x + offset + at - from, run,
                                    &center);
    }
}

static void norms_apply(const qn_reduction_job *job, const qn_reduction_piece *piece,
                        const qn_reduction_run *run)
{
    const norms_work *w = job->user;
    const qn_reduction_plan *p = job->plan;
    for (int64_t k = 0; k < run->n && p->by_lanes; k++) {
        const int64_t at = run->offset + k * p->reduced.steps[0];
        const qn_center center = {w->centre + piece->first, w->factor + piece->first,
                                  w->bias + piece->first};
        p->kernels->center_lanes(w->y + at, job->x + at, piece->count, &center);
    }
    for (int64_t r = 0; r < piece->count && !p->by_lanes; r++) {
        const int64_t group = piece->first + r, at = run->offset + r * p->kept.steps[0];
        const qn_center center = {&w->centre[group], &w->factor[group], &w->bias[group]};
        if (w->scales)
            scale_row(w, group, at, run->from, run->n, job->x);
        else
            p->kernels->center_row(w->y + at, job->x + at, run->n, &center);
    }
}

/* Centres, factors and biases, in doubles of memory. */
static int64_t numbers_size(int64_t results)
{
    return (3 * results + 1) / 2;
}

static qn_status norms_run(const void *state, void *bound, const qn_step_io *io)
{
    const norms_state *s = state;
    float *numbers = io->scratch;
    const int64_t results = s->plan.kept.count;
    const norms_work w = {.state = s,
                          .y = io->out[0]->data,
                          .scales = s->groups ? io->in[1]->data : NULL,
                          .biases = s->groups ? io->in[2]->data : NULL,
                          .centre = numbers,
                          .factor = numbers + results,
                          .bias = numbers + 2 * results};
    const qn_reduction_job job = {.plan = &s->plan,
                                  .x = io->in[0]->data,
                                  .shift = w.centre,
                                  .reductions = s->kind->reductions,
                                  .rounds = s->kind->rounds,
                                  .complete = norms_complete,
                                  .apply = norms_apply,
                                  .user = &w,
                                  .partial = (double *)io->scratch + numbers_size(results)};
    (void)bound;
    qn_reduction_compute(&job, io->threads);
    return QN_OK;
}

static const qn_kernel norms_kernel = {.name = "norm", .run = norms_run};

/* ---- Claims ---------------------------------------------------------------------------------- */

static qn_status take(bool *taken, qn_claim *claim, const norms_state *found)
{
    norms_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = *found;
    qn_claim_plain(claim);
    claim->in_place = 0;
    claim->scratch =
        (size_t)numbers_size(s->plan.kept.count) * sizeof(double) + qn_reduction_scratch(&s->plan);
    claim->state = s;
    claim->kernel = &norms_kernel;
    *taken = true;
    return QN_OK;
}

static bool is_list(const qn_claim *claim, int32_t input, int64_t count)
{
    qn_tensor shape;
    return qn_build_shape(&shape, claim->builder, claim->node->in[input]) &&
           shape.dtype == QN_FLOAT32 && qn_tensor_count(&shape) == count;
}

/* Groups of whole channels: rows of memory. */
qn_status qn_claim_channel_norm(bool *taken, qn_claim *claim)
{
    const qn_norm_attrs *a = claim->node->attrs;
    qn_tensor x;
    if (!qn_claim_is_float(&x, claim) || x.rank < 2 || !is_list(claim, 1, x.dims[1]) ||
        !is_list(claim, 2, x.dims[1]))
        return QN_OK;
    norms_state s = {.kind = &channels_kind, .epsilon = (double)a->epsilon};
    s.groups = claim->node->op == &qn_op_GroupNormalization ? a->num_groups : x.dims[1];
    s.each = x.dims[1] / s.groups;
    s.area = qn_dims_product(x.dims, 2, x.rank);
    if (s.each * s.area == 1) /* no rows; what is left is the bias */
        return QN_OK;
    const qn_tensor rows = {.rank = 2, .dims = {x.dims[0] * s.groups, s.each * s.area}};
    qn_reduction_plan_make(&s.plan, &rows, (const bool[]){false, true});
    return take(taken, claim, &s);
}

qn_status qn_claim_lp_norm(bool *taken, qn_claim *claim)
{
    const qn_lp_attrs *a = claim->node->attrs;
    norms_state s = {.kind = a->p == 1 ? &norm_1_kind : &norm_2_kind};
    bool reduced[QN_MAX_RANK];
    qn_tensor x;
    if (!qn_claim_is_float(&x, claim) || !qn_axes_mark(reduced, x.rank, (qn_ints){&a->axis, 1}))
        return QN_OK;
    qn_reduction_plan_make(&s.plan, &x, reduced);
    return take(taken, claim, &s);
}

qn_status qn_claim_mean_variance_norm(bool *taken, qn_claim *claim)
{
    norms_state s = {.kind = &spread_kind};
    bool reduced[QN_MAX_RANK];
    qn_tensor x;
    if (!qn_claim_is_float(&x, claim) || !qn_mvn_mark(reduced, claim->node->attrs, x.rank))
        return QN_OK;
    qn_reduction_plan_make(&s.plan, &x, reduced);
    return take(taken, claim, &s);
}

qn_status qn_claim_log_softmax(bool *taken, qn_claim *claim)
{
    norms_state s = {.kind = &log_kind};
    bool reduced[QN_MAX_RANK] = {false};
    qn_tensor x;
    if (!qn_claim_is_float(&x, claim) || x.rank == 0)
        return QN_OK;
    reduced[qn_softmax_axis(claim->node->attrs, x.rank)] = true;
    qn_reduction_plan_make(&s.plan, &x, reduced);
    return take(taken, claim, &s);
}
