/* The pass qdq-to-integer: tools of its rules, rules for nodes that move integers, and the order of
 * all rules. */
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/kinds.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"
#include "pass/qdq_nodes.h"
#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"

#define BYTES (QN_SET(QN_INT8) | QN_SET(QN_UINT8))
#define WORDS (QN_SET(QN_INT16) | QN_SET(QN_UINT16))

/* ---- Reading Q and D ------------------------------------------------------------------------- */

bool qn_is_quantize(const qn_node *node)
{
    return node && qn_op_is_quantize(node->op);
}

bool qn_is_dequantize(const qn_node *node)
{
    return node && qn_op_is_dequantize(node->op);
}

static qn_status zero_constant(qn_value **out, qn_graph *graph, qn_dtype dtype)
{
    qn_tensor *zero;
    const qn_type type = qn_type_tensor(dtype, 0, NULL);
    QN_TRY(qn_tensor_create(&zero, graph->ctx, graph->arena, &type));
    return qn_value_constant(out, graph, NULL, zero);
}

/* One zero point for all where they are all the same. */
static qn_status read_zeros(qn_qparams *p, const qn_graph *graph, const qn_tensor *zero)
{
    const int64_t count = qn_tensor_count(zero);
    bool differ = false;
    p->zero = qn_tensor_i64(zero, 0);
    for (int64_t i = 1; i < count; i++)
        differ = differ || qn_tensor_i64(zero, i) != p->zero;
    if (!differ || count != p->count)
        return QN_OK;
    p->zeros = qn_arena_array(graph->arena, (size_t)count, sizeof *p->zeros);
    QN_TRY_ALLOC(graph->ctx, p->zeros);
    qn_load_i64(p->zeros, zero->dtype, zero->data, 0, count);
    return QN_OK;
}

static qn_status read_scales(qn_qparams *p, const qn_graph *graph, const qn_tensor *scale)
{
    p->count = qn_tensor_count(scale);
    p->scale = (float)qn_tensor_f64(scale, 0);
    if (p->count == 1)
        return QN_OK;
    p->scales = scale->data;
    if (qn_tensor_is_aligned(scale))
        return QN_OK;
    p->scales = qn_arena_copy(graph->arena, scale->data, (size_t)p->count * sizeof(float));
    QN_TRY_ALLOC(graph->ctx, p->scales);
    return QN_OK;
}

qn_status qn_qdq_parameters(bool *found, qn_quantized *q, qn_node *node)
{
    const qn_quantize_attrs *attrs = node->attrs;
    const qn_type *type = &q->value->type;
    q->node = node;
    q->scale = node->in[1];
    q->zero = node->n_in > 2 ? node->in[2] : NULL;
    *found = false;
    if (!q->scale->data || q->scale->data->dtype != QN_FLOAT32 || attrs->block_size ||
        (q->zero && !q->zero->data) || !(qn_type_set(type) & (BYTES | WORDS | QN_SET(QN_INT32))) ||
        q->scale->data->rank > 1 || qn_tensor_count(q->scale->data) == 0)
        return QN_OK;
    if (qn_tensor_count(q->scale->data) != 1 && type->rank < 1)
        return QN_OK;
    q->params = qn_qparams_of_type(type->dtype);
    q->params.requantization = qn_node_requantization(node);
    QN_TRY(read_scales(&q->params, node->graph, q->scale->data));
    if (q->params.count != 1)
        q->params.axis = (int32_t)(attrs->axis < 0 ? attrs->axis + type->rank : attrs->axis);
    if (!q->zero)
        QN_TRY(zero_constant(&q->zero, node->graph, type->dtype));
    *found = true;
    return read_zeros(&q->params, node->graph, q->zero->data);
}

qn_status qn_qdq_input(bool *found, qn_quantized *out, const qn_value *value)
{
    *found = false;
    if (!value || !qn_is_dequantize(value->producer))
        return QN_OK;
    out->value = value->producer->in[0];
    return qn_qdq_parameters(found, out, value->producer);
}

