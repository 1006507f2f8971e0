/* The error of the products that read a value whose channels have factors, estimated from the statistics:
 *
 *   E[k] = sum over channels c of (w[k,c] f[c])^2 N[c]  +  S[k]^2 / 12 * sum over c of P[c] / f[c]^2
 *
 * N: noise of the rounded input, its step squared / 12 (at most the power of the channel), and with one scale for all
 * weights that of the weights before it; S: step of the filter's weights w * f; P: mean square of the channel. Each
 * filter's error counts by its own signal. */
#ifndef QN_BALANCE_ERROR_H
#define QN_BALANCE_ERROR_H

#include "quant/balance.h"
#include "quant/params.h"

typedef struct qn_balance_reading qn_balance_reading;

typedef struct qn_balance_error {
    qn_quantizer *q;
    const qn_stats *stats;
    const qn_spread *spread;
    qn_arena arena;               /* of all that follows */
    qn_balance_reading *readings; /* products of integers that read integers of known channels */
    size_t n_readings;
    double *before; /* [channels]: largest weight of the node before; 0: none that counts */
    double fan_in;  /* sum of squares that a weight before is multiplied with */
    bool beside;    /* some of them read channels without factors too */
} qn_balance_error;

/* q, stats and spread are set. Without readings there is nothing to estimate. */
QN_MUST_CHECK qn_status qn_balance_error_open(qn_balance_error *e);
void qn_balance_error_close(qn_balance_error *e);
/* Over all products that read. */
double qn_balance_error_of(const qn_balance_error *e, const float *factor);
/* [channels]: the largest weight behind, relative to its filter's. */
void qn_balance_error_weights(double *weight, const qn_balance_error *e);

/* What is known of the channels of a value; NULL: nothing. */
const qn_stats_entry *qn_balance_entry(const qn_stats *stats, const qn_value *value, int32_t axis);
/* What the range leaves of a channel, by both ends. */
qn_range qn_balance_kept(const qn_quant_value *v, const qn_quant_value *root,
                         const qn_stats_entry *e, int64_t c);

#endif
