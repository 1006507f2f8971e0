/* The error of the products that read a value whose channels have factors, estimated from the
 * statistics:
 *
 *   E[k] = sum over channels c of (w[k,c] f[c])^2 N[c]  +  S[k]^2 / 12 * sum over c of P[c] / f[c]^2
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
    /* Of all that follows */
    qn_arena arena;
    /* Products of integers that read integers of known channels */
    qn_smooth_reader *readings;
    size_t n_readings;
    /* [channels]: largest weight of the node before; 0: none that counts */
    double *before;
    /* Sum of squares that a weight before is multiplied with */
    double fan_in;
    /* Some of them read channels without factors too */
    bool beside;
} qn_smooth_error;

/* q, stats and spread are set. Without readings there is nothing to estimate. */
QN_MUST_CHECK qn_status qn_smooth_error_open(qn_smooth_error *e);
void qn_smooth_error_close(qn_smooth_error *e);
/* Over all products that read. */
double qn_smooth_error_of(const qn_smooth_error *e, const float *factor);
/* [channels]: the largest weight behind, relative to its filter's. */
void qn_smooth_error_weights(double *weight, const qn_smooth_error *e);

/* What is known of the channels of a value; NULL: nothing. */
const qn_stats_entry *qn_smooth_entry(const qn_stats *stats, const qn_value *value, int32_t axis);
/* What the range leaves of a channel, by both ends. */
qn_range qn_smooth_kept_range(const qn_quant_value *v, const qn_quant_value *root,
                              const qn_stats_entry *e, int64_t c);

#endif
