/* Which nodes of the float model, as its file has it, belong to which compared tensor. */
#include <string.h>

#include "compare/layer_comparison.h"

typedef struct search {
    qn_layer_comparison *comparison;
    const qn_graph *graph;
    /* [number of a node]: the tensor that it is computed for; NULL: none, or several */
    qn_compared_tensor **owners;
} search;

static qn_compared_tensor *met_tensor(const search *s, const qn_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++) {
        qn_compared_tensor *tensor =
            node->out[i] ? qn_names_get(&s->comparison->by_name[0], node->out[i]->name) : NULL;
        if (tensor && tensor->met)
            return tensor;
    }
    return NULL;
}

/* What all readers of the node's real numbers are computed for: neither shapes nor constants are
 * parts of a layer. */
static qn_compared_tensor *tensor_of_readers(const search *s, const qn_node *node)
{
    qn_compared_tensor *found = NULL;
    for (int32_t i = 0; i < node->n_out; i++) {
        const qn_value *value = node->out[i];
        if (!value || !qn_dtype_is_float(value->type.dtype) || node->n_in == 0)
            continue;
        for (size_t u = 0; u < value->n_users; u++) {
            qn_compared_tensor *owner = s->owners[value->users[u]->number];
            if (found && owner && owner != found)
                return NULL;
            found = owner ? owner : found;
        }
    }
    return found;
}

static void find_owners(const search *s)
{
    for (const qn_node *node = s->graph->last; node; node = node->prev) {
        qn_compared_tensor *own = met_tensor(s, node);
        s->owners[node->number] = own ? own : tensor_of_readers(s, node);
        if (s->owners[node->number])
            s->owners[node->number]->n_inside++;
    }
}

static qn_status list_nodes(const search *s)
{
    qn_layer_comparison *c = s->comparison;
    for (size_t i = 0; i < c->count; i++) {
        c->at[i].inside = qn_arena_array(&c->arena, c->at[i].n_inside + 1, sizeof *c->at[i].inside);
        QN_TRY_ALLOC(c->ctx, c->at[i].inside);
        c->at[i].n_inside = 0;
    }
    for (const qn_node *node = s->graph->first; node; node = node->next) {
        qn_compared_tensor *owner = s->owners[node->number];
        if (owner)
            owner->inside[owner->n_inside++] = node;
    }
    return QN_OK;
}

/* "Conv+Clip": the product, where what is compared is behind it. */
static qn_status name_product(qn_layer_comparison *c, qn_compared_tensor *tensor)
{
    const qn_op *product = NULL;
    for (size_t i = 0; i < tensor->n_inside && !product; i++)
        product = tensor->inside[i]->op->macs ? tensor->inside[i]->op : NULL;
    if (!product || strcmp(tensor->op, product->name) == 0)
        return QN_OK;
    tensor->op = qn_arena_format(&c->arena, "%s+%s", product->name, tensor->op);
    QN_TRY_ALLOC(c->ctx, tensor->op);
    return QN_OK;
}

qn_status qn_layer_comparison_find_nodes(qn_layer_comparison *c, const qn_graph *graph)
{
    search s = {c, graph, NULL};
    s.owners = qn_alloc_zero(c->ctx, graph->made.numbers + 1, sizeof *s.owners);
    QN_TRY_ALLOC(c->ctx, s.owners);
    find_owners(&s);
    qn_status status = list_nodes(&s);
    for (size_t i = 0; i < c->count && status == QN_OK; i++)
        status = name_product(c, &c->at[i]);
    qn_free(c->ctx, s.owners);
    return status;
}
