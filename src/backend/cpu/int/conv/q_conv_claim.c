/* QLinearConv and ConvIntegerToFloat. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_layer.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"

static const qn_kernel conv_kernels[] = {QN_Q_LAYER_KERNEL("int8 conv"),
                                         QN_Q_LAYER_KERNEL("int16 conv")};

static void describe(qn_q_conv *c, const qn_geometry *g)
{
    const qn_q_conv_grid grid = {.samples = g->samples,
                                 .height = g->in[0],
                                 .width = g->in[1],
                                 .out_height = g->out[0],
                                 .out_width = g->out[1],
                                 .kernel = {g->kernel[0], g->kernel[1]},
                                 .stride = {g->stride[0], g->stride[1]},
                                 .dilation = {g->dilation[0], g->dilation[1]},
                                 .pad = {g->pad_begin[0], g->pad_begin[1]}};
    *c = (qn_q_conv){.shape = {.grid = grid,
                               .channels = g->channels,
                               .groups = g->groups,
                               .group_channels = g->channels / g->groups,
                               .group_filters = g->filters / g->groups}};
}

static qn_status create(qn_q_layer **out, const qn_claim *claim, const qn_q_ports *ports)
{
    qn_geometry g;
    *out = NULL;
    if (!qn_geometry_q_conv(&g, claim) || g.rank != 2)
        return QN_OK;
    QN_TRY(qn_q_layer_create(out, claim, ports));
    if (!*out)
        return QN_OK;
    describe(&(*out)->conv, &g);
    (*out)->layout = QN_LAST;
    return QN_OK;
}

qn_status qn_q_conv_create(qn_q_layer **out, const qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    return create(out, claim, &ports);
}

qn_status qn_claim_q_conv(bool *taken, qn_claim *claim)
{
    qn_q_layer *l = NULL;
    QN_TRY(qn_q_conv_create(&l, claim));
    return l ? qn_q_layer_claim(taken, claim, l, conv_kernels) : QN_OK;
}

qn_status qn_claim_q_conv_float(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, -1, -1, 6};
    qn_q_layer *l = NULL;
    QN_TRY(create(&l, claim, &ports));
    if (!l)
        return QN_OK;
    l->tail.maps = true;
    return qn_q_layer_claim(taken, claim, l, conv_kernels);
}
