/* Memory runs out at every single allocation between a file and its result, and between a model and
 * the quantized one: each time there is an error with a message, no crash, and nothing is left
 * behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault_test.h"

static float numbers[28 * 28];

typedef struct subject subject;
typedef qn_status job_fn(qn_report **out, qn_context *ctx, qn_model *model, const subject *s);

/* A model, an input for it, of which it makes FAULT_NUMBERS numbers, how to plan it, how to
 * quantize it; or a job to do with it. */
struct subject {
    const char *path, *backend;
    qn_tensor input;
    qn_quantize_options options;
    job_fn *job;
    /* The folder that it writes to */
    const char *folder;
    /* As of fault_each */
    long stride;
};

static void run_session(fault_result *r, qn_context *ctx, qn_plan *plan, const qn_tensor *input)
{
    qn_session *session = NULL;
    r->status = qn_session_create(&session, ctx, plan);
    if (r->status == QN_OK)
        r->status = qn_session_run(session, input, 1);
    if (r->status == QN_OK)
        memcpy(r->numbers, qn_session_output(session, 0)->data, sizeof r->numbers);
    qn_session_free(session);
}

/* Load, plan, run, with the allocator that fails. */
static fault_result load_and_run(fault *f, const void *user)
{
    const subject *s = user;
    qn_plan_options plan_options = QN_PLAN_OPTIONS_INIT;
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_plan *plan = NULL;
    fault_result r = {.status = fault_context(&ctx, f)};
    plan_options.backend = s->backend;
    if (r.status == QN_OK)
        r.status = qn_model_load(&model, ctx, s->path);
    if (r.status == QN_OK)
        r.status = qn_plan_create(&plan, ctx, model, &plan_options);
    if (r.status == QN_OK)
        run_session(&r, ctx, plan, &s->input);
    snprintf(r.message, sizeof r.message, "%s", qn_context_error(ctx));
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
    return r;
}

static qn_quantize_options one_sample(void)
{
    qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
    options.calibrate.data.samples = 1;
    options.compared = 1;
    return options;
}

/* Only quantizing meets the fault: loading has its own tests. */
static fault_result load_and_quantize(fault *f, const void *user)
{
    const subject *s = user;
    const long until = f->until;
    qn_context *ctx = NULL;
    qn_model *model = NULL, *quantized = NULL;
    qn_report *report = NULL;
    f->until = -1;
    fault_result r = {.status = fault_context(&ctx, f)};
    if (r.status == QN_OK)
        r.status = qn_model_load(&model, ctx, s->path);
    f->until = until;
    if (r.status == QN_OK)
        r.status = qn_model_quantize(&quantized, &report, ctx, model, &s->options);
    if (r.status != QN_OK)
        assert_true(!quantized && !report);
    snprintf(r.message, sizeof r.message, "%s", qn_context_error(ctx));
    qn_report_free(report);
    qn_model_free(quantized);
    qn_model_free(model);
    qn_context_free(ctx);
    return r;
}

/* The report of the subject's job. */
static fault_result load_and_report(fault *f, const void *user)
{
    const subject *s = user;
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_report *report = NULL;
    fault_result r = {.status = fault_context(&ctx, f)};
    if (r.status == QN_OK)
        r.status = qn_model_load(&model, ctx, s->path);
    if (r.status == QN_OK)
        r.status = s->job(&report, ctx, model, s);
    if (r.status != QN_OK)
        assert_null(report);
    snprintf(r.message, sizeof r.message, "%s", qn_context_error(ctx));
    qn_report_free(report);
    qn_model_free(model);
    qn_context_free(ctx);
    return r;
}

static void every_allocation(fault_attempt *attempt, const subject *s)
{
    fault_each(attempt, s, s->stride);
}

static void reference_backend(void **state)
{
    (void)state;
    every_allocation(load_and_run, &(subject){.path = "examples/fashion.onnx",
                                              .backend = "ref",
                                              .input = {QN_FLOAT32, 4, {1, 1, 28, 28}, numbers}});
}

static void all_backends(void **state)
{
    (void)state;
    every_allocation(load_and_run, &(subject){.path = "examples/fashion.onnx",
                                              .backend = NULL,
                                              .input = {QN_FLOAT32, 4, {1, 1, 28, 28}, numbers}});
}

/* A plan that the first run finishes. */
static void deferred_plan(void **state)
{
    (void)state;
    every_allocation(load_and_run,
                     &(subject){.path = "tests/cli/window.onnx",
                                .backend = NULL,
                                .input = {QN_FLOAT32, 3, {1, 1, 4 * FAULT_NUMBERS}, numbers}});
}

