/* vec_int32.h in AVX2. */
#ifndef QN_CPU_VEC_INT32_AVX2_H
#define QN_CPU_VEC_INT32_AVX2_H

#include <immintrin.h>

enum { QI_LANES = 8 };
typedef __m256i qi;
typedef __m256 qf;

Q_INLINE qi qi_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
Q_INLINE void qi_store(void *p, qi a)
{
    _mm256_storeu_si256((__m256i *)p, a);
}
Q_INLINE qi qi_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}
/* The sum is in a register here. Compilers add the products of unrolled steps to each other first,
 * where they may, and run out of registers. */
#define Q_ADD_NOW(sum) __asm__("" : "+x"(sum))
Q_INLINE qi qi_add(qi a, qi b)
{
    return _mm256_add_epi32(a, b);
}
Q_INLINE qi qi_sub(qi a, qi b)
{
    return _mm256_sub_epi32(a, b);
}
Q_INLINE qi qi_shift_left(qi a, int bits)
{
    return _mm256_slli_epi32(a, bits);
}
Q_INLINE qi qi_shift_right(qi a, int bits) /* of signed numbers */
{
    return _mm256_srai_epi32(a, bits);
}
Q_INLINE qi qi_add_int16(qi a, qi b)
{
    return _mm256_add_epi16(a, b);
}
Q_INLINE qi qi_sub_int16(qi a, qi b)
{
    return _mm256_sub_epi16(a, b);
}
Q_INLINE qi qi_shift_int16(qi a, int bits) /* to the left */
{
    return _mm256_slli_epi16(a, bits);
}
Q_INLINE qi qi_madd(qi a, qi b)
{
    return _mm256_madd_epi16(a, b);
}
Q_INLINE qi qi_mix_low(qi a, qi b)
{
    return _mm256_unpacklo_epi16(a, b);
}
Q_INLINE qi qi_mix_high(qi a, qi b)
{
    return _mm256_unpackhi_epi16(a, b);
}
Q_INLINE void qi_unmix(qi *a, qi *b)
{
    const qi low = *a;
    *a = _mm256_permute2x128_si256(low, *b, 0x20);
    *b = _mm256_permute2x128_si256(low, *b, 0x31);
}
Q_INLINE qf qi_float(qi a)
{
    return _mm256_cvtepi32_ps(a);
}
Q_INLINE qi qi_load_bytes(const uint8_t *p, bool is_signed, int64_t count)
{
    uint8_t part[QI_LANES] = {0};
    if (count < QI_LANES) {
        memcpy(part, p, (size_t)count);
        p = part;
    }
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)p);
    return is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}
Q_INLINE void qi_store_bytes(uint8_t *p, qi a, int64_t count)
{
    const __m256i low = _mm256_and_si256(a, _mm256_set1_epi32(255));
    const __m128i pairs =
        _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    const __m128i bytes = _mm_packus_epi16(pairs, pairs);
    uint8_t part[QI_LANES];
    _mm_storel_epi64((__m128i *)(count >= QI_LANES ? p : part), bytes);
    if (count < QI_LANES)
        memcpy(p, part, (size_t)count);
}
Q_INLINE qf qf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
Q_INLINE void qf_store(float *p, qf a, int64_t count)
{
    float part[QI_LANES];
    _mm256_storeu_ps(count >= QI_LANES ? p : part, a);
    if (count < QI_LANES)
        memcpy(p, part, (size_t)count * sizeof *p);
}
Q_INLINE qf qf_set(float x)
{
    return _mm256_set1_ps(x);
}
Q_INLINE qf qf_add(qf a, qf b)
{
    return _mm256_add_ps(a, b);
}
Q_INLINE qf qf_sub(qf a, qf b)
{
    return _mm256_sub_ps(a, b);
}
Q_INLINE qf qf_mul(qf a, qf b)
{
    return _mm256_mul_ps(a, b);
}
Q_INLINE qf qf_abs(qf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a);
}
Q_INLINE qf qf_with_sign(qf a, qf x) /* |a| = a, with the sign of x */
{
    return _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0F), x));
}
Q_INLINE qi qf_truncate(qf a)
{
    return _mm256_cvttps_epi32(a);
}
Q_INLINE qf qf_pick(const float table[16], qi i) /* by indices from 0 to 15 */
{
    const qf low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), i);
    const qf high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), i);
    return _mm256_blendv_ps(low, high,
                            _mm256_castsi256_ps(_mm256_cmpgt_epi32(i, _mm256_set1_epi32(7))));
}
Q_INLINE qf qf_by_sign(qf x, qf below, qf above) /* `below` where x < 0 */
{
    return _mm256_blendv_ps(above, below, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}
Q_INLINE qf qf_fma(qf a, qf b, qf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
Q_INLINE qf qf_clamp(qf a, qf low, qf high)
{
    return _mm256_min_ps(_mm256_max_ps(a, low), high);
}
/* What is no number stays none. */
Q_INLINE qf qf_relu(qf a)
{
    return _mm256_max_ps(_mm256_setzero_ps(), a);
}
Q_INLINE qi qf_round(qf a)
{
    return _mm256_cvtps_epi32(a);
}
Q_INLINE qf qf_rint(qf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

typedef struct qi_limits {
    qi zero, low, high, flip;
} qi_limits;
Q_INLINE qi_limits qi_limits_set(int16_t zero, uint8_t low, uint8_t high, uint8_t flip)
{
    return (qi_limits){_mm256_set1_epi16(zero), _mm256_set1_epi8((char)low),
                       _mm256_set1_epi8((char)high), _mm256_set1_epi8((char)flip)};
}
Q_INLINE qi qi_pack(qi a, qi b, qi c, qi d, const qi_limits *l)
{
    const qi first = _mm256_adds_epi16(_mm256_packs_epi32(a, b), l->zero);
    const qi second = _mm256_adds_epi16(_mm256_packs_epi32(c, d), l->zero);
    qi bytes = _mm256_packus_epi16(first, second);
    bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, l->low), l->high);
    const qi order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_xor_si256(bytes, l->flip), order);
}
Q_INLINE qi qi_pack_bytes(qi a, qi b, qi c, qi d)
{
    const qi order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(
        _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)), order);
}
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(a));
    _mm_storeu_si128((__m128i *)q, _mm256_extracti128_si256(a, 1));
}
Q_INLINE void qi_store_quarters(uint8_t *const p[4], qi a)
{
    const __m128i high = _mm256_extracti128_si256(a, 1);
    _mm_storel_epi64((__m128i *)p[0], _mm256_castsi256_si128(a));
    _mm_storel_epi64((__m128i *)p[1], _mm_srli_si128(_mm256_castsi256_si128(a), 8));
    _mm_storel_epi64((__m128i *)p[2], high);
    _mm_storel_epi64((__m128i *)p[3], _mm_srli_si128(high, 8));
}

#endif