qn_status qn_qdq_output(bool *found, qn_quantized *out, const qn_value *value)
{
    qn_node *user = value ? qn_value_only_user(value) : NULL;
    *found = false;
    if (!qn_is_quantize(user) || user->in[0] != value)
        return QN_OK;
    out->value = user->out[0];
    QN_TRY(qn_qdq_parameters(found, out, user));
    *found = *found && out->params.axis < 0;
    return QN_OK;
}

qn_status qn_qdq_find_unary(bool *found, qn_qdq_unary *out, const qn_node *node)
{
    QN_TRY(qn_qdq_input(found, &out->x, node->in[0]));
    if (*found)
        QN_TRY(qn_qdq_output(found, &out->y, node->out[0]));
    *found = *found && out->x.params.axis < 0;
    return QN_OK;
}

qn_status qn_qdq_replace_unary(qn_node *node, const qn_qdq_unary *pair, const qn_op *op,
                               const void *attrs, size_t attrs_size)
{
    qn_value *const in[5] = {pair->x.value, pair->x.scale, pair->x.zero, pair->y.scale,
                             pair->y.zero};
    return qn_qdq_replace(node, &pair->y, &(qn_integer_node){op, in, 5, attrs, attrs_size});
}

bool qn_quantized_is_byte(const qn_quantized *q)
{
    return (qn_type_set(&q->value->type) & BYTES) != 0;
}

bool qn_quantized_is_short(const qn_quantized *q)
{
    return (qn_type_set(&q->value->type) & (BYTES | WORDS)) != 0;
}

bool qn_quantized_alike(const qn_quantized *a, const qn_quantized *b)
{
    return a->params.axis < 0 && b->params.axis < 0 && qn_qparams_equal(&a->params, &b->params);
}

qn_status qn_qdq_replace(qn_node *node, const qn_quantized *y, const qn_integer_node *lowered)
{
    qn_node *fresh, *place = y ? y->node : node;
    QN_TRY(qn_node_add(&fresh, node->graph, lowered->op, node->name, lowered->n_in, 1));
    qn_node_move(fresh, place);
    for (int32_t i = 0; i < lowered->n_in; i++)
        QN_TRY(qn_node_set_input(fresh, i, lowered->in[i]));
    if (lowered->attrs_size)
        memcpy(fresh->attrs, lowered->attrs, lowered->attrs_size);
    QN_TRY(qn_rewrite_finish(fresh, place));
    if (y)
        qn_node_remove(node);
    return QN_OK;
}

/* ---- Relu and Clip change places with the Q behind them -------------------------------------- */

static qn_status limit_constant(qn_value **out, qn_graph *graph, qn_dtype dtype, int64_t limit)
{
    QN_TRY(zero_constant(out, graph, dtype));
    qn_store_i64((*out)->data->data, dtype, 0, &limit, 1);
    return QN_OK;
}

/* Puts a Clip of integers behind what `q` writes. */
static qn_status clip_integers(const qn_quantized *q, const int64_t limits[2], const char *name)
{
    qn_graph *graph = q->node->graph;
    const qn_dtype dtype = q->value->type.dtype;
    qn_value *in[3] = {NULL, NULL, NULL};
    qn_node *clip;
    for (int i = 0; i < 2; i++)
        QN_TRY(limit_constant(&in[1 + i], graph, dtype, limits[i]));
    QN_TRY(qn_value_create(&in[0], graph, name));
    QN_TRY(qn_node_add(&clip, graph, &qn_op_Clip, name, 3, 1));
    qn_node_move(clip, q->node->next);
    for (int32_t i = 0; i < 3; i++)
        QN_TRY(qn_node_set_input(clip, i, in[i]));
    q->node->out[0] = NULL;
    qn_node_set_output(q->node, 0, in[0]);
    qn_node_set_output(clip, 0, q->value);
    QN_TRY(qn_node_infer(q->node));
    return qn_node_infer(clip);
}

