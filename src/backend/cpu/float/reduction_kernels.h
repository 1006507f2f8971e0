/* Reductions of rows, and of lanes that lie side by side. Totals of sums and products are
 * doubles. */
#ifndef QN_CPU_REDUCTION_KERNELS_H
#define QN_CPU_REDUCTION_KERNELS_H

#include "backend/cpu/copy/transpose_kernels.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/float/softmax_norm_kernels.h"
#include "backend/cpu/simd/vec_double.h"

enum { REDUCE_ROWS = 8 }; /* of lanes, at a time */

/* ---- How values are joined ----------------------------------------------------------------------
 * A few values meet in their own type, then join a total; at the end lanes and totals become one.
 * What is no number stays. */

/* Doubles. */
VEC_INLINE vecd meet_add(vecd a, vecd b)
{
    return vecd_add(a, b);
}
VEC_INLINE vecd join_add(vecd total, vecd a)
{
    return vecd_add(total, a);
}
VEC_INLINE double across_add(vecd total)
{
    return vecd_sum(total);
}
VEC_INLINE double total_add(double a, double b)
{
    return a + b;
}

/* Floats: at most eight are added as such, a rounding or three, and what they make as doubles. */
VEC_INLINE vec meet_add_floats(vec a, vec b)
{
    return vec_add(a, b);
}
VEC_INLINE vecd join_add_floats(vecd total, vec a)
{
    return vecd_add(total, vecd_of(a));
}
VEC_INLINE double across_add_floats(vecd total)
{
    return vecd_sum(total);
}
VEC_INLINE double total_add_floats(double a, double b)
{
    return a + b;
}

VEC_INLINE vecd meet_multiply(vecd a, vecd b)
{
    return vecd_mul(a, b);
}
VEC_INLINE vecd join_multiply(vecd total, vecd a)
{
    return vecd_mul(total, a);
}
VEC_INLINE double across_multiply(vecd total)
{
    return vecd_product(total);
}
VEC_INLINE double total_multiply(double a, double b)
{
    return a * b;
}

VEC_INLINE vec meet_larger(vec a, vec b)
{
    return vec_pick(vec_max(a, b), a, vec_unordered(a, a));
}
VEC_INLINE vec join_larger(vec total, vec a)
{
    return meet_larger(total, a);
}
VEC_INLINE double across_larger(vec total)
{
    return vec_any(vec_unordered(total, total)) ? (double)NAN : (double)vec_largest(total);
}
VEC_INLINE double total_larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

VEC_INLINE vec meet_smaller(vec a, vec b)
{
    return vec_pick(vec_min(a, b), a, vec_unordered(a, a));
}
VEC_INLINE vec join_smaller(vec total, vec a)
{
    return meet_smaller(total, a);
}
VEC_INLINE double across_smaller(vec total)
{
    return -across_larger(vec_mul(vec_set(-1), total));
}
VEC_INLINE double total_smaller(double a, double b)
{
    return b < a || isnan(b) ? b : a;
}

/* ---- Totals, which are doubles in memory: these hold every float ----------------------------- */

VEC_INLINE vecd total_set_vecd(float x)
{
    return vecd_set((double)x);
}
VEC_INLINE vecd total_load_vecd(const double *p)
{
    return vecd_load(p);
}
VEC_INLINE void total_store_vecd(double *p, vecd a)
{
    vecd_store(p, a);
}
VEC_INLINE vec total_set_vec(float x)
{
    return vec_set(x);
}
VEC_INLINE vec total_load_vec(const double *p)
{
    return vecd_float(vecd_load(p));
}
VEC_INLINE void total_store_vec(double *p, vec a)
{
    vecd_store(p, vecd_of(a));
}

