/* What a backend may ask for and do while a plan is built. */
#include "run/builder.h"

qn_context *qn_build_context(const qn_builder *builder)
{
    return builder->plan->ctx;
}

int qn_build_threads(const qn_builder *builder)
{
    return builder->plan->threads;
}

void *qn_build_alloc(qn_builder *builder, size_t size)
{
    return qn_arena_alloc(&builder->plan->arena, size);
}

void **qn_build_shared(qn_builder *builder)
{
    return &builder->plan->shared[builder->backend];
}

void *qn_build_alloc_weights(qn_builder *builder, size_t size)
{
    qn_plan *plan = builder->plan;
    void **grown = qn_grow(plan->ctx, plan->weights, &plan->weights_capacity, plan->n_weights + 1,
                           sizeof *plan->weights);
    if (!grown)
        return NULL;
    plan->weights = grown;
    void *block = qn_alloc_aligned(&plan->ctx->allocator, size);
    if (block) {
        plan->weights[plan->n_weights++] = block;
        plan->weight_bytes += size;
    } else {
        builder->wanted = size;
    }
    return block;
}

bool qn_build_direct(const qn_builder *builder)
{
    return builder->config->direct;
}

bool qn_build_shown(const qn_builder *builder, const qn_value *value)
{
    return value->is_output || qn_planned_of(builder, value)->observed;
}

bool qn_build_is_packed(const qn_builder *builder, const qn_value *value)
{
    return !value->is_capture && value->n_users == 1 && !qn_build_shown(builder, value) &&
           qn_planned_of(builder, value)->slot < 0;
}

void qn_build_release_part(qn_builder *builder, const qn_value *value, size_t offset, size_t size)
{
    const char *data = (const char *)value->data->data + offset;
    if (!qn_build_is_packed(builder, value))
        return;
    for (const qn_model *m = builder->plan->model; m; m = m->origin) {
        for (size_t i = 0; i < m->n_maps; i++)
            qn_map_release_pages(&m->maps[i], data, size);
    }
}

size_t qn_build_model_bytes(const qn_builder *builder)
{
    const qn_graph *graph = builder->graph;
    size_t total = 0, bytes;
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_tensor *data = graph->values[i]->n_users ? graph->values[i]->data : NULL;
        if (data && qn_tensor_bytes(&bytes, data->dtype, data->rank, data->dims))
            total += bytes;
    }
    return total;
}

qn_slot *qn_build_slot(const qn_builder *builder, const qn_value *value)
{
    const int32_t slot = qn_planned_of(builder, value)->slot;
    return slot < 0 ? NULL : &builder->plan->slots.at[slot];
}

int32_t qn_build_space(const qn_builder *builder, const qn_backend *backend)
{
    int32_t i = 0;
    while (builder->plan->spaces[i].space != backend->space)
        i++;
    return i;
}

int32_t qn_build_own_space(const qn_builder *builder)
{
    return qn_build_space(builder, builder->plan->backends[builder->backend]);
}

qn_layout qn_build_layout(const qn_builder *builder, const qn_value *value)
{
    const qn_slot *slot = qn_build_slot(builder, value);
    return slot && slot->space == qn_build_own_space(builder) ? slot->layout : QN_ROWS;
}

bool qn_build_shape(qn_tensor *out, const qn_builder *builder, const qn_value *value)
{
    (void)builder;
    *out = (qn_tensor){.dtype = value->type.dtype, .rank = value->type.rank};
    if (value->data)
        out->data = value->data->data;
    return qn_type_is_static(&value->type, out->dims);
}

bool qn_build_ready(const qn_builder *builder, const qn_value *value)
{
    return value->data || qn_planned_of(builder, value)->slot >= 0;
}

bool qn_build_taken(const qn_builder *builder, const qn_node *node)
{
    return builder->taken[node->mark];
}

qn_node *qn_build_fusible(const qn_builder *builder, const qn_value *value)
{
    qn_node *user = qn_value_only_user(value);
    return user && !builder->taken[user->mark] && !qn_build_shown(builder, value) ? user : NULL;
}

void qn_claim_add(qn_claim *claim, qn_node *node)
{
    claim->nodes[claim->n_nodes++] = node;
}

