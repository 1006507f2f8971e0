/* The doubles of a vector of integers, in the same order of lanes: for fixed point, whose products
 * need more than 32 bits (ops/fixed_point.h). */
#ifndef QN_CPU_VEC_INT_DOUBLE_H
#define QN_CPU_VEC_INT_DOUBLE_H

#include "backend/cpu/simd/vec_int32.h"

#if defined(__AVX512F__)
typedef struct qd {
    __m512d low, high;
} qd;
Q_INLINE qd qd_of(qi a)
{
    return (qd){_mm512_cvtepi32_pd(_mm512_castsi512_si256(a)),
                _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(a, 1))};
}
Q_INLINE qd qd_of_floats(const float *p)
{
    return (qd){_mm512_cvtps_pd(_mm256_loadu_ps(p)), _mm512_cvtps_pd(_mm256_loadu_ps(p + 8))};
}
Q_INLINE qd qd_load(const double *p)
{
    return (qd){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)};
}
Q_INLINE void qd_store(double *p, qd a)
{
    _mm512_storeu_pd(p, a.low);
    _mm512_storeu_pd(p + 8, a.high);
}
Q_INLINE void qd_store_floats(float *p, qd a)
{
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(a.low));
    _mm256_storeu_ps(p + 8, _mm512_cvtpd_ps(a.high));
}
Q_INLINE qd qd_set(double x)
{
    return (qd){_mm512_set1_pd(x), _mm512_set1_pd(x)};
}
Q_INLINE qd qd_add(qd a, qd b)
{
    return (qd){_mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high)};
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    return (qd){_mm512_mul_pd(a.low, b.low), _mm512_mul_pd(a.high, b.high)};
}
Q_INLINE qd qd_clamp(qd a, qd low, qd high)
{
    return (qd){_mm512_min_pd(_mm512_max_pd(a.low, low.low), high.low),
                _mm512_min_pd(_mm512_max_pd(a.high, low.high), high.high)};
}
Q_INLINE qi qd_round(qd a) /* of what fits int32, halves to even */
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtpd_epi32(a.low)),
                              _mm512_cvtpd_epi32(a.high), 1);
}
#elif defined(__AVX2__)
typedef struct qd {
    __m256d low, high;
} qd;
Q_INLINE qd qd_of(qi a)
{
    return (qd){_mm256_cvtepi32_pd(_mm256_castsi256_si128(a)),
                _mm256_cvtepi32_pd(_mm256_extracti128_si256(a, 1))};
}
Q_INLINE qd qd_of_floats(const float *p)
{
    return (qd){_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))};
}
Q_INLINE qd qd_load(const double *p)
{
    return (qd){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
Q_INLINE void qd_store(double *p, qd a)
{
    _mm256_storeu_pd(p, a.low);
    _mm256_storeu_pd(p + 4, a.high);
}
Q_INLINE void qd_store_floats(float *p, qd a)
{
    _mm_storeu_ps(p, _mm256_cvtpd_ps(a.low));
    _mm_storeu_ps(p + 4, _mm256_cvtpd_ps(a.high));
}
Q_INLINE qd qd_set(double x)
{
    return (qd){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}
Q_INLINE qd qd_add(qd a, qd b)
{
    return (qd){_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    return (qd){_mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high)};
}
Q_INLINE qd qd_clamp(qd a, qd low, qd high)
{
    return (qd){_mm256_min_pd(_mm256_max_pd(a.low, low.low), high.low),
                _mm256_min_pd(_mm256_max_pd(a.high, low.high), high.high)};
}
Q_INLINE qi qd_round(qd a)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm256_cvtpd_epi32(a.low)),
                                   _mm256_cvtpd_epi32(a.high), 1);
}
#elif defined(__SSE2__)
typedef struct qd {
    __m128d low, high;
} qd;
Q_INLINE qd qd_of(qi a)
{
    return (qd){_mm_cvtepi32_pd(a), _mm_cvtepi32_pd(_mm_unpackhi_epi64(a, a))};
}
Q_INLINE qd qd_of_floats(const float *p)
{
    const __m128 a = _mm_loadu_ps(p);
    return (qd){_mm_cvtps_pd(a), _mm_cvtps_pd(_mm_movehl_ps(a, a))};
}
Q_INLINE qd qd_load(const double *p)
{
    return (qd){_mm_loadu_pd(p), _mm_loadu_pd(p + 2)};
}
Q_INLINE void qd_store(double *p, qd a)
{
    _mm_storeu_pd(p, a.low);
    _mm_storeu_pd(p + 2, a.high);
}
Q_INLINE void qd_store_floats(float *p, qd a)
{
    _mm_storeu_ps(p, _mm_movelh_ps(_mm_cvtpd_ps(a.low), _mm_cvtpd_ps(a.high)));
}
Q_INLINE qd qd_set(double x)
{
    return (qd){_mm_set1_pd(x), _mm_set1_pd(x)};
}
Q_INLINE qd qd_add(qd a, qd b)
{
    return (qd){_mm_add_pd(a.low, b.low), _mm_add_pd(a.high, b.high)};
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    return (qd){_mm_mul_pd(a.low, b.low), _mm_mul_pd(a.high, b.high)};
}
Q_INLINE qd qd_clamp(qd a, qd low, qd high)
{
    return (qd){_mm_min_pd(_mm_max_pd(a.low, low.low), high.low),
                _mm_min_pd(_mm_max_pd(a.high, low.high), high.high)};
}
Q_INLINE qi qd_round(qd a)
{
    return _mm_unpacklo_epi64(_mm_cvtpd_epi32(a.low), _mm_cvtpd_epi32(a.high));
}
#else
#include <math.h>
typedef struct qd {
    double d[QI_LANES];
} qd;
Q_INLINE qd qd_of(qi a)
{
    QI_EACH(qd, d, (double)a.i[i]);
}
Q_INLINE qd qd_of_floats(const float *p)
{
    QI_EACH(qd, d, (double)p[i]);
}
Q_INLINE qd qd_load(const double *p)
{
    QI_EACH(qd, d, p[i]);
}
Q_INLINE void qd_store(double *p, qd a)
{
    memcpy(p, a.d, sizeof a.d);
}
Q_INLINE void qd_store_floats(float *p, qd a)
{
    for (int i = 0; i < QI_LANES; i++)
        p[i] = (float)a.d[i];
}
Q_INLINE qd qd_set(double x)
{
    QI_EACH(qd, d, x);
}
Q_INLINE qd qd_add(qd a, qd b)
{
    QI_EACH(qd, d, a.d[i] + b.d[i]);
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    QI_EACH(qd, d, a.d[i] * b.d[i]);
}
Q_INLINE qd qd_clamp(qd a, qd low, qd high)
{
    QI_EACH(qd, d, fmin(fmax(a.d[i], low.d[i]), high.d[i]));
}
Q_INLINE qi qd_round(qd a)
{
    QI_EACH(qi, i, (int32_t)nearbyint(a.d[i]));
}
#endif

#endif
