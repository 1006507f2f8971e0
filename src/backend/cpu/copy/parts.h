/* Parts of a tensor along one axis (Concat, Split, Slice), in the layout that it has. */
#ifndef QN_CPU_PARTS_H
#define QN_CPU_PARTS_H

#include "run/backend.h"

/* A tensor as [samples, outer, along the axis], each index of the axis being `unit` bytes; in a
 * blocked layout the indices of axis 1 go by whole blocks of `step`. */
typedef struct qn_axis {
    int64_t samples, outer, step;
    size_t unit;
} qn_axis;

/* The axis `axis` of `whole`, which is cut along it; the other parts have the same samples, outer,
 * step and unit. */
qn_axis qn_axis_of(const qn_tensor *whole, qn_layout layout, int64_t axis);
/* Bytes of `count` indices: rounded up to whole blocks. */
size_t qn_axis_bytes(const qn_axis *axis, int64_t count);
/* A part that begins at index `start` and has `count` of `total` is whole blocks in this layout. */
bool qn_axis_cuts(const qn_axis *axis, int64_t start, int64_t count, int64_t total);

/* Dims in the order of memory, [N, spatial..., C], of a tensor with rank > 1 that is channels
 * last. */
void qn_dims_last(int64_t *dims, const int64_t *rows, int32_t rank);

/* Rectangles of bytes: rows of `width` bytes in planes of `rows`. */
typedef struct qn_rectangle {
    int64_t planes, rows;
    size_t width;
    /* Distances in bytes. */
    size_t to_plane, to_row, from_plane, from_row;
} qn_rectangle;
void qn_copy_rectangle(void *to, const void *from, const qn_rectangle *r, int threads);

#endif
