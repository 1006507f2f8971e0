/* Small things that many converters make: casts, reshapes, slices. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

qn_status qn_tf_cast(qn_value **value, qn_tf_import *import, qn_dtype dtype)
{
    if ((*value)->type.dtype == dtype)
        return QN_OK;
    return qn_graph_build(value, &import->builder, &qn_op_Cast, QN_INPUTS(*value),
                          QN_WITH(QN_A_INT("to", dtype)));
}

qn_status qn_tf_number(qn_value **out, qn_tf_import *import, double number, qn_dtype dtype)
{
    const qn_type type = qn_type_tensor(dtype, 0, NULL);
    qn_graph_builder *b = &import->builder;
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, b->ctx, &b->model->arena, &type));
    if (qn_dtype_is_float(dtype))
        qn_store_f64(tensor->data, dtype, 0, &number, 1);
    else
        qn_store_i64(tensor->data, dtype, 0, &(int64_t){(int64_t)number}, 1);
    return qn_value_constant(out, b->graph, NULL, tensor);
}

/* A node with a list of integers as its second input. */
static qn_status with_ints(qn_value **value, qn_tf_import *import, const qn_op *op,
                           const int64_t *ints, size_t count)
{
    qn_value *list;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_graph_build_ints(&list, b, ints, count));
    return qn_graph_build(value, b, op, QN_INPUTS(*value, list), QN_PLAIN);
}

qn_status qn_tf_reshape(qn_value **value, qn_tf_import *import, const int64_t *dims, size_t count)
{
    return with_ints(value, import, &qn_op_Reshape, dims, count);
}

qn_status qn_tf_squeeze(qn_value **value, qn_tf_import *import, const int64_t *axes, size_t count)
{
    return with_ints(value, import, &qn_op_Squeeze, axes, count);
}

qn_status qn_tf_unsqueeze(qn_value **value, qn_tf_import *import, const int64_t *axes, size_t count)
{
    return with_ints(value, import, &qn_op_Unsqueeze, axes, count);
}

qn_status qn_tf_permute(qn_value **value, qn_tf_import *import, const int64_t *perm, size_t count)
{
    bool same = true;
    for (size_t i = 0; i < count; i++)
        same &= perm[i] == (int64_t)i;
    if (same)
        return QN_OK;
    return qn_graph_build(value, &import->builder, &qn_op_Transpose, QN_INPUTS(*value),
                          QN_WITH(QN_A_INT_LIST("perm", perm, count)));
}

qn_status qn_tf_part(qn_value **value, qn_tf_import *import, int64_t axis, int64_t begin,
                     int64_t end)
{
    qn_value *from, *to, *along;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_graph_build_ints(&from, b, &begin, 1));
    QN_TRY(qn_graph_build_ints(&to, b, &end, 1));
    QN_TRY(qn_graph_build_ints(&along, b, &axis, 1));
    return qn_graph_build(value, b, &qn_op_Slice, QN_INPUTS(*value, from, to, along), QN_PLAIN);
}

qn_status qn_tf_shape_of(qn_value **out, qn_tf_import *import, qn_value *value)
{
    int64_t dims[QN_MAX_RANK];
    qn_graph_builder *b = &import->builder;
    if (value->type.kind == QN_TYPE_TENSOR && qn_type_is_static(&value->type, dims))
        return qn_graph_build_ints(out, b, dims, (size_t)value->type.rank);
    return qn_graph_build(out, b, &qn_op_Shape, QN_INPUTS(value), QN_PLAIN);
}
