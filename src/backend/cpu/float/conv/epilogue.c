/* What own float convolutions take behind them, and what of that their kernels do themselves. */
#include "backend/cpu/float/conv/epilogue.h"

/* The functions of epilogue_kernels.h. */
static bool is_known(const qn_stage *stage)
{
    switch (stage->fn) {
    case QN_FN_CLIP:
    case QN_FN_HARD_SIGMOID:
    case QN_FN_HARD_SWISH:
    case QN_FN_LEAKY_RELU:
    case QN_FN_LINEAR:
    case QN_FN_RELU:
    case QN_FN_SIGMOID:
    case QN_FN_SILU: return true;
    default: return false;
    }
}

/* The first stages of the tail that fit into `f`; returns how many. `padded`: the result has
 * padding that must stay 0. */
static int32_t take_stages(qn_epilogue_fused *f, const qn_tail *t, bool padded)
{
    int32_t taken = 0;
    *f = (qn_epilogue_fused){.n_steps = 0, .operand = -1};
    for (; taken < t->chain.n_stages; taken++) {
        const qn_stage *s = &t->chain.stages[taken];
        if (s->fn == QN_FN_ADD && f->operand < 0 && qn_tail_is_whole(t, s->operand)) {
            f->operand = s->operand;
            f->residual = f->n_steps == 0 ? QN_RESIDUAL_BEFORE : QN_RESIDUAL_AFTER;
        } else if (is_known(s) && f->n_steps < QN_EPILOGUE_STEPS &&
                   f->residual != QN_RESIDUAL_AFTER && !(padded && !qn_stage_keeps_zero(s))) {
            f->steps[f->n_steps++] = (qn_epilogue_step){s->fn, s->a, s->b};
        } else {
            break;
        }
    }
    return taken;
}

static void share_memory(qn_claim *claim, const qn_epilogue_fused *f, const qn_tail *t)
{
    if (f->operand < 0)
        return;
    const qn_tail_operand *o = &t->operands[f->operand];
    for (int32_t i = 0; i < t->chain.n_operands; i++) {
        if (i != f->operand && t->operands[i].value == o->value)
            return;
    }
    if (o->value != claim->node->in[0] && qn_build_dies(claim, o->value))
        claim->in_place = o->in;
}

qn_status qn_epilogue_take(qn_epilogue *e, qn_claim *claim, qn_value *y)
{
    const qn_layout layout = qn_layout_native();
    *e = (qn_epilogue){.n_fused = 0};
    (void)qn_tail_begin(&e->tail, claim, y, layout);
    QN_TRY(qn_tail_grow(&e->tail, claim));
    e->n_fused =
        take_stages(&e->fused, &e->tail, e->tail.shape.dims[1] % (int64_t)layout.block != 0);
    return QN_OK;
}

void qn_epilogue_close(qn_epilogue *e, qn_claim *claim)
{
    qn_tail_close(&e->tail, claim);
    share_memory(claim, &e->fused, &e->tail);
}

bool qn_epilogue_is_inner(const qn_epilogue *e)
{
    return e->n_fused == e->tail.chain.n_stages && e->fused.operand < 0;
}

void qn_epilogue_prepare(qn_epilogue *e, const qn_claim *claim)
{
    e->y_stride = (int64_t)(claim->out[0].stride / sizeof(float));
    if (e->fused.operand >= 0)
        e->r_stride =
            (int64_t)(claim->in[e->tail.operands[e->fused.operand].in].stride / sizeof(float));
    qn_tail_prepare(&e->tail, claim, -1);
    qn_tail_skip(&e->tail, e->n_fused);
}

const float *qn_epilogue_residual(const qn_epilogue *e, const qn_step_io *io)
{
    return e->fused.operand < 0 ? NULL : io->in[e->tail.operands[e->fused.operand].in]->data;
}

void qn_epilogue_run(const qn_epilogue *e, const qn_step_io *io)
{
    if (e->tail.chain.n_stages > 0)
        qn_tail_run(&e->tail, io->out[0]->data, io);
}
