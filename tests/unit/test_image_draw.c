/* Frames, letters, and pictures written and read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/draw.h"
#include "image/encode.h"

enum { SIDE = 40 };

static qn_image blank(qn_context *ctx, int32_t channels)
{
    qn_image image;
    assert_int_equal(qn_image_create(&image, ctx, SIDE, SIDE, channels), QN_OK);
    memset(image.pixels, 10, (size_t)(SIDE * SIDE * channels));
    return image;
}

static int red_at(const qn_image *image, int x, int y)
{
    return image->pixels[(y * SIDE + x) * 3];
}

static int count_red(const qn_image *image)
{
    int count = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        count += image->pixels[3 * i] == 200;
    return count;
}

static void frames(void **state)
{
    const qn_rgb red = {200, 0, 0};
    qn_context *ctx;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    qn_image image = blank(ctx, 3);
    qn_draw_frame(&image, &(qn_area){5, 6, 15, 26}, 2, red);
    assert_int_equal(count_red(&image), 10 * 20 - 6 * 16);
    assert_int_equal(red_at(&image, 5, 6), 200);
    assert_int_equal(red_at(&image, 14, 25), 200);
    assert_int_equal(red_at(&image, 7, 8), 10);
    /* Beyond the edges, thicker than it is, turned inside out: no pixel outside is touched. */
    static const qn_area areas[] = {
        {-100, -100, 300, 300},
        {38, 38, 60, 60},
        {5, 5, 6, 6},
        {20, 20, 10, 10},
        {INT32_MIN / 2, 0, INT32_MAX / 2, 3},
    };
    for (size_t i = 0; i < QN_COUNT_OF(areas); i++)
        qn_draw_frame(&image, &areas[i], 4, red);
    qn_image_free(&image, ctx);
    qn_context_free(ctx);
}

static void letters(void **state)
{
    const qn_rgb red = {200, 0, 0};
    qn_context *ctx;
    char all[97] = "";
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    /* Every letter differs from every other and is seen; a blank is not. */
    static uint8_t seen[95][SIDE * SIDE * 3];
    for (int c = 32; c < 127; c++) {
        const char text[2] = {(char)c, 0};
        qn_image image = blank(ctx, 3);
        qn_draw_text(&image, 2, 2, text, 2, red);
        assert_true((c == 32) == (count_red(&image) == 0));
        memcpy(seen[c - 32], image.pixels, sizeof seen[0]);
        for (int other = 0; other < c - 32; other++)
            assert_memory_not_equal(seen[c - 32], seen[other], sizeof seen[0]);
        all[c - 32] = (char)c;
        qn_image_free(&image, ctx);
    }
    assert_int_equal(qn_draw_letters("a\xc3\xa4\xe7\x8c\xab"), 3);
    qn_image image = blank(ctx, 3);
    qn_draw_text(&image, -30, 36, all, 3, red);
    qn_draw_text(&image, 5, -5, "\xc3\xa4\xff\x01", 1, red);
    qn_image_free(&image, ctx);
    qn_context_free(ctx);
}

static void read_back(qn_image *out, qn_context *ctx, const char *path)
{
    qn_map map;
    assert_int_equal(qn_map_open(&map, ctx, path), QN_OK);
    assert_int_equal(qn_image_decode(out, ctx, map.data, map.size, QN_DECODE_PILLOW, false), QN_OK);
    qn_map_close(&map);
}

static void files(void **state)
{
    static const char *const endings[] = {".png", ".jpg", ".JPEG"};
    qn_context *ctx;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    for (size_t i = 0; i < 6; i++) {
        const int32_t channels = i < 3 ? 3 : 1;
        char path[80];
        qn_image image = blank(ctx, channels), again;
        memset(image.pixels, 180, (size_t)(SIDE * SIDE * channels / 2));
        snprintf(path, sizeof path, "/tmp/quench-draw-%ld%s", (long)getpid(), endings[i % 3]);
        assert_int_equal(qn_image_save(ctx, path, &image), QN_OK);
        read_back(&again, ctx, path);
        assert_int_equal(again.channels, channels);
        for (int32_t k = 0; k < SIDE * SIDE * channels; k++) {
            const int far = abs(again.pixels[k] - image.pixels[k]);
            assert_true(far <= (i % 3 ? 8 : 0));
        }
        qn_image_free(&image, ctx);
        qn_image_free(&again, ctx);
        remove(path);
    }
    qn_image image = blank(ctx, 3);
    assert_int_equal(qn_image_save(ctx, "/tmp/no/such/folder.png", &image), QN_E_IO);
    qn_image_free(&image, ctx);
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames), cmocka_unit_test(letters),
                                       cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
