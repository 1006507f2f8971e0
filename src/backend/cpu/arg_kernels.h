/* ArgMax and ArgMin: the best so far and its number, in every lane. */
#ifndef QN_ARG_KERNELS_H
#define QN_ARG_KERNELS_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/vec.h"

/* Numbers are floats: whole ones below 2^24. */
typedef struct arg_best {
    vec x, number;
} arg_best;

/* Takes x, which has number k, where it is better, and where it alone is no number. */
VEC_INLINE arg_best arg_first(arg_best best, vec x, vec k, vec_mask better)
{
    const vec_mask none = vec_unordered(x, x), stays = vec_unordered(best.x, best.x);
    const vec value = vec_pick(vec_pick(best.x, x, better), x, none);
    const vec number = vec_pick(vec_pick(best.number, k, better), k, none);
    return (arg_best){vec_pick(value, best.x, stays), vec_pick(number, best.number, stays)};
}
/* Takes it unless it is worse, or is a number where the best is none. */
VEC_INLINE arg_best arg_last(arg_best best, vec x, vec k, vec_mask worse)
{
    const vec_mask none = vec_unordered(x, x), stays = vec_unordered(best.x, best.x);
    const vec value = vec_pick(vec_pick(x, best.x, worse), best.x, stays);
    const vec number = vec_pick(vec_pick(k, best.number, worse), best.number, stays);
    return (arg_best){vec_pick(value, x, none), vec_pick(number, k, none)};
}

VEC_INLINE arg_best arg_take_MAX(arg_best best, vec x, vec k)
{
    return arg_first(best, x, k, vec_less(best.x, x));
}
VEC_INLINE arg_best arg_take_MAX_LAST(arg_best best, vec x, vec k)
{
    return arg_last(best, x, k, vec_less(x, best.x));
}
VEC_INLINE arg_best arg_take_MIN(arg_best best, vec x, vec k)
{
    return arg_first(best, x, k, vec_less(x, best.x));
}
VEC_INLINE arg_best arg_take_MIN_LAST(arg_best best, vec x, vec k)
{
    return arg_last(best, x, k, vec_less(best.x, x));
}

/* Whether element b at place j is to be taken before element a at place i. */
VEC_INLINE bool arg_beats(float a, int64_t i, float b, int64_t j, qn_arg kind)
{
    const bool max = kind == QN_ARG_MAX || kind == QN_ARG_MAX_LAST;
    const bool last = kind == QN_ARG_MAX_LAST || kind == QN_ARG_MIN_LAST;
    if (isnan(a) != isnan(b))
        return isnan(b);
    if (!isnan(a) && a != b)
        return max ? b > a : b < a;
    return last ? j > i : j < i;
}

/* The best of the lanes of a row: lane l has element number * VEC_WIDTH + l. */
static int64_t arg_of_lanes(arg_best best, qn_arg kind)
{
    float x[VEC_WIDTH], number[VEC_WIDTH];
    vec_store(x, best.x);
    vec_store(number, best.number);
    float most = x[0];
    int64_t at = (int64_t)number[0] * VEC_WIDTH;
    for (int l = 1; l < VEC_WIDTH; l++) {
        const int64_t place = (int64_t)number[l] * VEC_WIDTH + l;
        if (arg_beats(most, at, x[l], place, kind)) {
            most = x[l];
            at = place;
        }
    }
    return at;
}

/* What is left of a row, or a short row. */
static int64_t arg_of_rest(const float *x, int64_t at, int64_t from, int64_t n, qn_arg kind)
{
    for (int64_t i = from; i < n; i++)
        at = arg_beats(x[at], at, x[i], i, kind) ? i : at;
    return at;
}

#define ARG(KIND)                                                                                  \
    static void arg_rows_##KIND(const qn_arg_block *b)                                             \
    {                                                                                              \
        for (int64_t r = 0; r < b->count; r++) {                                                   \
            const float *x = b->x + r * b->n;                                                      \
            int64_t i = 0, at = 0;                                                                 \
            if (b->n >= VEC_WIDTH) {                                                               \
                arg_best best = {vec_load(x), vec_set(0)};                                         \
                for (i = VEC_WIDTH; i + VEC_WIDTH <= b->n; i += VEC_WIDTH)                         \
                    best =                                                                         \
                        arg_take_##KIND(best, vec_load(x + i), vec_set((float)(i / VEC_WIDTH)));   \
                at = arg_of_lanes(best, QN_ARG_##KIND);                                            \
            }                                                                                      \
            b->y[r] = arg_of_rest(x, at, i, b->n, QN_ARG_##KIND);                                  \
        }                                                                                          \
    }                                                                                              \
    static void arg_lanes_##KIND(const qn_arg_block *b)                                            \
    {                                                                                              \
        arg_best best = {vec_load_first(b->x, b->count), vec_set(0)};                              \
        float number[VEC_WIDTH];                                                                   \
        for (int64_t k = 1; k < b->n; k++)                                                         \
            best = arg_take_##KIND(best, vec_load_first(b->x + k * b->stride, b->count),           \
                                   vec_set((float)k));                                             \
        vec_store(number, best.number);                                                            \
        for (int64_t l = 0; l < b->count; l++)                                                     \
            b->y[l] = (int64_t)number[l];                                                          \
    }
ARG(MAX)
ARG(MAX_LAST)
ARG(MIN)
ARG(MIN_LAST)

#define ARG_ROW(KIND) [QN_ARG_##KIND] = {arg_rows_##KIND, arg_lanes_##KIND}
static qn_arg_fn *const args[QN_ARGS][2] = {ARG_ROW(MAX), ARG_ROW(MAX_LAST), ARG_ROW(MIN),
                                            ARG_ROW(MIN_LAST)};

#endif
