/* Sparse ONNX tensors into dense ones. */
#include <string.h>

#include "import/onnx/onnx.h"

/* A few bytes of file can ask for any amount of zeros. */
#define LARGEST_DENSE ((size_t)1 << 30)

typedef struct sparse {
    /* [n] */
    qn_tensor values;
    /* int64 [n] or [n, rank of the dense tensor] */
    qn_tensor indices;
    int64_t strides[QN_MAX_RANK];
} sparse;

static qn_status read_parts(sparse *s, qn_onnx_import *import, const qn_proto_message *message)
{
    const qn_proto_message *values = qn_proto_get_message(message, QN_ONNX_SPARSE_TENSOR_VALUES);
    const qn_proto_message *indices = qn_proto_get_message(message, QN_ONNX_SPARSE_TENSOR_INDICES);
    if (!values || !indices)
        return qn_fail(import->ctx, QN_E_FORMAT, "a sparse tensor needs values and indices");
    QN_TRY(qn_onnx_tensor(&s->values, import, values));
    QN_TRY(qn_onnx_tensor(&s->indices, import, indices));
    if (s->values.rank != 1)
        return qn_fail(import->ctx, QN_E_FORMAT, "the values of a sparse tensor have rank %d",
                       s->values.rank);
    return QN_OK;
}

static qn_status check_indices(const sparse *s, qn_onnx_import *import, const qn_tensor *dense)
{
    const qn_tensor *indices = &s->indices;
    const bool linear = indices->rank == 1, tuples = indices->rank == 2;
    if (indices->dtype != QN_INT64 || !(linear || tuples) ||
        indices->dims[0] != s->values.dims[0] || (tuples && indices->dims[1] != dense->rank))
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "the indices of a sparse tensor must be int64 of shape [%lld] or [%lld,%d]",
                       (long long)s->values.dims[0], (long long)s->values.dims[0], dense->rank);
    return QN_OK;
}

static int64_t index_at(const sparse *s, int64_t i)
{
    int64_t index; /* a large tensor may lie at any address */
    memcpy(&index, (const char *)s->indices.data + (size_t)i * sizeof index, sizeof index);
    return index;
}

/* Number of the dense element that value i goes to. */
static qn_status place(int64_t *out, const sparse *s, qn_onnx_import *import,
                       const qn_tensor *dense, int64_t i)
{
    const bool linear = s->indices.rank == 1;
    const int64_t limit = qn_tensor_count(dense);
    bool inside = true;
    int64_t at = 0;
    if (linear) {
        at = index_at(s, i);
        inside = at >= 0 && at < limit;
    }
    for (int32_t d = 0; !linear && d < dense->rank; d++) {
        const int64_t index = index_at(s, i * dense->rank + d);
        inside = inside && index >= 0 && index < dense->dims[d];
        at += inside ? index * s->strides[d] : 0;
    }
    if (!inside)
        return qn_fail(import->ctx, QN_E_FORMAT, "index %lld of a sparse tensor is out of range",
                       (long long)i);
    *out = at;
    return QN_OK;
}

qn_status qn_onnx_sparse(qn_tensor *out, qn_onnx_import *import, const qn_proto_message *message)
{
    sparse s;
    size_t bytes;
    QN_TRY(read_parts(&s, import, message));
    *out = (qn_tensor){.dtype = s.values.dtype};
    QN_TRY(qn_onnx_dims(out, import, message, QN_ONNX_SPARSE_TENSOR_DIMS));
    QN_TRY(check_indices(&s, import, out));
    if (!qn_tensor_bytes(&bytes, out->dtype, out->rank, out->dims) || bytes > LARGEST_DENSE)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED,
                       "the dense form of a sparse tensor is larger than %zu bytes", LARGEST_DENSE);
    qn_dims_strides(s.strides, out->rank, out->dims);
    char *dense = qn_arena_alloc(import->arena, bytes);
    QN_TRY_ALLOC(import->ctx, dense);
    out->data = dense;
    const size_t size = qn_dtype_size(out->dtype);
    for (int64_t i = 0; i < s.values.dims[0]; i++) {
        int64_t at = 0;
        QN_TRY(place(&at, &s, import, out, i));
        memcpy(dense + (size_t)at * size, (const char *)s.values.data + (size_t)i * size, size);
    }
    return QN_OK;
}
