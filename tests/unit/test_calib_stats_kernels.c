/* The counting kernels of every instruction set that this machine has, beside the plain ones: the
 * same bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "calib/stats_kernels.h"

enum { N = QN_STATS_BLOCK };

static const qn_stats_kernels *kernels[2];
static int n_kernels;

static uint32_t state = 1;
static uint32_t draw(void)
{
    state = state * UINT32_C(1664525) + UINT32_C(1013904223);
    return state >> 8;
}

/* Numbers of both signs below 4, zeros of both, and some that are too small to be normal. */
static float number(void)
{
    const float x = ldexpf((float)draw(), -22) * (draw() & 64 ? 1.0f : -1.0f);
    switch (draw() % 8) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return ldexpf(x, -140);
    default: return x;
    }
}

static void folding(void **unused)
{
    static float x[N];
    (void)unused;
    for (int lanes = 1; lanes <= QN_STATS_LANES; lanes++) {
        for (int rows = 1; rows < 12; rows++) {
            const int stride = lanes + rows % 3;
            qn_stats_sums plain = {.largest = 0};
            for (int l = 0; l < QN_STATS_LANES; l++) {
                plain.min[l] = INFINITY;
                plain.max[l] = -INFINITY;
                plain.sum[l] = l;
            }
            const qn_stats_sums start = plain;
            for (int i = 0; i < rows * stride; i++)
                x[i] = number();
            qn_stats_kernels_base.fold(&plain, x, rows, stride, lanes);
            for (int k = 0; k < n_kernels; k++) {
                qn_stats_sums sums = start;
                kernels[k]->fold(&sums, x, rows, stride, lanes);
                for (int l = 0; l < QN_STATS_LANES; l++) {
                    assert_true(sums.min[l] == plain.min[l]); /* of zeros, either */
                    assert_true(sums.max[l] == plain.max[l]);
                }
                assert_memory_equal(sums.sum, plain.sum, sizeof sums.sum);
                assert_memory_equal(sums.square, plain.square, sizeof sums.square);
                assert_int_equal(sums.largest, plain.largest);
            }
        }
    }
}

static void total(uint32_t *to, const qn_stats_bin *bins)
{
    for (int b = 0; b < QN_STATS_BINS; b++) {
        to[b] = 0;
        for (int t = 0; t < QN_STATS_COUNTERS; t++)
            to[b] += bins[b].counter[t];
    }
}

static void counting(void **unused)
{
    static float x[N];
    static uint32_t wanted[QN_STATS_BINS], got[QN_STATS_BINS];
    (void)unused;
    for (int n = 1; n <= N; n += n < 40 ? 1 : 507) {
        qn_stats_bin *bins = calloc(QN_STATS_BINS, sizeof *bins);
        assert_non_null(bins);
        for (int i = 0; i < n; i++)
            x[i] = number();
        const int64_t found = qn_stats_kernels_base.count(bins, x, n, 1024);
        total(wanted, bins);
        for (int k = 0; k < n_kernels; k++) {
            memset(bins, 0, QN_STATS_BINS * sizeof *bins);
            assert_int_equal(kernels[k]->count(bins, x, n, 1024), found);
            total(got, bins);
            assert_memory_equal(got, wanted, sizeof got);
        }
        free(bins);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding),
        cmocka_unit_test(counting),
    };
#if QN_X86
    if (qn_cpu_isa() >= QN_ISA_AVX2)
        kernels[n_kernels++] = &qn_stats_kernels_avx2;
    if (qn_cpu_isa() >= QN_ISA_AVX512)
        kernels[n_kernels++] = &qn_stats_kernels_avx512;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
