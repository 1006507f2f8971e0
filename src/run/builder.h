/* The plan while it is being made: shared by build.c and what answers the backends' questions. */
#ifndef QN_BUILDER_H
#define QN_BUILDER_H

#include "run/plan.h"

/* What the builder knows of a value, found through value->mark. */
typedef struct qn_planned {
    int32_t slot;    /* its first slot, -1: not computed yet */
    int32_t pending; /* reads by nodes not yet taken, and 1 for a graph output */
} qn_planned;

struct qn_builder {
    qn_plan *plan;
    qn_graph *graph;
    const qn_plan_config *config;
    qn_planned *planned;       /* one per value of the graph */
    bool *taken;               /* one per node, by node->mark */
    const qn_backend *backend; /* being asked */
    qn_node **nodes;           /* room for the claim being made */
    qn_claim_value *in, *out;
};

static inline qn_planned *qn_planned_of(const qn_builder *builder, const qn_value *value)
{
    return &builder->planned[value->mark];
}
qn_slot *qn_build_slot(const qn_builder *builder, const qn_value *value);

#endif
