#include "backend/cpu/cpu.h"

/* Operators with a claim function of their own. The others are offered to qn_claim_elementwise, which
 * knows by functions.def and stage.c what it can take. */
static const struct {
    const qn_op *op;
    qn_claim_fn *claim;
} table[] = {
    {NULL, NULL},
};

static qn_status cpu_claim(bool *taken, qn_claim *claim)
{
    for (size_t i = 0; i < QN_COUNT_OF(table); i++) {
        if (table[i].op == claim->node->op)
            return table[i].claim(taken, claim);
    }
    return qn_claim_elementwise(taken, claim);
}

const qn_backend qn_backend_cpu = {.name = "cpu", .claim = cpu_claim};
