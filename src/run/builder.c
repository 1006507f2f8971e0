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
    }
    return block;
}

qn_slot *qn_build_slot(const qn_builder *builder, const qn_value *value)
{
    const int32_t slot = qn_planned_of(builder, value)->slot;
    return slot < 0 ? NULL : &builder->plan->slots.at[slot];
}

qn_layout qn_build_layout(const qn_builder *builder, const qn_value *value)
{
    const qn_slot *slot = qn_build_slot(builder, value);
    return slot ? slot->layout : QN_ROWS;
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

qn_node *qn_build_fusible(const qn_builder *builder, const qn_value *value)
{
    qn_node *user = qn_value_only_user(value);
    return user && !builder->taken[user->mark] ? user : NULL;
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

/* Memory of its own in the arena, with no other value in it. */
static bool stands_alone(const qn_builder *builder, const qn_value *value)
{
    const qn_slots *slots = &builder->plan->slots;
    const int32_t index = qn_planned_of(builder, value)->slot;
    if (index < 0 || slots->at[index].place != QN_PLACE_ARENA || slots->at[index].root != index)
        return false;
    for (size_t i = 0; i < slots->count; i++) {
        if (slots->at[i].root == index && (int32_t)i != index)
            return false;
    }
    return true;
}

bool qn_build_dies(const qn_claim *claim, const qn_value *value)
{
    return stands_alone(claim->builder, value) &&
           qn_planned_of(claim->builder, value)->pending == reads_inside(claim, value);
}

bool qn_build_can_place(const qn_builder *builder, const qn_value *value)
{
    return stands_alone(builder, value) && !value->is_output;
}
