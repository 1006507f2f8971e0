/* Ranges of masked values in front of a Softmax. A mask moves some elements so far down that exp
 * gives 0 for them. How far it moves them carries no information, but a range that includes them
 * leaves no steps for the elements that count.
 *
 *   y = x + m       x comes out of products, m does not: it is made of constants and inputs
 *   y = c ? x : m
 *
 * With x in [a, b] a mask element m = -(b - a + depth) moves any x at least `depth` below all
 * others. A row with an element that is not masked has one of at least a, so whatever lies `depth`
 * below a may as well be clipped there. */
#include "quant/softmax_masks.h"

#include <math.h>

#include "ops/eval.h"
#include "pass/softmax_masks.h"
#include "quant/existing_encodings.h"

qn_status qn_softmax_masks_find(qn_quantizer *q)
{
    bool *marked = qn_arena_array(&q->arena, q->n_values + 1, sizeof *marked);
    QN_TRY_ALLOC(q->ctx, marked);
    qn_softmax_masks_mark(marked, q->graph);
    for (size_t i = 0; i < q->n_values; i++)
        q->values[i].before_softmax = marked[i];
    return QN_OK;
}

/* ---- What was seen --------------------------------------------------------------------------- */

typedef struct mask_search {
    qn_quantizer *q;
    const qn_stats *stats;
    /* [values], whether a product comes before the value. */
    bool *computed;
    /* [values], the range of the elements that no mask moves down; min > max: unknown. */
    qn_range *unmasked;
} mask_search;

static const qn_range unknown = {INFINITY, -INFINITY};

static bool is_known(qn_range range)
{
    return range.min <= range.max;
}

/* The range of a constant's elements that are not below `least`. */
static qn_range range_of_constant(const qn_tensor *tensor, float least)
{
    const int64_t count = qn_tensor_count(tensor);
    qn_range range = unknown;
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)qn_tensor_f64(tensor, i);
        range.min = x < least ? range.min : fminf(range.min, x);
        range.max = fmaxf(range.max, x);
    }
    return range;
}

/* The observed range of a value; for a view, of the value that it views. */
static qn_range seen_range(const qn_stats *stats, const qn_value *value)
{
    const qn_stats_entry *entry = qn_stats_find(stats, value->name);
    while (!entry && value->producer && (value->producer->op->flags & QN_OP_MOVES)) {
        value = value->producer->in[0];
        entry = qn_stats_find(stats, value->name);
    }
    if (value->data)
        return range_of_constant(value->data, -INFINITY);
    return entry ? (qn_range){entry->min, entry->max} : unknown;
}

/* The range of a mask that is added to values of range x, without the elements that are `depth`
 * below all others. Of a mask that is no constant only the extremes were observed: the elements
 * that change nothing are 0, or its largest. */
static qn_range unmasked_range(const mask_search *w, const qn_value *mask, qn_range x, float depth)
{
    const float least = -(x.max - x.min + depth);
    const qn_range seen = seen_range(w->stats, mask);
    if (!is_known(seen) || seen.min >= least)
        return seen;
    const qn_range rest = mask->data ? range_of_constant(mask->data, least)
                                     : (qn_range){fminf(seen.max, 0), seen.max};
    return is_known(rest) ? rest : seen;
}

/* ---- Sums and choices ------------------------------------------------------------------------ */

/* Finds the two sides of a sum or choice: *x is computed by products and *mask is not. False where
 * there is not one of each. */
static bool find_sides(const mask_search *w, const qn_node *node, const qn_value **x,
                       const qn_value **mask)
{
    const int32_t first = node->op == &qn_op_Where;
    const qn_value *a = node->in[first], *b = node->in[first + 1];
    const bool a_computed = w->computed[a->mark], b_computed = w->computed[b->mark];
    *x = a_computed ? a : b;
    *mask = a_computed ? b : a;
    return a_computed != b_computed;
}

