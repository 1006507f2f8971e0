/* Values of a layer's call, and the nodes that come up everywhere. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/keras/keras.h"

qn_status qn_keras_fail(const qn_keras_call *call, qn_status status, const char *format, ...)
{
    char text[QN_ERROR_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return qn_graph_builder_fail(&call->import->builder, status, "%s", text);
}

const char *qn_keras_fresh(qn_keras_import *import)
{
    return qn_arena_format(&import->arena, "%%%llu", (unsigned long long)import->made++);
}

static qn_status check(const qn_keras_call *call, size_t i)
{
    return i < call->n_in ? QN_OK : qn_keras_fail(call, QN_E_FORMAT, "input %zu is missing", i);
}

qn_status qn_keras_in(qn_value **out, const qn_keras_call *call, size_t i, qn_axis_order order)
{
    QN_TRY(check(call, i));
    return qn_layout_find(out, &call->import->layouts, call->in[i], order);
}

qn_status qn_keras_in_any(qn_value **out, qn_axis_order *order, const qn_keras_call *call, size_t i)
{
    QN_TRY(check(call, i));
    QN_TRY(qn_layout_any(out, order, &call->import->layouts, call->in[i]));
    if ((*out)->type.kind != QN_TYPE_TENSOR || (*out)->type.rank < 0)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the rank of its input is not known");
    return QN_OK;
}

qn_status qn_keras_out(qn_keras_call *call, qn_value *value, qn_axis_order order)
{
    qn_names_remove(&call->import->flat, call->out);
    return qn_layout_define(&call->import->layouts, call->out, value, order);
}

qn_status qn_keras_alias(qn_keras_import *import, const char *name, const char *as)
{
    void *held = qn_names_get(&import->layouts.named, as);
    void *flat = qn_names_get(&import->flat, as), *mask = qn_names_get(&import->masks, as);
    if (!held)
        return qn_graph_builder_fail(&import->builder, QN_E_FORMAT, "nothing computes '%s'", as);
    if (flat)
        QN_TRY(qn_names_set(&import->flat, name, flat));
    if (mask)
        QN_TRY(qn_names_set(&import->masks, name, mask));
    return qn_names_set(&import->layouts.named, name, held);
}

qn_status qn_keras_same(qn_keras_call *call)
{
    QN_TRY(check(call, 0));
    return qn_keras_alias(call->import, call->out, call->in[0]);
}

qn_axis_order qn_keras_order(const qn_keras_call *call)
{
    return qn_keras_channels_first(call) ? QN_ORDER_OWN : QN_ORDER_CHANNELS_FIRST;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

qn_status qn_keras_number(qn_value **out, qn_keras_import *import, double number, qn_dtype dtype)
{
    const qn_type type = qn_type_tensor(dtype, 0, NULL);
    qn_graph_builder *b = &import->builder;
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, b->ctx, &b->model->arena, &type));
    qn_store_f64(tensor->data, dtype, 0, &number, 1);
    return qn_value_constant(out, b->graph, NULL, tensor);
}

qn_status qn_keras_with_ints(qn_value **value, qn_keras_import *import, const qn_op *op,
                             const int64_t *ints, size_t count)
{
    qn_value *list;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_graph_build_ints(&list, b, ints, count));
    return qn_graph_build(value, b, op, QN_INPUTS(*value, list), QN_PLAIN);
}

qn_status qn_keras_permute(qn_value **value, qn_keras_import *import, const int64_t *perm,
                           size_t count)
{
    return qn_graph_build(value, &import->builder, &qn_op_Transpose, QN_INPUTS(*value),
                          QN_WITH(QN_A_INT_LIST("perm", perm, count)));
}

qn_status qn_keras_two(qn_value **out, qn_keras_import *import, const qn_op *op, qn_value *a,
                       qn_value *b)
{
    return qn_graph_build(out, &import->builder, op, QN_INPUTS(a, b), QN_PLAIN);
}

qn_status qn_keras_part(qn_value **value, qn_keras_import *import, int64_t axis, int64_t begin,
                        int64_t end)
{
    qn_value *from, *to, *along;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_graph_build_ints(&from, b, &begin, 1));
    QN_TRY(qn_graph_build_ints(&to, b, &end, 1));
    QN_TRY(qn_graph_build_ints(&along, b, &axis, 1));
    return qn_graph_build(value, b, &qn_op_Slice, QN_INPUTS(*value, from, to, along), QN_PLAIN);
}
