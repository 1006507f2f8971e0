/* What products of 16-bit numbers need beyond vec_int32.h: dot products of 16-bit numbers, and
 * exact sums beyond 32 bits.
 *
 * Those are held in doubles (qd: as many as qi has lanes), which hold every integer up to 2^53: all
 * additions are exact, and the only rounding is the last one, to float. */
#ifndef QN_CPU_VEC_INT16_H
#define QN_CPU_VEC_INT16_H

#include "backend/cpu/simd/vec_quantized.h"

/* sum + x[0] * w[0] + x[1] * w[1] in every lane; the caller sees to it that it fits. */
Q_INLINE qi qi_dot_int16(qi sum, qi x, qi w)
{
#if defined(__AVX512VNNI__)
    return _mm512_dpwssd_epi32(sum, x, w);
#else
    return qi_add(sum, qi_madd(x, w));
#endif
}

/* Beyond all numbers of 16 bits, zero points included. */
#define QD_MOST 0x1p22

/* Each instruction set has: half of qd, the integers of that half, and how qi and qf are divided
 * into halves. */
#if defined(__AVX512F__)
#define Q_MM(name) _mm512_##name
enum { QD_HALF = 8 };
typedef __m512d qd_half;
typedef __m256i qi_half;
Q_INLINE qi_half qi_low(qi a)
{
    return _mm512_castsi512_si256(a);
}
Q_INLINE qi_half qi_high(qi a)
{
    return _mm512_extracti64x4_epi64(a, 1);
}
Q_INLINE qi qi_join(qi_half low, qi_half high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
Q_INLINE qf qf_join(__m256 low, __m256 high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
/* Signed bytes as 16-bit numbers. */
Q_INLINE qi qi_load_int8_as_int16(const uint8_t *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p));
}
#elif defined(__AVX2__)
#define Q_MM(name) _mm256_##name
enum { QD_HALF = 4 };
typedef __m256d qd_half;
typedef __m128i qi_half;
Q_INLINE qi_half qi_low(qi a)
{
    return _mm256_castsi256_si128(a);
}
Q_INLINE qi_half qi_high(qi a)
{
    return _mm256_extracti128_si256(a, 1);
}
Q_INLINE qi qi_join(qi_half low, qi_half high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
Q_INLINE qf qf_join(__m128 low, __m128 high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
Q_INLINE qi qi_load_int8_as_int16(const uint8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}
#elif defined(__SSE2__)
#define Q_MM(name) _mm_##name
enum { QD_HALF = 2 };
typedef __m128d qd_half;
typedef __m128i qi_half; /* in its lower half */
Q_INLINE qi_half qi_low(qi a)
{
    return a;
}
Q_INLINE qi_half qi_high(qi a)
{
    return _mm_srli_si128(a, 8);
}
Q_INLINE qi qi_join(qi_half low, qi_half high)
{
    return _mm_unpacklo_epi64(low, high);
}
Q_INLINE qf qf_join(__m128 low, __m128 high)
{
    return _mm_movelh_ps(low, high);
}
Q_INLINE qi qi_load_int8_as_int16(const uint8_t *p)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)p);
    return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}
#endif

#if defined(Q_MM)
typedef struct qd {
    qd_half low, high;
} qd;
Q_INLINE qd qd_load(const double *p)
{
    return (qd){Q_MM(loadu_pd)(p), Q_MM(loadu_pd)(p + QD_HALF)};
}
Q_INLINE qd qd_of(qi a)
{
    return (qd){Q_MM(cvtepi32_pd)(qi_low(a)), Q_MM(cvtepi32_pd)(qi_high(a))};
}
Q_INLINE qd qd_add(qd a, qd b)
{
    return (qd){Q_MM(add_pd)(a.low, b.low), Q_MM(add_pd)(a.high, b.high)};
}
Q_INLINE qd qd_set(double x)
{
    return (qd){Q_MM(set1_pd)(x), Q_MM(set1_pd)(x)};
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    return (qd){Q_MM(mul_pd)(a.low, b.low), Q_MM(mul_pd)(a.high, b.high)};
}
Q_INLINE qi_half whole_half(qd_half a)
{
    const qd_half most = Q_MM(set1_pd)(QD_MOST), least = Q_MM(set1_pd)(-QD_MOST);
    return Q_MM(cvtpd_epi32)(Q_MM(min_pd)(Q_MM(max_pd)(a, least), most));
}
/* Limited to QD_MOST on both sides, and rounded, halves to even. */
Q_INLINE qi qd_whole(qd a)
{
    return qi_join(whole_half(a.low), whole_half(a.high));
}
Q_INLINE qf qd_float(qd a)
{
    return qf_join(Q_MM(cvtpd_ps)(a.low), Q_MM(cvtpd_ps)(a.high));
}
/* The upper half of every lane, a = 65536 * upper + lower, lower from 0 to 65535. */
Q_INLINE qi qi_upper(qi a)
{
    return Q_MM(srai_epi32)(a, 16);
}
/* The bytes of 16-bit numbers, w = 256 * high + low, low from 0 to 255. */
Q_INLINE qi qi_int16_low(qi a)
{
    return qi_and(a, Q_MM(set1_epi16)(255));
}
Q_INLINE qi qi_int16_high(qi a)
{
    return Q_MM(srai_epi16)(a, 8);
}
#else
typedef struct qd {
    double d[QI_LANES];
} qd;
Q_INLINE qd qd_load(const double *p)
{
    QI_EACH(qd, d, p[i]);
}
Q_INLINE qd qd_of(qi a)
{
    QI_EACH(qd, d, a.i[i]);
}
Q_INLINE qd qd_add(qd a, qd b)
{
    QI_EACH(qd, d, a.d[i] + b.d[i]);
}
Q_INLINE qd qd_set(double x)
{
    QI_EACH(qd, d, x);
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    QI_EACH(qd, d, a.d[i] * b.d[i]);
}
Q_INLINE int32_t whole_one(double x)
{
    const double limited = x > -QD_MOST ? x < QD_MOST ? x : QD_MOST : -QD_MOST;
    const double shift = 0x1.8p52;
    return (int32_t)((limited + shift) - shift);
}
Q_INLINE qi qd_whole(qd a)
{
    QI_EACH(qi, i, whole_one(a.d[i]));
}
Q_INLINE qf qd_float(qd a)
{
    QI_EACH(qf, f, (float)a.d[i]);
}
Q_INLINE qi qi_upper(qi a)
{
    QI_EACH(qi, i, (a.i[i] - (a.i[i] & 65535)) / 65536);
}
Q_INLINE qi qi_each_int16(qi a, int shift)
{
    int16_t numbers[2 * QI_LANES];
    memcpy(numbers, &a, sizeof numbers);
    for (int i = 0; i < 2 * QI_LANES; i++)
        numbers[i] = (int16_t)(shift ? (numbers[i] - (numbers[i] & 255)) / 256 : numbers[i] & 255);
    return qi_load(numbers);
}
Q_INLINE qi qi_load_int8_as_int16(const uint8_t *p)
{
    int16_t numbers[2 * QI_LANES];
    for (int i = 0; i < 2 * QI_LANES; i++)
        numbers[i] = (int8_t)p[i];
    return qi_load(numbers);
}
Q_INLINE qi qi_int16_low(qi a)
{
    return qi_each_int16(a, 0);
}
Q_INLINE qi qi_int16_high(qi a)
{
    return qi_each_int16(a, 8);
}
#endif

Q_INLINE qd qd_times(qd a, double b)
{
    return qd_mul(a, qd_set(b));
}

#endif
