/* vec_int32.h in AVX-512. */
#ifndef QN_CPU_VEC_INT32_AVX512_H
#define QN_CPU_VEC_INT32_AVX512_H

#include <immintrin.h>

enum { QI_LANES = 16 };
typedef __m512i qi;
typedef __m512 qf;

Q_INLINE __mmask16 qi_first(int64_t count)
{
    return (__mmask16)(count >= QI_LANES ? 0xffff : (1u << count) - 1);
}
Q_INLINE qi qi_load(const void *p)
{
    return _mm512_loadu_si512(p);
}
Q_INLINE void qi_store(void *p, qi a)
{
    _mm512_storeu_si512(p, a);
}
Q_INLINE qi qi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}
Q_INLINE qi qi_add(qi a, qi b)
{
    return _mm512_add_epi32(a, b);
}
Q_INLINE qi qi_sub(qi a, qi b)
{
    return _mm512_sub_epi32(a, b);
}
Q_INLINE qi qi_shift_left(qi a, int bits)
{
    return _mm512_slli_epi32(a, (unsigned)bits);
}
Q_INLINE qi qi_shift_right(qi a, int bits) /* of signed numbers */
{
    return _mm512_srai_epi32(a, (unsigned)bits);
}
Q_INLINE qi qi_add_int16(qi a, qi b)
{
    return _mm512_add_epi16(a, b);
}
Q_INLINE qi qi_sub_int16(qi a, qi b)
{
    return _mm512_sub_epi16(a, b);
}
Q_INLINE qi qi_shift_int16(qi a, int bits) /* to the left */
{
    return _mm512_slli_epi16(a, (unsigned)bits);
}
Q_INLINE qi qi_madd(qi a, qi b) /* pairs of 16 bit */
{
    return _mm512_madd_epi16(a, b);
}
/* 16 bits of a and b in turns, the first and the second half of every 128 bits; qi_unmix brings
 * lanes that were computed from the two back in order. */
Q_INLINE qi qi_mix_low(qi a, qi b)
{
    return _mm512_unpacklo_epi16(a, b);
}
Q_INLINE qi qi_mix_high(qi a, qi b)
{
    return _mm512_unpackhi_epi16(a, b);
}
Q_INLINE void qi_unmix(qi *a, qi *b)
{
    const qi first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const qi second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const qi low = *a;
    *a = _mm512_permutex2var_epi64(low, first, *b);
    *b = _mm512_permutex2var_epi64(low, second, *b);
}
Q_INLINE qf qi_float(qi a)
{
    return _mm512_cvtepi32_ps(a);
}
/* The first `count` bytes, widened; all lanes where there are more. */
Q_INLINE qi qi_load_bytes(const uint8_t *p, bool is_signed, int64_t count)
{
    const __m128i bytes = count >= QI_LANES ? _mm_loadu_si128((const __m128i *)p)
                                            : _mm_maskz_loadu_epi8(qi_first(count), p);
    return is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}
Q_INLINE void qi_store_bytes(uint8_t *p, qi a, int64_t count)
{
    const __m128i bytes = _mm512_cvtepi32_epi8(a);
    if (count >= QI_LANES)
        _mm_storeu_si128((__m128i *)p, bytes);
    else
        _mm_mask_storeu_epi8(p, qi_first(count), bytes);
}
Q_INLINE qf qf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
Q_INLINE void qf_store(float *p, qf a, int64_t count)
{
    if (count >= QI_LANES)
        _mm512_storeu_ps(p, a);
    else
        _mm512_mask_storeu_ps(p, qi_first(count), a);
}
Q_INLINE qf qf_set(float x)
{
    return _mm512_set1_ps(x);
}
Q_INLINE qf qf_add(qf a, qf b)
{
    return _mm512_add_ps(a, b);
}
Q_INLINE qf qf_sub(qf a, qf b)
{
    return _mm512_sub_ps(a, b);
}
Q_INLINE qf qf_mul(qf a, qf b)
{
    return _mm512_mul_ps(a, b);
}
Q_INLINE qf qf_abs(qf a)
{
    return _mm512_abs_ps(a);
}
Q_INLINE qf qf_with_sign(qf a, qf x) /* |a| = a, with the sign of x */
{
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN));
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(a), sign));
}
Q_INLINE qi qf_truncate(qf a)
{
    return _mm512_cvttps_epi32(a);
}
Q_INLINE qf qf_pick(const float table[16], qi i) /* by indices from 0 to 15 */
{
    return _mm512_permutexvar_ps(i, _mm512_loadu_ps(table));
}
Q_INLINE qf qf_by_sign(qf x, qf below, qf above) /* `below` where x < 0 */
{
    return _mm512_mask_mov_ps(above, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), below);
}
Q_INLINE qf qf_fma(qf a, qf b, qf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* No number becomes `low`. */
Q_INLINE qf qf_clamp(qf a, qf low, qf high)
{
    return _mm512_min_ps(_mm512_max_ps(a, low), high);
}
/* What is no number stays none. */
Q_INLINE qf qf_relu(qf a)
{
    return _mm512_max_ps(_mm512_setzero_ps(), a);
}
Q_INLINE qi qf_round(qf a) /* halves to even */
{
    return _mm512_cvtps_epi32(a);
}
Q_INLINE qf qf_rint(qf a) /* the same as floats */
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Bytes: min(max(saturated(a + zero), low), high) ^ flip, all of a, then of b, c and d. */
typedef struct qi_limits {
    /* 16 bit */
    qi zero;
    /* uint8 */
    qi low, high;
    qi flip;
} qi_limits;
Q_INLINE qi_limits qi_limits_set(int16_t zero, uint8_t low, uint8_t high, uint8_t flip)
{
    return (qi_limits){_mm512_set1_epi16(zero), _mm512_set1_epi8((char)low),
                       _mm512_set1_epi8((char)high), _mm512_set1_epi8((char)flip)};
}
/* The same with the bytes of every 128 bits together. */
Q_INLINE qi qi_pack_lanes(qi a, qi b, qi c, qi d, const qi_limits *l)
{
    const qi first = _mm512_adds_epi16(_mm512_packs_epi32(a, b), l->zero);
    const qi second = _mm512_adds_epi16(_mm512_packs_epi32(c, d), l->zero);
    qi bytes = _mm512_packus_epi16(first, second);
    bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, l->low), l->high);
    return _mm512_xor_si512(bytes, l->flip);
}
Q_INLINE qi qi_pack(qi a, qi b, qi c, qi d, const qi_limits *l)
{
    const qi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, qi_pack_lanes(a, b, c, d, l));
}
/* All of a, then of b, c and d, limited to uint8. */
Q_INLINE qi qi_pack_bytes(qi a, qi b, qi c, qi d)
{
    const qi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(
        order, _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d)));
}
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(a));
    _mm256_storeu_si256((__m256i *)q, _mm512_extracti64x4_epi64(a, 1));
}
Q_INLINE void qi_store_quarters(uint8_t *const p[4], qi a)
{
    _mm_storeu_si128((__m128i *)p[0], _mm512_castsi512_si128(a));
    _mm_storeu_si128((__m128i *)p[1], _mm512_extracti32x4_epi32(a, 1));
    _mm_storeu_si128((__m128i *)p[2], _mm512_extracti32x4_epi32(a, 2));
    _mm_storeu_si128((__m128i *)p[3], _mm512_extracti32x4_epi32(a, 3));
}

#endif
