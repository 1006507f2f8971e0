/* What the reference kernels compute where it is easy to get wrong. Numbers by hand, from the
 * operators' definitions. */
#include "ops_test.h"

#include "ops/nn_attrs.h"
#include "ops/quantize.h"
#include "ops/random.h"

#define TEST(name) static void name(void **state)
#define START bench *b = *state

static void binary(bench *b, const qn_op *op, const qn_tensor *x, const qn_tensor *y)
{
    bench_node(b, op, 2, 1);
    bench_feed(b, 0, x);
    bench_feed(b, 1, y);
}

/* ---- Integers -------------------------------------------------------------------------------- */

TEST(division_never_traps)
{
    START;
    binary(b, &qn_op_Div, numbers(b, QN_INT32, DIMS(5), VALUES(7, -7, 5, INT32_MIN, 0)),
           numbers(b, QN_INT32, DIMS(5), VALUES(2, 2, 0, -1, 3)));
    bench_run(b);
    expect(b, 0, QN_INT32, DIMS(5), VALUES(3, -3, 0, INT32_MIN, 0));
}

TEST(unsigned_division)
{
    START;
    qn_tensor *x = numbers(b, QN_UINT64, DIMS(1), VALUES(0));
    *(uint64_t *)x->data = UINT64_MAX;
    binary(b, &qn_op_Div, x, numbers(b, QN_UINT64, DIMS(1), VALUES(2)));
    bench_run(b);
    assert_true(*(const uint64_t *)b->out[0]->data == UINT64_MAX / 2);
}

TEST(modulo_has_the_sign_of_the_divisor)
{
    START;
    binary(b, &qn_op_Mod, numbers(b, QN_INT64, DIMS(4), VALUES(-4, 7, -4, 7)),
           numbers(b, QN_INT64, DIMS(4), VALUES(3, -3, -3, 0)));
    bench_run(b);
    expect(b, 0, QN_INT64, DIMS(4), VALUES(2, -2, -1, 0));
}

TEST(fmod_has_the_sign_of_the_dividend)
{
    START;
    binary(b, &qn_op_Mod, numbers(b, QN_INT64, DIMS(2), VALUES(-4, 7)),
           numbers(b, QN_INT64, DIMS(2), VALUES(3, -3)));
    ATTR(b, int64_t, "fmod", 23) = 1;
    bench_run(b);
    expect(b, 0, QN_INT64, DIMS(2), VALUES(-1, 1));
}

TEST(powers_of_integers)
{
    START;
    binary(b, &qn_op_Pow, numbers(b, QN_INT64, DIMS(5), VALUES(3, 2, -1, 2, 0)),
           numbers(b, QN_INT32, DIMS(5), VALUES(4, -1, -3, 62, 0)));
    bench_run(b);
    expect(b, 0, QN_INT64, DIMS(5), VALUES(81, 0, -1, 4611686018427387904.0, 1));
}

TEST(power_with_a_float_exponent)
{
    START;
    binary(b, &qn_op_Pow, numbers(b, QN_INT32, DIMS(2), VALUES(4, 9)),
           numbers(b, QN_FLOAT32, DIMS(2), VALUES(0.5, -0.5)));
    bench_run(b);
    expect(b, 0, QN_INT32, DIMS(2), VALUES(2, 0));
}

TEST(shifts_beyond_the_width)
{
    START;
    binary(b, &qn_op_BitShift, numbers(b, QN_UINT8, DIMS(3), VALUES(255, 1, 1)),
           numbers(b, QN_UINT8, DIMS(3), VALUES(1, 8, 200)));
    ATTR(b, int64_t, "direction", 23) = 1; /* LEFT */
    bench_run(b);
    expect(b, 0, QN_UINT8, DIMS(3), VALUES(254, 0, 0));
}

TEST(signed_shifts_keep_the_sign)
{
    START;
    binary(b, &qn_op_BitShift, numbers(b, QN_INT8, DIMS(4), VALUES(-8, -1, 4, -128)),
           numbers(b, QN_INT8, DIMS(4), VALUES(1, 100, -1, 7)));
    ATTR(b, int64_t, "direction", 23) = 2; /* RIGHT */
    bench_run(b);
    expect(b, 0, QN_INT8, DIMS(4), VALUES(-4, -1, 0, -1));
}

TEST(large_unsigned_numbers_compare)
{
    START;
    qn_tensor *x = numbers(b, QN_UINT64, DIMS(1), VALUES(0));
    *(uint64_t *)x->data = UINT64_MAX;
    binary(b, &qn_op_Greater, x, numbers(b, QN_UINT64, DIMS(1), VALUES(1)));
    bench_run(b);
    expect(b, 0, QN_BOOL, DIMS(1), VALUES(1));
}

