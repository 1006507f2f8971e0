/* Where quantized copies of a float graph can start from kept values. */
#include "quantize/prefix_cache.h"

#include <string.h>

#include "ops/clone.h"
#include "ops/infer.h"
#include "pass/rewrite.h"

enum { MOST_CUTS = 8 };

/* ---- Where a graph is narrow ----------------------------------------------------------------- */

/* A place between two nodes of the graph. */
typedef struct gap {
    /* The part of the whole way through the graph, 0 to 1: half by work, half by layers */
    double way;
    /* Bytes of values from before that are read behind */
    size_t live;
    /* A layer begins behind it */
    bool fit;
} gap;

typedef struct survey {
    qn_graph *graph;
    /* [nodes], each behind a node */
    gap *gaps;
    size_t n;
    /* [values]: of the last node that reads each */
    uint32_t *last;
} survey;

/* Bytes of a value that can be kept; 0: of another kind. */
static size_t bytes_of(const qn_value *value)
{
    int64_t dims[QN_MAX_RANK];
    size_t bytes = 0;
    if (!value->producer || value->data || value->type.kind != QN_TYPE_TENSOR ||
        value->type.dtype != QN_FLOAT32 || !qn_type_is_static(&value->type, dims) ||
        !qn_tensor_bytes(&bytes, value->type.dtype, value->type.rank, dims))
        return 0;
    return bytes;
}

static bool lives_at(const survey *s, size_t value, size_t place)
{
    const qn_value *v = s->graph->values[value];
    return v->producer && v->producer->mark <= place && s->last[value] > place;
}

static void find_last_readers(survey *s)
{
    for (size_t i = 0; i < s->graph->n_values; i++) {
        const qn_value *v = s->graph->values[i];
        for (size_t u = 0; u < v->n_users; u++)
            s->last[i] = QN_MAX(s->last[i], v->users[u]->mark);
    }
}

static double work_of(const qn_node *node)
{
    const size_t written = node->n_out && node->out[0] ? bytes_of(node->out[0]) : 0;
    return (double)qn_node_macs(node) + (double)written;
}

static void measure_way(survey *s)
{
    double work = 0, layers = 0;
    size_t place = 0;
    for (const qn_node *node = s->graph->first; node; node = node->next) {
        work += work_of(node);
        layers += qn_node_macs(node) > 0;
    }
    double done = 0, passed = 0;
    for (const qn_node *node = s->graph->first; node; node = node->next, place++) {
        done += work_of(node);
        passed += qn_node_macs(node) > 0;
        s->gaps[place].way = done / (2 * work + 1) + passed / (2 * layers + 1);
        s->gaps[place].fit = node->next && qn_node_macs(node->next) > 0;
    }
}

