/* DFT and STFT of all kinds of lengths, against the sum that defines them. */
#include "ops_test.h"

#define TEST(name) static void name(void **state)

enum { MOST = 2100, LINES = 3 };

/* One, prime and square lengths, products of small factors, primes too large for a factor, and
 * twice those. */
static const int64_t lengths[] = {1,  2,  3,  4,  5,   6,   7,   8,   9,   12,  16,   25,   36,
                                  61, 67, 71, 97, 128, 134, 210, 400, 512, 961, 1000, 1009, 2048};

static double sample_of(int64_t i)
{
    return (double)(float)sin(0.7 * (double)i + 0.001 * (double)(i * i % 977));
}

/* `count` elements that are `step` numbers apart, imaginary parts next to them where `complex`. */
typedef struct line {
    const double *x;
    int64_t step, count, length;
    bool complex, inverse;
} line;

/* Bin k. */
static void sum_of(double *out, const line *l, int64_t k)
{
    long double re = 0, im = 0;
    for (int64_t j = 0; j < l->count; j++) {
        const long double turns = (long double)(j * k % l->length) / (long double)l->length;
        const long double angle = (l->inverse ? 2 : -2) * acosl(-1) * turns;
        const long double a = l->x[j * l->step], b = l->complex ? l->x[j * l->step + 1] : 0;
        re += a * cosl(angle) - b * sinl(angle);
        im += a * sinl(angle) + b * cosl(angle);
    }
    const long double whole = l->inverse ? (long double)l->length : 1;
    out[0] = (double)(re / whole);
    out[1] = (double)(im / whole);
}

static void expect_near(double got, double wanted, int64_t length)
{
    if (!(fabs(got - wanted) <= 1e-13 * sqrt((double)length)))
        fail_msg("length %d: %.17g instead of %.17g", (int)length, got, wanted);
}

/* [LINES, n, 1 or 2] along axis 1, of doubles, so that what differs can be seen. */
static void dft_case(int64_t n, int64_t parts, bool inverse, int64_t length)
{
    void *state;
    static double x[LINES * MOST * 2];
    bench_setup(&state);
    bench *b = state;
    for (int64_t i = 0; i < LINES * n * parts; i++)
        x[i] = sample_of(i);
    bench_node(b, &qn_op_DFT, 3, 1);
    ATTR(b, int64_t, "inverse", 20) = inverse;
    bench_feed(b, 0, numbers(b, QN_FLOAT64, DIMS(LINES, n, parts), x));
    bench_constant(b, 1, numbers(b, QN_INT64, SCALAR, VALUES((double)length)));
    bench_constant(b, 2, numbers(b, QN_INT64, SCALAR, VALUES(1)));
    bench_run(b);
    const double *got = b->out[0]->data;
    assert_int_equal(qn_tensor_count(b->out[0]), LINES * length * 2);
    for (int64_t i = 0; i < LINES; i++) {
        const line l = {.x = x + i * n * parts,
                        .step = parts,
                        .count = QN_MIN(n, length),
                        .length = length,
                        .complex = parts == 2,
                        .inverse = inverse};
        for (int64_t k = 0; k < length; k += 1 + length / 50) {
            double wanted[2];
            sum_of(wanted, &l, k);
            for (int part = 0; part < 2; part++)
                expect_near(got[(i * length + k) * 2 + part], wanted[part], length);
        }
    }
    bench_teardown(&state);
}

TEST(transforms_of_all_lengths)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(lengths); i++) {
        dft_case(lengths[i], 1 + (int64_t)(i % 2), false, lengths[i]);
        dft_case(lengths[i], 2 - (int64_t)(i % 2), true, lengths[i]);
    }
}

TEST(lines_are_cut_and_filled_up)
{
    (void)state;
    dft_case(10, 2, false, 7);
    dft_case(10, 1, false, 67);
    dft_case(100, 2, true, 71);
    dft_case(7, 2, true, 24);
}

