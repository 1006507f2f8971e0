/* The functions of rows.def, and Where: loops without branches, which the compiler turns into
 * vectors. */
#ifndef QN_CPU_ROWS_KERNELS_H
#define QN_CPU_ROWS_KERNELS_H

#include "backend/cpu/float/kernels.h"

#define QN_ROW(id, Operator, dtype, Y, X, expression)                                              \
    static void row_##id(void *out, const void *const *in, int64_t count, int single)              \
    {                                                                                              \
        Y *restrict y = out;                                                                       \
        const X *restrict left = in[0], *restrict right = in[1];                                   \
        const X first = *left, second = *right;                                                    \
        for (int64_t i = 0; i < count && single == 1; i++) {                                       \
            const X a = first, b = right[i];                                                       \
            y[i] = (Y)(expression);                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count && single == 2; i++) {                                       \
            const X a = left[i], b = second;                                                       \
            y[i] = (Y)(expression);                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count && single == 0; i++) {                                       \
            const X a = left[i], b = right[i];                                                     \
            y[i] = (Y)(expression);                                                                \
        }                                                                                          \
    }
#include "backend/cpu/float/elementwise/rows.def"
#undef QN_ROW

/* in: the condition, what stands where it holds and where not. */
#define WHERE_LOOP(T)                                                                              \
    static void where_##T(void *out, const void *const *in, int64_t count, int single)             \
    {                                                                                              \
        T *restrict y = out;                                                                       \
        const uint8_t *restrict c = in[0];                                                         \
        const T *restrict a = in[1], *restrict b = in[2];                                          \
        const T first = *a, second = *b;                                                           \
        const uint8_t all = *c;                                                                    \
        for (int64_t i = 0; i < count && single == 0; i++)                                         \
            y[i] = c[i] ? a[i] : b[i];                                                             \
        for (int64_t i = 0; i < count && single == 2; i++)                                         \
            y[i] = c[i] ? first : b[i];                                                            \
        for (int64_t i = 0; i < count && single == 4; i++)                                         \
            y[i] = c[i] ? a[i] : second;                                                           \
        for (int64_t i = 0; i < count && single == 6; i++)                                         \
            y[i] = c[i] ? first : second;                                                          \
        for (int64_t i = 0; i < count && single & 1; i++)                                          \
            y[i] = all ? a[single & 2 ? 0 : i] : b[single & 4 ? 0 : i];                            \
    }
WHERE_LOOP(uint8_t)
WHERE_LOOP(uint16_t)
WHERE_LOOP(uint32_t)
WHERE_LOOP(uint64_t)

#define QN_ROW(id, Operator, dtype, Y, X, expression) [QN_ROW_##id] = row_##id,
static qn_row_kernel *const row_kernels[QN_ROW_COUNT] = {
#include "backend/cpu/float/elementwise/rows.def"
    [QN_ROW_WHERE_1] = where_uint8_t,
    [QN_ROW_WHERE_2] = where_uint16_t,
    [QN_ROW_WHERE_4] = where_uint32_t,
    [QN_ROW_WHERE_8] = where_uint64_t,
};
#undef QN_ROW

#endif
