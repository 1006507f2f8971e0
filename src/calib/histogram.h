/* Building blocks for those who fill or read histograms and entries. */
#ifndef QN_CALIB_HISTOGRAM_H
#define QN_CALIB_HISTOGRAM_H

#include "calib/calib.h"

/* The exponent with which `largest` (finite, not 0) lies in the upper half of the bins: see
 * qn_histogram. */
int32_t qn_histogram_exponent(float largest);
/* Merges pairs of bins until the exponent is `exponent`, which is not less than the histogram's
 * own. */
void qn_histogram_coarsen(qn_histogram *histogram, int32_t exponent);
/* Allocates the side where it is not yet. */
QN_MUST_CHECK qn_status qn_histogram_side(qn_histogram *histogram, qn_context *ctx, int side);
QN_MUST_CHECK qn_status qn_histogram_merge(qn_histogram *to, qn_context *ctx,
                                           const qn_histogram *from);
void qn_histogram_free(qn_histogram *histogram, qn_context *ctx);

/* Tells the entry that a sample has this number of channels (-1: none): sets entry->channels and
 * its arrays, or drops them where the number differs from before. */
QN_MUST_CHECK qn_status qn_entry_channels(qn_stats_entry *entry, qn_context *ctx, int64_t channels);

#endif
