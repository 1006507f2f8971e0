/* ArgMax and ArgMin: the best so far and its place, in every lane. */
#ifndef QN_CPU_ARG_KERNELS_H
#define QN_CPU_ARG_KERNELS_H

#include "backend/cpu/copy/transpose_kernels.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/float/softmax_norm_kernels.h"

/* Places are floats: whole numbers below 2^24. */
typedef struct arg_best {
    vec x, place;
} arg_best;

/* Takes x, which is in place k, where it is better, and where it alone is no number. */
VEC_INLINE arg_best arg_first(arg_best best, vec x, vec k, vec_mask better)
{
    const vec_mask none = vec_unordered(x, x), stays = vec_unordered(best.x, best.x);
    const vec value = vec_pick(vec_pick(best.x, x, better), x, none);
    const vec place = vec_pick(vec_pick(best.place, k, better), k, none);
    return (arg_best){vec_pick(value, best.x, stays), vec_pick(place, best.place, stays)};
}
/* Takes it unless it is worse, or is a number where the best is none. */
VEC_INLINE arg_best arg_last(arg_best best, vec x, vec k, vec_mask worse)
{
    const vec_mask none = vec_unordered(x, x), stays = vec_unordered(best.x, best.x);
    const vec value = vec_pick(vec_pick(x, best.x, worse), best.x, stays);
    const vec place = vec_pick(vec_pick(k, best.place, worse), best.place, stays);
    return (arg_best){vec_pick(value, x, none), vec_pick(place, k, none)};
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

/* The place of the best of all lanes: the first, or the last, of those that are equally good. */
VEC_INLINE int64_t arg_across(arg_best best, bool max, bool last)
{
    const vec_mask none = vec_unordered(best.x, best.x);
    const vec size = vec_mul(best.x, vec_set(max ? 1 : -1)), never = vec_set(-INFINITY);
    const vec place = vec_mul(best.place, vec_set(last ? 1 : -1));
    const vec kept = vec_any(none)
                         ? vec_pick(never, place, none)
                         : vec_pick(place, never, vec_less(size, vec_set(vec_largest(size))));
    return (int64_t)fabsf(vec_largest(kept));
}

/* Rows shorter than a vector, transposed so that they are lanes. */
static void arg_transposed(const qn_arg_block *b, qn_arg_fn *lanes)
{
    float transposed[VEC_WIDTH * VEC_WIDTH];
    for (int64_t r = 0; r < b->count; r += VEC_WIDTH) {
        const int64_t rows = QN_MIN(b->count - r, VEC_WIDTH);
        const qn_transpose_tile tile = {transposed, b->x + r * b->n, VEC_WIDTH, b->n, rows, b->n,
                                        true};
        const qn_arg_block block = {b->y + r, transposed, rows, b->n, VEC_WIDTH};
        transpose(&tile);
        lanes(&block);
    }
}

/* The last vector of a row may take some elements again, which changes nothing. */
#define ARG(KIND, MAX, LAST)                                                                       \
    static void arg_lanes_##KIND(const qn_arg_block *b)                                            \
    {                                                                                              \
        arg_best best = {vec_load_first(b->x, b->count), vec_set(0)};                              \
        float place[VEC_WIDTH];                                                                    \
        for (int64_t k = 1; k < b->n; k++)                                                         \
            best = arg_take_##KIND(best, vec_load_first(b->x + k * b->stride, b->count),           \
                                   vec_set((float)k));                                             \
        vec_store(place, best.place);                                                              \
        for (int64_t l = 0; l < b->count; l++)                                                     \
            b->y[l] = (int64_t)place[l];                                                           \
    }                                                                                              \
    static void arg_rows_##KIND(const qn_arg_block *b)                                             \
    {                                                                                              \
        const vec lanes = lane_numbers();                                                          \
        if (b->n < VEC_WIDTH) {                                                                    \
            arg_transposed(b, arg_lanes_##KIND);                                                   \
            return;                                                                                \
        }                                                                                          \
        for (int64_t r = 0; r < b->count; r++) {                                                   \
            const float *x = b->x + r * b->n;                                                      \
            arg_best best = {vec_load(x), lanes};                                                  \
            for (int64_t i = VEC_WIDTH; i < b->n; i += VEC_WIDTH) {                                \
                const int64_t at = QN_MIN(i, b->n - VEC_WIDTH);                                    \
                best =                                                                             \
                    arg_take_##KIND(best, vec_load(x + at), vec_add(lanes, vec_set((float)at)));   \
            }                                                                                      \
            b->y[r] = arg_across(best, MAX, LAST);                                                 \
        }                                                                                          \
    }
ARG(MAX, true, false)
ARG(MAX_LAST, true, true)
ARG(MIN, false, false)
ARG(MIN_LAST, false, true)

#define ARG_ROW(KIND) [QN_ARG_##KIND] = {arg_rows_##KIND, arg_lanes_##KIND}
static qn_arg_fn *const args[QN_ARGS][2] = {ARG_ROW(MAX), ARG_ROW(MAX_LAST), ARG_ROW(MIN),
                                            ARG_ROW(MIN_LAST)};

#endif
