/* Caffe's messages as schema tables: QN_CAFFE_LAYER_TYPE is the number of LayerParameter.type, and
 * qn_caffe_layer_schema is that message. */
#ifndef QN_CAFFE_SCHEMA_H
#define QN_CAFFE_SCHEMA_H

#include "proto/proto.h"

#define BEGIN(message)
#define FIELD(constant, name, number, kind, label) QN_CAFFE_##constant = number,
#define ENUM(constant, name, number, names) QN_CAFFE_##constant = number,
#define MESSAGE(constant, name, number, label, message) QN_CAFFE_##constant = number,
#define SKIP(name, number)
#define END(message, name)
enum {
#include "import/caffe/schema.def"
#include "import/caffe/weights.def"
};
#undef BEGIN
#undef FIELD
#undef ENUM
#undef MESSAGE
#undef SKIP
#undef END

#define BEGIN(message) extern const qn_proto_schema qn_caffe_##message##_schema;
#define FIELD(constant, name, number, kind, label)
#define ENUM(constant, name, number, names)
#define MESSAGE(constant, name, number, label, message)
#define SKIP(name, number)
#define END(message, name)
#include "import/caffe/schema.def"
#include "import/caffe/weights.def"
#undef BEGIN
#undef FIELD
#undef ENUM
#undef MESSAGE
#undef SKIP
#undef END

/* Phase */
enum { QN_CAFFE_TRAIN = 0, QN_CAFFE_TEST = 1 };
/* PoolMethod */
enum { QN_CAFFE_POOL_MAX = 0, QN_CAFFE_POOL_AVE = 1, QN_CAFFE_POOL_STOCHASTIC = 2 };
/* RoundMode */
enum { QN_CAFFE_ROUND_CEIL = 0, QN_CAFFE_ROUND_FLOOR = 1 };
/* NormRegion */
enum { QN_CAFFE_ACROSS_CHANNELS = 0, QN_CAFFE_WITHIN_CHANNEL = 1 };
/* EltwiseOp */
enum { QN_CAFFE_ELTWISE_PROD = 0, QN_CAFFE_ELTWISE_SUM = 1, QN_CAFFE_ELTWISE_MAX = 2 };
/* ReductionOp */
enum { QN_CAFFE_SUM = 1, QN_CAFFE_ASUM = 2, QN_CAFFE_SUMSQ = 3, QN_CAFFE_MEAN = 4 };
/* CodeType */
enum { QN_CAFFE_CORNER = 1, QN_CAFFE_CENTER_SIZE = 2, QN_CAFFE_CORNER_SIZE = 3 };
/* Type of BlobProto's raw data */
enum { QN_CAFFE_DOUBLE = 0, QN_CAFFE_FLOAT = 1, QN_CAFFE_FLOAT16 = 2 };

#endif
