/* The reference backend: runs the operators' own reference kernels. */
#include "backend/ref/ref.h"

#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"

/* ---- One session's state of a step ----------------------------------------------------------- */

/* Scratch and outputs of unknown size come from arenas that keep their memory from run to run. */
typedef struct bound {
    /* First: kernels hand it back */
    qn_eval eval;
    const qn_step_io *io;
    qn_arena kept, scratch;
    /* One per output, of kernels that allocate */
    qn_tensor *results;
    qn_tensor **result_pointers;
} bound;

static void *bound_keep(qn_eval *self, size_t size)
{
    return qn_arena_alloc(&((bound *)self)->kept, size);
}

static void *bound_scratch(qn_eval *self, size_t size)
{
    return qn_arena_alloc(&((bound *)self)->scratch, size);
}

static qn_status bound_graph(qn_eval *self, const qn_graph *body, const qn_tensor *const *inputs,
                             const qn_tensor **outputs)
{
    bound *b = (bound *)self;
    const qn_tensor **captured = qn_arena_array(&b->kept, body->n_captures, sizeof *captured);
    QN_TRY_ALLOC(self->ctx, captured);
    for (size_t i = 0; i < body->n_captures; i++)
        captured[i] = b->io->in[body->captures[i].slot];
    const qn_graph_args args = {inputs, captured};
    return qn_graph_eval(outputs, self->ctx, &b->kept, body, &args);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

typedef struct state {
    const qn_node *node;
    /* All outputs have their memory in the plan */
    bool planned;
    /* There is an output that somebody reads */
    bool wanted;
} state;

/* What the kernel allocated goes where the plan wants it: into planned memory when the shape was
 * known, else the tensor itself is handed on. */
static qn_status deliver(bound *b, const bool *known)
{
    for (int32_t o = 0; o < b->eval.n_out; o++) {
        qn_tensor *out = b->io->out[o];
        const qn_tensor *result = &b->results[o];
        if (!out)
            continue;
        if (!known[o]) {
            *out = *result;
            continue;
        }
        const size_t dims = (size_t)out->rank * sizeof *out->dims;
        if (result->dtype != out->dtype || result->rank != out->rank ||
            (dims && memcmp(result->dims, out->dims, dims) != 0))
            return qn_eval_fail(&b->eval, "output %d has another shape than was planned", o);
        const size_t bytes = (size_t)qn_tensor_count(out) * qn_dtype_size(out->dtype);
        if (bytes)
            memcpy(out->data, result->data, bytes);
    }
    return QN_OK;
}

typedef struct ref_bound {
    bound b;
    /* One per output: its shape was known when the plan was made */
    bool *known;
} ref_bound;

static qn_status ref_run(const void *opaque, void *own, const qn_step_io *io)
{
    const state *s = opaque;
    ref_bound *rb = own;
    bound *b = &rb->b;
    b->io = io;
    qn_arena_reset(&b->scratch);
    qn_arena_reset(&b->kept);
    if (!s->wanted)
        return QN_OK;
    if (s->planned)
        return s->node->op->eval(&b->eval);
    if (!qn_node_subgraph(s->node, 0))
        QN_TRY(qn_eval_outputs(&b->eval, &b->scratch));
    QN_TRY(s->node->op->eval(&b->eval));
    return deliver(b, rb->known);
}

static void ref_unbind(qn_context *ctx, const void *opaque, void *own)
{
    ref_bound *rb = own;
    (void)opaque;
    if (!rb)
        return;
    qn_arena_free(&rb->b.kept);
    qn_arena_free(&rb->b.scratch);
    qn_free(ctx, rb->b.results);
    qn_free(ctx, rb->b.result_pointers);
    qn_free(ctx, rb->known);
    qn_free(ctx, rb);
}

static void point_outputs(ref_bound *rb, const state *s, const qn_step_io *io)
{
    for (int32_t o = 0; o < s->node->n_out; o++) {
        rb->known[o] = io->out[o] && io->out[o]->rank >= 0;
        rb->b.result_pointers[o] = io->out[o] ? &rb->b.results[o] : NULL;
    }
}

static qn_status ref_bind(void **out, const void *opaque, const qn_step_io *io)
{
    const state *s = opaque;
    const size_t n_out = (size_t)s->node->n_out + 1;
    ref_bound *rb = qn_alloc_zero(io->ctx, 1, sizeof *rb);
    QN_TRY_ALLOC(io->ctx, rb);
    qn_arena_init(&rb->b.kept, &io->ctx->allocator);
    qn_arena_init(&rb->b.scratch, &io->ctx->allocator);
    rb->b.results = qn_alloc_zero(io->ctx, n_out, sizeof *rb->b.results);
    rb->b.result_pointers = qn_alloc_zero(io->ctx, n_out, sizeof *rb->b.result_pointers);
    rb->known = qn_alloc_zero(io->ctx, n_out, sizeof *rb->known);
    if (!rb->b.results || !rb->b.result_pointers || !rb->known) {
        ref_unbind(io->ctx, s, rb);
        return qn_fail_nomem(io->ctx);
    }
    point_outputs(rb, s, io);
    rb->b.io = io;
    rb->b.eval = (qn_eval){.ctx = io->ctx,
                           .node = s->node,
                           .attrs = s->node->attrs,
                           .n_in = s->node->n_explicit,
                           .n_out = s->node->n_out,
                           .in = (const qn_tensor *const *)io->in,
                           .out = s->planned ? io->out : rb->b.result_pointers,
                           .keep = bound_keep,
                           .scratch = bound_scratch,
                           .graph = bound_graph};
    *out = rb;
    return QN_OK;
}

static const qn_kernel ref_kernel = {.name = "ref",
                                     .bind = ref_bind,
                                     .run = ref_run,
                                     .unbind = ref_unbind,
                                     .mac_ns = 2,
                                     .byte_ns = 2};

static qn_status ref_claim(bool *taken, qn_claim *claim)
{
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->node = claim->node;
    /* What the file declares is no promise: where the inputs do not tell the outputs' shapes, they
     * are inferred again in every run. */
    if (!(claim->node->op->flags & QN_OP_ALLOCATES))
        QN_TRY(qn_node_is_certain(&s->planned, claim->node));
    for (int32_t o = 0; o < claim->node->n_out; o++)
        s->wanted = s->wanted || claim->node->out[o];
    qn_claim_plain(claim);
    claim->kernel = &ref_kernel;
    claim->state = s;
    *taken = true;
    return QN_OK;
}

const qn_backend qn_backend_ref = {.name = "ref", .claim = ref_claim};
