/* The measures of a comparison, against numbers worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/errors.h"

static void near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-12 * fmax(1, fabs(wanted))))
        fail_msg("%.17g instead of %.17g", got, wanted);
}

/* d = 0.5, 0, -1, 2: sums 3.5, 0.25 + 1 + 4; left 10, 30.. */
static void by_hand(void **state)
{
    (void)state;
    const double left[] = {1, 2, -3, 4}, right[] = {1.5, 2, -4, 6};
    qn_errors e = {.count = 0};
    qn_errors_add(&e, left, right, 2);
    qn_errors_add(&e, left + 2, right + 2, 2);
    near(qn_errors_mre(&e), 0.35);
    near(qn_errors_rmse(&e), sqrt(5.25 / 30));
    near(qn_errors_cos(&e), 0.5 + 0.5 * (1.5 + 4 + 12 + 24) / sqrt(30 * (2.25 + 4 + 16 + 36)));
    near(qn_errors_maxdiff(&e), 0.5);
    near(e.largest, 2);
    near(qn_errors_above(&e), 0.5);
    near(qn_errors_below(&e), 0.25);
    assert_int_equal(e.worst, 3);
    near(e.least[0], -3);
    near(e.most[1], 6);
}

static void same_numbers(void **state)
{
    (void)state;
    const double x[] = {0.1, -7, 3};
    qn_errors e = {.count = 0};
    qn_errors_add(&e, x, x, 3);
    near(qn_errors_mre(&e), 0);
    near(qn_errors_rmse(&e), 0);
    near(qn_errors_cos(&e), 1);
    near(qn_errors_above(&e), 0);
}

static void nothing_to_relate_to(void **state)
{
    (void)state;
    const double zero[] = {0, 0}, other[] = {1, -1};
    qn_errors e = {.count = 0}, both = {.count = 0}, none = {.count = 0};
    qn_errors_add(&e, zero, other, 2);
    assert_true(isinf(qn_errors_mre(&e)) && isinf(qn_errors_rmse(&e)));
    near(qn_errors_cos(&e), 0.5);
    qn_errors_add(&both, zero, zero, 2);
    near(qn_errors_mre(&both), 0);
    near(qn_errors_cos(&both), 1);
    near(qn_errors_above(&none), 0);
}

static void turned_round(void **state)
{
    (void)state;
    const double left[] = {1, 2}, right[] = {-1, -2};
    qn_errors e = {.count = 0};
    qn_errors_add(&e, left, right, 2);
    near(qn_errors_cos(&e), 0);
    near(qn_errors_rmse(&e), 2);
}

static void what_is_no_number(void **state)
{
    (void)state;
    const double left[] = {1, NAN, 2, INFINITY}, right[] = {1, 1, NAN, 3};
    qn_errors e = {.count = 0};
    qn_errors_add(&e, left, right, 4);
    assert_int_equal(e.bad, 3);
    assert_int_equal(e.count, 1);
    near(qn_errors_mre(&e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),           cmocka_unit_test(same_numbers),
        cmocka_unit_test(turned_round),      cmocka_unit_test(nothing_to_relate_to),
        cmocka_unit_test(what_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
