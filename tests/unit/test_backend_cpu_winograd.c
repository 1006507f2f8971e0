/* Which convolutions of integers take Winograd's form: by size, channels and largest sum of
 * weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/cpu/int/conv/q_winograd.h"

/* A map of size x size pixels and 3x3 kernels. */
static bool is_winograd(int64_t size, int64_t channels, int64_t filters, int64_t largest)
{
    qn_q_conv c = qn_q_conv_of_rows(size, channels, filters);
    c.shape.grid.height = c.shape.grid.out_height = size;
    c.shape.grid.kernel[0] = c.shape.grid.kernel[1] = 3;
    c.weight_info.largest = largest;
    c.plan.kernels = &qn_int8_mac_kernels_base;
    return qn_q_winograd_wanted(&c);
}

static void test_rule(void **state)
{
    (void)state;
    assert_true(is_winograd(56, 64, 64, 10000));
    assert_true(is_winograd(32, 16, 16, 10000));
    assert_true(is_winograd(14, 256, 256, 10000));
    assert_false(is_winograd(7, 512, 512, 10000)); /* weights for a few tiles */
    assert_false(is_winograd(56, 64, 64, 131587)); /* 255 * this >= 2^25 */
    assert_true(is_winograd(56, 64, 64, 131586));
    assert_false(is_winograd(56, 3, 64, 1000));  /* the first layer */
    assert_false(is_winograd(2, 64, 64, 10000)); /* a corner of a tile */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
