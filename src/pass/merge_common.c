/* Equal nodes become one: same operator, attributes and inputs. */
#include <string.h>

#include "pass/pass.h"

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
static bool same_input(const qn_value *a, const qn_value *b)
{
    if (a == b)
        return true;
    return a && b && a->data && b->data && qn_tensor_count(a->data) <= 64 &&
           a->data->dtype < QN_SEQUENCE && qn_tensor_equal(a->data, b->data);
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

/* An earlier node that reads the same first value that is no constant. */
static qn_node *find_earlier(const qn_node *node)
{
    const qn_value *anchor = NULL;
    for (int32_t i = 0; i < node->n_in && !anchor; i++)
        anchor = node->in[i] && !node->in[i]->data ? node->in[i] : NULL;
    for (size_t i = 0; anchor && i < anchor->n_users; i++) {
        qn_node *other = anchor->users[i];
        /* Marks number the nodes in order. */
        if (other->mark < node->mark && same_node(other, node))
            return other;
    }
    return NULL;
}

static bool has_output(const qn_node *node)
{
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o] && node->out[o]->is_output)
            return true;
    }
    return false;
}

static qn_status merge_common(qn_pass_context *self)
{
    uint32_t number = 0;
    for (qn_node *node = self->graph->first; node; node = node->next)
        node->mark = number++;
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        const bool fixed = (node->op->flags & QN_OP_RANDOM) || qn_node_subgraph(node, 0);
        const qn_node *earlier = fixed || has_output(node) ? NULL : find_earlier(node);
        if (!earlier)
            continue;
        for (int32_t o = 0; o < node->n_out; o++) {
            bool done;
            if (node->out[o])
                QN_TRY(qn_value_replace(&done, node->out[o], earlier->out[o]));
        }
        qn_node_remove(node);
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_merge_common = {"merge-common", "computes equal nodes once", merge_common};
