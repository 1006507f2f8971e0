/* Where pictures lie in the inputs made of them: a mark in the picture is found where the place
 * says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/preprocess.h"

enum { WIDTH = 120, HEIGHT = 80, SIDE = 16 };
static const double mark[2] = {70, 30}; /* its middle */

static void paint(qn_image *image)
{
    for (int32_t y = 0; y < HEIGHT; y++) {
        for (int32_t x = 0; x < WIDTH; x++) {
            const bool inside =
                fabs(x + 0.5 - mark[0]) < SIDE / 2 && fabs(y + 0.5 - mark[1]) < SIDE / 2;
            image->pixels[y * WIDTH + x] = inside ? 255 : 0;
        }
    }
}

/* The middle of what is bright. */
static void find_mark(double out[2], const qn_image *image)
{
    double sum = 0, x_sum = 0, y_sum = 0;
    for (int32_t y = 0; y < image->height; y++) {
        for (int32_t x = 0; x < image->width; x++) {
            const double v = image->pixels[y * image->width + x];
            sum += v;
            x_sum += v * (x + 0.5);
            y_sum += v * (y + 0.5);
        }
    }
    out[0] = x_sum / sum;
    out[1] = y_sum / sum;
}

static void places(void **state)
{
    static const char *const texts[] = {
        "",
        "resize=60",
        "resize=50x200",
        "resize=40,crop=30",
        "crop=64x90",
        "letterbox=60:centre",
        "letterbox=64x64:top-left",
        "letterbox=300:centre",
        "letterbox=300:centre:shrink",
        "letterbox=300x200:top-left:shrink:opencv-linear",
        "letterbox=60:shrink,crop=50",
    };
    qn_context *ctx;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    for (size_t i = 0; i < QN_COUNT_OF(texts); i++) {
        qn_preprocess p;
        qn_picture_place place;
        qn_image image;
        double at[2];
        assert_int_equal(qn_preprocess_parse(&p, ctx, texts[i]), QN_OK);
        assert_int_equal(qn_image_create(&image, ctx, WIDTH, HEIGHT, 1), QN_OK);
        paint(&image);
        assert_int_equal(qn_preprocess_pixels(&image, &place, ctx, &p), QN_OK);
        find_mark(at, &image);
        assert_int_equal(place.width, WIDTH);
        assert_int_equal(place.height, HEIGHT);
        if (fabs(mark[0] * place.scale_x + place.left - at[0]) > 0.05 ||
            fabs(mark[1] * place.scale_y + place.top - at[1]) > 0.05)
            fail_msg("'%s': at %g, %g", texts[i], at[0], at[1]);
        if (strstr(texts[i], "300") && strstr(texts[i], "shrink"))
            assert_true(place.scale_x == 1 && place.scale_y == 1);
        qn_image_free(&image, ctx);
    }
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
