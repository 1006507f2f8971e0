/* The inner loops of qn_entry_add, compiled for each instruction set. All give the same bits. */
#ifndef QN_COUNT_H
#define QN_COUNT_H

#include "calib/calib.h"

enum {
    QN_COUNT_LANES = 16,
    QN_COUNT_TURNS = 4,
    QN_COUNT_BINS = 2 * QN_HISTOGRAM_BINS, /* of both signs */
    QN_COUNT_PIECE = 4096                  /* elements that are folded, then counted */
};

/* Counters that take turns: neighbours are often equal, and wait otherwise. They stand together, since bins beside
 * each other are in use, and what is in use should fill the first cache evenly. */
typedef struct qn_count_bin {
    uint32_t turn[QN_COUNT_TURNS];
} qn_count_bin;

/* Extremes, sums and sums of squares of up to QN_COUNT_LANES channels. */
typedef struct qn_count_sums {
    float min[QN_COUNT_LANES], max[QN_COUNT_LANES];
    double sum[QN_COUNT_LANES], square[QN_COUNT_LANES];
    uint32_t largest; /* bits of the largest |x|: from those of infinity on it is none */
} qn_count_sums;

typedef struct qn_count_kernels {
    /* Takes in x[r * stride + l] for r < rows, l < lanes; rows * lanes <= QN_COUNT_PIECE. */
    void (*fold)(qn_count_sums *to, const float *x, int64_t rows, int64_t stride, int64_t lanes);
    /* Counts the elements that are not 0 at floor(|x| * scale), from QN_HISTOGRAM_BINS on where x < 0, by
     * any of a bin's counters. Returns how many. */
    int64_t (*count)(qn_count_bin *bins, const float *x, int64_t n, float scale);
} qn_count_kernels;

const qn_count_kernels *qn_count_kernels_get(void);
extern const qn_count_kernels qn_count_kernels_base;
extern const qn_count_kernels qn_count_kernels_avx2;
extern const qn_count_kernels qn_count_kernels_avx512;

#endif