/* Half a spectrum becomes the signal that it came from, whatever axis it lies along. */
TEST(half_a_spectrum_and_back)
{
    static const int64_t sizes[] = {1, 2, 3, 8, 15, 67, 134};
    (void)state;
    for (size_t s = 0; s < QN_COUNT_OF(sizes); s++) {
        const int64_t n = sizes[s];
        void *one, *two;
        double x[2 * 134 * 3];
        for (int64_t i = 0; i < 2 * n * 3; i++)
            x[i] = sample_of(i);
        bench_setup(&one);
        bench *there = one;
        bench_node(there, &qn_op_DFT, 3, 1);
        ATTR(there, int64_t, "onesided", 20) = 1;
        bench_feed(there, 0, numbers(there, QN_FLOAT64, DIMS(2, n, 3, 1), x));
        bench_constant(there, 2, numbers(there, QN_INT64, SCALAR, VALUES(1)));
        bench_run(there);
        assert_int_equal(there->out[0]->dims[1], n / 2 + 1);
        bench_setup(&two);
        bench *back = two;
        bench_node(back, &qn_op_DFT, 3, 1);
        ATTR(back, int64_t, "onesided", 20) = 1;
        ATTR(back, int64_t, "inverse", 20) = 1;
        bench_feed(back, 0, there->out[0]);
        bench_constant(back, 1, numbers(back, QN_INT64, SCALAR, VALUES((double)n)));
        bench_constant(back, 2, numbers(back, QN_INT64, SCALAR, VALUES(1)));
        bench_run(back);
        assert_int_equal(qn_tensor_count(back->out[0]), 2 * n * 3);
        for (int64_t i = 0; i < 2 * n * 3; i++)
            expect_near(((const double *)back->out[0]->data)[i], x[i], n);
        bench_teardown(&two);
        bench_teardown(&one);
    }
}

TEST(frames_under_a_window)
{
    enum { BATCH = 2, LONG = 100, FRAME = 30, STEP = 7, BINS = FRAME / 2 + 1 };
    bench *b = *state;
    double x[BATCH * LONG], window[FRAME], frame[FRAME];
    for (int64_t i = 0; i < BATCH * LONG; i++)
        x[i] = sample_of(i);
    for (int64_t i = 0; i < FRAME; i++)
        window[i] = 0.5 + sample_of(3 * i);
    bench_node(b, &qn_op_STFT, 3, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT64, DIMS(BATCH, LONG, 1), x));
    bench_constant(b, 1, numbers(b, QN_INT64, SCALAR, VALUES(STEP)));
    bench_constant(b, 2, numbers(b, QN_FLOAT64, DIMS(FRAME), window));
    bench_run(b);
    const line l = {.x = frame, .step = 1, .count = FRAME, .length = FRAME};
    const int64_t frames = (LONG - FRAME) / STEP + 1;
    assert_int_equal(b->out[0]->dims[1], frames);
    assert_int_equal(b->out[0]->dims[2], BINS);
    for (int64_t i = 0; i < BATCH * frames * BINS; i++) {
        const double *start = x + i / BINS / frames * LONG + i / BINS % frames * STEP;
        double wanted[2];
        for (int64_t k = 0; k < FRAME; k++)
            frame[k] = window[k] * start[k];
        sum_of(wanted, &l, i % BINS);
        for (int part = 0; part < 2; part++)
            expect_near(((const double *)b->out[0]->data)[2 * i + part], wanted[part], FRAME);
    }
}

/* Nothing to transform, by a length whose roots no memory holds. */
TEST(no_line_has_any_length)
{
    bench *b = *state;
    bench_node(b, &qn_op_DFT, 3, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(0, 4, 1), NULL));
    bench_constant(b, 1, numbers(b, QN_INT64, SCALAR, VALUES(0x1p50)));
    bench_constant(b, 2, numbers(b, QN_INT64, SCALAR, VALUES(1)));
    bench_run(b);
    assert_int_equal(qn_tensor_count(b->out[0]), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {cmocka_unit_test(transforms_of_all_lengths),
                                       cmocka_unit_test(lines_are_cut_and_filled_up),
                                       cmocka_unit_test(half_a_spectrum_and_back),
                                       T(frames_under_a_window), T(no_line_has_any_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
