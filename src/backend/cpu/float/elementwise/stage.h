/* Element-wise nodes as stages of a chain. */
#ifndef QN_CPU_STAGE_H
#define QN_CPU_STAGE_H

#include "backend/cpu/float/elementwise/chain.h"
#include "ops/op.h"

typedef struct qn_node_stage {
    /* Operand 0 where it has one. */
    qn_stage stage;
    /* The operand; NULL: none. */
    qn_value *other;
} qn_node_stage;

/* What `node` (float32, one output) makes of `x`, one of its inputs, element by element. False
 * where chains know no such function. Constants that are one number become parameters. */
bool qn_stage_of(qn_node_stage *out, const qn_node *node, const qn_value *x);

#endif
