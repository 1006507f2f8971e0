/* Inference of nodes and of whole graphs, subgraphs included. */
#include <string.h>

#include "ops/infer.h"

/* Fills what inference left open from what the file declared. */
static void type_refine(qn_type *type, const qn_type *declared)
{
    if (type->kind == QN_TYPE_UNKNOWN) {
        *type = *declared;
        return;
    }
    if (type->kind != QN_TYPE_TENSOR || declared->kind != QN_TYPE_TENSOR)
        return;
    if (type->dtype == QN_UNDEFINED)
        type->dtype = declared->dtype;
    if (type->rank < 0 && declared->rank >= 0) {
        type->rank = declared->rank;
        memcpy(type->dims, declared->dims, sizeof type->dims);
    }
    for (int32_t i = 0; i < type->rank && type->rank == declared->rank; i++) {
        if (type->dims[i].value < 0 && !type->dims[i].symbol)
            type->dims[i] = declared->dims[i];
    }
}

static void bind_captures(const qn_node *node, const qn_graph *body)
{
    for (size_t i = 0; i < body->n_captures; i++) {
        const qn_value *outer = node->in[body->captures[i].slot];
        body->captures[i].inner->type = outer->type;
        body->captures[i].inner->data = outer->data;
    }
}

static qn_status infer_body(qn_infer *self, qn_graph *body, const qn_type *inputs)
{
    bind_captures(self->node, body);
    for (size_t i = 0; i < body->n_inputs; i++) {
        qn_type type = inputs[i];
        if (body->inputs[i]->declared)
            type_refine(&type, body->inputs[i]->declared);
        body->inputs[i]->type = type;
    }
    return qn_graph_infer(body);
}

/* The arrays that an inference works on; nodes with more slots than fit take them from the
 * arena. */
enum { SLOTS = 16 };
typedef struct slots {
    const qn_type *in[SLOTS];
    const qn_tensor *data[SLOTS];
    qn_type *out[SLOTS];
    qn_type types[SLOTS];
} slots;

typedef struct views {
    const qn_type **in;
    const qn_tensor **data;
    qn_type **out, *types;
} views;

static qn_status views_make(views *v, slots *s, const qn_node *node)
{
    *v = (views){s->in, s->data, s->out, s->types};
    const size_t n_in = (size_t)node->n_explicit, n_out = (size_t)node->n_out;
    if (n_in > SLOTS || n_out > SLOTS) {
        qn_arena *arena = node->graph->arena;
        *v = (views){qn_arena_array(arena, n_in, sizeof *v->in),
                     qn_arena_array(arena, n_in, sizeof *v->data),
                     qn_arena_array(arena, n_out, sizeof *v->out),
                     qn_arena_array(arena, n_out, sizeof *v->types)};
        if (!v->in || !v->data || !v->out || !v->types)
            return qn_fail_nomem(node->graph->ctx);
    }
    for (size_t i = 0; i < n_in; i++) {
        v->in[i] = node->in[i] ? &node->in[i]->type : NULL;
        v->data[i] = node->in[i] ? node->in[i]->data : NULL;
    }
    for (size_t i = 0; i < n_out; i++) {
        v->types[i] = (qn_type){.rank = -1};
        v->out[i] = node->out[i] ? &v->types[i] : NULL;
    }
    return QN_OK;
}

static qn_infer infer_of(const qn_node *node, const views *v)
{
    return (qn_infer){.ctx = node->graph->ctx,
                      .arena = node->graph->arena,
                      .node = node,
                      .attrs = node->attrs,
                      .n_in = node->n_explicit,
                      .n_out = node->n_out,
                      .in = v->in,
                      .data = v->data,
                      .out = v->out,
                      .graph = infer_body};
}

qn_status qn_node_infer(qn_node *node)
{
    slots space;
    views v;
    QN_TRY(views_make(&v, &space, node));
    qn_infer self = infer_of(node, &v);
    QN_TRY(qn_infer_run(&self));
    for (int32_t i = 0; i < node->n_out; i++) {
        if (!node->out[i])
            continue;
        if (node->out[i]->declared)
            type_refine(&v.types[i], node->out[i]->declared);
        node->out[i]->type = v.types[i];
    }
    return QN_OK;
}

qn_status qn_node_is_certain(bool *certain, const qn_node *node)
{
    slots space;
    views v;
    *certain = true;
    for (int32_t i = 0; i < node->n_explicit; i++) {
        if (node->in[i] && !qn_type_is_static(&node->in[i]->type, NULL))
            *certain = false;
    }
    if (!*certain)
        return QN_OK;
    QN_TRY(views_make(&v, &space, node));
    qn_infer self = infer_of(node, &v);
    QN_TRY(qn_infer_run(&self));
    for (int32_t i = 0; i < node->n_out; i++) {
        if (node->out[i] && !qn_type_is_static(&v.types[i], NULL))
            *certain = false;
    }
    return QN_OK;
}

qn_status qn_graph_infer(qn_graph *graph)
{
    for (qn_node *node = graph->first; node; node = node->next)
        QN_TRY(qn_node_infer(node));
    return QN_OK;
}

/* The type with ones for dimensions that are not known. */
static qn_type close_type(const qn_type *type)
{
    qn_type closed = *type;
    for (int32_t d = 0; d < closed.rank; d++)
        closed.dims[d].value = closed.dims[d].value < 0 ? 1 : closed.dims[d].value;
    return closed;
}

bool qn_node_macs_known(const qn_node *node)
{
    bool known = node->n_explicit <= SLOTS && node->n_out <= SLOTS;
    for (int32_t i = 0; known && i < node->n_explicit; i++)
        known = !node->in[i] || node->in[i]->type.rank >= 0;
    for (int32_t i = 0; known && i < node->n_out; i++)
        known = !node->out[i] || node->out[i]->type.rank >= 0;
    return known || !node->op->macs;
}

int64_t qn_node_macs(const qn_node *node)
{
    slots space;
    views v;
    qn_type in[SLOTS];
    if (!node->op->macs || node->n_explicit > SLOTS || node->n_out > SLOTS ||
        views_make(&v, &space, node) != QN_OK)
        return 0;
    for (int32_t i = 0; i < node->n_explicit; i++) {
        if (!node->in[i])
            continue;
        in[i] = close_type(&node->in[i]->type);
        v.in[i] = &in[i];
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        if (node->out[i])
            v.types[i] = close_type(&node->out[i]->type);
    }
    const qn_infer self = infer_of(node, &v);
    const int64_t macs = node->op->macs(&self);
    return macs > 0 ? macs : 0;
}
