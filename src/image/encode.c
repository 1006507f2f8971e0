/* Writing of PNG and JPEG. Both libraries report errors by jumping; nothing jumps out of this
 * file. */
#include "image/encode.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jpeglib.h>

#include "image/png_hooks.h"

/* ---- PNG ------------------------------------------------------------------------------------- */

enum { PNG_EFFORT = 3 }; /* of zlib's 1 to 9: larger by a few percent, twice as fast */

typedef struct png_work {
    qn_context *ctx;
    qn_output_file *file;
    png_structp png;
    png_infop info;
    /* The status of writing */
    qn_status status;
    qn_png_message message;
} png_work;

static void png_put(png_structp png, png_bytep bytes, size_t count)
{
    png_work *w = png_get_io_ptr(png);
    w->status = qn_output_write(w->file, bytes, count);
    if (w->status != QN_OK)
        png_error(png, "cannot write");
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

static qn_status write_png(png_work *w, const qn_image *image)
{
    const size_t row = (size_t)image->width * (size_t)image->channels;
    if (setjmp(png_jmpbuf(w->png)))
        return w->status != QN_OK
                   ? w->status
                   : qn_fail(w->ctx, QN_E_NOMEM, "cannot make a PNG: %s", w->message.text);
    png_set_write_fn(w->png, w, png_put, png_flush_nothing);
    png_set_compression_level(w->png, PNG_EFFORT);
    png_set_IHDR(w->png, w->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 image->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (int32_t y = 0; y < image->height; y++)
        png_write_row(w->png, image->pixels + (size_t)y * row);
    png_write_end(w->png, w->info);
    return QN_OK;
}

qn_status qn_png_write(qn_output_file *file, qn_context *ctx, const qn_image *image)
{
    png_work w = {.ctx = ctx, .file = file};
    w.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &w.message, qn_png_failed,
                                      qn_png_warned, ctx, qn_png_allocate, qn_png_release);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    const qn_status status = w.info ? write_png(&w, image) : qn_fail_nomem(ctx);
    png_destroy_write_struct(&w.png, &w.info);
    return status;
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

enum { JPEG_QUALITY = 92, JPEG_BUFFER = 16384 };

typedef struct jpeg_work {
    /* First: the handlers get a pointer to it */
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr target;
    jmp_buf back;
    qn_context *ctx;
    qn_output_file *file;
    /* The status of writing */
    qn_status status;
    char message[JMSG_LENGTH_MAX];
    uint8_t buffer[JPEG_BUFFER];
} jpeg_work;

static void jpeg_failed(j_common_ptr jpeg)
{
    jpeg_work *w = (jpeg_work *)jpeg;
    jpeg->err->format_message(jpeg, w->message);
    longjmp(w->back, 1);
}

static void jpeg_warned(j_common_ptr jpeg, int level)
{
    (void)jpeg;
    (void)level;
}

static void jpeg_empty(j_compress_ptr jpeg)
{
    jpeg_work *w = (jpeg_work *)jpeg;
    w->target.next_output_byte = w->buffer;
    w->target.free_in_buffer = sizeof w->buffer;
}

static void jpeg_put(jpeg_work *w, size_t count)
{
    w->status = qn_output_write(w->file, w->buffer, count);
    if (w->status != QN_OK)
        longjmp(w->back, 1);
}

static boolean jpeg_full(j_compress_ptr jpeg)
{
    jpeg_put((jpeg_work *)jpeg, JPEG_BUFFER);
    jpeg_empty(jpeg);
    return TRUE;
}

static void jpeg_end(j_compress_ptr jpeg)
{
    jpeg_work *w = (jpeg_work *)jpeg;
    jpeg_put(w, sizeof w->buffer - w->target.free_in_buffer);
}

static qn_status write_jpeg(jpeg_work *w, const qn_image *image)
{
    const size_t row = (size_t)image->width * (size_t)image->channels;
    if (setjmp(w->back))
        return w->status != QN_OK
                   ? w->status
                   : qn_fail(w->ctx, QN_E_INVALID, "cannot make a JPEG: %s", w->message);
    jpeg_create_compress(&w->jpeg);
    w->jpeg.dest = &w->target;
    w->jpeg.image_width = (JDIMENSION)image->width;
    w->jpeg.image_height = (JDIMENSION)image->height;
    w->jpeg.input_components = image->channels;
    w->jpeg.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&w->jpeg);
    jpeg_set_quality(&w->jpeg, JPEG_QUALITY, TRUE);
    /* Thin coloured lines fade where colours are stored for two pixels together. */
    w->jpeg.comp_info[0].h_samp_factor = w->jpeg.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&w->jpeg, TRUE);
    while (w->jpeg.next_scanline < w->jpeg.image_height) {
        JSAMPROW line = image->pixels + (size_t)w->jpeg.next_scanline * row;
        jpeg_write_scanlines(&w->jpeg, &line, 1);
    }
    jpeg_finish_compress(&w->jpeg);
    return QN_OK;
}

qn_status qn_jpeg_write(qn_output_file *file, qn_context *ctx, const qn_image *image)
{
    jpeg_work w = {.ctx = ctx, .file = file};
    w.jpeg.err = jpeg_std_error(&w.errors);
    w.errors.error_exit = jpeg_failed;
    w.errors.emit_message = jpeg_warned;
    w.target.init_destination = jpeg_empty;
    w.target.empty_output_buffer = jpeg_full;
    w.target.term_destination = jpeg_end;
    const qn_status status = write_jpeg(&w, image);
    jpeg_destroy_compress(&w.jpeg);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static bool is_jpeg(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

qn_status qn_image_save(qn_context *ctx, const char *path, const qn_image *image)
{
    qn_output_file *file;
    QN_TRY(qn_output_open(&file, ctx, path));
    const qn_status status =
        is_jpeg(path) ? qn_jpeg_write(file, ctx, image) : qn_png_write(file, ctx, image);
    if (status == QN_OK)
        return qn_output_commit(file);
    qn_output_discard(file);
    return qn_fail_within(ctx, status, "%s", path);
}
