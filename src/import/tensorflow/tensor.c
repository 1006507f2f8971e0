/* Types, shapes and contents of tensors as TensorFlow writes them. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* A constant that a file fills with one number may not be larger than this. */
enum { MOST_FILLED = 1 << 24 };

qn_dtype qn_tf_dtype(int64_t number)
{
    static const uint8_t types[] = {
        [1] = QN_FLOAT32, [2] = QN_FLOAT64,     [3] = QN_INT32,    [4] = QN_UINT8,
        [5] = QN_INT16,   [6] = QN_INT8,        [7] = QN_STRING,   [8] = QN_COMPLEX64,
        [9] = QN_INT64,   [10] = QN_BOOL,       [11] = QN_INT8,    [12] = QN_UINT8,
        [13] = QN_INT32,  [14] = QN_BFLOAT16,   [15] = QN_INT16,   [16] = QN_UINT16,
        [17] = QN_UINT16, [18] = QN_COMPLEX128, [19] = QN_FLOAT16, [22] = QN_UINT32,
        [23] = QN_UINT64,
    };
    const int64_t plain = number > QN_TF_REF ? number - QN_TF_REF : number;
    return plain > 0 && plain < (int64_t)QN_COUNT_OF(types) ? (qn_dtype)types[plain] : QN_UNDEFINED;
}

qn_status qn_tf_shape(qn_type *out, qn_tf_import *import, const qn_proto_message *shape)
{
    const size_t rank = qn_proto_count(shape, QN_TF_SHAPE_DIM);
    out->kind = QN_TYPE_TENSOR;
    out->rank = -1;
    if (!shape || qn_proto_int(shape, QN_TF_SHAPE_UNKNOWN_RANK, 0))
        return QN_OK;
    if (rank > QN_MAX_RANK)
        return qn_graph_builder_fail(&import->builder, QN_E_UNSUPPORTED,
                                     "%zu dimensions, more than %d", rank, QN_MAX_RANK);
    out->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        const qn_proto_message *dim = qn_proto_message_at(shape, QN_TF_SHAPE_DIM, i);
        const int64_t size = qn_proto_int(dim, QN_TF_DIM_SIZE, 0);
        out->dims[i] = size < 0 ? qn_dim_unknown() : qn_dim_of(size);
    }
    return QN_OK;
}

/* ---- Contents -------------------------------------------------------------------------------- */

/* The field that numbers of a type stand in. */
static uint32_t field_of(qn_dtype dtype)
{
    switch ((int)dtype) {
    case QN_FLOAT32: return QN_TF_TENSOR_FLOATS;
    case QN_FLOAT64: return QN_TF_TENSOR_DOUBLES;
    case QN_INT64: return QN_TF_TENSOR_LONGS;
    case QN_BOOL: return QN_TF_TENSOR_BOOLS;
    case QN_FLOAT16:
    case QN_BFLOAT16: return QN_TF_TENSOR_HALVES;
    case QN_UINT32: return QN_TF_TENSOR_UINTS;
    case QN_UINT64: return QN_TF_TENSOR_ULONGS;
    default: return QN_TF_TENSOR_INTS;
    }
}

static bool is_half(qn_dtype dtype)
{
    return dtype == QN_FLOAT16 || dtype == QN_BFLOAT16;
}

/* The listed numbers, one after the other; the last one stands for all that are missing. */
static void fill(qn_tensor *tensor, const qn_proto_message *proto)
{
    const qn_dtype raw = is_half(tensor->dtype) ? QN_UINT16 : tensor->dtype;
    qn_proto_numbers numbers = qn_proto_numbers_of(proto, field_of(tensor->dtype));
    const int64_t count = qn_tensor_count(tensor);
    int64_t whole = 0;
    double real = 0;
    for (int64_t i = 0; i < count; i++) {
        if (qn_dtype_is_float(raw)) {
            (void)qn_proto_next_real(&real, &numbers);
            qn_store_f64(tensor->data, raw, i, &real, 1);
        } else {
            (void)qn_proto_next_int(&whole, &numbers);
            qn_store_i64(tensor->data, raw, i, &whole, 1);
        }
    }
}

static qn_status filled(qn_value **out, qn_tf_import *import, const char *name, const qn_type *type,
                        const qn_proto_message *proto)
{
    int64_t dims[QN_MAX_RANK], count;
    qn_tensor *tensor;
    qn_graph_builder *b = &import->builder;
    if (!qn_type_is_static(type, dims) || !qn_dims_count(&count, type->rank, dims))
        return qn_graph_builder_fail(b, QN_E_FORMAT, "'%s' has no shape", name);
    if (count > MOST_FILLED)
        return qn_graph_builder_fail(b, QN_E_UNSUPPORTED, "'%s' has %lld numbers of few", name,
                                     (long long)count);
    QN_TRY(qn_tensor_create(&tensor, b->ctx, &b->model->arena, type));
    fill(tensor, proto);
    return qn_value_constant(out, b->graph, name, tensor);
}

/* Whether the bytes live as long as the model: those of its maps do. */
static bool is_mapped(const qn_model *model, qn_string bytes)
{
    for (size_t i = 0; i < model->n_maps; i++) {
        const char *begin = (const char *)model->maps[i].data;
        if (bytes.text >= begin && bytes.text < begin + model->maps[i].size)
            return true;
    }
    return false;
}

qn_status qn_tf_tensor(qn_value **out, qn_tf_import *import, const char *name,
                       const qn_proto_message *tensor)
{
    qn_type type = {.kind = QN_TYPE_TENSOR};
    qn_graph_builder *b = &import->builder;
    const int64_t number = qn_proto_int(tensor, QN_TF_TENSOR_DTYPE, 0);
    QN_TRY(qn_tf_shape(&type, import, qn_proto_get_message(tensor, QN_TF_TENSOR_SHAPE)));
    if (!qn_proto_get_message(tensor, QN_TF_TENSOR_SHAPE))
        type.rank = 0;
    type.dtype = qn_tf_dtype(number);
    if (type.dtype == QN_UNDEFINED || type.dtype == QN_STRING || !qn_type_is_static(&type, NULL))
        return qn_graph_builder_fail(b, QN_E_UNSUPPORTED, "constants of type %lld are not read",
                                     (long long)number);
    qn_string bytes = qn_proto_string(tensor, QN_TF_TENSOR_CONTENT);
    if (bytes.length == 0 && qn_dtype_is_float(type.dtype) && !is_half(type.dtype)) {
        size_t wanted;
        int64_t dims[QN_MAX_RANK];
        const qn_string packed = qn_proto_packed(tensor, field_of(type.dtype));
        if (qn_type_is_static(&type, dims) &&
            qn_tensor_bytes(&wanted, type.dtype, type.rank, dims) && wanted == packed.length)
            bytes = packed;
    }
    if (bytes.length == 0)
        return filled(out, import, name, &type, tensor);
    if (!is_mapped(b->model, bytes)) {
        bytes.text = qn_arena_copy(&b->model->arena, bytes.text, bytes.length);
        QN_TRY_ALLOC(b->ctx, bytes.text);
    }
    return qn_graph_build_constant(out, b, name, &type, bytes);
}
