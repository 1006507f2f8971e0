/* JPEG through libjpeg-turbo, with its default settings (the exact integer DCT, smooth upsampling),
 * which Pillow and OpenCV use too: the pixels are theirs. The library takes its working memory from
 * malloc: it has no way to be given another. Its only way to report an error is to jump; nothing
 * jumps out of this file. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "image/image.h"

/* Progressive files have about ten scans; those with thousands are made to keep decoders busy. A
 * block of 64 pixels takes at least a bit, and its colours may be stored for 16 blocks together. */
enum { MOST_SCANS = 500, MOST_PIXELS_A_BYTE = 64 * 8 * 16 };

typedef struct work {
    /* First: the handlers get a pointer to it */
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    qn_context *ctx;
    qn_image *out;
    /* The size of the file */
    size_t size;
    /* CMYK */
    uint8_t *row;
    char message[JMSG_LENGTH_MAX];
} work;

static void on_error(j_common_ptr jpeg)
{
    work *w = (work *)jpeg;
    jpeg->err->format_message(jpeg, w->message);
    longjmp(w->back, 1);
}

/* Damage inside the data changes pixels and is let pass, as Pillow and OpenCV do; a file that ends
 * too early is an error. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF)
        on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    work *w = (work *)jpeg;
    if (w->jpeg.input_scan_number <= MOST_SCANS)
        return;
    snprintf(w->message, sizeof w->message, "more than %d scans", MOST_SCANS);
    longjmp(w->back, 1);
}

/* "Exif\0\0" and a TIFF file. */
static int orientation_of(const struct jpeg_decompress_struct *jpeg)
{
    for (const struct jpeg_marker_struct *m = jpeg->marker_list; m; m = m->next) {
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && memcmp(m->data, "Exif\0", 6) == 0)
            return qn_exif_orientation(m->data + 6, m->data_length - 6);
    }
    return 1;
}

/* Adobe's CMYK, stored inverted: 255 is no ink. rgb may be cmyk. */
static void convert_cmyk(uint8_t *rgb, const uint8_t *cmyk, size_t count, qn_decoder decoder)
{
    for (size_t i = 0; i < count; i++, rgb += 3, cmyk += 4) {
        const int key = cmyk[3];
        for (int c = 0; c < 3; c++) {
            const int ink = (255 - cmyk[c]) * key;
            if (decoder == QN_DECODE_OPENCV)
                rgb[c] = (uint8_t)(key - (ink >> 8));
            else /* ink / 255, rounded */
                rgb[c] = (uint8_t)(key - ((((ink + 128) >> 8) + ink + 128) >> 8));
        }
    }
}

static void read_rows(work *w, qn_decoder decoder)
{
    qn_image *image = w->out;
    const size_t row = (size_t)image->width * (size_t)image->channels;
    while (w->jpeg.output_scanline < w->jpeg.output_height) {
        uint8_t *to = image->pixels + (size_t)w->jpeg.output_scanline * row;
        uint8_t *into = w->row ? w->row : to;
        jpeg_read_scanlines(&w->jpeg, &into, 1);
        if (w->row)
            convert_cmyk(to, w->row, (size_t)image->width, decoder);
    }
}

static qn_status make_image(work *w, qn_decoder decoder)
{
    struct jpeg_decompress_struct *jpeg = &w->jpeg;
    QN_TRY(
        qn_image_check(w->ctx, jpeg->image_width, jpeg->image_height, w->size, MOST_PIXELS_A_BYTE));
    const bool grey = jpeg->jpeg_color_space == JCS_GRAYSCALE;
    const bool inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = grey ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    if (inks)
        w->row = qn_alloc(w->ctx, 4 * (size_t)jpeg->image_width);
    if (inks && !w->row)
        return qn_fail_nomem(w->ctx);
    return qn_image_begin(w->out, w->ctx, jpeg->image_width, jpeg->image_height, grey ? 1 : 3,
                          decoder);
}

static qn_status decode(work *w, int *orientation, const uint8_t *file, size_t size,
                        qn_decoder decoder)
{
    if (setjmp(w->back))
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged JPEG: %s", w->message);
    jpeg_create_decompress(&w->jpeg);
    w->jpeg.progress = &w->progress;
    jpeg_save_markers(&w->jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(&w->jpeg, file, (unsigned long)size);
    jpeg_read_header(&w->jpeg, TRUE);
    *orientation = orientation_of(&w->jpeg);
    QN_TRY(make_image(w, decoder));
    if (!w->out->pixels)
        return QN_OK;
    jpeg_start_decompress(&w->jpeg);
    read_rows(w, decoder);
    return QN_OK;
}

qn_status qn_jpeg_decode(qn_image *out, int *orientation, qn_context *ctx, const uint8_t *file,
                         size_t size, qn_decoder decoder)
{
    work w = {.ctx = ctx, .out = out, .size = size};
    *out = (qn_image){.pixels = NULL};
    w.jpeg.err = jpeg_std_error(&w.errors);
    w.errors.error_exit = on_error;
    w.errors.emit_message = on_message;
    w.progress.progress_monitor = on_progress;
    const qn_status status = decode(&w, orientation, file, size, decoder);
    jpeg_destroy_decompress(&w.jpeg);
    qn_free(ctx, w.row);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}
