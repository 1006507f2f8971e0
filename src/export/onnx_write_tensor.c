/* Tensors and types written as ONNX messages. */
#include <stdio.h>
#include <string.h>

#include "export/onnx.h"

enum { DATA_ALIGNMENT = 4096 }; /* of tensors in data files, so that they can be mapped */

/* ---- Types ----------------------------------------------------------------------------------- */

static qn_status write_shape(qn_onnx_export *export, qn_proto_message *to, const qn_type *type)
{
    qn_proto_message *shape, *dim;
    QN_TRY(qn_proto_add_message(&shape, &export->tree, to, QN_ONNX_TENSOR_TYPE_SHAPE));
    for (int32_t i = 0; i < type->rank; i++) {
        QN_TRY(qn_proto_add_message(&dim, &export->tree, shape, QN_ONNX_SHAPE_DIM));
        if (type->dims[i].value >= 0)
            QN_TRY(qn_proto_add_int(&export->tree, dim, QN_ONNX_DIMENSION_DIM_VALUE,
                                    type->dims[i].value));
        else if (type->dims[i].symbol)
            QN_TRY(qn_proto_add_text(&export->tree, dim, QN_ONNX_DIMENSION_DIM_PARAM,
                                     type->dims[i].symbol));
        if (type->dim_denotations && type->dim_denotations[i])
            QN_TRY(qn_proto_add_text(&export->tree, dim, QN_ONNX_DIMENSION_DENOTATION,
                                     type->dim_denotations[i]));
    }
    return QN_OK;
}

/* The IR version that brought an element type. */
static int64_t ir_version_of(qn_dtype dtype)
{
    switch (dtype) {
    case QN_FLOAT8E4M3FN:
    case QN_FLOAT8E4M3FNUZ:
    case QN_FLOAT8E5M2:
    case QN_FLOAT8E5M2FNUZ: return 9;
    case QN_UINT4:
    case QN_INT4: return 10;
    case QN_FLOAT4E2M1: return 11;
    case QN_FLOAT8E8M0: return 12;
    case QN_UINT2:
    case QN_INT2: return 13;
    case QN_FLOAT6E2M3:
    case QN_FLOAT6E3M2: return 14;
    default: return 1;
    }
}

void qn_onnx_note_type(qn_onnx_export *export, qn_dtype dtype)
{
    export->ir_version = QN_MAX(export->ir_version, ir_version_of(dtype));
}

qn_status qn_onnx_write_type(qn_onnx_export *export, qn_proto_message *to, const qn_type *type)
{
    static const struct {
        uint32_t outer, element;
    } fields[] = {
        [QN_TYPE_SEQUENCE] = {QN_ONNX_TYPE_SEQUENCE_TYPE, QN_ONNX_SEQUENCE_TYPE_ELEM_TYPE},
        [QN_TYPE_OPTIONAL] = {QN_ONNX_TYPE_OPTIONAL_TYPE, QN_ONNX_OPTIONAL_TYPE_ELEM_TYPE},
        [QN_TYPE_MAP] = {QN_ONNX_TYPE_MAP_TYPE, QN_ONNX_MAP_TYPE_VALUE_TYPE}};
    qn_proto_message *message, *element;
    if (type->kind == QN_TYPE_UNKNOWN)
        return QN_OK;
    if (type->denotation)
        QN_TRY(qn_proto_add_text(&export->tree, to, QN_ONNX_TYPE_DENOTATION, type->denotation));
    if (type->kind == QN_TYPE_TENSOR) {
        qn_onnx_note_type(export, type->dtype);
        QN_TRY(qn_proto_add_message(&message, &export->tree, to, QN_ONNX_TYPE_TENSOR_TYPE));
        QN_TRY(
            qn_proto_add_int(&export->tree, message, QN_ONNX_TENSOR_TYPE_ELEM_TYPE, type->dtype));
        return type->rank >= 0 ? write_shape(export, message, type) : QN_OK;
    }
    QN_TRY(qn_proto_add_message(&message, &export->tree, to, fields[type->kind].outer));
    if (type->kind == QN_TYPE_MAP)
        QN_TRY(qn_proto_add_int(&export->tree, message, QN_ONNX_MAP_TYPE_KEY_TYPE, type->dtype));
    if (!type->element)
        return QN_OK;
    QN_TRY(qn_proto_add_message(&element, &export->tree, message, fields[type->kind].element));
    return qn_onnx_write_type(export, element, type->element);
}

