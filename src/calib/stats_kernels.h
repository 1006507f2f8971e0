/* The inner loops of qn_entry_add, compiled for each instruction set. All give the same bits. */
#ifndef QN_STATS_KERNELS_H
#define QN_STATS_KERNELS_H

#include "calib/calib.h"

enum {
    QN_STATS_LANES = 16,
    QN_STATS_COUNTERS = 4,
    /* Of both signs */
    QN_STATS_BINS = 2 * QN_HISTOGRAM_BINS,
    /* Elements that are folded, then counted */
    QN_STATS_BLOCK = 4096
};

/* Counters that take turns: neighbours are often equal, and wait otherwise. They stand together,
 * since bins beside each other are in use, and what is in use should fill the first cache
 * evenly. */
typedef struct qn_stats_bin {
    uint32_t counter[QN_STATS_COUNTERS];
} qn_stats_bin;

/* Extremes, sums and sums of squares of up to QN_STATS_LANES channels. */
typedef struct qn_stats_sums {
    float min[QN_STATS_LANES], max[QN_STATS_LANES];
    double sum[QN_STATS_LANES], square[QN_STATS_LANES];
    /* Bits of the largest |x|: from those of infinity on it is none */
    uint32_t largest;
} qn_stats_sums;

typedef struct qn_stats_kernels {
    /* Takes in x[r * stride + l] for r < rows, l < lanes; rows * lanes <= QN_STATS_BLOCK. */
    void (*fold)(qn_stats_sums *to, const float *x, int64_t rows, int64_t stride, int64_t lanes);
    /* Counts the elements that are not 0 at floor(|x| * scale), from QN_HISTOGRAM_BINS on where x <
     * 0, by any of a bin's counters. Returns how many. */
    int64_t (*count)(qn_stats_bin *bins, const float *x, int64_t n, float scale);
} qn_stats_kernels;

const qn_stats_kernels *qn_stats_kernels_get(void);
extern const qn_stats_kernels qn_stats_kernels_base;
extern const qn_stats_kernels qn_stats_kernels_avx2;
extern const qn_stats_kernels qn_stats_kernels_avx512;

#endif
