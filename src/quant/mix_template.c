/* Chooses a mix of widths that obeys the rules, and writes it as a file. */
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "quant/mix.h"

/* ---- How far a node is from the ends --------------------------------------------------------- */

/* Nodes with a width of their own, on the shortest way from an input or to an output, itself
 * included. */
typedef struct end_node {
    qn_quant_node *n;
    /* The index in the graph's order. */
    size_t place;
    /* The distance to the nearer end of the graph. */
    size_t distance;
    bool promoted, maybe;
} end_node;

typedef struct ends {
    const qn_quantizer *q;
    /* [q->n_nodes] */
    end_node *at;
    qn_mix_constraints bonds;
    /* Nodes with a width */
    size_t count;
} ends;

static size_t step(const ends *e, size_t i, size_t before)
{
    return before == SIZE_MAX ? before : before + qn_mix_is_node(e->q, e->at[i].n);
}

static size_t from_inputs(const ends *e, const qn_node *node)
{
    size_t least = SIZE_MAX;
    for (int32_t i = 0; i < node->n_in; i++) {
        const qn_value *value = node->in[i];
        if (!value || value->data)
            continue;
        const size_t before = value->producer ? e->at[value->producer->number].distance : 0;
        least = QN_MIN(least, before);
    }
    return least;
}

static size_t to_outputs(const size_t *behind, const qn_node *node)
{
    size_t least = SIZE_MAX;
    for (int32_t o = 0; o < node->n_out; o++) {
        const qn_value *value = node->out[o];
        if (value && value->is_output)
            return 0;
        for (size_t u = 0; value && u < value->n_users; u++)
            least = QN_MIN(least, behind[value->users[u]->number]);
    }
    return least;
}

/* Nodes stand in the order in which they run. */
static qn_status measure(ends *e)
{
    const size_t count = e->q->n_nodes;
    size_t *behind = qn_alloc_zero(e->q->ctx, count + 1, sizeof *behind);
    QN_TRY_ALLOC(e->q->ctx, behind);
    for (size_t i = 0; i < count; i++) {
        e->at[i] = (end_node){.n = &e->q->nodes[i], .place = i};
        e->at[i].distance = step(e, i, from_inputs(e, e->q->nodes[i].node));
        e->count += qn_mix_is_node(e->q, e->at[i].n);
    }
    for (size_t i = count; i-- > 0;)
        behind[i] = step(e, i, to_outputs(behind, e->q->nodes[i].node));
    for (size_t i = 0; i < count; i++)
        e->at[i].distance = QN_MIN(e->at[i].distance, behind[i]);
    qn_free(e->q->ctx, behind);
    return QN_OK;
}

static int by_distance(const void *a, const void *b)
{
    const end_node *const *x = a, *const *y = b;
    if ((*x)->distance != (*y)->distance)
        return (*x)->distance < (*y)->distance ? -1 : 1;
    return ((*x)->place > (*y)->place) - ((*x)->place < (*y)->place);
}

/* ---- More bits at the ends ------------------------------------------------------------------- */

static end_node *end_of(const ends *e, const qn_quant_node *n)
{
    return &e->at[n->node->number];
}

static bool is_promoted(const end_node *n)
{
    return n->promoted || n->maybe;
}

/* Gives `n` more bits, and all nodes that the rules tie to it; returns how many those are. */
static size_t promote_tied(ends *e, end_node *n)
{
    size_t count = 1;
    n->maybe = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < e->bonds.count; i++) {
            const qn_mix_constraint *bond = &e->bonds.at[i];
            end_node *a = end_of(e, bond->a), *b = end_of(e, bond->b);
            end_node *next = is_promoted(a) && !is_promoted(b)                     ? b
                             : is_promoted(b) && !is_promoted(a) && !bond->at_most ? a
                                                                                   : NULL;
            if (!next)
                continue;
            next->maybe = more = true;
            count++;
        }
    }
    return count;
}

static void settle(ends *e, bool promotes)
{
    for (size_t i = 0; i < e->q->n_nodes; i++) {
        e->at[i].promoted = e->at[i].promoted || (promotes && e->at[i].maybe);
        e->at[i].maybe = false;
    }
}

