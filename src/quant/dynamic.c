/* Dynamic quantization: weights become integers ahead of time, activations while the model runs.
 *
 *   Gemm, MatMul   x -> DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul by the product of
 *                  x's scale and w's scales -> Add of the bias
 *   LSTM           com.microsoft's DynamicQuantizeLSTM
 *   GRU            ONNX Runtime has no such operator: W and R are dequantized in front of it */
#include "quant/dynamic.h"

#include <float.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "pass/qdq_nodes.h"
#include "quant/pattern.h"
#include "quant/quant_classes.h"

/* ---- Rules ----------------------------------------------------------------------------------- */

static const char *refuse_recurrent(const qn_node *node)
{
    const qn_recurrent_attrs *a = node->attrs;
    for (int32_t i = 1; i <= 2; i++) {
        const qn_tensor *w = node->in[i]->data;
        if (!w || w->dtype != QN_FLOAT32 || w->rank != 3)
            return "its weights are no float32 constants";
    }
    return a->layout ? "its batch stands first" : NULL;
}

static const struct {
    const qn_op *op;
    const char *(*refuse)(const qn_node *node);
    bool is_product;
} forms[] = {
    {&qn_op_Gemm, qn_quant_class_refuse_scaled, true},
    {&qn_op_MatMul, NULL, true},
    {&qn_op_LSTM, refuse_recurrent, false},
    {&qn_op_GRU, refuse_recurrent, false},
};

static void guess_node(qn_quant_node *n)
{
    qn_weighted_node layer;
    for (size_t i = 0; i < QN_COUNT_OF(forms); i++) {
        if (forms[i].op != n->node->op || n->node->in[0]->type.dtype != QN_FLOAT32)
            continue;
        n->quant_class = QN_CLASS_MAC;
        n->why = forms[i].refuse ? forms[i].refuse(n->node) : NULL;
        if (!n->why && forms[i].is_product && !qn_weighted_node_of(&layer, n->node))
            n->why = "it has no constant matrix of weights";
        n->why = n->why ? n->why : qn_quant_class_refuse_constants(n->node);
        n->integer = !n->why;
    }
    n->bits = 8;
}

/* LSTM becomes an operator of ONNX Runtime, so the target must have com.microsoft's operators. */
static qn_status check_target(const qn_quantizer *q)
{
    const qn_profile *profile = q->settings.profile;
    if (!profile->dynamic)
        return qn_fail(q->ctx, QN_E_OPTION,
                       "dynamic: target '%s' has fixed scales and takes no file that finds them "
                       "while running",
                       profile->name);
    for (size_t i = 0; i < q->n_nodes && !profile->qoperators; i++) {
        if (q->nodes[i].integer && q->nodes[i].node->op == &qn_op_LSTM)
            return qn_fail(q->ctx, QN_E_OPTION,
                           "dynamic: target '%s' has no DynamicQuantizeLSTM: leave LSTM in float "
                           "(`keep_float` LSTM)",
                           profile->name);
    }
    return QN_OK;
}

qn_status qn_dynamic_rules(qn_quantizer *q)
{
    bool any = false;
    if (q->settings.bits != QN_WIDTH_STANDARD || q->settings.n_widths)
        return qn_fail(q->ctx, QN_E_OPTION, "dynamic quantization has 8 bits");
    for (size_t i = 0; i < q->n_nodes; i++) {
        q->nodes[i].bits = q->nodes[i].weight_bits = q->settings.bits;
        guess_node(&q->nodes[i]);
    }
    QN_TRY(qn_patterns_apply(q));
    QN_TRY(check_target(q));
    for (size_t i = 0; i < q->n_nodes; i++)
        any = any || q->nodes[i].integer;
    if (!any)
        return qn_fail(q->ctx, QN_E_UNSUPPORTED,
                       "nothing in this model can be quantized dynamically: there is no Gemm, "
                       "MatMul, LSTM or GRU with constant weights");
    return QN_OK;
}

/* ---- Constants ------------------------------------------------------------------------------- */

