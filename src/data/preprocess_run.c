/* The steps of preprocessing. */
#include <math.h>
#include <string.h>

#include "data/preprocess.h"
#include "ir/dtype.h"

static void replace(qn_image *image, qn_context *ctx, const qn_image *with)
{
    qn_image_free(image, ctx);
    *image = *with;
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static qn_status resize(qn_image *image, qn_context *ctx, const qn_preprocess *p, int64_t width,
                        int64_t height)
{
    static qn_resize_fn *const standard[] = {
        [QN_DECODE_PILLOW] = qn_resize_pillow_bilinear,
        [QN_DECODE_OPENCV] = qn_resize_opencv_linear,
    };
    qn_image resized;
    if (width == image->width && height == image->height)
        return QN_OK;
    qn_resize_fn *fn = p->resize ? p->resize : standard[p->decoder];
    QN_TRY(fn(&resized, ctx, image, width, height));
    replace(image, ctx, &resized);
    return QN_OK;
}

/* Nearest pixel, halves to even, at least one. */
static int64_t scaled(int32_t side, double scale)
{
    return QN_MAX((int64_t)rint(side * scale), 1);
}

/* Width and height of the picture after resizing; a letterbox may be larger. */
typedef struct area {
    int64_t width, height;
} area;

static area fitted_area(const qn_preprocess *p, const qn_image *image)
{
    const int64_t w = image->width, h = image->height, side = p->height;
    const double by_height = (double)p->height / image->height;
    const double by_width = (double)p->width / image->width;
    const double fitting = QN_MIN(by_height, by_width);
    const double scale = p->shrink ? QN_MIN(fitting, 1) : fitting;
    switch (p->fit) {
    case QN_FIT_NONE: break;
    case QN_FIT_SHORT_SIDE: return w <= h ? (area){side, side * h / w} : (area){side * w / h, side};
    case QN_FIT_SIZE:
        return (area){p->width ? p->width : scaled(image->width, by_height),
                      p->height ? p->height : scaled(image->height, by_width)};
    case QN_FIT_CENTRE:
    case QN_FIT_TOP_LEFT: return (area){scaled(image->width, scale), scaled(image->height, scale)};
    }
    return (area){w, h};
}

/* fill[] is in the order of the input's channels, pictures are RGB. */
static void fill_all(qn_image *image, const qn_preprocess *p)
{
    const size_t count = (size_t)image->width * (size_t)image->height;
    const size_t n = (size_t)image->channels;
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < n; c++)
            image->pixels[i * n + c] = p->fill[p->colour == QN_COLOUR_BGR ? n - 1 - c : c];
    }
}

/* The picture in a box of the size that was asked for. */
static qn_status put_in_box(qn_image *image, qn_picture_place *place, qn_context *ctx,
                            const qn_preprocess *p)
{
    qn_image box;
    QN_TRY(qn_image_create(&box, ctx, p->width, p->height, image->channels));
    fill_all(&box, p);
    const bool centred = p->fit == QN_FIT_CENTRE;
    const int32_t left = centred ? (box.width - image->width) / 2 : 0;
    const int32_t top = centred ? (box.height - image->height) / 2 : 0;
    const size_t n = (size_t)image->channels, row = (size_t)image->width * n;
    place->left = left;
    place->top = top;
    for (int32_t y = 0; y < image->height; y++)
        memcpy(box.pixels + ((size_t)(top + y) * (size_t)box.width + (size_t)left) * n,
               image->pixels + (size_t)y * row, row);
    replace(image, ctx, &box);
    return QN_OK;
}

static qn_status fit(qn_image *image, qn_picture_place *place, qn_context *ctx,
                     const qn_preprocess *p)
{
    const bool boxed = p->fit == QN_FIT_CENTRE || p->fit == QN_FIT_TOP_LEFT;
    const area fitted = fitted_area(p, image);
    QN_TRY(resize(image, ctx, p, fitted.width, fitted.height));
    place->scale_x = (double)image->width / place->width;
    place->scale_y = (double)image->height / place->height;
    return boxed ? put_in_box(image, place, ctx, p) : QN_OK;
}

/* Crops in place: rows only move towards the beginning. */
static qn_status crop(qn_image *image, qn_picture_place *place, qn_context *ctx,
                      const qn_preprocess *p)
{
    if (!p->crop_height)
        return QN_OK;
    if (p->crop_height > image->height || p->crop_width > image->width)
        return qn_fail(ctx, QN_E_INVALID,
                       "%d x %d pixels (height x width) are too small to crop %d x %d: resize "
                       "first",
                       image->height, image->width, p->crop_height, p->crop_width);
    const size_t n = (size_t)image->channels;
    const size_t left = (size_t)(image->width - p->crop_width) / 2;
    const size_t top = (size_t)(image->height - p->crop_height) / 2;
    const size_t row = (size_t)p->crop_width * n;
    for (size_t y = 0; y < (size_t)p->crop_height; y++)
        memmove(image->pixels + y * row,
                image->pixels + ((top + y) * (size_t)image->width + left) * n, row);
    place->left -= (double)left;
    place->top -= (double)top;
    image->width = p->crop_width;
    image->height = p->crop_height;
    return QN_OK;
}

qn_status qn_preprocess_pixels(qn_image *image, qn_picture_place *place, qn_context *ctx,
                               const qn_preprocess *p)
{
    qn_picture_place at = {.width = image->width, .height = image->height};
    if (p->colour == QN_COLOUR_GREY)
        QN_TRY(qn_image_to_grey(image, ctx, p->decoder));
    QN_TRY(fit(image, &at, ctx, p));
    QN_TRY(crop(image, &at, ctx, p));
    if (place)
        *place = at;
    return QN_OK;
}

