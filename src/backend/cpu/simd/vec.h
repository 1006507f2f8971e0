/* A vector of floats in the instruction set that the including file is compiled for: AVX-512, AVX2
 * or what the compiler assumes anyway. VEC_WIDTH is also the channel block of the layout that
 * kernels of that instruction set work in.
 *
 * Of two operands of which one is no number, vec_min and vec_max give the second one. */
#ifndef QN_CPU_VEC_H
#define QN_CPU_VEC_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VEC_APART static __attribute__((noinline))
/* Ask for the cache line at p, to be read, or to be written: the core gets it for itself then. */
#define VEC_PREFETCH(p) __builtin_prefetch((p), 0, 3)
#define VEC_PREFETCH_WRITE(p) __builtin_prefetch((p), 1, 3)

#if defined(__AVX512F__)
#include <immintrin.h>

enum { VEC_WIDTH = 16 };
typedef __m512 vec;
typedef __mmask16 vec_mask;
#define VEC_INLINE static inline __attribute__((always_inline))
#define VEC_NAME(name) name##_avx512
/* Before the loop over a block's channels in a matrix product. With few registers the compiler
 * moves sums from one to another where it unrolls such a loop, which costs 4 % of the time. */
#define VEC_ROLLED

VEC_INLINE vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
VEC_INLINE void vec_store(float *p, vec a)
{
    _mm512_storeu_ps(p, a);
}
/* The first `count` lanes (0..VEC_WIDTH), the others 0. */
VEC_INLINE vec vec_load_first(const float *p, int64_t count)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
}
VEC_INLINE void vec_store_first(float *p, vec a, int64_t count)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), a);
}
VEC_INLINE vec vec_set(float x)
{
    return _mm512_set1_ps(x);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
VEC_INLINE vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}
VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}
VEC_INLINE vec vec_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}
VEC_INLINE vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}
VEC_INLINE vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}
/* a * b + c and c - a * b, rounded once where the instruction set can. */
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
VEC_INLINE vec vec_sqrt(vec a)
{
    return _mm512_sqrt_ps(a);
}
VEC_INLINE vec vec_abs(vec a)
{
    return _mm512_abs_ps(a);
}
VEC_INLINE vec vec_round(vec a) /* half to even */
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VEC_INLINE vec vec_floor(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
/* a * 2^n for whole n */
VEC_INLINE vec vec_scale2(vec a, vec n)
{
    return _mm512_scalef_ps(a, n);
}
/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for x > 0 */
VEC_INLINE vec vec_split2(vec *e, vec x)
{
    vec m = _mm512_getmant_ps(x, _MM_MANT_NORM_p5_1, _MM_MANT_SIGN_zero);
    const __mmask16 small = _mm512_cmp_ps_mask(m, _mm512_set1_ps(0.70710678f), _CMP_LT_OQ);
    *e = _mm512_add_ps(_mm512_getexp_ps(x), _mm512_set1_ps(1));
    *e = _mm512_mask_sub_ps(*e, small, *e, _mm512_set1_ps(1));
    m = _mm512_mask_add_ps(m, small, m, m);
    return m;
}
VEC_INLINE vec_mask vec_less(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
VEC_INLINE vec_mask vec_unordered(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}
VEC_INLINE bool vec_any(vec_mask mask)
{
    return mask != 0;
}
/* b where the mask is set, else a */
VEC_INLINE vec vec_pick(vec a, vec b, vec_mask mask)
{
    return _mm512_mask_mov_ps(a, mask, b);
}
/* Sign of b on the size of a, which is not negative. */
VEC_INLINE vec vec_copysign(vec a, vec b)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    return _mm512_castsi512_ps(
        _mm512_or_si512(_mm512_castps_si512(a), _mm512_and_si512(_mm512_castps_si512(b), sign)));
}
VEC_INLINE float vec_sum(vec a)
{
    return _mm512_reduce_add_ps(a);
}
VEC_INLINE float vec_largest(vec a)
{
    return _mm512_reduce_max_ps(a);
}

/* Lane j of row i becomes lane i of row j. */
VEC_INLINE void vec_transpose(vec *r)
{
    __m512d t[16];
    vec u[16];
    for (int i = 0; i < 16; i += 2) { /* pairs of rows */
        t[i] = _mm512_castps_pd(_mm512_unpacklo_ps(r[i], r[i + 1]));
        t[i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(r[i], r[i + 1]));
    }
    for (int i = 0; i < 16; i += 4) { /* fours: quarter q of u[i + c] is column 4 q + c */
        u[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(t[i], t[i + 2]));
        u[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t[i], t[i + 2]));
        u[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t[i + 1], t[i + 3]));
        u[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t[i + 1], t[i + 3]));
    }
    for (int c = 0; c < 4; c++) { /* quarters of the four fours go together */
        const vec a = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x44);
        const vec b = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xee);
        const vec d = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x44);
        const vec e = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xee);
        r[c] = _mm512_shuffle_f32x4(a, d, 0x88);
        r[4 + c] = _mm512_shuffle_f32x4(a, d, 0xdd);
        r[8 + c] = _mm512_shuffle_f32x4(b, e, 0x88);
        r[12 + c] = _mm512_shuffle_f32x4(b, e, 0xdd);
    }
}

