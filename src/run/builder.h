/* The plan while it is being made: shared by build.c, slots.c and what answers the backends'
 * questions. */
#ifndef QN_BUILDER_H
#define QN_BUILDER_H

#include "run/plan.h"

/* What the builder knows of a value, found through value->number. */
typedef struct qn_planned {
    /* Its first slot, -1: not computed yet */
    int32_t slot;
    /* Reads by nodes not yet taken, and 1 for a graph output */
    int32_t pending;
    bool observed;
} qn_planned;

struct qn_builder {
    qn_plan *plan;
    qn_graph *graph;
    const qn_plan_config *config;
    /* One per value of the graph */
    qn_planned *planned;
    /* One per node, by node->number */
    bool *taken;
    /* Being asked */
    size_t backend;
    /* Bytes of weights that could not be had; 0: none were refused */
    size_t wanted;
    /* Room for the claim being made */
    qn_node **nodes;
    qn_claim_value *in, *out;
};

static inline qn_planned *qn_planned_of(const qn_builder *builder, const qn_value *value)
{
    return &builder->planned[value->number];
}
qn_slot *qn_build_slot(const qn_builder *builder, const qn_value *value);
/* Memory that ends with the plan; NULL when short. */
void *qn_build_block(qn_builder *builder, const qn_space *space, size_t size);
/* The place among the plan's spaces of a backend's. */
int32_t qn_build_space(const qn_builder *builder, const qn_backend *backend);
/* The space of the backend being asked. */
int32_t qn_build_own_space(const qn_builder *builder);

/* One node has packed this constant, and nobody reads it while running. */
bool qn_build_is_packed(const qn_builder *builder, const qn_value *value);
/* Makes the claim the plan's newest step; its slots are still open. The claim's state belongs to
 * the plan from here on, also on failure. */
QN_MUST_CHECK qn_status qn_build_step(qn_step **out, qn_builder *builder, const qn_claim *claim);

/* ---- Copies between spaces (copies.c) -------------------------------------------------------- */

extern const qn_kernel qn_copy_kernel;
/* The space whose `copy` is asked, as a place among the plan's; -1 where values go by way of the
 * host. */
int32_t qn_copy_asked(const qn_plan *plan, int32_t to, int32_t from);
/* Host memory brought into a space, at once. */
QN_MUST_CHECK qn_status qn_space_upload(const qn_builder *builder, int32_t space, void *to,
                                        const void *from, size_t bytes);
/* Finds the steps before which streams must be done. */
QN_MUST_CHECK qn_status qn_plan_waits(qn_plan *plan);

/* ---- Slots (slots.c) ------------------------------------------------------------------------- */

/* A slot for a value that is there before the first step: a constant or an input. */
QN_MUST_CHECK qn_status qn_slot_add_ready(qn_builder *builder, const qn_value *value,
                                          qn_place place);
/* What a slot is asked to be. */
typedef struct qn_wanted {
    int32_t space;
    qn_layout layout;
    /* Else with samples side by side */
    bool strided;
} qn_wanted;
/* The slot of `value` that is so: there already, or made by a view, a conversion, a copy. */
QN_MUST_CHECK qn_status qn_slot_find(int32_t *out, qn_builder *builder, const qn_value *value,
                                     qn_wanted wanted);
/* The same for a graph output: row-major on the host, and never the caller's own memory. */
QN_MUST_CHECK qn_status qn_slot_output(int32_t *out, qn_builder *builder, const qn_value *value);
/* The slots that a claim reads and writes, one per claim value, -1 where it has none. */
QN_MUST_CHECK qn_status qn_slot_inputs(int32_t *slots, qn_builder *builder, const qn_claim *claim);
QN_MUST_CHECK qn_status qn_slot_outputs(int32_t *slots, qn_builder *builder, const qn_claim *claim,
                                        const int32_t *in);

/* Samples of a slot: dim 0, 1 for a scalar. */
static inline size_t qn_slot_samples(const qn_slot *slot)
{
    return slot->shape.rank > 0 ? (size_t)slot->shape.dims[0] : 1;
}
/* Bytes of one sample. */
static inline size_t qn_slot_sample(const qn_slot *slot)
{
    const size_t samples = qn_slot_samples(slot);
    return samples > 1 ? slot->bytes / samples : slot->bytes;
}
static inline bool qn_slot_is_together(const qn_slot *slot)
{
    return qn_slot_samples(slot) <= 1 || slot->stride == qn_slot_sample(slot);
}

#endif