/* ---- Floats ---------------------------------------------------------------------------------- */

TEST(maximum_keeps_nan)
{
    START;
    binary(b, &qn_op_Max, numbers(b, QN_FLOAT32, DIMS(3), VALUES(1, (double)NAN, 1)),
           numbers(b, QN_FLOAT32, DIMS(3), VALUES((double)NAN, 1, 2)));
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(3), VALUES((double)NAN, (double)NAN, 2));
}

TEST(halves_round_to_even)
{
    START;
    bench_node(b, &qn_op_Round, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(4), VALUES(0.5, 1.5, -2.5, 2.6)));
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(4), VALUES(0, 2, -2, 3));
}

TEST(clip_with_crossed_limits_gives_the_upper)
{
    START;
    bench_node(b, &qn_op_Clip, 3, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2), VALUES(0, 9)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, SCALAR, VALUES(5)));
    bench_feed(b, 2, numbers(b, QN_FLOAT32, SCALAR, VALUES(2)));
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2), VALUES(2, 2));
}

TEST(softmax_of_huge_numbers)
{
    START;
    bench_node(b, &qn_op_Softmax, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2), VALUES(1e30, 1e30)));
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2), VALUES(0.5, 0.5));
}

TEST(half_precision_is_rounded_once)
{
    START;
    /* Just above the middle between two neighbours. */
    binary(b, &qn_op_Add, numbers(b, QN_FLOAT16, DIMS(1), VALUES(1 + 0x1p-10)),
           numbers(b, QN_FLOAT16, DIMS(1), VALUES(0x1p-11 + 0x1p-21)));
    bench_run(b);
    expect(b, 0, QN_FLOAT16, DIMS(1), VALUES(1 + 0x1p-9));
}

/* ---- Casts ----------------------------------------------------------------------------------- */

static void cast(bench *b, const qn_tensor *x, qn_dtype to)
{
    bench_node(b, &qn_op_Cast, 1, 1);
    bench_feed(b, 0, x);
    ATTR(b, int64_t, "to", 23) = to;
}

TEST(small_floats_saturate)
{
    START;
    cast(b, numbers(b, QN_FLOAT32, DIMS(3), VALUES(1000, -1000, (double)INFINITY)),
         QN_FLOAT8E4M3FN);
    bench_run(b);
    expect(b, 0, QN_FLOAT8E4M3FN, DIMS(3), VALUES(448, -448, 448));
}

TEST(small_floats_overflow)
{
    START;
    cast(b, numbers(b, QN_FLOAT32, DIMS(2), VALUES(1000, 1e6)), QN_FLOAT8E4M3FN);
    ATTR(b, int64_t, "saturate", 23) = 0;
    bench_run(b);
    expect(b, 0, QN_FLOAT8E4M3FN, DIMS(2), VALUES((double)NAN, (double)NAN));
}

TEST(integers_wrap)
{
    START;
    cast(b, numbers(b, QN_INT64, DIMS(3), VALUES(300, -1, 128)), QN_INT8);
    bench_run(b);
    expect(b, 0, QN_INT8, DIMS(3), VALUES(44, -1, -128));
}

TEST(every_number_but_zero_is_true)
{
    START;
    cast(b, numbers(b, QN_FLOAT32, DIMS(3), VALUES(0.25, -0.0, (double)NAN)), QN_BOOL);
    bench_run(b);
    expect(b, 0, QN_BOOL, DIMS(3), VALUES(1, 0, 1));
}

TEST(numbers_as_text)
{
    START;
    static const char *const texts[] = {"0.1", "1.0",  "-1e-05",   "1e+20",
                                        "nan", "-inf", "123456.79"};
    cast(b,
         numbers(b, QN_FLOAT32, DIMS(7),
                 VALUES(0.1, 1, -1e-5, 1e20, (double)NAN, -(double)INFINITY, 123456.789)),
         QN_STRING);
    bench_run(b);
    for (size_t i = 0; i < QN_COUNT_OF(texts); i++) {
        const qn_string *s = (const qn_string *)b->out[0]->data + i;
        assert_int_equal(s->length, strlen(texts[i]));
        assert_memory_equal(s->text, texts[i], s->length);
    }
}

TEST(text_as_numbers)
{
    START;
    static const qn_string texts[] = {
        {"12", 2}, {" -3 ", 4}, {"9223372036854775807", 19}, {"1e3", 3}};
    const qn_tensor x = {
        .dtype = QN_STRING, .rank = 1, .dims = {4}, .data = (void *)(uintptr_t)texts};
    cast(b, &x, QN_INT64);
    bench_run(b);
    const int64_t *out = b->out[0]->data;
    assert_int_equal(out[0], 12);
    assert_int_equal(out[1], -3);
    assert_true(out[2] == INT64_MAX);
    assert_int_equal(out[3], 1000);
}