/* quantize(clip(x)) = clip(quantize(x)), since rounding is monotone. */
static qn_status sink_clip(bool *done, qn_node *node, bool only_bytes)
{
    double limits[2];
    qn_quantized q;
    QN_TRY(qn_qdq_output(done, &q, node->out[0]));
    if (!*done || !qn_match_limits(limits, node) || (only_bytes && !qn_quantized_is_byte(&q))) {
        *done = false;
        return QN_OK;
    }
    const qn_limits range = qn_limits_of(q.value->type.dtype);
    const int64_t bounds[2] = {qn_quantize((float)limits[0], &q.params, range),
                               qn_quantize((float)limits[1], &q.params, range)};
    QN_TRY(qn_node_set_input(q.node, 0, node->in[0]));
    if (bounds[0] > range.min || bounds[1] < range.max)
        QN_TRY(clip_integers(&q, bounds, node->name));
    qn_node_remove(node);
    return QN_OK;
}

static qn_status sink_clips(qn_pass_context *self)
{
    for (qn_node *node = self->graph->last, *before; node; node = before) {
        bool done = false;
        before = node->prev;
        if (qn_op_is_limit(node->op))
            QN_TRY(sink_clip(&done, node, self->ort_only));
        self->changes += done;
    }
    return QN_OK;
}

/* ---- Operators that move numbers change places with the D before them ------------------------ */

static bool takes(const qn_node *node, qn_dtype dtype)
{
    return (node->op->in[0].types & QN_SET(dtype)) && (node->op->out[0].types & QN_SET(dtype));
}

/* What the operator puts where nothing is moved to, in the integers' scale. */
static qn_status fill_pads(qn_node *node, const qn_quantized *x)
{
    const qn_dtype dtype = x->value->type.dtype;
    double pad = 0;
    qn_value *value;
    if (node->n_in > 2 && node->in[2])
        pad = qn_tensor_f64(node->in[2]->data, 0);
    QN_TRY(limit_constant(&value, node->graph, dtype,
                          qn_quantize((float)pad, &x->params, qn_limits_of(dtype))));
    if (node->n_in < 3)
        QN_TRY(qn_node_resize_inputs(node, 3));
    return qn_node_set_input(node, 2, value);
}

static bool only_moves(const qn_node *node)
{
    if (!qn_moves_numbers(node) || node->n_in < 1 || node->op == &qn_op_Concat)
        return false;
    return node->op != &qn_op_Pad || node->n_in < 3 || !node->in[2] || node->in[2]->data;
}

/* Output o of `node` holds integers from here on, and a D makes of them what it was. */
static qn_status dequantize_behind(qn_node *node, int32_t o, const qn_quantized *x)
{
    qn_value *real = node->out[o], *in[3] = {NULL, x->scale, x->zero};
    qn_node *fresh;
    QN_TRY(qn_value_create(&in[0], node->graph, real->name));
    QN_TRY(qn_node_add(&fresh, node->graph, x->node->op, node->name, 3, 1));
    qn_node_move(fresh, node->next);
    for (int32_t i = 0; i < 3; i++)
        QN_TRY(qn_node_set_input(fresh, i, in[i]));
    memcpy(fresh->attrs, x->node->attrs, x->node->op->attrs_size);
    node->out[o] = NULL;
    qn_node_set_output(node, o, in[0]);
    qn_node_set_output(fresh, 0, real);
    return QN_OK;
}

static qn_status infer_with_outputs(qn_node *node)
{
    QN_TRY(qn_node_infer(node));
    for (int32_t o = 0; o < node->n_out; o++) {
        for (size_t u = 0; node->out[o] && u < node->out[o]->n_users; u++)
            QN_TRY(qn_node_infer(node->out[o]->users[u]));
    }
    return QN_OK;
}

static bool wants_indices(const qn_node *node)
{
    return node->op == &qn_op_MaxPool && node->n_out > 1 && node->out[1];
}

