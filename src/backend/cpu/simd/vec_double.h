/* The doubles of one vector of floats, in the same order of lanes: for sums of many numbers and for
 * what cancels. */
#ifndef QN_CPU_VEC_DOUBLE_H
#define QN_CPU_VEC_DOUBLE_H

#include "backend/cpu/simd/vec.h"

#if defined(__AVX512F__)

typedef struct vecd {
    /* Lanes 0-7 and 8-15. */
    __m512d low, high;
} vecd;

VEC_INLINE vecd vecd_of(vec a)
{
    return (vecd){_mm512_cvtps_pd(_mm512_castps512_ps256(a)),
                  _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1))};
}
VEC_INLINE vec vecd_float(vecd a)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.low)),
                              _mm512_cvtpd_ps(a.high), 1);
}
VEC_INLINE vecd vecd_set(double x)
{
    return (vecd){_mm512_set1_pd(x), _mm512_set1_pd(x)};
}
VEC_INLINE vecd vecd_load(const double *p)
{
    return (vecd){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)};
}
VEC_INLINE void vecd_store(double *p, vecd a)
{
    _mm512_storeu_pd(p, a.low);
    _mm512_storeu_pd(p + 8, a.high);
}
VEC_INLINE vecd vecd_add(vecd a, vecd b)
{
    return (vecd){_mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high)};
}
VEC_INLINE vecd vecd_sub(vecd a, vecd b)
{
    return (vecd){_mm512_sub_pd(a.low, b.low), _mm512_sub_pd(a.high, b.high)};
}
VEC_INLINE vecd vecd_mul(vecd a, vecd b)
{
    return (vecd){_mm512_mul_pd(a.low, b.low), _mm512_mul_pd(a.high, b.high)};
}
VEC_INLINE vecd vecd_round(vecd a) /* half to even */
{
    return (vecd){_mm512_roundscale_pd(a.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                  _mm512_roundscale_pd(a.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/* The sum of all lanes. */
VEC_INLINE double vecd_sum(vecd a)
{
    return _mm512_reduce_add_pd(_mm512_add_pd(a.low, a.high));
}
VEC_INLINE double vecd_product(vecd a)
{
    return _mm512_reduce_mul_pd(_mm512_mul_pd(a.low, a.high));
}

#elif defined(__AVX2__)

typedef struct vecd {
    __m256d low, high;
} vecd;

VEC_INLINE vecd vecd_of(vec a)
{
    return (vecd){_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                  _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
}
VEC_INLINE vec vecd_float(vecd a)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.low)),
                                _mm256_cvtpd_ps(a.high), 1);
}
VEC_INLINE vecd vecd_set(double x)
{
    return (vecd){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}
VEC_INLINE vecd vecd_load(const double *p)
{
    return (vecd){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
VEC_INLINE void vecd_store(double *p, vecd a)
{
    _mm256_storeu_pd(p, a.low);
    _mm256_storeu_pd(p + 4, a.high);
}
VEC_INLINE vecd vecd_add(vecd a, vecd b)
{
    return (vecd){_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
}
VEC_INLINE vecd vecd_sub(vecd a, vecd b)
{
    return (vecd){_mm256_sub_pd(a.low, b.low), _mm256_sub_pd(a.high, b.high)};
}
VEC_INLINE vecd vecd_mul(vecd a, vecd b)
{
    return (vecd){_mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high)};
}
VEC_INLINE vecd vecd_round(vecd a)
{
    return (vecd){_mm256_round_pd(a.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                  _mm256_round_pd(a.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
VEC_INLINE double vecd_sum(vecd a)
{
    const __m256d four = _mm256_add_pd(a.low, a.high);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
VEC_INLINE double vecd_product(vecd a)
{
    const __m256d four = _mm256_mul_pd(a.low, a.high);
    const __m128d two = _mm_mul_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_mul_sd(two, _mm_unpackhi_pd(two, two)));
}

#else

typedef struct vecd {
    double f[VEC_WIDTH];
} vecd;

VEC_INLINE vecd vecd_of(vec a)
{
    VEC_LANES(vecd, (double)a.f[i]);
}
VEC_INLINE vec vecd_float(vecd a)
{
    VEC_LANES(vec, (float)a.f[i]);
}
VEC_INLINE vecd vecd_set(double x)
{
    VEC_LANES(vecd, x);
}
VEC_INLINE vecd vecd_load(const double *p)
{
    VEC_LANES(vecd, p[i]);
}
VEC_INLINE void vecd_store(double *p, vecd a)
{
    memcpy(p, a.f, sizeof a.f);
}
VEC_INLINE vecd vecd_add(vecd a, vecd b)
{
    VEC_LANES(vecd, a.f[i] + b.f[i]);
}
VEC_INLINE vecd vecd_sub(vecd a, vecd b)
{
    VEC_LANES(vecd, a.f[i] - b.f[i]);
}
VEC_INLINE vecd vecd_mul(vecd a, vecd b)
{
    VEC_LANES(vecd, a.f[i] * b.f[i]);
}
VEC_INLINE vecd vecd_round(vecd a)
{
    VEC_LANES(vecd, rint(a.f[i]));
}
VEC_INLINE double vecd_sum(vecd a)
{
    double sum = 0;
    for (int i = 0; i < VEC_WIDTH; i++)
        sum += a.f[i];
    return sum;
}
VEC_INLINE double vecd_product(vecd a)
{
    double product = 1;
    for (int i = 0; i < VEC_WIDTH; i++)
        product *= a.f[i];
    return product;
}

#endif

#endif
