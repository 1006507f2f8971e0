/* The numbers in a quantized graph: what becomes of dead channels, large biases, shared weights and
 * mixed widths. */
#include <stdio.h>
#include <unistd.h>

#include "model/prepare.h"
#include "ops/quantize.h"
#include "pass/qdq_to_integer.h"
#include "pass_test.h"
#include "quench.h"

/* More than a small tail, which would stay float. */
enum { FILTERS = 8, CHANNELS = 3, TAPS = 9 };

/* ---- Building -------------------------------------------------------------------------------- */

static qn_value *image(fixture *f)
{
    return input(f, "x", 4, DIMS(1, CHANNELS, 8, 8));
}

static qn_value *filters(fixture *f, int64_t channels)
{
    return weights(f, 4, DIMS(FILTERS, channels, 3, 3));
}

static float *data_of(const qn_value *value)
{
    return value->data->data;
}

static qn_value *named(qn_value *value, const char *name)
{
    assert_int_equal(qn_value_rename(value, name), QN_OK);
    return value;
}

static void scale_all(const qn_value *value, float by)
{
    for (int64_t i = 0; i < qn_tensor_count(value->data); i++)
        data_of(value)[i] *= by;
}

/* The fixture's graph with result y, quantized on random numbers from 0 to 1. */
static qn_model *quantize(fixture *f, qn_value *y, qn_quantize_options options)
{
    qn_model *quantized;
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    options.bits = 8;
    options.method = "min_max";
    if (qn_model_quantize(&quantized, NULL, f->ctx, f->model, &options) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    return quantized;
}

static void end(fixture *f, qn_model *quantized)
{
    qn_model_free(quantized);
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static const qn_node *convolution(const qn_model *model, const char *name)
{
    const qn_node *node = qn_graph_value(model->graph, name)->producer;
    assert_ptr_equal(node->op, &qn_op_Conv);
    return node;
}

/* What the D in front of an input reads. */
static qn_quantized integers(const qn_node *node, int32_t i)
{
    qn_quantized q;
    bool found = false;
    assert_int_equal(qn_qdq_input(&found, &q, node->in[i]), QN_OK);
    assert_true(found);
    return q;
}

/* The bias of filter k as the file has it. */
static double bias_of(const qn_node *node, int64_t k)
{
    if (node->in[2]->data)
        return qn_tensor_f64(node->in[2]->data, k);
    const qn_quantized b = integers(node, 2);
    const double units = qn_tensor_f64(b.value->data, k);
    assert_int_equal(b.value->type.dtype, QN_INT32);
    assert_true(fabs(units) < 0x1p30 * 1.001);
    return units * (double)qn_quantized_scale(&b, k);
}

/* sum |fixed - float| / sum |float| of the first result */
static double error_of(fixture *f, const qn_model *quantized)
{
    const qn_tensor *real[2], *fixed[2];
    qn_tensor *x;
    qn_arena arena;
    uint32_t state = 3;
    double error = 0, signal = 0;
    qn_arena_init(&arena, &f->ctx->allocator);
    assert_int_equal(qn_tensor_create(&x, f->ctx, &arena, &f->graph->inputs[0]->type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(x); i++)
        ((float *)x->data)[i] = 0.45f * (1 + noise(&state));
    const qn_tensor *in[] = {x};
    const qn_graph_args args = {in, NULL};
    assert_int_equal(qn_graph_infer(f->graph), QN_OK);
    assert_int_equal(qn_graph_eval(real, f->ctx, &arena, f->graph, &args), QN_OK);
    assert_int_equal(qn_graph_eval(fixed, f->ctx, &arena, quantized->graph, &args), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(real[0]); i++) {
        signal += fabs(qn_tensor_f64(real[0], i));
        error += fabs(qn_tensor_f64(fixed[0], i) - qn_tensor_f64(real[0], i));
    }
    qn_arena_free(&arena);
    return error / signal;
}

/* Targets, then chips. */
static const char *target_at(size_t i)
{
    size_t targets = 0;
    while (qn_target_name(targets))
        targets++;
    return i < targets ? qn_target_name(i) : qn_chip_name(i - targets);
}

/* ---- Dead channels, large biases ------------------------------------------------------------- */

/* A channel whose weights are all 0 gives its bias: small ones in front of a coarse input too. */
static void dead_channels_keep_their_bias(void **state)
{
    static const qn_quantize_options none = QN_QUANTIZE_OPTIONS_INIT;
    (void)state;
    for (size_t t = 0; target_at(t); t++) {
        for (int dead = 1; dead <= FILTERS; dead += FILTERS - 1) {
            fixture f = begin();
            qn_quantize_options options = none;
            qn_value *w = filters(&f, CHANNELS), *b = weights(&f, 1, DIMS(FILTERS));
            qn_value *a = named(apply(&f, &qn_op_Conv, 3, image(&f), w, b), "a");
            qn_value *y =
                apply(&f, &qn_op_Conv, 2, apply(&f, &qn_op_Tanh, 1, a), filters(&f, FILTERS));
            scale_all(w, 1e-3f);
            scale_all(b, 1e-4f);
            data_of(b)[1] = 0;
            memset(data_of(w), 0, (size_t)dead * CHANNELS * TAPS * sizeof(float));
            options.target = target_at(t);
            qn_model *quantized = quantize(&f, y, options);
            const qn_node *node = convolution(quantized, "a");
            const qn_quantized integer = integers(node, 1);
            for (int64_t i = 0; i < dead * CHANNELS * TAPS; i++)
                assert_true(qn_tensor_f64(integer.value->data, i) == 0);
            for (int64_t k = 0; k < dead; k++) {
                const double real = (double)data_of(b)[k], apart = fabs(bias_of(node, k) - real);
                assert_true(qn_quantized_scale(&integer, k) > 0);
                if (apart > 1e-6 * fabs(real))
                    fail_msg("%s: bias %g became %g", options.target, real, bias_of(node, k));
            }
            end(&f, quantized);
        }
    }
}

/* In units of input times weights it would be 10^12: the scale of the weights is raised instead. */
static void large_biases_fit(void **state)
{
    fixture f = begin();
    qn_value *w = filters(&f, CHANNELS), *b = weights(&f, 1, DIMS(FILTERS));
    qn_value *a = named(apply(&f, &qn_op_Conv, 3, image(&f), w, b), "a");
    qn_value *y = apply(&f, &qn_op_Conv, 2, apply(&f, &qn_op_Tanh, 1, a), filters(&f, FILTERS));
    (void)state;
    for (int64_t i = 0; i < CHANNELS * TAPS; i++)
        data_of(w)[i] *= 1e-9f;
    data_of(b)[0] = -5;
    qn_model *quantized = quantize(&f, y, (qn_quantize_options)QN_QUANTIZE_OPTIONS_INIT);
    assert_true(fabs(bias_of(convolution(quantized, "a"), 0) + 5) < 1e-5);
    assert_true(error_of(&f, quantized) < 0.03);
    end(&f, quantized);
}

/* ---- Shared weights -------------------------------------------------------------------------- */

/* Readers with inputs of other sizes: the integers of the weights are the same, each bias is in
 * units of its own input. */
static void shared_weights_have_one_scale(void **state)
{
    fixture f = begin();
    qn_value *x = image(&f), *w = filters(&f, CHANNELS), *b = weights(&f, 1, DIMS(FILTERS));
    qn_value *large = apply(&f, &qn_op_Exp, 1, x);
    qn_value *first = named(apply(&f, &qn_op_Conv, 3, x, w, b), "first");
    qn_value *second = named(apply(&f, &qn_op_Conv, 3, large, w, b), "second");
    qn_value *y = apply(&f, &qn_op_Concat, 2, apply(&f, &qn_op_Tanh, 1, first),
                        apply(&f, &qn_op_Tanh, 1, second));
    (void)state;
    ((qn_concat_attrs *)y->producer->attrs)->axis = 1;
    qn_model *quantized = quantize(&f, apply(&f, &qn_op_Conv, 2, y, filters(&f, 2 * FILTERS)),
                                   (qn_quantize_options)QN_QUANTIZE_OPTIONS_INIT);
    const qn_node *nodes[2] = {convolution(quantized, "first"), convolution(quantized, "second")};
    const qn_quantized one = integers(nodes[0], 1), other = integers(nodes[1], 1);
    const qn_tensor *integer[2] = {one.value->data, other.value->data};
    assert_memory_equal(integer[0]->data, integer[1]->data, FILTERS * CHANNELS * TAPS);
    for (int i = 0; i < 2; i++) {
        const qn_quantized in = integers(nodes[i], 0), bias = integers(nodes[i], 2);
        for (int64_t k = 0; k < FILTERS; k++) {
            assert_true(qn_quantized_scale(&one, k) == qn_quantized_scale(&other, k));
            assert_true(qn_quantized_scale(&bias, k) ==
                        qn_quantized_scale(&in, 0) * qn_quantized_scale(&one, k));
        }
    }
    end(&f, quantized);
}

/* One kind of weights for channels that differ by 100 before and behind: no factor may go into them
 * for one reader only. */
static void shared_weights_take_no_factors(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, FILTERS, 8, 8)), *w = filters(&f, FILTERS);
    qn_value *y = apply(&f, &qn_op_Conv, 2, x, w);
    (void)state;
    for (int64_t k = 0; k < FILTERS; k++) {
        for (int64_t i = 0; i < FILTERS * TAPS; i++)
            data_of(w)[k * FILTERS * TAPS + i] *= powf(100, (float)k / FILTERS) / 100;
    }
    for (int i = 0; i < 2; i++)
        y = apply(&f, &qn_op_Conv, 2, apply(&f, &qn_op_Relu, 1, y), w);
    qn_model *quantized = quantize(&f, y, (qn_quantize_options)QN_QUANTIZE_OPTIONS_INIT);
    const double error = error_of(&f, quantized);
    if (!(error < 0.03))
        fail_msg("error %g", error);
    end(&f, quantized);
}

/* A constant part of a Concat has the result's scale, as targets want it, and is copied. */
static void constant_parts_are_copied(void **state)
{
    (void)state;
    for (size_t t = 0; qn_target_name(t); t++) {
        fixture f = begin();
        qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
        qn_value *a = apply(&f, &qn_op_Conv, 2, image(&f), filters(&f, CHANNELS));
        qn_value *part = weights(&f, 4, DIMS(1, FILTERS, 6, 6));
        qn_value *both = named(apply(&f, &qn_op_Concat, 2, a, part), "both");
        qn_value *y = named(apply(&f, &qn_op_Conv, 2, both, filters(&f, 2 * FILTERS)), "y");
        ((qn_concat_attrs *)both->producer->attrs)->axis = 1;
        options.target = qn_target_name(t);
        qn_model *quantized = quantize(&f, y, options);
        const qn_node *concat = qn_graph_value(quantized->graph, "both")->producer;
        const qn_quantized copied = integers(concat, 1);
        const qn_quantized result = integers(convolution(quantized, "y"), 0);
        assert_true(qn_quantized_alike(&copied, &result));
        assert_true(error_of(&f, quantized) < 0.03);
        end(&f, quantized);
    }
}

/* ---- Mixed widths ---------------------------------------------------------------------------- */

static void assert_types(const qn_node *node, qn_dtype input, qn_dtype weight)
{
    assert_int_equal(integers(node, 0).value->type.dtype, input);
    assert_int_equal(integers(node, 1).value->type.dtype, weight);
}

static int64_t count_requantize(fixture *f, qn_model *quantized)
{
    const qn_graph_options graph = QN_GRAPH_OPTIONS_INIT;
    qn_model *run;
    int64_t count = 0;
    assert_int_equal(qn_prepare_optimized(&run, f->ctx, quantized, &graph, QN_PURPOSE_RUN, NULL),
                     QN_OK);
    for (const qn_node *node = run->graph->first; node; node = node->next)
        count += node->op == &qn_op_qn_Requantize;
    qn_model_free(run);
    return count;
}

/* a (8) -> b (16) -> c (8), and a -> d (8): what b reads and writes has 16 bits, what c and d read
 * is made 8 again. */
static void widths_meet(void **state)
{
    static const char *const wide[] = {"b=16"};
    double errors[2];
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        fixture f = begin();
        qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
        qn_value *w = filters(&f, CHANNELS); /* before the image: their numbers go by the order */
        qn_value *a = named(apply(&f, &qn_op_Conv, 2, image(&f), w), "a");
        qn_value *t = named(apply(&f, &qn_op_Tanh, 1, a), "t");
        qn_value *b = named(apply(&f, &qn_op_Conv, 2, t, filters(&f, FILTERS)), "b");
        qn_value *bias = weights(&f, 1, DIMS(FILTERS));
        qn_value *c = named(apply(&f, &qn_op_Conv, 3, b, filters(&f, FILTERS), bias), "c");
        qn_value *d = named(apply(&f, &qn_op_Conv, 2, t, filters(&f, FILTERS)), "d");
        options.widths = wide;
        options.n_widths = n;
        assert_int_equal(qn_graph_add_output(f.graph, c), QN_OK);
        qn_model *quantized = quantize(&f, d, options);
        const qn_dtype act = n ? QN_UINT16 : QN_UINT8, weight = n ? QN_INT16 : QN_INT8;
        assert_types(convolution(quantized, "a"), QN_UINT8, QN_INT8);
        assert_types(convolution(quantized, "b"), act, weight);
        assert_types(convolution(quantized, "c"), QN_UINT8, QN_INT8);
        assert_types(convolution(quantized, "d"), QN_UINT8, QN_INT8);
        assert_int_equal(count_requantize(&f, quantized), n ? 2 : 0);
        if (n) { /* min_max by its name: 255 and 65,535 steps of what was seen */
            const qn_quantized fine = integers(convolution(quantized, "b"), 0);
            const qn_quantized coarse = integers(convolution(quantized, "d"), 0);
            const double ratio = (double)qn_quantized_scale(&coarse, 0) * 255 /
                                 ((double)qn_quantized_scale(&fine, 0) * 65535);
            assert_true(fabs(ratio - 1) < 1e-5);
        }
        const qn_quantized in = integers(convolution(quantized, "c"), 0),
                           by = integers(convolution(quantized, "c"), 1),
                           b_c = integers(convolution(quantized, "c"), 2);
        assert_true(qn_quantized_scale(&b_c, 0) ==
                    qn_quantized_scale(&in, 0) * qn_quantized_scale(&by, 0));
        errors[n] = error_of(&f, quantized);
        end(&f, quantized);
    }
    print_message("error with 8 bits %g, with 16 for one layer %g\n", errors[0], errors[1]);
    assert_true(errors[1] < 1.1 * errors[0]); /* the 8 bits behind it are as fine as before */
}

