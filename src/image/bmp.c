/* BMP: palettes of 1, 4 and 8 bits (plain or run-length coded), 16, 24 and 32 bits a pixel.
 *
 * Layout: "BM", 12 bytes of which the last 4 are the offset of the pixels; then a header that
 * begins with its own size (12: OS/2's, 16-bit sizes; 40 and more: Windows'), colour masks,
 * palette, pixels. Rows go from the bottom up unless the height is negative, each padded to 4
 * bytes. */
#include <string.h>

#include "image/image.h"

enum { FILE_HEADER = 14, OS2_HEADER = 12, WINDOWS_HEADER = 40 };
/* Runs are up to 255 pixels in 2 bytes, steps over nothing up to 255 rows in 4. */
enum { MOST_PIXELS_A_BYTE = 1 << 14 };
enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, ALPHA_MASKS = 6 };

typedef struct work {
    qn_context *ctx;
    const uint8_t *file;
    size_t size, pixels_at;
    uint32_t header, bits, compression, colours;
    int64_t width, height;
    bool top_down;
    /* Red, green, blue */
    uint32_t masks[3];
    /* Red, green, blue */
    uint8_t palette[256 * 3];
    qn_decoder decoder;
} work;

static uint32_t number(const work *w, size_t at, int bytes)
{
    uint32_t value = 0;
    for (int b = 0; b < bytes; b++)
        value |= (uint32_t)w->file[at + (size_t)b] << 8 * b;
    return value;
}

static qn_status damaged(const work *w, const char *what)
{
    return qn_fail(w->ctx, QN_E_FORMAT, "damaged BMP: %s", what);
}

static qn_status unsupported(const work *w)
{
    return qn_fail(w->ctx, QN_E_UNSUPPORTED, "BMP with %u bits a pixel, compression %u", w->bits,
                   w->compression);
}

/* ---- Headers --------------------------------------------------------------------------------- */

static void read_sizes(work *w)
{
    if (w->header == OS2_HEADER) {
        w->width = number(w, FILE_HEADER + 4, 2);
        w->height = number(w, FILE_HEADER + 6, 2);
        w->bits = number(w, FILE_HEADER + 10, 2);
        return;
    }
    w->width = (int32_t)number(w, FILE_HEADER + 4, 4);
    w->height = (int32_t)number(w, FILE_HEADER + 8, 4);
    w->bits = number(w, FILE_HEADER + 14, 2);
    w->compression = number(w, FILE_HEADER + 16, 4);
    w->colours = number(w, FILE_HEADER + 32, 4);
    w->top_down = w->height < 0;
    w->height = w->top_down ? -w->height : w->height;
}

/* *at is where the masks stand behind a header that has no room for them, and then the palette. */
static qn_status read_masks(work *w, size_t *at)
{
    static const uint32_t standard[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    memcpy(w->masks, standard[w->bits == 32], sizeof w->masks);
    if (w->compression != MASKS && w->compression != ALPHA_MASKS)
        return QN_OK;
    if (w->header < WINDOWS_HEADER + 12)
        *at += w->compression == MASKS ? 12 : 16;
    if (*at > w->size || w->size < FILE_HEADER + WINDOWS_HEADER + 12)
        return damaged(w, "the file ends inside the colour masks");
    for (size_t c = 0; c < 3; c++)
        w->masks[c] = number(w, FILE_HEADER + WINDOWS_HEADER + 4 * c, 4);
    return QN_OK;
}

static qn_status read_palette(work *w, size_t at)
{
    const size_t entry = w->header == OS2_HEADER ? 3 : 4;
    size_t count = w->colours ? w->colours : (size_t)1 << w->bits;
    if (count > 256)
        return damaged(w, "a palette of more than 256 colours");
    /* OS/2's palettes end where the pixels begin. */
    if (w->pixels_at > at && count > (w->pixels_at - at) / entry)
        count = (w->pixels_at - at) / entry;
    if (at + count * entry > w->size)
        return damaged(w, "the file ends inside the palette");
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < 3; c++)
            w->palette[3 * i + c] = w->file[at + i * entry + 2 - c];
    }
    return QN_OK;
}

