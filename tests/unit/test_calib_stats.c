/* Histograms, sums and files: the same whatever the order, the parts and the layout. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calib/byte_stream.h"
#include "calib/histogram.h"

static uint64_t state = 1;
static float uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(state >> 40) * 0x1p-24f;
}

static qn_context *context(void)
{
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    return ctx;
}

static void add(qn_stats *stats, qn_accumulator *accumulator, const float *x, const int64_t *dims,
                qn_layout layout)
{
    qn_stats_entry *entry;
    qn_tensor tensor = {.dtype = QN_FLOAT32, .rank = 4, .data = (void *)(uintptr_t)x};
    size_t bytes = 0;
    memcpy(tensor.dims, dims, 4 * sizeof *dims);
    assert_true(qn_layout_bytes(&bytes, layout, &tensor));
    const qn_observation seen = {NULL, &tensor, layout, bytes / (size_t)dims[0]};
    assert_int_equal(qn_stats_entry_get(&entry, stats, "x", 1), QN_OK);
    assert_int_equal(qn_entry_add(entry, accumulator, &seen), QN_OK);
    stats->samples++;
}

static char *bytes_of(qn_stats *stats, size_t *size)
{
    qn_text text;
    char *bytes;
    qn_text_init(&text, stats->ctx);
    qn_stats_sort(stats);
    qn_text_add(&text, "qnstats2", QN_MAGIC);
    qn_put_stats(&text, stats);
    qn_put_checksum(&text);
    *size = text.length;
    assert_int_equal(qn_text_take(&bytes, &text), QN_OK);
    return bytes;
}

static void assert_same(qn_stats *a, qn_stats *b)
{
    size_t na, nb;
    char *x = bytes_of(a, &na), *y = bytes_of(b, &nb);
    assert_int_equal(na, nb);
    assert_memory_equal(x, y, na);
    qn_text_free(a->ctx, x);
    qn_text_free(b->ctx, y);
}

enum { SAMPLES = 6, C = 21, AREA = 35, COUNT = C * AREA };
static const int64_t dims[4] = {1, C, 5, 7};

/* Sample s is 4^s times as large as the first: histograms widen on the way, or do not. */
static void sample(float *x, int s)
{
    state = (uint64_t)s + 1;
    for (int i = 0; i < COUNT; i++)
        x[i] = i % 3 == 0 ? 0 : (uniform() - 0.25f) * ldexpf(1, 2 * s);
}

static void orders_and_parts(void **unused)
{
    qn_context *ctx = context();
    qn_accumulator *accumulator;
    qn_stats *up, *down, *even, *odd, *merged;
    float x[COUNT];
    (void)unused;
    assert_int_equal(qn_accumulator_create(&accumulator, ctx), QN_OK);
    assert_int_equal(qn_stats_create(&up, ctx), QN_OK);
    assert_int_equal(qn_stats_create(&down, ctx), QN_OK);
    assert_int_equal(qn_stats_create(&even, ctx), QN_OK);
    assert_int_equal(qn_stats_create(&odd, ctx), QN_OK);
    for (int s = 0; s < SAMPLES; s++) {
        sample(x, s);
        add(up, accumulator, x, dims, QN_ROWS);
        add(s % 2 ? odd : even, accumulator, x, dims, QN_ROWS);
        sample(x, SAMPLES - 1 - s);
        add(down, accumulator, x, dims, QN_ROWS);
    }
    const qn_stats *parts[] = {odd, even};
    assert_int_equal(qn_stats_merge(&merged, ctx, parts, 2), QN_OK);
    assert_same(up, down);
    assert_same(up, merged);
    const qn_stats_entry *e = qn_stats_find(up, "x");
    assert_int_equal(e->count, SAMPLES * COUNT);
    assert_int_equal(e->zeros, SAMPLES * COUNT / 3);
    assert_int_equal(e->channels, C);
    uint64_t counted = e->zeros;
    for (int i = 0; i < QN_HISTOGRAM_BINS; i++)
        counted += e->histogram.side[0][i] + e->histogram.side[1][i];
    assert_int_equal(counted, e->count);
    qn_stats_free(up);
    qn_stats_free(down);
    qn_stats_free(even);
    qn_stats_free(odd);
    qn_stats_free(merged);
    qn_accumulator_free(accumulator);
    qn_context_free(ctx);
}

