/* The distance of outputs from float: its value, its parts added up, and what it says of
 * nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "calib/relative_error.h"

enum { COUNT = 600 }; /* more than a block */

static qn_tensor row(qn_dtype dtype, void *data, int64_t count)
{
    return (qn_tensor){.dtype = dtype, .rank = 1, .dims = {count}, .data = data};
}

static void sums_of_all_elements_count(void **state)
{
    float real[COUNT];
    int8_t quantized[COUNT];
    qn_relative_error error = {0, 0};
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        real[i] = i % 2 ? -2.0F : 2.0F;
        quantized[i] = i % 2 ? -3 : 5;
    }
    const qn_tensor x = row(QN_FLOAT32, real, COUNT), y = row(QN_INT8, quantized, COUNT);
    qn_relative_error_add(&error, &x, &y, 0.5);
    assert_true(error.size == 2.0 * COUNT);
    assert_true(error.difference == 0.5 * COUNT);
    assert_true(qn_relative_error_value(error) == 0.25);
}

/* Pieces of an output are compared one by one: the whole is their sum, not their mean. */
static void parts_add_up(void **state)
{
    float real[3] = {1, 1, 8}, other[3] = {2, 1, 8};
    qn_relative_error whole = {0, 0}, first = {0, 0}, rest = {0, 0};
    (void)state;
    const qn_tensor x = row(QN_FLOAT32, real, 3), y = row(QN_FLOAT32, other, 3);
    const qn_tensor x1 = row(QN_FLOAT32, real, 1), y1 = row(QN_FLOAT32, other, 1);
    const qn_tensor x2 = row(QN_FLOAT32, real + 1, 2), y2 = row(QN_FLOAT32, other + 1, 2);
    qn_relative_error_add(&whole, &x, &y, 1);
    qn_relative_error_add(&first, &x1, &y1, 1);
    qn_relative_error_add(&rest, &x2, &y2, 1);
    qn_relative_error_merge(&first, rest);
    assert_true(fabs(qn_relative_error_value(first) - 0.1) < 1e-15);
    assert_true(qn_relative_error_value(first) == qn_relative_error_value(whole));
}

static void nothing_is_no_number(void **state)
{
    float zeros[2] = {0, 0}, bad[2] = {1, NAN};
    qn_relative_error none = {0, 0}, wrong = {0, 0};
    (void)state;
    const qn_tensor x = row(QN_FLOAT32, zeros, 2), y = row(QN_FLOAT32, bad, 2);
    qn_relative_error_add(&none, &x, &x, 1);
    assert_true(isnan(qn_relative_error_value(none)));
    qn_relative_error_add(&wrong, &y, &x, 1);
    assert_true(isnan(qn_relative_error_value(wrong)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_all_elements_count),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(nothing_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
