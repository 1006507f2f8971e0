/* Inserts Q and D nodes, integer weights and biases according to the encodings. */
#include "quant/insert.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "pass/qdq_nodes.h"
#include "quant/output_scale.h"
#include "quant/softmax_masks.h"
#include "quant/workarounds.h"

/* ---- Constants ------------------------------------------------------------------------------- */

/* Scales and zero points: of no dimension where there is one for all. */
static qn_status parameter(qn_value **out, const qn_quantizer *q, const qn_qparams *p,
                           qn_dtype dtype, const char *name)
{
    qn_tensor *tensor;
    const qn_type type = qn_type_tensor(dtype, p->axis < 0 ? 0 : 1, &p->count);
    QN_TRY(qn_tensor_create(&tensor, q->ctx, q->graph->arena, &type));
    if (dtype == QN_FLOAT32)
        qn_qparams_store_scales(tensor, p);
    else
        qn_qparams_store_zeros(tensor, p);
    return qn_value_constant(out, q->graph, name, tensor);
}

/* The constants that hold a value's parameters in the graph. */
typedef struct constants {
    qn_value *scale, *zero;
} constants;

static qn_status parameters(constants *out, const qn_quantizer *q, const qn_qparams *p,
                            const char *base)
{
    char *name;
    QN_TRY(qn_rewrite_name(&name, q->graph, base, "_scale"));
    QN_TRY(parameter(&out->scale, q, p, QN_FLOAT32, name));
    QN_TRY(qn_rewrite_name(&name, q->graph, base, "_zero_point"));
    return parameter(&out->zero, q, p, p->dtype, name);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

typedef struct place {
    /* The name that the names of the nodes begin with. */
    const char *base;
    /* NULL: at the end */
    qn_node *before;
    const constants *params;
    /* -1: one scale */
    int32_t axis;
} place;

/* A Q or D that reads `value`; *out is what it writes. */
static qn_status add_node(qn_value **out, const qn_op *op, qn_value *value, const place *at)
{
    return qn_qdq_node_add(out,
                           &(qn_qdq_node_spec){.op = op,
                                               .base = at->base,
                                               .in = {value, at->params->scale, at->params->zero},
                                               .before = at->before,
                                               .axis = at->axis});
}

/* Integers of a constant and the D that reads them. */
static qn_status add_constant(qn_value **out, const qn_quantizer *q, const qn_value *value,
                              const qn_qparams *p, qn_node *before)
{
    qn_tensor *integers;
    qn_value *stored;
    char *name;
    constants own = {NULL, NULL};
    qn_type type = qn_type_of(value->data);
    int64_t inner = 1;
    type.dtype = p->dtype;
    type.elements = NULL;
    for (int32_t d = p->axis + 1; d < value->data->rank && p->axis >= 0; d++)
        inner *= value->data->dims[d];
    QN_TRY(qn_model_tensor(&integers, q->model, &type));
    const int64_t count = qn_tensor_count(value->data);
    const int threads = q->ctx->threads;
#pragma omp parallel for num_threads(threads) if (count > QN_WEIGHTS_PER_THREAD)
    for (int64_t i = 0; i < count; i++) {
        float x;
        memcpy(&x, (const char *)value->data->data + (size_t)i * sizeof x, sizeof x);
        const int64_t integer = qn_params_quantize(p, p->axis < 0 ? 0 : i / inner % p->count, x);
        qn_store_i64(integers->data, p->dtype, i, &integer, 1);
    }
    QN_TRY(qn_rewrite_name(&name, q->graph, value->name, "_quantized"));
    QN_TRY(qn_value_constant(&stored, q->graph, name, integers));
    QN_TRY(parameters(&own, q, p, value->name));
    return add_node(out, &qn_op_DequantizeLinear, stored,
                    &(place){value->name, before, &own, p->axis});
}

/* ---- Limits that the integers imply ---------------------------------------------------------- */

/* What is cut off would have been cut off by the integers' own limits. Those of 16 bits stay:
 * OpenVINO computes in float there and leaves Q and D out, limits and all. */
static bool is_implied(const qn_quantizer *q, const qn_quant_node *n)
{
    double limits[2];
    const qn_value *in = n->node->in[0], *out = n->node->out[0];
    const qn_qparams *p = out->qparams;
    if (!n->integer || n->quant_class != QN_CLASS_CLIP || !p || out->is_output || in->is_input ||
        !qn_value_only_user(in) || !in->producer || in->number >= q->n_values ||
        qn_quant_value_of(q, in)->integer || p->qmax - p->qmin > 255 ||
        !qn_match_limits(limits, n->node))
        return false;
    return (limits[0] == -(double)INFINITY ||
            qn_params_quantize(p, 0, (float)limits[0]) == p->qmin) &&
           (limits[1] == (double)INFINITY || qn_params_quantize(p, 0, (float)limits[1]) == p->qmax);
}

static void drop_limits(qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        qn_node *node = q->nodes[i].node;
        if (!q->settings.profile->drops_clips || !is_implied(q, &q->nodes[i]))
            continue;
        qn_node *before = node->in[0]->producer;
        const int32_t slot = node->in[0]->producer_slot;
        qn_value *value = node->out[0];
        node->out[0] = NULL;
        before->out[slot]->producer = NULL;
        before->out[slot] = NULL;
        qn_node_set_output(before, slot, value);
        qn_node_remove(node);
        q->nodes[i].dropped = true;
    }
}