/* ---- Windows --------------------------------------------------------------------------------- */

TEST(average_counts_pads_but_not_what_lies_behind)
{
    START;
    bench_node(b, &qn_op_AveragePool, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 3), VALUES(1, 2, 4)));
    ATTR(b, qn_ints, "kernel_shape", 23) = INTS(3);
    ATTR(b, qn_ints, "strides", 23) = INTS(2);
    ATTR(b, qn_ints, "pads", 23) = INTS(1, 0);
    ATTR(b, int64_t, "ceil_mode", 23) = 1;
    ATTR(b, int64_t, "count_include_pad", 23) = 1;
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 1, 2), VALUES(1, 3));
}

TEST(no_window_begins_behind_the_input)
{
    START;
    bench_node(b, &qn_op_MaxPool, 1, 2);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(5, 1)));
    ATTR(b, qn_ints, "kernel_shape", 23) = INTS(1);
    ATTR(b, qn_ints, "strides", 23) = INTS(2);
    ATTR(b, int64_t, "ceil_mode", 23) = 1;
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 1, 1), VALUES(5));
    expect(b, 1, QN_INT64, DIMS(1, 1, 1), VALUES(0));
}

TEST(same_lower_pads_first)
{
    START;
    bench_node(b, &qn_op_Conv, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 3), VALUES(1, 2, 3)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(1, 10)));
    ATTR(b, int64_t, "auto_pad", 23) = QN_AUTO_PAD_SAME_LOWER;
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 1, 3), VALUES(10, 21, 32));
}

TEST(transposed_convolution_of_a_given_shape)
{
    START;
    bench_node(b, &qn_op_ConvTranspose, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(1, 2)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(1, 10)));
    ATTR(b, qn_ints, "strides", 23) = INTS(2);
    ATTR(b, qn_ints, "output_shape", 23) = INTS(3); /* of 1, 10, 2, 20 the first goes */
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 1, 3), VALUES(10, 2, 20));
}

static void expect_failure(bench *b, const char *part)
{
    assert_int_equal(qn_graph_infer(b->model->graph), QN_E_INVALID);
    if (!strstr(qn_context_error(b->ctx), part))
        fail_msg("'%s' does not say '%s'", qn_context_error(b->ctx), part);
}

TEST(a_kernel_must_fit)
{
    START;
    bench_node(b, &qn_op_Conv, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(1, 2)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 1, 3), VALUES(1, 2, 3)));
    expect_failure(b, "spans 3");
}

TEST(groups_must_divide)
{
    START;
    bench_node(b, &qn_op_Conv, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 2, 1), VALUES(1, 2)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(3, 1, 1), VALUES(1, 2, 3)));
    ATTR(b, int64_t, "group", 23) = 2;
    expect_failure(b, "groups");
}

TEST(strides_begin_with_one)
{
    START;
    bench_node(b, &qn_op_MaxPool, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(1, 2)));
    ATTR(b, qn_ints, "kernel_shape", 23) = INTS(1);
    ATTR(b, qn_ints, "strides", 23) = INTS(0);
    expect_failure(b, "strides");
}

/* ---- Quantization ---------------------------------------------------------------------------- */

TEST(ties_go_to_even_and_ends_saturate)
{
    START;
    bench_node(b, &qn_op_QuantizeLinear, 3, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(5), VALUES(1, 3, -1, 1000, (double)NAN)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, SCALAR, VALUES(2)));
    bench_feed(b, 2, numbers(b, QN_INT8, SCALAR, VALUES(10)));
    bench_run(b);
    expect(b, 0, QN_INT8, DIMS(5), VALUES(10, 12, 10, 127, -128));
}

TEST(blocks_have_scales_of_their_own)
{
    START;
    bench_node(b, &qn_op_DequantizeLinear, 2, 1);
    bench_feed(b, 0, numbers(b, QN_INT4, DIMS(1, 5), VALUES(1, 2, 3, -8, 7)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 3), VALUES(1, 10, 100)));
    ATTR(b, int64_t, "block_size", 23) = 2;
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 5), VALUES(1, 2, 30, -80, 700));
}

TEST(requantization_rounds_once_in_float)
{
    (void)state;
    const qn_limits bytes = {0, 255};
    assert_int_equal(qn_requantize(5, 0.5f, 3, bytes), 5); /* 2.5 -> 2 */
    assert_int_equal(qn_requantize(7, 0.5f, 3, bytes), 7); /* 3.5 -> 4 */
    assert_int_equal(qn_requantize(-9, 1, 3, bytes), 0);
    assert_int_equal(qn_requantize(1e30f, 1, 3, bytes), 255);
}

