/* A histogram as a density that is constant inside each bin, with its cumulated moments: what a range
 * costs can then be asked for any range, not only for those that end between bins. */
#ifndef QN_CURVE_H
#define QN_CURVE_H

#include "calib/calib.h"

typedef struct qn_curve {
    double origin, width; /* left edge of the first bin; of a bin */
    int64_t bins;
    double *mass;      /* [bins] elements; zeros are nowhere */
    double *moment[3]; /* [bins + 1] of all bins before: sum of x^k */
} qn_curve;

/* From the first to the last bin that has something, and 0 in any case. With `folded` the axis is |x|.
 * qn_curve_free in any case. */
QN_MUST_CHECK qn_status qn_curve_make(qn_curve *curve, qn_context *ctx, const qn_stats_entry *entry,
                                      bool folded);
void qn_curve_free(qn_curve *curve, qn_context *ctx);
/* Forgets the bins that lie outside of the range. */
void qn_curve_keep(qn_curve *curve, const qn_range *range);
/* Moments of all that lies below x. */
void qn_curve_below(double moment[3], const qn_curve *curve, double x);

/* Levels step * (i - zero) for i in [0, levels). */
typedef struct qn_grid {
    double step;
    int64_t zero, levels;
} qn_grid;
/* The integer grid of a range that contains 0. */
qn_grid qn_grid_of(double min, double max, const qn_range_options *options);
/* Sum of (x - nearest level)^2 over all elements. */
double qn_curve_error(const qn_curve *curve, const qn_grid *grid);
/* The part of it that elements beyond the last levels have. */
double qn_curve_clipped(const qn_curve *curve, double min, double max);

/* The range in [min, max] (both ends of the statistics) with the least qn_curve_error. */
void qn_curve_least_error(qn_range *range, const qn_curve *curve, const qn_range_options *options);

#endif
