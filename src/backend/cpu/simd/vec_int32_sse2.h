/* vec_int32.h in SSE2. */
#ifndef QN_CPU_VEC_INT32_SSE2_H
#define QN_CPU_VEC_INT32_SSE2_H

#include <emmintrin.h>

enum { QI_LANES = 4 };
typedef __m128i qi;
typedef __m128 qf;

Q_INLINE qi qi_load(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}
Q_INLINE void qi_store(void *p, qi a)
{
    _mm_storeu_si128((__m128i *)p, a);
}
Q_INLINE qi qi_set(int32_t x)
{
    return _mm_set1_epi32(x);
}
Q_INLINE qi qi_add(qi a, qi b)
{
    return _mm_add_epi32(a, b);
}
Q_INLINE qi qi_sub(qi a, qi b)
{
    return _mm_sub_epi32(a, b);
}
Q_INLINE qi qi_shift_left(qi a, int bits)
{
    return _mm_slli_epi32(a, bits);
}
Q_INLINE qi qi_shift_right(qi a, int bits) /* of signed numbers */
{
    return _mm_srai_epi32(a, bits);
}
Q_INLINE qi qi_add_int16(qi a, qi b)
{
    return _mm_add_epi16(a, b);
}
Q_INLINE qi qi_sub_int16(qi a, qi b)
{
    return _mm_sub_epi16(a, b);
}
Q_INLINE qi qi_shift_int16(qi a, int bits) /* to the left */
{
    return _mm_slli_epi16(a, bits);
}
Q_INLINE qi qi_madd(qi a, qi b)
{
    return _mm_madd_epi16(a, b);
}
Q_INLINE qi qi_mix_low(qi a, qi b)
{
    return _mm_unpacklo_epi16(a, b);
}
Q_INLINE qi qi_mix_high(qi a, qi b)
{
    return _mm_unpackhi_epi16(a, b);
}
Q_INLINE void qi_unmix(qi *a, qi *b)
{
    (void)a;
    (void)b;
}
Q_INLINE qf qi_float(qi a)
{
    return _mm_cvtepi32_ps(a);
}
Q_INLINE qf qf_load(const float *p)
{
    return _mm_loadu_ps(p);
}
Q_INLINE void qf_store_all(float *p, qf a)
{
    _mm_storeu_ps(p, a);
}
Q_INLINE qf qf_set(float x)
{
    return _mm_set1_ps(x);
}
Q_INLINE qf qf_add(qf a, qf b)
{
    return _mm_add_ps(a, b);
}
Q_INLINE qf qf_sub(qf a, qf b)
{
    return _mm_sub_ps(a, b);
}
Q_INLINE qf qf_mul(qf a, qf b)
{
    return _mm_mul_ps(a, b);
}
Q_INLINE qf qf_abs(qf a)
{
    return _mm_andnot_ps(_mm_set1_ps(-0.0F), a);
}
Q_INLINE qf qf_with_sign(qf a, qf x) /* |a| = a, with the sign of x */
{
    return _mm_or_ps(a, _mm_and_ps(_mm_set1_ps(-0.0F), x));
}
Q_INLINE qi qf_truncate(qf a)
{
    return _mm_cvttps_epi32(a);
}
Q_INLINE qf qf_pick(const float table[16], qi i) /* by indices from 0 to 15 */
{
    int32_t at[4];
    _mm_storeu_si128((__m128i *)at, i);
    return _mm_setr_ps(table[at[0]], table[at[1]], table[at[2]], table[at[3]]);
}
Q_INLINE qf qf_by_sign(qf x, qf below, qf above) /* `below` where x < 0 */
{
    const __m128 less = _mm_cmplt_ps(x, _mm_setzero_ps());
    return _mm_or_ps(_mm_and_ps(less, below), _mm_andnot_ps(less, above));
}
Q_INLINE qf qf_clamp(qf a, qf low, qf high)
{
    return _mm_min_ps(_mm_max_ps(a, low), high);
}
/* What is no number stays none. */
Q_INLINE qf qf_relu(qf a)
{
    return _mm_max_ps(_mm_setzero_ps(), a);
}
Q_INLINE qi qf_round(qf a)
{
    return _mm_cvtps_epi32(a);
}

typedef struct qi_limits {
    qi zero, low, high, flip;
} qi_limits;
Q_INLINE qi_limits qi_limits_set(int16_t zero, uint8_t low, uint8_t high, uint8_t flip)
{
    return (qi_limits){_mm_set1_epi16(zero), _mm_set1_epi8((char)low), _mm_set1_epi8((char)high),
                       _mm_set1_epi8((char)flip)};
}
Q_INLINE qi qi_pack(qi a, qi b, qi c, qi d, const qi_limits *l)
{
    const qi first = _mm_adds_epi16(_mm_packs_epi32(a, b), l->zero);
    const qi second = _mm_adds_epi16(_mm_packs_epi32(c, d), l->zero);
    const qi bytes = _mm_packus_epi16(first, second);
    return _mm_xor_si128(_mm_min_epu8(_mm_max_epu8(bytes, l->low), l->high), l->flip);
}
Q_INLINE qi qi_pack_bytes(qi a, qi b, qi c, qi d)
{
    return _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
}
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    _mm_storel_epi64((__m128i *)p, a);
    _mm_storel_epi64((__m128i *)q, _mm_srli_si128(a, 8));
}
Q_INLINE void qi_store_quarters(uint8_t *const p[4], qi a)
{
    int32_t parts[4];
    _mm_storeu_si128((__m128i *)parts, a);
    for (int i = 0; i < 4; i++)
        memcpy(p[i], &parts[i], sizeof parts[i]);
}

#endif
