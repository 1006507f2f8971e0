/* The pass clamp-softmax-masks: -inf in front of a Softmax becomes a finite number far below all
 * others, since integers have no infinity and statistics of it mean nothing. The results stay the
 * same, exp being 0 in both cases, except for rows that are masked completely, which gave NaN
 * before. */
#include "ops/eval.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "pass/softmax_masks.h"

/* This is so far down that no element of a network is noticed beside it, and so far from the end of
 * float that many such numbers can be added. */
static const float lowest_mask = -1e30F;

/* ---- Ways to a Softmax ----------------------------------------------------------------------- */

static bool carries(const qn_node *node, int32_t slot)
{
    if (node->op == &qn_op_Add)
        return true;
    if (node->op == &qn_op_Where)
        return slot > 0;
    return slot == 0 && (node->op->flags & QN_OP_MOVES);
}

static bool is_carried(const qn_node *node, const qn_value *value, const bool *marked)
{
    if (node->op == &qn_op_Softmax)
        return true;
    bool good = node->n_out == 1 && node->out[0] && marked[node->out[0]->mark];
    for (int32_t i = 0; i < node->n_in && good; i++)
        good = node->in[i] != value || carries(node, i);
    return good;
}

static bool ends_in_softmax(const qn_value *value, const bool *marked)
{
    bool good = value->n_users > 0 && !value->is_output;
    for (size_t u = 0; u < value->n_users && good; u++)
        good = is_carried(value->users[u], value, marked);
    return good;
}

void qn_softmax_masks_mark(bool *out, const qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_values; i++) {
        graph->values[i]->mark = (uint32_t)i;
        out[i] = false;
    }
    for (const qn_node *node = graph->last; node; node = node->prev) {
        for (int32_t o = 0; o < node->n_out; o++) {
            if (node->out[o])
                out[node->out[o]->mark] = ends_in_softmax(node->out[o], out);
        }
    }
    for (size_t i = 0; i < graph->n_values; i++) {
        if (!graph->values[i]->producer)
            out[i] = ends_in_softmax(graph->values[i], out);
    }
}

/* ---- Constants ------------------------------------------------------------------------------- */

/* Whether a constant has an element below `lowest`. NaN and +inf stay and are reported as such. */
static bool has_elements_below(const qn_value *value)
{
    bool found = false;
    if (!value || !value->data || value->data->dtype != QN_FLOAT32)
        return false;
    const int64_t count = qn_tensor_count(value->data);
    for (int64_t i = 0; i < count && !found; i++)
        found = qn_tensor_f64(value->data, i) < (double)lowest_mask;
    return found;
}

static qn_status clamp_constant(qn_value **out, qn_graph *graph, const qn_value *value)
{
    qn_tensor *tensor;
    const qn_type type = qn_type_of(value->data);
    const int64_t count = qn_tensor_count(value->data);
    char *name;
    QN_TRY(qn_model_tensor(&tensor, graph->model, &type));
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)qn_tensor_f64(value->data, i);
        ((float *)tensor->data)[i] = x < lowest_mask ? lowest_mask : x;
    }
    QN_TRY(qn_rewrite_name(&name, graph, value->name, "_finite"));
    return qn_value_constant(out, graph, name, tensor);
}

/* Input i of the node leads to nothing but a Softmax. */
static bool leads_to_softmax(const qn_node *node, int32_t i, const bool *marked)
{
    return node->n_out == 1 && node->out[0] && marked[node->out[0]->mark] && carries(node, i);
}

/* One constant for all nodes from this one on that read the old one on such ways; others keep
 * it. */
static qn_status replace(qn_node *first, const qn_value *old, const bool *marked)
{
    qn_value *fresh;
    QN_TRY(clamp_constant(&fresh, first->graph, old));
    for (qn_node *node = first; node; node = node->next) {
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] == old && leads_to_softmax(node, i, marked))
                QN_TRY(qn_node_set_input(node, i, fresh));
        }
    }
    return QN_OK;
}

static qn_status clamp_masks(qn_pass_context *self, const bool *marked)
{
    for (qn_node *node = self->graph->first; node; node = node->next) {
        for (int32_t i = 0; i < node->n_in; i++) {
            if (!leads_to_softmax(node, i, marked) || !has_elements_below(node->in[i]))
                continue;
            QN_TRY(replace(node, node->in[i], marked));
            self->changes++;
        }
    }
    return QN_OK;
}

static qn_status clamp_softmax_masks(qn_pass_context *self)
{
    bool *marked = qn_alloc_zero(self->ctx, self->graph->n_values + 1, sizeof *marked);
    QN_TRY_ALLOC(self->ctx, marked);
    qn_softmax_masks_mark(marked, self->graph);
    const qn_status status = clamp_masks(self, marked);
    qn_free(self->ctx, marked);
    return status;
}

const qn_pass qn_pass_clamp_softmax_masks = {
    "clamp-softmax-masks", "gives masks of -inf in front of a Softmax a finite number",
    clamp_softmax_masks};
