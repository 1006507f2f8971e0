/* What products of 16-bit numbers need beyond q_vec.h: dot products of words, and exact sums beyond 32 bits.
 *
 * Those are held in doubles (qd: as many as qi has lanes), which hold every integer up to 2^53: all
 * additions are exact, and the only rounding is the last one, to float. */
#ifndef QN_Q_WORDS_H
#define QN_Q_WORDS_H

#include "backend/cpu/q_elem_vec.h"

/* sum + x[0] * w[0] + x[1] * w[1] in every lane; the caller sees to it that it fits. */
Q_INLINE qi qi_dot_words(qi sum, qi x, qi w)
{
#if defined(__AVX512VNNI__)
    return _mm512_dpwssd_epi32(sum, x, w);
#else
    return qi_add(sum, qi_madd(x, w));
#endif
}

/* Beyond all numbers of 16 bits, zero points included. */
#define QD_MOST 0x1p22

#if defined(__AVX512F__)
typedef struct qd {
    __m512d low, high;
} qd;
Q_INLINE qd qd_load(const double *p)
{
    return (qd){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)};
}
Q_INLINE qd qd_of(qi a)
{
    return (qd){_mm512_cvtepi32_pd(_mm512_castsi512_si256(a)),
                _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(a, 1))};
}
Q_INLINE qd qd_add(qd a, qd b)
{
    return (qd){_mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high)};
}
Q_INLINE qd qd_set(double x)
{
    return (qd){_mm512_set1_pd(x), _mm512_set1_pd(x)};
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    return (qd){_mm512_mul_pd(a.low, b.low), _mm512_mul_pd(a.high, b.high)};
}
Q_INLINE __m256i whole_half(__m512d a)
{
    const __m512d most = _mm512_set1_pd(QD_MOST), least = _mm512_set1_pd(-QD_MOST);
    return _mm512_cvtpd_epi32(_mm512_min_pd(_mm512_max_pd(a, least), most));
}
/* Limited to QD_MOST on both sides, and rounded, halves to even. */
Q_INLINE qi qd_whole(qd a)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(whole_half(a.low)), whole_half(a.high), 1);
}
Q_INLINE qd qd_times(qd a, double b)
{
    const __m512d all = _mm512_set1_pd(b);
    return (qd){_mm512_mul_pd(a.low, all), _mm512_mul_pd(a.high, all)};
}
Q_INLINE qf qd_float(qd a)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.low)),
                              _mm512_cvtpd_ps(a.high), 1);
}
/* Signed bytes as words; the bytes of words, w = 256 * high + low, low from 0 to 255. */
Q_INLINE qi qi_load_widened(const uint8_t *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p));
}
Q_INLINE qi qi_words_low(qi a)
{
    return _mm512_and_si512(a, _mm512_set1_epi16(255));
}
Q_INLINE qi qi_words_high(qi a)
{
    return _mm512_srai_epi16(a, 8);
}
#elif defined(__AVX2__)
typedef struct qd {
    __m256d low, high;
} qd;
Q_INLINE qd qd_load(const double *p)
{
    return (qd){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
Q_INLINE qd qd_of(qi a)
{
    return (qd){_mm256_cvtepi32_pd(_mm256_castsi256_si128(a)),
                _mm256_cvtepi32_pd(_mm256_extracti128_si256(a, 1))};
}
Q_INLINE qd qd_add(qd a, qd b)
{
    return (qd){_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
}
Q_INLINE qd qd_set(double x)
{
    return (qd){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    return (qd){_mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high)};
}
Q_INLINE __m128i whole_half(__m256d a)
{
    const __m256d most = _mm256_set1_pd(QD_MOST), least = _mm256_set1_pd(-QD_MOST);
    return _mm256_cvtpd_epi32(_mm256_min_pd(_mm256_max_pd(a, least), most));
}
/* Limited to QD_MOST on both sides, and rounded, halves to even. */
Q_INLINE qi qd_whole(qd a)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(whole_half(a.low)), whole_half(a.high),
                                   1);
}
Q_INLINE qd qd_times(qd a, double b)
{
    const __m256d all = _mm256_set1_pd(b);
    return (qd){_mm256_mul_pd(a.low, all), _mm256_mul_pd(a.high, all)};
}
Q_INLINE qf qd_float(qd a)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.low)),
                                _mm256_cvtpd_ps(a.high), 1);
}
Q_INLINE qi qi_load_widened(const uint8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}
Q_INLINE qi qi_words_low(qi a)
{
    return _mm256_and_si256(a, _mm256_set1_epi16(255));
}
Q_INLINE qi qi_words_high(qi a)
{
    return _mm256_srai_epi16(a, 8);
}
#elif defined(__SSE2__)
typedef struct qd {
    __m128d low, high;
} qd;
Q_INLINE qd qd_load(const double *p)
{
    return (qd){_mm_loadu_pd(p), _mm_loadu_pd(p + 2)};
}
Q_INLINE qd qd_of(qi a)
{
    return (qd){_mm_cvtepi32_pd(a), _mm_cvtepi32_pd(_mm_srli_si128(a, 8))};
}
Q_INLINE qd qd_add(qd a, qd b)
{
    return (qd){_mm_add_pd(a.low, b.low), _mm_add_pd(a.high, b.high)};
}
Q_INLINE qd qd_set(double x)
{
    return (qd){_mm_set1_pd(x), _mm_set1_pd(x)};
}
Q_INLINE qd qd_mul(qd a, qd b)
{
    return (qd){_mm_mul_pd(a.low, b.low), _mm_mul_pd(a.high, b.high)};
}
Q_INLINE __m128i whole_half(__m128d a)
{
    const __m128d most = _mm_set1_pd(QD_MOST), least = _mm_set1_pd(-QD_MOST);
    return _mm_cvtpd_epi32(_mm_min_pd(_mm_max_pd(a, least), most));
}
/* Limited to QD_MOST on both sides, and rounded, halves to even. */
Q_INLINE qi qd_whole(qd a)
{
    return _mm_unpacklo_epi64(whole_half(a.low), whole_half(a.high));
}
Q_INLINE qd qd_times(qd a, double b)
{
    const __m128d all = _mm_set1_pd(b);
    return (qd){_mm_mul_pd(a.low, all), _mm_mul_pd(a.high, all)};
}
Q_INLINE qf qd_float(qd a)
{
    return _mm_movelh_ps(_mm_cvtpd_ps(a.low), _mm_cvtpd_ps(a.high));
}
Q_INLINE qi qi_load_widened(const uint8_t *p)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)p);
    return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}
