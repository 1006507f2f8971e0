/* Pictures: whose file it is, pixels in memory, grey and colour, EXIF. */
#include "image/image.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- Files ----------------------------------------------------------------------------------- */

/* A build may leave out the libraries of these. */
#ifndef QN_IMAGE_WEBP
#define qn_webp_decode NULL
#endif
#ifndef QN_IMAGE_TIFF
#define qn_tiff_decode NULL
#endif

typedef struct format {
    const char *name;
    /* '?' stands for any byte */
    const char *magic;
    size_t length;
    const char *endings[3];
    /* NULL: files of the format are known, not read. */
    qn_status (*decode)(qn_image *, int *, qn_context *, const uint8_t *, size_t, qn_decoder);
} format;

static const format formats[] = {
    {"JPEG", "\xff\xd8\xff", 3, {".jpg", ".jpeg"}, qn_jpeg_decode},
    {"PNG", "\x89PNG\r\n\x1a\n", 8, {".png"}, qn_png_decode},
    {"BMP", "BM", 2, {".bmp"}, qn_bmp_decode},
    {"PGM", "P5", 2, {".pgm"}, qn_pnm_decode},
    {"PPM", "P6", 2, {".ppm", ".pnm"}, qn_pnm_decode},
    {"WebP", "RIFF????WEBP", 12, {".webp"}, qn_webp_decode},
    {"TIFF", "II*\0", 4, {".tif", ".tiff"}, qn_tiff_decode},
    {"TIFF", "MM\0*", 4, {NULL}, qn_tiff_decode},
    {"TIFF", "II+\0", 4, {NULL}, qn_tiff_decode},
    {"TIFF", "MM\0+", 4, {NULL}, qn_tiff_decode},
    {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n", 12, {NULL}, NULL},
    {"JPEG 2000", "\xff\x4f\xff\x51", 4, {NULL}, NULL},
};

const char *qn_image_ending(size_t i)
{
    for (size_t f = 0; f < QN_COUNT_OF(formats); f++) {
        for (const char *const *ending = formats[f].endings; *ending; ending++) {
            if (i-- == 0)
                return *ending;
        }
    }
    return NULL;
}

bool qn_image_is_file(const char *path)
{
    const size_t length = strlen(path);
    const char *ending;
    for (size_t i = 0; (ending = qn_image_ending(i)) != NULL; i++) {
        const size_t own = strlen(ending);
        if (length > own && strcasecmp(path + length - own, ending) == 0)
            return true;
    }
    return false;
}

static bool has_magic(const format *candidate, const uint8_t *file, size_t size)
{
    bool has = size >= candidate->length;
    for (size_t i = 0; has && i < candidate->length; i++)
        has = candidate->magic[i] == '?' || file[i] == (uint8_t)candidate->magic[i];
    return has;
}

static const format *format_of(const uint8_t *file, size_t size)
{
    for (size_t f = 0; f < QN_COUNT_OF(formats); f++) {
        if (has_magic(&formats[f], file, size))
            return &formats[f];
    }
    return NULL;
}

bool qn_image_is_picture(const uint8_t *file, size_t size)
{
    return format_of(file, size) != NULL;
}

/* "JPEG, PNG, BMP": the formats that are read. */
static const char *read_formats(char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t f = 0; f < QN_COUNT_OF(formats); f++) {
        if (!formats[f].decode || (f > 0 && strcmp(formats[f].name, formats[f - 1].name) == 0))
            continue;
        const int written = snprintf(out + at, size - at, "%s%s", at ? ", " : "", formats[f].name);
        at = QN_MIN(at + (size_t)written, size - 1);
    }
    return out;
}

/* From here on pictures lie on their side. */
enum { LYING = 5 };

static qn_status decode(qn_image *out, int *orientation, qn_context *ctx, const uint8_t *file,
                        size_t size, qn_decoder decoder)
{
    const format *found = format_of(file, size);
    *orientation = 1;
    *out = (qn_image){.pixels = NULL};
    char names[96];
    if (!found)
        return qn_fail(ctx, QN_E_FORMAT, "not a picture of a kind that is read: %s",
                       read_formats(names, sizeof names));
    if (!found->decode)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "%s files are not read%s; these are: %s", found->name,
                       found->endings[0] ? " by this build" : "",
                       read_formats(names, sizeof names));
    return found->decode(out, orientation, ctx, file, size, decoder);
}

qn_status qn_image_measure(qn_image *out, qn_context *ctx, const uint8_t *file, size_t size,
                           bool rotate)
{
    int orientation;
    QN_TRY(decode(out, &orientation, ctx, file, size, QN_DECODE_SIZE));
    if (rotate && orientation >= LYING)
        *out = (qn_image){out->height, out->width, out->channels, NULL};
    return QN_OK;
}

