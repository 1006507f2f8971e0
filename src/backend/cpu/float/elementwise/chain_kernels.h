/* Loops of the functions of functions.def. */
#ifndef QN_CPU_CHAIN_KERNELS_H
#define QN_CPU_CHAIN_KERNELS_H

#include "backend/cpu/float/kernels.h"
#include "backend/cpu/simd/vec_trig.h"

#define QN_FN1(name, expression)                                                                   \
    VEC_INLINE vec apply_##name(vec x, vec a, vec b, vec c)                                        \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return (expression);                                                                       \
    }                                                                                              \
    static void map_##name(float *out, const float *in, int64_t count, const qn_stage *s,          \
                           const float *operand, qn_spread spread)                                 \
    {                                                                                              \
        const vec a = vec_set(s->a), b = vec_set(s->b), c = vec_set(s->c);                         \
        int64_t i = 0;                                                                             \
        (void)operand, (void)spread;                                                               \
        for (; i + VEC_WIDTH <= count; i += VEC_WIDTH)                                             \
            vec_store(out + i, apply_##name(vec_load(in + i), a, b, c));                           \
        if (i < count)                                                                             \
            vec_store_first(out + i, apply_##name(vec_load_first(in + i, count - i), a, b, c),     \
                            count - i);                                                            \
    }
#define QN_FN2(name, expression)                                                                   \
    VEC_INLINE vec apply_##name(vec x, vec y)                                                      \
    {                                                                                              \
        return (expression);                                                                       \
    }                                                                                              \
    static void map_##name(float *out, const float *in, int64_t count, const qn_stage *s,          \
                           const float *operand, qn_spread spread)                                 \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        (void)s;                                                                                   \
        if (spread == QN_SPREAD_FULL) {                                                            \
            for (; i + VEC_WIDTH <= count; i += VEC_WIDTH)                                         \
                vec_store(out + i, apply_##name(vec_load(in + i), vec_load(operand + i)));         \
            if (i < count)                                                                         \
                vec_store_first(out + i,                                                           \
                                apply_##name(vec_load_first(in + i, count - i),                    \
                                             vec_load_first(operand + i, count - i)),              \
                                count - i);                                                        \
            return;                                                                                \
        }                                                                                          \
        const vec y = spread == QN_SPREAD_ONE ? vec_set(*operand) : vec_load(operand);             \
        for (; i + VEC_WIDTH <= count; i += VEC_WIDTH)                                             \
            vec_store(out + i, apply_##name(vec_load(in + i), y));                                 \
        if (i < count)                                                                             \
            vec_store_first(out + i, apply_##name(vec_load_first(in + i, count - i), y),           \
                            count - i);                                                            \
    }
#include "backend/cpu/float/elementwise/functions.def"
#undef QN_FN1
#undef QN_FN2

#define QN_FN1(name, expression) [QN_FN_##name] = map_##name,
#define QN_FN2(name, expression) [QN_FN_##name] = map_##name,
static qn_map_fn *const maps[QN_FN_COUNT] = {
#include "backend/cpu/float/elementwise/functions.def"
};
#undef QN_FN1
#undef QN_FN2

#endif
