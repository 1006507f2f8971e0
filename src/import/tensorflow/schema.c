/* TensorFlow's messages as schema tables, made of schema.def. */
#include "import/tensorflow/schema.h"

/* Each type has a second one for variables that are written in place. */
#define WITH_REF(name, number)                                                                     \
    {name, number},                                                                                \
    {                                                                                              \
        name "_REF", (number) + QN_TF_REF                                                          \
    }
static const qn_proto_enum_value type_values[] = {
    WITH_REF("DT_FLOAT", QN_TF_FLOAT), WITH_REF("DT_DOUBLE", 2),
    WITH_REF("DT_INT32", 3),           WITH_REF("DT_UINT8", 4),
    WITH_REF("DT_INT16", 5),           WITH_REF("DT_INT8", 6),
    WITH_REF("DT_STRING", 7),          WITH_REF("DT_COMPLEX64", 8),
    WITH_REF("DT_INT64", 9),           WITH_REF("DT_BOOL", QN_TF_BOOL),
    WITH_REF("DT_QINT8", 11),          WITH_REF("DT_QUINT8", 12),
    WITH_REF("DT_QINT32", 13),         WITH_REF("DT_BFLOAT16", 14),
    WITH_REF("DT_QINT16", 15),         WITH_REF("DT_QUINT16", 16),
    WITH_REF("DT_UINT16", 17),         WITH_REF("DT_COMPLEX128", 18),
    WITH_REF("DT_HALF", 19),           WITH_REF("DT_RESOURCE", QN_TF_RESOURCE),
    WITH_REF("DT_VARIANT", 21),        WITH_REF("DT_UINT32", 22),
    WITH_REF("DT_UINT64", 23)};
static const qn_proto_enum types = {type_values, QN_COUNT_OF(type_values)};

#define BEGIN(message) static const qn_proto_field message##_fields[] = {
#define FIELD(constant, name, number, kind, label)                                                 \
    {#name, number, QN_PROTO_##kind, QN_PROTO_##label, NULL, NULL},
#define TYPE(constant, name, number, label)                                                        \
    {#name, number, QN_PROTO_ENUM, QN_PROTO_##label, NULL, &types},
#define SKIP(name, number) {#name, number, QN_PROTO_MESSAGE, QN_PROTO_OPTIONAL, NULL, NULL},
#define MESSAGE(constant, name, number, label, message)                                            \
    {#name, number, QN_PROTO_MESSAGE, QN_PROTO_##label, &qn_tf_##message##_schema, NULL},
#define END(message, name)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    const qn_proto_schema qn_tf_##message##_schema = {name, message##_fields,                      \
                                                      QN_COUNT_OF(message##_fields)};
#include "import/tensorflow/schema.def"
