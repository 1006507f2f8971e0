/* Functions of vectors: polynomials of least largest error, a few units in the last place. */
#ifndef QN_CPU_VEC_MATH_H
#define QN_CPU_VEC_MATH_H

#include "backend/cpu/simd/vec.h"

/* c[0] + x (c[1] + x (...)) */
VEC_INLINE vec vec_polynomial(vec x, const float *c, int degree)
{
    vec y = vec_set(c[degree]);
    for (int i = degree - 1; i >= 0; i--)
        y = vec_fma(y, x, vec_set(c[i]));
    return y;
}

/* 2^(n + f): the whole part n goes into the exponent. */
VEC_INLINE vec vec_exp2_parts(vec n, vec f)
{
    static const float c[] = {1.0f,           0.693147206f,   0.240226469f,   0.0555032878f,
                              0.00961848897f, 0.00133999312f, 0.000153458075f};
    return vec_scale2(vec_polynomial(f, c, 6), n);
}

/* e^x = 2^(x log2(e)), with log2(e) in two parts. */
VEC_INLINE vec vec_exp(vec x)
{
    x = vec_min(vec_set(89), vec_max(vec_set(-104), x));
    const vec high = vec_set(1.44269502f), low = vec_set(1.92596299e-8f);
    const vec n = vec_round(vec_mul(x, high));
    const vec f = vec_fma(x, low, vec_fma(x, high, vec_sub(vec_set(0), n)));
    return vec_exp2_parts(n, f);
}

/* log(m 2^e) = e log(2) + 2 atanh((m - 1) / (m + 1)) */
VEC_INLINE vec vec_log(vec x)
{
    static const float c[] = {2.0f, 0.666668164f, 0.399747568f, 0.29926514f};
    const vec zero = vec_set(0), infinity = vec_set(INFINITY);
    vec e;
    const vec m = vec_split2(&e, x);
    const vec s = vec_div(vec_sub(m, vec_set(1)), vec_add(m, vec_set(1)));
    const vec fraction = vec_mul(s, vec_polynomial(vec_mul(s, s), c, 3));
    vec y = vec_fma(e, vec_set(0.693145752f), vec_fma(e, vec_set(1.42860677e-6f), fraction));
    y = vec_pick(vec_sub(zero, infinity), y, vec_less(zero, vec_abs(x)));
    y = vec_pick(x, y, vec_less(x, infinity)); /* infinity and what is no number */
    return vec_pick(y, vec_set(NAN), vec_less(x, zero));
}

/* 1 / (1 + e^-x) */
VEC_INLINE vec vec_sigmoid(vec x)
{
    const vec one = vec_set(1);
    return vec_div(one, vec_add(one, vec_exp(vec_sub(vec_set(0), x))));
}

/* x / (1 + e^(-alpha x)) */
VEC_INLINE vec vec_silu(vec x, vec alpha)
{
    const vec e = vec_exp(vec_mul(vec_sub(vec_set(0), alpha), x));
    return vec_div(x, vec_add(vec_set(1), e));
}

/* Odd polynomial near 0, 1 - 2 / (e^2x + 1) beyond. */
VEC_INLINE vec vec_tanh(vec x)
{
    static const float c[] = {-0.333333292f, 0.133327945f, -0.0538540668f, 0.0210100709f,
                              -0.00611317908f};
    const vec size = vec_abs(x), z = vec_mul(x, x), one = vec_set(1);
    const vec near = vec_fma(vec_mul(size, z), vec_polynomial(z, c, 4), size);
    const vec e = vec_exp(vec_add(size, size));
    const vec far = vec_sub(one, vec_div(vec_set(2), vec_add(e, one)));
    return vec_copysign(vec_pick(far, near, vec_less(size, vec_set(0.625f))), x);
}

/* x P(x^2) up to 1, 1 - 2^(-x Q(x)) beyond. */
VEC_INLINE vec vec_erf(vec x)
{
    static const float p[] = {1.12837917f,    -0.376126271f,    0.112836002f, -0.0268544446f,
                              0.00518953534f, -0.000802084127f, 7.8891195e-5f};
    static const float q[] = {1.62836579f,    0.916051186f,     0.153717864f,  -0.0346614828f,
                              0.00543125665f, -0.000508307871f, 2.03908184e-5f};
    const vec size = vec_min(vec_set(4), vec_abs(x));
    const vec near = vec_mul(size, vec_polynomial(vec_mul(size, size), p, 6));
    const vec t = vec_mul(vec_sub(vec_set(0), size), vec_polynomial(size, q, 6));
    const vec n = vec_round(t);
    const vec far = vec_sub(vec_set(1), vec_exp2_parts(n, vec_sub(t, n)));
    return vec_copysign(vec_pick(far, near, vec_less(size, vec_set(1))), x);
}

/* e^x - 1 = 2 t / (1 - t) with t = tanh(x / 2), for x <= 0 */
VEC_INLINE vec vec_expm1(vec x)
{
    const vec t = vec_tanh(vec_mul(x, vec_set(0.5f)));
    return vec_div(vec_add(t, t), vec_sub(vec_set(1), t));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
VEC_INLINE vec vec_softplus(vec x)
{
    const vec e = vec_exp(vec_sub(vec_set(0), vec_abs(x)));
    /* log(1 + e) = 2 atanh(e / (2 + e)) keeps small e exact; its argument is at most 1/3. */
    static const float c[] = {2.0f,         0.666666795f, 0.399986782f,
                              0.286210419f, 0.213899629f, 0.244249003f};
    const vec s = vec_div(e, vec_add(e, vec_set(2)));
    const vec fraction = vec_mul(s, vec_polynomial(vec_mul(s, s), c, 5));
    return vec_add(vec_max(vec_set(0), x), fraction);
}

#endif