qn_status qn_image_decode(qn_image *out, qn_context *ctx, const uint8_t *file, size_t size,
                          qn_decoder decoder, bool rotate)
{
    int orientation;
    QN_TRY(decode(out, &orientation, ctx, file, size, decoder));
    const qn_status status = rotate ? qn_image_turn(out, ctx, orientation) : QN_OK;
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

qn_status qn_image_begin(qn_image *out, qn_context *ctx, int64_t width, int64_t height,
                         int32_t channels, qn_decoder decoder)
{
    *out = (qn_image){.channels = channels};
    if (width < 1 || height < 1)
        return qn_fail(ctx, QN_E_FORMAT, "a picture of %lld x %lld pixels", (long long)width,
                       (long long)height);
    if (width > QN_IMAGE_MOST_PIXELS / height)
        return qn_fail(ctx, QN_E_FORMAT, "%lld x %lld pixels are more than the limit of %lld",
                       (long long)width, (long long)height, (long long)QN_IMAGE_MOST_PIXELS);
    out->width = (int32_t)width;
    out->height = (int32_t)height;
    if (decoder == QN_DECODE_SIZE)
        return QN_OK;
    out->pixels = qn_alloc_aligned(&ctx->allocator, (size_t)(width * height) * (size_t)channels);
    QN_TRY_ALLOC(ctx, out->pixels);
    return QN_OK;
}

qn_status qn_image_create(qn_image *out, qn_context *ctx, int64_t width, int64_t height,
                          int32_t channels)
{
    return qn_image_begin(out, ctx, width, height, channels, QN_DECODE_PILLOW);
}

qn_status qn_image_check(qn_context *ctx, int64_t width, int64_t height, size_t size, int64_t most)
{
    /* Sizes in files have at most 31 bits. */
    if (width * height / most <= (int64_t)size)
        return QN_OK;
    return qn_fail(ctx, QN_E_FORMAT, "%lld x %lld pixels cannot lie in %zu bytes", (long long)width,
                   (long long)height, size);
}

void qn_image_free(qn_image *image, qn_context *ctx)
{
    qn_free_aligned(&ctx->allocator, image->pixels);
    image->pixels = NULL;
}

static void replace(qn_image *image, qn_context *ctx, const qn_image *with)
{
    qn_image_free(image, ctx);
    *image = *with;
}

/* 65536 and 32768 times .299, .587, .114, as Pillow and OpenCV round them. */
static const struct {
    uint32_t red, green, blue;
    unsigned shift;
} grey_weights[] = {
    [QN_DECODE_PILLOW] = {19595, 38470, 7471, 16},
    [QN_DECODE_OPENCV] = {9798, 19235, 3735, 15},
};

qn_status qn_image_to_grey(qn_image *image, qn_context *ctx, qn_decoder decoder)
{
    qn_image grey;
    if (image->channels == 1)
        return QN_OK;
    QN_TRY(qn_image_create(&grey, ctx, image->width, image->height, 1));
    const size_t count = (size_t)image->width * (size_t)image->height;
    const unsigned shift = grey_weights[decoder].shift;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *rgb = image->pixels + 3 * i;
        const uint32_t sum = grey_weights[decoder].red * rgb[0] +
                             grey_weights[decoder].green * rgb[1] +
                             grey_weights[decoder].blue * rgb[2];
        grey.pixels[i] = (uint8_t)((sum + (UINT32_C(1) << (shift - 1))) >> shift);
    }
    replace(image, ctx, &grey);
    return QN_OK;
}

qn_status qn_image_to_colour(qn_image *image, qn_context *ctx)
{
    qn_image colour;
    if (image->channels == 3)
        return QN_OK;
    QN_TRY(qn_image_create(&colour, ctx, image->width, image->height, 3));
    const size_t count = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < count; i++)
        memset(colour.pixels + 3 * i, image->pixels[i], 3);
    replace(image, ctx, &colour);
    return QN_OK;
}

/* ---- EXIF ------------------------------------------------------------------------------------ */

/* A row of this table: is the new picture the old one transposed, and mirrored before that. */
static const struct {
    bool transpose, flip_x, flip_y;
} turns[] = {
    [1] = {false, false, false}, [2] = {false, true, false}, [3] = {false, true, true},
    [4] = {false, false, true},  [5] = {true, false, false}, [6] = {true, false, true},
    [7] = {true, true, true},    [8] = {true, true, false},
};

qn_status qn_image_turn(qn_image *image, qn_context *ctx, int orientation)
{
    qn_image turned;
    if (orientation <= 1 || orientation > 8)
        return QN_OK;
    const bool transpose = turns[orientation].transpose;
    const int32_t w = image->width, h = image->height;
    const size_t n = (size_t)image->channels;
    QN_TRY(qn_image_create(&turned, ctx, transpose ? h : w, transpose ? w : h, image->channels));
    for (int32_t y = 0; y < turned.height; y++) {
        for (int32_t x = 0; x < turned.width; x++) {
            int32_t from_x = transpose ? y : x, from_y = transpose ? x : y;
            from_x = turns[orientation].flip_x ? w - 1 - from_x : from_x;
            from_y = turns[orientation].flip_y ? h - 1 - from_y : from_y;
            memcpy(turned.pixels + ((size_t)y * (size_t)turned.width + (size_t)x) * n,
                   image->pixels + ((size_t)from_y * (size_t)w + (size_t)from_x) * n, n);
        }
    }
    replace(image, ctx, &turned);
    return QN_OK;
}

static uint32_t tiff_number(const uint8_t *at, int bytes, bool big)
{
    uint32_t value = 0;
    for (int b = 0; b < bytes; b++)
        value |= (uint32_t)at[b] << 8 * (big ? bytes - 1 - b : b);
    return value;
}

/* Header: "II*\0" or "MM\0*", offset of the directory; there: count, entries of 12 bytes (tag,
 * type, count, value). */
int qn_exif_orientation(const uint8_t *data, size_t size)
{
    enum { TAG = 0x112, SHORT = 3, ENTRY = 12 };
    const bool big = size >= 8 && memcmp(data, "MM\0*", 4) == 0;
    if (size < 8 || (!big && memcmp(data, "II*\0", 4) != 0))
        return 1;
    const size_t directory = tiff_number(data + 4, 4, big);
    if (directory > size - 2)
        return 1;
    const size_t count = tiff_number(data + directory, 2, big);
    for (size_t i = 0; i < count; i++) {
        const size_t at = directory + 2 + i * ENTRY;
        if (at + ENTRY > size)
            return 1;
        if (tiff_number(data + at, 2, big) != TAG || tiff_number(data + at + 2, 2, big) != SHORT)
            continue;
        const uint32_t value = tiff_number(data + at + 8, 2, big);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
