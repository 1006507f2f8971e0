/* The one meaning of quantize and requantize; every kernel and backend uses these or equals them. */
#ifndef QN_QUANTIZE_H
#define QN_QUANTIZE_H

#include <math.h>

#include "ir/dtype.h"

/* Least and greatest value of an integer type. */
typedef struct qn_range {
    int64_t min, max;
} qn_range;

static inline qn_range qn_range_of(qn_dtype dtype)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    const int bits = QN_MIN(info->bits, 63);
    if (info->kind == QN_KIND_UINT)
        return (qn_range){0, (int64_t)((UINT64_C(1) << bits) - 1)};
    const int64_t half = (int64_t)(UINT64_C(1) << (QN_MAX(info->bits, 1) - 1));
    return (qn_range){info->bits == 64 ? INT64_MIN : -half,
                      info->bits == 64 ? INT64_MAX : half - 1};
}

/* clamp(rint(x) + zero), halves to even; NaN gives the least value. */
static inline int64_t qn_round_clamp(double x, int64_t zero, qn_range range)
{
    const double y = nearbyint(x) + (double)zero;
    if (!(y > (double)range.min))
        return range.min;
    return y < (double)range.max ? (int64_t)y : range.max;
}

/* From a sum of products to the output's type: clamp(rint((float)sum * multiplier) + zero). The
 * multiplier is (float)((double)x_scale * w_scale / y_scale). */
static inline int64_t qn_requantize(int64_t sum, float multiplier, int64_t zero, qn_range range)
{
    return qn_round_clamp((double)((float)sum * multiplier), zero, range);
}

#endif
