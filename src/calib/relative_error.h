/* The one measure of how far outputs are from what the float model makes of the same data: relative
 * L1,
 *
 *   sum |other - real| / sum |real|
 *
 * over all elements of all samples of one output. Searches, strategies and reports count with it. A
 * NaN on either side makes the whole NaN: nobody shall take such a model for a good one. */
#ifndef QN_RELATIVE_ERROR_H
#define QN_RELATIVE_ERROR_H

#include "ir/tensor.h"

typedef struct qn_relative_error {
    double difference, size;
} qn_relative_error;

/* Adds the elements of two tensors of numbers that have equally many; those of `other` times
 * `scale`. */
void qn_relative_error_add(qn_relative_error *sum, const qn_tensor *real, const qn_tensor *other,
                           double scale);
/* Adds what was summed elsewhere. */
void qn_relative_error_merge(qn_relative_error *sum, qn_relative_error part);
/* NaN where there is nothing that it could be a share of. */
double qn_relative_error_value(qn_relative_error sum);

#endif
