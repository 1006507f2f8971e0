/* The table of widths: what its rows say of each other and of the types that store them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/width.h"

static void test_integers_fit_their_types(void **state)
{
    (void)state;
    for (int i = 0; i < QN_WIDTHS; i++) {
        const qn_width *w = &qn_widths[i];
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            const int64_t ends[2] = {qn_width_least(w, is_signed), qn_width_greatest(w, is_signed)};
            const qn_dtype dtype = qn_width_type(w, is_signed);
            for (int e = 0; e < 2; e++) {
                char stored[8] = {0};
                int64_t read = 0;
                qn_store_i64(stored, dtype, 0, &ends[e], 1);
                qn_load_i64(&read, dtype, stored, 0, 1);
                assert_int_equal(read, ends[e]);
            }
            assert_int_equal(ends[1] - ends[0] + 1, qn_width_count(w));
        }
        assert_true(w->reduced <= qn_width_greatest(w, true));
    }
}

static void test_widths_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < QN_WIDTHS; i++) {
        assert_int_equal(qn_widths[i].index, i);
        assert_true(i == 0 || qn_widths[i].bits > qn_widths[i - 1].bits);
        assert_ptr_equal(qn_width_of_bits(qn_widths[i].bits), &qn_widths[i]);
    }
    assert_ptr_equal(qn_width_of(QN_UINT16), &qn_widths[QN_WIDTH_16]);
    assert_ptr_equal(qn_width_of(QN_INT4), &qn_widths[QN_WIDTH_4]);
    assert_null(qn_width_of(QN_INT32));
    assert_null(qn_width_of_bits(0));
}

static void test_those_without_kernels_are_refused(void **state)
{
    char list[64], tiny[4];
    (void)state;
    assert_true(qn_width_is_computed(8) && qn_width_is_computed(16));
    assert_false(qn_width_is_computed(4) || qn_width_is_computed(12) || qn_width_is_computed(0));
    qn_width_list(list, sizeof list);
    assert_string_equal(list, "8 or 16");
    qn_width_list(tiny, sizeof tiny);
    assert_string_equal(tiny, "8 o");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_fit_their_types),
        cmocka_unit_test(test_widths_are_found),
        cmocka_unit_test(test_those_without_kernels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
