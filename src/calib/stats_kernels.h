/* The inner loops of qn_entry_add, compiled for each instruction set. All give the same bits. */
#ifndef QN_STATS_KERNELS_H
#define QN_STATS_KERNELS_H

#include "calib/calib.h"

enum {
    QN_STATS_LANES = 16,
    QN_STATS_COUNTERS = 4,
    /* The bins of both signs. */
    QN_STATS_BINS = 2 * QN_HISTOGRAM_BINS,
    /* The number of elements that are reduced and then counted while they are in the first-level
     * cache. */
    QN_STATS_BLOCK = 4096
};

/* One bin with several counters that take turns: neighbouring elements often fall into the same
 * bin, and increments of one counter would wait for each other. The counters of a bin are adjacent,
 * since bins in use are neighbours and should fill the first-level cache evenly. */
typedef struct qn_stats_bin {
    uint32_t counter[QN_STATS_COUNTERS];
} qn_stats_bin;

/* Extremes, sums and sums of squares of up to QN_STATS_LANES channels. */
typedef struct qn_stats_sums {
    float min[QN_STATS_LANES], max[QN_STATS_LANES];
    double sum[QN_STATS_LANES], square[QN_STATS_LANES];
    /* The bits of the largest |x|; from those of infinity on an element was not finite. */
    uint32_t largest;
} qn_stats_sums;

typedef struct qn_stats_kernels {
    /* Adds x[r * stride + l] for r < rows and l < lanes; rows * lanes <= QN_STATS_BLOCK. */
    void (*fold)(qn_stats_sums *to, const float *x, int64_t rows, int64_t stride, int64_t lanes);
    /* Counts each element that is not 0 in bin floor(|x| * scale), plus QN_HISTOGRAM_BINS where x <
     * 0, by any counter of the bin. Returns their number. */
    int64_t (*count)(qn_stats_bin *bins, const float *x, int64_t n, float scale);
} qn_stats_kernels;

const qn_stats_kernels *qn_stats_kernels_get(void);
extern const qn_stats_kernels qn_stats_kernels_base;
extern const qn_stats_kernels qn_stats_kernels_avx2;
extern const qn_stats_kernels qn_stats_kernels_avx512;

#endif