qn_claim_value *qn_claim_in(qn_claim *claim, qn_value *value, qn_layout layout)
{
    qn_claim_value *in = &claim->in[claim->n_in++];
    *in = (qn_claim_value){.value = value, .layout = layout, .view_of = -1};
    return in;
}

qn_claim_value *qn_claim_out(qn_claim *claim, qn_value *value, qn_layout layout)
{
    qn_claim_value *out = &claim->out[claim->n_out++];
    *out = (qn_claim_value){.value = value, .layout = layout, .view_of = -1};
    return out;
}

void qn_claim_plain(qn_claim *claim)
{
    qn_node *node = claim->node;
    for (int32_t i = 0; i < node->n_in; i++)
        qn_claim_in(claim, node->in[i], QN_ROWS);
    for (int32_t o = 0; o < node->n_out; o++)
        qn_claim_out(claim, node->out[o], QN_ROWS);
}

/* Reads of `value` by the nodes of the claim itself. */
static int32_t reads_inside(const qn_claim *claim, const qn_value *value)
{
    int32_t reads = 0;
    for (int32_t n = 0; n < claim->n_nodes; n++) {
        for (int32_t i = 0; i < claim->nodes[n]->n_in; i++)
            reads += claim->nodes[n]->in[i] == value;
    }
    return reads;
}

/* Nobody but the claim itself reads any value of the memory that `root` stands for. */
static bool group_dies(const qn_claim *claim, int32_t root, const qn_value *asked)
{
    const qn_slots *slots = &claim->builder->plan->slots;
    for (size_t i = 0; i < slots->count; i++) {
        const qn_value *value = slots->at[i].value;
        const int32_t pending = qn_planned_of(claim->builder, value)->pending;
        if (slots->at[i].root == root &&
            pending > (value == asked ? reads_inside(claim, value) : 0))
            return false;
    }
    return true;
}

bool qn_build_dies(const qn_claim *claim, const qn_value *value)
{
    const qn_slot *slot = qn_build_slot(claim->builder, value);
    return slot && slot->place == QN_PLACE_ARENA && qn_slot_is_together(slot) &&
           slot->space == qn_build_own_space(claim->builder) &&
           group_dies(claim, slot->root, value);
}

/* ---- Parts placed in a whole ----------------------------------------------------------------- */

/* Bytes of a sample of the slot `root` that the claim's inputs fill, each lying `offset` after the
 * place that the claim wants for it; SIZE_MAX where they want it in two places. */
static size_t filled(const qn_claim *claim, int32_t root, size_t offset)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < claim->n_in; i++) {
        const qn_value *value = claim->in[i].value;
        const qn_slot *slot = value ? qn_build_slot(claim->builder, value) : NULL;
        if (!slot || slot->root != root)
            continue;
        if (claim->in[i].offset - slot->offset != offset)
            return SIZE_MAX;
        bytes += qn_slot_sample(slot);
    }
    return bytes;
}

/* All slots that lie in `root` can be moved, each sample by itself. */
static bool can_spread(const qn_slots *slots, int32_t root)
{
    const qn_slot *whole = &slots->at[root];
    for (size_t i = 0; i < slots->count; i++) {
        const qn_slot *slot = &slots->at[i];
        if (slot->root == root && (slot->together || slot->stride != whole->stride ||
                                   qn_slot_samples(slot) != qn_slot_samples(whole)))
            return false;
    }
    return true;
}

bool qn_build_can_place(const qn_claim *claim, int32_t i)
{
    const qn_slots *slots = &claim->builder->plan->slots;
    const qn_claim_value *in = &claim->in[i];
    const qn_slot *slot = in->value ? qn_build_slot(claim->builder, in->value) : NULL;
    if (!slot || slot->place != QN_PLACE_ARENA ||
        slot->space != qn_build_own_space(claim->builder) ||
        !qn_layout_same(slot->layout, in->layout) || in->offset < slot->offset)
        return false;
    const qn_slot *root = &slots->at[slot->root];
    if (filled(claim, slot->root, in->offset - slot->offset) != qn_slot_sample(root))
        return false;
    const qn_type *whole = &claim->out[0].value->type;
    return whole->dims[0].value == 1 ||
           (qn_slot_samples(root) == qn_slot_samples(slot) && can_spread(slots, slot->root));
}
