/* Nodes that multiply integers by constant weights: claims, parameters, the kernel they share. */
#include "backend/cpu/int/conv/q_layer.h"

#include <math.h>

#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "ops/quantize.h"

/* ---- Preparing ------------------------------------------------------------------------------- */

static const qn_tensor *constant(const qn_node *node, int32_t i)
{
    return i >= 0 && i < node->n_in && node->in[i] ? node->in[i]->data : NULL;
}

static double number_or(const qn_node *node, int32_t i, double otherwise)
{
    const qn_tensor *data = constant(node, i);
    return data ? qn_q_element(data, 0) : otherwise;
}

/* The node's filter that one of the kernel's stands for. */
static int64_t filter_of(const qn_q_layer *l, int64_t filter)
{
    return l->period ? filter / l->conv.shape.group_filters * l->period + filter % l->period
                     : filter;
}

/* f32(acc) + f32(bias) is acc + bias where both and their sum are exact in float: then the sum
 * begins with it. */
static bool takes_bias(const qn_q_conv *c, int64_t at, double bias)
{
    return c->shape.kind != QN_MAC_INT8 || c->packed.reach[at] + fabs(bias) <= 0x1p24;
}

/* What bias and multipliers are made of. */
typedef struct layer_numbers {
    /* The scales and the bias of the filters; bias may be NULL. */
    const qn_tensor *scales, *bias;
    float x_scale, y_scale;
} layer_numbers;

static layer_numbers numbers_of(const qn_q_layer *l)
{
    return (layer_numbers){.scales = constant(l->node, l->ports.w_scale),
                           .bias = constant(l->node, l->ports.bias),
                           .x_scale = l->factor * (float)number_or(l->node, l->ports.x_scale, 1),
                           .y_scale = (float)number_or(l->node, l->ports.y_scale, 1)};
}

static float multiplier_of(const layer_numbers *n, int64_t filter)
{
    return qn_multiplier(n->x_scale, (float)qn_q_element(n->scales, filter), n->y_scale);
}

/* Where sums are rounded twice. */
typedef struct twice_list {
    float *rest, *first;
} twice_list;

static qn_status make_twice(twice_list *out, const qn_q_layer *l, const qn_claim *claim,
                            int64_t count)
{
    *out = (twice_list){NULL, NULL};
    if (qn_node_requantization(l->node) != QN_REQUANTIZE_TWICE)
        return QN_OK;
    out->rest = qn_build_alloc(claim->builder, (size_t)count * sizeof *out->rest);
    out->first = qn_build_alloc(claim->builder, (size_t)count * sizeof *out->first);
    return out->rest && out->first ? QN_OK : qn_fail_nomem(qn_build_context(claim->builder));
}

static float twice_of(const twice_list *list, const layer_numbers *n, const qn_q_conv *c,
                      const int64_t at_filter[2])
{
    const qn_twice m = qn_twice_of(n->x_scale, (float)qn_q_element(n->scales, at_filter[1]),
                                   n->y_scale, c->source.is_signed);
    list->rest[at_filter[0]] = m.rest;
    list->first[at_filter[0]] = m.first;
    return m.multiplier;
}

/* Runs of depthwise outputs have an epilogue of their own. */
static void share_epilogue(qn_q_conv *c)
{
    if (c->plan.algorithm == QN_Q_CONV_DEPTHWISE)
        c->depthwise.depth.epilogue = c->mac.epilogue;
}

