/* WebP through libwebp: still pictures, and the first of moving ones. */
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "image/image.h"

/* A plain area costs lossless files almost nothing: 25000 pixels a byte were seen. */
enum { MOST_PIXELS_A_BYTE = 1 << 17 };

typedef struct work {
    qn_context *ctx;
    qn_image *out;
    WebPData file;
    WebPDemuxer *parts;
} work;

static int orientation_of(const work *w)
{
    WebPChunkIterator chunk;
    int orientation = 1;
    if (!WebPDemuxGetChunk(w->parts, "EXIF", 1, &chunk))
        return orientation;
    const uint8_t *data = chunk.chunk.bytes;
    size_t size = chunk.chunk.size;
    /* Some writers put JPEG's mark in front of the data. */
    if (size > 6 && memcmp(data, "Exif\0", 6) == 0) {
        data += 6;
        size -= 6;
    }
    orientation = qn_exif_orientation(data, size);
    WebPDemuxReleaseChunkIterator(&chunk);
    return orientation;
}

/* The frame stands on a black canvas, which may be larger; transparency is dropped. */
static qn_status read_frame(const work *w, const WebPIterator *frame)
{
    const qn_image *image = w->out;
    const size_t stride = 3 * (size_t)image->width;
    const size_t bytes = stride * (size_t)image->height;
    if (frame->width != image->width || frame->height != image->height)
        memset(image->pixels, 0, bytes);
    const size_t at = (size_t)frame->y_offset * stride + 3 * (size_t)frame->x_offset;
    if (frame->x_offset + frame->width > image->width ||
        frame->y_offset + frame->height > image->height ||
        !WebPDecodeRGBInto(frame->fragment.bytes, frame->fragment.size, image->pixels + at,
                           bytes - at, (int)stride))
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged WebP: its pixels cannot be decoded");
    return QN_OK;
}

static qn_status decode(work *w, int *orientation, qn_decoder decoder)
{
    WebPIterator frame;
    const int64_t width = WebPDemuxGetI(w->parts, WEBP_FF_CANVAS_WIDTH);
    const int64_t height = WebPDemuxGetI(w->parts, WEBP_FF_CANVAS_HEIGHT);
    *orientation = orientation_of(w);
    QN_TRY(qn_image_check(w->ctx, width, height, w->file.size, MOST_PIXELS_A_BYTE));
    QN_TRY(qn_image_begin(w->out, w->ctx, width, height, 3, decoder));
    if (!w->out->pixels)
        return QN_OK;
    if (!WebPDemuxGetFrame(w->parts, 1, &frame))
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged WebP: it has no picture");
    const qn_status status = read_frame(w, &frame);
    WebPDemuxReleaseIterator(&frame);
    return status;
}

qn_status qn_webp_decode(qn_image *out, int *orientation, qn_context *ctx, const uint8_t *file,
                         size_t size, qn_decoder decoder)
{
    work w = {.ctx = ctx, .out = out, .file = {file, size}};
    *out = (qn_image){.pixels = NULL};
    w.parts = WebPDemux(&w.file);
    if (!w.parts)
        return qn_fail(ctx, QN_E_FORMAT, "damaged WebP: its parts do not fit together");
    const qn_status status = decode(&w, orientation, decoder);
    WebPDemuxDelete(w.parts);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}
