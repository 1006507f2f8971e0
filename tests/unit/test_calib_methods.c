/* Ranges of known distributions, and where the classical entropy search goes wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calib/calib.h"

enum { N = 40000 };

typedef struct bench {
    qn_context *ctx;
    qn_accumulator *accumulator;
    qn_stats *stats;
    const qn_stats_entry *entry;
    float x[N];
} bench;

static uint64_t state;
static double uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(state >> 12) + 0.5) * 0x1p-52;
}
static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static void look(bench *b)
{
    qn_stats_entry *entry;
    const qn_tensor tensor = {QN_FLOAT32, 1, {N}, b->x};
    const qn_observation seen = {NULL, &tensor, QN_ROWS, 4};
    assert_int_equal(qn_context_create(&b->ctx, NULL), QN_OK);
    assert_int_equal(qn_accumulator_create(&b->accumulator, b->ctx), QN_OK);
    assert_int_equal(qn_stats_create(&b->stats, b->ctx), QN_OK);
    assert_int_equal(qn_stats_entry_get(&entry, b->stats, "x", -1), QN_OK);
    assert_int_equal(qn_entry_add(entry, b->accumulator, &seen), QN_OK);
    b->entry = entry;
}

static void forget(bench *b)
{
    qn_stats_free(b->stats);
    qn_accumulator_free(b->accumulator);
    qn_context_free(b->ctx);
}

static qn_range range(const bench *b, const char *name, int bits, bool symmetric)
{
    const qn_range_options options = {bits, symmetric, 0.999};
    const qn_method *method;
    qn_range r;
    assert_int_equal(qn_method_find(&method, b->ctx, name), QN_OK);
    assert_int_equal(qn_stats_range(&r, b->ctx, b->entry, method, &options), QN_OK);
    assert_true(r.min <= 0 && r.max >= 0);
    assert_true(!symmetric || r.min == -r.max);
    return r;
}

/* Mean squared error of quantizing the numbers themselves. */
static double error_of(const bench *b, qn_range r, int bits)
{
    const double levels = ldexp(1, bits), step = ((double)r.max - r.min) / (levels - 1);
    const double zero = rint(-r.min / step);
    double sum = 0;
    for (int i = 0; i < N; i++) {
        const double q = fmin(levels - 1, fmax(0, rint(b->x[i] / step) + zero));
        sum += pow(b->x[i] - (q - zero) * step, 2);
    }
    return sum / N;
}

/* No method clips so that it costs much more than the best range does. */
static void assert_sensible(const bench *b, const char *name, double times)
{
    const double least = error_of(b, range(b, "mse", 8, false), 8);
    const double own = error_of(b, range(b, name, 8, false), 8);
    if (own > times * least)
        fail_msg("%s has %g times the least error", name, own / least);
}

static void gaussian(void **unused)
{
    bench b;
    (void)unused;
    state = 7;
    for (int i = 0; i < N; i++)
        b.x[i] = (float)normal();
    look(&b);
    qn_range r = range(&b, "min_max", 8, false);
    assert_true(r.min == b.entry->min && r.max == b.entry->max);
    r = range(&b, "percentile", 8, true); /* 0.999 inside: 3.29 sigma */
    assert_true(fabsf(r.max - 3.29f) < 0.12f);
    r = range(&b, "mse", 4, true); /* the best 15 levels of a normal end near 2.5 sigma */
    assert_true(r.max > 2.2f && r.max < 2.9f);
    for (int bits = 3; bits <= 8; bits++) { /* nothing near it is better */
        const qn_range best = range(&b, "mse", bits, false);
        const double least = error_of(&b, best, bits);
        for (double f = 0.8; f < 1.25; f += 0.05) {
            const qn_range near = {(float)(best.min * f), (float)(best.max * f)};
            assert_true(error_of(&b, near, bits) > 0.97 * least);
        }
    }
    assert_sensible(&b, "kl_v2", 3);
    r = range(&b, "kl", 16, false); /* levels enough for every bin: nothing to clip */
    assert_true(r.max == b.entry->max);
    forget(&b);
}

