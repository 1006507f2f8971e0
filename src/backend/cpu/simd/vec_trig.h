/* Trigonometric and hyperbolic functions of vectors, and their inverses: polynomials of least
 * largest error behind a reduction of the argument, a few units in the last place. */
#ifndef QN_CPU_VEC_TRIG_H
#define QN_CPU_VEC_TRIG_H

#include "backend/cpu/simd/vec_double.h"
#include "backend/cpu/simd/vec_math.h"

VEC_INLINE vec vec_negate(vec x)
{
    return vec_mul(vec_set(-1), x);
}

/* x + x z P(z) with z = x^2: an odd function that begins with x. */
VEC_INLINE vec vec_odd(vec x, const float *c, int degree)
{
    const vec z = vec_mul(x, x);
    return vec_fma(vec_mul(x, z), vec_polynomial(z, c, degree), x);
}

/* ---- Sine, cosine, tangent ------------------------------------------------------------------- */

/* Where |x| is not below it n needs more than 20 bits, and n pi / 2 is not exact in doubles. */
#define TRIG_FAR 1048576.0f

/* x = (4 k + quadrant) pi / 2 + rest with |rest| <= pi / 4 and a quadrant of -2 .. 2. The first
 * part of pi / 2 has 33 bits, so that its multiples are exact and what is left of x near one of
 * them is, too. */
VEC_INLINE vec trig_reduce(vec *quadrant, vec x)
{
    const vecd a = vecd_of(x), n = vecd_round(vecd_mul(a, vecd_set(0x1.45f306dc9c883p-1)));
    const vecd near = vecd_sub(a, vecd_mul(n, vecd_set(0x1.921fb544p+0)));
    const vecd turns = vecd_round(vecd_mul(n, vecd_set(0.25)));
    *quadrant = vecd_float(vecd_sub(n, vecd_mul(turns, vecd_set(4))));
    return vecd_float(vecd_sub(near, vecd_mul(n, vecd_set(0x1.0b4611a626331p-34))));
}

/* Both for |x| <= pi / 4. */
VEC_INLINE vec trig_sin(vec x)
{
    static const float c[] = {-0.166666552f, 0.008332178f, -0.000195172659f};
    return vec_odd(x, c, 2);
}
VEC_INLINE vec trig_cos(vec x)
{
    static const float c[] = {0.0416666456f, -0.00138873677f, 2.44384137e-05f};
    const vec z = vec_mul(x, x), head = vec_fnma(z, vec_set(0.5f), vec_set(1));
    return vec_fma(vec_mul(z, z), vec_polynomial(z, c, 2), head);
}

/* An odd whole number. */
VEC_INLINE vec_mask trig_is_odd(vec n)
{
    const vec half = vec_mul(n, vec_set(0.5f));
    return vec_less(vec_floor(half), half);
}

/* Numbers too large for trig_reduce, infinity and what is no number go one by one through the C
 * library. */
VEC_INLINE vec_mask trig_is_far(vec x)
{
    return vec_less(vec_pick(vec_set(0), vec_set(1), vec_less(vec_abs(x), vec_set(TRIG_FAR))),
                    vec_set(1));
}
VEC_APART vec trig_far(vec y, vec x, double (*f)(double))
{
    float in[VEC_WIDTH], out[VEC_WIDTH];
    vec_store(in, x);
    vec_store(out, y);
    for (int i = 0; i < VEC_WIDTH; i++)
        out[i] = fabsf(in[i]) < TRIG_FAR ? out[i] : (float)f((double)in[i]);
    return vec_load(out);
}

/* sin(x + offset pi / 2) */
VEC_INLINE vec trig_wave(vec x, float offset)
{
    vec quadrant;
    const vec rest = trig_reduce(&quadrant, x);
    quadrant = vec_add(quadrant, vec_set(offset));
    const vec y = vec_pick(trig_sin(rest), trig_cos(rest), trig_is_odd(quadrant));
    /* The lower half of the circle: quadrants 2 and 3, or -2 and -1. */
    const vec half = vec_floor(vec_mul(quadrant, vec_set(0.5f)));
    return vec_pick(y, vec_negate(y), trig_is_odd(half));
}

