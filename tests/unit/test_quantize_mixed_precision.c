/* Networks for which 8 bits are too few: the most sensitive layer stays float, and the rest
 * gets integers. */
#include <stdio.h>
#include <unistd.h>

#include "pass_test.h"
#include "quant/quant.h"
#include "quench.h"

static char path[64];

/* Named as an operator or a pattern would be. */
static qn_value *convolve(fixture *f, qn_value *x, qn_value *w, const char *name)
{
    qn_value *y = apply(f, &qn_op_Conv, 2, x, w);
    assert_int_equal(qn_value_rename(y, name), QN_OK);
    return y;
}

/* x [1, 2, 8, 8] -> two channels of which the first is `factor` times as large as the second ->
 * their difference with the first made as small again -> two large convolutions. */
static fixture network(float factor)
{
    const int64_t dims[4] = {1, 2, 8, 8}, one[4] = {2, 2, 1, 1}, large[4] = {32, 2, 3, 3},
                  last[4] = {32, 32, 3, 3};
    fixture f = begin();
    qn_value *spread = weights(&f, 4, one), *join = weights(&f, 4, one);
    memcpy(spread->data->data, (float[]){factor, 0, 0, 1}, 4 * sizeof(float));
    memcpy(join->data->data, (float[]){1 / factor, -1, 1 / factor, 1}, 4 * sizeof(float));
    qn_value *y = convolve(&f, input(&f, "x", 4, dims), spread, "Conv");
    y = convolve(&f, y, join, "*");
    y = convolve(&f, y, weights(&f, 4, large), "large");
    y = convolve(&f, y, weights(&f, 4, last), "last");
    assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
    return f;
}

static int write_samples(void **state)
{
    enum { SAMPLES = 8 };
    static float numbers[SAMPLES * 2 * 8 * 8];
    const qn_tensor tensor = {QN_FLOAT32, 4, {SAMPLES, 2, 8, 8}, numbers};
    qn_context *ctx;
    uint32_t seed = 5;
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(numbers); i++)
        numbers[i] = noise(&seed);
    snprintf(path, sizeof path, "/tmp/quench_mend_%ld.npy", (long)getpid());
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

/* What the report says of a quantization, and how many convolutions have weights of 16 bits. */
typedef struct outcome {
    bool mixed, noisy;
    int64_t wide;
} outcome;

static bool has_double_sums(const qn_node *conv)
{
    const qn_node *weights = conv->in[1]->producer;
    return weights && weights->in[0]->data && weights->in[0]->data->dtype == QN_INT16;
}

/* How many convolutions read integers. */
static int64_t integer_layers(outcome *out, float factor, int bits, const char *target)
{
    const char *const data = path;
    qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
    fixture f = network(factor);
    qn_model *quantized;
    qn_report *report;
    char *text;
    int64_t count = 0;
    options.bits = bits;
    options.target = target;
    options.no_equalization = 1; /* which repairs this network too, without a float layer */
    options.calibrate.data.data = &data;
    options.calibrate.data.n_data = 1;
    if (qn_model_quantize(&quantized, &report, f.ctx, f.model, &options) != QN_OK)
        fail_msg("%s", qn_context_error(f.ctx));
    *out = (outcome){.wide = 0};
    for (const qn_node *n = quantized->graph->first; n; n = n->next) {
        out->wide += n->op == &qn_op_Conv && has_double_sums(n);
        count += n->op == &qn_op_Conv && n->in[0]->producer &&
                 n->in[0]->producer->op == &qn_op_DequantizeLinear;
    }
    assert_int_equal(qn_report_json(&text, report), QN_OK);
    out->mixed = strstr(text, "\"mended\"") != NULL;
    out->noisy = strstr(text, "\"noisy\"") != NULL;
    qn_text_free(f.ctx, text);
    qn_report_free(report);
    qn_model_free(quantized);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
    return count;
}

