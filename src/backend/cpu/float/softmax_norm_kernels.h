/* Softmax and normalization of rows, and of lanes that lie side by side. */
#ifndef QN_CPU_SOFTMAX_NORM_KERNELS_H
#define QN_CPU_SOFTMAX_NORM_KERNELS_H

#include "backend/cpu/float/kernels.h"
#include "backend/cpu/simd/vec_math.h"

/* Calls BODY with `count` = VEC_WIDTH for whole vectors at i, and once with what is left. */
#define FOR_VECTORS(i, n, WHOLE, REST)                                                             \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + VEC_WIDTH <= (n); i += VEC_WIDTH) {                                             \
            WHOLE;                                                                                 \
        }                                                                                          \
        if (i < (n)) {                                                                             \
            const int64_t rest = (n)-i;                                                            \
            REST;                                                                                  \
        }                                                                                          \
    } while (0)

/* 0, 1, 2 ... */
VEC_INLINE vec lane_numbers(void)
{
    static const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vec_load(numbers);
}

/* Lanes [0, rest) of a, the others of b. */
VEC_INLINE vec first_lanes(vec a, vec b, int64_t rest)
{
    return vec_pick(b, a, vec_less(lane_numbers(), vec_set((float)rest)));
}

static void softmax_row(float *y, const float *x, int64_t n)
{
    vec most = vec_set(-INFINITY), sum = vec_set(0);
    FOR_VECTORS(
        i, n, most = vec_max(most, vec_load(x + i)),
        most = vec_max(most, first_lanes(vec_load_first(x + i, rest), vec_set(-INFINITY), rest)));
    const float largest = vec_largest(most);
    /* A row of nothing but -infinity has no softmax; subtracting it would. */
    const vec shift = vec_set(largest);
    FOR_VECTORS(
        i, n,
        {
            const vec e = vec_exp(vec_sub(vec_load(x + i), shift));
            vec_store(y + i, e);
            sum = vec_add(sum, e);
        },
        {
            const vec e = vec_exp(vec_sub(vec_load_first(x + i, rest), shift));
            vec_store_first(y + i, e, rest);
            sum = vec_add(sum, first_lanes(e, vec_set(0), rest));
        });
    const vec scale = vec_set(1 / vec_sum(sum));
    FOR_VECTORS(i, n, vec_store(y + i, vec_mul(vec_load(y + i), scale)),
                vec_store_first(y + i, vec_mul(vec_load_first(y + i, rest), scale), rest));
}

static void softmax_rows(float *y, const float *x, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        softmax_row(y + r * n, x + r * n, n);
}

/* `count` lanes side by side; element k of each lies `stride` behind the one before. */
static void softmax_lanes(float *y, const float *x, int64_t n, int64_t stride, int64_t count)
{
    vec most = vec_load_first(x, count), sum = vec_set(0);
    for (int64_t k = 1; k < n; k++)
        most = vec_max(most, vec_load_first(x + k * stride, count));
    for (int64_t k = 0; k < n; k++) {
        const vec e = vec_exp(vec_sub(vec_load_first(x + k * stride, count), most));
        vec_store_first(y + k * stride, e, count);
        sum = vec_add(sum, e);
    }
    const vec scale = vec_div(vec_set(1), sum);
    for (int64_t k = 0; k < n; k++)
        vec_store_first(y + k * stride, vec_mul(vec_load_first(y + k * stride, count), scale),
                        count);
}

/* Rows far from 0 whose elements are close to each other would lose everything to the rounding of
 * their mean:
 *
 *   d = (x - x[0]) - mean of (x - x[0])
 *
 * has small terms, which are exact for such rows. */
typedef struct row_centre {
    vec first, mean;
} row_centre;

VEC_INLINE vec from_centre(vec x, const row_centre *c)
{
    return vec_sub(vec_sub(x, c->first), c->mean);
}

VEC_INLINE row_centre find_centre(const float *x, int64_t n)
{
    const vec first = vec_set(x[0]);
    vec sum = vec_set(0);
    FOR_VECTORS(i, n, sum = vec_add(sum, vec_sub(vec_load(x + i), first)),
                sum = vec_add(sum, first_lanes(vec_sub(vec_load_first(x + i, rest), first),
                                               vec_set(0), rest)));
    return (row_centre){first, vec_set(vec_sum(sum) / (float)n)};
}

/* d / sqrt(mean of d^2 + epsilon) * scale + bias, with d = x - mean, or x where it is not
 * centered */
static void norm_row(float *y, const float *x, int64_t n, const qn_norm_row *norm)
{
    const row_centre centre =
        norm->centered ? find_centre(x, n) : (row_centre){vec_set(0), vec_set(0)};
    vec squares = vec_set(0);
    FOR_VECTORS(
        i, n,
        {
            const vec d = from_centre(vec_load(x + i), &centre);
            squares = vec_fma(d, d, squares);
        },
        {
            const vec d =
                first_lanes(from_centre(vec_load_first(x + i, rest), &centre), vec_set(0), rest);
            squares = vec_fma(d, d, squares);
        });
    const vec factor = vec_set(1 / sqrtf(vec_sum(squares) / (float)n + norm->epsilon));
    FOR_VECTORS(
        i, n,
        {
            const vec d = vec_mul(from_centre(vec_load(x + i), &centre), factor);
            vec_store(y + i, vec_fma(d, vec_load(norm->scale + i),
                                     norm->bias ? vec_load(norm->bias + i) : vec_set(0)));
        },
        {
            const vec d = vec_mul(from_centre(vec_load_first(x + i, rest), &centre), factor);
            const vec bias = norm->bias ? vec_load_first(norm->bias + i, rest) : vec_set(0);
            vec_store_first(y + i, vec_fma(d, vec_load_first(norm->scale + i, rest), bias), rest);
        });
}

static void norm_rows(float *y, const float *x, int64_t rows, int64_t n, const qn_norm_row *norm)
{
    for (int64_t r = 0; r < rows; r++)
        norm_row(y + r * n, x + r * n, n, norm);
}

#endif
