#include "backend/cpu/finish.h"

/* The functions of finish_kernels.h. */
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

int32_t qn_finish_take(qn_finish *f, const qn_tail *t, bool padded)
{
    int32_t taken = 0;
    *f = (qn_finish){.fn = QN_FN_COUNT, .operand = -1};
    for (; taken < t->chain.n_stages; taken++) {
        const qn_stage *s = &t->chain.stages[taken];
        if (s->fn == QN_FN_ADD && f->operand < 0 && qn_tail_is_whole(t, s->operand)) {
            f->operand = s->operand;
            f->residual = f->fn == QN_FN_COUNT ? QN_RESIDUAL_BEFORE : QN_RESIDUAL_AFTER;
        } else if (is_known(s) && f->fn == QN_FN_COUNT && !(padded && !qn_stage_keeps_zero(s))) {
            f->fn = s->fn;
            f->a = s->a;
            f->b = s->b;
        } else {
            break;
        }
    }
    return taken;
}

void qn_finish_place(qn_claim *claim, const qn_finish *f, const qn_tail *t)
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
