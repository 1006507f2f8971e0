/* Which framework a file looks like to be of, and what is said where it cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "import/import.h"

static qn_context *ctx;
static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/quench-detect-%ld", (long)getpid());
    return qn_context_create(&ctx, NULL) != QN_OK;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    qn_context_free(ctx);
    return 0;
}

/* The name of the first importer that knows these bytes, "" when none does. */
static const char *detected(const void *bytes, size_t size)
{
    const qn_model_source source = {.ctx = ctx, .path = path, .map = {.data = bytes, .size = size}};
    for (size_t i = 0; i < qn_importers_count; i++) {
        if (qn_importers[i]->detect(&source))
            return qn_importers[i]->name;
    }
    return "";
}

#define DETECTED(text) detected((text), sizeof(text) - 1)

static void heads(void **state)
{
    (void)state;
    assert_string_equal(DETECTED("\x1c\0\0\0TFL3\x14\0\0\0"), "tflite");
    assert_string_equal(DETECTED("\x89HDF\r\n\x1a\n\0\0\0\0"), "keras");
    assert_string_equal(DETECTED("\x80\x02\x8a\x0al\xfc\x9c"), "pytorch");
    assert_string_equal(DETECTED("name: \"x\"\nlayer {\n}\n"), "caffe");
    assert_string_equal(DETECTED("layers{ type: CONVOLUTION }"), "caffe");
    assert_string_equal(DETECTED("node { name: \"x\" op: \"Relu\" }"), "tensorflow");
    assert_string_equal(DETECTED("{\"base_code\":{\"magic\":\"pir\",\"version\":1}}"), "paddle");
    assert_string_equal(DETECTED("players {}"), "");
    assert_string_equal(DETECTED("hello"), "");
    assert_string_equal(DETECTED(""), "");
}

static void messages(void **state)
{
    (void)state;
    /* ModelProto: IR version 8, an empty graph. */
    assert_string_equal(DETECTED("\x08\x08\x3a\0"), "onnx");
    /* ... without a graph, with a field that no model has, and cut off. */
    assert_string_equal(DETECTED("\x08\x08"), "");
    assert_string_equal(DETECTED("\x08\x08\x3a\0\x5a\0"), "");
    assert_string_equal(DETECTED("\x08\x08\x3a\5"), "");
    /* GraphDef: node { name: "x" op: "Y" } versions {}. */
    assert_string_equal(DETECTED("\x0a\6\x0a\1x\x12\1Y\x22\0"), "tensorflow");
    /* SavedModel: version 1, a graph. */
    assert_string_equal(DETECTED("\x08\1\x12\0"), "tensorflow");
    /* ProgramDesc: block 0 without a parent, version. */
    assert_string_equal(DETECTED("\x0a\x0d\x08\0\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x22\0"),
                        "paddle");
    /* NetParameter: layer (100) { name: "x" }, and layers (2) { name (4): "x" }. */
    assert_string_equal(DETECTED("\x0a\3net\xa2\6\3\x0a\1x"), "caffe");
    assert_string_equal(DETECTED("\x0a\3net\x12\5\x22\1x\x28\4"), "caffe");
}

static void expect(const void *bytes, size_t size, const char *framework, qn_status status,
                   const char *message)
{
    qn_model *model;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    const qn_model_load_options options = {QN_OPTIONS_VERSION, .framework = framework};
    assert_int_equal(qn_import(&model, ctx, path, &options), status);
    assert_null(model);
    assert_non_null(strstr(qn_context_error(ctx), message));
    assert_non_null(strstr(qn_context_error(ctx), path));
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    expect("\x1c\0\0\0TFL3", 8, NULL, QN_E_FORMAT, "something points out of the file");
    /* The name of a framework covers all kinds of its files. */
    expect("\x1c\0\0\0TFL3", 8, "tensorflow", QN_E_FORMAT, "something points out of the file");
    expect("\x1c\0\0\0TFL3", 8, "onnx", QN_E_FORMAT, ": looks like a TensorFlow Lite model");
    expect("\x1f\x8b\x08\0", 4, NULL, QN_E_FORMAT, "compressed with gzip");
    expect("\x08\x08\x3a\5", 4, NULL, QN_E_FORMAT, "runs past the end");
}

static void frameworks_are_named(void **state)
{
    qn_model *model;
    (void)state;
    const qn_model_load_options darknet = {QN_OPTIONS_VERSION, .framework = "darknet"};
    const qn_model_load_options pytorch = {QN_OPTIONS_VERSION, .framework = "pytorch"};
    assert_int_equal(qn_import(&model, ctx, path, &darknet), QN_E_OPTION);
    assert_non_null(strstr(qn_context_error(ctx), "'darknet'"));
    /* Models of PyTorch may be names that no file has. */
    assert_int_equal(qn_import(&model, ctx, "resnet18", &pytorch), QN_E_UNSUPPORTED);
    const qn_model_load_options onnx = {QN_OPTIONS_VERSION, .framework = "onnx"};
    assert_int_equal(qn_model_load_with(&model, ctx, "examples/fashion.onnx", &onnx), QN_OK);
    qn_model_free(model);
    assert_int_equal(qn_model_load_with(&model, ctx, "examples/fashion.onnx", NULL), QN_OK);
    qn_model_free(model);
    assert_true(qn_framework_is_read("onnx"));
    assert_true(qn_framework_is_read("caffe"));
    assert_false(qn_framework_is_read("darknet"));
    assert_string_equal(qn_framework_name(0), "onnx");
    assert_null(qn_framework_name(qn_importers_count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(messages),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(frameworks_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
