/* Element-wise nodes by themselves: one loop for a whole chain, in whatever layout its input
 * has. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"

static qn_status chain_prepare(qn_claim *claim)
{
    qn_tail_prepare(claim->state, claim, 0);
    return QN_OK;
}

static qn_status chain_run(const void *state, void *bound, const qn_step_io *io)
{
    (void)bound;
    qn_tail_run(state, io->in[0]->data, io);
    return QN_OK;
}

static const qn_kernel chain_kernel = {.name = "chain", .prepare = chain_prepare, .run = chain_run};

/* Begins a tail at input `side` of the node in that layout. */
static qn_status begin(bool *taken, qn_tail *t, qn_claim *claim, int32_t side, qn_layout layout)
{
    qn_value *x = claim->node->in[side];
    *taken = x && !x->data && qn_tail_begin(t, claim, x, layout);
    return *taken ? qn_tail_take(taken, t, claim, claim->node) : QN_OK;
}

/* The blocked layout when one of the inputs has it, since what follows wants it too; else the one
 * in which kernels of integers leave their results. */
static qn_status begin_any(bool *taken, qn_tail *t, qn_claim *claim)
{
    const int32_t sides = QN_MIN(claim->node->n_explicit, 2);
    const qn_layout layouts[] = {qn_layout_native(), {QN_LAYOUT_CHANNELS_LAST, 0}};
    *taken = false;
    for (size_t k = 0; k < QN_COUNT_OF(layouts); k++) {
        for (int32_t i = 0; i < sides && !*taken; i++) {
            const qn_value *x = claim->node->in[i];
            if (x && qn_layout_same(qn_build_layout(claim->builder, x), layouts[k]))
                QN_TRY(begin(taken, t, claim, i, layouts[k]));
        }
    }
    for (int32_t i = 0; i < sides && !*taken; i++)
        QN_TRY(begin(taken, t, claim, i, QN_ROWS));
    return QN_OK;
}

/* The value ends here, and no stage after the first reads it: the result may be written over it. */
static bool can_overwrite(const qn_claim *claim, const qn_tail *t, const qn_value *value)
{
    for (int32_t s = 1; s < t->chain.n_stages; s++) {
        const int32_t o = t->chain.stages[s].operand;
        if (o >= 0 && t->operands[o].value == value)
            return false;
    }
    return qn_build_dies(claim, value);
}

static void choose_place(qn_claim *claim, const qn_tail *t)
{
    const int32_t o = t->chain.stages[0].operand;
    if (can_overwrite(claim, t, t->x))
        claim->in_place = 0;
    else if (o >= 0 && t->chain.operands[o].spread == QN_SPREAD_FULL &&
             can_overwrite(claim, t, t->operands[o].value))
        claim->in_place = t->operands[o].in;
}

qn_status qn_claim_elementwise(bool *taken, qn_claim *claim)
{
    qn_tail *t = qn_build_alloc(claim->builder, sizeof *t);
    QN_TRY_ALLOC(qn_build_context(claim->builder), t);
    QN_TRY(begin_any(taken, t, claim));
    if (!*taken)
        return QN_OK;
    QN_TRY(qn_tail_grow(t, claim));
    qn_claim_in(claim, t->x, t->layout)->strided = t->layout.kind == QN_LAYOUT_BLOCKED;
    qn_tail_close(t, claim);
    choose_place(claim, t);
    claim->state = t;
    claim->kernel = &chain_kernel;
    return QN_OK;
}
