/* Finds where factors of channels act, and applies them to weights. */
#include "quant/smooth_channels.h"

#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/kinds.h"
#include "ops/nn_attrs.h"
#include "ops/resize.h"
#include "ops/tensor_attrs.h"
#include "pass/rewrite.h"

/* ---- Who computes the value ------------------------------------------------------------------ */

static bool has_own_weights(const qn_node *node, int32_t slot)
{
    const qn_value *w = slot < node->n_in ? node->in[slot] : NULL;
    return !w || (w->data && w->data->dtype == QN_FLOAT32 && w->n_users == 1);
}

/* One for each filter, or none. */
static bool has_own_bias(const qn_weighted_node *m)
{
    const qn_node *node = m->bias_node;
    const qn_value *bias = node && m->bias_slot < node->n_in ? node->in[m->bias_slot] : NULL;
    return !bias ||
           (has_own_weights(node, m->bias_slot) && qn_tensor_count(bias->data) == m->filters);
}

/* Scale and bias of the last axis. */
static bool is_norm(const qn_node *node, int32_t rank)
{
    const qn_norm_attrs *a = node->attrs;
    const qn_value *scale = node->n_in > 1 ? node->in[1] : NULL;
    const qn_value *bias = node->n_in > 2 ? node->in[2] : NULL;
    return node->op == &qn_op_LayerNormalization && rank > 0 &&
           (a->axis == -1 || a->axis == rank - 1) && scale && scale->data &&
           scale->data->rank == 1 && has_own_weights(node, 1) && has_own_weights(node, 2) &&
           (!bias || (bias->data->rank == 1 && bias->data->dims[0] == scale->data->dims[0]));
}

/* The node whose product the value is, a bias behind it included. */
static bool find_product(qn_weighted_node *out, const qn_value *value)
{
    qn_node *node = value->producer;
    if (qn_weighted_node_of(out, node))
        return !out->bias_node || out->bias_node == node;
    for (int32_t i = 0; node->op == &qn_op_Add && i < 2; i++) {
        qn_node *before = qn_match_only(node->in[i], &qn_op_MatMul);
        if (before && qn_weighted_node_of(out, before) && out->bias_node == node)
            return true;
    }
    return false;
}

static bool find_source(qn_smooth_region *s, qn_value *value)
{
    const int32_t rank = value->type.rank;
    if (!value->producer || value->producer->out[0] != value || rank < 2)
        return false;
    s->value = value;
    s->values[0] = (qn_smooth_member){.value = value, .axis = rank - 1, .repeat = 1};
    s->n_values = 1;
    if (is_norm(value->producer, rank)) {
        s->norm = value->producer;
        s->channels = s->norm->in[1]->data->dims[0];
    } else if (find_product(&s->layer, value)) {
        const bool window = qn_op_is_convolution(s->layer.node->op);
        s->values[0].axis = window ? 1 : rank - 1;
        s->channels = s->layer.filters;
        if (!has_own_weights(s->layer.node, 1) || !has_own_bias(&s->layer))
            return false;
    } else {
        return false;
    }
    return value->type.dims[s->values[0].axis].value == s->channels;
}

/* ---- Who lets the factors pass --------------------------------------------------------------- */

typedef bool carry_fn(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                      int32_t slot);

/* f(x * factor) = f(x) * factor in every channel, which stays where it is. */
static bool carry_same(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                       int32_t slot)
{
    const qn_type *from = &node->in[slot]->type, *to = &node->out[0]->type;
    (void)s;
    return slot == 0 && to->rank == from->rank && from->dims[out->axis].value > 1 &&
           to->dims[out->axis].value == from->dims[out->axis].value;
}

static bool carry_limits(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                         int32_t slot)
{
    double limits[2];
    if (!qn_match_limits(limits, node) || !(limits[1] > 0) ||
        (limits[0] != 0 && limits[0] != -(double)INFINITY))
        return false;
    s->limited = s->limited || limits[1] < (double)INFINITY;
    return carry_same(out, s, node, slot);
}

/* A constant slope of each channel, or one. */
static bool carry_prelu(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                        int32_t slot)
{
    return node->in[1]->data && carry_same(out, s, node, slot);
}

/* The other side has no factors: see clean_products. */
static bool carry_product(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                          int32_t slot)
{
    const qn_type *from = &node->in[slot]->type, *to = &node->out[0]->type;
    (void)s;
    return to->rank == from->rank && from->dims[out->axis].value > 1 &&
           to->dims[out->axis].value == from->dims[out->axis].value;
}

static bool carry_resize(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                         int32_t slot)
{
    const qn_resize_attrs *a = node->attrs;
    return a->coordinate_transformation_mode != QN_COORD_TF_CROP_AND_RESIZE &&
           carry_same(out, s, node, slot);
}

static bool carry_concat(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                         int32_t slot)
{
    const int64_t axis = ((const qn_concat_attrs *)node->attrs)->axis;
    const int32_t rank = node->in[slot]->type.rank;
    (void)s;
    if ((axis < 0 ? axis + rank : axis) != out->axis)
        return false;
    for (int32_t i = 0; i < slot; i++) {
        const int64_t before = node->in[i]->type.dims[out->axis].value;
        if (before < 0)
            return false;
        out->first += before;
    }
    return node->out[0]->type.dims[out->axis].value > 0;
}

