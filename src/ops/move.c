/* Elements copied between a dense tensor and strided places. */
#include "ops/move.h"

#include <string.h>

/* One walk serves both directions: `dense` is visited in order, `spread` at the strided places. */
typedef struct walk {
    int32_t rank;
    const int64_t *dims, *strides;
    size_t size;
    char *dense, *spread;
    /* From spread to dense */
    bool gather;
} walk;

/* Single elements from place to place; the size is a number that the compiler knows. */
#define STEP(SIZE)                                                                                 \
    case SIZE:                                                                                     \
        for (int64_t i = 0; i < count; i++, to += to_step, from += from_step)                      \
            memcpy(to, from, SIZE);                                                                \
        break;
static void copy_steps(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step,
                       int64_t count, size_t size)
{
    switch (size) {
        STEP(1)
        STEP(2)
        STEP(4)
        STEP(8)
        STEP(16)
    default: break; /* no element has another size */
    }
}
#undef STEP

static void copy_row(const walk *w, char *dense, char *spread, int64_t count, int64_t stride)
{
    const ptrdiff_t size = (ptrdiff_t)w->size, step = (ptrdiff_t)stride * size;
    if (stride == 1)
        memcpy(w->gather ? dense : spread, w->gather ? spread : dense, (size_t)count * w->size);
    else if (w->gather && stride == 0)
        qn_fill(dense, count, spread, w->size);
    else if (w->gather)
        copy_steps(dense, size, spread, step, count, w->size);
    else
        copy_steps(spread, step, dense, size, count, w->size);
}

static void walk_all(const walk *w)
{
    int64_t index[QN_MAX_RANK] = {0}, count = 1;
    const int32_t inner = w->rank - 1;
    for (int32_t d = 0; d < w->rank; d++)
        count *= w->dims[d];
    if (count == 0)
        return;
    /* A row goes on through outer dims for as long as these continue it, or repeat it where it
     * repeats. */
    int64_t row = w->rank ? w->dims[inner] : 1;
    int32_t outer = inner;
    while (outer > 0 && w->strides[outer - 1] == w->strides[inner] * row)
        row *= w->dims[--outer];
    int64_t at = 0;
    for (int64_t done = 0; done < count; done += row) {
        copy_row(w, w->dense + (size_t)done * w->size,
                 w->spread + (ptrdiff_t)(at * (int64_t)w->size), row,
                 w->rank ? w->strides[inner] : 1);
        for (int32_t d = outer - 1; d >= 0; d--) {
            at += w->strides[d];
            if (++index[d] < w->dims[d])
                break;
            at -= w->strides[d] * w->dims[d];
            index[d] = 0;
        }
    }
}

void qn_move_from(qn_tensor *out, const qn_tensor *in, int64_t start, const int64_t *strides)
{
    const size_t size = qn_dtype_size(out->dtype);
    const walk w = {out->rank, out->dims, strides,
                    size,      out->data, (char *)in->data + start * (int64_t)size,
                    true};
    walk_all(&w);
}

void qn_move_to(qn_tensor *out, const qn_tensor *in, int64_t start, const int64_t *strides)
{
    const size_t size = qn_dtype_size(in->dtype);
    const walk w = {in->rank, in->dims, strides,
                    size,     in->data, (char *)out->data + start * (int64_t)size,
                    false};
    walk_all(&w);
}

qn_status qn_eval_move_all(qn_eval *self)
{
    const size_t bytes = (size_t)qn_tensor_count(self->out[0]) * qn_dtype_size(self->out[0]->dtype);
    if (bytes)
        memcpy(self->out[0]->data, self->in[0]->data, bytes);
    return QN_OK;
}

void qn_fill(void *out, int64_t count, const void *value, size_t size)
{
    static const uint8_t zeros[16];
    if (!value || (size <= sizeof zeros && memcmp(value, zeros, size) == 0)) {
        memset(out, 0, (size_t)count * size);
        return;
    }
    /* What is there is copied behind itself, twice as much every time. */
    const size_t all = (size_t)count * size;
    size_t done = all ? size : 0;
    if (done)
        memcpy(out, value, size);
    for (; done < all; done = QN_MIN(2 * done, all))
        memcpy((char *)out + done, out, QN_MIN(done, all - done));
}
