/* Fixed point: the normal form of ratios, its rounding, and kernels with ratios of all sizes. */
#include "int8_test.h"
#include "ops/quantize.h"

/* ---- The form -------------------------------------------------------------------------------- */

static const double mantissas[] = {1, 1.0000152587890625, 1.25, 1.4142135, 1.5, 1.99995, 1.99999};

static void shifts_stay_within_0_and_31(void **state)
{
    (void)state;
    for (int e = -60; e <= 60; e++) {
        for (size_t i = 0; i < QN_COUNT_OF(mantissas); i++) {
            const double ratio = ldexp(mantissas[i], e);
            const qn_normal n = qn_normal_of(ratio);
            const double off = fabs(qn_normal_value(n) - ratio);
            if (n.shift < 0 || n.shift > 31 || n.multiplier < 0 || n.multiplier > 32767)
                fail_msg("%g is %d / 2^%d", ratio, n.multiplier, n.shift);
            if (ratio >= 0x1p15 * (1 - 0x1p-16))
                assert_true(n.multiplier == 32767 && n.shift == 0);
            else if (ratio >= 0x1p-17)
                assert_true(n.multiplier >= 1 << 14 && off <= ratio * 0x1p-15);
            else
                assert_true(n.shift == 31 && off <= 0x1p-32);
            if (ratio < 0x1p-32)
                assert_int_equal(n.multiplier, 0);
        }
    }
}

static void what_is_no_ratio_is_0(void **state)
{
    (void)state;
    assert_int_equal(qn_normal_of(0).multiplier, 0);
    assert_int_equal(qn_normal_of(-1).multiplier, 0);
    assert_int_equal(qn_normal_of((double)NAN).multiplier, 0);
    assert_int_equal(qn_normal_of((double)INFINITY).multiplier, 32767);
    assert_int_equal(qn_normal_of((double)INFINITY).shift, 0);
    assert_int_equal(qn_normal_of(1e-310).multiplier, 0);
    assert_true(qn_normal_value(qn_normal_of(1)) == 1);
    assert_true(qn_normal_value(qn_normal_of(0.375)) == 0.375);
}

/* One shift for both, and none of them larger than 15 bits. */
static void pairs_share_a_shift(void **state)
{
    (void)state;
    for (int a = -40; a <= 40; a++) {
        for (int b = -40; b <= 40; b++) {
            const double x = ldexp(1.99999, a), y = ldexp(1.3, b);
            qn_normal n[2];
            qn_normal_pair(n, x, y);
            assert_int_equal(n[0].shift, n[1].shift);
            assert_true(n[0].multiplier <= 32767 && n[1].multiplier <= 32767);
            const qn_normal larger = qn_normal_of(x > y ? x : y);
            assert_int_equal(n[x > y ? 0 : 1].multiplier, larger.multiplier);
            assert_int_equal(n[0].shift, larger.shift);
        }
    }
}

/* ---- Rounding -------------------------------------------------------------------------------- */

static void halves_go_to_even(void **state)
{
    (void)state;
    assert_int_equal(qn_normal_shift(3, 1), 2);
    assert_int_equal(qn_normal_shift(5, 1), 2);
    assert_int_equal(qn_normal_shift(-1, 1), 0);
    assert_int_equal(qn_normal_shift(-3, 1), -2);
    assert_int_equal(qn_normal_shift(-5, 1), -2);
    for (int32_t shift = 0; shift <= 31; shift++) {
        const int64_t unit = INT64_C(1) << shift;
        for (int64_t whole = -300; whole <= 300; whole++) {
            for (int64_t off = -2; off <= 2; off++) {
                const int64_t product = whole * unit + unit / 2 + off;
                const double exact = ldexp((double)product, -shift);
                assert_int_equal(qn_normal_shift(product, shift), (int64_t)nearbyint(exact));
            }
        }
    }
}

static int64_t limited(double x, qn_limits range)
{
    return x <= (double)range.min ? range.min : x >= (double)range.max ? range.max : (int64_t)x;
}

