/* What makes and joins histograms and entries, for those who fill or read them. */
#ifndef QN_CALIB_HISTOGRAM_H
#define QN_CALIB_HISTOGRAM_H

#include "calib/calib.h"

/* The exponent with which `largest` (finite, not 0) is in the last bins: see qn_histogram. */
int32_t qn_histogram_exponent(float largest);
/* Doubles the width up to `exponent`, which is not less than its own. */
void qn_histogram_coarsen(qn_histogram *histogram, int32_t exponent);
/* Makes sure that the side has memory. */
QN_MUST_CHECK qn_status qn_histogram_side(qn_histogram *histogram, qn_context *ctx, int side);
QN_MUST_CHECK qn_status qn_histogram_merge(qn_histogram *to, qn_context *ctx,
                                           const qn_histogram *from);
void qn_histogram_free(qn_histogram *histogram, qn_context *ctx);

/* The entry has met a sample with so many channels (-1: without): sets entry->channels and its
 * arrays, or drops them where the number is another than before. */
QN_MUST_CHECK qn_status qn_entry_channels(qn_stats_entry *entry, qn_context *ctx, int64_t channels);

#endif