/* ---- Contents -------------------------------------------------------------------------------- */

/* Elements below a byte, packed from the low end of each byte. */
static qn_status pack(qn_string *out, qn_onnx_export *export, const qn_tensor *tensor, size_t count)
{
    const size_t bits = qn_dtype_get(tensor->dtype)->bits;
    const size_t size = count / 8 * bits + (count % 8 * bits + 7) / 8;
    const uint8_t *from = tensor->data;
    uint8_t *bytes = qn_arena_alloc(&export->tree.arena, size);
    QN_TRY_ALLOC(export->ctx, bytes);
    for (size_t i = 0; i < count; i++) {
        const size_t first = i * bits;
        const unsigned code = from[i] & ((1u << bits) - 1);
        bytes[first / 8] |= (uint8_t)(code << first % 8);
        if (first % 8 + bits > 8)
            bytes[first / 8 + 1] |= (uint8_t)(code >> (8 - first % 8));
    }
    *out = (qn_string){(const char *)bytes, size};
    return QN_OK;
}

static qn_status add_entry(qn_onnx_export *export, qn_proto_message *to, const char *key,
                           const char *value)
{
    qn_proto_message *entry;
    QN_TRY(qn_proto_add_message(&entry, &export->tree, to, QN_ONNX_TENSOR_EXTERNAL_DATA));
    QN_TRY(qn_proto_add_text(&export->tree, entry, QN_ONNX_ENTRY_KEY, key));
    return qn_proto_add_text(&export->tree, entry, QN_ONNX_ENTRY_VALUE, value);
}

static qn_status add_number(qn_onnx_export *export, qn_proto_message *to, const char *key,
                            uint64_t value)
{
    const char *text = qn_arena_format(&export->tree.arena, "%llu", (unsigned long long)value);
    QN_TRY_ALLOC(export->ctx, text);
    return add_entry(export, to, key, text);
}

static qn_status write_external(qn_onnx_export *export, qn_proto_message *to, qn_string bytes)
{
    const uint64_t offset =
        (export->data_size + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
    QN_TRY_GROW(export->ctx, export->external, export->external_capacity, export->n_external + 1);
    export->external[export->n_external++] = (qn_onnx_external_data){bytes, offset};
    export->data_size = offset + bytes.length;
    QN_TRY(add_entry(export, to, "location", export->data_name));
    QN_TRY(add_number(export, to, "offset", offset));
    QN_TRY(add_number(export, to, "length", bytes.length));
    return qn_proto_add_int(&export->tree, to, QN_ONNX_TENSOR_DATA_LOCATION,
                            QN_ONNX_LOCATION_EXTERNAL);
}

static qn_status write_strings(qn_onnx_export *export, qn_proto_message *to,
                               const qn_tensor *tensor)
{
    const qn_string *strings = tensor->data;
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        QN_TRY(qn_proto_add_string(&export->tree, to, QN_ONNX_TENSOR_STRING_DATA, strings[i]));
    return QN_OK;
}

qn_status qn_onnx_write_tensor(qn_onnx_export *export, qn_proto_message *to,
                               const qn_tensor *tensor)
{
    const size_t count = (size_t)qn_tensor_count(tensor);
    qn_onnx_note_type(export, tensor->dtype);
    for (int32_t i = 0; i < tensor->rank; i++)
        QN_TRY(qn_proto_add_int(&export->tree, to, QN_ONNX_TENSOR_DIMS, tensor->dims[i]));
    QN_TRY(qn_proto_add_int(&export->tree, to, QN_ONNX_TENSOR_DATA_TYPE, tensor->dtype));
    if (tensor->dtype == QN_STRING)
        return write_strings(export, to, tensor);
    qn_string bytes = {tensor->data, count * qn_dtype_size(tensor->dtype)};
    if (qn_dtype_get(tensor->dtype)->bits < 8)
        QN_TRY(pack(&bytes, export, tensor, count));
    if (bytes.length >= export->external_from)
        return write_external(export, to, bytes);
    return qn_proto_add_string(&export->tree, to, QN_ONNX_TENSOR_RAW_DATA, bytes);
}