/* ---- Activations ----------------------------------------------------------------------------- */

typedef struct reader {
    qn_node *node;
    int32_t slot;
} reader;

/* All slots that read the value; graph outputs are none. */
static qn_status readers_of(reader **out, size_t *count, const qn_quantizer *q,
                            const qn_value *value)
{
    *count = 0;
    *out = qn_alloc_zero(q->ctx, value->n_users + 1, sizeof **out);
    QN_TRY_ALLOC(q->ctx, *out);
    for (size_t u = 0; u < value->n_users; u++) {
        qn_node *node = value->users[u];
        bool seen = false;
        for (size_t r = 0; r < *count; r++)
            seen = seen || (*out)[r].node == node;
        for (int32_t i = 0; i < node->n_in && !seen; i++) {
            if (node->in[i] == value)
                (*out)[(*count)++] = (reader){node, i};
        }
    }
    return QN_OK;
}

static qn_node *first_behind(const qn_quantizer *q, const qn_value *value)
{
    return value->producer ? value->producer->next : q->graph->first;
}

/* The same numbers in 8 bits, for readers that do not take 16. */
static qn_status add_int8_reader(qn_value **out, const qn_quantizer *q, qn_value *int16,
                                 const qn_value *value)
{
    const qn_qparams *int8 = qn_quant_root(q, qn_quant_value_of(q, value))->encoding->int8_params;
    constants own = {NULL, NULL};
    char *name;
    QN_TRY(qn_rewrite_name(&name, q->graph, value->name, "_8bit"));
    QN_TRY(parameters(&own, q, int8, name));
    const place at = {name, int16->producer->next, &own, -1};
    QN_TRY(add_node(&int16, &qn_op_QuantizeLinear, int16, &at));
    return add_node(out, &qn_op_DequantizeLinear, int16, &at);
}

/* NULL: it was not there when nodes were numbered. */
static const qn_quant_node *known_node(const qn_quantizer *q, const qn_node *node)
{
    const bool known = node->number < q->n_nodes && q->nodes[node->number].node == node;
    return known ? &q->nodes[node->number] : NULL;
}

static bool wants_int8(const qn_quantizer *q, const reader *r)
{
    const qn_quant_node *n = known_node(q, r->node);
    return n && qn_quant_reads_int8(q, n, r->slot);
}

/* A float node reads what is there in float anyway, an input or what another float node computes,
 * before it is rounded. Not where the input itself will be of integers, and not in a network that
 * learnt to be rounded there. */
static bool wants_float(const qn_quantizer *q, const reader *r, const qn_value *value)
{
    const qn_quant_node *n = known_node(q, r->node);
    const qn_quant_node *from = value->producer ? known_node(q, value->producer) : NULL;
    const qn_quant_value *v = qn_quant_value_of(q, value);
    return n && !n->integer &&
           (value->producer ? from && !from->integer : v->type == QN_UNDEFINED) &&
           !qn_quant_root(q, v)->existing && !q->settings.profile->fixed_point;
}

static qn_status connect(const qn_quantizer *q, const reader *readers, size_t count,
                         qn_value *fresh, const qn_value *value)
{
    qn_value *int8 = NULL;
    for (size_t r = 0; r < count; r++) {
        if (wants_float(q, &readers[r], value))
            continue;
        const bool is_int8 = wants_int8(q, &readers[r]);
        if (is_int8 && !int8)
            QN_TRY(add_int8_reader(&int8, q, fresh, value));
        QN_TRY(qn_node_set_input(readers[r].node, readers[r].slot, is_int8 ? int8 : fresh));
    }
    return QN_OK;
}

