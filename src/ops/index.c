/* Indices into tensors: checked, and walked along an axis. */
#include "ops/index.h"

#include "ops/infer.h"
#include "ops/move.h"

qn_status qn_index_fail(const qn_eval *self, int64_t index, int64_t dim)
{
    return qn_eval_fail(self, "index %lld is outside [-%lld, %lld)", (long long)index,
                        (long long)dim, (long long)dim);
}

qn_status qn_index_tuple(int64_t *out, const qn_eval *self, const qn_index_space *space, int64_t i)
{
    int64_t offset = 0;
    for (int64_t k = 0; k < space->depth; k++) {
        int64_t at;
        const int64_t d = space->first + k;
        QN_TRY(qn_index_get(&at, self, space->indices, i * space->depth + k, space->dims[d]));
        offset += at * space->strides[d];
    }
    *out = offset;
    return QN_OK;
}

/* ---- Along an axis --------------------------------------------------------------------------- */

qn_status qn_index_check_shape(qn_infer *self, const qn_type *data, const qn_type *indices,
                               int64_t axis)
{
    if (data->rank < 0 || indices->rank < 0)
        return QN_OK;
    if (data->rank != indices->rank)
        return qn_infer_fail(self, "data has %d dimensions, indices %d", data->rank, indices->rank);
    for (int32_t d = 0; d < data->rank; d++) {
        if (d != axis && data->dims[d].value >= 0 && indices->dims[d].value > data->dims[d].value)
            return qn_infer_fail(self, "dimension %d of the indices is larger than the data's", d);
    }
    return QN_OK;
}

void qn_index_walk_begin(qn_index_walk *w, const qn_tensor *data, const qn_tensor *indices,
                         int64_t axis)
{
    *w = (qn_index_walk){.left = qn_tensor_count(indices),
                         .indices = indices,
                         .axis = axis < 0 ? axis + data->rank : axis};
    w->dim = data->dims[w->axis];
    qn_dims_strides(w->strides, data->rank, data->dims);
}

/* Where row r of the indices starts in data, but for what its indices say. */
static int64_t row_start(const qn_index_walk *w, int64_t r)
{
    int64_t start = 0;
    for (int32_t d = w->indices->rank - 2; d >= 0; d--) {
        start += d == w->axis ? 0 : r % w->indices->dims[d] * w->strides[d];
        r /= w->indices->dims[d];
    }
    return start;
}

qn_status qn_index_walk_next(qn_index_walk *w, const qn_eval *self)
{
    const int64_t done = qn_tensor_count(w->indices) - w->left, last = w->indices->rank - 1;
    const int64_t length = w->indices->dims[last], column = done % length;
    const int64_t stride = w->strides[w->axis], step = w->axis == last ? 0 : 1;
    const int64_t start = row_start(w, done / length) + column * step;
    w->count = QN_MIN(QN_INDEX_PART, length - column);
    w->left -= w->count;
    qn_load_i64(w->at, w->indices->dtype, w->indices->data, done, w->count);
    for (int64_t k = 0; k < w->count; k++) {
        const int64_t index = w->at[k], place = index < 0 ? index + w->dim : index;
        if (place < 0 || place >= w->dim)
            return qn_index_fail(self, index, w->dim);
        w->at[k] = start + k * step + place * stride;
    }
    return QN_OK;
}

/* The size of an element is a number that the compiler knows. */
#define EACH_SIZE(COPY)                                                                            \
    switch (size) {                                                                                \
        COPY(1)                                                                                    \
        COPY(2)                                                                                    \
        COPY(4)                                                                                    \
        COPY(8)                                                                                    \
        COPY(16)                                                                                   \
    default: break; /* no element has another size */                                              \
    }

void qn_index_gather(void *to, const void *from, const qn_index_walk *part, size_t size)
{
#define COPY(SIZE)                                                                                 \
    case SIZE:                                                                                     \
        for (int64_t k = 0; k < part->count; k++)                                                  \
            memcpy((char *)to + k * SIZE, (const char *)from + part->at[k] * SIZE, SIZE);          \
        break;
    EACH_SIZE(COPY)
#undef COPY
}

void qn_index_scatter(void *to, const void *from, const qn_index_walk *part, size_t size)
{
#define COPY(SIZE)                                                                                 \
    case SIZE:                                                                                     \
        for (int64_t k = 0; k < part->count; k++)                                                  \
            memcpy((char *)to + part->at[k] * SIZE, (const char *)from + k * SIZE, SIZE);          \
        break;
    EACH_SIZE(COPY)
#undef COPY
}
