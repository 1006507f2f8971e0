/* Copies of elements from one place to another: the kernel behind every operator that only
 * moves. */
#ifndef QN_MOVE_H
#define QN_MOVE_H

#include <string.h>

#include "ops/eval.h"

/* Fills all of `out` (row-major, dims of out): element at index x comes from element
 * start + sum(x[d] * strides[d]) of `in`. Strides may be 0 (repeat) or negative (reverse). */
void qn_move_from(qn_tensor *out, const qn_tensor *in, int64_t start, const int64_t *strides);
/* The reverse: spreads all of `in` over `out`, in element start + sum(x[d] * strides[d]). */
void qn_move_to(qn_tensor *out, const qn_tensor *in, int64_t start, const int64_t *strides);
/* Copies one element, or a row of `size` bytes: the sizes of elements are numbers that the compiler
 * knows. */
static inline void qn_move_bytes(void *to, const void *from, size_t size)
{
    switch (size) {
    case 0: break;
    case 1: memcpy(to, from, 1); break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, size); break;
    }
}
/* Output 0 gets the elements of input 0 in the same order. */
QN_MUST_CHECK qn_status qn_eval_move_all(qn_eval *self);

/* What a Slice of `data` by these lists (starts, ends, axes, steps; the last two may be NULL) walks
 * through: the first element and the stride of every dim, as qn_move_from takes them. False when
 * the lists do not fit. */
bool qn_slice_walk(int64_t *start, int64_t *strides, const qn_tensor *data,
                   const qn_tensor *const lists[4]);

/* Fills `out` with `count` copies of the element at `value` (zero bytes when NULL). */
void qn_fill(void *out, int64_t count, const void *value, size_t size);

/* Product of dims [from, to). */
static inline int64_t qn_dims_product(const int64_t *dims, int32_t from, int32_t to)
{
    int64_t product = 1;
    for (int32_t d = from; d < to; d++)
        product *= dims[d];
    return product;
}

/* Offset of element `number` of `rank` dims with these steps, which are listed from the innermost
 * one on. */
static inline int64_t qn_dims_offset(int64_t number, int32_t rank, const int64_t *dims,
                                     const int64_t *steps)
{
    int64_t offset = 0;
    for (int32_t d = 0; d < rank; d++) {
        offset += number % dims[d] * steps[d];
        number /= dims[d];
    }
    return offset;
}

#endif