bool qn_preprocess_fixes_size(const qn_preprocess *p)
{
    const bool fits = p->fit == QN_FIT_CENTRE || p->fit == QN_FIT_TOP_LEFT ||
                      (p->fit == QN_FIT_SIZE && p->height && p->width);
    return fits || p->crop_height || p->pad_height;
}

void qn_preprocess_measure(qn_image *image, const qn_preprocess *p)
{
    const area fitted = fitted_area(p, image);
    if (p->colour == QN_COLOUR_GREY)
        image->channels = 1;
    image->width = (int32_t)QN_MIN(fitted.width, INT32_MAX);
    image->height = (int32_t)QN_MIN(fitted.height, INT32_MAX);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static qn_status bind_side(int64_t *side, qn_context *ctx, int64_t own, const char *what)
{
    if (*side < 0)
        *side = own;
    if (*side == own)
        return QN_OK;
    return qn_fail(ctx, QN_E_INVALID,
                   "%s %lld where the model's input has %lld: `preprocess` can resize, crop or "
                   "letterbox",
                   what, (long long)own, (long long)*side);
}

qn_status qn_preprocess_bind(qn_picture_shape *shape, qn_context *ctx, const qn_preprocess *p,
                             const qn_image *image)
{
    if (shape->channels < 0)
        shape->channels = p->colour == QN_COLOUR_GREY ? 1 : 3;
    if (shape->channels != 1 && shape->channels != 3)
        return qn_fail(ctx, QN_E_INVALID, "a picture for an input of %lld channels",
                       (long long)shape->channels);
    if (shape->channels < image->channels)
        return qn_fail(ctx, QN_E_INVALID,
                       "a picture in colour for an input of one channel: 'grey' in `preprocess` "
                       "makes it grey");
    QN_TRY(bind_side(&shape->height, ctx, p->pad_height ? p->pad_height : image->height,
                     "the picture's height is"));
    return bind_side(&shape->width, ctx, p->pad_width ? p->pad_width : image->width,
                     "the picture's width is");
}

void qn_pixel_table_make(qn_pixel_table *out, const qn_preprocess *p)
{
    for (int c = 0; c < 3; c++) {
        for (int v = 0; v < 256; v++) {
            const float number = p->unit ? (float)v / 255.f : (float)v;
            out->number[c][v] = (number - p->mean[c]) / p->std[c];
        }
    }
}

/* Channel c of the picture becomes every `step`-th number from `to` on; `width` numbers a row. */
static void store_plane(float *to, const float *numbers, const qn_image *image, int32_t c,
                        const qn_picture_shape *shape)
{
    const size_t step = shape->nhwc ? (size_t)shape->channels : 1, n = (size_t)image->channels;
    const size_t rows = (size_t)QN_MIN(shape->height, image->height);
    const size_t columns = (size_t)QN_MIN(shape->width, image->width);
    for (size_t y = 0; y < rows; y++) {
        const uint8_t *from = image->pixels + y * (size_t)image->width * n + (size_t)c;
        float *row = to + y * (size_t)shape->width * step;
        for (size_t x = 0; x < columns; x++)
            row[x * step] = numbers[from[x * n]];
    }
}

static void store_floats(float *to, const qn_preprocess *p, const qn_pixel_table *table,
                         const qn_picture_shape *shape, const qn_image *image)
{
    const size_t plane = (size_t)(shape->height * shape->width);
    if (p->pad_height)
        memset(to, 0, plane * (size_t)shape->channels * sizeof *to);
    for (int32_t c = 0; c < (int32_t)shape->channels; c++) {
        const int32_t turned = p->colour == QN_COLOUR_BGR ? 2 - c : c;
        store_plane(to + (shape->nhwc ? (size_t)c : (size_t)c * plane), table->number[c], image,
                    image->channels == 1 ? 0 : turned, shape);
    }
}

/* Inputs of integers take the pixels as they are: a network that has such inputs normalizes them
 * itself. */
static qn_status check_whole(qn_context *ctx, const qn_pixel_table *table, qn_dtype dtype)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    const bool is_signed = info->kind == QN_KIND_INT;
    if ((!is_signed && info->kind != QN_KIND_UINT) || info->bits > 32)
        return QN_OK;
    const double most = ldexp(1, info->bits - is_signed) - 1, least = is_signed ? -most - 1 : 0;
    for (int i = 0; i < 3 * 256; i++) {
        const double v = (double)table->number[i / 256][i % 256];
        if (v < least || v > most || v != nearbyint(v))
            return qn_fail(ctx, QN_E_INVALID,
                           "the input takes %s, and preprocessing makes %g of a pixel: leave mean, "
                           "std and unit out, which such a model has inside",
                           info->name, v);
    }
    return QN_OK;
}

qn_status qn_preprocess_store(void *to, qn_context *ctx, const qn_preprocess *p,
                              const qn_pixel_table *table, const qn_picture_shape *shape,
                              const qn_image *image)
{
    enum { PIECE = 1024 };
    if (shape->dtype == QN_FLOAT32) {
        store_floats(to, p, table, shape, image);
        return QN_OK;
    }
    QN_TRY(check_whole(ctx, table, shape->dtype));
    const int64_t count = shape->channels * shape->height * shape->width;
    float *floats = qn_alloc(ctx, (size_t)count * sizeof *floats);
    double numbers[PIECE];
    QN_TRY_ALLOC(ctx, floats);
    store_floats(floats, p, table, shape, image);
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, PIECE);
        for (int64_t i = 0; i < n; i++)
            numbers[i] = (double)floats[at + i];
        qn_store_f64(to, shape->dtype, at, numbers, n);
    }
    qn_free(ctx, floats);
    return QN_OK;
}