/* Every number in its bin, and sums as plain additions give them. */
static void plain_counting(void **unused)
{
    qn_context *ctx = context();
    qn_accumulator *accumulator;
    qn_stats *stats;
    float x[COUNT];
    double sums[C] = {0};
    (void)unused;
    assert_int_equal(qn_accumulator_create(&accumulator, ctx), QN_OK);
    assert_int_equal(qn_stats_create(&stats, ctx), QN_OK);
    sample(x, 3);
    add(stats, accumulator, x, dims, QN_ROWS);
    const qn_stats_entry *e = qn_stats_find(stats, "x");
    uint64_t want[2][QN_HISTOGRAM_BINS] = {{0}};
    float min = INFINITY, max = -INFINITY;
    for (int i = 0; i < COUNT; i++) {
        const float width = ldexpf(1, e->histogram.exponent);
        if (x[i] != 0)
            want[x[i] < 0][(int)(fabsf(x[i]) / width)]++;
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
        sums[i / AREA] += x[i];
    }
    assert_memory_equal(want[0], e->histogram.side[0], sizeof want[0]);
    assert_memory_equal(want[1], e->histogram.side[1], sizeof want[1]);
    assert_true(e->min == min && e->max == max);
    assert_true(fmaxf(max, -min) / ldexpf(1, e->histogram.exponent) >= QN_HISTOGRAM_BINS / 2);
    for (int c = 0; c < C; c++)
        assert_true(fabs(qn_entry_channel_mean(e, c) - sums[c] / AREA) < 1e-4);
    qn_stats_free(stats);
    qn_accumulator_free(accumulator);
    qn_context_free(ctx);
}

/* The layouts that plans use: the same but for the last digits of float sums. */
static void layouts(void **unused)
{
    static const qn_layout all[] = {
        {QN_LAYOUT_BLOCKED, 8}, {QN_LAYOUT_BLOCKED, 16}, {QN_LAYOUT_CHANNELS_LAST, 0}};
    qn_context *ctx = context();
    qn_accumulator *accumulator;
    float x[COUNT], y[2 * COUNT];
    (void)unused;
    assert_int_equal(qn_accumulator_create(&accumulator, ctx), QN_OK);
    sample(x, 2);
    for (size_t i = 0; i < QN_COUNT_OF(all); i++) {
        qn_stats *rows, *other;
        const qn_tensor shape = {.dtype = QN_FLOAT32, .rank = 4, .dims = {1, C, 5, 7}};
        const qn_laid_out to = {y, all[i], 0}, from = {x, QN_ROWS, 0};
        qn_layout_convert(&to, &from, &shape);
        assert_int_equal(qn_stats_create(&rows, ctx), QN_OK);
        assert_int_equal(qn_stats_create(&other, ctx), QN_OK);
        add(rows, accumulator, x, dims, QN_ROWS);
        add(other, accumulator, y, dims, all[i]);
        const qn_stats_entry *a = qn_stats_find(rows, "x"), *b = qn_stats_find(other, "x");
        assert_int_equal(a->zeros, b->zeros);
        assert_memory_equal(a->histogram.side[0], b->histogram.side[0], 8 * QN_HISTOGRAM_BINS);
        assert_memory_equal(a->channel_min, b->channel_min, C * sizeof(float));
        assert_memory_equal(a->channel_max, b->channel_max, C * sizeof(float));
        for (int c = 0; c < C; c++)
            assert_true(fabs(qn_entry_channel_mean(a, c) - qn_entry_channel_mean(b, c)) < 1e-5);
        for (int c = 0; c < C; c++) {
            double power = 0;
            for (int p = 0; p < AREA; p++)
                power += (double)x[c * AREA + p] * (double)x[c * AREA + p] / AREA;
            assert_true(fabs(qn_entry_channel_power(a, c) - power) < 1e-5 * power);
            assert_true(fabs(qn_entry_channel_power(b, c) - power) < 1e-5 * power);
        }
        qn_stats_free(rows);
        qn_stats_free(other);
    }
    qn_accumulator_free(accumulator);
    qn_context_free(ctx);
}

