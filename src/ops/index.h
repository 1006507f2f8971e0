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

/* Walks through indices along an axis of `data`, a part of a row at a time: of their last dim. */
enum { QN_INDEX_PART = 256 };
typedef struct qn_index_walk {
    /* Indices behind the part, of all rows */
    int64_t left;
    /* The number of elements of the part. */
    int64_t count;
    /* The elements of data that the part names */
    int64_t at[QN_INDEX_PART];
    /* How to go on. */
    const qn_tensor *indices;
    int64_t axis, dim;
    /* The strides of the data. */
    int64_t strides[QN_MAX_RANK];
} qn_index_walk;
/* axis may be negative. */
void qn_index_walk_begin(qn_index_walk *walk, const qn_tensor *data, const qn_tensor *indices,
                         int64_t axis);
/* The next part, while something is left. */
QN_MUST_CHECK qn_status qn_index_walk_next(qn_index_walk *walk, const qn_eval *self);
/* to[k] = from[at[k]] and to[at[k]] = from[k], of elements of `size` bytes. */
void qn_index_gather(void *to, const void *from, const qn_index_walk *part, size_t size);
void qn_index_scatter(void *to, const void *from, const qn_index_walk *part, size_t size);
/* Indices along an axis have the data's rank and are nowhere larger than it, but along the axis. */
QN_MUST_CHECK qn_status qn_index_check_shape(qn_infer *self, const qn_type *data,
                                             const qn_type *indices, int64_t axis);

/* Tuples of `depth` indices into the dims from `first` on. */
typedef struct qn_index_space {
    /* [.., depth] */
    const qn_tensor *indices;
    int64_t depth;
    int32_t first;
    const int64_t *dims, *strides;
} qn_index_space;
/* Offset that tuple i names. */
QN_MUST_CHECK qn_status qn_index_tuple(int64_t *out, const qn_eval *self,
                                       const qn_index_space *space, int64_t i);

/* The axis of a Gather of `rank` dimensions, counted from the first. */
int64_t qn_gather_axis(const qn_node *node, int32_t rank);

#endif
