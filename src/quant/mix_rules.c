/* Rules 5 to 8 of mixed widths, as bonds between nodes: one list serves those who check widths and
 * those who choose them. */
#include "quant/mix.h"

#include "ops/kinds.h"

enum { FIRST_RULE = 5 };

/* ---- Neighbours ------------------------------------------------------------------------------ */

/* The nearest nodes with a width of their own, on one side or both. What lies between only moves
 * numbers or is part of a node; numbers that are float in between have no width to keep. */
typedef struct search {
    const qn_quantizer *q;
    /* [q->n_nodes] */
    bool *seen;
    /* [q->n_nodes] */
    qn_quant_node **found;
    size_t n_found;
    /* [q->n_nodes], the nodes still to be visited. */
    qn_quant_node **open;
    size_t n_open;
} search;

typedef void look_fn(search *s, const qn_node *node);

static void meet(search *s, const qn_node *node)
{
    qn_quant_node *n = &s->q->nodes[node->mark];
    if (s->seen[node->mark])
        return;
    s->seen[node->mark] = true;
    if (qn_mix_is_node(s->q, n))
        s->found[s->n_found++] = n;
    else if (n->quant_class == QN_CLASS_PASS_THROUGH || (n->integer && qn_rule_before(s->q, n)))
        s->open[s->n_open++] = n;
}

static void look_before(search *s, const qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] && node->in[i]->producer)
            meet(s, node->in[i]->producer);
    }
}

static void meet_users(search *s, const qn_value *value)
{
    for (size_t u = 0; u < value->n_users; u++)
        meet(s, value->users[u]);
}

static void look_behind(search *s, const qn_node *node)
{
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o])
            meet_users(s, node->out[o]);
    }
}

static void go_on(search *s, look_fn *look)
{
    while (s->n_open)
        look(s, s->open[--s->n_open]->node);
}

static void reset(search *s)
{
    s->n_found = 0;
    for (size_t i = 0; i < s->q->n_nodes; i++)
        s->seen[i] = false;
}

static void search_around(search *s, const qn_node *node)
{
    s->seen[node->mark] = true;
    look_before(s, node);
    go_on(s, look_before);
    look_behind(s, node);
    go_on(s, look_behind);
}

/* ---- Bonds ----------------------------------------------------------------------------------- */

static qn_status add_bond(qn_mix_constraints *bonds, const qn_quantizer *q, qn_mix_constraint bond)
{
    QN_TRY_GROW(q->ctx, bonds->at, bonds->capacity, bonds->count + 1);
    bonds->at[bonds->count++] = bond;
    return QN_OK;
}

/* All that were found have one width. */
static qn_status bind_found(qn_mix_constraints *bonds, const search *s, int rule,
                            const qn_node *around)
{
    for (size_t i = 1; i < s->n_found; i++)
        QN_TRY(add_bond(bonds, s->q,
                        (qn_mix_constraint){
                            .a = s->found[0], .b = s->found[i], .rule = rule, .around = around}));
    return QN_OK;
}

static bool is_recurrent_or_norm(const qn_node *node)
{
    return qn_op_is_recurrent(node->op) || node->op == &qn_op_LayerNormalization;
}

/* Rules 5 and 6. A node that stays float has no width, but those around it must agree all the
 * same. */
static qn_status bind_around(qn_mix_constraints *bonds, search *s, qn_quant_node *n, int rule)
{
    reset(s);
    if (qn_mix_is_node(s->q, n))
        s->found[s->n_found++] = n;
    search_around(s, n->node);
    return bind_found(bonds, s, rule, n->node);
}

static qn_status bind_inputs(qn_mix_constraints *bonds, search *s)
{
    const qn_graph *graph = s->q->graph;
    size_t inputs = 0;
    reset(s);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const size_t before = s->n_found;
        meet_users(s, graph->inputs[i]);
        go_on(s, look_behind);
        inputs += s->n_found > before;
    }
    return inputs > 1 ? bind_found(bonds, s, 7, NULL) : QN_OK;
}

static qn_status bind_parents(qn_mix_constraints *bonds, search *s, const qn_node *concat)
{
    reset(s);
    s->seen[concat->mark] = true;
    look_before(s, concat);
    go_on(s, look_before);
    const size_t parents = s->n_found;
    look_behind(s, concat);
    go_on(s, look_behind);
    for (size_t p = 0; p < parents; p++) {
        for (size_t i = 0; i < s->n_found && is_recurrent_or_norm(s->found[p]->node); i++) {
            if (i != p)
                QN_TRY(add_bond(bonds, s->q,
                                (qn_mix_constraint){.a = s->found[p],
                                                    .b = s->found[i],
                                                    .rule = 8,
                                                    .at_most = true,
                                                    .around = concat}));
        }
    }
    return QN_OK;
}

static qn_status bind_node(qn_mix_constraints *bonds, search *s, qn_quant_node *n)
{
    if (is_recurrent_or_norm(n->node))
        return bind_around(bonds, s, n, 5);
    if (n->node->op == &qn_op_Abs)
        return bind_around(bonds, s, n, 6);
    return n->node->op == &qn_op_Concat ? bind_parents(bonds, s, n->node) : QN_OK;
}

qn_status qn_mix_constraints_find(qn_mix_constraints *out, const qn_quantizer *q)
{
    search s = {.q = q};
    const size_t count = q->n_nodes + 1;
    s.seen = qn_alloc_zero(q->ctx, count, sizeof *s.seen);
    s.found = qn_alloc_zero(q->ctx, count, sizeof *s.found);
    s.open = qn_alloc_zero(q->ctx, count, sizeof *s.open);
    qn_status status = s.seen && s.found && s.open ? QN_OK : qn_fail_nomem(q->ctx);
    *out = (qn_mix_constraints){.at = NULL};
    for (size_t i = 0; i < q->n_nodes && status == QN_OK; i++)
        status = bind_node(out, &s, &q->nodes[i]);
    if (status == QN_OK)
        status = bind_inputs(out, &s);
    qn_free(q->ctx, s.seen);
    qn_free(q->ctx, s.found);
    qn_free(q->ctx, s.open);
    return status;
}

void qn_mix_constraints_free(qn_mix_constraints *bonds, const qn_quantizer *q)
{
    qn_free(q->ctx, bonds->at);
}

const qn_mix_constraint *qn_mix_constraints_broken(const qn_mix_constraints *bonds)
{
    for (size_t i = 0; i < bonds->count; i++) {
        const qn_mix_constraint *bond = &bonds->at[i];
        if (bond->at_most ? bond->a->bits > bond->b->bits : bond->a->bits != bond->b->bits)
            return bond;
    }
    return NULL;
}

const char *qn_mix_rule_text(int rule)
{
    static const char *const texts[] = {
        "a recurrent node or LayerNormalization and the quantized nodes before and behind it have "
        "one width; here around",
        "widths do not change at an Abs; here", "what the inputs of the model go to has one width",
        "a recurrent node or LayerNormalization that a Concat reads is not wider than what else "
        "stands before and behind the Concat; here"};
    return texts[rule - FIRST_RULE];
}