/* The constants for scale and zero point, one pair for all values that share parameters. */
static qn_status shared_parameters(constants *out, qn_quantizer *q, const qn_quant_value *v)
{
    qn_quant_value *root = qn_quant_root(q, v);
    if (!root->scale) {
        QN_TRY(parameters(out, q, root->value->qparams, root->value->name));
        root->scale = out->scale;
        root->zero = out->zero;
    }
    *out = (constants){root->scale, root->zero};
    return QN_OK;
}

/* ---- Outputs of a chip's model --------------------------------------------------------------- */

/* An output behind a Q: of a chip, and the states of a recurrent node, which have their scale from
 * there. */
static bool ends_in_integers(const qn_quantizer *q, const qn_value *value)
{
    const qn_quant_node *from = value->producer ? known_node(q, value->producer) : NULL;
    return value->is_output && from && from->integer &&
           (q->settings.profile->fixed_point || from->quant_class == QN_CLASS_RECURRENT);
}

/* Makes a chip's output the integers themselves, whose scale goes into the metadata, or, where
 * outputs are wanted in float, the result of a D. The float value, which had the output's name,
 * gets another one. */
static qn_status insert_integer_output(const qn_quantizer *q, qn_value *value, qn_value *integers,
                                       const constants *params)
{
    qn_node *before = value->producer, *quantize = integers->producer, *end;
    const int32_t slot = value->producer_slot;
    constants units = *params;
    qn_value *real, *fresh;
    char *name;
    if (q->settings.profile->fixed_point && !q->settings.real_outputs) {
        QN_TRY(qn_rewrite_name(&name, q->graph, value->name, "_output_scale"));
        QN_TRY(qn_value_float(&units.scale, q->graph, 1));
        QN_TRY(qn_value_rename(units.scale, name));
        QN_TRY(qn_output_set_scale(q->model, value->name, value->qparams->scale));
    }
    QN_TRY(qn_rewrite_name(&name, q->graph, value->name, "_output"));
    const place at = {name, quantize->next, &units, -1};
    QN_TRY(add_node(&real, &qn_op_DequantizeLinear, integers, &at));
    QN_TRY(qn_rewrite_name(&name, q->graph, value->name, "_float"));
    QN_TRY(qn_value_create(&fresh, q->graph, name));
    end = real->producer;
    end->out[0] = before->out[slot] = NULL;
    real->producer = value->producer = NULL;
    qn_node_set_output(before, slot, fresh);
    fresh->type = value->type;
    QN_TRY(qn_node_set_input(quantize, 0, fresh));
    qn_node_set_output(end, 0, value);
    return QN_OK;
}

/* Q and D behind a value; nobody but the model's output may read it. */
static qn_status insert_pair(qn_quantizer *q, qn_value *value, const constants *own,
                             const reader *readers, size_t count)
{
    const place at = {value->name, first_behind(q, value), own, -1};
    const bool ends = ends_in_integers(q, value);
    qn_value *integers, *real = NULL;
    if (!count && !value->is_output)
        return QN_OK; /* the states of a recurrent node whose last one alone is read */
    QN_TRY(add_node(&integers, &qn_op_QuantizeLinear, value, &at));
    if (count || !ends) {
        QN_TRY(add_node(&real, &qn_op_DequantizeLinear, integers, &at));
        QN_TRY(connect(q, readers, count, real, value));
    }
    return ends ? insert_integer_output(q, value, integers, own) : QN_OK;
}

static qn_status insert_value(qn_quantizer *q, const qn_quant_value *v)
{
    reader *readers;
    size_t count;
    constants own = {NULL, NULL};
    QN_TRY(shared_parameters(&own, q, v));
    QN_TRY(readers_of(&readers, &count, q, v->value));
    const qn_status status = insert_pair(q, v->value, &own, readers, count);
    qn_free(q->ctx, readers);
    return status;
}

/* ---- Weights, biases and constant operands --------------------------------------------------- */

/* Units of sx * sw, in which int32 holds the biases of 8-bit products. */
static qn_status product_units(qn_qparams **out, const qn_quantizer *q,
                               const qn_weighted_node *layer, const qn_qparams *x,
                               const qn_qparams *w)
{
    const bool several = w->count > 1;
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena, QN_INT32, several ? layer->filters : 1));
    (*out)->axis = several ? 0 : -1;
    for (int64_t k = 0; k < (*out)->count; k++)
        qn_qparams_set_scale(
            *out, k,
            (float)((double)x->scale *
                    (double)qn_qparams_scale_at(w, several ? k % layer->w->dims[layer->axis] : 0)));
    return QN_OK;
}

/* Units that are powers of two, in which int32 holds every float as it is: those of 16-bit products
 * would not do, and ONNX Runtime takes just those for biases that it finds as floats, whatever
 * overflows. */
