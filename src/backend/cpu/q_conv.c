/* QLinearConv on the walk of q_conv.h. */
#include <math.h>

#include "backend/cpu/q_conv.h"

#include "backend/cpu/cpu.h"
#include "ops/quantize.h"
#include "ops/window.h"

static const qn_layout last = {QN_LAYOUT_CHANNELS_LAST, 0};

typedef struct state {
    qn_q_conv conv;
    qn_q_tail tail;
    const qn_node *node;
} state;

/* ---- Kernel ------------------------------------------------------------------------------------------------ */

/* Bias and multipliers in the order of the packed filters. */
static qn_status make_params(state *s, const qn_claim *claim)
{
    qn_q_conv *c = &s->conv;
    const qn_node *node = s->node;
    const qn_tensor *scales = node->in[4]->data;
    const qn_tensor *bias = node->n_in > 8 && node->in[8] ? node->in[8]->data : NULL;
    const size_t count = (size_t)qn_q_conv_params(c);
    float *b = qn_build_alloc(claim->builder, count * sizeof *b);
    float *m = qn_build_alloc(claim->builder, count * sizeof *m);
    double x_scale = 1, y_scale = 1, most = 0;
    if (!b || !m)
        return qn_fail_nomem(qn_build_context(claim->builder));
    (void)qn_q_number(&x_scale, node, 1);
    (void)qn_q_number(&y_scale, node, 6);
    for (int64_t at = 0; at < (int64_t)count; at++) {
        const int64_t f = qn_q_conv_filter(c, at);
        if (f < 0)
            continue;
        const double scale = qn_q_element(scales, f);
        m[at] = qn_q_multiplier(x_scale, scale, y_scale);
        b[at] = bias ? (float)qn_q_element(bias, f) : 0;
        most = fmax(most, fabs((double)b[at]));
    }
    c->mac.finish.bias = b;
    c->mac.finish.scale = m;
    qn_q_tail_bound(&c->mac.finish, most + 255.0 * 255.0 * (double)qn_q_conv_length(c),
                    (int64_t)count);
    c->depth.finish = c->mac.finish;
    return QN_OK;
}

/* Zero points of the filters, in the plan's memory. */
static qn_status weights_of(qn_q_weights *out, const qn_claim *claim, int64_t filters)
{
    const qn_tensor *w = claim->node->in[3]->data, *zeros = claim->node->in[5]->data;
    int32_t *list = qn_build_alloc(claim->builder, (size_t)filters * sizeof *list);
    QN_TRY_ALLOC(qn_build_context(claim->builder), list);
    for (int64_t f = 0; f < filters; f++)
        list[f] = (int32_t)qn_q_element(zeros, f);
    *out = (qn_q_weights){.data = w->data, .is_signed = w->dtype == QN_INT8, .zeros = list};
    return QN_OK;
}

static qn_status conv_prepare(qn_claim *claim)
{
    state *s = claim->state;
    qn_q_conv *c = &s->conv;
    qn_q_weights w;
    c->mac.finish = s->tail.finish;
    c->x_stride = (int64_t)claim->in[0].stride;
    c->y_stride = (int64_t)claim->out[0].stride;
    if (s->tail.residual >= 0)
        c->r_stride = (int64_t)claim->in[s->tail.residual].stride;
    QN_TRY(weights_of(&w, claim, c->groups * c->group_filters));
    QN_TRY(qn_q_conv_plan(c, claim->builder));
    QN_TRY(qn_q_conv_pack(c, claim->builder, &w));
    claim->scratch = qn_q_conv_scratch(c);
    return make_params(s, claim);
}

static qn_status conv_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    qn_q_conv_data data = {.x = io->in[0]->data, .y = io->out[0]->data, .scratch = io->scratch};
    (void)bound;
    if (s->tail.residual >= 0)
        data.r = io->in[s->tail.residual]->data;
    qn_q_conv_run(&s->conv, &data, io->threads);
    return QN_OK;
}

static const qn_kernel conv_kernel = {
    .name = "int8 conv", .prepare = conv_prepare, .run = conv_run};

/* ---- Claiming ----------------------------------------------------------------------------------------------- */

static void describe(qn_q_conv *c, const qn_geometry *g)
{
    *c = (qn_q_conv){.samples = g->samples,
                     .channels = g->channels,
                     .height = g->in[0],
                     .width = g->in[1],
                     .out_height = g->out[0],
                     .out_width = g->out[1],
                     .groups = g->groups,
                     .group_channels = g->channels / g->groups,
                     .group_filters = g->filters / g->groups};
    for (int d = 0; d < 2; d++) {
        c->kernel[d] = g->kernel[d];
        c->stride[d] = g->stride[d];
        c->dilation[d] = g->dilation[d];
        c->pad[d] = g->pad_begin[d];
    }
}

/* 8-bit numbers, and everything but x constant. */
static bool is_wanted(const qn_node *node)
{
    for (int32_t i = 1; i < node->n_in; i++) {
        if (node->in[i] && !node->in[i]->data)
            return false;
    }
    return qn_q_is_byte(node->in[0]) && qn_q_is_byte(node->in[3]) && qn_q_is_byte(node->out[0]);
}

qn_status qn_claim_q_conv(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_geometry g;
    qn_q_weights w;
    double x_zero, y_zero;
    if (!is_wanted(node) || !qn_geometry_q_conv(&g, claim) || g.rank != 2 ||
        !qn_q_number(&x_zero, node, 2) || !qn_q_number(&y_zero, node, 7))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    describe(&s->conv, &g);
    s->node = node;
    s->conv.source = (qn_mac_source){node->in[0]->type.dtype == QN_INT8, (int32_t)x_zero};
    QN_TRY(weights_of(&w, claim, g.filters));
    s->conv.narrow = qn_q_weights_narrow(&w, g.filters, qn_q_conv_length(&s->conv));
    if (!qn_q_conv_fits(&s->conv))
        return QN_OK;
    qn_claim_in(claim, node->in[0], last)->strided = true;
    qn_q_tail_begin(&s->tail, node->out[0], node->out[0]->type.dtype, (int64_t)y_zero);
    QN_TRY(qn_q_tail_grow(&s->tail, claim, last));
    qn_q_tail_finish(&s->tail, claim, last);
    claim->state = s;
    claim->kernel = &conv_kernel;
    *taken = true;
    return QN_OK;
}
