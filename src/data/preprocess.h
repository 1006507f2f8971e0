/* From a picture to a model's input. The steps come in this order, whatever order the text has:
 * decode, rotate, grey, resize or letterbox, crop, pad; then numbers: (v / 255 where `unit`, else
 * v), minus mean, divided by std. All is integer until there. */
#ifndef QN_PREPROCESS_H
#define QN_PREPROCESS_H

#include "image/image.h"

typedef enum qn_colour { QN_COLOUR_RGB, QN_COLOUR_BGR, QN_COLOUR_GREY } qn_colour;
typedef enum qn_axes { QN_AXES_AUTO, QN_AXES_NCHW, QN_AXES_NHWC } qn_axes;
typedef enum qn_fit {
    QN_FIT_NONE,
    /* The shorter side becomes `height` pixels, the other one follows in proportion. */
    QN_FIT_SHORT_SIDE,
    /* The picture becomes height x width; a side that is 0 follows in proportion. */
    QN_FIT_SIZE,
    /* Letterbox: scaled in proportion, with `fill` on both sides. */
    QN_FIT_CENTRE,
    /* Letterbox: scaled in proportion, with `fill` below and on the right. */
    QN_FIT_TOP_LEFT
} qn_fit;

typedef struct qn_preprocess {
    qn_decoder decoder;
    /* Turn the picture upright, as its EXIF data say. */
    bool rotate;
    qn_colour colour;
    qn_fit fit;
    /* The size that `fit` uses. */
    int32_t height, width;
    /* The resize function; NULL: the decoder's own. */
    qn_resize_fn *resize;
    /* A letterbox never enlarges a picture. */
    bool shrink;
    /* The size of the centre to keep; 0: all. */
    int32_t crop_height, crop_width;
    /* The size to pad to, with the picture at the top left and 0 (after mean and std) elsewhere;
     * what does not fit is cut off. 0: no padding. */
    int32_t pad_height, pad_width;
    /* One number per channel of the input, in its order, like `mean`. */
    uint8_t fill[3];
    bool unit;
    float mean[3], std[3];
    qn_axes layout;
} qn_preprocess;

/* Sets no step at all: pixels are 0 to 255. */
void qn_preprocess_init(qn_preprocess *out);
/* Parses words and "key=value" pairs, separated by commas; docs/data.md lists them. NULL or "": no
 * step. */
QN_MUST_CHECK qn_status qn_preprocess_parse(qn_preprocess *out, qn_context *ctx, const char *text);
/* Whether all pictures have the same size after these steps. */
bool qn_preprocess_fixes_size(const qn_preprocess *p);
/* The name of preset i and the text that it stands for; NULL past the last. */
const char *qn_preprocess_preset(size_t i, const char **text);

/* The shape of one sample of a model's input. */
typedef struct qn_picture_shape {
    qn_dtype dtype;
    /* Sizes; -1: open. */
    int64_t channels, height, width;
    bool nhwc;
} qn_picture_shape;

/* The position of a picture in the input made of it: its point x is at x * scale_x + left in the
 * input. Points are counted from the outer edge of the first pixel. */
typedef struct qn_picture_place {
    /* The size of the picture; 0: the sample has none. */
    int32_t width, height;
    /* The size of the input. */
    int32_t input_width, input_height;
    double scale_x, scale_y;
    /* The offset, negative where the picture is cropped. */
    double left, top;
} qn_picture_place;

/* Applies all steps on pixels. place (may be NULL) gets everything but the input's size. */
QN_MUST_CHECK qn_status qn_preprocess_pixels(qn_image *image, qn_picture_place *place,
                                             qn_context *ctx, const qn_preprocess *p);
/* Sets the size and channels that the steps leave a picture with, without its pixels, for steps
 * that fix no size. */
void qn_preprocess_measure(qn_image *image, const qn_preprocess *p);
/* Sets open dimensions to the picture's sizes; fails where known ones differ. */
QN_MUST_CHECK qn_status qn_preprocess_bind(qn_picture_shape *shape, qn_context *ctx,
                                           const qn_preprocess *p, const qn_image *image);

/* The number that each pixel value of each channel becomes. */
typedef struct qn_pixel_table {
    float number[3][256];
} qn_pixel_table;
void qn_pixel_table_make(qn_pixel_table *out, const qn_preprocess *p);
/* Writes the sample in a shape that qn_preprocess_bind has accepted. */
QN_MUST_CHECK qn_status qn_preprocess_store(void *to, qn_context *ctx, const qn_preprocess *p,
                                            const qn_pixel_table *table,
                                            const qn_picture_shape *shape, const qn_image *image);

#endif
