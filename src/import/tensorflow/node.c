/* What a converter reads of its node and gives on: values in an order of axes, contents that are
 * known. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"
#include "ops/eval.h"

qn_status qn_tf_fail(const qn_tf_node *node, qn_status status, const char *format, ...)
{
    char text[QN_ERROR_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return qn_graph_builder_fail(&node->import->builder, status, "%s", text);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static qn_status check(const qn_tf_node *node, size_t i)
{
    if (i >= node->n_in)
        return qn_tf_fail(node, QN_E_FORMAT, "input %zu is missing", i);
    if (qn_names_get(&node->import->layouts.named, node->in[i]))
        return QN_OK;
    return qn_tf_fail(node, QN_E_UNSUPPORTED, "'%s' is no tensor", node->in[i]);
}

qn_status qn_tf_in_order(qn_value **out, const qn_tf_node *node, size_t i, qn_axis_order order)
{
    QN_TRY(check(node, i));
    return qn_layout_find(out, &node->import->layouts, node->in[i], order);
}

qn_status qn_tf_in(qn_value **out, const qn_tf_node *node, size_t i)
{
    return qn_tf_in_order(out, node, i, QN_ORDER_OWN);
}

qn_status qn_tf_in_any(qn_value **out, qn_axis_order *order, const qn_tf_node *node, size_t i)
{
    QN_TRY(check(node, i));
    return qn_layout_any(out, order, &node->import->layouts, node->in[i]);
}

static bool is_ranked(const qn_value *value)
{
    return value->type.kind == QN_TYPE_TENSOR && value->type.rank >= 0;
}

qn_status qn_tf_in_ranked(qn_value **out, qn_axis_order *order, const qn_tf_node *node, size_t i)
{
    QN_TRY(qn_tf_in_any(out, order, node, i));
    if (!is_ranked(*out))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "the rank of '%s' is not known", node->in[i]);
    return QN_OK;
}

qn_status qn_tf_in_agreed(qn_value **out, qn_axis_order *order, const qn_tf_node *node,
                          size_t first, size_t count)
{
    bool ranked = true;
    qn_axis_order held;
    for (size_t i = first; i < first + count; i++) {
        QN_TRY(qn_tf_in_any(&out[i - first], &held, node, i));
        ranked &= is_ranked(out[i - first]);
    }
    if (ranked)
        return qn_layout_agree(out, order, &node->import->layouts, node->in + first, count);
    *order = QN_ORDER_OWN;
    for (size_t i = first; i < first + count; i++)
        QN_TRY(qn_tf_in(&out[i - first], node, i));
    return QN_OK;
}

qn_status qn_tf_out(qn_tf_node *node, size_t port, qn_value *value, qn_axis_order order)
{
    qn_tf_import *import = node->import;
    const char *name = qn_tf_output_name(node, port);
    QN_TRY_ALLOC(import->ctx, name);
    if (order == QN_ORDER_OWN)
        QN_TRY(qn_tf_fold(&value, import));
    qn_names_remove(&import->things, name);
    return qn_layout_define(&import->layouts, name, value, order);
}

qn_status qn_tf_pass(qn_tf_node *node)
{
    if (node->n_in == 0)
        return qn_tf_fail(node, QN_E_FORMAT, "it has no input");
    return qn_tf_alias(node->import, node->name, node->in[0]);
}

/* ---- Folding --------------------------------------------------------------------------------- */

/* What is larger stays as it is: the passes fold it where that pays. */
enum { MOST_FOLDED = 4096, FOLD_DEPTH = 6 };

static bool is_small(const qn_value *value)
{
    int64_t dims[QN_MAX_RANK], count;
    return value->type.kind == QN_TYPE_TENSOR && qn_type_is_static(&value->type, dims) &&
           qn_dims_count(&count, value->type.rank, dims) && count <= MOST_FOLDED;
}

/* The contents that inference knows. */
static qn_status from_elements(const qn_tensor **out, qn_tf_import *import, const qn_type *type)
{
    qn_tensor *tensor;
    *out = NULL;
    if (!type->elements || type->rank > 1 || !qn_dtype_is_integer(type->dtype))
        return QN_OK;
    const int64_t count = type->rank ? type->dims[0].value : 1;
    for (int64_t i = 0; i < count; i++) {
        if (!qn_element_known(type->elements[i]))
            return QN_OK;
    }
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tensor_create(&tensor, b->ctx, &b->model->arena, type));
    for (int64_t i = 0; i < count; i++)
        qn_store_i64(tensor->data, type->dtype, i, &type->elements[i].value, 1);
    *out = tensor;
    return QN_OK;
}

static qn_status contents(const qn_tensor **out, qn_tf_import *import, const qn_value *value,
                          int depth);

static qn_status evaluate(const qn_tensor **out, qn_tf_import *import, const qn_value *value,
                          int depth)
{
    enum { MOST = 64 };
    const qn_node *node = value->producer;
    const qn_tensor *in[MOST] = {NULL};
    qn_tensor *results[MOST];
    if (depth == 0 || node->n_in > MOST || node->n_out > MOST || node->n_in != node->n_explicit ||
        (node->op->flags & QN_OP_RANDOM))
        return QN_OK;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!node->in[i])
            continue;
        QN_TRY(contents(&in[i], import, node->in[i], depth - 1));
        if (!in[i])
            return QN_OK;
    }
    qn_graph_builder *b = &import->builder;
    const qn_status status = qn_node_eval(results, b->ctx, &b->model->arena, node, in);
    if (status == QN_OK)
        *out = results[value->producer_slot];
    return status == QN_E_NOMEM || status == QN_E_CANCELLED ? status : QN_OK;
}

