/* Two versions of a network: the pictures decode, and memory that runs out at any allocation leaves
 * a message and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/map.h"
#include "fault_test.h"
#include "image/image.h"

static char folder[64], quantized_path[96];

/* A dump of fashion.onnx with random numbers. */
static int make_dump(void **state)
{
    qn_strategies_options options = QN_STRATEGIES_OPTIONS_INIT;
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_report *report = NULL;
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/quench-compare-%ld", (long)getpid());
    snprintf(quantized_path, sizeof quantized_path, "%s/fashion_quantize.onnx", folder);
    options.file.save_dir = folder;
    options.file.quantize.calibrate.data.samples = 1;
    options.dump = 1;
    qn_status status = fault_context(&ctx, NULL);
    if (status == QN_OK)
        status = qn_model_load(&model, ctx, "examples/fashion.onnx");
    if (status == QN_OK)
        status = qn_strategies_run(&report, ctx, model, &options);
    if (status != QN_OK)
        print_error("%s\n", qn_context_error(ctx));
    qn_report_free(report);
    qn_model_free(model);
    qn_context_free(ctx);
    return status == QN_OK ? 0 : -1;
}

static int remove_dump(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* ---- Both ways ------------------------------------------------------------------------------- */

static qn_status compare_models(qn_report **out, qn_context *ctx, const qn_compare_options *options)
{
    qn_model *real = NULL, *quantized = NULL;
    qn_status status = qn_model_load(&real, ctx, "examples/fashion.onnx");
    if (status == QN_OK)
        status = qn_model_load(&quantized, ctx, quantized_path);
    if (status == QN_OK)
        status = qn_compare_models(out, ctx, real, quantized, options);
    qn_model_free(quantized);
    qn_model_free(real);
    return status;
}

/* `user`: whether dumps are compared, and not models. */
static fault_result attempt(fault *f, const void *user)
{
    const bool dumps = *(const bool *)user;
    qn_compare_options options = QN_COMPARE_OPTIONS_INIT;
    qn_context *ctx = NULL;
    qn_report *report = NULL;
    fault_result r = {.status = fault_context(&ctx, f)};
    options.histograms = options.plot = 1;
    options.shown = 1;
    options.save_dir = folder;
    options.run.data.samples = 1;
    if (dumps)
        options.quant_dir = folder;
    if (r.status == QN_OK)
        r.status = dumps ? qn_compare_dumps(&report, ctx, &options)
                         : compare_models(&report, ctx, &options);
    if (r.status != QN_OK)
        assert_null(report);
    snprintf(r.message, sizeof r.message, "%s", qn_context_error(ctx));
    qn_report_free(report);
    qn_context_free(ctx);
    return r;
}

static void memory_of_models(void **state)
{
    (void)state;
    fault_each(attempt, &(bool){false}, 0);
}

static void memory_of_dumps(void **state)
{
    (void)state;
    fault_each(attempt, &(bool){true}, 0);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static void unknown_order_names_all(void **state)
{
    qn_compare_options options = QN_COMPARE_OPTIONS_INIT;
    qn_context *ctx = NULL;
    qn_report *report = NULL;
    (void)state;
    options.sort = "size";
    options.quant_dir = folder;
    assert_int_equal(fault_context(&ctx, NULL), QN_OK);
    assert_int_equal(qn_compare_dumps(&report, ctx, &options), QN_E_OPTION);
    for (size_t i = 0; qn_compare_order(i); i++)
        assert_non_null(strstr(qn_context_error(ctx), qn_compare_order(i)));
    qn_context_free(ctx);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static void pictures_decode(void **state)
{
    char path[96];
    qn_context *ctx = NULL;
    qn_map map;
    qn_image image;
    fault never = {.until = -1};
    (void)state;
    assert_int_equal(attempt(&never, &(bool){true}).status, QN_OK);
    snprintf(path, sizeof path, "%s/errors.png", folder);
    assert_int_equal(fault_context(&ctx, NULL), QN_OK);
    assert_int_equal(qn_map_open(&map, ctx, path), QN_OK);
    assert_int_equal(qn_image_decode(&image, ctx, map.data, map.size, QN_DECODE_PILLOW, false),
                     QN_OK);
    assert_true(image.width > 1000 && image.height > 200 && image.channels == 3);
    int64_t orange = 0, blue = 0;
    for (int64_t i = 0; i < (int64_t)image.width * image.height; i++) {
        const uint8_t *p = image.pixels + 3 * i;
        orange += p[0] == 230 && p[1] == 126 && p[2] == 20;
        blue += p[0] == 60 && p[1] == 120 && p[2] == 190;
    }
    assert_true(orange > 1000 && blue > 1000);
    qn_image_free(&image, ctx);
    qn_map_close(&map);
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_order_names_all),
        cmocka_unit_test(pictures_decode),
        cmocka_unit_test(memory_of_dumps),
        cmocka_unit_test(memory_of_models),
    };
    return cmocka_run_group_tests(tests, make_dump, remove_dump);
}