VEC_INLINE vec vec_sin(vec x)
{
    const vec y = trig_wave(x, 0);
    return vec_any(trig_is_far(x)) ? trig_far(y, x, sin) : y;
}

VEC_INLINE vec vec_cos(vec x)
{
    const vec y = trig_wave(x, 1);
    return vec_any(trig_is_far(x)) ? trig_far(y, x, cos) : y;
}

/* sin / cos, or -cos / sin in odd quadrants */
VEC_INLINE vec vec_tan(vec x)
{
    vec quadrant;
    const vec rest = trig_reduce(&quadrant, x);
    const vec s = trig_sin(rest), c = trig_cos(rest);
    const vec_mask odd = trig_is_odd(quadrant);
    const vec y = vec_div(vec_pick(s, vec_negate(c), odd), vec_pick(c, s, odd));
    return vec_any(trig_is_far(x)) ? trig_far(y, x, tan) : y;
}

/* ---- Their inverses -------------------------------------------------------------------------- */

/* atan(x) = pi / 4 + atan((x - 1) / (x + 1)) = pi / 2 + atan(-1 / x): an argument of at most tan(pi
 * / 8) */
VEC_INLINE vec vec_atan(vec x)
{
    static const float c[] = {-0.333333164f, 0.199984834f, -0.142437384f, 0.105951361f,
                              -0.0608114824f};
    const vec size = vec_abs(x), one = vec_set(1), zero = vec_set(0);
    const vec_mask middle = vec_less(vec_set(0.41421356f), size);
    const vec_mask far = vec_less(vec_set(2.41421356f), size);
    const vec above = vec_pick(vec_pick(size, vec_sub(size, one), middle), vec_set(-1), far);
    const vec below = vec_pick(vec_pick(one, vec_add(size, one), middle), size, far);
    const vec start =
        vec_pick(vec_pick(zero, vec_set(0.785398185f), middle), vec_set(1.57079637f), far);
    const vec low =
        vec_pick(vec_pick(zero, vec_set(-2.18556941e-8f), middle), vec_set(-4.37113883e-8f), far);
    const vec y = vec_odd(vec_div(above, below), c, 4);
    return vec_copysign(vec_add(start, vec_add(y, low)), x);
}

/* For |x| <= 1 / 2. */
VEC_INLINE vec trig_asin(vec x)
{
    static const float c[] = {0.166666597f,  0.0750051066f, 0.0445157215f,
                              0.0318176076f, 0.0144026149f, 0.0375651866f};
    return vec_odd(x, c, 5);
}

/* Beyond 1/2 asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)); no number beyond 1, by the root. */
VEC_INLINE vec trig_fold(vec size, vec_mask far)
{
    const vec root = vec_sqrt(vec_mul(vec_sub(vec_set(1), size), vec_set(0.5f)));
    return trig_asin(vec_pick(size, root, far));
}

VEC_INLINE vec vec_asin(vec x)
{
    const vec size = vec_abs(x);
    const vec_mask far = vec_less(vec_set(0.5f), size);
    const vec y = trig_fold(size, far);
    const vec beyond =
        vec_sub(vec_set(1.57079637f), vec_add(vec_add(y, y), vec_set(4.37113883e-8f)));
    return vec_copysign(vec_pick(y, beyond, far), x);
}