VEC_INLINE vecd vecd_square(vecd a)
{
    return vecd_mul(a, a);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* Rows shorter than a vector, transposed so that they are lanes, `VEC_WIDTH` of them at a time. */
static void reduce_transposed(const qn_reduction_block *b, qn_reduction_fn *lanes)
{
    float transposed[VEC_WIDTH * VEC_WIDTH];
    for (int64_t r = 0; r < b->count; r += VEC_WIDTH) {
        const int64_t rows = QN_MIN(b->count - r, VEC_WIDTH);
        const qn_transpose_tile tile = {
            transposed, b->x + r * b->result_step, VEC_WIDTH, b->result_step, rows, b->n, true};
        const qn_reduction_block block = {
            b->totals + r, transposed, b->shift ? b->shift + r : NULL, rows, 1, b->n, VEC_WIDTH};
        transpose(&tile);
        lanes(&block);
    }
}

/* VALUE is what element x counts as, of type V; totals are of type T and begin with START. NEUTRAL
 * is an element that changes nothing, for what is left of the last vector. Lanes: a few rows at a
 * time, so that memory is read as it lies. */
#define REDUCE(NAME, V, T, JOIN, START, NEUTRAL, VALUE)                                            \
    VEC_INLINE V value_##NAME(vec x, vec shift)                                                    \
    {                                                                                              \
        (void)shift;                                                                               \
        return VALUE;                                                                              \
    }                                                                                              \
    /* Four vectors that are `step` floats apart. */                                               \
    VEC_INLINE V four_##NAME(const float *x, int64_t step, vec shift)                              \
    {                                                                                              \
        return meet_##JOIN(meet_##JOIN(value_##NAME(vec_load(x), shift),                           \
                                       value_##NAME(vec_load(x + step), shift)),                   \
                           meet_##JOIN(value_##NAME(vec_load(x + 2 * step), shift),                \
                                       value_##NAME(vec_load(x + 3 * step), shift)));              \
    }                                                                                              \
    VEC_INLINE double row_##NAME(const float *x, int64_t n, vec shift)                             \
    {                                                                                              \
        T a = total_set_##T(START);                                                                \
        int64_t i = 0;                                                                             \
        for (; i + 8 * VEC_WIDTH <= n; i += 8 * VEC_WIDTH)                                         \
            a = join_##JOIN(a, meet_##JOIN(four_##NAME(x + i, VEC_WIDTH, shift),                   \
                                           four_##NAME(x + i + 4 * VEC_WIDTH, VEC_WIDTH, shift))); \
        if (i + 4 * VEC_WIDTH <= n) {                                                              \
            a = join_##JOIN(a, four_##NAME(x + i, VEC_WIDTH, shift));                              \
            i += 4 * VEC_WIDTH;                                                                    \
        }                                                                                          \
        if (i + 2 * VEC_WIDTH <= n) {                                                              \
            a = join_##JOIN(a, meet_##JOIN(value_##NAME(vec_load(x + i), shift),                   \
                                           value_##NAME(vec_load(x + i + VEC_WIDTH), shift)));     \
            i += 2 * VEC_WIDTH;                                                                    \
        }                                                                                          \
        if (i + VEC_WIDTH <= n) {                                                                  \
            a = join_##JOIN(a, value_##NAME(vec_load(x + i), shift));                              \
            i += VEC_WIDTH;                                                                        \
        }                                                                                          \
        if (i < n) {                                                                               \
            const vec rest = first_lanes(vec_load_first(x + i, n - i), NEUTRAL, n - i);            \
            a = join_##JOIN(a, value_##NAME(rest, shift));                                         \
        }                                                                                          \
        return across_##JOIN(a);                                                                   \
    }                                                                                              \
    VEC_INLINE void some_##NAME(const qn_reduction_block *b, const float *x, int64_t rows)         \
    {                                                                                              \
        for (int64_t i = 0; i < b->count; i += VEC_WIDTH) {                                        \
            const int64_t lanes = QN_MIN(b->count - i, VEC_WIDTH);                                 \
            const vec shift = b->shift ? vec_load_first(b->shift + i, lanes) : vec_set(0);         \
            T a = total_load_##T(b->totals + i);                                                   \
            if (lanes == VEC_WIDTH && rows == REDUCE_ROWS) {                                       \
                a = join_##JOIN(a, meet_##JOIN(four_##NAME(x + i, b->step, shift),                 \
                                               four_##NAME(x + i + 4 * b->step, b->step, shift))); \
            } else {                                                                               \
                for (int64_t k = 0; k < rows; k++)                                                 \
                    a = join_##JOIN(                                                               \
                        a, value_##NAME(vec_load_first(x + k * b->step + i, lanes), shift));       \
            }                                                                                      \
            total_store_##T(b->totals + i, a);                                                     \
        }                                                                                          \
    }                                                                                              \
    static void lanes_##NAME(const qn_reduction_block *b)                                          \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k + REDUCE_ROWS <= b->n; k += REDUCE_ROWS)                                          \
            some_##NAME(b, b->x + k * b->step, REDUCE_ROWS);                                       \
        if (k < b->n)                                                                              \
            some_##NAME(b, b->x + k * b->step, b->n - k);                                          \
    }                                                                                              \
    static void rows_##NAME(const qn_reduction_block *b)                                           \
    {                                                                                              \
        if (b->n < VEC_WIDTH && b->count > 1) {                                                    \
            reduce_transposed(b, lanes_##NAME);                                                    \
            return;                                                                                \
        }                                                                                          \
        for (int64_t r = 0; r < b->count; r++) {                                                   \
            const vec shift = vec_set(b->shift ? b->shift[r] : 0);                                 \
            b->totals[r] =                                                                         \
                total_##JOIN(b->totals[r], row_##NAME(b->x + r * b->result_step, b->n, shift));    \
        }                                                                                          \
    }

REDUCE(SUM, vec, vecd, add_floats, 0, vec_set(0), x)
REDUCE(ABS, vec, vecd, add_floats, 0, vec_set(0), vec_abs(x))
REDUCE(SQUARE, vecd, vecd, add, 0, vec_set(0), vecd_square(vecd_of(x)))
REDUCE(DEVIATION, vecd, vecd, add, 0, shift, vecd_square(vecd_sub(vecd_of(x), vecd_of(shift))))
REDUCE(EXP, vec, vecd, add_floats, 0, vec_set(-INFINITY), vec_exp(vec_sub(x, shift)))
REDUCE(PRODUCT, vecd, vecd, multiply, 1, vec_set(1), vecd_of(x))
REDUCE(MAX, vec, vec, larger, -INFINITY, vec_set(-INFINITY), x)
REDUCE(MIN, vec, vec, smaller, INFINITY, vec_set(INFINITY), x)

#define REDUCE_ROW(NAME) [QN_REDUCTION_##NAME] = {rows_##NAME, lanes_##NAME}
static qn_reduction_fn *const reductions[QN_REDUCTIONS][2] = {
    REDUCE_ROW(SUM), REDUCE_ROW(ABS),     REDUCE_ROW(SQUARE), REDUCE_ROW(DEVIATION),
    REDUCE_ROW(EXP), REDUCE_ROW(PRODUCT), REDUCE_ROW(MAX),    REDUCE_ROW(MIN)};

/* ---- Normalizing: y = (x - centre) * factor + bias ------------------------------------------- */

VEC_INLINE vec center(vec x, vec centre, vec factor, vec bias)
{
    return vec_fma(vec_sub(x, centre), factor, bias);
}

static void center_row(float *y, const float *x, int64_t n, const qn_center *c)
{
    const vec centre = vec_set(*c->centre), factor = vec_set(*c->factor), bias = vec_set(*c->bias);
    FOR_VECTORS(
        i, n, vec_store(y + i, center(vec_load(x + i), centre, factor, bias)),
        vec_store_first(y + i, center(vec_load_first(x + i, rest), centre, factor, bias), rest));
}

/* Every lane by its own. */
static void center_lanes(float *y, const float *x, int64_t n, const qn_center *c)
{
    FOR_VECTORS(i, n,
                vec_store(y + i, center(vec_load(x + i), vec_load(c->centre + i),
                                        vec_load(c->factor + i), vec_load(c->bias + i))),
                vec_store_first(
                    y + i,
                    center(vec_load_first(x + i, rest), vec_load_first(c->centre + i, rest),
                           vec_load_first(c->factor + i, rest), vec_load_first(c->bias + i, rest)),
                    rest));
}

#endif
