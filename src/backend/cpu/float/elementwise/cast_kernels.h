/* Elements of one type from those of another, with the bits of the reference kernel: loops without
 * branches, which the compiler turns into vectors. */
#ifndef QN_CPU_CAST_KERNELS_H
#define QN_CPU_CAST_KERNELS_H

#include <string.h>

#include "backend/cpu/float/kernels.h"
#include "ir/dtype.h"

#define CAST_LOOP(name, T, X, expression)                                                          \
    static void name(void *out, const void *in, int64_t count)                                     \
    {                                                                                              \
        T *restrict y = out;                                                                       \
        const X *restrict x = in;                                                                  \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = expression;                                                                     \
    }

/* ---- Halves ---------------------------------------------------------------------------------- */

static inline uint32_t cast_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float cast_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { CAST_SIGN = 0x8000, CAST_INFINITY = 0x7c00, CAST_NAN = 0x7e00, CAST_BF16_NAN = 0x7fc0 };

/* The exponent moves from 5 to 8 bits; the product makes denormal halves normal. NaN loses its
 * sign. */
static inline float cast_from_f16(uint16_t half)
{
    const uint32_t magnitude = half & (CAST_SIGN - 1u), sign = (uint32_t)(half & CAST_SIGN) << 16;
    const uint32_t number = cast_bits(cast_float(magnitude << 13) * 0x1p112f) | sign;
    const uint32_t special = magnitude > CAST_INFINITY ? 0x7fc00000u : 0x7f800000u | sign;
    return cast_float(magnitude < CAST_INFINITY ? number : special);
}

/* Rounds half to even. A denormal half is what the last bits of a sum with 0.5 are. */
static inline uint16_t cast_to_f16(float x)
{
    const uint32_t bits = cast_bits(x), magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    const uint32_t denormal = cast_bits(cast_float(magnitude) + 0.5f) - cast_bits(0.5f);
    const uint32_t special = magnitude > 0x7f800000u ? CAST_NAN : CAST_INFINITY;
    const uint32_t number = magnitude < 0x38800000u ? denormal : normal;
    const uint32_t code = magnitude < 0x47800000u ? number : special;
    return (uint16_t)(code | ((bits >> 16) & CAST_SIGN));
}

static inline float cast_from_bf16(uint16_t half)
{
    const bool is_nan = (half & (CAST_SIGN - 1u)) > 0x7f80;
    return cast_float(is_nan ? (uint32_t)CAST_BF16_NAN << 16 : (uint32_t)half << 16);
}

static inline uint16_t cast_to_bf16(float x)
{
    const uint32_t bits = cast_bits(x), rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return (uint16_t)(is_nan ? CAST_BF16_NAN | ((bits >> 16) & CAST_SIGN) : rounded);
}

CAST_LOOP(f16_to_f32, float, uint16_t, cast_from_f16(x[i]))
CAST_LOOP(bf16_to_f32, float, uint16_t, cast_from_bf16(x[i]))
CAST_LOOP(f32_to_f16, uint16_t, float, cast_to_f16(x[i]))
CAST_LOOP(f32_to_bf16, uint16_t, float, cast_to_bf16(x[i]))

/* ---- Integers -------------------------------------------------------------------------------- */