static qn_status move_integers(bool *done, qn_node *node)
{
    qn_quantized x;
    if (!only_moves(node) || wants_indices(node))
        return QN_OK;
    QN_TRY(qn_qdq_input(done, &x, node->in[0]));
    if (!*done || x.params.axis >= 0 || !takes(node, x.value->type.dtype)) {
        *done = false;
        return QN_OK;
    }
    QN_TRY(qn_node_set_input(node, 0, x.value));
    if (node->op == &qn_op_Pad)
        QN_TRY(fill_pads(node, &x));
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o])
            QN_TRY(dequantize_behind(node, o, &x));
    }
    return infer_with_outputs(node);
}

/* A Concat of integers that all mean the same. */
static qn_status concat_integers(bool *done, qn_node *node)
{
    qn_quantized first, x;
    if (node->op != &qn_op_Concat)
        return QN_OK;
    for (int32_t i = 0; i < node->n_in; i++) {
        QN_TRY(qn_qdq_input(done, i ? &x : &first, node->in[i]));
        if (!*done || !qn_quantized_alike(&first, i ? &x : &first)) {
            *done = false;
            return QN_OK;
        }
    }
    for (int32_t i = 0; i < node->n_in; i++)
        QN_TRY(qn_node_set_input(node, i, node->in[i]->producer->in[0]));
    QN_TRY(dequantize_behind(node, 0, &first));
    return infer_with_outputs(node);
}

/* ---- D directly before Q --------------------------------------------------------------------- */

/* Integers that an operator moved are known by the name of those behind its Q. */
static qn_status bypass_named(bool *done, qn_node *node, qn_value *integers)
{
    qn_value *behind = node->out[0];
    const char *name = behind->name;
    QN_TRY(qn_rewrite_bypass(done, node, integers));
    if (!*done || integers->is_output || integers->is_input || !integers->producer ||
        !name[qn_qdq_base_length(name)] || integers->name[qn_qdq_base_length(integers->name)])
        return QN_OK;
    QN_TRY(qn_value_rename(behind, name));
    return qn_value_rename(integers, name);
}

static qn_status requantize(bool *done, qn_node *node)
{
    qn_quantized x, y = {.value = node->out[0]};
    bool is_target = false;
    if (!qn_is_quantize(node))
        return QN_OK;
    QN_TRY(qn_qdq_input(done, &x, node->in[0]));
    QN_TRY(qn_qdq_parameters(&is_target, &y, node));
    if (!*done || !is_target || x.params.axis >= 0 || y.params.axis >= 0) {
        *done = false;
        return QN_OK;
    }
    if (qn_quantized_alike(&x, &y)) {
        QN_TRY(bypass_named(done, node, x.value));
        if (*done)
            return QN_OK;
        *done = true;
    }
    qn_value *const in[5] = {x.value, x.scale, x.zero, y.scale, y.zero};
    return qn_qdq_replace(node, NULL, &(qn_integer_node){&qn_op_qn_Requantize, in, 5, NULL, 0});
}

