/* Kernels that choose and copy elements, where they take rows and parts instead of single ones. */
#include "ops_test.h"

#define TEST(name) static void name(void **state)

enum { LONG = 400, LANES = 3, CHOSEN = 7 };

/* The place of the best that has not been taken; of equal ones the first. NaN is the largest. */
static int64_t best_of(const qn_tensor *x, int64_t lane, bool largest, bool *taken)
{
    int64_t best = -1;
    double most = 0;
    for (int64_t d = 0; d < LONG; d++) {
        const double number = qn_tensor_f64(x, d * LANES + lane);
        const double rank = (isnan(number) ? (double)INFINITY : number) * (largest ? 1 : -1);
        if (taken[d] || (best >= 0 && rank <= most))
            continue;
        best = d;
        most = rank;
    }
    taken[best] = true;
    return best;
}

static void topk_case(bench *b, qn_dtype dtype, bool largest)
{
    double values[LONG * LANES];
    for (int64_t i = 0; i < LONG * LANES; i++)
        values[i] = i * 7919 % 101 == 5 && dtype == QN_FLOAT32 ? (double)NAN : i * 7919 % 101 - 50;
    bench_node(b, &qn_op_TopK, 2, 2);
    ATTR(b, int64_t, "axis", 13) = 0;
    ATTR(b, int64_t, "largest", 13) = largest;
    const qn_tensor *x = numbers(b, dtype, DIMS(LONG, LANES), values);
    bench_feed(b, 0, x);
    bench_constant(b, 1, numbers(b, QN_INT64, DIMS(1), VALUES(CHOSEN)));
    bench_run(b);
    for (int64_t lane = 0; lane < LANES; lane++) {
        bool taken[LONG] = {false};
        for (int64_t d = 0; d < CHOSEN; d++)
            assert_int_equal(((const int64_t *)b->out[1]->data)[d * LANES + lane],
                             best_of(x, lane, largest, taken));
    }
}

TEST(the_few_largest)
{
    topk_case(*state, QN_FLOAT32, true);
}

TEST(the_few_smallest)
{
    topk_case(*state, QN_FLOAT32, false);
}

TEST(the_few_largest_integers)
{
    topk_case(*state, QN_INT64, true);
}

/* Rows that are cut at one end and grow at the other, shorter than their borders. */
TEST(borders_longer_than_rows)
{
    bench *b = *state;
    bench_node(b, &qn_op_Pad, 2, 1);
    ATTR(b, int64_t, "mode", 21) = 3; /* wrap */
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 3), VALUES(1, 2, 3)));
    bench_constant(b, 1, numbers(b, QN_INT64, DIMS(4), VALUES(0, -1, 1, 5)));
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2, 7), VALUES(2, 3, 1, 2, 3, 1, 2, 2, 3, 1, 2, 3, 1, 2));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {T(the_few_largest), T(the_few_smallest),
                                       T(the_few_largest_integers), T(borders_longer_than_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