#define CAST_FROM_INTEGERS(from, X)                                                                \
    CAST_LOOP(from##_to_f32, float, X, (float)x[i])                                                \
    CAST_LOOP(from##_to_f64, double, X, (double)x[i])                                              \
    CAST_LOOP(from##_to_i8, int8_t, X, (int8_t)x[i])                                               \
    CAST_LOOP(from##_to_u8, uint8_t, X, (uint8_t)x[i])                                             \
    CAST_LOOP(from##_to_i32, int32_t, X, (int32_t)x[i])                                            \
    CAST_LOOP(from##_to_i64, int64_t, X, (int64_t)x[i])                                            \
    CAST_LOOP(from##_to_bool, uint8_t, X, x[i] != 0)
CAST_FROM_INTEGERS(i8, int8_t)
CAST_FROM_INTEGERS(u8, uint8_t)
CAST_FROM_INTEGERS(i32, int32_t)
CAST_FROM_INTEGERS(i64, int64_t)

/* ---- Floats to integers -------------------------------------------------------------------------
 * Runs of numbers that 32 bits hold are truncated; others, and NaN, go the way of the reference. */

enum { CAST_RUN = 256 };

#define CAST_FITS(from, X)                                                                         \
    static bool from##_fits(const X *x, int64_t count)                                             \
    {                                                                                              \
        int beyond = 0;                                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            beyond |= !(x[i] > (X)-0x1p31) | !(x[i] < (X)0x1p31);                                  \
        return !beyond;                                                                            \
    }
CAST_FITS(f32, float)
CAST_FITS(f64, double)

#define CAST_TO_INTEGER(from, X, dtype, to, T)                                                     \
    static void from##_to_##to(void *out, const void *in, int64_t count)                           \
    {                                                                                              \
        T *restrict y = out;                                                                       \
        const X *restrict x = in;                                                                  \
        for (; count > 0; count -= CAST_RUN, x += CAST_RUN, y += CAST_RUN) {                       \
            const int64_t run = QN_MIN(count, CAST_RUN);                                           \
            const bool fits = from##_fits(x, run);                                                 \
            for (int64_t i = 0; fits && i < run; i++)                                              \
                y[i] = (T)(int32_t)x[i];                                                           \
            for (int64_t i = 0; !fits && i < run; i++) {                                           \
                int64_t wide;                                                                      \
                qn_load_i64(&wide, dtype, x, i, 1);                                                \
                y[i] = (T)wide;                                                                    \
            }                                                                                      \
        }                                                                                          \
    }
#define CAST_FROM_FLOATS(from, X, dtype)                                                           \
    CAST_LOOP(from##_to_f32, float, X, (float)x[i])                                                \
    CAST_LOOP(from##_to_f64, double, X, (double)x[i])                                              \
    CAST_TO_INTEGER(from, X, dtype, i8, int8_t)                                                    \
    CAST_TO_INTEGER(from, X, dtype, u8, uint8_t)                                                   \
    CAST_TO_INTEGER(from, X, dtype, i32, int32_t)                                                  \
    CAST_TO_INTEGER(from, X, dtype, i64, int64_t)                                                  \
    CAST_LOOP(from##_to_bool, uint8_t, X, x[i] != 0)
CAST_FROM_FLOATS(f32, float, QN_FLOAT32)
CAST_FROM_FLOATS(f64, double, QN_FLOAT64)

/* ---- Predicates ------------------------------------------------------------------------------ */

CAST_LOOP(bool_not, uint8_t, uint8_t, x[i] == 0)
CAST_LOOP(f32_is_nan, uint8_t, float, x[i] != x[i])
CAST_LOOP(f32_is_infinite, uint8_t, float, fabsf(x[i]) == INFINITY)
CAST_LOOP(f32_is_positive_infinity, uint8_t, float, x[i] == INFINITY)
CAST_LOOP(f32_is_negative_infinity, uint8_t, float, x[i] == -INFINITY)
static qn_cast_fn *const infinities[2][2] = {{NULL, f32_is_positive_infinity},
                                             {f32_is_negative_infinity, f32_is_infinite}};

#define CAST_ROW(from)                                                                             \
    [QN_CAST_F32] = from##_to_f32, [QN_CAST_F64] = from##_to_f64, [QN_CAST_I8] = from##_to_i8,     \
    [QN_CAST_U8] = from##_to_u8, [QN_CAST_I32] = from##_to_i32, [QN_CAST_I64] = from##_to_i64,     \
    [QN_CAST_BOOL] = from##_to_bool
static qn_cast_fn *const casts[QN_CAST_TYPES][QN_CAST_TYPES] = {
    [QN_CAST_F32] = {CAST_ROW(f32), [QN_CAST_F16] = f32_to_f16, [QN_CAST_BF16] = f32_to_bf16},
    [QN_CAST_F64] = {CAST_ROW(f64)},
    [QN_CAST_F16] = {[QN_CAST_F32] = f16_to_f32},
    [QN_CAST_BF16] = {[QN_CAST_F32] = bf16_to_f32},
    [QN_CAST_I8] = {CAST_ROW(i8)},
    [QN_CAST_U8] = {CAST_ROW(u8)},
    [QN_CAST_I32] = {CAST_ROW(i32)},
    [QN_CAST_I64] = {CAST_ROW(i64)},
    [QN_CAST_BOOL] = {CAST_ROW(u8)},
};

#endif
