/* Tensors among the bytes of a file. */
#include "executor/tensor_bytes.h"

#include <string.h>

static size_t bytes_of(const qn_tensor *t)
{
    return (size_t)qn_tensor_count(t) * qn_dtype_size(t->dtype);
}

void qn_put_tensor(qn_text *out, const qn_tensor *t)
{
    qn_put_varint(out, (uint64_t)t->dtype);
    qn_put_varint(out, (uint64_t)t->rank);
    for (int32_t d = 0; d < t->rank; d++)
        qn_put_varint(out, (uint64_t)t->dims[d]);
    qn_text_add(out, t->data, bytes_of(t));
}

static uint64_t left(const qn_byte_reader *in)
{
    return (uint64_t)(in->end - in->at);
}

qn_status qn_get_tensor(qn_tensor *out, qn_context *ctx, qn_byte_reader *in)
{
    size_t bytes = 0;
    qn_tensor t = {.dtype = (qn_dtype)qn_get_count(in, QN_SEQUENCE - 1)};
    t.rank = (int32_t)qn_get_count(in, QN_MAX_RANK);
    for (int32_t d = 0; d < t.rank; d++)
        t.dims[d] = (int64_t)qn_get_count(in, (uint64_t)INT64_MAX);
    in->wrong = in->wrong || t.dtype == QN_STRING ||
                !qn_tensor_bytes(&bytes, t.dtype, t.rank, t.dims) || bytes > left(in);
    if (in->wrong)
        return QN_OK;
    t.data = qn_alloc_aligned(&ctx->allocator, QN_MAX(bytes, 64));
    QN_TRY_ALLOC(ctx, t.data);
    memcpy(t.data, in->at, bytes);
    in->at += bytes;
    *out = t;
    return QN_OK;
}
