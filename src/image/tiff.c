/* TIFF through libtiff: the first picture of a file, whose samples are made pixels here, since
 * libtiff's own conversion is what OpenCV shows and not what Pillow does. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "image/image.h"

/* Plain areas cost little: LZMA and WebP inside a TIFF pack the most. Of fax a row may be a bit. */
enum { MOST_PIXELS_A_BYTE = 1 << 17 };
/* The most that libtiff may ask for at once, in bytes. */
enum { MOST_MEMORY = 1 << 30 };
enum { MOST_SAMPLES = 8 };

typedef enum kind { GREY, PALETTE, RGB, CMYK, MIXED } kind;
typedef enum alpha { NO_ALPHA, ASSOCIATED, UNASSOCIATED } alpha;

typedef struct work {
    qn_context *ctx;
    qn_image *out;
    qn_decoder decoder;
    TIFF *tiff;
    /* The file, and where libtiff reads. */
    const uint8_t *file;
    size_t size, at;
    /* What the tags say. */
    kind kind;
    alpha alpha;
    bool inverted, tiled, planes;
    uint32_t width, height, block_width, block_height;
    uint16_t bits, samples;
    const uint16_t *map[3];
    bool map_of_bytes;
    /* A block (strip or tile) of each plane, behind one another. */
    uint8_t *blocks;
    size_t block_size, row_size;
    char message[160];
} work;

/* ---- What libtiff calls ---------------------------------------------------------------------- */

static tmsize_t read_bytes(thandle_t handle, void *to, tmsize_t count)
{
    work *w = handle;
    const size_t rest = w->size - QN_MIN(w->at, w->size);
    const size_t taken = QN_MIN(rest, (size_t)QN_MAX(count, 0));
    if (taken)
        memcpy(to, w->file + w->at, taken);
    w->at += taken;
    return (tmsize_t)taken;
}

static tmsize_t write_bytes(thandle_t handle, void *from, tmsize_t count)
{
    (void)handle;
    (void)from;
    (void)count;
    return 0;
}

static toff_t seek_bytes(thandle_t handle, toff_t offset, int whence)
{
    work *w = handle;
    const size_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? w->at : w->size;
    w->at = from + (size_t)offset;
    return w->at;
}

static toff_t size_of(thandle_t handle)
{
    return ((const work *)handle)->size;
}

static int close_bytes(thandle_t handle)
{
    (void)handle;
    return 0;
}

/* The first error is the cause of those that follow. */
static int QN_PRINTF(4, 0)
    on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments)
{
    work *w = user;
    (void)tiff;
    (void)module;
    if (!w->message[0])
        vsnprintf(w->message, sizeof w->message, format, arguments);
    return 1;
}

static int QN_PRINTF(4, 0)
    on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments)
{
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)arguments;
    return 1;
}

static qn_status fail_damaged(const work *w)
{
    return qn_fail(w->ctx, QN_E_FORMAT, "damaged TIFF: %s",
                   w->message[0] ? w->message : "it ends too early");
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static qn_status read_alpha(work *w, unsigned colours)
{
    uint16_t count = 0;
    const uint16_t *types = NULL;
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_EXTRASAMPLES, &count, &types);
    w->alpha = w->samples <= colours || !count      ? NO_ALPHA
               : types[0] == EXTRASAMPLE_ASSOCALPHA ? ASSOCIATED
               : types[0] == EXTRASAMPLE_UNASSALPHA ? UNASSOCIATED
                                                    : NO_ALPHA;
    if (w->samples < colours)
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged TIFF: %u samples in a pixel, not %u",
                       (unsigned)w->samples, colours);
    return QN_OK;
}

