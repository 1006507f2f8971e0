/* Conv and ConvTranspose. */
#include <string.h>

#include "backend/cpu/geometry.h"
#include "backend/dnnl/dnnl.h"
#include "backend/dnnl/step.h"

static const qn_kernel conv_kernel = QN_DNNL_KERNEL("dnnl conv");

static int64_t padded(int64_t channels, qn_layout layout)
{
    return layout.block ? (channels + layout.block - 1) / layout.block * layout.block : channels;
}

/* ---- What oneDNN is asked for ---------------------------------------------------------------- */

/* Layouts in which a convolution may work. With `whole` the channels are rounded up to whole
 * blocks, the padding being channels with zero weights: some kernels know no rest. */
typedef struct choice {
    qn_layout src, dst;
    bool whole;
} choice;

static void activation(qn_prim_tensor *out, const qn_geometry *g, qn_layout layout, bool is_dst)
{
    *out = (qn_prim_tensor){.rank = g->rank + 2, .layout = layout};
    out->dims[0] = g->samples;
    out->dims[1] = is_dst ? g->filters : g->channels;
    memcpy(out->dims + 2, is_dst ? g->out : g->in, (size_t)g->rank * sizeof *g->in);
}

/* [groups,] outputs, inputs, kernel...; `plain` is how the file has it: inputs and outputs of a
 * ConvTranspose are swapped there. */
static void weights_of(qn_dnnl_step *s, const qn_geometry *g, int64_t filters, int64_t channels)
{
    qn_prim_tensor *w = &s->spec.weights, *plain = &s->plain;
    const bool transposed = s->spec.kind == QN_PRIM_DECONV;
    const int64_t outputs = g->filters / g->groups, inputs = g->channels / g->groups;
    int64_t step = 1;
    int32_t d = 0;
    *w = (qn_prim_tensor){.format = QN_PRIM_ANY};
    if (g->groups > 1)
        w->dims[d++] = filters == g->filters ? g->groups : filters;
    w->dims[d] = g->groups > 1 ? outputs : filters;
    w->dims[d + 1] = g->groups > 1 ? inputs : channels;
    memcpy(w->dims + d + 2, g->kernel, (size_t)g->rank * sizeof *g->kernel);
    w->rank = d + 2 + g->rank;
    *plain = *w;
    plain->format = QN_PRIM_STEPS;
    plain->dims[0] = g->groups > 1 ? g->groups : outputs;
    if (g->groups == 1)
        plain->dims[1] = inputs;
    for (int32_t k = w->rank - 1; k >= d + 2; k--) {
        plain->steps[k] = step;
        step *= w->dims[k];
    }
    plain->steps[d + 1] = transposed ? step * outputs : step;
    plain->steps[d] = transposed ? step : step * inputs;
    if (d)
        plain->steps[0] = step * inputs * outputs;
}

static void window_of(qn_prim_spec *spec, const qn_geometry *g)
{
    for (int32_t d = 0; d < g->rank; d++) {
        spec->kernel[d] = g->kernel[d];
        spec->stride[d] = g->stride[d];
        spec->dilation[d] = g->dilation[d];
        spec->pad_begin[d] = g->pad_begin[d];
        spec->pad_end[d] = g->pad_end[d];
        if (spec->kind == QN_PRIM_DECONV) /* what output_padding adds is less pad */
            spec->pad_end[d] = (g->in[d] - 1) * g->stride[d] + (g->kernel[d] - 1) * g->dilation[d] +
                               1 - g->out[d] - g->pad_begin[d];
    }
}

static void spec_of(qn_dnnl_step *s, const qn_geometry *g, const choice *c, bool has_bias)
{
    qn_prim_spec *spec = &s->spec;
    activation(&spec->src, g, c->src, false);
    activation(&spec->dst, g, c->dst, true);
    s->is_padded = c->whole;
    if (c->whole) {
        spec->src.dims[1] = padded(g->channels, c->src);
        spec->dst.dims[1] = padded(g->filters, c->dst);
    }
    weights_of(s, g, spec->dst.dims[1], spec->src.dims[1]);
    s->repacks = !s->weights && spec->kind == QN_PRIM_CONV;
    if (!s->weights && !s->repacks)
        spec->weights = s->plain;
    spec->bias = (qn_prim_tensor){.rank = has_bias ? 1 : 0, .dims = {spec->dst.dims[1]}};
    window_of(spec, g);
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static bool is_depthwise(const qn_geometry *g)
{
    return g->groups == g->channels && g->groups == g->filters;
}

/* The first choice that oneDNN has a fast kernel for. */
static qn_status find(qn_dnnl_step *s, const qn_claim *claim, const qn_geometry *g, bool has_bias)
{
    const qn_layout native = qn_layout_native(), last = {QN_LAYOUT_CHANNELS_LAST, 0};
    const choice choices[] = {{QN_ROWS, native, false}, {native, native, false},
                              {native, native, true},   {QN_ROWS, native, false},
                              {last, last, false},      {QN_ROWS, QN_ROWS, false}};
    const bool few = g->channels <= 4 && !is_depthwise(g) &&
                     qn_build_layout(claim->builder, claim->node->in[0]).kind == QN_LAYOUT_ROWS;
    for (size_t i = few ? 0 : 1; i < QN_COUNT_OF(choices) && !s->prim; i++) {
        if (choices[i].whole && ((g->groups > 1 && !is_depthwise(g)) || !s->weights))
            continue;
        spec_of(s, g, &choices[i], has_bias);
        QN_TRY(qn_dnnl_step_find(s, claim));
    }
    return QN_OK;
}

static qn_status copy_bias(qn_dnnl_step *s, const qn_claim *claim, const qn_tensor *bias)
{
    if (!bias)
        return QN_OK;
    /* To whole vectors: a kernel may read the last one as such. */
    const size_t count = ((size_t)s->spec.bias.dims[0] + 15) / 16 * 16;
    s->bias = qn_build_alloc(claim->builder, count * sizeof *s->bias);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s->bias);
    memcpy(s->bias, bias->data, (size_t)qn_tensor_count(bias) * sizeof *s->bias);
    return QN_OK;
}

static qn_status claim_conv(bool *taken, qn_claim *claim, qn_prim_kind kind)
{
    qn_geometry g;
    qn_dnnl_step *s;
    const qn_node *node = claim->node;
    const qn_value *given = node->n_in > 2 ? node->in[2] : NULL;
    const qn_tensor *bias = given ? given->data : NULL;
    if (!qn_geometry_conv_any(&g, claim->builder, node))
        return QN_OK;
    QN_TRY(qn_dnnl_step_create(&s, claim));
    s->spec.kind = kind;
    s->weights = node->in[1]->data;
    QN_TRY(find(s, claim, &g, given != NULL));
    if (!s->prim)
        return QN_OK;
    qn_status status = copy_bias(s, claim, bias);
    if (status == QN_OK)
        status = qn_dnnl_step_finish(s, claim, &conv_kernel);
    if (status != QN_OK)
        qn_dnnl_step_free(s);
    *taken = status == QN_OK;
    return status;
}

qn_status qn_dnnl_claim_conv(bool *taken, qn_claim *claim)
{
    return claim_conv(taken, claim, QN_PRIM_CONV);
}

qn_status qn_dnnl_claim_conv_transpose(bool *taken, qn_claim *claim)
{
    return claim_conv(taken, claim, QN_PRIM_DECONV);
}
