/* Nodes evaluated outside a plan, with the reference kernels. */
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"

/* Evaluation of nodes outside a plan: all memory comes from an arena, scratch from one of its own
 * that ends with the call. */
typedef struct host {
    /* First: kernels hand it back */
    qn_eval eval;
    qn_arena *kept;
    qn_arena scratch;
    /* The inputs of the node, captured values included */
    const qn_tensor *const *in;
} host;

static void *host_keep(qn_eval *self, size_t size)
{
    return qn_arena_alloc(((host *)self)->kept, size);
}

static void *host_scratch(qn_eval *self, size_t size)
{
    return qn_arena_alloc(&((host *)self)->scratch, size);
}

static qn_status host_graph(qn_eval *self, const qn_graph *body, const qn_tensor *const *inputs,
                            const qn_tensor **outputs)
{
    host *h = (host *)self;
    const qn_tensor **captured = qn_arena_array(h->kept, body->n_captures, sizeof *captured);
    QN_TRY_ALLOC(self->ctx, captured);
    for (size_t i = 0; i < body->n_captures; i++)
        captured[i] = h->in[body->captures[i].slot];
    const qn_graph_args args = {inputs, captured};
    return qn_graph_eval(outputs, self->ctx, h->kept, body, &args);
}

/* ---- Types of outputs from known inputs ------------------------------------------------------ */

/* What inference works on: one type per input and output. */
typedef struct frame {
    const qn_type **in;
    qn_type *in_types;
    qn_type **out;
    qn_type *out_types;
} frame;

static qn_status frame_make(frame *f, const qn_eval *eval, qn_arena *arena)
{
    const size_t n_in = (size_t)eval->n_in + 1, n_out = (size_t)eval->n_out + 1;
    f->in = qn_arena_array(arena, n_in, sizeof *f->in);
    f->in_types = qn_arena_array(arena, n_in, sizeof *f->in_types);
    f->out = qn_arena_array(arena, n_out, sizeof *f->out);
    f->out_types = qn_arena_array(arena, n_out, sizeof *f->out_types);
    if (!f->in || !f->in_types || !f->out || !f->out_types)
        return qn_fail_nomem(eval->ctx);
    for (int32_t i = 0; i < eval->n_in; i++) {
        if (!eval->in[i])
            continue;
        f->in_types[i] = qn_type_of(eval->in[i]);
        f->in[i] = &f->in_types[i];
    }
    for (int32_t o = 0; o < eval->n_out; o++) {
        f->out_types[o].rank = -1;
        f->out[o] = eval->out[o] ? &f->out_types[o] : NULL;
    }
    return QN_OK;
}

qn_status qn_eval_outputs(qn_eval *self, qn_arena *scratch)
{
    frame f;
    QN_TRY(frame_make(&f, self, scratch));
    qn_infer infer = {.ctx = self->ctx,
                      .arena = scratch,
                      .node = self->node,
                      .attrs = self->attrs,
                      .n_in = self->n_in,
                      .n_out = self->n_out,
                      .in = f.in,
                      .data = self->in,
                      .out = f.out};
    QN_TRY(qn_infer_run(&infer));
    for (int32_t o = 0; o < self->n_out && !(self->node->op->flags & QN_OP_ALLOCATES); o++) {
        int64_t dims[QN_MAX_RANK];
        if (!f.out[o])
            continue;
        if (!qn_type_is_static(f.out[o], dims))
            return qn_eval_fail(self, "the shape of output %d cannot be determined", o);
        QN_TRY(qn_eval_output(self, o, f.out[o]->dtype, f.out[o]->rank, dims));
    }
    return QN_OK;
}

/* Constants that a mapped file holds at an odd address are copied for the call. */
static qn_status align_inputs(host *h, const qn_node *node)
{
    const qn_tensor **in = qn_arena_array(&h->scratch, (size_t)node->n_in, sizeof *in);
    QN_TRY_ALLOC(h->eval.ctx, in);
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = h->in[i];
        if (!in[i] || qn_tensor_is_aligned(in[i]))
            continue;
        qn_tensor *copy = qn_arena_alloc(&h->scratch, sizeof *copy);
        QN_TRY_ALLOC(h->eval.ctx, copy);
        QN_TRY(qn_tensor_copy(copy, h->eval.ctx, &h->scratch, in[i]));
        in[i] = copy;
    }
    h->in = h->eval.in = in;
    return QN_OK;
}

