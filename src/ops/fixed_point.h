/* Requantization in fixed point, as chips do it: sum * multiplier / 2^shift, halves to even
 * (docs/numerics.md).
 *
 * The reference computes it in integers. Faster kernels multiply a double by qn_normal_value, which
 * holds the multiplier exactly: as long as a product is below 2^53 it is exact too, and beyond that
 * the result is limited anyway. */
#ifndef QN_FIXED_POINT_H
#define QN_FIXED_POINT_H

#include "ops/numerics.h"
#include "ops/op.h"

/* Bits of the multiplier, and the largest shift. */
enum { QN_FIXED_POINT_BITS = 15, QN_FIXED_POINT_SHIFT = 31 };

typedef struct qn_normal {
    /* Normal: 2^14 to 2^15 - 1; less, down to 0, where the shift is the largest */
    int32_t multiplier;
    /* 0 to 31 */
    int32_t shift;
} qn_normal;

/* The node's model is requantized so. */
static inline bool qn_node_is_fixed_point(const qn_node *node)
{
    return qn_node_requantization(node) == QN_REQUANTIZE_FIXED_POINT;
}

/* The nearest fixed-point number. Ratios of 2^15 and more become the largest multiplier; 0 and what
 * is no number, 0. */
qn_normal qn_normal_of(double ratio);
/* Both with one shift, that of the larger. */
void qn_normal_pair(qn_normal out[2], double a, double b);
double qn_normal_value(qn_normal f);
/* product / 2^shift, rounded. */
int64_t qn_normal_shift(int64_t product, int32_t shift);
/* sum * f rounded; where it is larger than any type of 16 bits holds, some number that is so
 * too. */
int64_t qn_normal_times(int64_t sum, qn_normal f);

#endif