/* The path of a file in /tmp, for the caller to remove and free. */
static char *own_path(const char *ending)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/quench-fault-%ld%s", (long)getpid(), ending);
    return strdup(path);
}

/* Quantizes fashion.onnx into the files that are named. */
static void quantize_to(const char *path, const char *scales)
{
    qn_quantize_options options = one_sample();
    options.save_scales = scales;
    qn_context *ctx = NULL;
    qn_model *model = NULL, *quantized = NULL;
    qn_status status = fault_context(&ctx, NULL);
    if (status == QN_OK)
        status = qn_model_load(&model, ctx, "examples/fashion.onnx");
    if (status == QN_OK)
        status = qn_model_quantize(&quantized, NULL, ctx, model, &options);
    if (status == QN_OK && path)
        status = qn_model_save(ctx, quantized, path, NULL);
    if (status != QN_OK)
        fail_msg("%s", qn_context_error(ctx));
    qn_model_free(quantized);
    qn_model_free(model);
    qn_context_free(ctx);
}

static void quantized_model(void **state)
{
    char *path = own_path(".onnx");
    (void)state;
    quantize_to(path, NULL);
    every_allocation(load_and_run, &(subject){.path = path,
                                              .backend = NULL,
                                              .input = {QN_FLOAT32, 4, {1, 1, 28, 28}, numbers}});
    every_allocation(load_and_run, &(subject){.path = path,
                                              .backend = "ref",
                                              .input = {QN_FLOAT32, 4, {1, 1, 28, 28}, numbers}});
    remove(path);
    free(path);
}

static void quantizing(void **state)
{
    (void)state;
    every_allocation(load_and_quantize,
                     &(subject){.path = "examples/fashion.onnx", .options = one_sample()});
}

/* ---- By an infer function -------------------------------------------------------------------- */

/* What failed may be tried again, as scripts do that catch what is raised. */
static qn_status feed(void *user, qn_executor *executor, double *metric)
{
    static uint8_t pixels[2 * 28 * 28];
    const qn_tensor input = {QN_UINT8, 4, {2, 1, 28, 28}, pixels};
    (void)user;
    *metric = 1;
    pixels[5] = 200;
    const qn_status status = qn_executor_forward(executor, &input, 1);
    if (status != QN_OK && qn_executor_forward(executor, &input, 1) == QN_OK)
        *metric = 2;
    return status;
}

static qn_status try_strategies(qn_report **out, qn_context *ctx, qn_model *model, const subject *s)
{
    const char *const methods[] = {"min_max", "percentile"};
    qn_strategies_options options = QN_STRATEGIES_OPTIONS_INIT;
    char cache[128]; /* else the float model would run the first time only */
    snprintf(cache, sizeof cache, "%s/fashion_distribution.cache", s->folder);
    remove(cache);
    options.file.quantize = s->options;
    options.file.save_dir = s->folder;
    options.function = (qn_function){.name = "feed", .run = feed, .batch_size = 2};
    options.methods = methods;
    options.n_methods = 2;
    return qn_strategies_run(out, ctx, model, &options);
}

static void remove_tree(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void trying_strategies(void **state)
{
    char *folder = own_path("");
    subject s = {
        .path = "examples/fashion.onnx", .job = try_strategies, .folder = folder, .stride = 23};
    const qn_quantize_options defaults = QN_QUANTIZE_OPTIONS_INIT;
    (void)state;
    s.options = defaults;
    s.options.calibrate.threads = 1;
    every_allocation(load_and_report, &s);
    remove_tree(folder);
    free(folder);
}

/* ---- By the built-in one --------------------------------------------------------------------- */

/* 28 x 28 pixels of three bytes. */
static void write_picture(const char *folder, const char *name)
{
    static uint8_t file[54 + 28 * 28 * 3] = {
        'B', 'M', [10] = 54, [14] = 40, [18] = 28, [22] = 28, [26] = 1, [28] = 24};
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(file, 1, sizeof file, out), sizeof file);
    fclose(out);
}

static qn_status judge(qn_report **out, qn_context *ctx, qn_model *model, const subject *s)
{
    qn_function_options options = QN_FUNCTION_OPTIONS_INIT;
    char configs[400];
    snprintf(configs, sizeof configs,
             "[{\"data_dir\": \"%s/p\", \"label_dir\": \"%s/labels\", \"color_space\": \"GRAY\", "
             "\"calculate_acc\": true, \"mean\": [1], \"std\": [2], \"names\": [\"a\", \"b\"]}]",
             s->folder, s->folder);
    options.function = (qn_function){.name = "infer_default", .configs = configs};
    options.iteration = 2;
    options.threads = 1;
    return qn_function_run(out, ctx, model, &options);
}

