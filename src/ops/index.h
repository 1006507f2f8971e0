/* Indices that come as data: checked, negative ones counted from the end. */
#ifndef QN_INDEX_H
#define QN_INDEX_H

#include "ops/eval.h"

/* Element i of `indices` as a place in 0..dim-1; fails when it is outside [-dim, dim). */
QN_MUST_CHECK qn_status qn_index_get(int64_t *out, const qn_eval *self, const qn_tensor *indices,
                                     int64_t i, int64_t dim);
/* Offset under `strides` of the flat index i of `shape` with the coordinate of `axis` replaced. */
int64_t qn_index_replace(int64_t i, const qn_tensor *shape, const int64_t *strides, int64_t axis,
                         int64_t at);
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