Q_INLINE qi qi_words_low(qi a)
{
    return _mm_and_si128(a, _mm_set1_epi16(255));
}
Q_INLINE qi qi_words_high(qi a)
{
    return _mm_srai_epi16(a, 8);
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
Q_INLINE qd qd_times(qd a, double b)
{
    QI_EACH(qd, d, a.d[i] * b);
}
Q_INLINE qf qd_float(qd a)
{
    QI_EACH(qf, f, (float)a.d[i]);
}
Q_INLINE qi qi_each_word(qi a, int shift)
{
    int16_t words[2 * QI_LANES];
    memcpy(words, &a, sizeof words);
    for (int i = 0; i < 2 * QI_LANES; i++)
        words[i] = (int16_t)(shift ? (words[i] - (words[i] & 255)) / 256 : words[i] & 255);
    return qi_load(words);
}
Q_INLINE qi qi_load_widened(const uint8_t *p)
{
    int16_t words[2 * QI_LANES];
    for (int i = 0; i < 2 * QI_LANES; i++)
        words[i] = (int8_t)p[i];
    return qi_load(words);
}
Q_INLINE qi qi_words_low(qi a)
{
    return qi_each_word(a, 0);
}
Q_INLINE qi qi_words_high(qi a)
{
    return qi_each_word(a, 8);
}
#endif

#endif
