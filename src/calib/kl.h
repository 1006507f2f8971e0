/* The methods kl and kl_v2 for the table of methods. *out holds the full range, with 0, when they
 * are called. */
#ifndef QN_KL_H
#define QN_KL_H

#include "calib/density.h"

QN_MUST_CHECK qn_status qn_range_kl(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                                    const qn_range_options *options);
QN_MUST_CHECK qn_status qn_range_kl_v2(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                                       const qn_range_options *options);

#endif
