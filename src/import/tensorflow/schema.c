/* TensorFlow's messages as schema tables, made of schema.def. */
#include "import/tensorflow/schema.h"

#define BEGIN(message) static const qn_proto_field message##_fields[] = {
#define FIELD(constant, name, number, kind, label)                                                 \
    {#name, number, QN_PROTO_##kind, QN_PROTO_##label, NULL, NULL},
#define MESSAGE(constant, name, number, label, message)                                            \
    {#name, number, QN_PROTO_MESSAGE, QN_PROTO_##label, &qn_tf_##message##_schema, NULL},
#define END(message, name)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    const qn_proto_schema qn_tf_##message##_schema = {name, message##_fields,                      \
                                                      QN_COUNT_OF(message##_fields)};
#include "import/tensorflow/schema.def"
