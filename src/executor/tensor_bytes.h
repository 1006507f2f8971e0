/* Tensors among the bytes of a file, as the caches of float passes hold them. */
#ifndef QN_TENSOR_BYTES_H
#define QN_TENSOR_BYTES_H

#include "calib/byte_stream.h"

/* A tensor of numbers: v type, v rank, v dims, bytes. */
void qn_put_tensor(qn_text *out, const qn_tensor *tensor);
/* The tensor has memory of its own, or is all zero where in->wrong is set. */
QN_MUST_CHECK qn_status qn_get_tensor(qn_tensor *out, qn_context *ctx, qn_byte_reader *in);

#endif
