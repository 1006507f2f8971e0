/* Relative L1 distance of tensors. */
#include "calib/relative_error.h"

#include <math.h>

void qn_relative_error_add(qn_relative_error *sum, const qn_tensor *real, const qn_tensor *other,
                           double scale)
{
    enum { BLOCK = 256 };
    double left[BLOCK], right[BLOCK], difference = 0, size = 0;
    const int64_t count = qn_tensor_count(real);
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t n = QN_MIN(count - first, BLOCK);
        qn_load_f64(left, real->dtype, real->data, first, n);
        qn_load_f64(right, other->dtype, other->data, first, n);
        for (int64_t i = 0; i < n; i++) {
            size += fabs(left[i]);
            difference += fabs(right[i] * scale - left[i]);
        }
    }
    qn_relative_error_merge(sum, (qn_relative_error){difference, size});
}

void qn_relative_error_merge(qn_relative_error *sum, qn_relative_error part)
{
    sum->difference += part.difference;
    sum->size += part.size;
}

double qn_relative_error_value(qn_relative_error sum)
{
    return sum.size > 0 ? sum.difference / sum.size : NAN;
}