static qn_status read_palette(work *w)
{
    uint16_t *red, *green, *blue;
    const size_t count = (size_t)1 << w->bits;
    if (!TIFFGetField(w->tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged TIFF: it has no palette");
    w->map[0] = red;
    w->map[1] = green;
    w->map[2] = blue;
    w->map_of_bytes = true;
    for (size_t i = 0; i < count; i++)
        w->map_of_bytes = w->map_of_bytes && red[i] < 256 && green[i] < 256 && blue[i] < 256;
    return QN_OK;
}

/* Colours that are mixed of brightness and differences: libjpeg makes RGB of them, else libtiff
 * does. */
static void read_mixed(work *w, uint16_t compression)
{
    w->kind = MIXED;
    if (compression != COMPRESSION_JPEG || w->planes)
        return;
    TIFFSetField(w->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    w->kind = RGB;
}

static qn_status read_kind(work *w, uint16_t compression)
{
    uint16_t photometric = PHOTOMETRIC_MINISBLACK, numbers = SAMPLEFORMAT_UINT;
    TIFFGetField(w->tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_SAMPLEFORMAT, &numbers);
    switch (photometric) {
    case PHOTOMETRIC_MINISWHITE: w->inverted = true; break;
    case PHOTOMETRIC_MINISBLACK: break;
    case PHOTOMETRIC_RGB: w->kind = RGB; break;
    case PHOTOMETRIC_PALETTE: w->kind = PALETTE; break;
    case PHOTOMETRIC_SEPARATED: w->kind = CMYK; break;
    case PHOTOMETRIC_YCBCR: read_mixed(w, compression); break;
    default:
        return qn_fail(w->ctx, QN_E_UNSUPPORTED, "TIFF with colours of kind %u",
                       (unsigned)photometric);
    }
    const bool few = w->bits == 1 || w->bits == 2 || w->bits == 4;
    const bool known = w->kind == GREY      ? few || w->bits == 8 || w->bits == 16
                       : w->kind == PALETTE ? few || w->bits == 8
                       : w->kind == MIXED   ? w->bits == 8
                                            : w->bits == 8 || w->bits == 16;
    if (!known || (numbers != SAMPLEFORMAT_UINT && numbers != SAMPLEFORMAT_VOID) ||
        w->samples > MOST_SAMPLES)
        return qn_fail(w->ctx, QN_E_UNSUPPORTED,
                       "TIFF with %u samples a pixel of %u bits and number format %u",
                       (unsigned)w->samples, (unsigned)w->bits, (unsigned)numbers);
    if (w->kind == PALETTE)
        QN_TRY(read_palette(w));
    return read_alpha(w, w->kind == CMYK ? 4 : w->kind == RGB || w->kind == MIXED ? 3 : 1);
}

/* A picture, and its strips or tiles, that the file can hold. */
static qn_status check_sizes(work *w, uint16_t compression)
{
    const bool fax = compression == COMPRESSION_CCITTRLE || compression == COMPRESSION_CCITTRLEW ||
                     compression == COMPRESSION_CCITTFAX3 || compression == COMPRESSION_CCITTFAX4;
    if (w->width > INT32_MAX || w->height > INT32_MAX || w->block_width > INT32_MAX ||
        w->block_height > INT32_MAX || w->block_width == 0 || w->block_height == 0)
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged TIFF: impossible sizes");
    const int64_t row = 8 * (int64_t)QN_MAX(w->width, w->block_width);
    const int64_t most = fax && row > MOST_PIXELS_A_BYTE ? row : MOST_PIXELS_A_BYTE;
    QN_TRY(qn_image_check(w->ctx, w->width, w->height, w->size, most));
    return qn_image_check(w->ctx, w->block_width, w->block_height, w->size, most);
}

static qn_status read_tags(work *w)
{
    uint16_t planes = PLANARCONFIG_CONTIG, compression = COMPRESSION_NONE;
    uint32_t rows = 0;
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_BITSPERSAMPLE, &w->bits);
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_SAMPLESPERPIXEL, &w->samples);
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_PLANARCONFIG, &planes);
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_COMPRESSION, &compression);
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    if (!TIFFGetField(w->tiff, TIFFTAG_IMAGEWIDTH, &w->width) ||
        !TIFFGetField(w->tiff, TIFFTAG_IMAGELENGTH, &w->height))
        return qn_fail(w->ctx, QN_E_FORMAT, "damaged TIFF: no width and height");
    if (!TIFFIsCODECConfigured(compression))
        return qn_fail(w->ctx, QN_E_UNSUPPORTED, "TIFF compressed by method %u",
                       (unsigned)compression);
    w->planes = planes == PLANARCONFIG_SEPARATE && w->samples > 1;
    w->tiled = TIFFIsTiled(w->tiff);
    w->block_width = w->width;
    w->block_height = QN_MIN(rows, w->height);
    if (w->tiled) {
        TIFFGetField(w->tiff, TIFFTAG_TILEWIDTH, &w->block_width);
        TIFFGetField(w->tiff, TIFFTAG_TILELENGTH, &w->block_height);
    }
    QN_TRY(check_sizes(w, compression));
    return read_kind(w, compression);
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

/* Sample s of pixel x in a row of a block. */
static unsigned sample_at(const work *w, const uint8_t *row, uint32_t x, unsigned s)
{
    const size_t i = w->planes ? x : (size_t)x * w->samples + s;
    const uint8_t *from = w->planes ? row + s * w->block_size : row;
    uint16_t number;
    if (w->bits == 8)
        return from[i];
    if (w->bits == 16) {
        memcpy(&number, from + 2 * i, sizeof number);
        return number;
    }
    const size_t bit = i * w->bits;
    return (unsigned)from[bit / 8] >> (8 - w->bits - bit % 8) & ((1u << w->bits) - 1);
}

