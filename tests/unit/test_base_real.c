/* The functions of base/real.h beside those of the C library. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/real.h"

static double sigmoid(double x)
{
    const double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

typedef double function(double x);
typedef struct subject {
    const char *name;
    function *ours, *theirs;
    /* Where they are compared */
    double low, high;
} subject;

static const subject subjects[] = {
    {"exp", qn_real_exp, exp, -700, 709.7},
    {"exp", qn_real_exp, exp, -1, 1},
    {"expm1", qn_real_expm1, expm1, -5, 5},
    {"log", qn_real_log, log, 1e-3, 1e3},
    {"log1p", qn_real_log1p, log1p, -0.99, 10},
    {"tanh", qn_real_tanh, tanh, -25, 25},
    {"tanh", qn_real_tanh, tanh, -0.6, 0.6},
    {"erf", qn_real_erf, erf, -7, 7},
    {"erf", qn_real_erf, erf, -0.1, 0.1},
    {"sigmoid", qn_real_sigmoid, sigmoid, -100, 100},
    {"softplus", qn_real_softplus, softplus, -100, 100},
};

static void test_agree(void **state)
{
    enum { POINTS = 20000 };
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const subject *s = &subjects[i];
        for (int k = 0; k <= POINTS; k++) {
            const double x = s->low + (s->high - s->low) * k / POINTS;
            const double y = s->ours(x), wanted = s->theirs(x);
            if (!(fabs(y - wanted) <= 2e-15 * fabs(wanted)))
                fail_msg("%s(%.17g) is %.17g instead of %.17g", s->name, x, y, wanted);
        }
    }
}

static void test_special(void **state)
{
    static const double special[] = {
        0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 1e-320, -1, 1e300, -1e300};
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        for (size_t k = 0; k < sizeof special / sizeof *special; k++) {
            const double x = special[k], y = subjects[i].ours(x), wanted = subjects[i].theirs(x);
            const double error = fabs(y - wanted), bound = 1e-15 * fabs(wanted);
            if (!(y == wanted || (isnan(y) && isnan(wanted)) || error <= bound))
                fail_msg("%s(%g) is %g instead of %g", subjects[i].name, x, y, wanted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agree),
                                       cmocka_unit_test(test_special)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
