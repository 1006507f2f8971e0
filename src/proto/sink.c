/* Where written messages go: small pieces are collected. */
#include "proto/sink.h"

#include <string.h>

static qn_status write_to_file(void *user, const void *data, size_t size)
{
    return qn_output_write(user, data, size);
}

qn_proto_sink qn_proto_sink_file(qn_output_file *file)
{
    return (qn_proto_sink){write_to_file, file};
}

qn_status qn_proto_output_open(qn_proto_output *output, qn_context *ctx, qn_proto_sink sink)
{
    *output = (qn_proto_output){ctx, sink, qn_alloc(ctx, QN_PROTO_SINK_SIZE), 0};
    QN_TRY_ALLOC(ctx, output->buffer);
    return QN_OK;
}

qn_status qn_proto_output_flush(qn_proto_output *output)
{
    const size_t used = output->used;
    output->used = 0;
    return used ? output->sink.write(output->sink.user, output->buffer, used) : QN_OK;
}

qn_status qn_proto_put(qn_proto_output *output, const void *data, size_t size)
{
    if (size > QN_PROTO_SINK_SIZE - output->used)
        QN_TRY(qn_proto_output_flush(output));
    if (size > QN_PROTO_SINK_SIZE / 4) {
        QN_TRY(qn_proto_output_flush(output));
        return output->sink.write(output->sink.user, data, size);
    }
    if (size)
        memcpy(output->buffer + output->used, data, size);
    output->used += size;
    return QN_OK;
}

void qn_proto_output_close(qn_proto_output *output)
{
    qn_free(output->ctx, output->buffer);
    output->buffer = NULL;
}