static qn_status look_around(survey *s, qn_arena *arena, qn_graph *graph)
{
    *s = (survey){.graph = graph, .n = graph->n_nodes};
    s->gaps = qn_arena_array(arena, s->n + 1, sizeof *s->gaps);
    s->last = qn_arena_array(arena, graph->n_values + 1, sizeof *s->last);
    if (!s->gaps || !s->last)
        return qn_fail_nomem(graph->ctx);
    uint32_t place = 0;
    for (qn_node *node = graph->first; node; node = node->next)
        node->mark = place++;
    find_last_readers(s);
    measure_way(s);
    for (size_t i = 0; i < graph->n_values; i++) {
        const size_t bytes = bytes_of(graph->values[i]);
        if (!bytes)
            continue;
        for (size_t p = graph->values[i]->producer->mark; p < s->last[i]; p++)
            s->gaps[p].live += bytes;
    }
    return QN_OK;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* The narrowest gap of the k-th of `cuts` stretches of the way; s->n: none. */
static size_t narrowest(const survey *s, size_t k, size_t cuts)
{
    const double width = 1.0 / (double)(cuts + 1), from = ((double)k + 0.5) * width;
    size_t best = s->n;
    for (size_t p = 0; p < s->n; p++) {
        const gap *g = &s->gaps[p];
        if (g->fit && g->live && g->way >= from && g->way < from + width &&
            (best == s->n || g->live < s->gaps[best].live))
            best = p;
    }
    return best;
}

/* Marks what lives at the gaps; its bytes. */
static size_t mark_live(survey *s, size_t cuts)
{
    size_t all = 0;
    for (size_t i = 0; i < s->graph->n_values; i++)
        s->graph->values[i]->mark = 0;
    for (size_t k = 0; k < cuts; k++) {
        const size_t place = narrowest(s, k, cuts);
        for (size_t i = 0; place < s->n && i < s->graph->n_values; i++) {
            qn_value *v = s->graph->values[i];
            if (v->mark || v->is_output || !lives_at(s, i, place) || !bytes_of(v))
                continue;
            v->mark = 1;
            all += bytes_of(v);
        }
    }
    return all;
}

static qn_status choose(qn_prefix_cache *prefixes, qn_arena *arena, qn_graph *graph, size_t bytes)
{
    survey s;
    size_t cuts = MOST_CUTS;
    QN_TRY(look_around(&s, arena, graph));
    while (cuts && mark_live(&s, cuts) > bytes)
        cuts--;
    prefixes->names = qn_arena_array(arena, graph->n_values + 1, sizeof *prefixes->names);
    QN_TRY_ALLOC(graph->ctx, prefixes->names);
    for (size_t i = 0; cuts && i < graph->n_values; i++) {
        qn_value *v = graph->values[i];
        if (!v->mark)
            continue;
        char *name = qn_arena_text(arena, v->name, strlen(v->name));
        QN_TRY_ALLOC(graph->ctx, name);
        prefixes->names[prefixes->count++] = name;
        QN_TRY(qn_graph_add_output(graph, v));
    }
    return QN_OK;
}

qn_status qn_prefix_cache_choose(qn_prefix_cache *prefixes, qn_model **out, qn_arena *arena,
                                 qn_model *real, const qn_graph_options *options, size_t bytes)
{
    qn_context *ctx = real->ctx;
    *prefixes = (qn_prefix_cache){.count = 0};
    QN_TRY(qn_prepare_shapes(out, ctx, real, options, true));
    qn_status status = qn_graph_infer((*out)->graph);
    const bool known = status == QN_OK;
    if (known)
        status = choose(prefixes, arena, (*out)->graph, bytes);
    else if (status == QN_E_FORMAT || status == QN_E_INVALID)
        status = QN_OK; /* dimensions that are open and are not 1 */
    if (status == QN_OK && prefixes->count)
        return QN_OK;
    qn_model_free(*out);
    *out = NULL;
    return status;
}

/* ---- Cutting --------------------------------------------------------------------------------- */

static bool is_quantizing(const qn_op *op)
{
    return op == &qn_op_QuantizeLinear || op == &qn_op_DequantizeLinear ||
           op == &qn_op_DynamicQuantizeLinear;
}

/* Functions may have been written out for a target, with numbers of their own; whoever changes
 * weights or channels has other tensors. */
static bool is_same_constant(const qn_value *value, const qn_graph *real)
{
    const qn_value *known = qn_graph_value(real, value->name);
    return (known && known->data == value->data) || qn_tensor_count(value->data) == 1;
}

/* Marks the values that no integers and no changed constants are behind. */
static void mark_same(const qn_graph *graph, const qn_graph *real)
{
    for (size_t i = 0; i < graph->n_values; i++) {
        qn_value *v = graph->values[i];
        v->mark = v->is_input || (v->data && is_same_constant(v, real));
    }
    for (const qn_node *node = graph->first; node; node = node->next) {
        bool same = !is_quantizing(node->op);
        for (int32_t i = 0; i < node->n_in && same; i++)
            same = !node->in[i] || node->in[i]->mark;
        for (int32_t i = 0; i < node->n_out; i++) {
            if (node->out[i])
                node->out[i]->mark = same;
        }
    }
}

static qn_status start_from(qn_graph *graph, qn_value *value, const qn_tensor *tensor)
{
    qn_value *input;
    bool done;
    QN_TRY(qn_value_create(&input, graph, NULL));
    input->type = qn_type_of(tensor);
    QN_TRY(qn_graph_add_input(graph, input));
    return qn_value_replace(&done, value, input);
}

static qn_status cut(size_t *used, size_t *n_used, qn_graph *graph, const qn_prefix_cache *prefixes,
                     const qn_tensor *tensors)
{
    qn_pass_context pass = {.ctx = graph->ctx, .graph = graph};
    for (size_t i = 0; i < prefixes->count; i++) {
        qn_value *value = qn_graph_value(graph, prefixes->names[i]);
        if (!value || !value->mark || !value->producer || value->is_output || !value->n_users)
            continue;
        QN_TRY(start_from(graph, value, &tensors[i]));
        used[(*n_used)++] = i;
    }
    return qn_pass_remove_dead.run(&pass);
}

qn_status qn_prefix_cache_cut(qn_model **out, size_t *used, size_t *n_used,
                              const qn_prefix_cache *prefixes, qn_model *const models[2],
                              const qn_tensor *tensors)
{
    *n_used = 0;
    QN_TRY(qn_model_clone(out, models[1]->ctx, models[1]));
    mark_same((*out)->graph, models[0]->graph);
    const qn_status status = cut(used, n_used, (*out)->graph, prefixes, tensors);
    if (status == QN_OK)
        return QN_OK;
    qn_model_free(*out);
    *out = NULL;
    return status;
}
