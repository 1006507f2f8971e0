/* The whole jobs of the public header, with memory that runs out at every single allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault.h"

static char folder[64], data_path[96], converted[96];

typedef qn_status job_fn(qn_report **out, qn_context *ctx, qn_model *model);

static qn_status inspect(qn_report **out, qn_context *ctx, qn_model *model)
{
    qn_inspect_options options = QN_INSPECT_OPTIONS_INIT;
    options.nodes = 1;
    options.optimized = 1;
    return qn_model_inspect(out, ctx, model, &options);
}

static qn_status infer(qn_report **out, qn_context *ctx, qn_model *model)
{
    const char *const data = data_path;
    qn_infer_options options = QN_INFER_OPTIONS_INIT;
    options.plan.backend = "ref";
    options.data.data = &data;
    options.data.n_data = 1;
    options.data.batch = 2;
    options.data.loaders = -1; /* the allocator that fails knows no threads */
    options.output_dir = folder;
    return qn_infer_files(out, ctx, model, &options);
}

static qn_status convert(qn_report **out, qn_context *ctx, qn_model *model)
{
    return qn_convert_file(out, ctx, model, converted, NULL);
}

static qn_status ops(qn_report **out, qn_context *ctx, qn_model *model)
{
    (void)model;
    return qn_ops_report(out, ctx);
}

static qn_status attempt(fault *f, job_fn *job)
{
    const long until = f->until;
    qn_context *ctx;
    qn_model *model;
    qn_report *report = NULL;
    char *text = NULL;
    f->until = -1; /* loading has its own tests */
    assert_int_equal(fault_context(&ctx, f), QN_OK);
    assert_int_equal(qn_model_load(&model, ctx, "examples/fashion.onnx"), QN_OK);
    f->until = until;
    qn_status status = job(&report, ctx, model);
    if (status == QN_OK)
        status = qn_report_json(&text, report);
    if (status != QN_OK && qn_context_error(ctx)[0] == 0)
        fail_msg("a failure without a message");
    f->until = -1;
    qn_text_free(ctx, text);
    qn_report_free(report);
    qn_model_free(model);
    qn_context_free(ctx);
    return status;
}

static void every_allocation(job_fn *job)
{
    for (long n = 0;; n++) {
        fault f = {.until = n};
        const qn_status status = attempt(&f, job);
        if (f.live != 0)
            fail_msg("allocation %ld fails: %ld blocks are left behind", n, f.live);
        if (!f.struck) {
            assert_int_equal(status, QN_OK);
            break;
        }
        if (status != QN_OK)
            assert_int_equal(status, QN_E_NOMEM);
    }
}

static void test_inspect(void **state)
{
    (void)state;
    every_allocation(inspect);
}

static void test_infer(void **state)
{
    (void)state;
    every_allocation(infer);
}

static void test_convert(void **state)
{
    (void)state;
    every_allocation(convert);
}

static void test_ops(void **state)
{
    (void)state;
    every_allocation(ops);
}

static int set_up(void **state)
{
    static float images[3 * 28 * 28];
    const qn_tensor t = {QN_FLOAT32, 4, {3, 1, 28, 28}, images};
    qn_context *ctx;
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/quench-jobs-%s",
             "X"
             "X"
             "X"
             "X"
             "X"
             "X");
    if (!mkdtemp(folder) || qn_context_create(&ctx, NULL) != QN_OK)
        return 1;
    snprintf(data_path, sizeof data_path, "%s/in.npy", folder);
    snprintf(converted, sizeof converted, "%s/out.onnx", folder);
    const qn_status status = qn_tensor_save(ctx, &t, data_path);
    qn_context_free(ctx);
    return status != QN_OK;
}

/* Nothing but what was asked for is left in the folder. */
static int tear_down(void **state)
{
    char output[96];
    (void)state;
    snprintf(output, sizeof output, "%s/logits.npy", folder);
    return unlink(data_path) != 0 || unlink(converted) != 0 || unlink(output) != 0 ||
           rmdir(folder) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inspect), cmocka_unit_test(test_infer),
                                       cmocka_unit_test(test_convert), cmocka_unit_test(test_ops)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