/* ---- What is reported ------------------------------------------------------------------------ */

static void write_samples(char path[64], qn_context *ctx)
{
    enum { SAMPLES = 4, ELEMENTS = SAMPLES * CHANNELS * 8 * 8 };
    static float numbers[ELEMENTS];
    const qn_tensor tensor = {QN_FLOAT32, 4, {SAMPLES, CHANNELS, 8, 8}, numbers};
    uint32_t state = 5;
    for (size_t i = 0; i < ELEMENTS; i++)
        numbers[i] = noise(&state);
    snprintf(path, 64, "/tmp/quench_numbers_%ld.npy", (long)getpid());
    assert_int_equal(qn_tensor_save(ctx, &tensor, path), QN_OK);
}

/* The layer that reads channels which differ by 1000 is most of the work: it cannot stay float, and
 * that is said. */
static void what_cannot_be_mended_is_said(void **state)
{
    char path[64], *text;
    const char *const data = path;
    qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
    qn_report *report;
    qn_model *quantized;
    fixture f = begin();
    qn_value *first = filters(&f, CHANNELS), *second = filters(&f, FILTERS);
    qn_value *y = apply(&f, &qn_op_Conv, 2, image(&f), first);
    (void)state;
    for (int64_t i = 0; i < CHANNELS * TAPS; i++)
        data_of(first)[i] *= 1000;
    for (int64_t i = 0; i < FILTERS * FILTERS * TAPS; i++)
        data_of(second)[i] *= i / TAPS % FILTERS ? 1 : 1e-3f;
    assert_int_equal(qn_graph_add_output(f.graph, apply(&f, &qn_op_Conv, 2, y, second)), QN_OK);
    write_samples(path, f.ctx);
    options.no_equalization = 1;
    options.calibrate.data.data = &data;
    options.calibrate.data.n_data = 1;
    assert_int_equal(qn_model_quantize(&quantized, &report, f.ctx, f.model, &options), QN_OK);
    assert_int_equal(qn_report_json(&text, report), QN_OK);
    assert_non_null(strstr(text, "\"noisy\""));
    qn_text_free(f.ctx, text);
    qn_report_free(report);
    end(&f, quantized);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_channels_keep_their_bias),
        cmocka_unit_test(large_biases_fit),
        cmocka_unit_test(shared_weights_have_one_scale),
        cmocka_unit_test(shared_weights_take_no_factors),
        cmocka_unit_test(constant_parts_are_copied),
        cmocka_unit_test(widths_meet),
        cmocka_unit_test(what_cannot_be_mended_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