/* Weights that a file quantizes while running. */
static qn_status quantize_constant(bool *done, qn_node *node)
{
    qn_tensor *result = NULL, *kept;
    const qn_tensor *in[3] = {NULL, NULL, NULL};
    qn_model *model = node->graph->model;
    if (!qn_is_quantize(node))
        return QN_OK;
    for (int32_t i = 0; i < node->n_in && i < 3; i++) {
        if (node->in[i] && !node->in[i]->data)
            return QN_OK;
        in[i] = node->in[i] ? node->in[i]->data : NULL;
    }
    QN_TRY(qn_node_eval(&result, model->ctx, &model->arena, node, in));
    kept = result;
    qn_value *value = node->out[0];
    qn_node_remove(node);
    value->data = kept;
    value->type = qn_type_of(kept);
    *done = true;
    return QN_OK;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static const struct {
    const qn_op *op;
    qn_qdq_rule *lower;
} rules[] = {
    {&qn_op_QuantizeLinear, quantize_constant},
    {&qn_op_QuantizeLinear, requantize},
    {&qn_op_ms_QuantizeLinear, quantize_constant},
    {&qn_op_ms_QuantizeLinear, requantize},
    {&qn_op_Add, qn_qdq_add},
    {&qn_op_AveragePool, qn_qdq_average_pool},
    {&qn_op_Concat, concat_integers},
    {&qn_op_Concat, qn_qdq_concat},
    {&qn_op_Conv, qn_qdq_conv},
    {&qn_op_ConvTranspose, qn_qdq_conv_transpose},
    {&qn_op_GRU, qn_qdq_recurrent},
    {&qn_op_Gemm, qn_qdq_gemm},
    {&qn_op_GlobalAveragePool, qn_qdq_global_pool},
    {&qn_op_LSTM, qn_qdq_recurrent},
    {&qn_op_LayerNormalization, qn_qdq_layer_norm},
    {&qn_op_MatMul, qn_qdq_matmul},
    {&qn_op_Mul, qn_qdq_mul},
    {&qn_op_RNN, qn_qdq_recurrent},
    {&qn_op_ReduceMean, qn_qdq_reduce_mean},
    {&qn_op_Softmax, qn_qdq_softmax},
    {&qn_op_Sum, qn_qdq_add},
};

/* Removes a D and Q with the same parameters, whatever engine runs the file. */
static qn_status drop_requantize(bool *done, qn_node *node)
{
    qn_quantized x, y = {.value = node->out[0]};
    bool is_target = false, is_source = false;
    QN_TRY(qn_qdq_input(&is_source, &x, node->in[0]));
    QN_TRY(qn_qdq_parameters(&is_target, &y, node));
    if (is_source && is_target && qn_quantized_alike(&x, &y))
        return qn_rewrite_bypass(done, node, x.value);
    return QN_OK;
}

static const struct {
    const qn_op *op;
    qn_qdq_rule *lower;
} portable_rules[] = {
    {&qn_op_LeakyRelu, qn_qdq_ort_leaky_relu},
    {&qn_op_Sigmoid, qn_qdq_ort_sigmoid},
};

static qn_status apply_rules(bool *done, qn_node *node)
{
    for (size_t i = 0; i < QN_COUNT_OF(rules) && !*done; i++) {
        if (rules[i].op == node->op)
            QN_TRY(rules[i].lower(done, node));
    }
    return *done ? QN_OK : move_integers(done, node);
}

/* Applies all rules, also those whose operators no file can contain. */
static qn_status apply_all_rules(bool *done, qn_node *node)
{
    QN_TRY(apply_rules(done, node));
    if (!*done && node->op == &qn_op_Resize)
        QN_TRY(qn_qdq_resize(done, node));
    if (!*done)
        QN_TRY(qn_qdq_activation(done, node));
    if (!*done)
        QN_TRY(qn_qdq_table(done, node));
    return *done || node->op != &qn_op_PRelu ? QN_OK : qn_qdq_prelu(done, node);
}

static qn_status apply_ort_rules(bool *done, qn_node *node)
{
    bool is_portable = false;
    if (qn_is_quantize(node)) {
        QN_TRY(quantize_constant(done, node));
        return *done ? QN_OK : drop_requantize(done, node);
    }
    QN_TRY(qn_qdq_is_in_ort(&is_portable, node));
    if (!is_portable)
        return QN_OK;
    for (size_t i = 0; i < QN_COUNT_OF(portable_rules); i++) {
        if (portable_rules[i].op == node->op)
            return portable_rules[i].lower(done, node);
    }
    return apply_rules(done, node);
}

static qn_status qdq_to_integer(qn_pass_context *self)
{
    if (self->keep_quantization)
        return QN_OK;
    QN_TRY(sink_clips(self));
    for (qn_node *node = self->graph->first, *before; node;) {
        bool done = false;
        before = node->prev;
        QN_TRY(self->ort_only ? apply_ort_rules(&done, node) : apply_all_rules(&done, node));
        self->changes += done;
        if (!done)
            node = node->next;
        else
            node = before ? before->next : self->graph->first;
    }
    return QN_OK;
}

const qn_pass qn_pass_qdq_to_integer = {
    .name = "qdq-to-integer",
    .brief = "operators between DequantizeLinear and QuantizeLinear become integer ones",
    .run = qdq_to_integer};
