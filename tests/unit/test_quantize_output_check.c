/* The float baseline that searches share: what the float model was run on once it is not run on
 * again. */
#include <stdio.h>
#include <unistd.h>

#include "pass_test.h"
#include "quantize/output_check.h"

enum { SAMPLES = 6, CHANNELS = 2, SIZE = 8, NUMBERS = CHANNELS * SIZE * SIZE };

static char path[64];

static int write_samples(void **state)
{
    static float numbers[SAMPLES * NUMBERS];
    const qn_tensor tensor = {QN_FLOAT32, 4, {SAMPLES, CHANNELS, SIZE, SIZE}, numbers};
    qn_context *ctx;
    uint32_t seed = 5;
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(numbers); i++)
        numbers[i] = noise(&seed);
    snprintf(path, sizeof path, "/tmp/quench_output_check_%ld.npy", (long)getpid());
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    assert_int_equal(qn_tensor_save(ctx, &tensor, path), QN_OK);
    qn_context_free(ctx);
    return 0;
}

static int remove_samples(void **state)
{
    (void)state;
    return unlink(path);
}

/* x [1, 2, 8, 8] -> Conv -> an output */
static fixture network(void)
{
    const int64_t dims[4] = {1, CHANNELS, SIZE, SIZE}, filters[4] = {4, CHANNELS, 3, 3};
    fixture f = begin();
    qn_value *y = apply(&f, &qn_op_Conv, 2, input(&f, "x", 4, dims), weights(&f, 4, filters));
    assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
    return f;
}

typedef struct setting {
    fixture f;
    qn_calibrate_options options;
    const char *data[1];
    qn_calibration calibration;
    qn_baseline baseline;
    qn_output_check check;
} setting;

static void open_check(setting *s)
{
    *s = (setting){.f = network(), .data = {path}};
    s->options.data.data = s->data;
    s->options.data.n_data = 1;
    assert_int_equal(qn_calibration_open(&s->calibration, s->f.ctx, s->f.model, &s->options),
                     QN_OK);
    assert_int_equal(qn_calibration_feed(&s->calibration), QN_OK);
    qn_baseline_init(&s->baseline, s->f.ctx, 1, 1);
    assert_int_equal(qn_output_check_open(&s->check, s->f.ctx, &s->calibration, &s->baseline),
                     QN_OK);
}

static void close_check(setting *s)
{
    qn_output_check_free(&s->check);
    qn_baseline_free(&s->baseline);
    qn_calibration_close(&s->calibration);
    qn_model_free(s->f.model);
    qn_context_free(s->f.ctx);
}

static void float_outputs_are_made_once(void **state)
{
    setting s;
    (void)state;
    open_check(&s);
    assert_int_equal(qn_output_check_use(&s.check, 2), QN_OK);
    assert_int_equal(s.baseline.n_known, 2);
    const float *first = s.baseline.pieces[0].values, *second = s.baseline.pieces[1].values;
    assert_int_equal(qn_output_check_use(&s.check, 4), QN_OK);
    assert_int_equal(s.baseline.n_known, 4);
    assert_ptr_equal(s.baseline.pieces[0].values, first);
    assert_ptr_equal(s.baseline.pieces[1].values, second);
    assert_int_equal(qn_output_check_use(&s.check, 1), QN_OK); /* fewer: nothing is lost */
    assert_int_equal(s.baseline.n_known, 4);
    close_check(&s);
}

/* Beyond the data there is nothing. */
static void no_more_samples_than_there_are(void **state)
{
    setting s;
    (void)state;
    open_check(&s);
    assert_int_equal(qn_output_check_use(&s.check, 100), QN_OK);
    assert_int_equal(s.check.samples, SAMPLES);
    assert_int_equal(s.baseline.n_known, SAMPLES);
    close_check(&s);
}

/* The float model itself is at no distance from its outputs, with and without kept values in
 * between. */
static void float_is_no_distance_from_itself(void **state)
{
    setting s;
    double error = 1;
    (void)state;
    open_check(&s);
    const qn_quantized_model same = {.ctx = s.f.ctx, .model = s.calibration.real};
    assert_int_equal(qn_output_check_use(&s.check, 3), QN_OK);
    assert_int_equal(qn_output_check_error(&error, &s.check, &same), QN_OK);
    assert_true(error < 1e-6);
    assert_int_equal(qn_output_check_use_prefixes(&s.check, SAMPLES), QN_OK);
    error = 1;
    assert_int_equal(qn_output_check_error(&error, &s.check, &same), QN_OK);
    assert_true(error < 1e-6);
    close_check(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_outputs_are_made_once),
        cmocka_unit_test(no_more_samples_than_there_are),
        cmocka_unit_test(float_is_no_distance_from_itself),
    };
    return cmocka_run_group_tests(tests, write_samples, remove_samples);
}
