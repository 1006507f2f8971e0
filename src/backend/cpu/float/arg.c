/* ArgMax and ArgMin of float32. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/nn_attrs.h"

enum { ALONE_BELOW = 32768 }; /* elements for which waking the other threads does not pay */

typedef struct arg_state {
    qn_arg_fn *const *fns;
    int64_t width;
    /* x as [outer, n, inner] */
    int64_t outer, n, inner;
} arg_state;

typedef struct arg_work {
    const arg_state *state;
    int64_t *y;
    const float *x;
} arg_work;

static void arg_rows(const void *opaque, int64_t first, int64_t last)
{
    const arg_work *w = opaque;
    const qn_arg_block block = {w->y + first, w->x + first * w->state->n, last - first, w->state->n,
                                1};
    w->state->fns[0](&block);
}

/* Items are vectors of lanes, `per` of them in each of the outer slices. */
static void arg_lanes(const void *opaque, int64_t first, int64_t last)
{
    const arg_work *w = opaque;
    const arg_state *s = w->state;
    const int64_t per = (s->inner + s->width - 1) / s->width;
    for (int64_t i = first; i < last; i++) {
        const int64_t slice = i / per, lane = i % per * s->width;
        const qn_arg_block block = {w->y + slice * s->inner + lane,
                                    w->x + slice * s->n * s->inner + lane,
                                    QN_MIN(s->width, s->inner - lane), s->n, s->inner};
        s->fns[1](&block);
    }
}

static qn_status arg_run(const void *state, void *bound, const qn_step_io *io)
{
    const arg_state *s = state;
    const arg_work w = {s, io->out[0]->data, io->in[0]->data};
    const int64_t per = (s->inner + s->width - 1) / s->width;
    (void)bound;
    if (s->inner == 1)
        qn_parallel(io->threads, s->outer, ALONE_BELOW / s->n + 1, arg_rows, &w);
    else
        qn_parallel(io->threads, s->outer * per, ALONE_BELOW / (s->n * s->width) + 1, arg_lanes,
                    &w);
    return QN_OK;
}

static const qn_kernel arg_kernel = {.name = "arg", .run = arg_run};

qn_status qn_claim_arg(bool *taken, qn_claim *claim)
{
    const qn_arg_attrs *a = claim->node->attrs;
    const qn_kernels *kernels = qn_kernels_get();
    qn_tensor shape;
    if (!qn_claim_is_float(&shape, claim) || shape.rank == 0)
        return QN_OK;
    const int32_t axis = (int32_t)(a->axis < 0 ? a->axis + shape.rank : a->axis);
    if (shape.dims[axis] > QN_ARG_MOST)
        return QN_OK;
    const bool max = claim->node->op == &qn_op_ArgMax;
    const qn_arg kind = a->select_last_index ? (max ? QN_ARG_MAX_LAST : QN_ARG_MIN_LAST)
                                             : (max ? QN_ARG_MAX : QN_ARG_MIN);
    arg_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (arg_state){kernels->arg[kind], kernels->width, qn_dims_product(shape.dims, 0, axis),
                     shape.dims[axis], qn_dims_product(shape.dims, axis + 1, shape.rank)};
    qn_claim_plain(claim);
    claim->state = s;
    claim->kernel = &arg_kernel;
    *taken = true;
    return QN_OK;
}
