/* RoiAlign: where the samples of a region lie. */
#ifndef QN_ROI_H
#define QN_ROI_H

#include "ops/op.h"

enum { QN_ROI_HALF_PIXEL, QN_ROI_OUTPUT_HALF_PIXEL };
enum { QN_ROI_AVG, QN_ROI_MAX };
typedef struct qn_roi_attrs {
    int64_t coordinate_transformation_mode, mode;
    int64_t output_height, output_width, sampling_ratio;
    float spatial_scale;
} qn_roi_attrs;

/* The samples of cell i along one axis lie at start + i * cell + k * step for k < count. */
typedef struct qn_roi_samples {
    double start, cell, step;
    int64_t count;
} qn_roi_samples;
/* The samples of a region from `low` to `high` in `cells` cells; false where there are too many. */
bool qn_roi_samples_of(qn_roi_samples *out, const qn_roi_attrs *attrs, double low, double high,
                       int64_t cells);

/* The two elements that a sample lies between. */
typedef struct qn_roi_pair {
    int64_t at[2];
    double weight[2];
} qn_roi_pair;
/* False where the sample lies outside the axis of `size` elements and counts as 0. */
bool qn_roi_pair_of(qn_roi_pair *out, const qn_roi_samples *samples, int64_t cell, int64_t k,
                    int64_t size);

#endif