/* ---- The rest -------------------------------------------------------------------------------- */

TEST(sums_over_nothing)
{
    START;
    bench_node(b, &qn_op_ReduceMax, 2, 1);
    bench_feed(b, 0, numbers(b, QN_INT32, DIMS(2, 0), VALUES(0)));
    bench_constant(b, 1, numbers(b, QN_INT64, DIMS(1), VALUES(1)));
    bench_run(b);
    expect(b, 0, QN_INT32, DIMS(2, 1), VALUES(INT32_MIN, INT32_MIN));
}

TEST(shapes_computed_by_the_graph_stay_known)
{
    START;
    static const qn_dim shape[2] = {{QN_UNKNOWN_ELEMENT, "N"}, {3, NULL}};
    binary(b, &qn_op_Mul, numbers(b, QN_INT64, DIMS(2), VALUES(5, 3)),
           numbers(b, QN_INT64, DIMS(2), VALUES(1, 4)));
    b->node->in[0]->type.elements = shape;
    b->node->in[1]->data = b->fed[1];
    assert_int_equal(qn_graph_infer(b->model->graph), QN_OK);
    const qn_dim *elements = b->node->out[0]->type.elements;
    assert_non_null(elements);
    assert_string_equal(elements[0].symbol, "N"); /* N * 1 is N */
    assert_int_equal(elements[1].value, 12);
}

TEST(random_numbers_are_those_of_numpy)
{
    (void)state;
    qn_random random;
    qn_random_seed(&random, 5);
    assert_true(fabs(qn_random_uniform(&random) - 0.22199317108973948) < 1e-16);
    assert_true(fabs(qn_random_uniform(&random) - 0.8707323061773764) < 1e-16);
    qn_random_seed(&random, 5);
    assert_true(fabs(qn_random_normal(&random) - 0.44122748688504143) < 1e-15);
    assert_true(fabs(qn_random_normal(&random) + 0.33087015189408764) < 1e-15);
}

TEST(sequences_of_different_lengths)
{
    START;
    bench_node(b, &qn_op_RNN, 5, 2);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2, 2, 1), VALUES(1, 2, 3, 4)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 1, 1), VALUES(1)));
    bench_feed(b, 2, numbers(b, QN_FLOAT32, DIMS(1, 1, 1), VALUES(10)));
    bench_feed(b, 4, numbers(b, QN_INT32, DIMS(2), VALUES(1, 2)));
    ATTR(b, int64_t, "direction", 23) = QN_DIRECTION_REVERSE;
    ATTR(b, qn_strings, "activations", 23) = (qn_strings){(const qn_string[]){{"Relu", 4}}, 1};
    bench_run(b);
    /* The first item has one step, the second goes from 4 back to 2. */
    expect(b, 0, QN_FLOAT32, DIMS(2, 1, 2, 1), VALUES(1, 42, 0, 4));
    expect(b, 1, QN_FLOAT32, DIMS(1, 2, 1), VALUES(1, 42));
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(division_never_traps),
                                       T(unsigned_division),
                                       T(modulo_has_the_sign_of_the_divisor),
                                       T(fmod_has_the_sign_of_the_dividend),
                                       T(powers_of_integers),
                                       T(power_with_a_float_exponent),
                                       T(shifts_beyond_the_width),
                                       T(signed_shifts_keep_the_sign),
                                       T(large_unsigned_numbers_compare),
                                       T(maximum_keeps_nan),
                                       T(halves_round_to_even),
                                       T(clip_with_crossed_limits_gives_the_upper),
                                       T(softmax_of_huge_numbers),
                                       T(half_precision_is_rounded_once),
                                       T(small_floats_saturate),
                                       T(small_floats_overflow),
                                       T(integers_wrap),
                                       T(every_number_but_zero_is_true),
                                       T(numbers_as_text),
                                       T(text_as_numbers),
                                       T(average_counts_pads_but_not_what_lies_behind),
                                       T(no_window_begins_behind_the_input),
                                       T(same_lower_pads_first),
                                       T(transposed_convolution_of_a_given_shape),
                                       T(a_kernel_must_fit),
                                       T(groups_must_divide),
                                       T(strides_begin_with_one),
                                       T(ties_go_to_even_and_ends_saturate),
                                       T(blocks_have_scales_of_their_own),
                                       T(requantization_rounds_once_in_float),
                                       T(sums_over_nothing),
                                       T(shapes_computed_by_the_graph_stay_known),
                                       T(random_numbers_are_those_of_numpy),
                                       T(sequences_of_different_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
