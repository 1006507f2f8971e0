/* The inside of a qn_accumulator: one thread's part in adding a sample to statistics. */
#ifndef QN_ACCUMULATOR_H
#define QN_ACCUMULATOR_H

#include "calib/stats_kernels.h"

/* Of the sample at hand, by channel. */
typedef struct qn_channel_sums {
    float *min, *max;
    double *sum, *square;
    size_t capacity;
} qn_channel_sums;

struct qn_accumulator {
    qn_context *ctx;
    const qn_stats_kernels *kernels;
    /* [QN_STATS_BINS], all zero between entries */
    qn_stats_bin *bins;
    qn_channel_sums own;
    /* A sample as row-major float32, where it is something else */
    void *plain;
    size_t plain_capacity;
    /* Of the sample at hand. */
    /* Whose histogram is counted into */
    qn_stats_entry *entry;
    /* Of the first of those who share it */
    qn_channel_sums *to;
    /* Channels that are this accumulator's */
    int64_t first, last;
    qn_status status;
    /* 2^-exponent */
    float scale;
    /* Bits of the largest |x| in the bins */
    uint32_t largest;
    int64_t in_bins, nonzero;
    /* Of the last sample */
    qn_range ends;
};

/* Folds and counts what the accumulator has of a sample, into `to` and the bins. The sample is
 * float32, its channels those of axis 1 where it is not row-major. (counter_walk.c) */
QN_MUST_CHECK qn_status qn_accumulator_add_elements(qn_accumulator *c, const qn_observation *seen);
/* Adds what the bins have to the histogram; they are zero again. */
QN_MUST_CHECK qn_status qn_accumulator_flush(qn_accumulator *c);

#endif