/* [N, C, ...] becomes [N, C * ...]: neighbours that had one channel. */
static bool carry_reshape(qn_smooth_member *out, qn_smooth_region *s, const qn_node *node,
                          int32_t slot)
{
    const qn_type *from = &node->in[slot]->type, *to = &node->out[0]->type;
    int64_t inner = 1;
    (void)s;
    if (slot != 0 || out->axis != 1 || to->rank != 2)
        return false;
    for (int32_t d = 2; d < from->rank; d++) {
        if (from->dims[d].value < 1 || from->dims[d].value > INT32_MAX / inner)
            return false;
        inner *= from->dims[d].value;
    }
    if (from->dims[1].value < 1 || from->dims[1].value > INT32_MAX / inner ||
        to->dims[1].value != from->dims[1].value * inner)
        return false;
    out->first *= inner;
    out->repeat *= inner;
    return true;
}

static const struct {
    const qn_op *op;
    carry_fn *carry;
} passing[] = {
    {&qn_op_Relu, carry_limits},
    {&qn_op_Clip, carry_limits},
    {&qn_op_LeakyRelu, carry_same},
    {&qn_op_PRelu, carry_prelu},
    {&qn_op_MaxPool, carry_same},
    {&qn_op_AveragePool, carry_same},
    {&qn_op_GlobalAveragePool, carry_same},
    {&qn_op_GlobalMaxPool, carry_same},
    {&qn_op_ReduceMean, carry_same},
    {&qn_op_Identity, carry_same},
    {&qn_op_Resize, carry_resize},
    {&qn_op_Mul, carry_product},
    {&qn_op_Concat, carry_concat},
    {&qn_op_Flatten, carry_reshape},
    {&qn_op_Reshape, carry_reshape},
};

/* ---- Who reads ------------------------------------------------------------------------------- */

static bool add_reader(qn_smooth_region *s, const qn_smooth_member *from, qn_node *node)
{
    qn_weighted_node layer;
    const bool window = qn_op_is_convolution(node->op);
    const qn_gemm_attrs *gemm = node->op == &qn_op_Gemm ? node->attrs : NULL;
    if (!qn_weighted_node_of(&layer, node) || (gemm && gemm->transA) || !has_own_weights(node, 1) ||
        from->axis != (window ? 1 : from->value->type.rank - 1) ||
        from->value->type.dims[from->axis].value != layer.channels ||
        s->n_readers == QN_SMOOTH_MEMBERS_MAX)
        return false;
    s->readers[s->n_readers] = *from;
    s->readers[s->n_readers++].reader = node;
    return true;
}

static bool carries(const qn_smooth_region *s, const qn_value *value)
{
    for (size_t i = 0; i < s->n_values; i++) {
        if (s->values[i].value == value)
            return true;
    }
    return false;
}

static bool follow_user(qn_smooth_region *s, const qn_smooth_member *from, qn_node *node,
                        int32_t slot)
{
    for (size_t i = 0; i < QN_COUNT_OF(passing); i++) {
        qn_smooth_member to = *from;
        if (passing[i].op != node->op)
            continue;
        if (!passing[i].carry(&to, s, node, slot) || (node->n_out > 1 && node->out[1]) ||
            s->n_values == QN_SMOOTH_MEMBERS_MAX)
            return false;
        to.value = node->out[0];
        if (carries(s, to.value))
            return false;
        s->values[s->n_values++] = to;
        return true;
    }
    return slot == 0 && add_reader(s, from, node);
}

static bool follow_value(qn_smooth_region *s, qn_smooth_member from)
{
    if (from.value->is_output || from.value->n_users == 0)
        return false;
    for (size_t u = 0; u < from.value->n_users; u++) {
        qn_node *node = from.value->users[u];
        int32_t slot = 0, slots = 0;
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] == from.value) {
                slot = i;
                slots++;
            }
        }
        if (slots != 1 || !follow_user(s, &from, node, slot))
            return false;
    }
    return true;
}

/* A product of two values with factors would have their squares. */
static bool clean_products(const qn_smooth_region *s)
{
    for (size_t i = 1; i < s->n_values; i++) {
        const qn_node *node = s->values[i].value->producer;
        if (node->op == &qn_op_Mul && carries(s, node->in[0]) && carries(s, node->in[1]))
            return false;
    }
    return true;
}

bool qn_smooth_region_of(qn_smooth_region *out, qn_value *value)
{
    *out = (qn_smooth_region){.value = NULL};
    if (!find_source(out, value))
        return false;
    for (size_t i = 0; i < out->n_values; i++) {
        if (!follow_value(out, out->values[i]))
            return false;
    }
    return clean_products(out);
}

/* ---- Changing weights ------------------------------------------------------------------------ */

