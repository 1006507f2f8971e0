/* Sizes of convolutions and pools, read from a claim's node. */
#include "backend/cpu/geometry.h"

#include "ops/window.h"

/* The window's numbers as the last `rank` of ours. */
static bool take_window(qn_geometry *g, const qn_window *w)
{
    const int32_t shift = w->rank == 1 ? 1 : 0;
    if (w->rank < 1 || w->rank > QN_SPATIAL)
        return false;
    g->rank = w->rank + shift;
    for (int32_t d = 0; d < QN_SPATIAL; d++) {
        g->in[d] = g->out[d] = g->kernel[d] = g->stride[d] = g->dilation[d] = 1;
        g->pad_begin[d] = g->pad_end[d] = 0;
    }
    for (int32_t d = 0; d < w->rank; d++) {
        const int32_t to = d + shift;
        g->in[to] = w->in[d].value;
        g->out[to] = w->out[d].value;
        g->kernel[to] = w->kernel[d];
        g->stride[to] = w->stride[d];
        g->dilation[to] = w->dilation[d];
        g->pad_begin[to] = w->pad_begin[d];
        g->pad_end[to] = w->pad_end[d];
        if (w->pad_begin[d] < 0 || w->pad_end[d] < 0 || g->in[to] < 1 || g->out[to] < 1)
            return false;
    }
    return g->samples > 0 && g->channels > 0 && g->filters > 0;
}

static bool shapes_of(qn_tensor *x, qn_tensor *y, const qn_builder *builder, const qn_node *node)
{
    return node->in[0] && node->out[0] && qn_build_shape(x, builder, node->in[0]) &&
           qn_build_shape(y, builder, node->out[0]) && x->rank >= 3 && x->rank - 2 <= QN_SPATIAL;
}

static const qn_tensor *constant(const qn_node *node, int32_t i)
{
    return i < node->n_in && node->in[i] ? node->in[i]->data : NULL;
}

static bool geometry_of(qn_geometry *g, const qn_builder *builder, const qn_node *node,
                        const qn_tensor *weights)
{
    const qn_window_attrs *a = node->attrs;
    const bool transposed = node->op == &qn_op_ConvTranspose ||
                            node->op == &qn_op_qn_QLinearConvTranspose ||
                            node->op == &qn_op_qn_ConvTransposeIntegerToFloat;
    qn_tensor x, y;
    qn_window w;
    if (!weights || !shapes_of(&x, &y, builder, node))
        return false;
    const qn_dim *in = node->in[0]->type.dims + 2;
    if (!(transposed ? qn_window_resolve_transposed : qn_window_resolve)(&w, a, x.rank - 2, in,
                                                                         weights->dims + 2))
        return false;
    *g = (qn_geometry){.samples = x.dims[0], .channels = x.dims[1], .filters = y.dims[1]};
    g->groups = a->group;
    return take_window(g, &w);
}

bool qn_geometry_conv_any(qn_geometry *g, const qn_builder *builder, const qn_node *node)
{
    qn_tensor weights;
    return qn_build_shape(&weights, builder, node->in[1]) && weights.dtype == QN_FLOAT32 &&
           node->in[0]->type.dtype == QN_FLOAT32 && geometry_of(g, builder, node, &weights);
}

bool qn_geometry_conv(qn_geometry *g, const qn_builder *builder, const qn_node *node)
{
    return constant(node, 1) && (node->n_in <= 2 || !node->in[2] || constant(node, 2)) &&
           qn_geometry_conv_any(g, builder, node);
}

bool qn_geometry_q_conv(qn_geometry *g, const qn_claim *claim)
{
    return geometry_of(g, claim->builder, claim->node, constant(claim->node, 3));
}

bool qn_geometry_pool(qn_geometry *g, const qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor x, y;
    qn_window w;
    if (!shapes_of(&x, &y, claim->builder, node))
        return false;
    *g = (qn_geometry){.samples = x.dims[0], .channels = x.dims[1], .filters = x.dims[1]};
    g->groups = 1;
    if (node->op == &qn_op_GlobalAveragePool || node->op == &qn_op_GlobalMaxPool) {
        const qn_window_attrs whole = {.auto_pad = QN_AUTO_PAD_NOTSET};
        return qn_window_resolve(&w, &whole, x.rank - 2, node->in[0]->type.dims + 2, x.dims + 2) &&
               take_window(g, &w);
    }
    return qn_window_resolve(&w, node->attrs, x.rank - 2, node->in[0]->type.dims + 2, NULL) &&
           take_window(g, &w);
}

/* The larger side is shared, the smaller one is what every thread reads whole. */
bool qn_split_filters(const qn_geometry *g, int threads)
{
    enum { PAIR = 32 }; /* filters that a kernel computes at once, at most */
    const int64_t pairs = (g->filters + PAIR - 1) / PAIR;
    return g->filters > g->samples * g->out[0] * g->out[1] &&
           (pairs % threads == 0 || pairs >= 4 * threads);
}
