/* The first byte chooses: a picture's decoder and whether it is turned, or, from 4 on, a text that
 * describes preprocessing, which then is done to a small picture. */
#include <stdlib.h>
#include <string.h>

#include "data/preprocess.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Pixels of a prepared picture. Larger ones are only slower. */
enum { MOST = 1 << 16 };

/* Every byte once, so that a sanitizer sees a wrong length. */
static void touch(const void *bytes, size_t size)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)bytes)[i]);
}

static qn_status decode(qn_context *ctx, uint8_t kind, const uint8_t *data, size_t size)
{
    qn_image image, head;
    QN_TRY(qn_image_decode(&image, ctx, data, size, kind & 1 ? QN_DECODE_OPENCV : QN_DECODE_PILLOW,
                           kind & 2));
    if (qn_image_measure(&head, ctx, data, size, kind & 2) != QN_OK || head.width != image.width ||
        head.height != image.height || head.channels != image.channels)
        abort();
    touch(image.pixels, (size_t)image.width * (size_t)image.height * (size_t)image.channels);
    qn_image_free(&image, ctx);
    return QN_OK;
}

static qn_status process(qn_context *ctx, const qn_preprocess *p, qn_image *image)
{
    qn_picture_shape shape = {QN_UINT8, -1, -1, -1, p->layout == QN_AXES_NHWC};
    qn_pixel_table table;
    QN_TRY(qn_preprocess_pixels(image, NULL, ctx, p));
    QN_TRY(qn_preprocess_bind(&shape, ctx, p, image));
    if (shape.height * shape.width > MOST)
        return QN_OK;
    const size_t bytes = (size_t)(shape.channels * shape.height * shape.width);
    uint8_t *numbers = malloc(bytes);
    if (!numbers)
        abort();
    qn_pixel_table_make(&table, p);
    const qn_status status = qn_preprocess_store(numbers, ctx, p, &table, &shape, image);
    if (status == QN_OK)
        touch(numbers, bytes);
    free(numbers);
    return status;
}

static qn_status preprocess(qn_context *ctx, const char *text)
{
    qn_preprocess p;
    qn_image image;
    QN_TRY(qn_preprocess_parse(&p, ctx, text));
    /* One of the two may be left to the picture's own ratio. */
    const int64_t side = QN_MAX(p.width, p.height);
    if (side * side > MOST)
        return QN_OK;
    QN_TRY(qn_image_create(&image, ctx, 7, 5, 3));
    memset(image.pixels, 77, 7 * 5 * 3);
    const qn_status status = process(ctx, &p, &image);
    qn_image_free(&image, ctx);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own, with a zero behind a text. */
    const bool text = data[0] >= 4;
    uint8_t *copy = calloc(size - (text ? 0 : 1) + (size == 1), 1);
    if (!copy)
        abort();
    memcpy(copy, data + 1, size - 1);
    const qn_status status =
        text ? preprocess(ctx, (const char *)copy) : decode(ctx, data[0], copy, size - 1);
    if (status != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_context_free(ctx);
    free(copy);
    return 0;
}
