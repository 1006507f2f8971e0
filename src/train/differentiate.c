/* Differentiation of a graph: against the order of the nodes, gradients added up where a value has
 * several readers. */
#include "train/differentiate.h"

#include <string.h>

#include "ops/infer.h"
#include "train/gradient.h"

typedef struct differentiation {
    qn_graph *graph;
    /* The values there were at first; tables are by their numbers. */
    size_t n_values;
    /* Whether the gradient of the value is wanted */
    bool *wanted;
    qn_value **gradients;
} differentiation;

/* ---- What depends on what -------------------------------------------------------------------- */

/* A value depends on what is asked for where an input of its node does. */
static void mark_wanted(differentiation *d, qn_value *const *by, size_t count)
{
    for (size_t i = 0; i < count; i++)
        d->wanted[by[i]->number] = true;
    for (const qn_node *node = d->graph->first; node; node = node->next) {
        const qn_gradient *row = qn_gradient_find(node->op);
        bool any = false;
        for (int32_t i = 0; i < node->n_in; i++)
            any = any || (node->in[i] && d->wanted[node->in[i]->number]);
        any = any && (!row || row->fn);
        for (int32_t o = 0; o < node->n_out; o++) {
            if (node->out[o])
                d->wanted[node->out[o]->number] |= any;
        }
    }
}

/* ---- One node -------------------------------------------------------------------------------- */

static qn_status add_up(differentiation *d, qn_value *value, qn_value *gradient)
{
    qn_value **at = &d->gradients[value->number];
    if (!*at) {
        *at = gradient;
        return QN_OK;
    }
    const qn_node_spec spec = {.op = &qn_op_Add, .in = {*at, gradient}, .n_in = 2};
    qn_node *node;
    QN_TRY(qn_node_build(&node, d->graph, &spec));
    *at = node->out[0];
    return qn_node_infer(node);
}

typedef struct slots {
    qn_value **dy, **dx;
    bool *wants;
} slots;

static qn_status slots_of(slots *out, const differentiation *d, const qn_node *node)
{
    qn_arena *arena = d->graph->arena;
    out->dy = qn_arena_array(arena, (size_t)node->n_out + 1, sizeof *out->dy);
    out->dx = qn_arena_array(arena, (size_t)node->n_in + 1, sizeof *out->dx);
    out->wants = qn_arena_array(arena, (size_t)node->n_in + 1, sizeof *out->wants);
    if (!out->dy || !out->dx || !out->wants)
        return qn_fail_nomem(d->graph->ctx);
    for (int32_t o = 0; o < node->n_out; o++)
        out->dy[o] = node->out[o] ? d->gradients[node->out[o]->number] : NULL;
    for (int32_t i = 0; i < node->n_in; i++) {
        out->dx[i] = NULL;
        out->wants[i] = node->in[i] && d->wanted[node->in[i]->number];
    }
    return QN_OK;
}

static qn_status differentiate_node(differentiation *d, const qn_node *node)
{
    const qn_gradient *row = qn_gradient_find(node->op);
    slots s;
    if (!row)
        return qn_node_fail(node, QN_E_UNSUPPORTED,
                            "the operator has no gradient, so what stands before it cannot be "
                            "trained");
    if (!row->fn)
        return QN_OK;
    QN_TRY(slots_of(&s, d, node));
    qn_grad_job job = {.graph = d->graph, .node = node, .dy = s.dy, .wants = s.wants, .dx = s.dx};
    row->fn(&job);
    QN_TRY(job.status);
    for (int32_t i = 0; i < node->n_in; i++) {
        if (s.wants[i] && s.dx[i])
            QN_TRY(add_up(d, node->in[i], s.dx[i]));
    }
    return QN_OK;
}

static bool has_gradient(const differentiation *d, const qn_node *node)
{
    bool given = false, wanted = false;
    for (int32_t o = 0; o < node->n_out; o++)
        given = given || (node->out[o] && d->gradients[node->out[o]->number]);
    for (int32_t i = 0; i < node->n_in; i++)
        wanted = wanted || (node->in[i] && d->wanted[node->in[i]->number]);
    return given && wanted;
}

/* ---- The graph ------------------------------------------------------------------------------- */

static qn_status start(differentiation *d, qn_value *loss)
{
    int64_t dims[QN_MAX_RANK], count = 0;
    qn_grad_job job = {.graph = d->graph, .node = loss->producer};
    if (!qn_type_is_static(&loss->type, dims) || !qn_dtype_is_float(loss->type.dtype) ||
        !qn_dims_count(&count, loss->type.rank, dims) || count != 1)
        return qn_fail(d->graph->ctx, QN_E_INVALID, "the loss '%s' must be one number", loss->name);
    qn_value *one = qn_grad_number(&job, loss, 1);
    d->gradients[loss->number] = qn_grad_reshape_like(&job, one, loss);
    return job.status;
}

static qn_status run(differentiation *d, qn_value *loss, qn_value *const *by, size_t count)
{
    mark_wanted(d, by, count);
    if (!d->wanted[loss->number])
        return QN_OK;
    qn_node *last = d->graph->last;
    QN_TRY(start(d, loss));
    for (const qn_node *node = last; node; node = node->prev) {
        if (has_gradient(d, node))
            QN_TRY(differentiate_node(d, node));
    }
    return QN_OK;
}

qn_status qn_differentiate(qn_value **out, qn_graph *graph, qn_value *loss, qn_value *const *by,
                           size_t count)
{
    differentiation d = {.graph = graph, .n_values = graph->n_values};
    d.wanted = qn_alloc_zero(graph->ctx, graph->n_values + 1, sizeof *d.wanted);
    d.gradients = qn_alloc_zero(graph->ctx, graph->n_values + 1, sizeof *d.gradients);
    qn_status status =
        d.wanted && d.gradients ? run(&d, loss, by, count) : qn_fail_nomem(graph->ctx);
    for (size_t i = 0; status == QN_OK && i < count; i++)
        out[i] = d.gradients[by[i]->number];
    qn_free(graph->ctx, d.wanted);
    qn_free(graph->ctx, d.gradients);
    return status;
}
