/* Names, types and metadata of ONNX files. */
#include <string.h>

#include "import/onnx/onnx.h"

qn_status qn_onnx_name(const char **out, qn_onnx_import *import, qn_string name)
{
    if (memchr(name.text, 0, name.length))
        return qn_fail(import->ctx, QN_E_FORMAT, "the name '%.*s...' contains a zero byte",
                       (int)QN_MIN(name.length, 64), name.text);
    QN_TRY_GROW(import->ctx, import->name_buffer, import->name_capacity, name.length + 1);
    memcpy(import->name_buffer, name.text, name.length);
    import->name_buffer[name.length] = 0;
    *out = qn_names_get(&import->names, import->name_buffer);
    if (*out)
        return QN_OK;
    char *fresh = qn_arena_text(&import->tree.arena, name.text, name.length);
    QN_TRY_ALLOC(import->ctx, fresh);
    *out = fresh;
    return qn_names_set(&import->names, fresh, fresh);
}

qn_status qn_onnx_text(const char **out, qn_onnx_import *import, qn_string text)
{
    *out = NULL;
    if (text.length == 0)
        return QN_OK;
    *out = qn_arena_text(import->arena, text.text, text.length);
    QN_TRY_ALLOC(import->ctx, *out);
    return QN_OK;
}

qn_status qn_onnx_metadata(qn_metadata *out, qn_onnx_import *import,
                           const qn_proto_message *message, uint32_t field)
{
    const size_t count = qn_proto_count(message, field);
    *out = (qn_metadata){NULL, 0};
    if (count == 0)
        return QN_OK;
    qn_metadata_entry *pairs = qn_arena_array(import->arena, count, sizeof *pairs);
    QN_TRY_ALLOC(import->ctx, pairs);
    for (size_t i = 0; i < count; i++) {
        const qn_proto_message *entry = qn_proto_message_at(message, field, i);
        QN_TRY(qn_onnx_text(&pairs[i].key, import, qn_proto_string(entry, QN_ONNX_ENTRY_KEY)));
        QN_TRY(qn_onnx_text(&pairs[i].value, import, qn_proto_string(entry, QN_ONNX_ENTRY_VALUE)));
        pairs[i].key = pairs[i].key ? pairs[i].key : "";
        pairs[i].value = pairs[i].value ? pairs[i].value : "";
    }
    *out = (qn_metadata){pairs, count};
    return QN_OK;
}

/* ---- Types ----------------------------------------------------------------------------------- */

static qn_status read_dtype(qn_dtype *out, qn_onnx_import *import, int64_t number)
{
    if (number < 0 || number >= QN_SEQUENCE)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED, "element type %lld is not known",
                       (long long)number);
    *out = (qn_dtype)number;
    return QN_OK;
}

static qn_status read_dim(qn_dim *out, qn_onnx_import *import, const qn_proto_message *dim)
{
    *out = qn_dim_unknown();
    if (qn_proto_has(dim, QN_ONNX_DIMENSION_DIM_VALUE)) {
        /* Some exporters write -1 for a size that is not known. */
        out->value = qn_proto_int(dim, QN_ONNX_DIMENSION_DIM_VALUE, -1);
        return out->value >= -1 ? QN_OK
                                : qn_fail(import->ctx, QN_E_FORMAT, "a dimension is %lld",
                                          (long long)out->value);
    }
    return qn_onnx_text(&out->symbol, import, qn_proto_string(dim, QN_ONNX_DIMENSION_DIM_PARAM));
}

/* Made only where a dimension has one. */
static qn_status read_denotations(qn_type *out, qn_onnx_import *import,
                                  const qn_proto_message *shape)
{
    const char **all = NULL;
    for (int32_t i = 0; i < out->rank; i++) {
        const qn_proto_message *dim = qn_proto_message_at(shape, QN_ONNX_SHAPE_DIM, (size_t)i);
        const qn_string text = qn_proto_string(dim, QN_ONNX_DIMENSION_DENOTATION);
        if (text.length == 0)
            continue;
        if (!all)
            all = qn_arena_array(import->arena, (size_t)out->rank, sizeof *all);
        QN_TRY_ALLOC(import->ctx, all);
        QN_TRY(qn_onnx_text(&all[i], import, text));
    }
    out->dim_denotations = all;
    return QN_OK;
}

