/* GridSample: what the numbers of a grid point at. */
#ifndef QN_GRID_SAMPLE_H
#define QN_GRID_SAMPLE_H

#include "ops/op.h"

/* The last two are the names that linear and cubic had before opset 20. */
enum { QN_GRID_LINEAR, QN_GRID_NEAREST, QN_GRID_CUBIC, QN_GRID_BILINEAR, QN_GRID_BICUBIC };
enum { QN_GRID_ZEROS, QN_GRID_BORDER, QN_GRID_REFLECTION };
typedef struct qn_grid_attrs {
    int64_t mode, padding_mode, align_corners;
} qn_grid_attrs;

/* The elements along one axis that a point lies between. */
enum { QN_GRID_MOST_TAPS = 4 };
typedef struct qn_grid_taps {
    /* The samples inside; those outside are 0. */
    int count;
    int64_t at[QN_GRID_MOST_TAPS];
    double weight[QN_GRID_MOST_TAPS];
} qn_grid_taps;
/* x: the number in the grid, from -1 to 1; dim: elements of the axis, at least one. */
void qn_grid_taps_of(qn_grid_taps *out, const qn_grid_attrs *attrs, double x, int64_t dim);

#endif
