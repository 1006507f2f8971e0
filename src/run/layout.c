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

/* Element offset of channel c, position p (of `area`) in a sample. */
static int64_t offset_of(qn_layout layout, const int64_t *at, int64_t channels, int64_t area)
{
    const int64_t c = at[0], p = at[1], b = layout.block;
    switch ((qn_layout_kind)layout.kind) {
    case QN_LAYOUT_BLOCKED: return (c / b * area + p) * b + c % b;
    case QN_LAYOUT_CHANNELS_LAST: return p * channels + c;
    case QN_LAYOUT_ROWS: break;
    }
    return c * area + p;
}

static void convert_sample(char *to, qn_layout to_layout, const char *from, qn_layout from_layout,
                           const qn_tensor *shape)
{
    const int64_t channels = shape->dims[1], area = area_of(shape);
    const size_t size = qn_dtype_size(shape->dtype);
    const int64_t padded = padded_channels(to_layout, shape);
    if (padded != channels)
        memset(to, 0, (size_t)(padded * area) * size);
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t p = 0; p < area; p++) {
            const int64_t at[2] = {c, p};
            memcpy(to + (size_t)offset_of(to_layout, at, channels, area) * size,
                   from + (size_t)offset_of(from_layout, at, channels, area) * size, size);
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