static qn_status promote_ends(ends *e, double ratio)
{
    end_node **order = qn_alloc_zero(e->q->ctx, e->q->n_nodes + 1, sizeof *order);
    QN_TRY_ALLOC(e->q->ctx, order);
    for (size_t i = 0; i < e->q->n_nodes; i++)
        order[i] = &e->at[i];
    qsort(order, e->q->n_nodes, sizeof *order, by_distance);
    size_t left = e->count - (size_t)ceil(ratio * (double)e->count - 1e-9);
    for (size_t i = 0; i < e->q->n_nodes && left; i++) {
        if (order[i]->promoted || !qn_mix_is_node(e->q, order[i]->n))
            continue;
        const size_t more = promote_tied(e, order[i]);
        settle(e, more <= left);
        left -= more <= left ? more : 0;
    }
    qn_free(e->q->ctx, order);
    return QN_OK;
}

static qn_status choose_ends(qn_quantizer *q, double ratio)
{
    ends e = {.q = q};
    e.at = qn_alloc_zero(q->ctx, q->n_nodes + 1, sizeof *e.at);
    QN_TRY_ALLOC(q->ctx, e.at);
    qn_status status = qn_mix_constraints_find(&e.bonds, q);
    if (status == QN_OK)
        status = measure(&e);
    if (status == QN_OK)
        status = promote_ends(&e, ratio);
    const int wider = qn_profile_wider(q->settings.profile, QN_WIDTH_STANDARD);
    const int more = wider ? wider : qn_width_beyond(QN_WIDTH_STANDARD);
    for (size_t i = 0; i < q->n_nodes && status == QN_OK; i++)
        q->nodes[i].bits = e.at[i].promoted ? more : QN_WIDTH_STANDARD;
    qn_mix_constraints_free(&e.bonds, q);
    qn_free(q->ctx, e.at);
    return status;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status choose_method(qn_quant_node *n, const qn_quantizer *q,
                               const qn_mix_template_options *wish)
{
    const qn_mix_row *row = wish->base ? qn_mix_find(wish->base, n->node->name) : NULL;
    n->method = row ? row->method : wish->method;
    if (n->method)
        return QN_OK;
    n->method = wish->usual;
    return qn_width_is_fine(qn_width_of_bits(n->bits))
               ? qn_method_find(&n->method, q->ctx, "min_max")
               : QN_OK;
}

static void choose_bits(qn_quant_node *n, const qn_mix_template_options *wish)
{
    const qn_mix_row *row = wish->base ? qn_mix_find(wish->base, n->node->name) : NULL;
    n->bits = row ? row->bits : wish->bits;
}

qn_status qn_mix_fill(qn_quantizer *q, const qn_mix_template_options *wish)
{
    for (size_t i = 0; i < q->n_nodes; i++)
        choose_bits(&q->nodes[i], wish);
    if (wish->int16_ends)
        QN_TRY(choose_ends(q, wish->ratio));
    for (size_t i = 0; i < q->n_nodes; i++)
        QN_TRY(choose_method(&q->nodes[i], q, wish));
    return QN_OK;
}

static qn_json *row_json(qn_context *ctx, const qn_quant_node *n)
{
    qn_json *row = qn_json_object();
    const bool done = qn_json_set(row, "bitwidth", qn_json_int(n->bits)) &&
                      qn_json_set(row, "mode", qn_json_text(ctx, n->method->name));
    if (done)
        return row;
    qn_json_free(row);
    return NULL;
}

qn_json *qn_mix_json(const qn_quantizer *q)
{
    qn_json *root = qn_json_object();
    bool done = root != NULL;
    for (size_t i = 0; i < q->n_nodes && done; i++) {
        const qn_quant_node *n = &q->nodes[i];
        if (qn_mix_is_node(q, n))
            done = qn_json_set(root, n->node->name, row_json(q->ctx, n));
    }
    if (done)
        return root;
    qn_json_free(root);
    return NULL;
}

qn_status qn_mix_write(char **out, const qn_quantizer *q)
{
    *out = NULL;
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (!qn_text_is_utf8(q->nodes[i].node->name))
            return qn_fail(q->ctx, QN_E_UNSUPPORTED,
                           "the name of node '%s' is no UTF-8: no mix file can have it",
                           q->nodes[i].node->name);
    }
    qn_json *root = qn_mix_json(q);
    if (!root)
        return qn_fail_nomem(q->ctx);
    const qn_status status = qn_json_write(out, q->ctx, root);
    qn_json_free(root);
    return status;
}
