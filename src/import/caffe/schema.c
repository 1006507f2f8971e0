/* Caffe's messages as schema tables, made of schema.def and weights.def. */
#include "import/caffe/schema.h"

#define NAMES(id, ...)                                                                             \
    static const qn_proto_enum_value id##_values[] = {__VA_ARGS__};                                \
    static const qn_proto_enum id = {id##_values, QN_COUNT_OF(id##_values)};

NAMES(phases, {"TRAIN", QN_CAFFE_TRAIN}, {"TEST", QN_CAFFE_TEST})
NAMES(pool_methods, {"MAX", QN_CAFFE_POOL_MAX}, {"AVE", QN_CAFFE_POOL_AVE},
      {"STOCHASTIC", QN_CAFFE_POOL_STOCHASTIC})
NAMES(round_modes, {"CEIL", QN_CAFFE_ROUND_CEIL}, {"FLOOR", QN_CAFFE_ROUND_FLOOR})
NAMES(norm_regions, {"ACROSS_CHANNELS", QN_CAFFE_ACROSS_CHANNELS},
      {"WITHIN_CHANNEL", QN_CAFFE_WITHIN_CHANNEL})
NAMES(eltwise_operations, {"PROD", QN_CAFFE_ELTWISE_PROD}, {"SUM", QN_CAFFE_ELTWISE_SUM},
      {"MAX", QN_CAFFE_ELTWISE_MAX})
NAMES(reductions, {"SUM", QN_CAFFE_SUM}, {"ASUM", QN_CAFFE_ASUM}, {"SUMSQ", QN_CAFFE_SUMSQ},
      {"MEAN", QN_CAFFE_MEAN})
NAMES(code_types, {"CORNER", QN_CAFFE_CORNER}, {"CENTER_SIZE", QN_CAFFE_CENTER_SIZE},
      {"CORNER_SIZE", QN_CAFFE_CORNER_SIZE})

#define BEGIN(message) static const qn_proto_field message##_fields[] = {
#define FIELD(constant, name, number, kind, label)                                                 \
    {#name, number, QN_PROTO_##kind, QN_PROTO_##label, NULL, NULL},
#define ENUM(constant, name, number, names)                                                        \
    {#name, number, QN_PROTO_ENUM, QN_PROTO_OPTIONAL, NULL, &names},
#define MESSAGE(constant, name, number, label, message)                                            \
    {#name, number, QN_PROTO_MESSAGE, QN_PROTO_##label, &qn_caffe_##message##_schema, NULL},
#define SKIP(name, number) {#name, number, QN_PROTO_MESSAGE, QN_PROTO_OPTIONAL, NULL, NULL},
#define END(message, name)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    const qn_proto_schema qn_caffe_##message##_schema = {name, message##_fields,                   \
                                                         QN_COUNT_OF(message##_fields)};
#include "import/caffe/schema.def"
#include "import/caffe/weights.def"
