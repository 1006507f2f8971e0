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
    /* The shorter side becomes `height` pixels, the other one in proportion */
    QN_FIT_SHORT_SIDE,
    /* Height x width; a side that is 0 in proportion to the other */
    QN_FIT_SIZE,
    /* Letterbox: in proportion, the rest `fill` on both sides */
    QN_FIT_CENTRE,
    /* Letterbox: the rest below and on the right */
    QN_FIT_TOP_LEFT
} qn_fit;

typedef struct qn_preprocess {
    qn_decoder decoder;
    /* Upright, as EXIF data say */
    bool rotate;
    qn_colour colour;
    qn_fit fit;
    /* Of fit */
    int32_t height, width;
    /* NULL: the decoder's own */
    qn_resize_fn *resize;
    /* A letterbox enlarges no picture */
    bool shrink;
    /* The centre; 0: all */
    int32_t crop_height, crop_width;
    /* Picture at the top left, the rest 0 behind mean and std; what does not fit is cut off. 0:
     * not */
    int32_t pad_height, pad_width;
    /* As mean: one per channel of the input, in its order */
    uint8_t fill[3];
    bool unit;
    float mean[3], std[3];
    qn_axes layout;
} qn_preprocess;

/* No step at all: pixels 0..255. */
void qn_preprocess_init(qn_preprocess *out);
/* Words and "key=value", separated by commas; docs/data.md lists them. NULL or "": no step. */
QN_MUST_CHECK qn_status qn_preprocess_parse(qn_preprocess *out, qn_context *ctx, const char *text);
/* All pictures have one size behind these steps. */
bool qn_preprocess_fixes_size(const qn_preprocess *p);
/* Names of the presets, and what they stand for; NULL past the last. */
const char *qn_preprocess_preset(size_t i, const char **text);

/* One sample of a model's input. */
typedef struct qn_picture_shape {
    qn_dtype dtype;
    /* -1: open */
    int64_t channels, height, width;
    bool nhwc;
} qn_picture_shape;

/* Where a picture lies in the input made of it: its point x stands at x * scale_x + left. Points
 * are counted from the outer edge of the first pixel on. */
typedef struct qn_picture_place {
    /* Of the picture; 0: the sample is none */
    int32_t width, height;
    /* Of the input */
    int32_t input_width, input_height;
    double scale_x, scale_y;
    /* Negative where the picture is cropped */
    double left, top;
} qn_picture_place;

/* The steps before the numbers. place (may be NULL) gets all but the input's sizes. */
QN_MUST_CHECK qn_status qn_preprocess_pixels(qn_image *image, qn_picture_place *place,
                                             qn_context *ctx, const qn_preprocess *p);
/* The size and channels that they leave a picture with (whose pixels do not count), where they fix
 * no size. */
void qn_preprocess_measure(qn_image *image, const qn_preprocess *p);
/* Gives open dimensions the picture's sizes; fails where others do not fit. */
QN_MUST_CHECK qn_status qn_preprocess_bind(qn_picture_shape *shape, qn_context *ctx,
                                           const qn_preprocess *p, const qn_image *image);

/* What each pixel value becomes. */
typedef struct qn_pixel_table {
    float number[3][256];
} qn_pixel_table;
void qn_pixel_table_make(qn_pixel_table *out, const qn_preprocess *p);
/* Writes the sample, of a shape that qn_preprocess_bind found fitting. */
QN_MUST_CHECK qn_status qn_preprocess_store(void *to, qn_context *ctx, const qn_preprocess *p,
                                            const qn_pixel_table *table,
                                            const qn_picture_shape *shape, const qn_image *image);

#endif
