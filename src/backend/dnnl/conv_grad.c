/* Gradients of convolutions. Weights, and their gradient, are reordered in every run. */
#include <string.h>

#include "backend/dnnl/dnnl.h"
#include "backend/dnnl/step.h"
#include "ops/grad_attrs.h"
#include "ops/window.h"

typedef struct gradient {
    qn_prim_spec spec;
    qn_prim *prim;
    /* The weights, or their gradient, as the graph has them */
    qn_prim_tensor plain;
    /* Where they lie in scratch memory as the primitive has them */
    size_t packed_at;
} gradient;

/* ---- What oneDNN is asked for ---------------------------------------------------------------- */

/* X, W and Y of the convolution. */
typedef struct operands {
    qn_tensor x, w, y;
    int64_t groups;
    qn_window window;
} operands;

static bool take_window(operands *o, const qn_node *node)
{
    const qn_window_grad_attrs *a = node->attrs;
    const qn_type type = qn_type_of(&o->x);
    o->groups = a->window.group;
    return o->x.dtype == QN_FLOAT32 && (o->x.rank == 4 || o->x.rank == 5) &&
           qn_tensor_count(&o->x) > 0 && qn_tensor_count(&o->y) > 0 &&
           qn_window_resolve(&o->window, &a->window, o->x.rank - 2, type.dims + 2, o->w.dims + 2);
}

static void activation(qn_prim_tensor *out, const qn_tensor *t, qn_layout layout)
{
    *out = (qn_prim_tensor){.rank = t->rank, .layout = layout};
    memcpy(out->dims, t->dims, (size_t)t->rank * sizeof *out->dims);
}

/* [groups,] filters, channels, kernel... */
static void weights(gradient *g, const operands *o)
{
    qn_prim_tensor *w = &g->spec.weights;
    const int32_t more = o->groups > 1;
    *w = (qn_prim_tensor){.rank = o->w.rank + more, .format = QN_PRIM_ANY, .dims = {o->groups}};
    memcpy(w->dims + more, o->w.dims, (size_t)o->w.rank * sizeof *w->dims);
    w->dims[more] /= o->groups;
    g->plain = *w;
    g->plain.format = QN_PRIM_STEPS;
    qn_dims_strides(g->plain.steps, w->rank, w->dims);
}

static void spec_of(gradient *g, const operands *o, qn_layout x, qn_layout y)
{
    activation(&g->spec.src, &o->x, x);
    activation(&g->spec.dst, &o->y, y);
    weights(g, o);
    for (int32_t d = 0; d < o->window.rank; d++) {
        g->spec.kernel[d] = o->window.kernel[d];
        g->spec.stride[d] = o->window.stride[d];
        g->spec.dilation[d] = o->window.dilation[d];
        g->spec.pad_begin[d] = o->window.pad_begin[d];
        g->spec.pad_end[d] = o->window.pad_end[d];
    }
}

