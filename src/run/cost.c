/* What a step takes, by shapes and the rates of its kernel. */
#include "ops/infer.h"
#include "run/plan.h"

/* On one core of 2 to 3 GHz with vectors of 256 or 512 bits, numbers in its second cache: rates
 * that a kernel has unless it says otherwise. */
static const double STEP_NS = 200;
static const float BYTE_NS = 0.015F, FLOAT_MAC_NS = 0.009F, INTEGER_MAC_NS = 0.003F;

static bool is_integer(const qn_node *node)
{
    return node->op->quant == QN_QUANT_ALREADY;
}

static double macs_ns(const qn_step *step)
{
    double ns = 0;
    for (int32_t n = 0; n < step->n_nodes; n++) {
        const float usual = is_integer(step->nodes[n]) ? INTEGER_MAC_NS : FLOAT_MAC_NS;
        ns += (double)qn_node_macs(step->nodes[n]) *
              (double)(step->kernel->mac_ns > 0 ? step->kernel->mac_ns : usual);
    }
    return ns;
}

static double slot_bytes(const qn_plan *plan, const int32_t *slots, int32_t count)
{
    double bytes = 0;
    for (int32_t i = 0; i < count; i++) {
        const qn_slot *slot = slots[i] < 0 ? NULL : &plan->slots.at[slots[i]];
        if (slot && slot->place != QN_PLACE_CONSTANT)
            bytes += (double)slot->bytes;
    }
    return bytes;
}

/* Weights, packed or not, are read once at least; of other constants a part may be. */
static double constant_bytes(const qn_step *step)
{
    double bytes = 0;
    for (int32_t n = 0; n < step->n_nodes; n++) {
        const qn_node *node = step->nodes[n];
        for (int32_t i = 0; i < node->n_in; i++) {
            const qn_tensor *data = node->in[i] ? node->in[i]->data : NULL;
            if (data && node->op->macs)
                bytes += (double)qn_tensor_count(data) * (double)qn_dtype_size(data->dtype);
        }
    }
    return bytes;
}

double qn_step_cost(const qn_plan *plan, const qn_step *step)
{
    const double bytes = slot_bytes(plan, step->in, step->n_in) +
                         slot_bytes(plan, step->out, step->n_out) + constant_bytes(step);
    const double byte_ns = (double)(step->kernel->byte_ns > 0 ? step->kernel->byte_ns : BYTE_NS);
    return (STEP_NS + macs_ns(step) + byte_ns * bytes) * 1e-6;
}
