/* Requantization in fixed point: multipliers and shifts of ratios. */
#include "ops/fixed_point.h"

#include <math.h>

/* The number with this shift, or one less where it is rounded up to a bit more. */
static qn_normal with_shift(double ratio, int32_t shift)
{
    const double least = 0, most = (1 << QN_FIXED_POINT_BITS) - 1;
    double multiplier = nearbyint(ldexp(ratio, shift));
    if (multiplier > most && shift > 0)
        return with_shift(ratio, shift - 1);
    multiplier = multiplier > least ? multiplier : least; /* what is no number, too */
    return (qn_normal){(int32_t)QN_MIN(multiplier, most), shift};
}

/* The shift that makes the ratio's multiplier as large as it may be. */
static int32_t shift_of(double ratio)
{
    int exponent = 0;
    if (!(ratio > 0))
        return 0;
    if (!isfinite(ratio))
        return 0;
    (void)frexp(ratio, &exponent); /* ratio < 2^exponent */
    return QN_MIN(QN_MAX(QN_FIXED_POINT_BITS - exponent, 0), QN_FIXED_POINT_SHIFT);
}

qn_normal qn_normal_of(double ratio)
{
    return with_shift(ratio, shift_of(ratio));
}

void qn_normal_pair(qn_normal out[2], double a, double b)
{
    const double larger = a > b ? a : b;
    const int32_t shift = with_shift(larger, shift_of(larger)).shift;
    out[0] = with_shift(a, shift);
    out[1] = with_shift(b, shift);
}

double qn_normal_value(qn_normal f)
{
    return ldexp(f.multiplier, -f.shift);
}

int64_t qn_normal_shift(int64_t product, int32_t shift)
{
    const int64_t unit = INT64_C(1) << shift, half = unit / 2;
    const int64_t rest = product & (unit - 1), down = (product - rest) / unit;
    if (shift == 0)
        return product;
    return down + (rest > half || (rest == half && (down & 1)));
}

int64_t qn_normal_times(int64_t sum, qn_normal f)
{
    const int64_t most = INT64_C(1) << 47; /* by a multiplier of 1 or more this is 2^16 at least */
    sum = QN_MIN(QN_MAX(sum, -most), most);
    return qn_normal_shift(sum * f.multiplier, f.shift);
}
