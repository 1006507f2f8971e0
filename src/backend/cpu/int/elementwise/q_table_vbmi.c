/* Tables of 256 bytes in four registers. */
#include "backend/cpu/int/elementwise/q_elementwise.h"

#include <immintrin.h>

static __m512i look_up(__m512i x, const __m512i t[4])
{
    const __m512i low = _mm512_permutex2var_epi8(t[0], x, t[1]);
    const __m512i high = _mm512_permutex2var_epi8(t[2], x, t[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(x), high);
}

void qn_q_table_vbmi(uint8_t *y, const uint8_t *x, int64_t count, const uint8_t *table)
{
    __m512i t[4];
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        t[k] = _mm512_loadu_si512(table + 64 * k);
    for (; i + 64 <= count; i += 64)
        _mm512_storeu_si512(y + i, look_up(_mm512_loadu_si512(x + i), t));
    if (i < count) {
        const __mmask64 rest = ~UINT64_C(0) >> (64 - (count - i));
        _mm512_mask_storeu_epi8(y + i, rest, look_up(_mm512_maskz_loadu_epi8(rest, x + i), t));
    }
}