/* What kernels compute in doubles is what the integers are, for sums up to 2^52 and every ratio. */
static void doubles_give_the_same_integers(void **state)
{
    static const qn_dtype types[] = {QN_INT8, QN_UINT8, QN_INT16, QN_UINT16};
    uint64_t random = 88172645463325252u;
    (void)state;
    for (int i = 0; i < 400000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const int bits = (int)(random % 53);
        const int64_t sum = (int64_t)(random >> 11) % (INT64_C(1) << bits) * (random & 1 ? 1 : -1);
        const int e = (int)((random >> 32) % 121) - 60;
        const float ratio = ldexpf(1 + (float)((random >> 20) % 4096) / 4096, e);
        const qn_limits range = qn_limits_of(types[i % 4]);
        const qn_qparams y = {.scale = 1, .requantization = QN_REQUANTIZE_FIXED_POINT};
        const double fast = (double)sum * qn_normal_value(qn_normal_of((double)ratio));
        if (qn_requantize_to(sum, ratio, &y, range) != limited(nearbyint(fast), range))
            fail_msg("%lld * %g", (long long)sum, (double)ratio);
    }
}

static void sums_beyond_all_types_saturate(void **state)
{
    const qn_qparams y = {.scale = 1, .zero = 5, .requantization = QN_REQUANTIZE_FIXED_POINT};
    const qn_limits range = qn_limits_of(QN_INT16);
    (void)state;
    assert_int_equal(qn_requantize_to(INT64_MAX, 0x1p-31f, &y, range), 32767);
    assert_int_equal(qn_requantize_to(INT64_MIN, 0x1p-31f, &y, range), -32768);
    assert_int_equal(qn_requantize_to(INT64_MAX, 0x1p-40f, &y, range), 5);
    assert_int_equal(qn_requantize_to(1, 0x1p40f, &y, range), 32767);
    assert_int_equal(qn_requantize_to(-1, 0x1p40f, &y, qn_limits_of(QN_INT8)), -128);
    assert_int_equal(qn_requantize_to(0, 0x1p40f, &y, range), 5);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static qn_value *scale(fixture *f, double x)
{
    qn_tensor *tensor = constant_tensor(f, QN_FLOAT32, 0, NULL);
    *(float *)tensor->data = (float)x;
    return constant_value(f, tensor);
}

static qn_value *no_zero(fixture *f, qn_dtype dtype)
{
    return constant_value(f, constant_tensor(f, dtype, 0, NULL));
}

/* A requantized copy, a sum and a product, the result's scale 2^e times the inputs' about 1. */
static double one_of_all_sizes(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype dtype = pick(&f, 2) ? QN_INT8 : QN_INT16;
    const int64_t dims[] = {1, 3, 7, 11};
    const double y = ldexp(1 + 0.4 * (double)noise(&f), (int)(seed % 121) - 60);
    qn_value *a = add_byte_input(&f, dtype, 4, dims), *b = add_byte_input(&f, dtype, 4, dims);
    qn_value *sa = scale(&f, 1 + 0.4 * (double)noise(&f)), *sy = scale(&f, y);
    qn_value *sb = scale(&f, ldexp(1 + 0.4 * (double)noise(&f), (int)pick(&f, 9) - 4));
    qn_value *const copy[] = {a, sa, no_zero(&f, dtype), sy, no_zero(&f, dtype)};
    qn_value *const both[] = {
        a, sa, no_zero(&f, dtype), b, sb, no_zero(&f, dtype), sy, no_zero(&f, dtype)};
    add_output(&f, result_of(add_node(&f, &qn_op_qn_Requantize, 5, copy)));
    add_output(&f, result_of(add_node(&f, &qn_op_ms_QLinearAdd, 8, both)));
    add_output(&f, result_of(add_node(&f, &qn_op_ms_QLinearMul, 8, both)));
    const double count = differing(&f, "requantize");
    fixture_end(&f);
    return count;
}

static void kernels_agree_with_ratios_of_all_sizes(void **state)
{
    (void)state;
    run_cases(one_of_all_sizes, 242, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shifts_stay_within_0_and_31),
                                       cmocka_unit_test(what_is_no_ratio_is_0),
                                       cmocka_unit_test(pairs_share_a_shift),
                                       cmocka_unit_test(halves_go_to_even),
                                       cmocka_unit_test(doubles_give_the_same_integers),
                                       cmocka_unit_test(sums_beyond_all_types_saturate),
                                       cmocka_unit_test(kernels_agree_with_ratios_of_all_sizes)};
    return RUN_TESTS_OF("cpu", tests);
}