static qn_status read_headers(work *w)
{
    if (w->size < FILE_HEADER + OS2_HEADER)
        return damaged(w, "the file ends inside its header");
    w->pixels_at = number(w, 10, 4);
    w->header = number(w, FILE_HEADER, 4);
    if (w->header != OS2_HEADER && w->header < WINDOWS_HEADER)
        return damaged(w, "an unknown header");
    if (w->header > w->size - FILE_HEADER)
        return damaged(w, "the file ends inside its header");
    read_sizes(w);
    size_t at = FILE_HEADER + w->header;
    QN_TRY(read_masks(w, &at));
    return w->bits <= 8 ? read_palette(w, at) : QN_OK;
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

static uint8_t *row_of(const work *w, uint8_t *pixels, int64_t y, size_t row)
{
    return pixels + (size_t)(w->top_down ? y : w->height - 1 - y) * row;
}

static void copy_indexed(const work *w, uint8_t *to, const uint8_t *from)
{
    for (size_t x = 0; x < (size_t)w->width; x++) {
        const size_t bit = x * w->bits;
        const unsigned index = (unsigned)from[bit / 8] >> (8 - w->bits - bit % 8);
        memcpy(to + 3 * x, w->palette + 3 * (index & ((1u << w->bits) - 1)), 3);
    }
}

/* The bits of a mask, stretched to 0..255 (Pillow) or moved to the upper end (OpenCV). */
static uint8_t masked(uint32_t pixel, uint32_t mask, qn_decoder decoder)
{
    if (!mask)
        return 0;
    uint32_t value = pixel & mask, most = mask;
    while (!(most & 1)) {
        most >>= 1;
        value >>= 1;
    }
    if (most == 255)
        return (uint8_t)value;
    if (decoder == QN_DECODE_PILLOW)
        return (uint8_t)((uint64_t)value * 255 / most);
    while (most > 255) {
        most >>= 1;
        value >>= 1;
    }
    for (; most < 128; most = most << 1 | 1)
        value <<= 1;
    return (uint8_t)value;
}

static void copy_masked(const work *w, uint8_t *to, const uint8_t *from)
{
    const size_t bytes = w->bits / 8;
    for (size_t x = 0; x < (size_t)w->width; x++) {
        uint32_t pixel = 0;
        for (size_t b = 0; b < bytes; b++)
            pixel |= (uint32_t)from[x * bytes + b] << 8 * b;
        for (size_t c = 0; c < 3; c++)
            to[3 * x + c] = masked(pixel, w->masks[c], w->decoder);
    }
}

static void copy_24(const work *w, uint8_t *to, const uint8_t *from)
{
    for (size_t x = 0; x < (size_t)w->width; x++) {
        for (size_t c = 0; c < 3; c++)
            to[3 * x + c] = from[3 * x + 2 - c];
    }
}

static qn_status read_plain(const work *w, uint8_t *pixels)
{
    const size_t stride = ((size_t)w->width * w->bits + 31) / 32 * 4;
    const size_t used = ((size_t)w->width * w->bits + 7) / 8;
    for (int64_t y = 0; y < w->height; y++) {
        const size_t at = w->pixels_at + (size_t)y * stride;
        if (at > w->size || used > w->size - at)
            return damaged(w, "the file ends inside the pixels");
        uint8_t *to = row_of(w, pixels, y, (size_t)w->width * 3);
        if (w->bits <= 8)
            copy_indexed(w, to, w->file + at);
        else if (w->bits == 24)
            copy_24(w, to, w->file + at);
        else
            copy_masked(w, to, w->file + at);
    }
    return QN_OK;
}

/* ---- Runs: (count, value), or 0 and: 0 end of the row, 1 end of all, 2 dx dy, n plain values - */

typedef struct runs {
    const work *w;
    /* [height][width], first row first in the file */
    uint8_t *indexes;
    size_t at;
    int64_t x, y;
} runs;

static void put(runs *r, unsigned index)
{
    const work *w = r->w;
    if (r->x < w->width && r->y < w->height)
        r->indexes[(size_t)r->y * (size_t)w->width + (size_t)r->x] = (uint8_t)index;
    r->x++;
}

/* Value i of a byte sequence of 8 or 4 bits each. */
static unsigned value_at(const runs *r, size_t at, size_t i)
{
    if (r->w->bits == 8)
        return r->w->file[at + i];
    return i % 2 ? r->w->file[at + i / 2] & 15u : r->w->file[at + i / 2] >> 4;
}

static bool take_plain(runs *r, size_t count)
{
    const size_t bytes = r->w->bits == 8 ? count : (count + 1) / 2;
    if (bytes > r->w->size - r->at)
        return false;
    for (size_t i = 0; i < count; i++)
        put(r, value_at(r, r->at, i));
    r->at += bytes + bytes % 2;
    return r->at <= r->w->size;
}

static void take_run(runs *r, size_t count)
{
    const bool wide = r->w->bits == 8;
    for (size_t i = 0; i < count; i++)
        put(r, value_at(r, r->at - 1, wide ? 0 : i % 2));
}

/* False where the file ends before the end of the picture. */
static bool read_runs(runs *r)
{
    const work *w = r->w;
    while (r->y < w->height) {
        if (w->size - r->at < 2)
            return false;
        const unsigned count = w->file[r->at], code = w->file[r->at + 1];
        r->at += 2;
        if (count) {
            take_run(r, count);
        } else if (code == 0) {
            r->x = 0;
            r->y++;
        } else if (code == 1) {
            return true;
        } else if (code == 2) {
            if (w->size - r->at < 2)
                return false;
            r->x += w->file[r->at];
            r->y += w->file[r->at + 1];
            r->at += 2;
        } else if (!take_plain(r, code)) {
            return false;
        }
    }
    return true;
}

static qn_status read_coded(const work *w, uint8_t *pixels)
{
    const size_t width = (size_t)w->width;
    if (w->pixels_at > w->size)
        return damaged(w, "the file ends before the pixels");
    runs r = {.w = w, .at = w->pixels_at};
    r.indexes = qn_alloc_zero(w->ctx, (size_t)w->height, width);
    QN_TRY_ALLOC(w->ctx, r.indexes);
    const bool complete = read_runs(&r);
    for (int64_t y = 0; y < w->height; y++) {
        uint8_t *to = row_of(w, pixels, y, width * 3);
        for (size_t x = 0; x < width; x++)
            memcpy(to + 3 * x, w->palette + 3 * r.indexes[(size_t)y * width + x], 3);
    }
    qn_free(w->ctx, r.indexes);
    return complete ? QN_OK : damaged(w, "the file ends inside the pixels");
}

static bool is_supported(const work *w)
{
    static const struct {
        uint32_t bits, compression;
    } forms[] = {{1, PLAIN},  {4, PLAIN},  {8, PLAIN},        {16, PLAIN},
                 {24, PLAIN}, {32, PLAIN}, {16, MASKS},       {32, MASKS},
                 {8, RLE8},   {4, RLE4},   {32, ALPHA_MASKS}, {16, ALPHA_MASKS}};
    for (size_t i = 0; i < QN_COUNT_OF(forms); i++) {
        if (forms[i].bits == w->bits && forms[i].compression == w->compression)
            return true;
    }
    return false;
}

qn_status qn_bmp_decode(qn_image *out, int *orientation, qn_context *ctx, const uint8_t *file,
                        size_t size, qn_decoder decoder)
{
    work w = {.ctx = ctx, .file = file, .size = size, .decoder = decoder};
    *orientation = 1;
    *out = (qn_image){.pixels = NULL};
    QN_TRY(read_headers(&w));
    if (!is_supported(&w))
        return unsupported(&w);
    const bool coded = w.compression == RLE8 || w.compression == RLE4;
    QN_TRY(qn_image_check(ctx, w.width, w.height, size, coded ? MOST_PIXELS_A_BYTE : 8));
    QN_TRY(qn_image_begin(out, ctx, w.width, w.height, 3, decoder));
    if (!out->pixels)
        return QN_OK;
    const qn_status status = coded ? read_coded(&w, out->pixels) : read_plain(&w, out->pixels);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}