static qn_status add_constant(qn_value **out, const qn_quantizer *q, const qn_tensor *tensor,
                              const char *base, const char *suffix)
{
    char *name;
    QN_TRY(qn_rewrite_name(&name, q->graph, base, suffix));
    return qn_value_constant(out, q->graph, name, tensor);
}

static qn_status add_node(qn_value **out, const qn_quantizer *q, const qn_node_spec *spec)
{
    qn_node *node;
    QN_TRY(qn_node_build(&node, q->graph, spec));
    if (spec->op == &qn_op_Cast)
        ((qn_cast_attrs *)node->attrs)->to = QN_FLOAT32;
    *out = node->out[0];
    return qn_node_infer(node);
}

/* ---- Products -------------------------------------------------------------------------------- */

/* Integers [channels, filters] of weights that may stand the other way round. */
static qn_status product_weights(qn_value **out, const qn_quantizer *q,
                                 const qn_weighted_node *layer, const qn_qparams *p)
{
    qn_tensor *integers;
    float *w;
    const int64_t dims[2] = {layer->channels, layer->filters};
    const qn_type type = qn_type_tensor(p->dtype, 2, dims);
    QN_TRY(qn_model_tensor(&integers, q->model, &type));
    QN_TRY(qn_weighted_node_weights(&w, layer));
    for (int64_t i = 0; i < layer->count; i++) {
        int64_t filter, channel;
        qn_weight_position(layer, i, &filter, &channel);
        const int64_t integer = qn_params_quantize(p, p->count > 1 ? filter : 0, w[i]);
        qn_store_i64(integers->data, p->dtype, channel * layer->filters + filter, &integer, 1);
    }
    qn_free(q->ctx, w);
    return add_constant(out, q, integers, layer->node->in[1]->name, "_quantized");
}

static qn_status product_scales(qn_value **out, qn_value **zero, const qn_quantizer *q,
                                const qn_weighted_node *layer, const qn_qparams *p)
{
    const char *name = layer->node->in[1]->name;
    qn_tensor *scale, *point;
    qn_type type = qn_type_tensor(QN_FLOAT32, p->count > 1, &p->count);
    QN_TRY(qn_model_tensor(&scale, q->model, &type));
    qn_qparams_store_scales(scale, p);
    type = qn_type_tensor(p->dtype, 0, NULL);
    QN_TRY(qn_model_tensor(&point, q->model, &type));
    memset(point->data, 0, qn_dtype_size(p->dtype));
    QN_TRY(add_constant(out, q, scale, name, "_scale"));
    return add_constant(zero, q, point, name, "_zero_point");
}

/* What DynamicQuantizeLinear makes of x: integers, scale, zero point. It is made once. */
static qn_status quantized_input(qn_value *const **out, const qn_quantizer *q, qn_value *x)
{
    static const char *const suffixes[] = {"_quantized", "_scale", "_zero_point"};
    qn_node *node;
    char *name;
    for (size_t u = 0; u < x->n_users; u++) {
        if (x->users[u]->op == &qn_op_DynamicQuantizeLinear) {
            *out = x->users[u]->out;
            return QN_OK;
        }
    }
    QN_TRY(qn_rewrite_name(&name, q->graph, x->name, "_DynamicQuantizeLinear"));
    QN_TRY(qn_node_add(&node, q->graph, &qn_op_DynamicQuantizeLinear, name, 1, 3));
    qn_node *before = x->producer ? x->producer->next : q->graph->first;
    if (before != node)
        qn_node_move(node, before);
    QN_TRY(qn_node_set_input(node, 0, x));
    for (int32_t i = 0; i < 3; i++) {
        qn_value *value;
        QN_TRY(qn_rewrite_name(&name, q->graph, x->name, suffixes[i]));
        QN_TRY(qn_value_create(&value, q->graph, name));
        qn_node_set_output(node, i, value);
    }
    *out = node->out;
    return qn_node_infer(node);
}

