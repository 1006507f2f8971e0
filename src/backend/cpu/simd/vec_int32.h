/* A vector of 32-bit sums in the instruction set that the including file is compiled for, and the
 * dot product that adds to it.
 *
 *   with VNNI   4 bytes a lane: uint8 times int8
 *   else        2 numbers of 16 bits a lane: bytes are widened first, since the instruction that
 *               multiplies bytes saturates
 *
 * Both are exact. qi: integers, qf: the same lanes as floats. */
#ifndef QN_CPU_VEC_INT32_H
#define QN_CPU_VEC_INT32_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define Q_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#include "backend/cpu/simd/vec_int32_avx512.h"
#elif defined(__AVX2__)
#include "backend/cpu/simd/vec_int32_avx2.h"
#elif defined(__SSE2__)
#include "backend/cpu/simd/vec_int32_sse2.h"
#else
#include "backend/cpu/simd/vec_int32_plain.h"
#endif

#if !defined(__AVX2__)
Q_INLINE qf qf_rint(qf a) /* of what fits int32 */
{
    return qi_float(qf_round(a));
}
#if defined(__SSE2__)
Q_INLINE qi qi_load_bytes(const uint8_t *p, bool is_signed, int64_t count)
{
    const __m128i zero = _mm_setzero_si128();
    int32_t four = 0;
    if (count >= QI_LANES)
        memcpy(&four, p, sizeof four);
    else
        memcpy(&four, p, (size_t)count);
    const __m128i bytes = _mm_cvtsi32_si128(four);
    if (is_signed) /* to the top of the lane and down again */
        return _mm_srai_epi32(_mm_unpacklo_epi16(zero, _mm_unpacklo_epi8(zero, bytes)), 24);
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
}
Q_INLINE void qi_store_bytes(uint8_t *p, qi a, int64_t count)
{
    const __m128i low = _mm_and_si128(a, _mm_set1_epi32(255));
    const __m128i pairs = _mm_packs_epi32(low, low);
    const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(pairs, pairs));
    if (count >= QI_LANES)
        memcpy(p, &four, sizeof four);
    else
        memcpy(p, &four, (size_t)count);
}
/* a * b + c rounded once. |a| < 2^17, so a * b is exact in double. Their sum is rounded to odd
 * there, which leaves enough for the rounding to float to be the only one that counts: where
 * something was lost (rest), towards zero and then the last bit set. */
Q_INLINE __m128 fma_rounded_once(__m128d a, __m128d b, __m128d c)
{
    const __m128d p = _mm_mul_pd(a, b), s = _mm_add_pd(p, c), t = _mm_sub_pd(s, p);
    const __m128d rest = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, t)), _mm_sub_pd(c, t));
    const __m128d zero = _mm_setzero_pd();
    const __m128i lost = _mm_castpd_si128(_mm_cmpneq_pd(rest, zero));
    const __m128i beyond = _mm_castpd_si128(_mm_cmplt_pd(_mm_mul_pd(rest, s), zero));
    const __m128i one = _mm_set_epi32(0, 1, 0, 1);
    const __m128i down = _mm_sub_epi64(_mm_castpd_si128(s), _mm_and_si128(beyond, one));
    return _mm_cvtpd_ps(_mm_castsi128_pd(_mm_or_si128(down, _mm_and_si128(lost, one))));
}
Q_INLINE qf qf_fma(qf a, qf b, qf c)
{
    const __m128 low = fma_rounded_once(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
    const __m128 high =
        fma_rounded_once(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)),
                         _mm_cvtps_pd(_mm_movehl_ps(c, c)));
    return _mm_movelh_ps(low, high);
}
#else
/* Lanes one by one where there are no instructions for it. */
Q_INLINE qi qi_load_bytes(const uint8_t *p, bool is_signed, int64_t count)
{
    int32_t lanes[QI_LANES] = {0};
    for (int64_t i = 0; i < QI_LANES && i < count; i++)
        lanes[i] = is_signed ? (int8_t)p[i] : p[i];
    return qi_load(lanes);
}
Q_INLINE void qi_store_bytes(uint8_t *p, qi a, int64_t count)
{
    int32_t lanes[QI_LANES];
    qi_store(lanes, a);
    for (int64_t i = 0; i < QI_LANES && i < count; i++)
        p[i] = (uint8_t)lanes[i];
}
Q_INLINE qf qf_fma(qf a, qf b, qf c) /* rounded once */
{
    QI_EACH(qf, f, fmaf(a.f[i], b.f[i], c.f[i]));
}
#endif
Q_INLINE void qf_store(float *p, qf a, int64_t count)
{
    float lanes[QI_LANES];
    qf_store_all(lanes, a);
    memcpy(p, lanes, (size_t)(count < QI_LANES ? count : QI_LANES) * sizeof *p);
}
#endif

enum { QI_BYTES = QI_LANES * 4 };

/* Four bytes in every lane. */
Q_INLINE qi qi_broadcast(const uint8_t *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return qi_set(x);
}

/* What lies `ahead` bytes from p, which may be nothing, is wanted soon. */
Q_INLINE void qi_fetch(const uint8_t *p, uintptr_t ahead)
{
#if defined(__AVX2__)
    _mm_prefetch((const char *)((uintptr_t)p + ahead), _MM_HINT_T0);
#else
    (void)p;
    (void)ahead;
#endif
}

#if defined(__AVX512VNNI__)
enum { QI_DOT = 4 }; /* products a lane */
Q_INLINE qi qi_dot(qi sum, qi x, qi w)
{
    return _mm512_dpbusd_epi32(sum, x, w);
}
#else
enum { QI_DOT = 2 };
Q_INLINE qi qi_dot(qi sum, qi x, qi w)
{
    return qi_add(sum, qi_madd(x, w));
}
#endif

#if defined(__AVX512VNNI__)
#define Q_NAME(name) name##_vnni
#elif defined(__AVX512F__)
#define Q_NAME(name) name##_avx512
#elif defined(__AVX2__)
#define Q_NAME(name) name##_avx2
#else
#define Q_NAME(name) name##_base
#endif

#endif