/* The least element that is not masked, as far as it is known. */
static float least_of(const mask_search *w, const qn_value *value)
{
    const qn_range unmasked = w->unmasked[value->mark];
    return is_known(unmasked) ? unmasked.min : -INFINITY;
}

/* The same for the result of a node, from what it reads. */
static float unmasked_min_of(const mask_search *w, const qn_node *node, float depth)
{
    const qn_value *x, *mask;
    if (node->op != &qn_op_Add && node->op != &qn_op_Where)
        return node->op->flags & QN_OP_MOVES ? least_of(w, node->in[0]) : -INFINITY;
    if (!find_sides(w, node, &x, &mask))
        return node->op == &qn_op_Add ? least_of(w, node->in[0]) + least_of(w, node->in[1])
                                      : -INFINITY;
    const qn_range unmasked = w->unmasked[x->mark];
    const qn_range rest = node->op == &qn_op_Add ? unmasked_range(w, mask, unmasked, depth)
                                                 : seen_range(w->stats, mask);
    if (!is_known(unmasked) || !is_known(rest))
        return -INFINITY;
    if (node->op == &qn_op_Add)
        return unmasked.min + rest.min;
    return rest.max < unmasked.min - depth ? unmasked.min : -INFINITY;
}

/* A value is masked where its elements reach further down than counts; its range contains 0 in any
 * case. */
static void measure_node(const mask_search *w, const qn_node *node)
{
    qn_quant_value *v = qn_quant_value_of(w->q, node->out[0]);
    qn_range *unmasked = &w->unmasked[node->out[0]->mark];
    if (!is_known(*unmasked) && (node->op->flags & QN_OP_MOVES))
        *unmasked = w->unmasked[node->in[0]->mark];
    if (!v->before_softmax || !w->computed[node->out[0]->mark] || !is_known(*unmasked))
        return;
    const float depth = qn_width_of_bits(qn_quant_root(w->q, v)->bits)->mask_depth;
    const float least = unmasked_min_of(w, node, depth);
    if (!(fminf(least, 0) - depth > unmasked->min))
        return;
    unmasked->min = least;
    v->masked = true;
    v->unmasked_min = fminf(least, 0);
}

static bool is_computed(const mask_search *w, const qn_node *node)
{
    bool computed = node->op->quant == QN_QUANT_MAC;
    for (int32_t i = 0; i < node->n_in && !computed; i++)
        computed = node->in[i] && w->computed[node->in[i]->mark];
    return computed;
}

static qn_status begin_search(mask_search *out, qn_quantizer *q, const qn_stats *stats)
{
    *out = (mask_search){.q = q, .stats = stats};
    out->computed = qn_arena_array(&q->arena, q->n_values + 1, sizeof *out->computed);
    out->unmasked = qn_arena_array(&q->arena, q->n_values + 1, sizeof *out->unmasked);
    if (!out->computed || !out->unmasked)
        return qn_fail_nomem(q->ctx);
    for (size_t i = 0; i < q->n_values; i++)
        out->unmasked[i] =
            q->values[i].value->data ? unknown : seen_range(stats, q->values[i].value);
    for (size_t n = 0; n < q->n_nodes; n++) {
        const qn_node *node = q->nodes[n].node;
        const bool computed = is_computed(out, node);
        for (int32_t o = 0; o < node->n_out; o++) {
            if (node->out[o])
                out->computed[node->out[o]->mark] = computed;
        }
    }
    return QN_OK;
}

qn_status qn_softmax_masks_measure(qn_quantizer *q, const qn_stats *stats)
{
    mask_search w;
    QN_TRY(begin_search(&w, q, stats));
    for (size_t n = 0; n < q->n_nodes; n++) {
        if (q->nodes[n].node->n_out == 1 && q->nodes[n].node->out[0])
            measure_node(&w, q->nodes[n].node);
    }
    return QN_OK;
}