/* The last node gets the old node's output and name. */
static qn_status finish_product(const qn_quantizer *q, qn_node *node, qn_value *product,
                                qn_value *scales)
{
    qn_value *bias = node->op == &qn_op_Gemm && node->n_in > 2 ? node->in[2] : NULL;
    qn_value *in[2] = {product, scales};
    char *name;
    qn_node *last;
    if (bias) {
        QN_TRY(qn_rewrite_name(&name, q->graph, node->name, "_product"));
        QN_TRY(add_node(&in[0], q,
                        &(qn_node_spec){.op = &qn_op_Mul,
                                        .name = name,
                                        .before = node,
                                        .in = {product, scales},
                                        .n_in = 2}));
        in[1] = bias;
    }
    QN_TRY(qn_rewrite_begin(&last, node, bias ? &qn_op_Add : &qn_op_Mul, in, 2));
    return qn_rewrite_finish(last, node);
}

static qn_status insert_product(qn_quantizer *q, qn_quant_node *n, const qn_param_options *options)
{
    qn_node *node = n->node;
    qn_weighted_node layer;
    qn_value *const *x, *w = NULL, *w_scale = NULL, *w_zero = NULL, *sums = NULL, *scales = NULL;
    char *name;
    if (!qn_weighted_node_of(&layer, node))
        return QN_OK;
    QN_TRY(qn_params_of_weights(&n->weights, q, &layer, options));
    qn_params_replace_zero_scales(n->weights);
    QN_TRY(product_weights(&w, q, &layer, n->weights));
    QN_TRY(product_scales(&w_scale, &w_zero, q, &layer, n->weights));
    QN_TRY(quantized_input(&x, q, node->in[0]));
    QN_TRY(qn_rewrite_name(&name, q->graph, node->name, "_MatMulInteger"));
    QN_TRY(add_node(&sums, q,
                    &(qn_node_spec){.op = &qn_op_MatMulInteger,
                                    .name = name,
                                    .before = node,
                                    .in = {x[0], w, x[2], w_zero},
                                    .n_in = 4}));
    QN_TRY(qn_rewrite_name(&name, q->graph, node->name, "_Cast"));
    QN_TRY(add_node(
        &sums, q,
        &(qn_node_spec){.op = &qn_op_Cast, .name = name, .before = node, .in = {sums}, .n_in = 1}));
    QN_TRY(qn_rewrite_name(&name, q->graph, node->name, "_scales"));
    QN_TRY(add_node(
        &scales, q,
        &(qn_node_spec){
            .op = &qn_op_Mul, .name = name, .before = node, .in = {x[1], w_scale}, .n_in = 2}));
    return finish_product(q, node, sums, scales);
}

/* ---- Recurrent layers ------------------------------------------------------------------------ */

/* Scales of W or R [directions, rows, columns]: one for each row, of each direction or of both. */
static qn_status row_scales(qn_qparams **out, const qn_quantizer *q, const qn_tensor *w, bool both)
{
    const int64_t rows = both ? w->dims[1] : w->dims[0] * w->dims[1], columns = w->dims[2];
    const int64_t all = w->dims[0] * w->dims[1];
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena,
                             qn_profile_weight(q->settings.profile, 8), rows));
    qn_qparams *p = *out;
    qn_params_weight_limits(p, q);
    for (int64_t r = 0; r < rows; r++) {
        float most = 0;
        for (int64_t at = r; at < all; at += rows) {
            for (int64_t c = 0; c < columns; c++) {
                const float x = (float)qn_tensor_f64(w, at * columns + c);
                most = QN_MAX(most, x < 0 ? -x : x);
            }
        }
        if (most > 0)
            qn_qparams_set_scale(p, r, QN_MAX(most / (float)p->qmax, FLT_MIN));
    }
    return QN_OK;
}

