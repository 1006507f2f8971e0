/* Models with other ends: what they compute. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quench.h"

enum { PIXELS = 28 * 28, CLASSES = 10 };

typedef struct fixture {
    qn_context *ctx;
    qn_model *model;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    *state = &f;
    return qn_context_create(&f.ctx, NULL) != QN_OK ||
           qn_model_load(&f.model, f.ctx, "examples/fashion.onnx") != QN_OK;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    qn_model_free(f->model);
    qn_context_free(f->ctx);
    return 0;
}

static void run(float out[CLASSES], fixture *f, qn_model *model, float *image)
{
    const qn_tensor in = {QN_FLOAT32, 4, {1, 1, 28, 28}, image};
    qn_plan *plan = NULL;
    qn_session *session = NULL;
    if (qn_plan_create(&plan, f->ctx, model, NULL) || qn_session_create(&session, f->ctx, plan) ||
        qn_session_run(session, &in, 1))
        fail_msg("%s", qn_context_error(f->ctx));
    memcpy(out, qn_session_output(session, 0)->data, CLASSES * sizeof *out);
    qn_session_free(session);
    qn_plan_free(plan);
}

static void make_images(float raw[PIXELS], float normalized[PIXELS], double mean, double std)
{
    for (int i = 0; i < PIXELS; i++) {
        raw[i] = (float)(i * 37 % 256);
        normalized[i] = (float)(((double)raw[i] - mean) / std);
    }
}

/* Pixels in, the same scores out as for pixels that were normalized before; the first convolution
 * is padded, so that the shift cannot go into it. */
static void normalized_inside(void **state)
{
    fixture *f = *state;
    const double mean = 72.5, std = 90.25;
    const qn_edit_options options = {QN_OPTIONS_VERSION, .mean = &mean, .std = &std, .n_mean = 1,
                                     .n_std = 1};
    float raw[PIXELS], normalized[PIXELS], wanted[CLASSES], given[CLASSES];
    qn_model *edited;
    make_images(raw, normalized, mean, std);
    assert_int_equal(qn_model_edit(&edited, f->ctx, f->model, &options), QN_OK);
    run(wanted, f, f->model, normalized);
    run(given, f, edited, raw);
    for (int c = 0; c < CLASSES; c++)
        assert_true(fabsf(given[c] - wanted[c]) <= 1e-4f * (1 + fabsf(wanted[c])));
    qn_model_free(edited);
}

/* Quantized with its normalization it computes with integers all the way: Q behind the input, then
 * no float. */
static void normalized_integers(void **state)
{
    fixture *f = *state;
    const double mean = 72.5, std = 90.25;
    const qn_edit_options options = {QN_OPTIONS_VERSION, .mean = &mean, .std = &std, .n_mean = 1,
                                     .n_std = 1};
    qn_quantize_options quantize = QN_QUANTIZE_OPTIONS_INIT;
    qn_report *report;
    qn_model *edited;
    char *text;
    assert_int_equal(qn_model_edit(&edited, f->ctx, f->model, &options), QN_OK);
    assert_int_equal(qn_quantize_list(&report, f->ctx, edited, &quantize), QN_OK);
    assert_int_equal(qn_report_text(&text, report), QN_OK);
    static const char name[] = "  input_normalization "; /* of the node, and of what it writes */
    const char *line = strstr(text, name);
    assert_non_null(line);
    line = strstr(line + 1, name);
    assert_non_null(line);
    assert_int_equal(strtol(line + strlen(name), NULL, 10), 8);
    assert_null(strstr(text, "  BatchNormalization  "));
    qn_text_free(f->ctx, text);
    qn_report_free(report);
    qn_model_free(edited);
}

static void other_outputs(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"/middle/Add", "/stem/stem.1/Clip_output_0"};
    const qn_edit_options options = {QN_OPTIONS_VERSION, .outputs = names, .n_outputs = 2,
                                     .batch = 4};
    qn_value_info info;
    qn_model *edited;
    assert_int_equal(qn_model_edit(&edited, f->ctx, f->model, &options), QN_OK);
    assert_int_equal(qn_model_output_count(edited), 2);
    assert_string_equal(qn_model_output_name(edited, 0), "/middle/Add_output_0");
    assert_string_equal(qn_model_output_name(edited, 1), "/stem/stem.1/Clip_output_0");
    qn_model_input_info(&info, edited, 0);
    assert_int_equal(info.dims[0], 4);
    assert_int_equal(qn_model_output_count(f->model), 1);
    qn_model_free(edited);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalized_inside),
        cmocka_unit_test(normalized_integers),
        cmocka_unit_test(other_outputs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
