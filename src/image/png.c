/* PNG through libpng. Its only way to report an error is to jump; nothing jumps out of this
 * file. */
#include <setjmp.h>
#include <string.h>

#include "image/image.h"
#include "image/png_hooks.h"

/* Deflate packs by a factor of about 1032 at most, and a byte is up to 8 pixels. */
enum { MOST_PIXELS_A_BYTE = 1100 * 8 };

typedef struct work {
    qn_context *ctx;
    png_structp png;
    png_infop info;
    const uint8_t *file;
    size_t size, at;
    qn_image *out;
    /* 16-bit grey as it stands in the file */
    uint8_t *wide;
    qn_png_message message;
} work;

static void read_bytes(png_structp png, png_bytep to, size_t count)
{
    work *w = png_get_io_ptr(png);
    if (count > w->size - w->at)
        png_error(png, "the file ends too early");
    memcpy(to, w->file + w->at, count);
    w->at += count;
}

/* 8 bits, no transparency, palettes as colours. Of 16 bits the upper 8 are kept, but Pillow reads
 * grey of 16 bits as a number and cuts it off at 255. */
static void set_transforms(const work *w, bool keep_16)
{
    png_set_palette_to_rgb(w->png);
    png_set_expand_gray_1_2_4_to_8(w->png);
    if (!keep_16)
        png_set_strip_16(w->png);
    png_set_strip_alpha(w->png);
    png_set_interlace_handling(w->png);
    png_read_update_info(w->png, w->info);
}

static void read_rows(const work *w, uint8_t *pixels)
{
    const size_t row = png_get_rowbytes(w->png, w->info);
    const int passes = png_get_interlace_type(w->png, w->info) == PNG_INTERLACE_NONE ? 1 : 7;
    for (int pass = 0; pass < passes; pass++) {
        for (int32_t y = 0; y < w->out->height; y++)
            png_read_row(w->png, pixels + (size_t)y * row, NULL);
    }
}

static void cut_16(uint8_t *to, const uint8_t *wide, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = wide[2 * i] ? 255 : wide[2 * i + 1];
}

static int orientation_of(const work *w)
{
    png_bytep data = NULL;
    png_uint_32 size = 0;
    if (png_get_eXIf_1(w->png, w->info, &size, &data) && data)
        return qn_exif_orientation(data, size);
    return 1;
}

static qn_status make_image(work *w, qn_decoder decoder, bool keep_16)
{
    const png_uint_32 width = png_get_image_width(w->png, w->info);
    const png_uint_32 height = png_get_image_height(w->png, w->info);
    QN_TRY(qn_image_check(w->ctx, width, height, w->size, MOST_PIXELS_A_BYTE));
    QN_TRY(
        qn_image_begin(w->out, w->ctx, width, height, png_get_channels(w->png, w->info), decoder));
    if (keep_16)
        w->wide = qn_alloc(w->ctx, 2 * (size_t)width * height);
    return keep_16 && !w->wide ? qn_fail_nomem(w->ctx) : QN_OK;
}

static qn_status decode(work *w, int *orientation, qn_decoder decoder)
{
    if (setjmp(png_jmpbuf(w->png)))
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged PNG: %s", w->message.text);
    png_set_read_fn(w->png, w, read_bytes);
    png_set_user_limits(w->png, INT32_MAX, INT32_MAX);
    png_read_info(w->png, w->info);
    *orientation = orientation_of(w);
    const bool keep_16 = decoder == QN_DECODE_PILLOW && png_get_bit_depth(w->png, w->info) == 16 &&
                         png_get_color_type(w->png, w->info) == PNG_COLOR_TYPE_GRAY;
    set_transforms(w, keep_16);
    QN_TRY(make_image(w, decoder, keep_16));
    if (!w->out->pixels)
        return QN_OK;
    read_rows(w, keep_16 ? w->wide : w->out->pixels);
    if (keep_16)
        cut_16(w->out->pixels, w->wide, (size_t)w->out->width * (size_t)w->out->height);
    return QN_OK;
}

qn_status qn_png_decode(qn_image *out, int *orientation, qn_context *ctx, const uint8_t *file,
                        size_t size, qn_decoder decoder)
{
    work w = {.ctx = ctx, .file = file, .size = size, .out = out};
    qn_status status = QN_OK;
    *out = (qn_image){.pixels = NULL};
    w.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &w.message, qn_png_failed,
                                     qn_png_warned, ctx, qn_png_allocate, qn_png_release);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    status = w.info ? decode(&w, orientation, decoder) : qn_fail_nomem(ctx);
    png_destroy_read_struct(&w.png, &w.info, NULL);
    qn_free(ctx, w.wide);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}
