/* What element-wise kernels need beyond q_vec.h: numbers of 8 or 16 bits as lanes. Signed ones are read as
 * unsigned with the top bit turned, which shifts them by half the range; the zero point is shifted alike, so
 * that one code serves both. */
#ifndef QN_Q_ELEM_VEC_H
#define QN_Q_ELEM_VEC_H

#include "backend/cpu/q_vec.h"

#if defined(__AVX512F__)
Q_INLINE qi qi_xor(qi a, qi b)
{
    return _mm512_xor_si512(a, b);
}
Q_INLINE qi qi_mul(qi a, qi b)
{
    return _mm512_mullo_epi32(a, b);
}
Q_INLINE qf qf_div(qf a, qf b)
{
    return _mm512_div_ps(a, b);
}
Q_INLINE qi qi_load_words(const uint8_t *p, int64_t count)
{
    return _mm512_cvtepu16_epi32(count >= QI_LANES ? _mm256_loadu_si256((const __m256i *)p)
                                                   : _mm256_maskz_loadu_epi16(qi_first(count), p));
}
Q_INLINE void qi_store_words(uint8_t *p, qi a, int64_t count)
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
Q_INLINE qi qi_mul(qi a, qi b)
{
    return _mm256_mullo_epi32(a, b);
}
Q_INLINE qf qf_div(qf a, qf b)
{
    return _mm256_div_ps(a, b);
}
Q_INLINE qi qi_load_words(const uint8_t *p, int64_t count)
{
    uint8_t part[2 * QI_LANES] = {0};
    if (count < QI_LANES) {
        memcpy(part, p, (size_t)count * 2);
        p = part;
    }
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
Q_INLINE void qi_store_words(uint8_t *p, qi a, int64_t count)
{
    const __m256i low = _mm256_and_si256(a, _mm256_set1_epi32(65535));
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    uint8_t part[2 * QI_LANES];
    _mm_storeu_si128((__m128i *)(count >= QI_LANES ? p : part), words);
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
Q_INLINE qf qf_div(qf a, qf b)
{
    return _mm_div_ps(a, b);
}
#else
Q_INLINE qi qi_xor(qi a, qi b)
{
    QI_EACH(qi, i, a.i[i] ^ b.i[i]);
}
Q_INLINE qf qf_div(qf a, qf b)
{
    QI_EACH(qf, f, a.f[i] / b.f[i]);
}
#endif
Q_INLINE qi qi_mul(qi a, qi b) /* wraps */
{
    uint32_t x[QI_LANES], y[QI_LANES];
    qi_store(x, a);
    qi_store(y, b);
    for (int i = 0; i < QI_LANES; i++)
        x[i] *= y[i];
    return qi_load(x);
}
Q_INLINE qi qi_load_words(const uint8_t *p, int64_t count)
{
    int32_t lanes[QI_LANES] = {0};
    uint16_t part[QI_LANES];
    count = count < QI_LANES ? count : QI_LANES;
    memcpy(part, p, (size_t)count * 2);
    for (int64_t i = 0; i < count; i++)
        lanes[i] = part[i];
    return qi_load(lanes);
}
Q_INLINE void qi_store_words(uint8_t *p, qi a, int64_t count)
{
    uint32_t lanes[QI_LANES];
    uint16_t part[QI_LANES];
    qi_store(lanes, a);
    for (int i = 0; i < QI_LANES; i++)
        part[i] = (uint16_t)lanes[i];
    memcpy(p, part, (size_t)(count < QI_LANES ? count : QI_LANES) * 2);
}
Q_INLINE qf qf_load_first(const float *p, int64_t count)
{
    float part[QI_LANES] = {0};
    memcpy(part, p, (size_t)(count < QI_LANES ? count : QI_LANES) * sizeof *p);
    return qf_load(part);
}
#endif

/* The first `count` numbers from element i on, unsigned. */
Q_INLINE qi qi_load_narrow(const void *p, int64_t i, bool wide, int64_t count)
{
    const uint8_t *at = (const uint8_t *)p + (wide ? 2 * i : i);
    return wide ? qi_load_words(at, count) : qi_load_bytes(at, false, count);
}
/* The low bits of each lane. */
Q_INLINE void qi_store_narrow(void *p, int64_t i, bool wide, qi a, int64_t count)
{
    uint8_t *at = (uint8_t *)p + (wide ? 2 * i : i);
    if (wide)
        qi_store_words(at, a, count);
    else
        qi_store_bytes(at, a, count);
}

/* Calls BODY for vectors of `lanes` numbers from i on: whole ones, then what is left. */
#define Q_VECTORS(i, n, BODY)                                                                      \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + QI_LANES <= (n); i += QI_LANES) {                                               \
            const int64_t lanes = QI_LANES;                                                        \
            BODY;                                                                                  \
        }                                                                                          \
        if (i < (n)) {                                                                             \
            const int64_t lanes = (n)-i;                                                           \
            BODY;                                                                                  \
        }                                                                                          \
    } while (0)

#endif