static bool wants_output(const qn_node *node)
{
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o])
            return true;
    }
    return false;
}

static qn_status evaluate(host *h, const qn_node *node)
{
    if (!wants_output(node)) /* kernels may rely on one */
        return QN_OK;
    QN_TRY(align_inputs(h, node));
    /* Control flow looks at its inputs itself. */
    if (!qn_node_subgraph(node, 0))
        QN_TRY(qn_eval_outputs(&h->eval, &h->scratch));
    return node->op->eval(&h->eval);
}

qn_status qn_node_eval(qn_tensor **out, qn_context *ctx, qn_arena *arena, const qn_node *node,
                       const qn_tensor *const *in)
{
    qn_tensor *tensors = qn_arena_array(arena, (size_t)node->n_out, sizeof *tensors);
    QN_TRY_ALLOC(ctx, tensors);
    for (int32_t o = 0; o < node->n_out; o++)
        out[o] = node->out[o] ? &tensors[o] : NULL;
    host h = {.kept = arena, .in = in};
    h.eval = (qn_eval){.ctx = ctx,
                       .node = node,
                       .attrs = node->attrs,
                       .n_in = node->n_explicit,
                       .n_out = node->n_out,
                       .in = in,
                       .out = out,
                       .keep = host_keep,
                       .scratch = host_scratch,
                       .graph = host_graph};
    qn_arena_init(&h.scratch, &ctx->allocator);
    const qn_status status = evaluate(&h, node);
    qn_arena_free(&h.scratch);
    return status;
}

/* ---- Whole graphs ---------------------------------------------------------------------------- */

/* Tensors of a graph's values while it is evaluated; found by the value's number in `mark`, which a
 * shared graph cannot have, so they go into a table of name -> tensor. */
typedef struct run {
    qn_context *ctx;
    qn_arena *arena;
    qn_names tensors;
} run;

static const qn_tensor *run_get(const run *r, const qn_value *value)
{
    return value->data && !value->is_capture ? value->data : qn_names_get(&r->tensors, value->name);
}

static qn_status run_set(run *r, const qn_value *value, const qn_tensor *tensor)
{
    return qn_names_set(&r->tensors, value->name, (void *)(uintptr_t)tensor);
}

static qn_status run_node(run *r, const qn_node *node)
{
    const qn_tensor **in = qn_arena_array(r->arena, (size_t)node->n_in, sizeof *in);
    qn_tensor **out = qn_arena_array(r->arena, (size_t)node->n_out, sizeof *out);
    if (!in || !out)
        return qn_fail_nomem(r->ctx);
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i] ? run_get(r, node->in[i]) : NULL;
        if (node->in[i] && !in[i])
            return qn_node_fail(node, QN_E_INVALID, "input '%s' has no value", node->in[i]->name);
    }
    QN_TRY(qn_check_cancel(r->ctx));
    QN_TRY(qn_node_eval(out, r->ctx, r->arena, node, in));
    for (int32_t o = 0; o < node->n_out; o++) {
        if (out[o])
            QN_TRY(run_set(r, node->out[o], out[o]));
    }
    return QN_OK;
}

static qn_status run_all(run *r, const qn_graph *graph, const qn_graph_args *args,
                         const qn_tensor **out)
{
    for (size_t i = 0; i < graph->n_inputs; i++)
        QN_TRY(run_set(r, graph->inputs[i], args->in[i]));
    for (size_t i = 0; i < graph->n_captures; i++)
        QN_TRY(run_set(r, graph->captures[i].inner, args->captured[i]));
    for (const qn_node *node = graph->first; node; node = node->next)
        QN_TRY(run_node(r, node));
    for (size_t i = 0; i < graph->n_outputs; i++) {
        out[i] = run_get(r, graph->outputs[i]);
        if (!out[i])
            return qn_fail(r->ctx, QN_E_INVALID, "graph '%s': output '%s' is never computed",
                           graph->name, graph->outputs[i]->name);
    }
    return QN_OK;
}

qn_status qn_graph_eval(const qn_tensor **out, qn_context *ctx, qn_arena *arena,
                        const qn_graph *graph, const qn_graph_args *args)
{
    run r = {.ctx = ctx, .arena = arena};
    qn_names_init(&r.tensors, ctx);
    const qn_status status = run_all(&r, graph, args, out);
    qn_names_free(&r.tensors);
    return status;
}
