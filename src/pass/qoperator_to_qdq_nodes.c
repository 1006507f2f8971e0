/* Q and D nodes around an operator that computed on integers before. */
#include "pass/qoperator_to_qdq.h"

#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "pass/qdq_nodes.h"

qn_value *qn_qoperator_input(const qn_node *node, int32_t slot)
{
    return slot >= 0 && slot < node->n_in ? node->in[slot] : NULL;
}

/* Files have one number in one dimension too, which a D would take for one of an axis. */
static qn_status as_scalar(qn_value **value)
{
    const qn_tensor *data = *value ? (*value)->data : NULL;
    qn_tensor *scalar;
    if (!data || data->rank == 0 || qn_tensor_count(data) != 1)
        return QN_OK;
    const qn_type type = qn_type_tensor(data->dtype, 0, NULL);
    QN_TRY(qn_tensor_create(&scalar, (*value)->graph->ctx, (*value)->graph->arena, &type));
    memcpy(scalar->data, data->data, qn_dtype_size(data->dtype));
    return qn_value_constant(value, (*value)->graph, (*value)->name, scalar);
}

int64_t qn_qoperator_count(const qn_value *value)
{
    const qn_type *type = value ? &value->type : NULL;
    return type && type->rank == 1 ? type->dims[0].value : 1;
}

/* One number for all of an axis, as often as there are others. */
static qn_status as_many(qn_value **value, int64_t count)
{
    const qn_tensor *data = *value ? (*value)->data : NULL;
    qn_tensor *all;
    if (!data || count < 2 || qn_tensor_count(data) != 1)
        return QN_OK;
    const qn_type type = qn_type_tensor(data->dtype, 1, &count);
    const size_t size = qn_dtype_size(data->dtype);
    QN_TRY(qn_tensor_create(&all, (*value)->graph->ctx, (*value)->graph->arena, &type));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)all->data + (size_t)i * size, data->data, size);
    return qn_value_constant(value, (*value)->graph, (*value)->name, all);
}

static qn_status add_node(qn_value **out, const qn_op *op, qn_value *x, const qn_quantized *m,
                          qn_node *before)
{
    qn_value *scale = m->scale, *zero = m->zero;
    const int64_t count = QN_MAX(qn_qoperator_count(scale), qn_qoperator_count(zero));
    QN_TRY(m->params.axis < 0 ? as_scalar(&scale) : as_many(&scale, count));
    QN_TRY(m->params.axis < 0 ? as_scalar(&zero) : as_many(&zero, count));
    return qn_qdq_node_add(out, &(qn_qdq_node_spec){.op = op,
                                                    .base = x->name,
                                                    .in = {x, scale, zero},
                                                    .before = before,
                                                    .axis = m->params.axis});
}

/* A D that makes the same of the integers already, put right behind them. */
static qn_status find_dequantized(qn_value **out, const qn_quantized *m)
{
    qn_quantized wanted = {.params = qn_qparams_of_type(m->value->type.dtype)};
    const bool known = m->params.axis < 0 && m->scale->data && m->zero && m->zero->data;
    const qn_node *producer = m->value->producer;
    *out = NULL;
    if (known) {
        wanted.params.scale = (float)qn_tensor_f64(m->scale->data, 0);
        wanted.params.zero = qn_tensor_i64(m->zero->data, 0);
    }
    for (size_t u = 0; known && !*out && u < m->value->n_users; u++) {
        qn_node *node = m->value->users[u];
        qn_node *place = producer ? producer->next : m->value->graph->first;
        qn_quantized d = {.value = m->value};
        bool found = false;
        if (!qn_is_dequantize(node) || node->in[0] != m->value || node->out[0]->is_output)
            continue;
        QN_TRY(qn_qdq_parameters(&found, &d, node));
        if (!found || !qn_quantized_alike(&d, &wanted))
            continue;
        *out = node->out[0];
        if (place != node)
            qn_node_move(node, place);
    }
    return QN_OK;
}

/* What people call the float number: tools put one of these behind its name for the integers'. */
static qn_status float_name(char **out, const qn_value *integers)
{
    static const char tail[] = "_quantized";
    const size_t length = strlen(integers->name), own = sizeof tail - 1;
    size_t base = qn_qdq_base_length(integers->name);
    if (length > own && strcmp(integers->name + length - own, tail) == 0)
        base = length - own;
    if (base == length)
        return qn_rewrite_name(out, integers->graph, integers->name, "_float");
    QN_TRY(qn_rewrite_name(out, integers->graph, integers->name, ""));
    (*out)[base] = '\0';
    return QN_OK;
}

qn_status qn_qoperator_dequantize(qn_value **out, const qn_quantized *m, qn_node *before)
{
    char *name = NULL;
    QN_TRY(find_dequantized(out, m));
    if (*out)
        return QN_OK;
    const qn_node *producer = m->value->producer;
    const bool is_constant = m->scale->data && (!m->zero || m->zero->data);
    QN_TRY(add_node(out, &qn_op_DequantizeLinear, m->value, m,
                    producer && is_constant ? producer->next : before));
    if (!m->value->data)
        return QN_OK;
    QN_TRY(float_name(&name, m->value));
    return qn_value_rename(*out, name);
}

qn_status qn_qoperator_float_output(qn_node *node, int32_t slot, qn_value *integers)
{
    qn_value *dequantized;
    char *name = NULL;
    QN_TRY(float_name(&name, integers));
    QN_TRY(qn_value_create(&dequantized, node->graph, name));
    node->out[slot] = NULL;
    integers->producer = NULL;
    qn_node_set_output(node, slot, dequantized);
    return QN_OK;
}

qn_status qn_qoperator_quantize(qn_value *dequantized, const qn_quantized *y)
{
    qn_value *fresh;
    QN_TRY(add_node(&fresh, &qn_op_QuantizeLinear, dequantized, y, dequantized->producer->next));
    qn_node *quantize = fresh->producer;
    quantize->out[0]->producer = NULL;
    quantize->out[0] = NULL;
    qn_node_set_output(quantize, 0, y->value);
    return qn_node_infer(quantize);
}
