/* ONNX's messages as schema tables, made of onnx_schema.def. */
#include "proto/onnx_schema.h"

static const qn_proto_enum_value attribute_type_values[] = {
    {"UNDEFINED", QN_ONNX_TYPE_UNDEFINED},
    {"FLOAT", QN_ONNX_TYPE_FLOAT},
    {"INT", QN_ONNX_TYPE_INT},
    {"STRING", QN_ONNX_TYPE_STRING},
    {"TENSOR", QN_ONNX_TYPE_TENSOR},
    {"GRAPH", QN_ONNX_TYPE_GRAPH},
    {"FLOATS", QN_ONNX_TYPE_FLOATS},
    {"INTS", QN_ONNX_TYPE_INTS},
    {"STRINGS", QN_ONNX_TYPE_STRINGS},
    {"TENSORS", QN_ONNX_TYPE_TENSORS},
    {"GRAPHS", QN_ONNX_TYPE_GRAPHS},
    {"SPARSE_TENSOR", QN_ONNX_TYPE_SPARSE_TENSOR},
    {"SPARSE_TENSORS", QN_ONNX_TYPE_SPARSE_TENSORS},
    {"TYPE_PROTO", QN_ONNX_TYPE_TYPE_PROTO},
    {"TYPE_PROTOS", QN_ONNX_TYPE_TYPE_PROTOS},
};
static const qn_proto_enum attribute_type = {attribute_type_values,
                                             QN_COUNT_OF(attribute_type_values)};

static const qn_proto_enum_value data_location_values[] = {
    {"DEFAULT", QN_ONNX_LOCATION_DEFAULT},
    {"EXTERNAL", QN_ONNX_LOCATION_EXTERNAL},
};
static const qn_proto_enum data_location = {data_location_values,
                                            QN_COUNT_OF(data_location_values)};

#define BEGIN(message) static const qn_proto_field message##_fields[] = {
#define FIELD(constant, name, number, kind, label)                                                 \
    {#name, number, QN_PROTO_##kind, QN_PROTO_##label, NULL, NULL},
#define ENUM(constant, name, number, names)                                                        \
    {#name, number, QN_PROTO_ENUM, QN_PROTO_OPTIONAL, NULL, &names},
#define MESSAGE(constant, name, number, label, message)                                            \
    {#name, number, QN_PROTO_MESSAGE, QN_PROTO_##label, &qn_onnx_##message##_schema, NULL},
#define END(message, name)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    const qn_proto_schema qn_onnx_##message##_schema = {name, message##_fields,                    \
                                                        QN_COUNT_OF(message##_fields)};
#include "proto/onnx_schema.def"
