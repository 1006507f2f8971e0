/* An If whose condition is constant gives way to the branch that it takes. */
#include "ops/eval.h"
#include "pass/pass.h"

/* Which value of the outer graph a value of the branch becomes. Kept in a map by name. */
typedef struct splice {
    qn_graph *outer;
    qn_names values;
    /* The If */
    qn_node *place;
} splice;

static qn_status outer_value(qn_value **out, splice *s, const qn_value *inner)
{
    *out = NULL;
    if (!inner)
        return QN_OK;
    *out = qn_names_get(&s->values, inner->name);
    if (*out)
        return QN_OK;
    QN_TRY(qn_value_create(out, s->outer, inner->name));
    (*out)->type = inner->type;
    (*out)->declared = inner->declared;
    (*out)->data = inner->data;
    (*out)->doc = inner->doc;
    return qn_names_set(&s->values, inner->name, *out);
}

static void adopt_subgraphs(qn_node *node)
{
    qn_graph *body;
    for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
        body->owner = node;
}

static qn_status move_node(splice *s, const qn_node *from)
{
    qn_node *node;
    qn_value *value;
    QN_TRY(qn_graph_add_node(&node, s->outer, from->name, from->n_in, from->n_out));
    qn_node_move(node, s->place);
    node->op = from->op;
    node->attrs = from->attrs;
    node->doc = from->doc;
    node->n_explicit = from->n_explicit;
    for (int32_t i = 0; i < from->n_in; i++) {
        QN_TRY(outer_value(&value, s, from->in[i]));
        QN_TRY(qn_node_set_input(node, i, value));
    }
    for (int32_t o = 0; o < from->n_out; o++) {
        QN_TRY(outer_value(&value, s, from->out[o]));
        qn_node_set_output(node, o, value);
    }
    adopt_subgraphs(node);
    return QN_OK;
}

/* The branch's result under the If's name. What is no fresh value of its own (a captured value, a
 * constant, a result handed out twice) goes through an Identity. */
static qn_status hand_out(splice *s, qn_value *old, qn_value *result)
{
    qn_node *copy;
    bool done;
    QN_TRY(qn_value_replace(&done, old, result));
    if (done)
        return QN_OK;
    QN_TRY(qn_node_create(&copy, s->outer, &qn_op_Identity, s->place));
    QN_TRY(qn_node_set_input(copy, 0, result));
    s->place->out[old->producer_slot] = NULL;
    qn_node_set_output(copy, 0, old);
    return QN_OK;
}

static qn_status splice_branch(splice *s, const qn_graph *branch)
{
    qn_node *place = s->place;
    for (size_t i = 0; i < branch->n_captures; i++) {
        qn_value *outer = place->in[branch->captures[i].slot];
        QN_TRY(qn_names_set(&s->values, branch->captures[i].inner->name, outer));
    }
    for (const qn_node *node = branch->first; node; node = node->next)
        QN_TRY(move_node(s, node));
    for (int32_t o = 0; o < place->n_out; o++) {
        qn_value *result;
        if (!place->out[o])
            continue;
        QN_TRY(outer_value(&result, s, branch->outputs[o]));
        QN_TRY(hand_out(s, place->out[o], result));
    }
    qn_node_remove(place);
    return QN_OK;
}

static qn_status inline_branches(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        const qn_tensor *condition = node->op == &qn_op_If ? node->in[0]->data : NULL;
        if (!condition || qn_tensor_count(condition) != 1)
            continue;
        /* The attribute table has then_branch first. */
        const qn_graph *branch = qn_node_subgraph(node, qn_tensor_i64(condition, 0) ? 0 : 1);
        splice s = {.outer = self->graph, .place = node};
        qn_names_init(&s.values, self->ctx);
        const qn_status status = splice_branch(&s, branch);
        qn_names_free(&s.values);
        QN_TRY(status);
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_inline_branches = {
    "inline-branches", "replaces an If of known condition by its branch", inline_branches};
