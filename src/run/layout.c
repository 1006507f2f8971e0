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

/* Element offset of channel c, position p (of `area`) of sample n. */
static int64_t offset_of(qn_layout layout, const int64_t *at, int64_t channels, int64_t area)
{
    const int64_t n = at[0], c = at[1], p = at[2];
    switch ((qn_layout_kind)layout.kind) {
    case QN_LAYOUT_BLOCKED: {
        const int64_t b = layout.block, blocks = (channels + b - 1) / b;
        return ((n * blocks + c / b) * area + p) * b + c % b;
    }
    case QN_LAYOUT_CHANNELS_LAST: return (n * area + p) * channels + c;
    case QN_LAYOUT_ROWS: break;
    }
    return (n * channels + c) * area + p;
}

void qn_layout_convert(void *to, qn_layout to_layout, const void *from, qn_layout from_layout,
                       const qn_tensor *shape)
{
    const size_t size = qn_dtype_size(shape->dtype);
    size_t bytes;
    if (!qn_layout_bytes(&bytes, to_layout, shape) || bytes == 0)
        return;
    if (qn_layout_same(to_layout, from_layout)) {
        memcpy(to, from, bytes);
        return;
    }
    const int64_t samples = shape->dims[0], channels = shape->dims[1];
    int64_t area = 1;
    for (int32_t d = 2; d < shape->rank; d++)
        area *= shape->dims[d];
    if (padded_channels(to_layout, shape) != channels)
        memset(to, 0, bytes);
    for (int64_t n = 0; n < samples; n++) {
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t p = 0; p < area; p++) {
                const int64_t at[3] = {n, c, p};
                memcpy((char *)to + (size_t)offset_of(to_layout, at, channels, area) * size,
                       (const char *)from +
                           (size_t)offset_of(from_layout, at, channels, area) * size,
                       size);
            }
        }
    }
}