/* Seven of eight elements are exact zeros, the others one-sided. */
static void after_relu(void **unused)
{
    bench b;
    (void)unused;
    state = 8;
    for (int i = 0; i < N; i++)
        b.x[i] = i % 8 ? 0 : (float)fabs(normal());
    look(&b);
    const qn_range v2 = range(&b, "kl_v2", 8, false), kl = range(&b, "kl", 8, false);
    assert_true(v2.min == 0 && kl.min == 0);
    assert_true(v2.max > 2.5f);
    assert_sensible(&b, "kl_v2", 2.5);
    forget(&b);
}

/* 1, 2, ..., 16, the larger the rarer: the classical search clips them, which helps nobody. */
static void few_values(void **unused)
{
    bench b;
    (void)unused;
    state = 9;
    for (int i = 0; i < N; i++)
        b.x[i] = (float)fmin(16, 1 + floor(-2 * log(uniform())));
    look(&b);
    assert_true(range(&b, "kl_v2", 8, false).max == 16);
    assert_true(range(&b, "kl_v2", 8, true).max == 16);
    forget(&b);
}

/* One element a hundred times as far as all the others. */
static void far_outlier(void **unused)
{
    bench b;
    (void)unused;
    state = 10;
    for (int i = 0; i < N; i++)
        b.x[i] = (float)normal();
    b.x[17] = 400;
    look(&b);
    const float kl = range(&b, "kl", 8, false).max, v2 = range(&b, "kl_v2", 8, false).max;
    assert_true(kl > 10); /* 128 of 2,048 bins at least: most levels stay empty */
    assert_true(v2 > 2.5f && v2 < 8);
    assert_true(range(&b, "kl_v2", 8, true).max < 8);
    forget(&b);
}

/* As behind a sigmoid whose input is small: all lie around 0.5 but one, which alone tells what is
 * cut off behind it. */
static void narrow_hill(void **unused)
{
    bench b;
    (void)unused;
    state = 12;
    for (int i = 0; i < N; i++)
        b.x[i] = (float)(0.5 + 0.01 * normal());
    b.x[17] = 0.18f;
    look(&b);
    assert_true(range(&b, "kl", 8, false).max > 0.5f);
    assert_true(range(&b, "kl", 8, true).max > 0.5f);
    forget(&b);
}

static void zeros_and_constants(void **unused)
{
    bench b;
    (void)unused;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < N; i++)
            b.x[i] = k ? -2.5f : 0;
        look(&b);
        for (size_t m = 0; m < qn_methods_count; m++) {
            const qn_range r = range(&b, qn_methods[m]->name, 8, false);
            assert_true(r.max == 0 && r.min == (k ? -2.5f : 0));
        }
        forget(&b);
    }
}

static void wrong_options(void **unused)
{
    bench b;
    qn_range r;
    const qn_method *method;
    const qn_range_options bits = {1, false, 0.9}, share = {8, false, 1.5};
    (void)unused;
    for (int i = 0; i < N; i++)
        b.x[i] = (float)i;
    look(&b);
    assert_int_equal(qn_stats_range(&r, b.ctx, b.entry, qn_methods[0], &bits), QN_E_INVALID);
    assert_int_equal(qn_stats_range(&r, b.ctx, b.entry, qn_methods[0], &share), QN_E_INVALID);
    assert_int_equal(qn_method_find(&method, b.ctx, "klv2"), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(b.ctx), "kl_v2"));
    forget(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaussian),      cmocka_unit_test(after_relu),
        cmocka_unit_test(few_values),    cmocka_unit_test(far_outlier),
        cmocka_unit_test(narrow_hill),   cmocka_unit_test(zeros_and_constants),
        cmocka_unit_test(wrong_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
