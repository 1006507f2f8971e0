/* Functions of real numbers with the same bits on every machine. */
#include "base/real.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln 2 in two parts; the first has 20 zero bits at its end, so that whole multiples of it are
 * exact. */
static const double ln2_high = 0x1.62e42fefp-1, ln2_low = 0x1.473de6af278edp-34;

/* 2^n for -1022 <= n <= 1023 */
static double power2(int n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The whole number next to x, halves to even, for |x| < 2^51. */
static double whole(double x)
{
    const double shift = 0x1.8p52;
    return (x + shift) - shift;
}

/* r of x = n ln 2 + r, |r| <= ln 2 / 2 */
static double reduce(double *n, double x)
{
    *n = whole(x * 1.44269504088896340736);
    return (x - *n * ln2_high) - *n * ln2_low;
}

/* (e^r - 1) / r for |r| < 0.36: the series 1 + r/2 (1 + r/3 (1 + ...)). */
static double exp_quotient(double r)
{
    double sum = 1;
    for (int k = 15; k > 1; k--)
        sum = 1 + r / k * sum;
    return sum;
}

double qn_real_exp(double x)
{
    double n;
    if (isnan(x) || x > 710)
        return x + x * (x > 710 ? 1e308 : 1);
    if (x < -746)
        return 0;
    const double r = reduce(&n, x), y = 1 + r * exp_quotient(r);
    const int half =
        (int)n / 2; /* in two steps: the result may be subnormal, or 2^1024 - something */
    return y * power2(half) * power2((int)n - half);
}

double qn_real_expm1(double x)
{
    return fabs(x) < 0.35 ? x * exp_quotient(x) : qn_real_exp(x) - 1;
}

/* 2 artanh(s) = log((1 + s) / (1 - s)) for |s| <= 1/3 */
static double log_quotient(double s)
{
    const double square = s * s;
    double sum = 0;
    for (int k = 35; k > 1; k -= 2)
        sum = (sum + 1.0 / k) * square;
    return 2 * (s + s * sum);
}

double qn_real_log(double x)
{
    int exponent = 0;
    uint64_t bits;
    if (!(x > 0) || isinf(x))
        return x < 0 ? (double)NAN : x == 0 ? -(double)INFINITY : x;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent = -54;
    }
    memcpy(&bits, &x, sizeof bits);
    exponent += (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x3ff0000000000000);
    memcpy(&x, &bits, sizeof x); /* in [1, 2) */
    if (x > 1.4142135623730951) {
        x *= 0.5;
        exponent++;
    }
    const double n = exponent;
    return n * ln2_high + (n * ln2_low + log_quotient((x - 1) / (x + 1)));
}

double qn_real_log1p(double x)
{
    return x > -0.5 && x <= 1 ? log_quotient(x / (2 + x)) : qn_real_log(1 + x);
}

/* Small arguments by the continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))). */
double qn_real_tanh(double x)
{
    const double size = fabs(x);
    if (size < 0.5) {
        double below = 21;
        for (int k = 19; k > 0; k -= 2)
            below = k + x * x / below;
        return x / below;
    }
    const double e = size > 20 ? 0 : qn_real_exp(-2 * size), y = (1 - e) / (1 + e);
    return isnan(x) ? x : x < 0 ? -y : y;
}

/* Below 2.5 the series 2 / sqrt(pi) e^-x^2 (x + 2 x^3 / 3 + 4 x^5 / 15 + ...), whose terms are all
 * of one sign; above it one minus the continued fraction e^-x^2 / sqrt(pi) / (x + 1/2 / (x + 1 / (x
 * + ...))). */
double qn_real_erf(double x)
{
    const double size = fabs(x), square = x * x;
    if (isnan(x))
        return x;
    if (size < 2.5) {
        double sum = 1;
        for (int k = 50; k > 0; k--)
            sum = 1 + 2 * square / (2 * k + 1) * sum;
        return 1.12837916709551257390 * x * qn_real_exp(-square) * sum;
    }
    double y = 1;
    if (size < 6) {
        double below = size;
        for (int k = 60; k > 0; k--)
            below = size + 0.5 * k / below;
        y = 1 - 0.56418958354775628695 * qn_real_exp(-square) / below;
    }
    return x < 0 ? -y : y;
}

double qn_real_sigmoid(double x)
{
    const double e = qn_real_exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

double qn_real_softplus(double x)
{
    return (x > 0 ? x : 0) + qn_real_log1p(qn_real_exp(-fabs(x)));
}
