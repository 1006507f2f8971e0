/* A vector of 32-bit sums in the instruction set that the including file is compiled for, and the dot
 * product that adds to it.
 *
 *   with VNNI   4 bytes a lane: uint8 times int8
 *   else        2 numbers of 16 bit a lane: bytes are widened first, since the instruction that multiplies
 *               bytes saturates
 *
 * Both are exact. qi: integers, qf: the same lanes as floats. */
#ifndef QN_Q_VEC_H
#define QN_Q_VEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define Q_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
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
Q_INLINE qi qi_madd(qi a, qi b) /* pairs of 16 bit */
{
    return _mm512_madd_epi16(a, b);
}
/* 16 bits of a and b in turns, the first and the second half of every 128 bits; qi_unmix brings lanes that
 * were computed from the two back in order. */
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
Q_INLINE qf qf_mul(qf a, qf b)
{
    return _mm512_mul_ps(a, b);
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
    qi zero;      /* 16 bit */
    qi low, high; /* uint8 */
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
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(a));
    _mm256_storeu_si256((__m256i *)q, _mm512_extracti64x4_epi64(a, 1));
}

#elif defined(__AVX2__)
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
Q_INLINE qi qi_add(qi a, qi b)
{
    return _mm256_add_epi32(a, b);
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
Q_INLINE qf qf_mul(qf a, qf b)
{
    return _mm256_mul_ps(a, b);
}
Q_INLINE qf qf_fma(qf a, qf b, qf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
Q_INLINE qf qf_clamp(qf a, qf low, qf high)
{
    return _mm256_min_ps(_mm256_max_ps(a, low), high);
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
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(a));
    _mm_storeu_si128((__m128i *)q, _mm256_extracti128_si256(a, 1));
}

#elif defined(__SSE2__)
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
Q_INLINE qf qf_mul(qf a, qf b)
{
    return _mm_mul_ps(a, b);
}
Q_INLINE qf qf_clamp(qf a, qf low, qf high)
{
    return _mm_min_ps(_mm_max_ps(a, low), high);
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
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    _mm_storel_epi64((__m128i *)p, a);
    _mm_storel_epi64((__m128i *)q, _mm_srli_si128(a, 8));
}

#else
#include <math.h>

enum { QI_LANES = 4 };
typedef struct qi {
    int32_t i[4];
} qi;
typedef struct qf {
    float f[4];
} qf;
#define QI_EACH(type, field, expression)                                                           \
    type r;                                                                                        \
    for (int i = 0; i < QI_LANES; i++)                                                             \
        r.field[i] = (expression);                                                                 \
    return r

Q_INLINE qi qi_load(const void *p)
{
    qi r;
    memcpy(&r, p, sizeof r);
    return r;
}
Q_INLINE void qi_store(void *p, qi a)
{
    memcpy(p, &a, sizeof a);
}
Q_INLINE qi qi_set(int32_t x)
{
    QI_EACH(qi, i, x);
}
Q_INLINE qi qi_add(qi a, qi b) /* wraps, as vectors do */
{
    QI_EACH(qi, i, (int32_t)((uint32_t)a.i[i] + (uint32_t)b.i[i]));
}
Q_INLINE qi qi_madd(qi a, qi b)
{
    int16_t x[2 * QI_LANES], y[2 * QI_LANES];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    QI_EACH(qi, i, x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1]);
}
Q_INLINE qi qi_mix(qi a, qi b, int first)
{
    int16_t x[2 * QI_LANES], y[2 * QI_LANES], z[2 * QI_LANES];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < 2 * QI_LANES; i++)
        z[i] = i % 2 ? y[first + i / 2] : x[first + i / 2];
    return qi_load(z);
}
Q_INLINE qi qi_mix_low(qi a, qi b)
{
    return qi_mix(a, b, 0);
}
Q_INLINE qi qi_mix_high(qi a, qi b)
{
    return qi_mix(a, b, QI_LANES);
}
Q_INLINE void qi_unmix(qi *a, qi *b)
{
    (void)a;
    (void)b;
}
Q_INLINE qf qi_float(qi a)
{
    QI_EACH(qf, f, (float)a.i[i]);
}
Q_INLINE qf qf_load(const float *p)
{
    QI_EACH(qf, f, p[i]);
}
Q_INLINE void qf_store_all(float *p, qf a)
{
    memcpy(p, &a, sizeof a);
}
Q_INLINE qf qf_set(float x)
{
    QI_EACH(qf, f, x);
}
Q_INLINE qf qf_add(qf a, qf b)
{
    QI_EACH(qf, f, a.f[i] + b.f[i]);
}
Q_INLINE qf qf_mul(qf a, qf b)
{
    QI_EACH(qf, f, a.f[i] * b.f[i]);
}
Q_INLINE qf qf_clamp(qf a, qf low, qf high)
{
    QI_EACH(qf, f, fminf(a.f[i] > low.f[i] ? a.f[i] : low.f[i], high.f[i]));
}
Q_INLINE qi qf_round(qf a)
{
    QI_EACH(qi, i, (int32_t)rintf(a.f[i]));
}
typedef struct qi_limits {
    int32_t zero, low, high, flip;
} qi_limits;
Q_INLINE qi_limits qi_limits_set(int16_t zero, uint8_t low, uint8_t high, uint8_t flip)
{
    return (qi_limits){zero, low, high, flip};
}
Q_INLINE qi qi_pack(qi a, qi b, qi c, qi d, const qi_limits *l)
{
    const qi all[4] = {a, b, c, d};
    uint8_t bytes[4 * QI_LANES];
    for (int i = 0; i < 4 * QI_LANES; i++) {
        const int64_t x = (int64_t)all[i / QI_LANES].i[i % QI_LANES] + l->zero;
        bytes[i] = (uint8_t)((x < l->low ? l->low : x > l->high ? l->high : x) ^ l->flip);
    }
    return qi_load(bytes);
}
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    memcpy(p, &a, sizeof a / 2);
    memcpy(q, (const char *)&a + sizeof a / 2, sizeof a / 2);
}
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
/* a * b + c rounded once. |a| < 2^17, so a * b is exact in double. Their sum is rounded to odd there, which
 * leaves enough for the rounding to float to be the only one that counts: where something was lost (rest),
 * towards zero and then the last bit set. */
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
