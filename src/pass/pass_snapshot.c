/* What a pass did to a graph, found out by comparing the nodes before and after it. */
#include "pass/pass_snapshot.h"

#include <stdlib.h>
#include <string.h>

typedef struct qn_seen_node {
    /* The name, which outlives the node: names live as long as the graph. */
    const char *name;
    const qn_op *op;
    /* A hash of its inputs and outputs. */
    size_t hash;
    /* Still there */
    bool remains;
} qn_seen_node;

static size_t mix_hash(size_t hash, const void *item)
{
    return (hash ^ (size_t)(uintptr_t)item) * (size_t)1099511628211u;
}

static size_t hash_of(const qn_node *node)
{
    size_t hash = 14695981039346656037u;
    for (int32_t i = 0; i < node->n_in; i++)
        hash = mix_hash(hash, node->in[i]);
    for (int32_t i = 0; i < node->n_out; i++)
        hash = mix_hash(hash, node->out[i]);
    return hash;
}

qn_status qn_pass_snapshot_take(qn_pass_snapshot *s, const qn_graph *graph)
{
    size_t count = 0;
    qn_names_init(&s->by_name, graph->ctx);
    s->nodes = qn_alloc_zero(graph->ctx, graph->n_nodes + 1, sizeof *s->nodes);
    QN_TRY_ALLOC(graph->ctx, s->nodes);
    for (const qn_node *node = graph->first; node; node = node->next) {
        qn_seen_node *seen = &s->nodes[count++];
        *seen = (qn_seen_node){.name = node->name, .op = node->op, .hash = hash_of(node)};
        QN_TRY(qn_names_set(&s->by_name, node->name, seen));
    }
    s->count = count;
    return QN_OK;
}

void qn_pass_snapshot_report(qn_pass_snapshot *s, const qn_graph *graph,
                             const qn_pass_observer *observer, const qn_pass *pass)
{
    for (const qn_node *node = graph->first; node; node = node->next) {
        qn_seen_node *seen = qn_names_get(&s->by_name, node->name);
        if (seen)
            seen->remains = true;
        if (!seen)
            observer->changed(observer->user, pass, "added", node->name, node->op);
        else if (seen->op != node->op || seen->hash != hash_of(node))
            observer->changed(observer->user, pass, "changed", node->name, node->op);
    }
    for (size_t i = 0; i < s->count; i++) {
        if (!s->nodes[i].remains)
            observer->changed(observer->user, pass, "removed", s->nodes[i].name, s->nodes[i].op);
    }
}

void qn_pass_snapshot_free(qn_pass_snapshot *s, const qn_graph *graph)
{
    qn_names_free(&s->by_name);
    qn_free(graph->ctx, s->nodes);
}
