/* TensorFlow's messages as schema tables: QN_TF_NODE_OP is the number of NodeDef.op, and
 * qn_tf_node_schema is that message. */
#ifndef QN_TF_SCHEMA_H
#define QN_TF_SCHEMA_H

#include "proto/proto.h"

#define BEGIN(message)
#define FIELD(constant, name, number, kind, label) QN_TF_##constant = number,
#define TYPE(constant, name, number, label) QN_TF_##constant = number,
#define MESSAGE(constant, name, number, label, message) QN_TF_##constant = number,
#define SKIP(name, number)
#define END(message, name)
enum {
#include "import/tensorflow/schema.def"
};
#undef BEGIN
#undef FIELD
#undef TYPE
#undef MESSAGE
#undef SKIP
#undef END

#define BEGIN(message) extern const qn_proto_schema qn_tf_##message##_schema;
#define FIELD(constant, name, number, kind, label)
#define TYPE(constant, name, number, label)
#define MESSAGE(constant, name, number, label, message)
#define SKIP(name, number)
#define END(message, name)
#include "import/tensorflow/schema.def"
#undef BEGIN
#undef FIELD
#undef TYPE
#undef MESSAGE
#undef SKIP
#undef END

/* DataType */
enum {
    QN_TF_FLOAT = 1,
    QN_TF_STRING = 7,
    QN_TF_BOOL = 10,
    QN_TF_RESOURCE = 20,
    QN_TF_VARIANT = 21,
    /* A variable that is written in place has this and its type. */
    QN_TF_REF = 100
};

#endif