static void judging_pictures(void **state)
{
    char *folder = own_path("");
    char pictures[128];
    (void)state;
    snprintf(pictures, sizeof pictures, "%s/p", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(mkdir(pictures, 0777), 0);
    write_picture(pictures, "a.bmp");
    write_picture(pictures, "b.bmp");
    every_allocation(load_and_report,
                     &(subject){.path = "examples/fashion.onnx", .job = judge, .folder = folder});
    remove_tree(folder);
    free(folder);
}

static void quantizing_from_scales(void **state)
{
    char *scales = own_path(".json");
    subject s = {.path = "examples/fashion.onnx", .options = one_sample()};
    (void)state;
    quantize_to(NULL, scales);
    s.options.scales = scales;
    every_allocation(load_and_quantize, &s);
    remove(scales);
    free(scales);
}

static void quantizing_to_scales(void **state)
{
    char *scales = own_path(".json");
    subject s = {.path = "examples/fashion.onnx", .options = one_sample(), .stride = 3};
    (void)state;
    s.options.save_scales = scales;
    every_allocation(load_and_quantize, &s);
    remove(scales);
    free(scales);
}

static void quantizing_dynamically(void **state)
{
    subject s = {.path = "examples/fashion.onnx", .options = one_sample()};
    (void)state;
    s.options.dynamic = 1;
    every_allocation(load_and_quantize, &s);
}

/* ---- Mixed widths ---------------------------------------------------------------------------- */

/* With 16 bits at the ends, into a folder. */
static qn_status make_template(qn_report **out, qn_context *ctx, qn_model *model, const subject *s)
{
    qn_mix_options options = QN_MIX_OPTIONS_INIT;
    options.quantize = s->options;
    options.save_dir = s->folder;
    options.strategy = "IOhigh";
    return qn_mix_template(out, ctx, model, &options);
}

static void quantizing_a_mix(void **state)
{
    char *folder = own_path("mix"), file[128];
    const char *type = "uint8";
    subject s = {.path = "examples/fashion.onnx",
                 .job = make_template,
                 .folder = folder,
                 .options = one_sample(),
                 .stride = 7};
    (void)state;
    every_allocation(load_and_report, &s);
    snprintf(file, sizeof file, "%s/fashion_mix.json", folder);
    s.options.mix = file;
    s.options.input_types = &type;
    s.options.n_input_types = 1;
    s.stride = 17;
    every_allocation(load_and_quantize, &s);
    remove_tree(folder);
    free(folder);
}

/* A budget that some layers at 16 bits keep. */
static void quantizing_with_remedies(void **state)
{
    subject s = {.path = "examples/fashion.onnx", .options = one_sample(), .stride = 61};
    (void)state;
    s.options.fix_worst = 1;
    every_allocation(load_and_quantize, &s);
}

static void quantizing_within_a_budget(void **state)
{
    const qn_accuracy_budget budget = {QN_OPTIONS_VERSION, .max_drop = 1};
    static const float picture[28 * 28] = {[100] = 1};
    subject s = {.path = "examples/fashion.onnx", .options = one_sample(), .stride = 97};
    (void)state;
    char path[] = "/tmp/quench-budget-XXXXXX";
    const char *data = path;
    const int file = mkstemp(path);
    assert_int_equal(write(file, picture, sizeof picture), sizeof picture);
    close(file);
    s.options.calibrate.data.data = &data;
    s.options.calibrate.data.n_data = 1;
    s.options.accuracy_budget = &budget;
    every_allocation(load_and_quantize, &s);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trying_strategies),
                                       cmocka_unit_test(reference_backend),
                                       cmocka_unit_test(all_backends),
                                       cmocka_unit_test(deferred_plan),
                                       cmocka_unit_test(quantized_model),
                                       cmocka_unit_test(quantizing),
                                       cmocka_unit_test(quantizing_from_scales),
                                       cmocka_unit_test(quantizing_to_scales),
                                       cmocka_unit_test(quantizing_dynamically),
                                       cmocka_unit_test(quantizing_within_a_budget),
                                       cmocka_unit_test(quantizing_a_mix),
                                       cmocka_unit_test(judging_pictures),
                                       cmocka_unit_test(quantizing_with_remedies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