/* Three threads that divide the channels, and one: the same bytes, however values lie in memory. */
enum { SHARES = 3, WIDE_C = 50, WIDE_SIDE = 24, WIDE = WIDE_C * WIDE_SIDE * WIDE_SIDE };

static void count_shared(qn_accumulator **accumulators, const float *x, qn_layout layout,
                         int32_t axis)
{
    qn_context *ctx = context();
    qn_stats *alone, *merged, *parts[SHARES];
    qn_stats_entry *entries[SHARES], *entry;
    const qn_accumulator_group all = {accumulators, entries, SHARES};
    for (int i = 0; i < SHARES; i++) {
        assert_int_equal(qn_stats_create(&parts[i], ctx), QN_OK);
        assert_int_equal(qn_stats_entry_get(&entries[i], parts[i], "x", axis), QN_OK);
    }
    assert_int_equal(qn_stats_create(&alone, ctx), QN_OK);
    assert_int_equal(qn_stats_entry_get(&entry, alone, "x", axis), QN_OK);
    for (int s = 0; s < 2; s++) {
        qn_tensor tensor = {.dtype = QN_FLOAT32,
                            .rank = 4,
                            .dims = {1, WIDE_C, WIDE_SIDE, WIDE_SIDE},
                            .data = (void *)(uintptr_t)(x + s * 2 * WIDE)};
        const qn_observation seen = {NULL, &tensor, layout, WIDE * sizeof *x};
        assert_int_equal(qn_entry_add_shared(&all, &seen), QN_OK);
        assert_int_equal(qn_entry_add(entry, accumulators[0], &seen), QN_OK);
    }
    assert_int_equal(qn_stats_merge(&merged, ctx, (const qn_stats *const *)parts, SHARES), QN_OK);
    assert_same(alone, merged);
    for (int i = 0; i < SHARES && axis == 1; i++) /* all had something to do */
        assert_non_null(entries[i]->histogram.side[0]);
    for (int i = 0; i < SHARES; i++)
        qn_stats_free(parts[i]);
    qn_stats_free(alone);
    qn_stats_free(merged);
    qn_context_free(ctx);
}

static void shares(void **unused)
{
    static const qn_layout all[] = {
        {QN_LAYOUT_BLOCKED, 8}, {QN_LAYOUT_BLOCKED, 16}, {QN_LAYOUT_CHANNELS_LAST, 0}};
    qn_context *ctx = context();
    qn_accumulator *accumulators[SHARES];
    float *x = calloc(4 * WIDE, sizeof *x), *y = calloc(4 * WIDE, sizeof *y);
    (void)unused;
    assert_true(x && y);
    for (int i = 0; i < SHARES; i++)
        assert_int_equal(qn_accumulator_create(&accumulators[i], ctx), QN_OK);
    for (int i = 0; i < 4 * WIDE; i++) /* the second sample widens the histogram */
        x[i] = i % 5 == 0 ? 0 : (uniform() - 0.25f) * (i < 2 * WIDE ? 1.0f : 9.0f);
    for (int32_t axis = -1; axis < 4; axis++)
        count_shared(accumulators, x, QN_ROWS, axis);
    for (size_t i = 0; i < QN_COUNT_OF(all); i++) {
        for (int s = 0; s < 2; s++) {
            const qn_tensor shape = {
                .dtype = QN_FLOAT32, .rank = 4, .dims = {1, WIDE_C, WIDE_SIDE, WIDE_SIDE}};
            const qn_laid_out to = {y + s * 2 * WIDE, all[i], 0};
            const qn_laid_out from = {x + s * 2 * WIDE, QN_ROWS, 0};
            qn_layout_convert(&to, &from, &shape);
        }
        count_shared(accumulators, y, all[i], 1);
    }
    for (int i = 0; i < SHARES; i++)
        qn_accumulator_free(accumulators[i]);
    free(x);
    free(y);
    qn_context_free(ctx);
}

