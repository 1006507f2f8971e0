/* A histogram as a density that is constant inside each bin, with cumulated moments, so that the
 * error of any range can be computed, not only of ranges that end between bins. */
#ifndef QN_DENSITY_H
#define QN_DENSITY_H

#include "calib/calib.h"

typedef struct qn_density {
    /* The left edge of the first bin, and the width of each. */
    double origin, width;
    int64_t bins;
    /* [bins], the number of elements in each bin; zeros are in none. */
    double *mass;
    /* [bins + 1], the sum of x^k over all bins before, for k = 0, 1, 2. */
    double *moment[3];
} qn_density;

/* Covers the first to the last bin that is not empty, and 0 in any case. With `folded` the axis is
 * |x|. Call qn_density_free also after a failure. */
QN_MUST_CHECK qn_status qn_density_make(qn_density *density, qn_context *ctx,
                                        const qn_stats_entry *entry, bool folded);
void qn_density_free(qn_density *density, qn_context *ctx);
/* Drops the bins outside the range. */
void qn_density_crop(qn_density *density, const qn_range *range);
/* The moments of all elements below x. */
void qn_density_below(double moment[3], const qn_density *density, double x);

/* The levels step * (i - zero) for i in [0, levels). */
typedef struct qn_integer_grid {
    double step;
    int64_t zero, levels;
} qn_integer_grid;
/* The integer grid of a range that contains 0. */
qn_integer_grid qn_integer_grid_of(double min, double max, const qn_range_options *options);
/* Sum of (x - nearest level)^2 over all elements. */
double qn_density_error(const qn_density *density, const qn_integer_grid *grid);
/* The part of qn_density_error that elements beyond the outermost levels contribute. */
double qn_density_clip_error(const qn_density *density, double min, double max);

/* Finds the range inside *range (the extremes of the statistics) with the least
 * qn_density_error. */
void qn_density_best_range(qn_range *range, const qn_density *density,
                           const qn_range_options *options);

#endif
