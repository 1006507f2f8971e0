/* MaxPool, AveragePool, the global ones, and LRN. */
#include <string.h>

#include "backend/cpu/geometry.h"
#include "backend/dnnl/dnnl.h"
#include "backend/dnnl/step.h"
#include "ops/nn_attrs.h"

static const qn_kernel pool_kernel = QN_DNNL_KERNEL("dnnl pool");
static const qn_kernel lrn_kernel = QN_DNNL_KERNEL("dnnl lrn");

static void tensors_of(qn_prim_spec *spec, const qn_geometry *g, qn_layout layout)
{
    spec->src = (qn_prim_tensor){.rank = g->rank + 2, .layout = layout};
    spec->src.dims[0] = g->samples;
    spec->src.dims[1] = g->channels;
    spec->dst = spec->src;
    memcpy(spec->src.dims + 2, g->in, (size_t)g->rank * sizeof *g->in);
    memcpy(spec->dst.dims + 2, g->out, (size_t)g->rank * sizeof *g->out);
}

/* The layout that the input has, if there is a kernel for it. Those for rows go through a single
 * one twenty times as long as through a block of channels. */
static qn_status find(qn_dnnl_step *s, const qn_claim *claim, const qn_geometry *g)
{
    const qn_layout given = qn_build_layout(claim->builder, claim->node->in[0]);
    const qn_layout layouts[] = {given, qn_layout_native(), QN_ROWS};
    const bool is_line = g->rank == 2 && g->in[0] == 1 && given.kind == QN_LAYOUT_ROWS;
    for (size_t i = is_line ? 1 : 0; i < QN_COUNT_OF(layouts) && !s->prim; i++) {
        tensors_of(&s->spec, g, layouts[i]);
        QN_TRY(qn_dnnl_step_find(s, claim));
    }
    return QN_OK;
}

static qn_status finish(bool *taken, qn_dnnl_step *s, qn_claim *claim, const qn_kernel *kernel)
{
    if (!s->prim)
        return QN_OK;
    const qn_status status = qn_dnnl_step_finish(s, claim, kernel);
    if (status != QN_OK)
        qn_dnnl_step_free(s);
    *taken = status == QN_OK;
    return status;
}

/* The last window may reach beyond the pads where sizes are rounded up: oneDNN is told of more
 * pads. */
static bool window_of(qn_prim_spec *spec, const qn_geometry *g)
{
    bool reaches_beyond = false;
    for (int32_t d = 0; d < g->rank; d++) {
        const int64_t end = (g->out[d] - 1) * g->stride[d] + (g->kernel[d] - 1) * g->dilation[d] +
                            1 - g->in[d] - g->pad_begin[d];
        spec->kernel[d] = g->kernel[d];
        spec->stride[d] = g->stride[d];
        spec->dilation[d] = g->dilation[d];
        spec->pad_begin[d] = g->pad_begin[d];
        spec->pad_end[d] = QN_MAX(g->pad_end[d], end);
        reaches_beyond = reaches_beyond || end > g->pad_end[d];
    }
    return reaches_beyond;
}

static qn_status claim_pool(bool *taken, qn_claim *claim, qn_prim_kind kind)
{
    qn_geometry g;
    qn_dnnl_step *s;
    const qn_node *node = claim->node;
    if ((node->n_out > 1 && node->out[1]) || !qn_geometry_pool(&g, claim) ||
        node->in[0]->type.dtype != QN_FLOAT32)
        return QN_OK;
    QN_TRY(qn_dnnl_step_create(&s, claim));
    s->spec.kind = kind;
    if (window_of(&s->spec, &g) && kind == QN_PRIM_AVERAGE_POOL_PADDED)
        return QN_OK; /* what lies beyond the pads does not count there */
    QN_TRY(find(s, claim, &g));
    return finish(taken, s, claim, &pool_kernel);
}

qn_status qn_dnnl_claim_max_pool(bool *taken, qn_claim *claim)
{
    return claim_pool(taken, claim, QN_PRIM_MAX_POOL);
}

qn_status qn_dnnl_claim_average_pool(bool *taken, qn_claim *claim)
{
    const qn_window_attrs *a = claim->node->attrs;
    const bool counts = claim->node->op == &qn_op_AveragePool && a->count_include_pad;
    return claim_pool(taken, claim, counts ? QN_PRIM_AVERAGE_POOL_PADDED : QN_PRIM_AVERAGE_POOL);
}

qn_status qn_dnnl_claim_lrn(bool *taken, qn_claim *claim)
{
    const qn_lrn_attrs *a = claim->node->attrs;
    qn_tensor x;
    qn_dnnl_step *s;
    qn_geometry g = {.rank = 2};
    if (!qn_build_shape(&x, claim->builder, claim->node->in[0]) || x.dtype != QN_FLOAT32 ||
        x.rank != 4 || a->size % 2 == 0 || qn_tensor_count(&x) == 0)
        return QN_OK;
    QN_TRY(qn_dnnl_step_create(&s, claim));
    g.samples = x.dims[0];
    g.channels = x.dims[1];
    memcpy(g.in, x.dims + 2, 2 * sizeof *g.in);
    memcpy(g.out, x.dims + 2, 2 * sizeof *g.out);
    s->spec.kind = QN_PRIM_LRN;
    s->spec.lrn_size = a->size;
    s->spec.lrn_alpha = a->alpha;
    s->spec.lrn_beta = a->beta;
    s->spec.lrn_bias = a->bias;
    QN_TRY(find(s, claim, &g));
    return finish(taken, s, claim, &lrn_kernel);
}
