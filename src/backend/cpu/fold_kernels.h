/* Folds of rows, and of lanes that lie side by side. Sums and products are made in doubles. */
#ifndef QN_FOLD_KERNELS_H
#define QN_FOLD_KERNELS_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/row_kernels.h"
#include "backend/cpu/vec_wide.h"

enum { FOLD_CHAINS = 4, FOLD_ROWS = 8 };

/* ---- How two are joined, and all lanes; what is no number stays -------------------------------------------------- */

VEC_INLINE wide join_add(wide a, wide b)
{
    return wide_add(a, b);
}
VEC_INLINE double across_add(wide a)
{
    return wide_sum(a);
}
VEC_INLINE double total_add(double a, double b)
{
    return a + b;
}

VEC_INLINE wide join_multiply(wide a, wide b)
{
    return wide_mul(a, b);
}
VEC_INLINE double across_multiply(wide a)
{
    return wide_product(a);
}
VEC_INLINE double total_multiply(double a, double b)
{
    return a * b;
}

VEC_INLINE vec join_larger(vec a, vec b)
{
    return vec_pick(vec_max(a, b), a, vec_unordered(a, a));
}
VEC_INLINE double across_larger(vec a)
{
    return vec_any(vec_unordered(a, a)) ? (double)NAN : (double)vec_largest(a);
}
VEC_INLINE double total_larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

VEC_INLINE vec join_smaller(vec a, vec b)
{
    return vec_pick(vec_min(a, b), a, vec_unordered(a, a));
}
VEC_INLINE double across_smaller(vec a)
{
    return -across_larger(vec_mul(vec_set(-1), a));
}
VEC_INLINE double total_smaller(double a, double b)
{
    return b < a || isnan(b) ? b : a;
}

/* ---- Totals, which are doubles in memory: these hold every float ------------------------------------------------- */

VEC_INLINE wide total_set_wide(float x)
{
    return wide_set((double)x);
}
VEC_INLINE wide total_load_wide(const double *p)
{
    return wide_load(p);
}
VEC_INLINE void total_store_wide(double *p, wide a)
{
    wide_store(p, a);
}
VEC_INLINE vec total_set_vec(float x)
{
    return vec_set(x);
}
VEC_INLINE vec total_load_vec(const double *p)
{
    return wide_narrow(wide_load(p));
}
VEC_INLINE void total_store_vec(double *p, vec a)
{
    wide_store(p, wide_of(a));
}

VEC_INLINE wide wide_square(wide a)
{
    return wide_mul(a, a);
}

/* ---- Loops --------------------------------------------------------------------------------------------------------- */

/* VALUE is what element x counts as, START the total of none, NEUTRAL an element that changes nothing, for what is
 * left of the last vector. Rows: several chains, then their lanes. Lanes: a few rows at a time, so that memory
 * is read as it lies. */
