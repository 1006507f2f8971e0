/* Parts of a tensor along one axis: where they lie, and their copies. */
#include "backend/cpu/copy/parts.h"

#include <omp.h>
#include <string.h>

enum { ALONE_BELOW = 65536 }; /* bytes for which waking the other threads does not pay */

/* [N, spatial..., C] */
static qn_axis axis_of_last(const qn_tensor *whole, int64_t axis)
{
    qn_axis a = {axis > 0 ? whole->dims[0] : 1, 1, 1, qn_dtype_size(whole->dtype)};
    for (int32_t d = 1; d < whole->rank; d++) {
        if (d != axis && (axis == 0 || (d > axis && axis > 1) || (d == 1 && axis > 1)))
            a.unit *= (size_t)whole->dims[d];
        else if (d != axis)
            a.outer *= whole->dims[d];
    }
    return a;
}

qn_axis qn_axis_of(const qn_tensor *whole, qn_layout layout, int64_t axis)
{
    if (layout.kind == QN_LAYOUT_CHANNELS_LAST)
        return axis_of_last(whole, axis);
    const bool blocked = layout.kind == QN_LAYOUT_BLOCKED;
    qn_axis a = {1, 1, 1, qn_dtype_size(whole->dtype)};
    for (int32_t d = 0; d < whole->rank; d++) {
        const int64_t block = layout.block;
        const int64_t dim =
            blocked && d == 1 ? (whole->dims[1] + block - 1) / block : whole->dims[d];
        if (d == 0 && axis > 0)
            a.samples = dim;
        else if (d < axis)
            a.outer *= dim;
        else if (d > axis)
            a.unit *= (size_t)dim;
    }
    if (blocked)
        a.unit *= layout.block;
    if (blocked && axis == 1)
        a.step = layout.block;
    return a;
}

size_t qn_axis_bytes(const qn_axis *a, int64_t count)
{
    return (size_t)((count + a->step - 1) / a->step) * a->unit;
}

bool qn_axis_cuts(const qn_axis *a, int64_t start, int64_t count, int64_t total)
{
    return start % a->step == 0 && (count % a->step == 0 || start + count == total);
}

void qn_dims_last(int64_t *dims, const int64_t *rows, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++)
        dims[d] = rows[d == 0 ? 0 : d == rank - 1 ? 1 : d + 1];
}

/* Short rows are not worth a call each. */
static inline void copy_row(char *to, const char *from, size_t width)
{
    if (width % 16 || width > 256) {
        memcpy(to, from, width);
        return;
    }
    for (size_t i = 0; i < width; i += 16)
        memcpy(to + i, from + i, 16);
}

static void copy_share(char *to, const char *from, const qn_rectangle *r, int64_t id, int64_t count)
{
    const int64_t rows = r->planes * r->rows, last = rows * (id + 1) / count;
    int64_t plane = rows * id / count / r->rows, row = rows * id / count % r->rows;
    for (int64_t i = rows * id / count; i < last;
         i++) { /* short rows: a division would cost more */
        copy_row(to + (size_t)plane * r->to_plane + (size_t)row * r->to_row,
                 from + (size_t)plane * r->from_plane + (size_t)row * r->from_row, r->width);
        plane += ++row == r->rows;
        row = row == r->rows ? 0 : row;
    }
}

/* One long row is split itself. */
static void copy_long(char *to, const char *from, const qn_rectangle *r, int64_t id, int64_t count)
{
    const size_t lines = (r->width + 63) / 64;
    const size_t first = lines * (size_t)id / (size_t)count * 64;
    const size_t last = QN_MIN(lines * (size_t)(id + 1) / (size_t)count * 64, r->width);
    if (last > first)
        memcpy(to + first, from + first, last - first);
}

void qn_copy_rectangle(void *to, const void *from, const qn_rectangle *r, int threads)
{
    const int64_t rows = r->planes * r->rows;
    if (rows == 0 || r->width == 0)
        return;
    if (threads == 1 || (size_t)rows * r->width < ALONE_BELOW) {
        copy_share(to, from, r, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    (rows == 1 ? copy_long : copy_share)(to, from, r, omp_get_thread_num(), omp_get_num_threads());
}