static void bad_numbers(void **unused)
{
    qn_context *ctx = context();
    qn_accumulator *accumulator;
    qn_stats *stats;
    (void)unused;
    assert_int_equal(qn_accumulator_create(&accumulator, ctx), QN_OK);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        float x[40] = {1, 2};
        qn_stats_entry *entry;
        const qn_tensor tensor = {QN_FLOAT32, 1, {40}, x};
        const qn_observation seen = {NULL, &tensor, QN_ROWS, 4};
        x[37] = bad[i];
        assert_int_equal(qn_stats_create(&stats, ctx), QN_OK);
        assert_int_equal(qn_stats_entry_get(&entry, stats, "hot", -1), QN_OK);
        assert_int_equal(qn_entry_add(entry, accumulator, &seen), QN_E_INVALID);
        assert_non_null(strstr(qn_context_error(ctx), "'hot'"));
        qn_stats_free(stats);
    }
    qn_accumulator_free(accumulator);
    qn_context_free(ctx);
}

static void files(void **unused)
{
    qn_context *ctx = context();
    qn_accumulator *accumulator;
    qn_stats *stats, *back;
    float x[COUNT];
    size_t size;
    (void)unused;
    assert_int_equal(qn_accumulator_create(&accumulator, ctx), QN_OK);
    assert_int_equal(qn_stats_create(&stats, ctx), QN_OK);
    sample(x, 1);
    add(stats, accumulator, x, dims, QN_ROWS);
    stats->model = (qn_fingerprint){{1, 2}};
    char *bytes = bytes_of(stats, &size);
    assert_int_equal(qn_stats_read(&back, ctx, bytes, size, "f"), QN_OK);
    assert_same(stats, back);
    const qn_fingerprint other = {{3, 4}};
    assert_int_equal(qn_stats_check(back, &stats->model, NULL), QN_OK);
    assert_int_equal(qn_stats_check(back, &other, NULL), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(ctx), "another model"));
    assert_int_equal(qn_stats_check(back, &stats->model, &other), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(ctx), "other data"));
    qn_stats_free(back);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(qn_stats_read(&back, ctx, bytes, cut, "f"), QN_E_FORMAT);
    for (size_t i = 0; i < size; i++) { /* every byte is under the seal */
        bytes[i] ^= 4;
        assert_int_equal(qn_stats_read(&back, ctx, bytes, size, "f"), QN_E_FORMAT);
        bytes[i] ^= 4;
    }
    qn_text_free(ctx, bytes);
    qn_stats_free(stats);
    qn_accumulator_free(accumulator);
    qn_context_free(ctx);
}

static void fixed(void **unused)
{
    qn_sum128 a = {0, 0}, b = {0, 0};
    const double xs[] = {1e9, -3.25, 1e-12, -1e9, 7e5, 0.1};
    (void)unused;
    for (int i = 0; i < 6; i++) {
        qn_sum128_add(&a, xs[i]);
        qn_sum128_add(&b, xs[5 - i]);
    }
    assert_true(a.low == b.low && a.high == b.high);
    assert_true(fabs(qn_sum128_value(a) - (7e5 + 0.1 - 3.25 + 1e-12)) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed),       cmocka_unit_test(plain_counting),
        cmocka_unit_test(layouts),     cmocka_unit_test(orders_and_parts),
        cmocka_unit_test(bad_numbers), cmocka_unit_test(files),
        cmocka_unit_test(shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