/* Bias and multipliers in the order of the packed filters. */
static qn_status make_float_params(qn_q_layer *l, const qn_claim *claim)
{
    qn_q_conv *c = &l->conv;
    const layer_numbers n = numbers_of(l);
    const int64_t count = qn_q_conv_params(c);
    float *b = qn_build_alloc(claim->builder, (size_t)count * sizeof *b);
    float *m = qn_build_alloc(claim->builder, (size_t)count * sizeof *m);
    bool *biased = qn_build_alloc(claim->builder, (size_t)(count / c->plan.kernels->lanes));
    bool any_biased = false;
    double most = 0;
    twice_list twice;
    QN_TRY(make_twice(&twice, l, claim, count));
    if (!b || !m || !biased)
        return qn_fail_nomem(qn_build_context(claim->builder));
    for (int64_t at = 0; at < count; at++) {
        const int64_t place = qn_q_conv_param_filter(c, at), f = filter_of(l, place);
        if (place < 0)
            continue;
        m[at] = twice.first ? twice_of(&twice, &n, c, (int64_t[2]){at, f}) : multiplier_of(&n, f);
        const double added = n.bias ? qn_q_element(n.bias, f) : 0;
        const bool taken = takes_bias(c, at, added);
        c->mac.begin[at] += added;
        if (taken && c->shape.kind == QN_MAC_INT8)
            c->packed.start[at] += (int32_t)added;
        b[at] = taken ? 0 : (float)added;
        biased[at / c->plan.kernels->lanes] |= !taken;
        any_biased = any_biased || !taken;
        most = fmax(most, fabs(added));
    }
    c->mac.epilogue.bias = b;
    c->mac.epilogue.biased = any_biased ? biased : NULL;
    c->mac.epilogue.scale = m;
    c->mac.epilogue.rest = twice.rest;
    c->mac.epilogue.first_rounding = twice.first;
    const double product = c->shape.kind == QN_MAC_INT8 ? 255.0 * 255.0 : 0x1p33;
    qn_q_epilogue_bound(&c->mac.epilogue, most + product * (double)qn_q_conv_length(c), count);
    share_epilogue(c);
    return c->packed.step_runs ? qn_q_conv_find_near(c, claim->builder) : QN_OK;
}

/* In fixed point sums and biases are exact, and what is left of them is small. */
static qn_status make_fixed_point_params(qn_q_layer *l, const qn_claim *claim)
{
    qn_q_conv *c = &l->conv;
    const layer_numbers n = numbers_of(l);
    const int64_t count = qn_q_conv_params(c);
    qn_q_fixed_point fixed_point;
    QN_TRY(qn_q_fixed_point_make(&fixed_point, claim, count));
    for (int64_t at = 0; at < count; at++) {
        const int64_t place = qn_q_conv_param_filter(c, at), f = filter_of(l, place);
        if (place < 0)
            continue;
        fixed_point.multipliers[at] = qn_normal_value(qn_normal_of((double)multiplier_of(&n, f)));
        fixed_point.bias[at] = n.bias ? qn_q_element(n.bias, f) : 0;
        c->mac.begin[at] += fixed_point.bias[at];
    }
    qn_q_fixed_point_set(&c->mac.epilogue, &fixed_point, count);
    share_epilogue(c);
    return QN_OK;
}

static qn_status make_params(qn_q_layer *l, const qn_claim *claim)
{
    const bool fixed_point =
        l->node->out[0]->type.dtype != QN_FLOAT32 && qn_node_is_fixed_point(l->node);
    return fixed_point ? make_fixed_point_params(l, claim) : make_float_params(l, claim);
}

/* The list of zero points is the plan's. */
static qn_status weights_of(qn_q_weights *out, const qn_q_layer *l, const qn_claim *claim)
{
    const int64_t filters = qn_q_conv_filters(&l->conv);
    const qn_tensor *w = constant(l->node, l->ports.w);
    const qn_tensor *zeros = constant(l->node, l->ports.w_zero);
    int32_t *list = qn_build_alloc(claim->builder, (size_t)filters * sizeof *list);
    QN_TRY_ALLOC(qn_build_context(claim->builder), list);
    for (int64_t f = 0; zeros && f < filters; f++)
        list[f] = (int32_t)qn_q_element(zeros, filter_of(l, f));
    *out = (qn_q_weights){.data = l->weights ? l->weights : w->data,
                          .is_signed = qn_dtype_get(w->dtype)->kind == QN_KIND_INT,
                          .is_int16 = qn_dtype_size(w->dtype) == 2,
                          .by_column = l->by_column,
                          .zeros = list};
    return QN_OK;
}