/* The first layouts that oneDNN has a fast kernel for. */
static qn_status find(gradient *g, const operands *o, const qn_claim *claim, const qn_value *x)
{
    const qn_layout native = qn_layout_native(), last = {QN_LAYOUT_CHANNELS_LAST, 0};
    const bool rows = x && o->x.dims[1] <= 4 && o->groups == 1 &&
                      qn_build_layout(claim->builder, x).kind == QN_LAYOUT_ROWS;
    const qn_layout layouts[][2] = {
        {QN_ROWS, native}, {native, native}, {last, last}, {QN_ROWS, QN_ROWS}};
    qn_prim_engine *engine;
    QN_TRY(qn_dnnl_engine(&engine, claim->builder));
    for (size_t i = rows ? 0 : 1; i < QN_COUNT_OF(layouts) && !g->prim; i++) {
        spec_of(g, o, layouts[i][0], layouts[i][1]);
        QN_TRY(qn_prim_find(&g->prim, qn_build_context(claim->builder), engine, &g->spec));
    }
    return QN_OK;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static qn_status prepare(qn_claim *claim)
{
    gradient *g = claim->state;
    QN_TRY(qn_prim_compile(g->prim));
    g->packed_at = (qn_prim_scratch(g->prim) + 63) / 64 * 64;
    claim->scratch = g->packed_at + qn_prim_weight_bytes(g->prim);
    return QN_OK;
}

typedef struct bound {
    /* NULL: the primitive takes the weights as they are */
    qn_prim_reorder *reorder;
    qn_prim_run *run;
} bound;

/* Input and output tensors by what they are, and the weights in the graph's form. */
static void data_of(qn_prim_data *out, const void **plain, const gradient *g, const qn_step_io *io)
{
    const bool by_input = g->spec.kind == QN_PRIM_CONV_BY_INPUT;
    *out = (qn_prim_data){.scratch = io->scratch};
    out->src = by_input ? io->out[0]->data : io->in[0]->data;
    out->dst = by_input ? io->in[0]->data : io->in[1]->data;
    *plain = by_input ? io->in[1]->data : io->out[0]->data;
    out->weights = (char *)io->scratch + g->packed_at;
    if (!by_input && g->spec.bias.rank)
        out->bias = io->out[1]->data;
}

static void unbind(qn_context *ctx, const void *state, void *own)
{
    bound *b = own;
    (void)state;
    if (b) {
        qn_prim_reorder_unbind(ctx, b->reorder);
        qn_prim_unbind(ctx, b->run);
    }
    qn_free(ctx, b);
}

static qn_status bind(void **out, const void *state, const qn_step_io *io)
{
    const gradient *g = state;
    bound *b = qn_alloc_zero(io->ctx, 1, sizeof *b);
    const void *plain;
    qn_prim_data data;
    QN_TRY_ALLOC(io->ctx, b);
    data_of(&data, &plain, g, io);
    qn_status status = qn_prim_reorder_bind(&b->reorder, io->ctx, g->prim, &g->plain);
    if (!b->reorder)
        data.weights = plain;
    if (status == QN_OK)
        status = qn_prim_bind(&b->run, io->ctx, g->prim, &data);
    if (status == QN_OK)
        *out = b;
    else
        unbind(io->ctx, state, b);
    return status;
}

static qn_status run(const void *state, void *own, const qn_step_io *io)
{
    const gradient *g = state;
    const bound *b = own;
    const bool by_input = g->spec.kind == QN_PRIM_CONV_BY_INPUT;
    const void *plain;
    qn_prim_data data;
    data_of(&data, &plain, g, io);
    if (!b->reorder)
        data.weights = plain;
    else if (by_input)
        QN_TRY(qn_prim_reorder_run(b->reorder, plain, data.weights));
    QN_TRY(qn_prim_execute(b->run, &data));
    return b->reorder && !by_input ? qn_prim_reorder_run(b->reorder, plain, data.weights) : QN_OK;
}

static void release(void *state)
{
    gradient *g = state;
    qn_prim_free(g->prim);
    g->prim = NULL;
}

static const qn_kernel by_input_kernel = {.name = "dnnl conv by input",
                                          .prepare = prepare,
                                          .bind = bind,
                                          .run = run,
                                          .unbind = unbind,
                                          .free = release};
static const qn_kernel by_weights_kernel = {.name = "dnnl conv by weights",
                                            .prepare = prepare,
                                            .bind = bind,
                                            .run = run,
                                            .unbind = unbind,
                                            .free = release};

/* ---- Claims ---------------------------------------------------------------------------------- */

static qn_status create(gradient **out, const qn_claim *claim, qn_prim_kind kind)
{
    *out = qn_build_alloc(claim->builder, sizeof **out);
    QN_TRY_ALLOC(qn_build_context(claim->builder), *out);
    (*out)->spec.kind = kind;
    return QN_OK;
}

static void take(bool *taken, qn_claim *claim, gradient *g, const qn_kernel *kernel)
{
    claim->kernel = kernel;
    claim->state = g;
    *taken = true;
}

qn_status qn_dnnl_claim_conv_by_input(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    operands o;
    gradient *g;
    if (!qn_build_shape(&o.x, claim->builder, node->out[0]) ||
        !qn_build_shape(&o.w, claim->builder, node->in[1]) ||
        !qn_build_shape(&o.y, claim->builder, node->in[0]) || !take_window(&o, node))
        return QN_OK;
    QN_TRY(create(&g, claim, QN_PRIM_CONV_BY_INPUT));
    QN_TRY(find(g, &o, claim, NULL));
    if (!g->prim)
        return QN_OK;
    qn_claim_in(claim, node->in[0], g->spec.dst.layout);
    qn_claim_in(claim, node->in[1], QN_ROWS);
    qn_claim_out(claim, node->out[0], g->spec.src.layout);
    take(taken, claim, g, &by_input_kernel);
    return QN_OK;
}

qn_status qn_dnnl_claim_conv_by_weights(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const bool has_bias = node->n_out > 1 && node->out[1];
    operands o;
    gradient *g;
    if (!node->out[0] || !qn_build_shape(&o.x, claim->builder, node->in[0]) ||
        !qn_build_shape(&o.w, claim->builder, node->out[0]) ||
        !qn_build_shape(&o.y, claim->builder, node->in[1]) || !take_window(&o, node))
        return QN_OK;
    QN_TRY(create(&g, claim, QN_PRIM_CONV_BY_WEIGHTS));
    g->spec.bias = (qn_prim_tensor){.rank = has_bias, .dims = {o.w.dims[0]}};
    QN_TRY(find(g, &o, claim, node->in[0]));
    if (!g->prim)
        return QN_OK;
    qn_claim_in(claim, node->in[0], g->spec.src.layout);
    qn_claim_in(claim, node->in[1], g->spec.dst.layout);
    qn_claim_out(claim, node->out[0], QN_ROWS);
    if (has_bias)
        qn_claim_out(claim, node->out[1], QN_ROWS);
    take(taken, claim, g, &by_weights_kernel);
    return QN_OK;
}
