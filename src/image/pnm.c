/* PNM with pixels in bytes: P5 (grey) and P6 (red, green, blue), at most 255 steps.
 *
 * Layout: "P5" or "P6", then width, height and the largest value as decimal numbers, each behind
 * white space and comments (# to the end of the line); one white space; rows from the top down. */
#include <string.h>

#include "image/image.h"

typedef struct header {
    const uint8_t *at, *end;
    /* Width, height, largest value */
    int64_t numbers[3];
} header;

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(header *h)
{
    while (h->at < h->end && (is_space(*h->at) || *h->at == '#')) {
        if (*h->at++ != '#')
            continue;
        while (h->at < h->end && *h->at != '\n' && *h->at != '\r')
            h->at++;
    }
}

static bool read_number(int64_t *out, header *h)
{
    skip_space(h);
    const uint8_t *first = h->at;
    *out = 0;
    while (h->at < h->end && *h->at >= '0' && *h->at <= '9' && h->at - first < 9)
        *out = *out * 10 + (*h->at++ - '0');
    return h->at > first && h->at < h->end;
}

static bool read_header(header *h)
{
    for (int i = 0; i < 3; i++) {
        if (!read_number(&h->numbers[i], h))
            return false;
    }
    return is_space(*h->at++);
}

/* Pillow and OpenCV agree where the largest value is 255; below, this is Pillow's rounding. */
static void spread(uint8_t *pixels, size_t count, int64_t most)
{
    for (size_t i = 0; i < count && most < 255; i++) {
        const int64_t value = (2 * pixels[i] * 255 + most) / (2 * most);
        pixels[i] = (uint8_t)(value < 255 ? value : 255);
    }
}

qn_status qn_pnm_decode(qn_image *out, int *orientation, qn_context *ctx, const uint8_t *file,
                        size_t size, qn_decoder decoder)
{
    header h = {.at = file + 2, .end = file + size};
    const int32_t channels = file[1] == '6' ? 3 : 1;
    *orientation = 1;
    if (!read_header(&h))
        return qn_fail(ctx, QN_E_FORMAT, "damaged PNM: no width, height and largest value");
    if (h.numbers[2] < 1 || h.numbers[2] > 255)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "PNM with values up to %lld: only bytes are read",
                       (long long)h.numbers[2]);
    const size_t rest = (size_t)(h.end - h.at);
    QN_TRY(qn_image_check(ctx, h.numbers[0], h.numbers[1], rest / (size_t)channels, 1));
    QN_TRY(qn_image_begin(out, ctx, h.numbers[0], h.numbers[1], channels, decoder));
    if (!out->pixels)
        return QN_OK;
    const size_t count = (size_t)out->width * (size_t)out->height * (size_t)channels;
    memcpy(out->pixels, h.at, count);
    spread(out->pixels, count, h.numbers[2]);
    return QN_OK;
}
