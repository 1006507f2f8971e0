/* Values that share quantization parameters. */
#include "quant/quant.h"

static int32_t root_of(const qn_quantizer *q, int32_t i)
{
    while (q->values[i].parent != i)
        i = q->values[i].parent;
    return i;
}

/* `under` gets what `over` has. */
static void join(qn_quantizer *q, const qn_value *over, const qn_value *under)
{
    const int32_t a = root_of(q, (int32_t)over->number), b = root_of(q, (int32_t)under->number);
    if (a == b || !q->values[over->number].integer || !q->values[under->number].integer)
        return;
    q->values[b].parent = a;
    q->values[a].bits = QN_MAX(q->values[a].bits, q->values[b].bits);
}

/* A part that goes nowhere else is rounded once, in the scale of the whole. */
static void join_concat(qn_quantizer *q, const qn_quant_node *n)
{
    const qn_profile *profile = q->settings.profile;
    const bool unify = q->settings.unify || profile->unify_concat;
    for (int32_t i = 0; i < n->n_data; i++) {
        const qn_value *part = n->node->in[i];
        const bool own = qn_value_only_user(part) && part->producer &&
                         q->nodes[part->producer->number].quant_class != QN_CLASS_PASS_THROUGH;
        const bool typed = q->values[part->number].type != QN_UNDEFINED;
        if (!typed && (unify || (own && !profile->fixed_point)))
            join(q, n->node->out[0], part);
    }
}

/* It stays float; what it puts together has one scale all the same, that of the result. */
static void join_scatter(qn_quantizer *q, const qn_node *node)
{
    const qn_value *data = node->in[0], *updates = node->in[2], *result = node->out[0];
    if (!data || !updates || !result)
        return;
    join(q, data, updates);
    join(q, data, result);
    if (q->values[data->number].integer)
        q->values[root_of(q, (int32_t)data->number)].source = (int32_t)result->number;
}

/* A value in front of a limit that stays float takes the statistics of the limit's result: the rest
 * is cut off in any case and was not observed. */
static void look_behind_limit(qn_quantizer *q, qn_quant_value *v)
{
    const qn_node *user = v->integer ? qn_value_only_user(v->value) : NULL;
    if (!user || q->nodes[user->number].quant_class != QN_CLASS_CLIP || !v->value->producer ||
        q->values[user->out[0]->number].integer)
        return;
    const qn_quant_node *from = &q->nodes[v->value->producer->number];
    if (from->quant_class == QN_CLASS_PASS_THROUGH || from->quant_class == QN_CLASS_CONCAT)
        return;
    v->source = (int32_t)user->out[0]->number;
    v->existing = v->existing ? v->existing : q->values[v->source].existing;
}

/* Y, which has all states, and Y_h, the last ones. */
static void join_states(qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_node *node = q->nodes[i].node;
        if (q->nodes[i].integer && q->nodes[i].quant_class == QN_CLASS_RECURRENT &&
            node->n_out > 1 && node->out[1])
            join(q, node->out[0], node->out[1]);
    }
}

void qn_quant_share(qn_quantizer *q)
{
    join_states(q);
    for (size_t i = 0; i < q->n_values; i++)
        look_behind_limit(q, &q->values[i]);
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        for (int32_t o = 0;
             n->integer && n->quant_class == QN_CLASS_PASS_THROUGH && o < n->node->n_out; o++) {
            if (n->node->out[o])
                join(q, n->node->in[0], n->node->out[o]);
        }
    }
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (q->nodes[i].integer && q->nodes[i].quant_class == QN_CLASS_CONCAT)
            join_concat(q, &q->nodes[i]);
        if (q->settings.unify && q->nodes[i].node->op == &qn_op_ScatterND)
            join_scatter(q, q->nodes[i].node);
    }
}

qn_quant_value *qn_quant_root(const qn_quantizer *q, const qn_quant_value *value)
{
    return &q->values[root_of(q, value->parent)];
}