/* Pillow keeps the upper 8 of 16 bits, and libtiff rounds to the nearest. */
static unsigned to_byte(const work *w, unsigned sample)
{
    if (w->bits == 8)
        return sample;
    return w->decoder == QN_DECODE_OPENCV ? (sample + 128) / 257 : sample >> 8;
}

/* Pillow reads grey of 16 bits as a number and cuts it off at 255, whichever end is white. */
static void put_grey(const work *w, uint8_t *to, unsigned sample)
{
    if (w->bits == 16 && w->decoder == QN_DECODE_PILLOW) {
        *to = (uint8_t)QN_MIN(sample, 255u);
        return;
    }
    const unsigned grey = w->bits == 16 ? sample >> 8 : sample * 255 / ((1u << w->bits) - 1);
    *to = (uint8_t)(w->inverted ? 255 - grey : grey);
}

/* A palette has 16 bits; OpenCV takes one that needs only 8 as such. */
static void put_palette(const work *w, uint8_t *to, unsigned index)
{
    for (int c = 0; c < 3; c++) {
        const unsigned colour = w->map[c][index];
        const bool as_bytes = w->map_of_bytes && w->decoder == QN_DECODE_OPENCV;
        to[c] = (uint8_t)(as_bytes ? colour : colour >> 8);
    }
}

/* Pillow shows colours as if they were opaque, OpenCV on black. */
static void put_rgb(const work *w, uint8_t *to, const unsigned *samples)
{
    const unsigned opacity = w->alpha ? to_byte(w, samples[3]) : 255;
    for (int c = 0; c < 3; c++) {
        unsigned colour = to_byte(w, samples[c]);
        if (w->decoder == QN_DECODE_PILLOW && w->alpha == ASSOCIATED)
            colour = opacity ? QN_MIN(colour * 255 / opacity, 255u) : 0;
        else if (w->decoder == QN_DECODE_OPENCV && w->alpha == UNASSOCIATED)
            colour = (colour * opacity + 127) / 255;
        to[c] = (uint8_t)colour;
    }
}

static void put_cmyk(const work *w, uint8_t *to, const unsigned *samples)
{
    const unsigned key = 255 - to_byte(w, samples[3]);
    for (int c = 0; c < 3; c++) {
        const unsigned colour = to_byte(w, samples[c]), ink = colour * key;
        if (w->decoder == QN_DECODE_OPENCV)
            to[c] = (uint8_t)(key * (255 - colour) / 255);
        else /* ink / 255, rounded */
            to[c] = (uint8_t)(key - ((((ink + 128) >> 8) + ink + 128) >> 8));
    }
}

static void put_pixel(const work *w, uint8_t *to, const uint8_t *row, uint32_t x)
{
    unsigned samples[4] = {0};
    const unsigned count = w->kind == CMYK ? 4 : w->kind == RGB ? 3 + (w->alpha != NO_ALPHA) : 1;
    for (unsigned s = 0; s < count; s++)
        samples[s] = sample_at(w, row, x, s);
    switch (w->kind) {
    case GREY: put_grey(w, to, samples[0]); break;
    case PALETTE: put_palette(w, to, samples[0]); break;
    case CMYK: put_cmyk(w, to, samples); break;
    default: put_rgb(w, to, samples); break;
    }
}

/* The block with pixel (x, y) of each plane, as many rows as the picture still has. */
static qn_status read_block(work *w, uint32_t x, uint32_t y)
{
    const unsigned planes = w->planes ? w->samples : 1;
    const size_t rows = QN_MIN(w->block_height, w->height - y);
    const size_t wanted = w->tiled ? w->block_size : rows * w->row_size;
    for (unsigned p = 0; p < planes; p++) {
        uint8_t *to = w->blocks + p * w->block_size;
        const tmsize_t got =
            w->tiled ? TIFFReadEncodedTile(w->tiff, TIFFComputeTile(w->tiff, x, y, 0, (uint16_t)p),
                                           to, (tmsize_t)wanted)
                     : TIFFReadEncodedStrip(w->tiff, TIFFComputeStrip(w->tiff, y, (uint16_t)p), to,
                                            (tmsize_t)wanted);
        if (got < 0 || (size_t)got < wanted)
            return fail_damaged(w);
    }
    return QN_OK;
}

