/* Exact sums in 128-bit fixed point. */
#include <math.h>

#include "calib/calib.h"

static const double UNITS = 0x1p56, LIMIT = 0x1p55;

void qn_sum128_add(qn_sum128 *sum, double x)
{
    if (isnan(x))
        return;
    const double units = fmax(-LIMIT, fmin(LIMIT, x)) * UNITS;
    /* Both parts are exact: the low one is what the high one leaves of a double's digits. */
    const double high = floor(units * 0x1p-64);
    const double low = floor(units - high * 0x1p64);
    qn_sum128_merge(sum, (qn_sum128){(uint64_t)low, (int64_t)high});
}

void qn_sum128_merge(qn_sum128 *sum, qn_sum128 other)
{
    sum->low += other.low;
    const uint64_t carry = sum->low < other.low;
    sum->high = (int64_t)((uint64_t)sum->high + (uint64_t)other.high + carry);
}

double qn_sum128_value(qn_sum128 sum)
{
    return ((double)sum.high * 0x1p64 + (double)sum.low) / UNITS;
}
