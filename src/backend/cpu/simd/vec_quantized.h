/* What element-wise kernels need beyond vec_int32.h: numbers of 8 or 16 bits as lanes. Signed ones
 * are read as unsigned with the top bit inverted, which shifts them by half the range; the zero
 * point is shifted alike, so that one code serves both. */
#ifndef QN_CPU_VEC_QUANTIZED_H
#define QN_CPU_VEC_QUANTIZED_H

#include "backend/cpu/simd/vec_int32.h"

#if defined(__AVX512F__)
Q_INLINE qi qi_xor(qi a, qi b)
{
    return _mm512_xor_si512(a, b);
}
Q_INLINE qi qi_and(qi a, qi b)
{
    return _mm512_and_si512(a, b);
}
Q_INLINE qi qi_mul(qi a, qi b)
{
    return _mm512_mullo_epi32(a, b);
}
Q_INLINE qf qf_div(qf a, qf b)
{
    return _mm512_div_ps(a, b);
}
Q_INLINE qi qi_load_uint16(const uint8_t *p, int64_t count)
{
    return _mm512_cvtepu16_epi32(count >= QI_LANES ? _mm256_loadu_si256((const __m256i *)p)
                                                   : _mm256_maskz_loadu_epi16(qi_first(count), p));
}
Q_INLINE void qi_store_uint16(uint8_t *p, qi a, int64_t count)
{
    _mm512_mask_cvtepi32_storeu_epi16(p, qi_first(count), a);
}
Q_INLINE qf qf_load_first(const float *p, int64_t count)
{
    return _mm512_maskz_loadu_ps(qi_first(count), p);
}
#elif defined(__AVX2__)
Q_INLINE qi qi_xor(qi a, qi b)
{
    return _mm256_xor_si256(a, b);
}
Q_INLINE qi qi_and(qi a, qi b)
{
    return _mm256_and_si256(a, b);
}
Q_INLINE qi qi_mul(qi a, qi b)
{
    return _mm256_mullo_epi32(a, b);
}
Q_INLINE qf qf_div(qf a, qf b)
{
    return _mm256_div_ps(a, b);
}
Q_INLINE qi qi_load_uint16(const uint8_t *p, int64_t count)
{
    uint8_t part[2 * QI_LANES] = {0};
    if (count < QI_LANES) {
        memcpy(part, p, (size_t)count * 2);
        p = part;
    }
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
Q_INLINE void qi_store_uint16(uint8_t *p, qi a, int64_t count)
{
    const __m256i low = _mm256_and_si256(a, _mm256_set1_epi32(65535));
    const __m128i numbers =
        _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    uint8_t part[2 * QI_LANES];
    _mm_storeu_si128((__m128i *)(count >= QI_LANES ? p : part), numbers);
    if (count < QI_LANES)
        memcpy(p, part, (size_t)count * 2);
}
Q_INLINE qf qf_load_first(const float *p, int64_t count)
{
    float part[QI_LANES] = {0};
    if (count >= QI_LANES)
        return qf_load(p);
    memcpy(part, p, (size_t)count * sizeof *p);
    return qf_load(part);
}
#else
#if defined(__SSE2__)
Q_INLINE qi qi_xor(qi a, qi b)
{
    return _mm_xor_si128(a, b);
}
Q_INLINE qi qi_and(qi a, qi b)
{
    return _mm_and_si128(a, b);
}
Q_INLINE qi qi_mul(qi a, qi b)
{
    const __m128i even = _mm_mul_epu32(a, b);
    const __m128i odd = _mm_mul_epu32(_mm_srli_si128(a, 4), _mm_srli_si128(b, 4));
    return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));
}
Q_INLINE qf qf_div(qf a, qf b)
{
    return _mm_div_ps(a, b);
}
Q_INLINE qi qi_load_uint16(const uint8_t *p, int64_t count)
{
    int64_t four = 0;
    if (count >= QI_LANES)
        memcpy(&four, p, sizeof four);
    else
        memcpy(&four, p, (size_t)count * 2);
    return _mm_unpacklo_epi16(_mm_cvtsi64_si128(four), _mm_setzero_si128());
}
Q_INLINE void qi_store_uint16(uint8_t *p, qi a, int64_t count)
{
    const __m128i low = _mm_srai_epi32(_mm_slli_epi32(a, 16), 16); /* packing must not limit */
    const int64_t four = _mm_cvtsi128_si64(_mm_packs_epi32(low, low));
    if (count >= QI_LANES)
        memcpy(p, &four, sizeof four);
    else
        memcpy(p, &four, (size_t)count * 2);
}
#else
Q_INLINE qi qi_xor(qi a, qi b)
{
    QI_EACH(qi, i, a.i[i] ^ b.i[i]);
}
Q_INLINE qi qi_and(qi a, qi b)
{
    QI_EACH(qi, i, a.i[i] & b.i[i]);
}
Q_INLINE qf qf_div(qf a, qf b)
{
    QI_EACH(qf, f, a.f[i] / b.f[i]);
}
Q_INLINE qi qi_mul(qi a, qi b) /* wraps */
{
    QI_EACH(qi, i, (int32_t)((uint32_t)a.i[i] * (uint32_t)b.i[i]));
}
Q_INLINE qi qi_load_uint16(const uint8_t *p, int64_t count)
{
    int32_t lanes[QI_LANES] = {0};
    uint16_t part[QI_LANES];
    count = count < QI_LANES ? count : QI_LANES;
    memcpy(part, p, (size_t)count * 2);
    for (int64_t i = 0; i < count; i++)
        lanes[i] = part[i];
    return qi_load(lanes);
}
Q_INLINE void qi_store_uint16(uint8_t *p, qi a, int64_t count)
{
    uint32_t lanes[QI_LANES];
    uint16_t part[QI_LANES];
    qi_store(lanes, a);
    for (int i = 0; i < QI_LANES; i++)
        part[i] = (uint16_t)lanes[i];
    memcpy(p, part, (size_t)(count < QI_LANES ? count : QI_LANES) * 2);
}
#endif
Q_INLINE qf qf_load_first(const float *p, int64_t count)
{
    float part[QI_LANES] = {0};
    memcpy(part, p, (size_t)(count < QI_LANES ? count : QI_LANES) * sizeof *p);
    return qf_load(part);
}
#endif