VEC_INLINE vec vec_acos(vec x)
{
    const vec size = vec_abs(x);
    const vec_mask far = vec_less(vec_set(0.5f), size), negative = vec_less(x, vec_set(0));
    const vec y = trig_fold(size, far), twice = vec_add(y, y);
    const vec low = vec_set(4.37113883e-8f);
    const vec beyond =
        vec_pick(twice, vec_sub(vec_set(3.14159274f), vec_add(twice, vec_add(low, low))), negative);
    const vec within = vec_sub(vec_set(1.57079637f), vec_add(vec_copysign(y, x), low));
    return vec_pick(within, beyond, far);
}

/* ---- Hyperbolic functions -------------------------------------------------------------------- */

/* e^|x| / 2 by a square, which overflows where sinh and cosh do. */
VEC_INLINE vec trig_half_exp(vec x)
{
    const vec root = vec_exp(vec_mul(vec_abs(x), vec_set(0.5f)));
    return vec_mul(vec_mul(root, vec_set(0.5f)), root);
}

VEC_INLINE vec vec_sinh(vec x)
{
    static const float c[] = {0.166666672f, 0.00833335053f, 0.000198360663f, 2.81743974e-6f};
    const vec size = vec_abs(x), e = trig_half_exp(x);
    const vec far = vec_sub(e, vec_div(vec_set(0.25f), e));
    const vec near = vec_odd(size, c, 3);
    return vec_copysign(vec_pick(far, near, vec_less(size, vec_set(1))), x);
}

VEC_INLINE vec vec_cosh(vec x)
{
    const vec e = trig_half_exp(x);
    return vec_add(e, vec_div(vec_set(0.25f), e));
}

/* log(1 + x) = log(w) + (x - (w - 1)) / w with w = 1 + x rounded, for x >= 0; no number below -1 */
VEC_INLINE vec vec_log1p(vec x)
{
    const vec one = vec_set(1), w = vec_add(one, x);
    const vec lost = vec_div(vec_sub(x, vec_sub(w, one)), w);
    return vec_pick(x, vec_add(vec_log(w), lost), vec_less(x, vec_set(INFINITY)));
}

/* log1p(x), or log(2 x) where `size` is so large that its square overflows or 1 does not count. */
VEC_INLINE vec trig_log(vec x, vec size)
{
    const vec_mask large = vec_less(vec_set(0x1p30f), size);
    const vec y = vec_log1p(vec_pick(x, size, large));
    return vec_add(y, vec_pick(vec_set(0), vec_set(0.693147182f), large));
}

/* log(x + sqrt(x^2 + 1)) = log1p(x + x^2 / (1 + sqrt(x^2 + 1))) */
VEC_INLINE vec vec_asinh(vec x)
{
    const vec size = vec_abs(x), square = vec_mul(size, size), one = vec_set(1);
    const vec root = vec_sqrt(vec_add(square, one));
    const vec y = trig_log(vec_add(size, vec_div(square, vec_add(root, one))), size);
    return vec_copysign(y, x);
}

/* log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t (t + 2))) with t = x - 1 */
VEC_INLINE vec vec_acosh(vec x)
{
    const vec t = vec_sub(x, vec_set(1));
    const vec root = vec_sqrt(vec_mul(t, vec_add(t, vec_set(2))));
    return vec_pick(trig_log(vec_add(t, root), x), vec_set(NAN), vec_less(x, vec_set(1)));
}

/* log((1 + x) / (1 - x)) / 2 = log1p(2 x / (1 - x)) / 2 */
VEC_INLINE vec vec_atanh(vec x)
{
    const vec size = vec_abs(x);
    const vec y = vec_log1p(vec_div(vec_add(size, size), vec_sub(vec_set(1), size)));
    return vec_copysign(vec_mul(y, vec_set(0.5f)), x);
}

/* -1, 0 or 1 */
VEC_INLINE vec vec_sign(vec x)
{
    const vec zero = vec_set(0);
    const vec y =
        vec_pick(vec_pick(zero, vec_set(1), vec_less(zero, x)), vec_set(-1), vec_less(x, zero));
    return vec_pick(y, x, vec_unordered(x, x));
}

#endif
