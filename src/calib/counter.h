/* The inside of a qn_counter: one thread's part in adding a sample to statistics. */
#ifndef QN_COUNTER_H
#define QN_COUNTER_H

#include "calib/count.h"

/* Of the sample at hand, by channel. */
typedef struct qn_channel_sums {
    float *min, *max;
    double *sum, *square;
    size_t capacity;
} qn_channel_sums;

struct qn_counter {
    qn_context *ctx;
    const qn_count_kernels *kernels;
    qn_count_bin *bins; /* [QN_COUNT_BINS], all zero between entries */
    qn_channel_sums own;
    void *plain; /* a sample as row-major float32, where it is something else */
    size_t plain_capacity;
    /* Of the sample at hand. */
    qn_stats_entry *entry; /* whose histogram is counted into */
    qn_channel_sums *to;   /* of the first of those who share it */
    int64_t first, last;   /* channels that are this counter's */
    qn_status status;
    float scale;      /* 2^-exponent */
    uint32_t largest; /* bits of the largest |x| in the bins */
    int64_t in_bins, nonzero;
    qn_range ends; /* of the last sample */
};

/* Folds and counts what the counter has of a sample, into `to` and the bins. The sample is float32, its channels those
 * of axis 1 where it is not row-major. (counter_walk.c) */
QN_MUST_CHECK qn_status qn_counter_count(qn_counter *c, const qn_observation *seen);
/* Adds what the bins have to the histogram; they are zero again. */
QN_MUST_CHECK qn_status qn_counter_flush(qn_counter *c);

#endif