qn_range qn_softmax_mask_range(const qn_quant_value *root, const qn_stats_entry *entry, int bits)
{
    const qn_width *width = qn_width_of_bits(bits);
    const float more = width->headroom;
    return (qn_range){fmaxf(fminf(entry->min, 0), more * root->unmasked_min - width->mask_depth),
                      more * fmaxf(entry->max, 0)};
}

/* ---- The masks themselves -------------------------------------------------------------------- */

typedef struct cut {
    const mask_search *w;
    /* [values], for masks: the element below which readers see no difference. */
    float *least;
} cut;

static qn_range chosen_range(const mask_search *w, const qn_value *value)
{
    const qn_quant_value *v = qn_quant_value_of(w->q, value);
    return v->integer ? qn_quant_root(w->q, v)->range : seen_range(w->stats, value);
}

/* y = x + m is clipped at the least y that its integers have: below (least y) - (greatest x) all m
 * give the same. */
static float least_for(const cut *c, const qn_node *user, const qn_value *value)
{
    const qn_value *y = user->out[0];
    if (user->op == &qn_op_Softmax)
        return -INFINITY;
    if (user->op != &qn_op_Add && user->op != &qn_op_Where)
        return c->least[y->mark];
    const bool rounded = qn_quant_value_of(c->w->q, y)->integer;
    const float least = rounded ? chosen_range(c->w, y).min : c->least[y->mark];
    if (user->op == &qn_op_Where)
        return least;
    const qn_range other = chosen_range(c->w, user->in[user->in[0] == value ? 1 : 0]);
    return is_known(other) ? least - other.max : -INFINITY;
}

static void cut_value(const cut *c, const qn_value *value)
{
    qn_quant_value *v = qn_quant_value_of(c->w->q, value);
    float least = INFINITY;
    for (size_t u = 0; u < value->n_users && v->before_softmax; u++)
        least = fminf(least, least_for(c, value->users[u], value));
    if (!v->before_softmax || c->w->computed[value->mark])
        least = -INFINITY;
    c->least[value->mark] = least;
    if (!v->integer || v->existing || qn_quant_root(c->w->q, v) != v || !(least > v->range.min))
        return;
    v->mask_min = v->range.min = fminf(least, 0);
    v->range_by_readers = true;
}

qn_status qn_softmax_masks_cut(qn_quantizer *q, const qn_stats *stats)
{
    mask_search w;
    QN_TRY(begin_search(&w, q, stats));
    const cut c = {&w, qn_arena_array(&q->arena, q->n_values + 1, sizeof *c.least)};
    QN_TRY_ALLOC(q->ctx, c.least);
    for (size_t n = q->n_nodes; n-- > 0;) {
        const qn_node *node = q->nodes[n].node;
        for (int32_t o = 0; o < node->n_out; o++) {
            if (node->out[o])
                cut_value(&c, node->out[o]);
        }
    }
    for (size_t i = 0; i < q->n_values; i++) {
        if (!q->values[i].value->producer && !q->values[i].value->data)
            cut_value(&c, q->values[i].value);
    }
    return QN_OK;
}

/* The range of the integers that the node reads there. */
static qn_range read_range(const qn_quantizer *q, const qn_quant_node *n, int32_t i)
{
    const qn_value_encoding *d = qn_quant_root(q, qn_quant_value_of(q, n->node->in[i]))->encoding;
    if (!d)
        return unknown;
    return qn_existing_range(qn_quant_reads_int8(q, n, i) ? d->int8_params : d->params);
}

float qn_softmax_mask_min(const qn_quantizer *q, const qn_quant_node *n)
{
    const qn_node *node = n->node;
    if (!n->integer || node->op != &qn_op_Add || !node->out[0]->qparams ||
        !qn_quant_value_of(q, node->out[0])->before_softmax ||
        !node->in[0]->data == !node->in[1]->data)
        return 0;
    const qn_range x = read_range(q, n, node->in[0]->data ? 1 : 0);
    const float least = is_known(x) ? qn_existing_range(node->out[0]->qparams).min - x.max : 0;
    return fminf(least, 0);
}
