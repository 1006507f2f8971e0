/* The state of a qn_accumulator: what one thread needs to add samples to statistics. */
#ifndef QN_ACCUMULATOR_H
#define QN_ACCUMULATOR_H

#include "calib/stats_kernels.h"

/* Extremes and sums of the current sample, one per channel. */
typedef struct qn_channel_sums {
    float *min, *max;
    double *sum, *square;
    size_t capacity;
} qn_channel_sums;

struct qn_accumulator {
    qn_context *ctx;
    const qn_stats_kernels *kernels;
    /* [QN_STATS_BINS], all zero between entries. */
    qn_stats_bin *bins;
    qn_channel_sums own;
    /* A copy of the sample as row-major float32, where it is stored otherwise. */
    void *plain;
    size_t plain_capacity;
    /* The fields that follow belong to the current sample. */
    /* The entry whose histogram is counted into. */
    qn_stats_entry *entry;
    /* The sums of the first of the threads that share the sample. */
    qn_channel_sums *to;
    /* The channels [first, last) that this accumulator adds. */
    int64_t first, last;
    qn_status status;
    /* 2^-exponent of the histogram. */
    float scale;
    /* The bits of the largest |x| that the bins count. */
    uint32_t largest;
    int64_t in_bins, nonzero;
    /* The extremes of the sample that was added last. */
    qn_range ends;
};

/* Adds this accumulator's channels of the sample to `to` and to the bins. The sample is float32;
 * where it is not row-major its channels are those of axis 1. (accumulator_elements.c) */
QN_MUST_CHECK qn_status qn_accumulator_add_elements(qn_accumulator *c, const qn_observation *seen);
/* Adds the bins to the histogram and clears them. */
QN_MUST_CHECK qn_status qn_accumulator_flush(qn_accumulator *c);

#endif