qn_status qn_q_layer_pack(size_t *scratch, qn_q_layer *l, qn_claim *claim)
{
    qn_q_conv *c = &l->conv;
    qn_q_weights w;
    c->mac.epilogue = l->tail.epilogue;
    c->weight_info.constant = true;
    c->memory.x_stride = l->x_stride ? l->x_stride : (int64_t)claim->in[l->x].stride;
    c->memory.y_stride = l->y_stride ? l->y_stride : (int64_t)claim->out[0].stride;
    if (l->tail.residual >= 0)
        c->memory.r_stride = (int64_t)claim->in[l->tail.residual].stride;
    QN_TRY(weights_of(&w, l, claim));
    if (c->shape.grid.kernel[0] == 3 && c->shape.grid.kernel[1] == 3)
        c->weight_info.largest =
            qn_q_weights_largest(&w, qn_q_conv_filters(c), qn_q_conv_length(c));
    QN_TRY(qn_q_conv_make_plan(c, claim->builder, qn_build_threads(claim->builder)));
    QN_TRY(qn_q_conv_pack(c, claim->builder, &w));
    *scratch = qn_q_conv_scratch(c);
    return make_params(l, claim);
}

qn_status qn_q_layer_prepare(qn_claim *claim)
{
    return qn_q_layer_pack(&claim->scratch, claim->state, claim);
}