#elif defined(__AVX2__)
#include <immintrin.h>

enum { VEC_WIDTH = 8 };
typedef __m256 vec;
typedef __m256 vec_mask;
#define VEC_INLINE static inline __attribute__((always_inline))
#define VEC_NAME(name) name##_avx2
#define VEC_ROLLED _Pragma("GCC unroll 1")

VEC_INLINE vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
VEC_INLINE void vec_store(float *p, vec a)
{
    _mm256_storeu_ps(p, a);
}
VEC_INLINE __m256i vec_first(int64_t count)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lanes);
}
VEC_INLINE vec vec_load_first(const float *p, int64_t count)
{
    return _mm256_maskload_ps(p, vec_first(count));
}
VEC_INLINE void vec_store_first(float *p, vec a, int64_t count)
{
    _mm256_maskstore_ps(p, vec_first(count), a);
}
VEC_INLINE vec vec_set(float x)
{
    return _mm256_set1_ps(x);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
VEC_INLINE vec vec_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}
VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}
VEC_INLINE vec vec_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}
VEC_INLINE vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}
VEC_INLINE vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
VEC_INLINE vec vec_sqrt(vec a)
{
    return _mm256_sqrt_ps(a);
}
VEC_INLINE vec vec_abs(vec a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
VEC_INLINE vec vec_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VEC_INLINE vec vec_floor(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
VEC_INLINE vec vec_power2(__m256i n) /* n in -126..127 */
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
VEC_INLINE vec vec_scale2(vec a, vec n)
{
    const vec bounded = _mm256_min_ps(_mm256_set1_ps(252), _mm256_max_ps(_mm256_set1_ps(-252), n));
    const __m256i whole = _mm256_cvtps_epi32(bounded), half = _mm256_srai_epi32(whole, 1);
    const vec first = _mm256_mul_ps(a, vec_power2(half));
    return _mm256_mul_ps(first, vec_power2(_mm256_sub_epi32(whole, half)));
}
VEC_INLINE vec vec_split2(vec *e, vec x)
{
    /* Numbers too small for an exponent of their own are brought up by 2^24 first. */
    const vec tiny = _mm256_cmp_ps(x, _mm256_set1_ps(1.17549435e-38f), _CMP_LT_OQ);
    x = _mm256_blendv_ps(x, _mm256_mul_ps(x, _mm256_set1_ps(16777216.0f)), tiny);
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i shift = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)); /* sqrt(1/2) */
    const __m256i whole = _mm256_srai_epi32(shift, 23);
    *e = _mm256_cvtepi32_ps(whole);
    *e = _mm256_sub_ps(*e, _mm256_and_ps(tiny, _mm256_set1_ps(24)));
    return _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(whole, 23)));
}
VEC_INLINE vec_mask vec_less(vec a, vec b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
VEC_INLINE vec_mask vec_unordered(vec a, vec b)
{
    return _mm256_cmp_ps(a, b, _CMP_UNORD_Q);
}
VEC_INLINE bool vec_any(vec_mask mask)
{
    return _mm256_movemask_ps(mask) != 0;
}
VEC_INLINE vec vec_pick(vec a, vec b, vec_mask mask)
{
    return _mm256_blendv_ps(a, b, mask);
}
VEC_INLINE vec vec_copysign(vec a, vec b)
{
    return _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0f), b));
}
VEC_INLINE float vec_sum(vec a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
VEC_INLINE float vec_largest(vec a)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

VEC_INLINE void vec_transpose(vec *r)
{
    __m256d t[8];
    vec u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_castps_pd(_mm256_unpacklo_ps(r[i], r[i + 1]));
        t[i + 1] = _mm256_castps_pd(_mm256_unpackhi_ps(r[i], r[i + 1]));
    }
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(t[i], t[i + 2]));
        u[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(t[i], t[i + 2]));
        u[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(t[i + 1], t[i + 3]));
        u[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(t[i + 1], t[i + 3]));
    }
    for (int c = 0; c < 4; c++) {
        r[c] = _mm256_permute2f128_ps(u[c], u[4 + c], 0x20);
        r[4 + c] = _mm256_permute2f128_ps(u[c], u[4 + c], 0x31);
    }
}

#else

