/* Layouts of tensors: their sizes, and conversion from one to another. */
#include "run/layout.h"

#include <string.h>

static int64_t padded_channels(qn_layout layout, const qn_tensor *shape)
{
    const int64_t channels = shape->dims[1], block = layout.block;
    return layout.kind == QN_LAYOUT_BLOCKED ? (channels + block - 1) / block * block : channels;
}

bool qn_layout_bytes(size_t *out, qn_layout layout, const qn_tensor *shape)
{
    int64_t dims[QN_MAX_RANK];
    if (shape->rank)
        memcpy(dims, shape->dims, (size_t)shape->rank * sizeof *dims);
    if (layout.kind == QN_LAYOUT_BLOCKED)
        dims[1] = padded_channels(layout, shape);
    return qn_tensor_bytes(out, shape->dtype, shape->rank, dims);
}

static int64_t area_of(const qn_tensor *shape)
{
    int64_t area = 1;
    for (int32_t d = 2; d < shape->rank; d++)
        area *= shape->dims[d];
    return area;
}

bool qn_layout_alike(qn_layout a, qn_layout b, const qn_tensor *shape)
{
    if (qn_layout_same(a, b))
        return true;
    if (shape->rank < 2 || padded_channels(a, shape) != padded_channels(b, shape))
        return false;
    return area_of(shape) == 1;
}

/* In a sample channel c begins at offset_of, in elements, and its positions follow `step_of`
 * apart. */
static int64_t offset_of(qn_layout layout, int64_t c, int64_t area)
{
    const int64_t b = layout.block;
    switch ((qn_layout_kind)layout.kind) {
    case QN_LAYOUT_BLOCKED: return c / b * area * b + c % b;
    case QN_LAYOUT_CHANNELS_LAST: return c;
    case QN_LAYOUT_ROWS: break;
    }
    return c * area;
}

static int64_t step_of(qn_layout layout, int64_t channels)
{
    switch ((qn_layout_kind)layout.kind) {
    case QN_LAYOUT_BLOCKED: return layout.block;
    case QN_LAYOUT_CHANNELS_LAST: return channels;
    case QN_LAYOUT_ROWS: break;
    }
    return 1;
}

/* `count` elements at these distances, in elements. */
typedef void copy_fn(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t count);
#define COPY(type)                                                                                 \
    static void copy_##type(void *to, int64_t to_step, const void *from, int64_t from_step,        \
                            int64_t count)                                                         \
    {                                                                                              \
        type *out = to;                                                                            \
        const type *in = from;                                                                     \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i * to_step] = in[i * from_step];                                                  \
    }
COPY(uint8_t)
COPY(uint16_t)
COPY(uint32_t)
COPY(uint64_t)

static copy_fn *copy_of(size_t size)
{
    return size == 1   ? copy_uint8_t
           : size == 2 ? copy_uint16_t
           : size == 4 ? copy_uint32_t
           : size == 8 ? copy_uint64_t
                       : NULL;
}

/* Element by element, of any size. */
static void copy_bytes(char *to, const char *from, size_t size, const int64_t steps[2],
                       int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)(i * steps[0]) * size, from + (size_t)(i * steps[1]) * size, size);
}

/* All channels of a few positions at a time, so that what lies beside each other is used while it
 * is near. */
static void convert_sample(char *to, qn_layout to_layout, const char *from, qn_layout from_layout,
                           const qn_tensor *shape)
{
    enum { POSITIONS = 64 };
    const int64_t channels = shape->dims[1], area = area_of(shape);
    const int64_t steps[2] = {step_of(to_layout, channels), step_of(from_layout, channels)};
    const size_t size = qn_dtype_size(shape->dtype);
    const int64_t padded = padded_channels(to_layout, shape);
    copy_fn *copy = copy_of(size);
    if (padded != channels)
        memset(to, 0, (size_t)(padded * area) * size);
    for (int64_t p = 0; p < area; p += POSITIONS) {
        const int64_t count = area - p < POSITIONS ? area - p : POSITIONS;
        for (int64_t c = 0; c < channels; c++) {
            char *out = to + (size_t)(offset_of(to_layout, c, area) + p * steps[0]) * size;
            const char *in = from + (size_t)(offset_of(from_layout, c, area) + p * steps[1]) * size;
            if (copy)
                copy(out, steps[0], in, steps[1], count);
            else
                copy_bytes(out, in, size, steps, count);
        }
    }
}

void qn_layout_convert(const qn_laid_out *to, const qn_laid_out *from, const qn_tensor *shape)
{
    size_t bytes;
    if (!qn_layout_bytes(&bytes, to->layout, shape) || bytes == 0)
        return;
    const int64_t samples = shape->rank ? shape->dims[0] : 1;
    const size_t sample = bytes / (size_t)samples;
    for (int64_t n = 0; n < samples; n++) {
        char *out = (char *)to->data + (size_t)n * to->stride;
        const char *in = (const char *)from->data + (size_t)n * from->stride;
        if (qn_layout_alike(to->layout, from->layout, shape))
            memcpy(out, in, sample);
        else
            convert_sample(out, to->layout, in, from->layout, shape);
    }
}
