/* Collects small pieces before they go to a sink. */
#ifndef QN_PROTO_SINK_H
#define QN_PROTO_SINK_H

#include "proto/proto.h"

enum { QN_PROTO_SINK_SIZE = 64 * 1024 };

typedef struct qn_proto_output {
    qn_context *ctx;
    qn_proto_sink sink;
    uint8_t *buffer;
    size_t used;
} qn_proto_output;

QN_MUST_CHECK qn_status qn_proto_output_open(qn_proto_output *output, qn_context *ctx,
                                             qn_proto_sink sink);
QN_MUST_CHECK qn_status qn_proto_put(qn_proto_output *output, const void *data, size_t size);
QN_MUST_CHECK qn_status qn_proto_output_flush(qn_proto_output *output);
void qn_proto_output_close(qn_proto_output *output);

#endif