enum { VEC_WIDTH = 8 };
typedef struct vec {
    float f[VEC_WIDTH];
} vec;
typedef struct vec_mask {
    uint8_t f[VEC_WIDTH];
} vec_mask;
#define VEC_INLINE static inline
#define VEC_NAME(name) name##_base
#define VEC_ROLLED

#define VEC_LANES(type, expression)                                                                \
    type r;                                                                                        \
    for (int i = 0; i < VEC_WIDTH; i++)                                                            \
        r.f[i] = (expression);                                                                     \
    return r

VEC_INLINE vec vec_load(const float *p)
{
    VEC_LANES(vec, p[i]);
}
VEC_INLINE void vec_store(float *p, vec a)
{
    memcpy(p, a.f, sizeof a.f);
}
VEC_INLINE vec vec_load_first(const float *p, int64_t count)
{
    VEC_LANES(vec, i < count ? p[i] : 0);
}
VEC_INLINE void vec_store_first(float *p, vec a, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        p[i] = a.f[i];
}
VEC_INLINE vec vec_set(float x)
{
    VEC_LANES(vec, x);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
    VEC_LANES(vec, a.f[i] + b.f[i]);
}
VEC_INLINE vec vec_sub(vec a, vec b)
{
    VEC_LANES(vec, a.f[i] - b.f[i]);
}
VEC_INLINE vec vec_mul(vec a, vec b)
{
    VEC_LANES(vec, a.f[i] * b.f[i]);
}
VEC_INLINE vec vec_div(vec a, vec b)
{
    VEC_LANES(vec, a.f[i] / b.f[i]);
}
VEC_INLINE vec vec_min(vec a, vec b)
{
    VEC_LANES(vec, a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}
VEC_INLINE vec vec_max(vec a, vec b)
{
    VEC_LANES(vec, a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    VEC_LANES(vec, a.f[i] * b.f[i] + c.f[i]);
}
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
    VEC_LANES(vec, c.f[i] - a.f[i] * b.f[i]);
}
VEC_INLINE vec vec_sqrt(vec a)
{
    VEC_LANES(vec, sqrtf(a.f[i]));
}
VEC_INLINE vec vec_abs(vec a)
{
    VEC_LANES(vec, fabsf(a.f[i]));
}
VEC_INLINE vec vec_round(vec a)
{
    VEC_LANES(vec, rintf(a.f[i]));
}
VEC_INLINE vec vec_floor(vec a)
{
    VEC_LANES(vec, floorf(a.f[i]));
}
VEC_INLINE vec vec_scale2(vec a, vec n)
{
    VEC_LANES(vec, ldexpf(a.f[i], (int)fminf(300, fmaxf(-300, n.f[i]))));
}
VEC_INLINE vec vec_split2(vec *e, vec x)
{
    vec m;
    for (int i = 0; i < VEC_WIDTH; i++) {
        int exponent;
        const float mantissa = frexpf(x.f[i], &exponent);
        const int small = mantissa < 0.70710678f;
        m.f[i] = small ? 2 * mantissa : mantissa;
        e->f[i] = (float)(exponent - small);
    }
    return m;
}
VEC_INLINE vec_mask vec_less(vec a, vec b)
{
    VEC_LANES(vec_mask, (uint8_t)(a.f[i] < b.f[i]));
}
VEC_INLINE vec_mask vec_unordered(vec a, vec b)
{
    VEC_LANES(vec_mask, (uint8_t)(isunordered(a.f[i], b.f[i]) != 0));
}
VEC_INLINE bool vec_any(vec_mask mask)
{
    uint8_t any = 0;
    for (int i = 0; i < VEC_WIDTH; i++)
        any |= mask.f[i];
    return any != 0;
}
VEC_INLINE vec vec_pick(vec a, vec b, vec_mask mask)
{
    VEC_LANES(vec, mask.f[i] ? b.f[i] : a.f[i]);
}
VEC_INLINE vec vec_copysign(vec a, vec b)
{
    VEC_LANES(vec, copysignf(a.f[i], b.f[i]));
}
VEC_INLINE float vec_sum(vec a)
{
    float sum = 0;
    for (int i = 0; i < VEC_WIDTH; i++)
        sum += a.f[i];
    return sum;
}
VEC_INLINE float vec_largest(vec a)
{
    float most = a.f[0];
    for (int i = 1; i < VEC_WIDTH; i++)
        most = a.f[i] > most ? a.f[i] : most;
    return most;
}

VEC_INLINE void vec_transpose(vec *r)
{
    vec t[VEC_WIDTH];
    memcpy(t, r, sizeof t);
    for (int i = 0; i < VEC_WIDTH; i++) {
        for (int j = 0; j < VEC_WIDTH; j++)
            r[i].f[j] = t[j].f[i];
    }
}

#endif

#endif