static qn_status exact_units(qn_qparams **out, const qn_quantizer *q, const qn_tensor *bias)
{
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena, QN_INT32, bias->dims[0]));
    (*out)->axis = 0;
    for (int64_t k = 0; k < (*out)->count; k++) {
        int exponent = 0;
        (void)frexp(qn_tensor_f64(bias, k), &exponent);
        qn_qparams_set_scale(*out, k,
                             (float)ldexp(1, QN_MAX(exponent - FLT_MANT_DIG, FLT_MIN_EXP)));
    }
    return QN_OK;
}

/* int32, in the units that suit the product. */
static qn_status insert_bias(const qn_quantizer *q, const qn_weighted_node *layer,
                             const qn_qparams *x, const qn_qparams *w)
{
    qn_node *node = layer->node;
    const qn_value *bias = node->n_in > 2 ? node->in[2] : NULL;
    qn_qparams *p = NULL;
    qn_value *real = NULL;
    if (!bias || layer->bias_node != node || !q->settings.profile->bias_integer ||
        bias->data->rank != 1)
        return QN_OK;
    if (qn_params_is_int16(x, w))
        QN_TRY(exact_units(&p, q, bias->data));
    else
        QN_TRY(product_units(&p, q, layer, x, w));
    QN_TRY(add_constant(&real, q, bias, p, node));
    return qn_node_set_input(node, 2, real);
}

/* Each node that reads shared weights has integers of its own: with exact products
 * (session.x64quantprecision) ONNX Runtime (1.31) refuses files in which two nodes read the
 * same. */
static qn_status insert_weights(const qn_quantizer *q, const qn_quant_node *n,
                                const qn_weighted_node *layer)
{
    qn_value *w = n->node->in[1], *real = NULL;
    const qn_value *x = n->node->in[0];
    QN_TRY(add_constant(&real, q, w, n->weights, n->node));
    w->qparams = n->weights;
    if (x->producer && x->producer->op == &qn_op_DequantizeLinear && n->input)
        QN_TRY(insert_bias(q, layer, n->input, n->weights));
    QN_TRY(qn_node_set_input(n->node, 1, real));
    if (w->n_users == 0)
        qn_model_release(q->model, w->data);
    return QN_OK;
}

/* A part of a Concat has the result's scale: it is copied then. */
static qn_status operand_params(const qn_qparams **out, const qn_quantizer *q,
                                const qn_quant_node *n, const qn_tensor *data)
{
    qn_qparams *own = NULL;
    if (n->quant_class == QN_CLASS_RECURRENT) {
        QN_TRY(qn_params_of_gates(&own, q, data, n));
        *out = own;
        return QN_OK;
    }
    *out = n->quant_class == QN_CLASS_CONCAT ? n->node->out[0]->qparams : NULL;
    if (*out)
        return QN_OK;
    QN_TRY(qn_params_of_constant(&own, q, data, n));
    *out = own;
    return QN_OK;
}

static qn_status insert_operands(const qn_quantizer *q, const qn_quant_node *n)
{
    for (int32_t i = 0; i < n->n_data; i++) {
        const qn_value *operand = n->node->in[i];
        const qn_qparams *p;
        qn_value *real;
        if (!operand || !operand->data)
            continue;
        QN_TRY(operand_params(&p, q, n, operand->data));
        QN_TRY(add_constant(&real, q, operand, p, n->node));
        QN_TRY(qn_node_set_input(n->node, i, real));
    }
    return QN_OK;
}

static qn_status insert_constants(qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        qn_weighted_node layer;
        if (!n->integer || n->dropped)
            continue;
        QN_TRY(qn_check_cancel(q->ctx));
        if (n->weights && qn_weighted_node_of(&layer, n->node))
            QN_TRY(insert_weights(q, n, &layer));
        else if (!n->is_function) /* the numbers of a function stay exact */
            QN_TRY(insert_operands(q, n));
    }
    return QN_OK;
}

qn_status qn_quant_insert(qn_quantizer *q)
{
    drop_limits(q);
    for (size_t i = 0; i < q->n_nodes; i++) {
        qn_quant_node *n = &q->nodes[i];
        if (n->weights)
            n->input = qn_params_of_input(q, n);
        n->mask_min = qn_softmax_mask_min(q, n);
    }
    for (size_t i = 0; i < q->n_values; i++) {
        if (q->values[i].integer && q->values[i].value->qparams)
            QN_TRY(insert_value(q, &q->values[i]));
    }
    QN_TRY(insert_constants(q));
    QN_TRY(qn_workarounds_apply(q));
    return qn_graph_infer(q->graph);
}