static qn_status contents(const qn_tensor **out, qn_tf_import *import, const qn_value *value,
                          int depth)
{
    *out = value->data;
    if (value->data)
        return QN_OK;
    if (!value->producer || value->type.kind != QN_TYPE_TENSOR)
        return QN_OK;
    if (is_small(value))
        QN_TRY(from_elements(out, import, &value->type));
    if (*out || (!is_small(value) && value->type.rank != 1))
        return QN_OK;
    return evaluate(out, import, value, depth);
}

qn_status qn_tf_fold(qn_value **value, qn_tf_import *import)
{
    const qn_tensor *tensor;
    if ((*value)->data || (*value)->is_input)
        return QN_OK;
    QN_TRY(contents(&tensor, import, *value, FOLD_DEPTH));
    if (!tensor || qn_tensor_count(tensor) > MOST_FOLDED)
        return QN_OK;
    return qn_value_constant(value, import->builder.graph, (*value)->name, tensor);
}

/* ---- Contents -------------------------------------------------------------------------------- */

qn_status qn_tf_known(const qn_tensor **out, const qn_tf_node *node, size_t i)
{
    qn_value *value;
    QN_TRY(qn_tf_in(&value, node, i));
    *out = value->data;
    return QN_OK;
}

bool qn_tf_has_ints(const qn_tf_node *node, size_t i)
{
    qn_value *value;
    qn_axis_order order;
    if (i >= node->n_in || qn_tf_in_any(&value, &order, node, i) != QN_OK)
        return false;
    return value->data && qn_dtype_is_integer(value->data->dtype);
}

qn_status qn_tf_ints(int64_t *out, size_t *count, const qn_tf_node *node, size_t i, size_t capacity)
{
    const qn_tensor *tensor;
    QN_TRY(qn_tf_known(&tensor, node, i));
    if (!tensor || !qn_dtype_is_integer(tensor->dtype))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "'%s' has to be integers that are constant",
                          node->in[i]);
    if (qn_tensor_count(tensor) > (int64_t)capacity)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "'%s' has %lld numbers, at most %zu fit",
                          node->in[i], (long long)qn_tensor_count(tensor), capacity);
    *count = (size_t)qn_tensor_count(tensor);
    qn_load_i64(out, tensor->dtype, tensor->data, 0, (int64_t)*count);
    return QN_OK;
}

qn_status qn_tf_int(int64_t *out, const qn_tf_node *node, size_t i)
{
    size_t count = 0;
    QN_TRY(qn_tf_ints(out, &count, node, i, 1));
    return count == 1 ? QN_OK : qn_tf_fail(node, QN_E_FORMAT, "'%s' has no number", node->in[i]);
}

qn_status qn_tf_real(double *out, const qn_tf_node *node, size_t i)
{
    const qn_tensor *tensor;
    QN_TRY(qn_tf_known(&tensor, node, i));
    if (!tensor || qn_tensor_count(tensor) != 1 || tensor->dtype == QN_STRING)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "'%s' has to be a constant number", node->in[i]);
    qn_load_f64(out, tensor->dtype, tensor->data, 0, 1);
    return QN_OK;
}

/* ---- Axes ------------------------------------------------------------------------------------ */

qn_status qn_tf_axis(int64_t *axis, const qn_tf_node *node, int32_t rank)
{
    if (*axis < -rank || *axis >= rank)
        return qn_tf_fail(node, QN_E_FORMAT, "axis %lld is none of the %d", (long long)*axis, rank);
    *axis += *axis < 0 ? rank : 0;
    return QN_OK;
}

bool qn_tf_order_without(qn_axis_order *order, int32_t rank, const bool *gone)
{
    int32_t left = 0, spatial = 0;
    for (int32_t i = 0; i < rank; i++) {
        left += !gone[i];
        spatial += !gone[i] && i > 0 && i < rank - 1;
    }
    *order = QN_ORDER_OWN;
    if (left <= 1 || spatial == 0 || gone[rank - 1])
        return true;
    *order = QN_ORDER_CHANNELS_FIRST;
    return !gone[0] && left >= 3;
}

qn_status qn_tf_in_without(qn_value **out, qn_axis_order *result, int64_t *axes, size_t count,
                           const qn_tf_node *node, size_t i)
{
    bool gone[QN_MAX_RANK] = {false};
    qn_axis_order order;
    QN_TRY(qn_tf_in_ranked(out, &order, node, i));
    const int32_t rank = (*out)->type.rank;
    for (size_t k = 0; k < count; k++) {
        QN_TRY(qn_tf_axis(&axes[k], node, rank));
        gone[axes[k]] = true;
    }
    *result = QN_ORDER_OWN;
    if (order == QN_ORDER_CHANNELS_FIRST && !qn_tf_order_without(result, rank, gone)) {
        QN_TRY(qn_tf_in(out, node, i));
        *result = order = QN_ORDER_OWN;
    }
    for (size_t k = 0; k < count; k++)
        axes[k] = qn_layout_axis(order, rank, axes[k]);
    return QN_OK;
}
