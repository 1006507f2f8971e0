/* Equal nodes become one: same operator, attributes and inputs. */
#include <string.h>

#include "ops/fingerprint.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool same_list(const void *a, const void *b, size_t count, size_t size)
{
    return (!a == !b) && (count == 0 || memcmp(a, b, count * size) == 0);
}

static bool same_strings(const qn_strings *a, const qn_strings *b)
{
    if (a->count != b->count || !a->at != !b->at)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->at[i].length != b->at[i].length ||
            memcmp(a->at[i].text, b->at[i].text, a->at[i].length) != 0)
            return false;
    }
    return true;
}

static bool same_attr(const qn_node *a, const qn_node *b, const qn_attr_spec *spec)
{
    const void *x = qn_attr_field(a, spec), *y = qn_attr_field(b, spec);
    switch (spec->kind) {
    case QN_ATTR_INT:
    case QN_ATTR_ENUM: return memcmp(x, y, sizeof(int64_t)) == 0;
    case QN_ATTR_FLOAT: return memcmp(x, y, sizeof(float)) == 0;
    case QN_ATTR_STRING: {
        const char *s = *(const char *const *)x, *t = *(const char *const *)y;
        return s == t || (s && t && strcmp(s, t) == 0);
    }
    case QN_ATTR_INTS: {
        const qn_ints *s = x, *t = y;
        return s->count == t->count && same_list(s->at, t->at, s->count, sizeof *s->at);
    }
    case QN_ATTR_FLOATS: {
        const qn_floats *s = x, *t = y;
        return s->count == t->count && same_list(s->at, t->at, s->count, sizeof *s->at);
    }
    case QN_ATTR_STRINGS: return same_strings(x, y);
    case QN_ATTR_TENSOR: {
        const qn_tensor *s = *(const qn_tensor *const *)x, *t = *(const qn_tensor *const *)y;
        return s == t || (s && t && qn_tensor_equal(s, t));
    }
    case QN_ATTR_GRAPH:
    case QN_ATTR_TYPE: return *(const void *const *)x == *(const void *const *)y;
    }
    return false;
}

/* Small constants are compared by contents: files repeat them for every node. */
static bool is_small(const qn_value *value)
{
    return value && value->data && qn_tensor_count(value->data) <= 64 &&
           value->data->dtype < QN_SEQUENCE;
}

static bool same_input(const qn_value *a, const qn_value *b)
{
    return a == b || (is_small(a) && is_small(b) && qn_tensor_equal(a->data, b->data));
}

static bool same_node(const qn_node *a, const qn_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out)
        return false;
    for (int32_t i = 0; i < a->n_in; i++) {
        if (!same_input(a->in[i], b->in[i]))
            return false;
    }
    for (int32_t o = 0; o < a->n_out; o++) {
        if (!a->out[o] != !b->out[o])
            return false;
    }
    for (size_t i = 0; i < a->op->n_attrs; i++) {
        if (!same_attr(a, b, &a->op->attrs[i]))
            return false;
    }
    return true;
}

/* The same for nodes that are the same. */
static uint64_t hash_of(const qn_node *node)
{
    qn_fingerprint print = {{0, 0}};
    qn_fingerprint_bytes(&print, &node->op, sizeof node->op);
    for (int32_t i = 0; i < node->n_in; i++) {
        if (is_small(node->in[i]))
            qn_fingerprint_tensor(&print, node->in[i]->data);
        else
            qn_fingerprint_bytes(&print, &node->in[i], sizeof node->in[i]);
    }
    qn_fingerprint_attrs(&print, node);
    return print.word[0];
}

typedef struct entry {
    uint64_t hash;
    qn_node *node;
} entry;

/* The first of every kind of node, by hash; entries without a node end a search. */
typedef struct table {
    entry *at;
    /* A power of two, more than there are nodes */
    size_t size;
} table;

/* Where the first node of this kind is, or will be: its node is NULL then. */
static entry *find_first(const table *t, const qn_node *node, uint64_t hash)
{
    size_t i = (size_t)hash & (t->size - 1);
    while (t->at[i].node && (t->at[i].hash != hash || !same_node(t->at[i].node, node)))
        i = (i + 1) & (t->size - 1);
    return &t->at[i];
}

static bool has_output(const qn_node *node)
{
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o] && node->out[o]->is_output)
            return true;
    }
    return false;
}

static qn_status merge_node(qn_pass_context *self, const table *t, qn_node *node)
{
    const uint64_t hash = hash_of(node);
    entry *first = find_first(t, node, hash);
    if (!first->node)
        *first = (entry){hash, node};
    if (first->node == node || has_output(node))
        return QN_OK;
    for (int32_t o = 0; o < node->n_out; o++) {
        bool done;
        if (node->out[o])
            QN_TRY(qn_value_replace(&done, node->out[o], first->node->out[o]));
    }
    qn_node_remove(node);
    self->changes++;
    return QN_OK;
}

static qn_status merge_common(qn_pass_context *self)
{
    table t = {.size = 2};
    qn_status status = QN_OK;
    while (t.size / 2 <= self->graph->n_nodes)
        t.size *= 2;
    t.at = qn_alloc_zero(self->ctx, t.size, sizeof *t.at);
    QN_TRY_ALLOC(self->ctx, t.at);
    for (qn_node *node = self->graph->first, *next; node && status == QN_OK; node = next) {
        next = node->next;
        if (!(node->op->flags & QN_OP_RANDOM) && !qn_node_subgraph(node, 0) &&
            !qn_node_reads_constants(node))
            status = merge_node(self, &t, node);
    }
    qn_free(self->ctx, t.at);
    return status;
}

const qn_pass qn_pass_merge_common = {"merge-common", "computes equal nodes once", merge_common};