qn_status qn_q_layer_run(const void *state, void *bound, const qn_step_io *io)
{
    const qn_q_layer *l = state;
    qn_q_conv_data data = {.x = io->in[0]->data, .y = io->out[0]->data, .scratch = io->scratch};
    (void)bound;
    if (l->tail.residual >= 0)
        data.r = io->in[l->tail.residual]->data;
    qn_q_conv_run(&l->conv, &data, io->threads);
    return QN_OK;
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static bool is_single(const qn_node *node, int32_t i)
{
    const qn_tensor *data = constant(node, i);
    return i < 0 || i >= node->n_in || !node->in[i] || (data && qn_tensor_count(data) == 1);
}

/* int32, and int64 of a reasonable size where a side has 16 bits: then the bias is part of an exact
 * sum. */
static bool is_bias(const qn_tensor *bias, bool is_int16)
{
    const double most = 0x1p50;
    if (!bias || bias->dtype == QN_INT32)
        return true;
    for (int64_t i = 0; is_int16 && i < qn_tensor_count(bias); i++) {
        if (!(fabs(qn_q_element(bias, i)) < most))
            return false;
    }
    return is_int16 && bias->dtype == QN_INT64;
}

/* Numbers of 8 and 16 bits, everything but x constant, lists only for filters. */
static bool is_wanted(const qn_node *node, const qn_q_ports *p)
{
    const qn_value *x = node->in[p->x], *w = node->in[p->w], *y = node->out[0];
    const qn_tensor *bias = constant(node, p->bias), *scales = constant(node, p->w_scale);
    for (int32_t i = 0; i < node->n_in; i++) {
        if (i != p->x && node->in[i] && !node->in[i]->data)
            return false;
    }
    return x && w && y && scales && qn_q_is_integer(x->type.dtype) &&
           qn_q_is_integer(w->type.dtype) &&
           (qn_q_is_integer(y->type.dtype) || y->type.dtype == QN_FLOAT32) &&
           scales->dtype == QN_FLOAT32 && is_bias(bias, !qn_q_is_byte(x) || !qn_q_is_byte(w)) &&
           is_single(node, p->x_scale) && is_single(node, p->x_zero) &&
           is_single(node, p->y_scale) && is_single(node, p->y_zero);
}

qn_status qn_q_layer_create(qn_q_layer **out, const qn_claim *claim, const qn_q_ports *ports)
{
    *out = NULL;
    if (!is_wanted(claim->node, ports))
        return QN_OK;
    qn_q_layer *l = qn_build_alloc(claim->builder, sizeof *l);
    QN_TRY_ALLOC(qn_build_context(claim->builder), l);
    l->node = claim->node;
    l->ports = *ports;
    l->factor = 1;
    *out = l;
    return QN_OK;
}

/* Kernels by runs read 16-bit numbers as they are: weights of 8 bits become such where that takes
 * little memory. */
static bool takes_int16_weights(const qn_q_conv *c, const qn_q_weights *w)
{
    enum { FEW = 1 << 20 };
    const int64_t filters = qn_q_conv_filters(c), length = qn_q_conv_length(c);
    if (!qn_mac_kernels_get(QN_MAC_INT16, false)->by_runs)
        return !c->weight_info.fit_int8 && qn_q_weights_fit(w, filters, length, 16);
    if (c->weight_info.fit_int8)
        return c->shape.groups == 1 && filters * length <= FEW;
    return qn_q_weights_balanced(w, filters, length);
}

static void choose_kind(qn_q_conv *c, const qn_q_weights *w)
{
    const int64_t filters = qn_q_conv_filters(c), length = qn_q_conv_length(c);
    c->weight_info.fit_int8 = qn_q_weights_fit(w, filters, length, 8);
    if (!c->source.is_int16 && !w->is_int16)
        c->shape.kind = QN_MAC_INT8;
    else if (takes_int16_weights(c, w))
        c->shape.kind = QN_MAC_INT16;
    else
        c->shape.kind = c->weight_info.fit_int8 ? QN_MAC_INT16_BY_INT8 : QN_MAC_INT16_SPLIT;
}

/* The claim's input of that value, added where it has none yet. */
static int32_t input_of(qn_claim *claim, qn_value *x, qn_layout layout)
{
    int32_t i = 0;
    while (i < claim->n_in && claim->in[i].value != x)
        i++;
    if (i == claim->n_in)
        qn_claim_in(claim, x, layout)->strided = layout.kind == QN_LAYOUT_CHANNELS_LAST;
    return i;
}

qn_status qn_q_layer_open(bool *fits, qn_q_layer *l, qn_claim *claim)
{
    const qn_node *node = l->node;
    qn_value *x = node->in[l->ports.x], *y = node->out[0];
    qn_q_conv *c = &l->conv;
    qn_q_weights w;
    c->source = (qn_mac_source){.is_signed = qn_dtype_get(x->type.dtype)->kind == QN_KIND_INT,
                                .zero = (int32_t)number_or(node, l->ports.x_zero, 0),
                                .is_int16 = !qn_q_is_byte(x)};
    QN_TRY(weights_of(&w, l, claim));
    choose_kind(c, &w);
    *fits = qn_q_conv_fits(c);
    if (!*fits)
        return QN_OK;
    const bool alone = l->tail.alone || l->period > 0, maps = l->tail.maps;
    l->x = input_of(claim, x, l->layout);
    qn_q_tail_begin(&l->tail, y, (int64_t)number_or(node, l->ports.y_zero, 0));
    l->tail.alone = alone;
    l->tail.maps = maps;
    return qn_q_tail_grow(&l->tail, claim, l->layout);
}

qn_status qn_q_layer_claim(bool *taken, qn_claim *claim, qn_q_layer *l, const qn_kernel kernels[2])
{
    const qn_layout native = qn_layout_native();
    qn_q_conv *c = &l->conv;
    bool fits = false;
    QN_TRY(qn_q_layer_open(&fits, l, claim));
    if (!fits)
        return QN_OK;
    c->memory.blocked =
        l->tail.epilogue.floats && l->tail.maps && c->shape.groups == 1 &&
        qn_q_wants_blocks(l->tail.out) &&
        qn_mac_kernels_get(c->shape.kind, c->weight_info.fit_int8)->lanes == native.block &&
        c->shape.group_filters % native.block == 0;
    qn_q_tail_close(&l->tail, claim, c->memory.blocked ? native : l->layout);
    claim->state = l;
    claim->kernel = &kernels[l->conv.shape.kind != QN_MAC_INT8];
    *taken = true;
    return QN_OK;
}