#define FOLD(NAME, TYPE, JOIN, START, NEUTRAL, VALUE)                                              \
    VEC_INLINE TYPE take_##NAME(TYPE total, vec x, vec shift)                                      \
    {                                                                                              \
        (void)shift;                                                                               \
        return join_##JOIN(total, VALUE);                                                          \
    }                                                                                              \
    static double row_##NAME(const float *x, int64_t n, vec shift)                                 \
    {                                                                                              \
        TYPE a[FOLD_CHAINS];                                                                       \
        int64_t i = 0;                                                                             \
        for (int c = 0; c < FOLD_CHAINS; c++)                                                      \
            a[c] = total_set_##TYPE(START);                                                        \
        for (; i + FOLD_CHAINS * VEC_WIDTH <= n; i += FOLD_CHAINS * VEC_WIDTH) {                   \
            for (int c = 0; c < FOLD_CHAINS; c++)                                                  \
                a[c] = take_##NAME(a[c], vec_load(x + i + c * VEC_WIDTH), shift);                  \
        }                                                                                          \
        for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)                                                 \
            a[0] = take_##NAME(a[0], vec_load(x + i), shift);                                      \
        if (i < n)                                                                                 \
            a[1] = take_##NAME(a[1], first_lanes(vec_load_first(x + i, n - i), NEUTRAL, n - i),    \
                               shift);                                                             \
        return across_##JOIN(join_##JOIN(join_##JOIN(a[0], a[1]), join_##JOIN(a[2], a[3])));       \
    }                                                                                              \
    static void rows_##NAME(const qn_fold_block *b)                                                \
    {                                                                                              \
        for (int64_t r = 0; r < b->count; r++) {                                                   \
            const vec shift = vec_set(b->shift ? b->shift[r] : 0);                                 \
            b->totals[r] =                                                                         \
                total_##JOIN(b->totals[r], row_##NAME(b->x + r * b->result_step, b->n, shift));    \
        }                                                                                          \
    }                                                                                              \
    VEC_INLINE void some_##NAME(const qn_fold_block *b, const float *x, int64_t rows)              \
    {                                                                                              \
        for (int64_t i = 0; i < b->count; i += VEC_WIDTH) {                                        \
            const int64_t lanes = QN_MIN(b->count - i, VEC_WIDTH);                                 \
            const vec shift = b->shift ? vec_load_first(b->shift + i, lanes) : vec_set(0);         \
            TYPE a = total_load_##TYPE(b->totals + i);                                             \
            if (lanes == VEC_WIDTH) {                                                              \
                for (int64_t k = 0; k < rows; k++)                                                 \
                    a = take_##NAME(a, vec_load(x + k * b->step + i), shift);                      \
            } else {                                                                               \
                for (int64_t k = 0; k < rows; k++)                                                 \
                    a = take_##NAME(a, vec_load_first(x + k * b->step + i, lanes), shift);         \
            }                                                                                      \
            total_store_##TYPE(b->totals + i, a);                                                  \
        }                                                                                          \
    }                                                                                              \
    static void lanes_##NAME(const qn_fold_block *b)                                               \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k + FOLD_ROWS <= b->n; k += FOLD_ROWS)                                              \
            some_##NAME(b, b->x + k * b->step, FOLD_ROWS);                                         \
        if (k < b->n)                                                                              \
            some_##NAME(b, b->x + k * b->step, b->n - k);                                          \
    }

FOLD(SUM, wide, add, 0, vec_set(0), wide_of(x))
FOLD(ABS, wide, add, 0, vec_set(0), wide_of(vec_abs(x)))
FOLD(SQUARE, wide, add, 0, vec_set(0), wide_square(wide_of(x)))
FOLD(DEVIATION, wide, add, 0, shift, wide_square(wide_sub(wide_of(x), wide_of(shift))))
FOLD(EXP, wide, add, 0, vec_set(-INFINITY), wide_of(vec_exp(vec_sub(x, shift))))
FOLD(PRODUCT, wide, multiply, 1, vec_set(1), wide_of(x))
FOLD(MAX, vec, larger, -INFINITY, vec_set(-INFINITY), x)
FOLD(MIN, vec, smaller, INFINITY, vec_set(INFINITY), x)

#define FOLD_ROW(NAME) [QN_FOLD_##NAME] = {rows_##NAME, lanes_##NAME}
static qn_fold_fn *const folds[QN_FOLDS][2] = {
    FOLD_ROW(SUM), FOLD_ROW(ABS),     FOLD_ROW(SQUARE), FOLD_ROW(DEVIATION),
    FOLD_ROW(EXP), FOLD_ROW(PRODUCT), FOLD_ROW(MAX),    FOLD_ROW(MIN)};

/* ---- Normalizing: y = (x - centre) * factor + bias ----------------------------------------------------------------- */

static void center_row(float *y, const float *x, int64_t n, const qn_center *c)
{
    const vec centre = vec_set(*c->centre), factor = vec_set(*c->factor), bias = vec_set(c->bias);
    FOR_VECTORS(i, n, vec_store(y + i, vec_fma(vec_sub(vec_load(x + i), centre), factor, bias)),
                vec_store_first(y + i,
                                vec_fma(vec_sub(vec_load_first(x + i, rest), centre), factor, bias),
                                rest));
}

/* Every lane by its own. */
static void center_lanes(float *y, const float *x, int64_t n, const qn_center *c)
{
    const vec bias = vec_set(c->bias);
    FOR_VECTORS(i, n,
                vec_store(y + i, vec_fma(vec_sub(vec_load(x + i), vec_load(c->centre + i)),
                                         vec_load(c->factor + i), bias)),
                vec_store_first(y + i,
                                vec_fma(vec_sub(vec_load_first(x + i, rest),
                                                vec_load_first(c->centre + i, rest)),
                                        vec_load_first(c->factor + i, rest), bias),
                                rest));
}

#endif
