/* ONNX's messages as schema tables: QN_ONNX_NODE_OP_TYPE is the number of NodeProto.op_type, and
 * qn_onnx_node_schema is that message. */
#ifndef QN_ONNX_SCHEMA_H
#define QN_ONNX_SCHEMA_H

#include "proto/proto.h"

#define BEGIN(message)
#define FIELD(constant, name, number, kind, label) QN_ONNX_##constant = number,
#define ENUM(constant, name, number, names) QN_ONNX_##constant = number,
#define MESSAGE(constant, name, number, label, message) QN_ONNX_##constant = number,
#define END(message, name)
enum {
#include "proto/onnx_schema.def"
};
#undef BEGIN
#undef FIELD
#undef ENUM
#undef MESSAGE
#undef END

#define BEGIN(message) extern const qn_proto_schema qn_onnx_##message##_schema;
#define FIELD(constant, name, number, kind, label)
#define ENUM(constant, name, number, names)
#define MESSAGE(constant, name, number, label, message)
#define END(message, name)
#include "proto/onnx_schema.def"
#undef BEGIN
#undef FIELD
#undef ENUM
#undef MESSAGE
#undef END

/* AttributeProto.AttributeType */
enum {
    QN_ONNX_TYPE_UNDEFINED = 0,
    QN_ONNX_TYPE_FLOAT = 1,
    QN_ONNX_TYPE_INT = 2,
    QN_ONNX_TYPE_STRING = 3,
    QN_ONNX_TYPE_TENSOR = 4,
    QN_ONNX_TYPE_GRAPH = 5,
    QN_ONNX_TYPE_FLOATS = 6,
    QN_ONNX_TYPE_INTS = 7,
    QN_ONNX_TYPE_STRINGS = 8,
    QN_ONNX_TYPE_TENSORS = 9,
    QN_ONNX_TYPE_GRAPHS = 10,
    QN_ONNX_TYPE_SPARSE_TENSOR = 11,
    QN_ONNX_TYPE_SPARSE_TENSORS = 12,
    QN_ONNX_TYPE_TYPE_PROTO = 13,
    QN_ONNX_TYPE_TYPE_PROTOS = 14
};

/* TensorProto.DataLocation */
enum { QN_ONNX_LOCATION_DEFAULT = 0, QN_ONNX_LOCATION_EXTERNAL = 1 };

/* Newest Version that the tables know. */
enum { QN_ONNX_IR_VERSION = 14 };

#endif