static void alike_channels_need_nothing(void **state)
{
    outcome got;
    (void)state;
    assert_int_equal(integer_layers(&got, 1, 0, NULL), 4);
    assert_false(got.mixed);
}

/* The layer that reads the channels which differ; the one before it is an island then, and float
 * too. */
static void sensitive_layers_stay_float(void **state)
{
    outcome got;
    (void)state;
    assert_int_equal(integer_layers(&got, 1000, 0, NULL), 2);
    assert_true(got.mixed);
}

/* Other engines have no more of 8 bits than quench, and float layers they all have. */
static void sensitive_layers_stay_float_for_every_target(void **state)
{
    (void)state;
    for (size_t i = 0; qn_target_name(i); i++) {
        outcome got;
        assert_int_equal(integer_layers(&got, 1000, 0, qn_target_name(i)), 2);
        assert_true(got.mixed);
    }
}

/* A chip computes all layers with integers: of 16 bits where 8 are too few and it has them, and
 * else it is said that results are lost. */
static void chips_have_integers(void **state)
{
    (void)state;
    for (size_t i = 0; qn_chip_name(i); i++) {
        outcome got;
        qn_chip_info chip;
        assert_true(qn_chip_find(&chip, qn_chip_name(i)));
        assert_int_equal(integer_layers(&got, 1000, 0, qn_chip_name(i)), 4);
        assert_true(got.mixed);
        assert_true(chip.int16 ? got.wide > 0 && got.wide < 4 : got.wide == 0);
        assert_int_equal(got.noisy, !chip.int16);
        assert_int_equal(integer_layers(&got, 1, 0, qn_chip_name(i)), 4);
        assert_false(got.mixed || got.noisy);
        assert_int_equal(got.wide, 0);
    }
}

static void who_asks_for_bits_gets_them(void **state)
{
    outcome got;
    (void)state;
    assert_int_equal(integer_layers(&got, 1000, 8, NULL), 4);
    assert_false(got.mixed);
    assert_true(got.noisy);
    assert_int_equal(integer_layers(&got, 1000, 8, "TX5368AV200"), 4);
    assert_false(got.mixed);
    assert_true(got.noisy);
    assert_int_equal(got.wide, 0);
}

/* What was done to the best of several tries is reported as well as what was done to the only
 * one. */
static void strategies_report_mixed_layers(void **state)
{
    const char *const data = path;
    char folder[80], cache[96], made[112], *text;
    qn_strategies_options o = QN_STRATEGIES_OPTIONS_INIT;
    fixture f = network(1000);
    qn_report *report;
    (void)state;
    snprintf(folder, sizeof folder, "%s.dir", path);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(made, sizeof made, "%s/model_quantize.onnx", folder);
    o.file.save_dir = folder;
    o.file.quantize.target = "TX5368AV200";
    o.file.quantize.no_equalization = 1;
    o.file.quantize.calibrate.data.data = &data;
    o.file.quantize.calibrate.data.n_data = 1;
    o.cache = cache;
    if (qn_strategies_run(&report, f.ctx, f.model, &o) != QN_OK)
        fail_msg("%s", qn_context_error(f.ctx));
    assert_int_equal(qn_report_json(&text, report), QN_OK);
    assert_non_null(strstr(text, "\"mended\""));
    assert_non_null(strstr(text, "have 16 bits"));
    qn_text_free(f.ctx, text);
    qn_report_free(report);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
    assert_int_equal(unlink(cache), 0);
    assert_int_equal(unlink(made), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike_channels_need_nothing),
        cmocka_unit_test(sensitive_layers_stay_float),
        cmocka_unit_test(sensitive_layers_stay_float_for_every_target),
        cmocka_unit_test(chips_have_integers),
        cmocka_unit_test(who_asks_for_bits_gets_them),
        cmocka_unit_test(strategies_report_mixed_layers)};
    return cmocka_run_group_tests(tests, write_samples, remove_samples);
}
