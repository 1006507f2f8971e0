/* Applies encodings: they become the parameters of the quantizer's values and nodes. */
#include "quant/encodings.h"

#include "ops/eval.h"
#include "quant/params.h"

static qn_status find_value(qn_value **out, const qn_quantizer *q, const char *name)
{
    *out = qn_graph_value(q->graph, name);
    return *out ? QN_OK
                : qn_fail(q->ctx, QN_E_INVALID, "scales: the model has no tensor '%s'", name);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static qn_status apply_values(qn_quantizer *q)
{
    for (size_t i = 0; i < q->encodings.n_values; i++) {
        qn_value_encoding *d = &q->encodings.values[i];
        qn_value *value = NULL;
        QN_TRY(find_value(&value, q, d->name));
        qn_quant_root(q, qn_quant_value_of(q, value))->encoding = d;
    }
    for (size_t i = 0; i < q->n_values; i++) {
        const qn_quant_value *v = &q->values[i];
        const qn_value_encoding *d = qn_quant_root(q, v)->encoding;
        if (!v->integer)
            continue;
        if (!d)
            return qn_fail(q->ctx, QN_E_INVALID, "scales: there is none of tensor '%s'",
                           v->value->name);
        v->value->qparams = d->params;
    }
    return QN_OK;
}

/* ---- Weights and biases ---------------------------------------------------------------------- */

static qn_status correct_bias(const qn_weighted_node *m, const float *correction)
{
    const qn_node *node = m->bias_node;
    qn_tensor *fresh;
    const qn_value *old = m->bias_slot < node->n_in ? node->in[m->bias_slot] : NULL;
    const qn_type type = old && qn_tensor_count(old->data) == m->filters
                             ? qn_type_of(old->data)
                             : qn_type_tensor(QN_FLOAT32, 1, &m->filters);
    QN_TRY(qn_model_tensor(&fresh, node->graph->model, &type));
    for (int64_t k = 0; k < m->filters; k++)
        ((float *)fresh->data)[k] = (float)(qn_weighted_node_bias(m, k) + (double)correction[k]);
    return qn_node_put_constant(m->bias_node, m->bias_slot, fresh, "bias");
}

static qn_status apply_node(qn_quantizer *q, const qn_layer_encoding *d)
{
    qn_value *value = NULL;
    qn_weighted_node layer;
    QN_TRY(find_value(&value, q, d->name));
    qn_quant_node *n = value->producer ? qn_quant_node_of(q, value->producer) : NULL;
    const bool fits = n && qn_quant_weighted_node(&layer, n) && layer.filters == d->filters &&
                      (d->weights->axis < 0 || (d->weights->axis == layer.axis &&
                                                d->weights->count == layer.w->dims[layer.axis]));
    if (!fits || (d->correction && !layer.bias_node))
        return qn_fail(q->ctx, QN_E_INVALID,
                       "scales: what is said of '%s' does not fit the weights of its node",
                       d->name);
    n->weights = d->weights;
    return d->correction ? correct_bias(&layer, d->correction) : QN_OK;
}

static qn_status check_nodes(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        qn_weighted_node layer;
        if (!n->weights && qn_quant_weighted_node(&layer, n))
            return qn_fail(q->ctx, QN_E_INVALID, "scales: there are none of the weights of '%s'",
                           n->node->out[0]->name);
    }
    return QN_OK;
}

qn_status qn_encodings_apply(qn_quantizer *q)
{
    qn_quantizer_number(q);
    QN_TRY(apply_values(q));
    for (size_t i = 0; i < q->encodings.n_nodes; i++)
        QN_TRY(apply_node(q, &q->encodings.nodes[i]));
    return check_nodes(q);
}