static qn_status read_tensor_type(qn_type *out, qn_onnx_import *import,
                                  const qn_proto_message *tensor)
{
    const qn_proto_message *shape = qn_proto_get_message(tensor, QN_ONNX_TENSOR_TYPE_SHAPE);
    const size_t rank = qn_proto_count(shape, QN_ONNX_SHAPE_DIM);
    *out = (qn_type){.kind = QN_TYPE_TENSOR, .rank = -1};
    QN_TRY(read_dtype(&out->dtype, import, qn_proto_int(tensor, QN_ONNX_TENSOR_TYPE_ELEM_TYPE, 0)));
    if (!shape)
        return QN_OK;
    if (rank > QN_MAX_RANK)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED, "%zu dimensions are more than %d", rank,
                       QN_MAX_RANK);
    out->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++)
        QN_TRY(read_dim(&out->dims[i], import, qn_proto_message_at(shape, QN_ONNX_SHAPE_DIM, i)));
    if (!qn_type_fits(out)) {
        char text[256];
        qn_type_format(text, sizeof text, out);
        return qn_fail(import->ctx, QN_E_FORMAT, "no memory can hold a tensor %s", text);
    }
    return read_denotations(out, import, shape);
}

static qn_status read_element(qn_type *out, qn_onnx_import *import, qn_type_kind kind,
                              const qn_proto_message *element)
{
    *out = (qn_type){.kind = kind, .rank = -1};
    if (!element)
        return QN_OK;
    qn_type *type = qn_arena_alloc(import->arena, sizeof *type);
    QN_TRY_ALLOC(import->ctx, type);
    out->element = type;
    return qn_onnx_type(type, import, element);
}

static qn_status read_type(qn_type *out, qn_onnx_import *import, const qn_proto_message *type)
{
    const qn_proto_message *tensor = qn_proto_get_message(type, QN_ONNX_TYPE_TENSOR_TYPE);
    const qn_proto_message *sequence = qn_proto_get_message(type, QN_ONNX_TYPE_SEQUENCE_TYPE);
    const qn_proto_message *optional = qn_proto_get_message(type, QN_ONNX_TYPE_OPTIONAL_TYPE);
    const qn_proto_message *map = qn_proto_get_message(type, QN_ONNX_TYPE_MAP_TYPE);
    *out = (qn_type){.kind = QN_TYPE_UNKNOWN, .rank = -1};
    if (tensor)
        return read_tensor_type(out, import, tensor);
    if (sequence)
        return read_element(out, import, QN_TYPE_SEQUENCE,
                            qn_proto_get_message(sequence, QN_ONNX_SEQUENCE_TYPE_ELEM_TYPE));
    if (optional)
        return read_element(out, import, QN_TYPE_OPTIONAL,
                            qn_proto_get_message(optional, QN_ONNX_OPTIONAL_TYPE_ELEM_TYPE));
    if (!map)
        return QN_OK;
    QN_TRY(read_element(out, import, QN_TYPE_MAP,
                        qn_proto_get_message(map, QN_ONNX_MAP_TYPE_VALUE_TYPE)));
    return read_dtype(&out->dtype, import, qn_proto_int(map, QN_ONNX_MAP_TYPE_KEY_TYPE, 0));
}

qn_status qn_onnx_type(qn_type *out, qn_onnx_import *import, const qn_proto_message *type)
{
    QN_TRY(read_type(out, import, type));
    return qn_onnx_text(&out->denotation, import, qn_proto_string(type, QN_ONNX_TYPE_DENOTATION));
}