/* ---- Vectors of bytes: QB_BYTES of them, or the first `count` -------------------------------- */

#if defined(__AVX512F__)
enum { QB_BYTES = 64 };
typedef __m512i qb;
Q_INLINE __mmask64 qb_first(int64_t count)
{
    return count >= QB_BYTES ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}
Q_INLINE qb qb_load(const uint8_t *p, int64_t count)
{
    return count >= QB_BYTES ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi8(qb_first(count), p);
}
Q_INLINE void qb_store(uint8_t *p, qb a, int64_t count)
{
    _mm512_mask_storeu_epi8(p, qb_first(count), a);
}
Q_INLINE qb qb_set(uint8_t x)
{
    return _mm512_set1_epi8((char)x);
}
Q_INLINE qb qb_xor(qb a, qb b)
{
    return _mm512_xor_si512(a, b);
}
Q_INLINE qb qb_max(qb a, qb b)
{
    return _mm512_max_epu8(a, b);
}
#elif defined(__AVX2__)
enum { QB_BYTES = 32 };
typedef __m256i qb;
Q_INLINE qb qb_load_all(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
Q_INLINE void qb_store_all(uint8_t *p, qb a)
{
    _mm256_storeu_si256((__m256i *)p, a);
}
Q_INLINE qb qb_set(uint8_t x)
{
    return _mm256_set1_epi8((char)x);
}
Q_INLINE qb qb_xor(qb a, qb b)
{
    return _mm256_xor_si256(a, b);
}
Q_INLINE qb qb_max(qb a, qb b)
{
    return _mm256_max_epu8(a, b);
}
#elif defined(__SSE2__)
enum { QB_BYTES = 16 };
typedef __m128i qb;
Q_INLINE qb qb_load_all(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}
Q_INLINE void qb_store_all(uint8_t *p, qb a)
{
    _mm_storeu_si128((__m128i *)p, a);
}
Q_INLINE qb qb_set(uint8_t x)
{
    return _mm_set1_epi8((char)x);
}
Q_INLINE qb qb_xor(qb a, qb b)
{
    return _mm_xor_si128(a, b);
}
Q_INLINE qb qb_max(qb a, qb b)
{
    return _mm_max_epu8(a, b);
}
#else
enum { QB_BYTES = 16 };
typedef struct qb {
    uint8_t b[QB_BYTES];
} qb;
Q_INLINE qb qb_load_all(const uint8_t *p)
{
    qb r;
    memcpy(&r, p, sizeof r);
    return r;
}
Q_INLINE void qb_store_all(uint8_t *p, qb a)
{
    memcpy(p, &a, sizeof a);
}
Q_INLINE qb qb_set(uint8_t x)
{
    qb r;
    memset(&r, x, sizeof r);
    return r;
}
Q_INLINE qb qb_xor(qb a, qb b)
{
    for (int i = 0; i < QB_BYTES; i++)
        a.b[i] ^= b.b[i];
    return a;
}
Q_INLINE qb qb_max(qb a, qb b)
{
    for (int i = 0; i < QB_BYTES; i++)
        a.b[i] = a.b[i] > b.b[i] ? a.b[i] : b.b[i];
    return a;
}
#endif
#if !defined(__AVX512F__)
Q_INLINE qb qb_load(const uint8_t *p, int64_t count)
{
    uint8_t part[QB_BYTES] = {0};
    if (count >= QB_BYTES)
        return qb_load_all(p);
    memcpy(part, p, (size_t)count);
    return qb_load_all(part);
}
Q_INLINE void qb_store(uint8_t *p, qb a, int64_t count)
{
    uint8_t part[QB_BYTES];
    if (count >= QB_BYTES) {
        qb_store_all(p, a);
        return;
    }
    qb_store_all(part, a);
    memcpy(p, part, (size_t)count);
}
#endif

/* ---- Numbers of 8 or 16 bits as lanes -------------------------------------------------------- */

/* The first `count` numbers from element i on, unsigned. */
Q_INLINE qi qi_load_integers(const void *p, int64_t i, bool is_int16, int64_t count)
{
    const uint8_t *at = (const uint8_t *)p + (is_int16 ? 2 * i : i);
    return is_int16 ? qi_load_uint16(at, count) : qi_load_bytes(at, false, count);
}
/* The low bits of each lane. */
Q_INLINE void qi_store_integers(void *p, int64_t i, bool is_int16, qi a, int64_t count)
{
    uint8_t *at = (uint8_t *)p + (is_int16 ? 2 * i : i);
    if (is_int16)
        qi_store_uint16(at, a, count);
    else
        qi_store_bytes(at, a, count);
}

/* The low bytes of each lane of four vectors. */
Q_INLINE void qi_store_four(uint8_t *p, const qi *a)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    const qi low = _mm256_set1_epi16(255); /* packing must not limit */
    const qi first = _mm256_and_si256(_mm256_packs_epi32(a[0], a[1]), low);
    const qi second = _mm256_and_si256(_mm256_packs_epi32(a[2], a[3]), low);
    const qi order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    qi_store(p, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order));
#else
    for (int k = 0; k < 4; k++)
        qi_store_bytes(p + k * QI_LANES, a[k], QI_LANES);
#endif
}

/* Calls BODY for vectors of `lanes` numbers from i = first on: whole ones, then what is left. */
#define Q_VECTORS_FROM(i, first, n, BODY)                                                          \
    do {                                                                                           \
        int64_t i = first;                                                                         \
        for (; i + QI_LANES <= (n); i += QI_LANES) {                                               \
            const int64_t lanes = QI_LANES;                                                        \
            BODY;                                                                                  \
        }                                                                                          \
        if (i < (n)) {                                                                             \
            const int64_t lanes = (n)-i;                                                           \
            BODY;                                                                                  \
        }                                                                                          \
    } while (0)
#define Q_VECTORS(i, n, BODY) Q_VECTORS_FROM(i, 0, n, BODY)

#endif
