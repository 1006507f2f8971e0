/* Pictures in memory: 8-bit pixels, and the files they come from. */
#ifndef QN_IMAGE_H
#define QN_IMAGE_H

#include "base/base.h"

typedef struct qn_image {
    int32_t width, height;
    /* 1: grey, 3: red, green, blue */
    int32_t channels;
    /* [height][width][channels]; from the context's allocator */
    uint8_t *pixels;
} qn_image;

/* The library whose meaning of a file counts where Pillow and OpenCV do not agree about it: CMYK in
 * JPEG and TIFF, 16-bit grey in PNG, 16-bit pixels in BMP and TIFF, transparency and palettes in
 * TIFF; and the weights of grey. */
typedef enum qn_decoder {
    QN_DECODE_PILLOW,
    QN_DECODE_OPENCV,
    /* Nobody's: no pixels, only what the file says of their number */
    QN_DECODE_SIZE
} qn_decoder;

/* Pictures beyond this many pixels are refused, as Pillow does. */
#define QN_IMAGE_MOST_PIXELS INT64_C(178956970)

/* A picture's file in memory to pixels: JPEG, PNG, BMP, PNM and, where the build has their
 * libraries, WebP and TIFF; the first bytes decide which. A format that is known and not read is
 * QN_E_UNSUPPORTED. Grey files stay grey, transparency is dropped. `rotate` turns the picture
 * upright as its EXIF data describe; a TIFF file always is. */
QN_MUST_CHECK qn_status qn_image_decode(qn_image *out, qn_context *ctx, const uint8_t *file,
                                        size_t size, qn_decoder decoder, bool rotate);
/* What qn_image_decode would give, without the pixels: width, height and channels. */
QN_MUST_CHECK qn_status qn_image_measure(qn_image *out, qn_context *ctx, const uint8_t *file,
                                         size_t size, bool rotate);
/* By its first bytes. */
bool qn_image_is_picture(const uint8_t *file, size_t size);
/* By the ending of its name. */
bool qn_image_is_file(const char *path);
/* The endings; NULL past the last. */
const char *qn_image_ending(size_t i);

/* Pixels not set. Fails for sizes below 1 or beyond the limit. */
QN_MUST_CHECK qn_status qn_image_create(qn_image *out, qn_context *ctx, int64_t width,
                                        int64_t height, int32_t channels);
/* The same for a decoder; there are no pixels where only sizes are asked for. */
QN_MUST_CHECK qn_status qn_image_begin(qn_image *out, qn_context *ctx, int64_t width,
                                       int64_t height, int32_t channels, qn_decoder decoder);
void qn_image_free(qn_image *image, qn_context *ctx);
/* Fails where a file of this size cannot hold a picture of so many pixels: what claims more is
 * broken, and costs no memory. `most` is what one byte can stand for. */
QN_MUST_CHECK qn_status qn_image_check(qn_context *ctx, int64_t width, int64_t height, size_t size,
                                       int64_t most);

/* To one channel, with the decoder's weights; grey stays as it is. */
QN_MUST_CHECK qn_status qn_image_to_grey(qn_image *image, qn_context *ctx, qn_decoder decoder);
/* Grey copied to three channels; colour stays as it is. */
QN_MUST_CHECK qn_status qn_image_to_colour(qn_image *image, qn_context *ctx);
/* EXIF's orientation 1 to 8: what to do so that the picture stands upright. */
QN_MUST_CHECK qn_status qn_image_turn(qn_image *image, qn_context *ctx, int orientation);
/* The orientation in EXIF data (a TIFF file); 1 where there is none. */
int qn_exif_orientation(const uint8_t *data, size_t size);

/* ---- One file format each: *orientation gets 1 to 8 ------------------------------------------ */

QN_MUST_CHECK qn_status qn_jpeg_decode(qn_image *out, int *orientation, qn_context *ctx,
                                       const uint8_t *file, size_t size, qn_decoder decoder);
QN_MUST_CHECK qn_status qn_png_decode(qn_image *out, int *orientation, qn_context *ctx,
                                      const uint8_t *file, size_t size, qn_decoder decoder);
QN_MUST_CHECK qn_status qn_bmp_decode(qn_image *out, int *orientation, qn_context *ctx,
                                      const uint8_t *file, size_t size, qn_decoder decoder);
QN_MUST_CHECK qn_status qn_pnm_decode(qn_image *out, int *orientation, qn_context *ctx,
                                      const uint8_t *file, size_t size, qn_decoder decoder);
/* Only in builds that have QN_IMAGE_WEBP and QN_IMAGE_TIFF. */
QN_MUST_CHECK qn_status qn_webp_decode(qn_image *out, int *orientation, qn_context *ctx,
                                       const uint8_t *file, size_t size, qn_decoder decoder);
QN_MUST_CHECK qn_status qn_tiff_decode(qn_image *out, int *orientation, qn_context *ctx,
                                       const uint8_t *file, size_t size, qn_decoder decoder);

/* ---- Resizing, bit for bit as the programs do that they are named after ---------------------- */

typedef qn_status qn_resize_fn(qn_image *out, qn_context *ctx, const qn_image *image, int64_t width,
                               int64_t height);
/* By name: "pillow-bilinear", "opencv-linear"; NULL when there is none. */
qn_resize_fn *qn_resize_find(const char *name, size_t length);
QN_MUST_CHECK qn_resize_fn qn_resize_pillow_bilinear;
QN_MUST_CHECK qn_resize_fn qn_resize_opencv_linear;

#endif
