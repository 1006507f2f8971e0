/* Resize's attributes and the taps of one axis, for kernels of every backend. */
#ifndef QN_RESIZE_H
#define QN_RESIZE_H

#include "ops/eval.h"

typedef enum qn_resize_mode { QN_RESIZE_NEAREST, QN_RESIZE_LINEAR, QN_RESIZE_CUBIC } qn_resize_mode;
typedef enum qn_resize_coordinates {
    QN_COORD_HALF_PIXEL,
    QN_COORD_HALF_PIXEL_SYMMETRIC,
    QN_COORD_PYTORCH_HALF_PIXEL,
    QN_COORD_ALIGN_CORNERS,
    QN_COORD_ASYMMETRIC,
    QN_COORD_TF_CROP_AND_RESIZE,
    QN_COORD_TF_HALF_PIXEL_FOR_NN
} qn_resize_coordinates;
typedef enum qn_resize_nearest {
    QN_NEAREST_PREFER_FLOOR,
    QN_NEAREST_PREFER_CEIL,
    QN_NEAREST_FLOOR,
    QN_NEAREST_CEIL
} qn_resize_nearest;
typedef enum qn_resize_aspect {
    QN_ASPECT_STRETCH,
    QN_ASPECT_NOT_LARGER,
    QN_ASPECT_NOT_SMALLER
} qn_resize_aspect;

typedef struct qn_resize_attrs {
    int64_t mode, coordinate_transformation_mode, nearest_mode, keep_aspect_ratio_policy;
    float cubic_coeff_a, extrapolation_value;
    int64_t exclude_outside, antialias;
    qn_ints axes;
} qn_resize_attrs;

typedef struct qn_resize_axis {
    int64_t in, out, taps;
    double scale, roi_start, roi_end;
    int64_t coordinates;
} qn_resize_axis;

/* Taps that one output position needs at most. */
int64_t qn_resize_tap_count(const qn_resize_attrs *attrs, double scale);
/* Place in the input that output position x shows. */
double qn_resize_coordinate(const qn_resize_axis *axis, int64_t x);
/* index and weight: [out, taps]. Indices are inside the input; the first of a position is -1 where
 * the position shows the extrapolation value. */
void qn_resize_taps(int64_t *index, double *weight, const qn_resize_attrs *attrs,
                    const qn_resize_axis *axis);

/* ---- For operators that resize as Resize does: inputs are X, roi, scales, sizes -------------- */

enum { QN_RESIZE_SPECS = 9 };
extern const qn_attr_spec qn_resize_specs[QN_RESIZE_SPECS];

QN_MUST_CHECK qn_status qn_infer_resize(qn_infer *self);
QN_MUST_CHECK qn_status qn_eval_resize(qn_eval *self);
/* *out = the same by Upsample, before the node; for files older than Resize. (upsample.c) */
QN_MUST_CHECK qn_status qn_upsample_of_resize(qn_value **out, qn_node *resize);

typedef struct qn_resize_run {
    const qn_tensor *in, *out;
    /* The strides of the input. */
    int64_t strides[QN_MAX_RANK];
    qn_resize_axis axes[QN_MAX_RANK];
    /* [out, taps] of each axis */
    int64_t *index[QN_MAX_RANK];
    double *weight[QN_MAX_RANK];
    /* The extrapolation value */
    double outside;
} qn_resize_run;
QN_MUST_CHECK qn_status qn_resize_run_make(qn_resize_run *out, qn_eval *self);
/* Coordinates x of element i of the output. False where it shows the extrapolation value. */
bool qn_resize_at(int64_t *x, const qn_resize_run *run, int64_t i);

#endif
