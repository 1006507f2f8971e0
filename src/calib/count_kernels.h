/* See count.h. The including file names the table and the instruction set. */
#include <string.h>

#include "calib/count.h"

/* ---- Extremes and sums --------------------------------------------------------------------------------
 * Rows with even and with odd numbers have sums of their own, which are joined at the end: additions that
 * do not wait for each other, in an order that every instruction set can follow. */

typedef struct folded {
    float min[QN_COUNT_LANES], max[QN_COUNT_LANES];
    float sum[2][QN_COUNT_LANES], square[2][QN_COUNT_LANES];
    uint32_t bits[QN_COUNT_LANES];
} folded;

static uint32_t magnitude_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & UINT32_C(0x7fffffff);
}

static inline void fold_row(folded *f, int64_t half, const float *x, int64_t lanes)
{
    float *sum = f->sum[half], *square = f->square[half];
    for (int64_t l = 0; l < lanes; l++) {
        const uint32_t bits = magnitude_bits(x[l]);
        f->min[l] = x[l] < f->min[l] ? x[l] : f->min[l];
        f->max[l] = x[l] > f->max[l] ? x[l] : f->max[l];
        f->bits[l] = bits > f->bits[l] ? bits : f->bits[l];
        sum[l] += x[l];
        square[l] += x[l] * x[l];
    }
}

#if defined(__AVX512F__)
#include <immintrin.h>

static void fold_rows(folded *f, const float *x, int64_t rows, int64_t stride, int64_t lanes)
{
    const __mmask16 mask = (__mmask16)((1u << lanes) - 1);
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512 min[2], max[2], sum[2], square[2];
    __m512i bits[2];
    for (int i = 0; i < 2; i++) {
        min[i] = _mm512_loadu_ps(f->min);
        max[i] = _mm512_loadu_ps(f->max);
        sum[i] = _mm512_setzero_ps();
        square[i] = _mm512_setzero_ps();
        bits[i] = _mm512_setzero_si512();
    }
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
        for (int i = 0; i < 2; i++) {
            const __m512 v = _mm512_maskz_loadu_ps(mask, x + (r + i) * stride);
            min[i] = _mm512_min_ps(min[i], v);
            max[i] = _mm512_max_ps(max[i], v);
            sum[i] = _mm512_add_ps(sum[i], v);
            square[i] = _mm512_add_ps(square[i], _mm512_mul_ps(v, v));
            bits[i] =
                _mm512_max_epu32(bits[i], _mm512_and_si512(_mm512_castps_si512(v), magnitude));
        }
    }
    _mm512_storeu_ps(f->min, _mm512_min_ps(min[0], min[1]));
    _mm512_storeu_ps(f->max, _mm512_max_ps(max[0], max[1]));
    _mm512_storeu_ps(f->sum[0], sum[0]);
    _mm512_storeu_ps(f->sum[1], sum[1]);
    _mm512_storeu_ps(f->square[0], square[0]);
    _mm512_storeu_ps(f->square[1], square[1]);
    _mm512_storeu_si512(f->bits, _mm512_max_epu32(bits[0], bits[1]));
    if (r < rows)
        fold_row(f, 0, x + r * stride, lanes);
}

#else

static void fold_rows(folded *f, const float *x, int64_t rows, int64_t stride, int64_t lanes)
{
    for (int64_t r = 0; r < rows; r++) {
        if (lanes == QN_COUNT_LANES) /* a number that the compiler sees */
            fold_row(f, r & 1, x + r * stride, QN_COUNT_LANES);
        else
            fold_row(f, r & 1, x + r * stride, lanes);
    }
}

#endif

static void fold(qn_count_sums *to, const float *x, int64_t rows, int64_t stride, int64_t lanes)
{
    folded f = {.sum = {{0}}, .square = {{0}}};
    memcpy(f.min, to->min, sizeof f.min);
    memcpy(f.max, to->max, sizeof f.max);
    fold_rows(&f, x, rows, stride, lanes);
    for (int64_t l = 0; l < lanes; l++) {
        to->min[l] = f.min[l];
        to->max[l] = f.max[l];
        to->sum[l] += (double)f.sum[0][l] + (double)f.sum[1][l];
        to->square[l] += (double)f.square[0][l] + (double)f.square[1][l];
        to->largest = f.bits[l] > to->largest ? f.bits[l] : to->largest;
    }
}

/* ---- Counting -------------------------------------------------------------------------------------------- */

enum { PLACES = 1024 };

static inline void count_places(uint32_t (*tables)[QN_COUNT_SIZE], const uint32_t *places,
                                int64_t n)
{
    int64_t i = 0;
    for (; i + QN_COUNT_TABLES <= n; i += QN_COUNT_TABLES) {
        for (int64_t t = 0; t < QN_COUNT_TABLES; t++)
            tables[t][places[i + t]]++;
    }
    for (; i < n; i++)
        tables[0][places[i]]++;
}

/* Appends the places of the elements that are not 0; `places` has room for a vector more. */
#if defined(__AVX512F__)

static inline int64_t find_places(uint32_t *places, const float *x, int64_t n, float scale)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512 by = _mm512_set1_ps(scale);
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 inside = n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
        const __m512i v = _mm512_castps_si512(_mm512_maskz_loadu_ps(inside, x + i));
        const __m512i bits = _mm512_and_si512(v, magnitude);
        const __mmask16 wanted = _mm512_test_epi32_mask(bits, bits);
        const __m512i bin = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(bits), by));
        const __m512i side = _mm512_slli_epi32(_mm512_srli_epi32(v, 31), 12);
        _mm512_storeu_si512(places + found,
                            _mm512_maskz_compress_epi32(wanted, _mm512_or_si512(bin, side)));
        found += __builtin_popcount(wanted);
    }
    return found;
}

#else

static inline int64_t find_places(uint32_t *places, const float *x, int64_t n, float scale)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const float magnitude = x[i] < 0 ? -x[i] : x[i];
        places[found] =
            (uint32_t)(int32_t)(magnitude * scale) + (x[i] < 0 ? (uint32_t)QN_HISTOGRAM_BINS : 0);
        found += x[i] != 0;
    }
    return found;
}

#endif

static int64_t count(uint32_t (*tables)[QN_COUNT_SIZE], const float *x, int64_t n, float scale)
{
    uint32_t places[PLACES + QN_COUNT_LANES];
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += PLACES) {
        const int64_t found = find_places(places, x + i, n - i < PLACES ? n - i : PLACES, scale);
        count_places(tables, places, found);
        total += found;
    }
    return total;
}

const qn_count_kernels QN_COUNT_KERNELS = {fold, count};
