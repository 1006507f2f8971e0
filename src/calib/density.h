/* A histogram as a density that is constant inside each bin, with its cumulated moments: what a
 * range costs can then be asked for any range, not only for those that end between bins. */
#ifndef QN_DENSITY_H
#define QN_DENSITY_H

#include "calib/calib.h"

typedef struct qn_density {
    /* Left edge of the first bin; of a bin */
    double origin, width;
    int64_t bins;
    /* [bins] elements; zeros are nowhere */
    double *mass;
    /* [bins + 1] of all bins before: sum of x^k */
    double *moment[3];
} qn_density;

/* From the first to the last bin that has something, and 0 in any case. With `folded` the axis is
 * |x|. qn_density_free in any case. */
QN_MUST_CHECK qn_status qn_density_make(qn_density *density, qn_context *ctx,
                                        const qn_stats_entry *entry, bool folded);
void qn_density_free(qn_density *density, qn_context *ctx);
/* Forgets the bins that lie outside of the range. */
void qn_density_crop(qn_density *density, const qn_range *range);
/* Moments of all that lies below x. */
void qn_density_below(double moment[3], const qn_density *density, double x);

/* Levels step * (i - zero) for i in [0, levels). */
typedef struct qn_integer_grid {
    double step;
    int64_t zero, levels;
} qn_integer_grid;
/* The integer grid of a range that contains 0. */
qn_integer_grid qn_integer_grid_of(double min, double max, const qn_range_options *options);
/* Sum of (x - nearest level)^2 over all elements. */
double qn_density_error(const qn_density *density, const qn_integer_grid *grid);
/* The part of it that elements beyond the last levels have. */
double qn_density_clip_error(const qn_density *density, double min, double max);

/* The range in [min, max] (both ends of the statistics) with the least qn_density_error. */
void qn_density_best_range(qn_range *range, const qn_density *density,
                           const qn_range_options *options);

#endif
