/* Tables of 256 bytes, by the byte itself. */
#ifndef QN_CPU_Q_TABLE_KERNELS_H
#define QN_CPU_Q_TABLE_KERNELS_H

#include "backend/cpu/simd/vec_int32.h"

#if defined(__AVX2__) && !defined(__AVX512F__)
/* 32 indices x. Of the 16 rows of 16 bytes that the table is made of, two at a time are looked up
 * in by the low four bits of x, one by those x whose bit 4 is 0, one by the others: a shuffle gives
 * 0 where bit 7 of its index is set, and adding 0x70 sets it where one of the bits 4 to 6 was. Bits
 * 5, 6 and 7 choose among the eight pairs. */
#define TABLE_ROW(k)                                                                               \
    _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + 16 * (k))))
#define TABLE_PAIR(k)                                                                              \
    _mm256_or_si256(_mm256_shuffle_epi8(TABLE_ROW(k), even),                                       \
                    _mm256_shuffle_epi8(TABLE_ROW((k) + 1), odd))
#define TABLE_FOUR(k) _mm256_blendv_epi8(TABLE_PAIR(k), TABLE_PAIR((k) + 2), bit_5)
#define TABLE_EIGHT(k) _mm256_blendv_epi8(TABLE_FOUR(k), TABLE_FOUR((k) + 4), bit_6)

Q_INLINE __m256i table_vector(const uint8_t *x, const uint8_t *table)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)x), add = _mm256_set1_epi8(0x70);
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi8(0x1f));
    const __m256i even = _mm256_add_epi8(low, add);
    const __m256i odd = _mm256_add_epi8(_mm256_xor_si256(low, _mm256_set1_epi8(0x10)), add);
    const __m256i bit_6 = _mm256_add_epi8(v, v), bit_5 = _mm256_add_epi8(bit_6, bit_6);
    return _mm256_blendv_epi8(TABLE_EIGHT(0), TABLE_EIGHT(8), v);
}

/* The first bytes; returns how many. The last vector may overlap the one before, and y may be x: it
 * is looked up first. */
static int64_t look_up_vectors(uint8_t *y, const uint8_t *x, int64_t n, const uint8_t *table)
{
    if (n < 32)
        return 0;
    const __m256i last = table_vector(x + n - 32, table);
    for (int64_t i = 0; i + 32 < n; i += 32)
        _mm256_storeu_si256((__m256i *)(y + i), table_vector(x + i, table));
    _mm256_storeu_si256((__m256i *)(y + n - 32), last);
    return n;
}
#else
static int64_t look_up_vectors(uint8_t *y, const uint8_t *x, int64_t n, const uint8_t *table)
{
    (void)y, (void)x, (void)n, (void)table;
    return 0;
}
#endif

static void look_up(uint8_t *y, const uint8_t *x, int64_t n, const uint8_t *table)
{
    for (int64_t i = look_up_vectors(y, x, n, table); i < n; i++)
        y[i] = table[x[i]];
}

#endif
