/* Tables of 256 bytes, by the byte itself. */
#ifndef QN_Q_TABLE_KERNELS_H
#define QN_Q_TABLE_KERNELS_H

#include "backend/cpu/q_vec.h"

#if defined(__AVX2__) && !defined(__AVX512F__)
/* Rows of 16 bytes, in both halves of a register. A row is looked up in by the low four bits of an index, and
 * gives 0 where that is below 0 as a signed byte. The index goes down by 16 from row to row, so that all rows
 * up to the one that is meant give something; each but the first holds the difference from the one before:
 *
 *   T[0][i] ^ (T[0] ^ T[1])[i] ^ ... ^ (T[k - 1] ^ T[k])[i] = T[k][i]
 *
 * Bytes from 128 on are below 0 and stay so; they have eight rows of their own. */
typedef struct table_rows {
    __m256i at[16];
} table_rows;

Q_INLINE table_rows table_load(const uint8_t *table)
{
    table_rows rows;
    for (int k = 0; k < 16; k++) {
        const __m128i row = _mm_loadu_si128((const __m128i *)(table + 16 * k));
        const __m128i above =
            k % 8 ? _mm_loadu_si128((const __m128i *)(table + 16 * k - 16)) : _mm_setzero_si128();
        rows.at[k] = _mm256_broadcastsi128_si256(_mm_xor_si128(row, above));
    }
    return rows;
}

/* `count` vectors. */
Q_INLINE void table_vectors(uint8_t *y, const uint8_t *x, const table_rows *rows, int count)
{
    const __m256i step = _mm256_set1_epi8(16), top = _mm256_set1_epi8((char)0x80);
    __m256i index[4], sum[4];
    for (int i = 0; i < count; i++) {
        index[i] = _mm256_loadu_si256((const __m256i *)(x + 32 * i));
        sum[i] = _mm256_setzero_si256();
    }
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        for (int i = 0; i < count; i++) {
            if (k == 8)
                index[i] = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(x + 32 * i)), top);
            sum[i] = _mm256_xor_si256(sum[i], _mm256_shuffle_epi8(rows->at[k], index[i]));
            index[i] = _mm256_subs_epi8(index[i], step);
        }
    }
    for (int i = 0; i < count; i++)
        _mm256_storeu_si256((__m256i *)(y + 32 * i), sum[i]);
}

/* The first bytes; returns how many. */
static int64_t look_up_vectors(uint8_t *y, const uint8_t *x, int64_t n, const uint8_t *table)
{
    int64_t i = 0;
    if (n < 32)
        return 0;
    const table_rows rows = table_load(table);
    for (; i + 128 <= n; i += 128)
        table_vectors(y + i, x + i, &rows, 4);
    for (; i + 32 <= n; i += 32)
        table_vectors(y + i, x + i, &rows, 1);
    return i;
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