/* Integers of W or R; `turned`: [directions, columns, rows]. */
static qn_status row_integers(qn_value **out, const qn_quantizer *q, const qn_value *value,
                              const qn_qparams *p, bool turned)
{
    const qn_tensor *w = value->data;
    const int64_t rows = w->dims[1], columns = w->dims[2], count = qn_tensor_count(w);
    const int64_t dims[3] = {w->dims[0], turned ? columns : rows, turned ? rows : columns};
    const qn_type type = qn_type_tensor(p->dtype, 3, dims);
    qn_tensor *integers;
    QN_TRY(qn_model_tensor(&integers, q->model, &type));
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / columns, d = row / rows, c = i % columns;
        const int64_t at = turned ? (d * columns + c) * rows + row % rows : i;
        const int64_t integer = qn_params_quantize(p, row % p->count, (float)qn_tensor_f64(w, i));
        qn_store_i64(integers->data, p->dtype, at, &integer, 1);
    }
    return add_constant(out, q, integers, value->name, "_quantized");
}

/* Makes scale and zero point constants of these dims. */
static qn_status row_params(qn_value **scale, qn_value **zero, const qn_quantizer *q,
                            const qn_qparams *p, const char *name, const qn_type *dims)
{
    qn_tensor *scales, *zeros;
    qn_type type = *dims;
    QN_TRY(qn_model_tensor(&scales, q->model, &type));
    qn_qparams_store_scales(scales, p);
    type.dtype = p->dtype;
    QN_TRY(qn_model_tensor(&zeros, q->model, &type));
    qn_qparams_store_zeros(zeros, p);
    QN_TRY(add_constant(scale, q, scales, name, "_scale"));
    return add_constant(zero, q, zeros, name, "_zero_point");
}

static qn_status insert_lstm(const qn_quantizer *q, qn_node *node)
{
    enum { W_SCALE = 8, INPUTS = 12 };
    QN_TRY(qn_node_resize_inputs(node, INPUTS));
    for (int32_t i = 1; i <= 2; i++) {
        qn_value *value = node->in[i], *integers = NULL, *scale = NULL, *zero = NULL;
        const qn_type dims = qn_type_tensor(QN_FLOAT32, 2, value->data->dims);
        qn_qparams *p = NULL;
        QN_TRY(row_scales(&p, q, value->data, false));
        QN_TRY(row_integers(&integers, q, value, p, true));
        QN_TRY(row_params(&scale, &zero, q, p, value->name, &dims));
        QN_TRY(qn_node_set_input(node, i, integers));
        QN_TRY(qn_node_set_input(node, W_SCALE + 2 * (i - 1), scale));
        QN_TRY(qn_node_set_input(node, W_SCALE + 2 * (i - 1) + 1, zero));
    }
    node->op = &qn_op_ms_DynamicQuantizeLSTM; /* attributes are the same */
    return qn_node_infer(node);
}

static qn_status insert_gru(const qn_quantizer *q, qn_node *node)
{
    for (int32_t i = 1; i <= 2; i++) {
        qn_value *value = node->in[i], *integers = NULL, *scale = NULL, *zero = NULL, *real = NULL;
        const qn_type dims = qn_type_tensor(QN_FLOAT32, 1, value->data->dims + 1);
        qn_qparams *p = NULL;
        QN_TRY(row_scales(&p, q, value->data, true));
        QN_TRY(row_integers(&integers, q, value, p, false));
        QN_TRY(row_params(&scale, &zero, q, p, value->name, &dims));
        QN_TRY(qn_qdq_node_add(&real, &(qn_qdq_node_spec){.op = &qn_op_DequantizeLinear,
                                                          .base = value->name,
                                                          .in = {integers, scale, zero},
                                                          .before = node,
                                                          .axis = -1}));
        QN_TRY(qn_node_set_input(node, i, real));
    }
    return QN_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

qn_status qn_dynamic_insert(qn_quantizer *q, const qn_param_options *options)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        qn_quant_node *n = &q->nodes[i];
        if (!n->integer)
            continue;
        QN_TRY(qn_check_cancel(q->ctx));
        if (n->node->op == &qn_op_LSTM)
            QN_TRY(insert_lstm(q, n->node));
        else if (n->node->op == &qn_op_GRU)
            QN_TRY(insert_gru(q, n->node));
        else
            QN_TRY(insert_product(q, n, options));
    }
    return qn_graph_infer(q->graph);
}
