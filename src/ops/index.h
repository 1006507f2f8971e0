/* Indices that come as data: checked, negative ones counted from the end. */
#ifndef QN_INDEX_H
#define QN_INDEX_H

#include "ops/eval.h"

/* Fails with the index that is outside [-dim, dim). */
QN_MUST_CHECK qn_status qn_index_fail(const qn_eval *self, int64_t index, int64_t dim);
/* Element i of `indices` as a place in 0..dim-1; fails when it is outside [-dim, dim). */
QN_MUST_CHECK static inline qn_status qn_index_get(int64_t *out, const qn_eval *self,
                                                   const qn_tensor *indices, int64_t i, int64_t dim)
{
    const int64_t index = qn_tensor_i64(indices, i);
    *out = index < 0 ? index + dim : index;
    return *out >= 0 && *out < dim ? QN_OK : qn_index_fail(self, index, dim);
}

/* Indices along an axis of `data`: those of a row, which is their last dim, name the elements
 * start + k * step + index * stride, where k counts through the row. */
typedef struct qn_index_rows {
    int64_t count, length;        /* rows; indices in each */
    int64_t dim, step, stride;    /* dim, stride: of the axis */
    int64_t strides[QN_MAX_RANK]; /* of data */
    const qn_tensor *indices;
    int64_t axis;
} qn_index_rows;
/* axis may be negative. */
qn_index_rows qn_index_rows_of(const qn_tensor *data, const qn_tensor *indices, int64_t axis);
/* Where row r starts. */
int64_t qn_index_row_start(const qn_index_rows *rows, int64_t r);
/* Indices along an axis have the data's rank and are nowhere larger than it, but along the axis. */
QN_MUST_CHECK qn_status qn_index_check_shape(qn_infer *self, const qn_type *data,
                                             const qn_type *indices, int64_t axis);

/* Tuples of `depth` indices into the dims from `first` on. */
typedef struct qn_index_space {
    const qn_tensor *indices; /* [.., depth] */
    int64_t depth;
    int32_t first;
    const int64_t *dims, *strides;
} qn_index_space;
/* Offset that tuple i names. */
QN_MUST_CHECK qn_status qn_index_tuple(int64_t *out, const qn_eval *self,
                                       const qn_index_space *space, int64_t i);

#endif