static qn_status read_blocks(work *w)
{
    const qn_image *image = w->out;
    for (uint32_t top = 0; top < w->height; top += w->block_height) {
        for (uint32_t left = 0; left < w->width; left += w->block_width) {
            QN_TRY(read_block(w, left, top));
            const uint32_t rows = QN_MIN(w->block_height, w->height - top);
            const uint32_t columns = QN_MIN(w->block_width, w->width - left);
            for (uint32_t y = 0; y < rows; y++) {
                const size_t at = (size_t)(top + y) * w->width + left;
                uint8_t *to = image->pixels + at * (size_t)image->channels;
                for (uint32_t x = 0; x < columns; x++, to += image->channels)
                    put_pixel(w, to, w->blocks + y * w->row_size, x);
            }
        }
    }
    return QN_OK;
}

static qn_status read_samples(work *w)
{
    const tmsize_t block = w->tiled ? TIFFTileSize(w->tiff) : TIFFStripSize(w->tiff);
    const tmsize_t row = w->tiled ? TIFFTileRowSize(w->tiff) : TIFFScanlineSize(w->tiff);
    const size_t bits = (size_t)w->block_width * w->bits * (w->planes ? 1 : w->samples);
    size_t total;
    if (block <= 0 || row <= 0 || (size_t)row < (bits + 7) / 8 ||
        (size_t)block < (size_t)row * w->block_height ||
        !qn_mul_size(&total, (size_t)block, w->planes ? w->samples : 1))
        return fail_damaged(w);
    w->block_size = (size_t)block;
    w->row_size = (size_t)row;
    w->blocks = qn_alloc_zero(w->ctx, total, 1);
    if (!w->blocks)
        return qn_fail_bytes(w->ctx, total, "the picture's strips or tiles");
    return read_blocks(w);
}

/* libtiff's own conversion, whose pixels are words of red, green, blue and opacity from the low
 * end. */
static qn_status read_converted(work *w)
{
    const size_t count = (size_t)w->width * w->height;
    uint32_t *words = qn_alloc(w->ctx, 4 * count);
    if (!words)
        return qn_fail_bytes(w->ctx, 4 * count, "the picture");
    const bool done =
        TIFFReadRGBAImageOriented(w->tiff, w->width, w->height, words, ORIENTATION_TOPLEFT, 1) == 1;
    for (size_t i = 0; done && i < count; i++) {
        w->out->pixels[3 * i] = (uint8_t)TIFFGetR(words[i]);
        w->out->pixels[3 * i + 1] = (uint8_t)TIFFGetG(words[i]);
        w->out->pixels[3 * i + 2] = (uint8_t)TIFFGetB(words[i]);
    }
    qn_free(w->ctx, words);
    return done ? QN_OK : fail_damaged(w);
}

/* Pillow and OpenCV turn a TIFF upright by themselves, whether or not anybody asks for it. */
static qn_status turn(const work *w, uint16_t orientation)
{
    enum { LYING = 5 };
    if (w->out->pixels)
        return qn_image_turn(w->out, w->ctx, orientation);
    if (orientation >= LYING && orientation <= 8)
        *w->out = (qn_image){w->out->height, w->out->width, w->out->channels, NULL};
    return QN_OK;
}

static qn_status decode(work *w)
{
    uint16_t orientation = ORIENTATION_TOPLEFT;
    QN_TRY(read_tags(w));
    TIFFGetFieldDefaulted(w->tiff, TIFFTAG_ORIENTATION, &orientation);
    QN_TRY(
        qn_image_begin(w->out, w->ctx, w->width, w->height, w->kind == GREY ? 1 : 3, w->decoder));
    if (w->kind == MIXED) {
        /* So that nobody but `turn` does it: libtiff mirrors, and cannot transpose. */
        TIFFSetField(w->tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    }
    if (w->out->pixels)
        QN_TRY(w->kind == MIXED ? read_converted(w) : read_samples(w));
    return turn(w, orientation);
}

static TIFF *open_file(work *w)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MOST_MEMORY);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, w);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, w);
    TIFF *tiff = TIFFClientOpenExt("picture", "rm", w, read_bytes, write_bytes, seek_bytes,
                                   close_bytes, size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

qn_status qn_tiff_decode(qn_image *out, int *orientation, qn_context *ctx, const uint8_t *file,
                         size_t size, qn_decoder decoder)
{
    work w = {.ctx = ctx, .out = out, .decoder = decoder, .file = file, .size = size};
    *out = (qn_image){.pixels = NULL};
    *orientation = 1;
    w.tiff = open_file(&w);
    const qn_status status = w.tiff ? decode(&w) : fail_damaged(&w);
    if (w.tiff)
        TIFFClose(w.tiff);
    qn_free(ctx, w.blocks);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}
