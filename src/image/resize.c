/* Bilinear resizing of 8-bit pictures as Pillow and as OpenCV compute it: both in integers, each
 * with its own weights and rounding. */
#include <math.h>
#include <string.h>

#include "image/image.h"

static const struct {
    const char *name;
    qn_resize_fn *resize;
} resizes[] = {
    {"pillow-bilinear", qn_resize_pillow_bilinear},
    {"opencv-linear", qn_resize_opencv_linear},
};

qn_resize_fn *qn_resize_find(const char *name, size_t length)
{
    for (size_t i = 0; i < QN_COUNT_OF(resizes); i++) {
        if (strlen(resizes[i].name) == length && memcmp(resizes[i].name, name, length) == 0)
            return resizes[i].resize;
    }
    return NULL;
}

static qn_status copy(qn_image *out, qn_context *ctx, const qn_image *image)
{
    QN_TRY(qn_image_create(out, ctx, image->width, image->height, image->channels));
    memcpy(out->pixels, image->pixels,
           (size_t)image->width * (size_t)image->height * (size_t)image->channels);
    return QN_OK;
}

/* ---- Pillow: a triangle over all pixels that shrink into one, along rows and along columns --- */

enum { PILLOW_BITS = 32 - 8 - 2 };

/* What each new pixel of a line is made of. */
typedef struct taps {
    /* Weights of a pixel, some of them unused */
    int32_t width;
    /* [new] old pixel that the first weight belongs to */
    int32_t *first;
    /* [new] weights in use */
    int32_t *count;
    /* [new][width], scaled by 2^PILLOW_BITS */
    int32_t *weights;
    /* [width] */
    double *unrounded;
} taps;

static void taps_free(taps *t, qn_context *ctx)
{
    qn_free(ctx, t->first);
    qn_free(ctx, t->count);
    qn_free(ctx, t->weights);
    qn_free(ctx, t->unrounded);
}

/* Weights of the new pixel i: 1 - |x - centre| / support, normalized, rounded half away from
 * zero. */
static void taps_fill(taps *t, int32_t i, int32_t old_size, double scale)
{
    const double stretch = scale < 1 ? 1 : scale;
    const double centre = (i + 0.5) * scale, inverse = 1.0 / stretch;
    const int32_t first = (int32_t)QN_MAX(centre - stretch + 0.5, 0);
    const int32_t last = (int32_t)QN_MIN(centre + stretch + 0.5, (double)old_size);
    double sum = 0;
    for (int32_t x = first; x < last; x++) {
        const double distance = fabs((x - centre + 0.5) * inverse);
        t->unrounded[x - first] = distance < 1 ? 1 - distance : 0;
        sum += t->unrounded[x - first];
    }
    for (int32_t x = 0; x < last - first; x++) {
        const double weight = sum != 0 ? t->unrounded[x] / sum : t->unrounded[x];
        t->weights[(size_t)i * (size_t)t->width + (size_t)x] =
            (int32_t)(0.5 + weight * (1 << PILLOW_BITS));
    }
    t->first[i] = first;
    t->count[i] = last - first;
}

static qn_status taps_make(taps *t, qn_context *ctx, int32_t old_size, int32_t new_size)
{
    const double scale = (double)old_size / new_size;
    const size_t n = (size_t)new_size;
    *t = (taps){.width = (int32_t)ceil(QN_MAX(scale, 1.0)) * 2 + 1};
    t->first = qn_alloc_zero(ctx, n, sizeof *t->first);
    t->count = qn_alloc_zero(ctx, n, sizeof *t->count);
    t->weights = qn_alloc_zero(ctx, n * (size_t)t->width, sizeof *t->weights);
    t->unrounded = qn_alloc_zero(ctx, (size_t)t->width, sizeof *t->unrounded);
    if (!t->first || !t->count || !t->weights || !t->unrounded) {
        taps_free(t, ctx);
        return qn_fail_nomem(ctx);
    }
    for (int32_t i = 0; i < new_size; i++)
        taps_fill(t, i, old_size, scale);
    return QN_OK;
}

/* Weights are not negative and sum up to about 1, so only the upper end can be passed. */
static uint8_t pillow_round(uint32_t sum)
{
    return (uint8_t)QN_MIN(sum >> PILLOW_BITS, 255u);
}

static void pillow_row(uint8_t *to, const uint8_t *from, const taps *t, int32_t width, int32_t n)
{
    for (int32_t x = 0; x < width; x++) {
        const int32_t *weights = t->weights + (size_t)x * (size_t)t->width;
        const uint8_t *first = from + (size_t)t->first[x] * (size_t)n;
        for (int32_t c = 0; c < n; c++) {
            uint32_t sum = UINT32_C(1) << (PILLOW_BITS - 1);
            for (int32_t k = 0; k < t->count[x]; k++)
                sum += (uint32_t)weights[k] * first[k * n + c];
            *to++ = pillow_round(sum);
        }
    }
}

