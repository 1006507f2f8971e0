/* The error of the products that read a value whose channels have factors, estimated from the
 * statistics:
 *
 *   E[k] = sum over channels c of (w[k,c] f[c])^2 N[c] + S[k]^2 / 12 * sum over c of P[c] / f[c]^2
 *
 * N: noise of the rounded input, its step squared / 12 (at most the power of the channel), and with
 * one scale for all weights that of the weights before it; S: step of the filter's weights w * f;
 * P: mean square of the channel. Each filter's error counts by its own signal. */
#ifndef QN_SMOOTH_ERROR_H
#define QN_SMOOTH_ERROR_H

#include "quant/params.h"
#include "quant/smooth_channels.h"

typedef struct qn_smooth_reader qn_smooth_reader;

typedef struct qn_smooth_error {
    qn_quantizer *q;
    const qn_stats *stats;
    const qn_smooth_region *region;
    /* The memory of all fields that follow. */
    qn_arena arena;
    /* [n_readings], the integer products that read integers of known channels. */
    qn_smooth_reader *readings;
    size_t n_readings;
    /* [channels], the largest weight of the node before; 0: there is none that counts. */
    double *before;
    /* The sum of squares that one weight of the node before is multiplied with. */
    double fan_in;
    /* Whether some of the products also read channels without factors. */
    bool has_other_channels;
} qn_smooth_error;

/* Prepares the estimate; q, stats and region are set by the caller. Without readings there is
 * nothing to estimate. */
QN_MUST_CHECK qn_status qn_smooth_error_open(qn_smooth_error *e);
void qn_smooth_error_close(qn_smooth_error *e);
/* The error over all products for these factors ([channels]). */
double qn_smooth_error_of(const qn_smooth_error *e, const float *factor);
/* weight[channels] gets the largest weight that reads each channel, relative to its filter's
 * largest. */
void qn_smooth_error_weights(double *weight, const qn_smooth_error *e);

/* The statistics of the channels of a value; NULL: there are none. */
const qn_stats_entry *qn_smooth_entry(const qn_stats *stats, const qn_value *value, int32_t axis);
/* The part of a channel's range that the value's range keeps. */
qn_range qn_smooth_kept_range(const qn_quant_value *v, const qn_quant_value *root,
                              const qn_stats_entry *e, int64_t c);

#endif
