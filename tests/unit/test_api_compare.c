/* Two versions of a network: the pictures decode, and memory that runs out at any allocation leaves a message and nothing
 * else. */
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
#include "fault.h"
#include "image/image.h"

static char folder[64], quantized_path[96];

static qn_status open_context(qn_context **ctx, const qn_allocator *allocator)
{
    qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
    options.allocator = allocator;
    options.threads = 1;
    options.log_level = QN_LOG_ERROR;
    return qn_context_create(ctx, &options);
}

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
    qn_status status = open_context(&ctx, NULL);
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

typedef struct result {
    qn_status status;
    char message[256];
} result;

/* ---- Both ways ------------------------------------------------------------------------------------------------- */

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

static result attempt(fault *f, bool dumps)
{
    const qn_allocator allocator = fault_allocator(f);
    qn_compare_options options = QN_COMPARE_OPTIONS_INIT;
    qn_context *ctx = NULL;
    qn_report *report = NULL;
    result r = {.status = open_context(&ctx, &allocator)};
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

static void every_allocation(bool dumps)
{
    fault never = {.until = -1};
    const result good = attempt(&never, dumps);
    if (good.status != QN_OK)
        fail_msg("%s", good.message);
    assert_int_equal(never.live, 0);
    long struck = 0;
    for (long n = 0;; n++) {
        fault f = {.until = n};
        const result r = attempt(&f, dumps);
        if (f.live != 0)
            fail_msg("allocation %ld fails: %ld blocks are left behind", n, f.live);
        if (!f.struck)
            break;
        struck++;
        if (r.status != QN_OK && (r.status != QN_E_NOMEM || r.message[0] == 0))
            fail_msg("allocation %ld fails: status %d, '%s'", n, (int)r.status, r.message);
    }
    print_message("%ld allocations failed one after the other\n", struck);
    assert_true(struck > 50);
}

static void memory_of_models(void **state)
{
    (void)state;
    every_allocation(false);
}

static void memory_of_dumps(void **state)
{
    (void)state;
    every_allocation(true);
}

/* ---- Pictures --------------------------------------------------------------------------------------------------- */

static void pictures_decode(void **state)
{
    char path[96];
    qn_context *ctx = NULL;
    qn_map map;
    qn_image image;
    fault never = {.until = -1};
    (void)state;
    assert_int_equal(attempt(&never, true).status, QN_OK);
    snprintf(path, sizeof path, "%s/errors.png", folder);
    assert_int_equal(open_context(&ctx, NULL), QN_OK);
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
        cmocka_unit_test(pictures_decode),
        cmocka_unit_test(memory_of_dumps),
        cmocka_unit_test(memory_of_models),
    };
    return cmocka_run_group_tests(tests, make_dump, remove_dump);
}