static qn_status pillow_rows(qn_image *out, qn_context *ctx, const qn_image *image, int32_t width)
{
    taps t;
    QN_TRY(taps_make(&t, ctx, image->width, width));
    const qn_status status = qn_image_create(out, ctx, width, image->height, image->channels);
    for (int32_t y = 0; status == QN_OK && y < image->height; y++)
        pillow_row(out->pixels + (size_t)y * (size_t)width * (size_t)image->channels,
                   image->pixels + (size_t)y * (size_t)image->width * (size_t)image->channels, &t,
                   width, image->channels);
    taps_free(&t, ctx);
    return status;
}

/* One new row; sums has room for it. */
static void pillow_column(uint8_t *to, uint32_t *sums, const qn_image *image, const taps *t,
                          int32_t y)
{
    const size_t row = (size_t)image->width * (size_t)image->channels;
    for (size_t x = 0; x < row; x++)
        sums[x] = UINT32_C(1) << (PILLOW_BITS - 1);
    for (int32_t k = 0; k < t->count[y]; k++) {
        const uint8_t *from = image->pixels + (size_t)(t->first[y] + k) * row;
        const uint32_t weight = (uint32_t)t->weights[(size_t)y * (size_t)t->width + (size_t)k];
        for (size_t x = 0; x < row; x++)
            sums[x] += weight * from[x];
    }
    for (size_t x = 0; x < row; x++)
        to[x] = pillow_round(sums[x]);
}

static qn_status pillow_columns(qn_image *out, qn_context *ctx, const qn_image *image,
                                int32_t height)
{
    taps t;
    const size_t row = (size_t)image->width * (size_t)image->channels;
    QN_TRY(taps_make(&t, ctx, image->height, height));
    uint32_t *sums = qn_alloc(ctx, row * sizeof *sums);
    qn_status status = sums ? QN_OK : qn_fail_nomem(ctx);
    if (status == QN_OK)
        status = qn_image_create(out, ctx, image->width, height, image->channels);
    for (int32_t y = 0; status == QN_OK && y < height; y++)
        pillow_column(out->pixels + (size_t)y * row, sums, image, &t, y);
    qn_free(ctx, sums);
    taps_free(&t, ctx);
    return status;
}

/* Sizes from outside, before anything is computed of them. */
static qn_status check_size(qn_context *ctx, int64_t width, int64_t height)
{
    if (width >= 1 && height >= 1 && width <= QN_IMAGE_MOST_PIXELS / height)
        return QN_OK;
    return qn_fail(ctx, QN_E_INVALID, "cannot resize to %lld x %lld pixels", (long long)height,
                   (long long)width);
}

static qn_status pillow_pass(qn_image *out, qn_context *ctx, const qn_image *image, int64_t size,
                             bool rows)
{
    if (size == (rows ? image->width : image->height))
        return copy(out, ctx, image);
    return rows ? pillow_rows(out, ctx, image, (int32_t)size)
                : pillow_columns(out, ctx, image, (int32_t)size);
}

qn_status qn_resize_pillow_bilinear(qn_image *out, qn_context *ctx, const qn_image *image,
                                    int64_t width, int64_t height)
{
    qn_image half = {.pixels = NULL};
    *out = (qn_image){.pixels = NULL};
    QN_TRY(check_size(ctx, width, height));
    /* Pillow 13 begins with the columns where that leaves much less to do; before, never. */
    const int64_t less_high = image->height - height, less_wide = image->width - width;
    const bool rows_first = less_high <= 0 || less_high <= 2 * less_wide;
    qn_status status = pillow_pass(&half, ctx, image, rows_first ? width : height, rows_first);
    if (status == QN_OK)
        status = pillow_pass(out, ctx, &half, rows_first ? height : width, !rows_first);
    qn_image_free(&half, ctx);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}

/* ---- OpenCV: always the two nearest pixels, weights of 11 bits ------------------------------- */

enum { OPENCV_BITS = 11 };

/* The new pixel lies between old pixels `first` and `first` + 1. */
typedef struct between {
    int32_t first, weights[2];
} between;

static qn_status between_make(between **out, qn_context *ctx, int32_t old_size, int32_t new_size)
{
    const double scale = 1.0 / ((double)new_size / old_size);
    *out = qn_alloc_zero(ctx, (size_t)new_size, sizeof **out);
    QN_TRY_ALLOC(ctx, *out);
    for (int32_t i = 0; i < new_size; i++) {
        const float at = (float)((i + 0.5) * scale - 0.5);
        const float first = floorf(at), part = at - first;
        (*out)[i].first = (int32_t)first;
        (*out)[i].weights[0] = (int32_t)lrintf((1.f - part) * (1 << OPENCV_BITS));
        (*out)[i].weights[1] = (int32_t)lrintf(part * (1 << OPENCV_BITS));
    }
    return QN_OK;
}