/* Weights of filter or channel i times by[i]. */
static void multiply(float *w, const qn_weighted_node *m, const float *by, bool of_filters)
{
    const int64_t first = m->w->dims[0], second = m->w->dims[1];
    for (int64_t o = 0; o < first; o++) {
        const int64_t base = o / (first / m->group) * second;
        for (int64_t i = 0; i < second; i++) {
            const float factor = by[of_filters == m->filter_first ? o : base + i];
            for (int64_t t = 0; t < m->kernel; t++)
                *w++ *= factor;
        }
    }
}

/* A copy of a constant in its place, to be changed. */
static qn_status own_copy(float **out, qn_quantizer *q, qn_node *node, int32_t slot)
{
    qn_tensor *fresh;
    const qn_tensor *old = node->in[slot]->data;
    qn_type type = qn_type_of(old);
    type.elements = NULL;
    QN_TRY(qn_model_tensor(&fresh, q->model, &type));
    memcpy(fresh->data, old->data, (size_t)qn_tensor_count(old) * sizeof(float));
    *out = (float *)fresh->data;
    QN_TRY(qn_node_put_constant(node, slot, fresh, NULL));
    qn_model_release(q->model, old);
    return QN_OK;
}

static qn_status multiply_row(qn_quantizer *q, qn_node *node, int32_t slot, const float *by)
{
    float *row;
    if (slot >= node->n_in || !node->in[slot])
        return QN_OK;
    const int64_t count = qn_tensor_count(node->in[slot]->data);
    QN_TRY(own_copy(&row, q, node, slot));
    for (int64_t i = 0; i < count; i++)
        row[i] *= by[i];
    return QN_OK;
}

/* The value is divided. */
static qn_status change_source(qn_quantizer *q, const qn_smooth_region *s, const float *inverse)
{
    float *w;
    if (s->norm) {
        QN_TRY(multiply_row(q, s->norm, 1, inverse));
        return multiply_row(q, s->norm, 2, inverse);
    }
    QN_TRY(own_copy(&w, q, s->layer.node, 1));
    multiply(w, &s->layer, inverse, true);
    return s->layer.bias_node ? multiply_row(q, s->layer.bias_node, s->layer.bias_slot, inverse)
                              : QN_OK;
}

static qn_status change_reader(qn_quantizer *q, const qn_smooth_member *r,
                               const qn_channel_factors *b)
{
    qn_weighted_node layer;
    float *w, *by;
    if (!qn_weighted_node_of(&layer, r->reader))
        return QN_OK;
    by = qn_alloc_zero(q->ctx, (size_t)layer.channels, sizeof *by);
    QN_TRY_ALLOC(q->ctx, by);
    for (int64_t i = 0; i < layer.channels; i++) {
        const int64_t c = i >= r->first ? (i - r->first) / r->repeat : b->channels;
        by[i] = c < b->channels ? b->factor[c] : 1;
    }
    const qn_status status = own_copy(&w, q, r->reader, 1);
    if (status == QN_OK)
        multiply(w, &layer, by, false);
    qn_free(q->ctx, by);
    return status;
}

static qn_status change_value(qn_quantizer *q, const qn_smooth_member *v,
                              const qn_channel_factors *b)
{
    qn_quant_value *value = qn_quant_value_of(q, v->value);
    const int64_t channels = v->value->type.dims[v->axis].value;
    if (!value->factor) {
        value->factor = qn_arena_array(&q->arena, (size_t)channels, sizeof *value->factor);
        QN_TRY_ALLOC(q->ctx, value->factor);
        value->axis = v->axis;
        for (int64_t i = 0; i < channels; i++)
            value->factor[i] = 1;
    }
    for (int64_t i = 0; i < b->channels * v->repeat; i++)
        value->factor[v->first + i] *= b->factor[i / v->repeat];
    return QN_OK;
}

static qn_status apply(qn_quantizer *q, const qn_smooth_region *s, const qn_channel_factors *b)
{
    float *inverse = qn_alloc_zero(q->ctx, (size_t)b->channels, sizeof *inverse);
    QN_TRY_ALLOC(q->ctx, inverse);
    for (int64_t c = 0; c < b->channels; c++)
        inverse[c] = 1 / b->factor[c];
    qn_status status = change_source(q, s, inverse);
    qn_free(q->ctx, inverse);
    for (size_t i = 0; i < s->n_readers && status == QN_OK; i++)
        status = change_reader(q, &s->readers[i], b);
    for (size_t i = 0; i < s->n_values && status == QN_OK; i++)
        status = change_value(q, &s->values[i], b);
    return status;
}

qn_status qn_smooth_apply(qn_quantizer *q, const qn_channel_factors *b)
{
    qn_value *value = qn_graph_value(q->graph, b->name);
    qn_smooth_region *s = qn_alloc_zero(q->ctx, 1, sizeof *s);
    QN_TRY_ALLOC(q->ctx, s);
    const bool fits = value && qn_smooth_region_of(s, value) && s->channels == b->channels;
    const qn_status status =
        fits ? apply(q, s, b)
             : qn_fail(q->ctx, QN_E_INVALID,
                       "scales: the channels of tensor '%s' cannot have %lld factors", b->name,
                       (long long)b->channels);
    qn_free(q->ctx, s);
    return status;
}
