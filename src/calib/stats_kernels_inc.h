/* The kernels of stats_kernels.h. The including file names the table and is compiled for its
 * instruction set. */
#include <string.h>

#include "calib/stats_kernels.h"

/* ---- Extremes and sums --------------------------------------------------------------------------
 * Rows with even and with odd numbers have sums of their own, which are joined at the end:
 * additions that do not wait for each other, in an order that every instruction set can follow. */

typedef struct folded {
    float min[QN_STATS_LANES], max[QN_STATS_LANES];
    float sum[2][QN_STATS_LANES], square[2][QN_STATS_LANES];
    uint32_t bits[QN_STATS_LANES];
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

#elif defined(__AVX2__)
#include <immintrin.h>

typedef struct folded_vector {
    __m256 min, max, sum, square;
    __m256i bits;
} folded_vector;

static inline void fold_vector(folded_vector *f, __m256 v)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    f->min = _mm256_min_ps(f->min, v);
    f->max = _mm256_max_ps(f->max, v);
    f->sum = _mm256_add_ps(f->sum, v);
    f->square = _mm256_add_ps(f->square, _mm256_mul_ps(v, v));
    f->bits = _mm256_max_epu32(f->bits, _mm256_and_si256(_mm256_castps_si256(v), magnitude));
}

/* A vector of lanes, of which those that the mask leaves out are read as 0. */
static void fold_lanes(folded *f, int64_t first, const float *x, int64_t rows, int64_t stride,
                       __m256i mask)
{
    folded_vector half[2];
    for (int i = 0; i < 2; i++)
        half[i] = (folded_vector){_mm256_loadu_ps(f->min + first), _mm256_loadu_ps(f->max + first),
                                  _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_si256()};
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
        for (int i = 0; i < 2; i++)
            fold_vector(&half[i], _mm256_maskload_ps(x + (r + i) * stride, mask));
    }
    if (r < rows)
        fold_vector(&half[0], _mm256_maskload_ps(x + r * stride, mask));
    for (int i = 0; i < 2; i++) {
        _mm256_storeu_ps(f->sum[i] + first, half[i].sum);
        _mm256_storeu_ps(f->square[i] + first, half[i].square);
    }
    _mm256_storeu_ps(f->min + first, _mm256_min_ps(half[0].min, half[1].min));
    _mm256_storeu_ps(f->max + first, _mm256_max_ps(half[0].max, half[1].max));
    _mm256_storeu_si256((__m256i *)(void *)(f->bits + first),
                        _mm256_max_epu32(half[0].bits, half[1].bits));
}

static void fold_rows(folded *f, const float *x, int64_t rows, int64_t stride, int64_t lanes)
{
    const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int64_t first = 0; first < lanes; first += 8) {
        const __m256i mask =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)(lanes - first)), numbers);
        fold_lanes(f, first, x + first, rows, stride, mask);
    }
}

#else

static void fold_rows(folded *f, const float *x, int64_t rows, int64_t stride, int64_t lanes)
{
    for (int64_t r = 0; r < rows; r++) {
        if (lanes == QN_STATS_LANES) /* a number that the compiler sees */
            fold_row(f, r & 1, x + r * stride, QN_STATS_LANES);
        else
            fold_row(f, r & 1, x + r * stride, lanes);
    }
}

#endif

static void fold(qn_stats_sums *to, const float *x, int64_t rows, int64_t stride, int64_t lanes)
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

/* ---- Counting -------------------------------------------------------------------------------- */

enum { PLACES = 1024 };

static inline void count_places(qn_stats_bin *bins, const uint32_t *places, int64_t n)
{
    int64_t i = 0;
    for (; i + QN_STATS_COUNTERS <= n; i += QN_STATS_COUNTERS) {
        for (int64_t t = 0; t < QN_STATS_COUNTERS; t++)
            bins[places[i + t]].counter[t]++;
    }
    for (; i < n; i++)
        bins[places[i]].counter[0]++;
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

#elif defined(__AVX2__)

/* Moves the lanes whose bit is set to the front. */
#define LANE(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
static const uint8_t to_front[16][16] = {
    {LANE(0), LANE(1), LANE(2), LANE(3)}, {LANE(0), LANE(1), LANE(2), LANE(3)},
    {LANE(1), LANE(0), LANE(2), LANE(3)}, {LANE(0), LANE(1), LANE(2), LANE(3)},
    {LANE(2), LANE(0), LANE(1), LANE(3)}, {LANE(0), LANE(2), LANE(1), LANE(3)},
    {LANE(1), LANE(2), LANE(0), LANE(3)}, {LANE(0), LANE(1), LANE(2), LANE(3)},
    {LANE(3), LANE(0), LANE(1), LANE(2)}, {LANE(0), LANE(3), LANE(1), LANE(2)},
    {LANE(1), LANE(3), LANE(0), LANE(2)}, {LANE(0), LANE(1), LANE(3), LANE(2)},
    {LANE(2), LANE(3), LANE(0), LANE(1)}, {LANE(0), LANE(2), LANE(3), LANE(1)},
    {LANE(1), LANE(2), LANE(3), LANE(0)}, {LANE(0), LANE(1), LANE(2), LANE(3)},
};
#undef LANE

static inline int64_t append_four(uint32_t *places, __m128i four, unsigned wanted)
{
    const __m128i order = _mm_loadu_si128((const __m128i *)(const void *)to_front[wanted]);
    _mm_storeu_si128((__m128i *)(void *)places, _mm_shuffle_epi8(four, order));
    return __builtin_popcount(wanted);
}

static inline int64_t append_eight(uint32_t *places, __m256 v, __m256 scale)
{
    const __m256 sign = _mm256_set1_ps(-0.0f), magnitude = _mm256_andnot_ps(sign, v);
    const __m256i zero = _mm256_cmpeq_epi32(_mm256_castps_si256(magnitude), _mm256_setzero_si256());
    const unsigned wanted = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(zero)) ^ 0xff;
    const __m256i bin = _mm256_cvttps_epi32(_mm256_mul_ps(magnitude, scale));
    const __m256i side = _mm256_srli_epi32(_mm256_castps_si256(_mm256_and_ps(sign, v)), 31 - 12);
    const __m256i at = _mm256_or_si256(bin, side);
    const int64_t low = append_four(places, _mm256_castsi256_si128(at), wanted & 15);
    return low + append_four(places + low, _mm256_extracti128_si256(at, 1), wanted >> 4);
}

static inline int64_t find_places(uint32_t *places, const float *x, int64_t n, float scale)
{
    const __m256 by = _mm256_set1_ps(scale);
    int64_t found = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        /* Most often the next piece stands behind this one. */
        __builtin_prefetch(x + i + QN_STATS_BLOCK, 0, 2);
        found += append_eight(places + found, _mm256_loadu_ps(x + i), by);
    }
    float rest[8] = {0};
    memcpy(rest, x + i, (size_t)(n - i) * sizeof *rest);
    return found + append_eight(places + found, _mm256_loadu_ps(rest), by);
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

static int64_t count(qn_stats_bin *bins, const float *x, int64_t n, float scale)
{
    uint32_t places[PLACES + QN_STATS_LANES];
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += PLACES) {
        const int64_t found = find_places(places, x + i, n - i < PLACES ? n - i : PLACES, scale);
        count_places(bins, places, found);
        total += found;
    }
    return total;
}

const qn_stats_kernels QN_STATS_KERNELS = {fold, count};