/* Along rows a pixel past the border counts as the one on it, alone. */
static void clamp_columns(between *at, int32_t old_size, int32_t new_size)
{
    for (int32_t i = 0; i < new_size; i++) {
        const int32_t first = at[i].first;
        if (first < 0 || first >= old_size - 1)
            at[i] = (between){first < 0 ? 0 : old_size - 1, {1 << OPENCV_BITS, 0}};
    }
}

static void opencv_row(int32_t *to, const uint8_t *from, const between *at, const qn_image *out,
                       int32_t old_width)
{
    const int32_t n = out->channels;
    for (int32_t x = 0; x < out->width; x++) {
        const uint8_t *a = from + (size_t)at[x].first * (size_t)n;
        const uint8_t *b = at[x].first + 1 < old_width ? a + n : a;
        for (int32_t c = 0; c < n; c++)
            *to++ = a[c] * at[x].weights[0] + b[c] * at[x].weights[1];
    }
}

/* Each product loses its lower bits before the sum. */
static void opencv_mix(uint8_t *to, const int32_t *upper, const int32_t *lower,
                       const int32_t weights[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t sum =
            ((weights[0] * (upper[i] >> 4)) >> 16) + ((weights[1] * (lower[i] >> 4)) >> 16);
        to[i] = (uint8_t)QN_MIN((sum + 2) >> 2, 255);
    }
}

typedef struct opencv_work {
    between *columns, *rows;
    /* Old rows, resized along x */
    int32_t *lines[2];
    /* Which ones; -1: none */
    int32_t line_rows[2];
} opencv_work;

static const int32_t *opencv_line(opencv_work *w, const qn_image *out, const qn_image *image,
                                  int32_t row)
{
    row = QN_MIN(QN_MAX(row, 0), image->height - 1);
    const int slot = row & 1;
    if (w->line_rows[slot] != row) {
        const size_t stride = (size_t)image->width * (size_t)image->channels;
        opencv_row(w->lines[slot], image->pixels + (size_t)row * stride, w->columns, out,
                   image->width);
        w->line_rows[slot] = row;
    }
    return w->lines[slot];
}

static qn_status opencv_run(qn_image *out, opencv_work *w, qn_context *ctx, const qn_image *image)
{
    const size_t row = (size_t)out->width * (size_t)out->channels;
    QN_TRY(between_make(&w->columns, ctx, image->width, out->width));
    QN_TRY(between_make(&w->rows, ctx, image->height, out->height));
    clamp_columns(w->columns, image->width, out->width);
    for (int s = 0; s < 2; s++) {
        w->lines[s] = qn_alloc(ctx, row * sizeof **w->lines);
        QN_TRY_ALLOC(ctx, w->lines[s]);
    }
    for (int32_t y = 0; y < out->height; y++) {
        const between *at = &w->rows[y];
        const int32_t *upper = opencv_line(w, out, image, at->first);
        const int32_t *lower = opencv_line(w, out, image, at->first + 1);
        opencv_mix(out->pixels + (size_t)y * row, upper, lower, at->weights, row);
    }
    return QN_OK;
}

/* To exactly half in both directions OpenCV takes the mean of four. */
static void opencv_halve(qn_image *out, const qn_image *image)
{
    const size_t n = (size_t)out->channels, row = (size_t)image->width * n;
    uint8_t *to = out->pixels;
    for (size_t y = 0; y < (size_t)out->height; y++) {
        for (size_t x = 0; x < (size_t)out->width; x++) {
            const uint8_t *from = image->pixels + 2 * y * row + 2 * x * n;
            for (size_t c = 0; c < n; c++)
                *to++ =
                    (uint8_t)((from[c] + from[n + c] + from[row + c] + from[row + n + c] + 2) >> 2);
        }
    }
}

qn_status qn_resize_opencv_linear(qn_image *out, qn_context *ctx, const qn_image *image,
                                  int64_t width, int64_t height)
{
    opencv_work w = {.line_rows = {-1, -1}};
    qn_status status = QN_OK;
    *out = (qn_image){.pixels = NULL};
    QN_TRY(check_size(ctx, width, height));
    if (width == image->width && height == image->height)
        return copy(out, ctx, image);
    QN_TRY(qn_image_create(out, ctx, width, height, image->channels));
    if (width * 2 == image->width && height * 2 == image->height)
        opencv_halve(out, image);
    else
        status = opencv_run(out, &w, ctx, image);
    qn_free(ctx, w.columns);
    qn_free(ctx, w.rows);
    qn_free(ctx, w.lines[0]);
    qn_free(ctx, w.lines[1]);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return status;
}
