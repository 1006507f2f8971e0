/* Tiles of pointwise.h. */
#ifndef QN_CPU_POINTWISE_KERNELS_H
#define QN_CPU_POINTWISE_KERNELS_H

#include "backend/cpu/float/conv/epilogue_kernels.h"
#include "backend/cpu/float/conv/pointwise.h"

/* Sums kept in registers: places by two blocks of filters, with room for the operands. */
enum { POINTWISE_PLACES = VEC_WIDTH == 16 ? QN_POINTWISE_PLACES : 6 };

/* Every loop over sums is unrolled: an index that is no constant would send them all to memory. */
#define POINTWISE_EACH(i, count) _Pragma("GCC unroll 14") for (int i = 0; i < (count); i++)

/* What is read some blocks of channels later, here or in the next tile. */
VEC_INLINE const float *pointwise_soon(const qn_pointwise_tile *t, int64_t block)
{
    const int64_t soon = block + 4, over = soon - t->channel_blocks;
    return over < 0 ? t->x + soon * t->x_step
                    : t->next + (over < t->channel_blocks ? over : 0) * t->x_step;
}

VEC_INLINE void pointwise_sums(vec sums[2][POINTWISE_PLACES], const qn_pointwise_tile *t,
                               int places, int blocks)
{
    const float *x = t->x, *w = t->weights;
    POINTWISE_EACH(p, places) sums[0][p] = sums[1][p] = vec_set(0);
    for (int64_t block = 0; block < t->channel_blocks; block++, x += t->x_step) {
        const float *soon = pointwise_soon(t, block);
        POINTWISE_EACH(p, places) VEC_PREFETCH(soon + p * VEC_WIDTH);
        VEC_ROLLED
        for (int c = 0; c < VEC_WIDTH; c++, w += blocks * VEC_WIDTH) {
            const vec w0 = vec_load(w), w1 = blocks > 1 ? vec_load(w + VEC_WIDTH) : w0;
            POINTWISE_EACH(p, places)
            {
                const vec v = vec_set(x[p * VEC_WIDTH + c]);
                sums[0][p] = vec_fma(v, w0, sums[0][p]);
                if (blocks > 1)
                    sums[1][p] = vec_fma(v, w1, sums[1][p]);
            }
        }
    }
}

/* Functions of a few instructions, which nearly every network has behind a convolution, in
 * registers. */
#define POINTWISE_STEP(name)                                                                       \
    if (s->fn == QN_FN_##name)                                                                     \
        POINTWISE_EACH(p, places) sums[p] = apply_##name(sums[p], a, b, b);

VEC_INLINE void pointwise_step(vec *sums, int places, const qn_epilogue_step *s)
{
    const vec a = vec_set(s->a), b = vec_set(s->b);
    POINTWISE_STEP(CLIP)
    POINTWISE_STEP(HARD_SWISH)
    POINTWISE_STEP(LINEAR)
    POINTWISE_STEP(RELU)
}

VEC_INLINE bool pointwise_is_short(const qn_epilogue_fused *f)
{
    for (int32_t s = 0; s < f->n_steps; s++) {
        const qn_fn fn = f->steps[s].fn;
        if (fn != QN_FN_CLIP && fn != QN_FN_HARD_SWISH && fn != QN_FN_LINEAR && fn != QN_FN_RELU)
            return false;
    }
    return f->residual != QN_RESIDUAL_AFTER;
}

VEC_INLINE bool pointwise_epilogue(vec *sums, int places, const qn_epilogue_fused *f,
                                   const float *r)
{
    if (!pointwise_is_short(f))
        return false;
    if (f->residual == QN_RESIDUAL_BEFORE)
        POINTWISE_EACH(p, places) sums[p] = vec_add(sums[p], vec_load(r + p * VEC_WIDTH));
    for (int32_t s = 0; s < f->n_steps; s++)
        pointwise_step(sums, places, &f->steps[s]);
    return true;
}

/* The other functions, one vector after another; r may be y. */
VEC_APART void pointwise_epilogue_rare(float *y, const float *sums, int places,
                                       const qn_epilogue_fused *f, const float *r)
{
    for (int p = 0; p < places; p++) {
        vec v = vec_load(sums + p * VEC_WIDTH);
        epilogue_vectors(&v, 1, f, r + p * VEC_WIDTH);
        vec_store(y + p * VEC_WIDTH, v);
    }
}

VEC_INLINE void pointwise_block(const qn_pointwise_tile *t, const qn_epilogue_fused *f, int places,
                                int blocks)
{
    vec sums[2][POINTWISE_PLACES];
    POINTWISE_EACH(p, places)
    {
        VEC_PREFETCH_WRITE(t->y + p * VEC_WIDTH);
        if (blocks > 1)
            VEC_PREFETCH_WRITE(t->y + t->y_step + p * VEC_WIDTH);
    }
    pointwise_sums(sums, t, places, blocks);
#pragma GCC unroll 2
    for (int k = 0; k < blocks; k++) {
        float *y = t->y + k * t->y_step;
        const float *r = t->r + k * t->r_step;
        const vec bias = vec_load(t->bias + k * VEC_WIDTH);
        float *total = t->total + k * places * VEC_WIDTH;
        if (t->has_total)
            POINTWISE_EACH(p, places)
        sums[k][p] = vec_add(vec_load(total + p * VEC_WIDTH), sums[k][p]);
        if (t->to_total) {
            POINTWISE_EACH(p, places) vec_store(total + p * VEC_WIDTH, sums[k][p]);
            continue;
        }
        POINTWISE_EACH(p, places) sums[k][p] = vec_add(sums[k][p], bias);
        if (pointwise_epilogue(sums[k], places, f, r)) {
            POINTWISE_EACH(p, places) vec_store(y + p * VEC_WIDTH, sums[k][p]);
        } else {
            float plain[POINTWISE_PLACES * VEC_WIDTH];
            POINTWISE_EACH(p, places) vec_store(plain + p * VEC_WIDTH, sums[k][p]);
            pointwise_epilogue_rare(y, plain, places, f, r);
        }
    }
}

#define POINTWISE_CASE(count)                                                                      \
    case count:                                                                                    \
        if (t->blocks == 2)                                                                        \
            pointwise_block(t, f, count, 2);                                                       \
        else                                                                                       \
            pointwise_block(t, f, count, 1);                                                       \
        break;

static void pointwise_tile(const qn_pointwise_tile *t, const qn_epilogue_fused *f)
{
    switch (t->places) {
        POINTWISE_CASE(1)
        POINTWISE_CASE(2)
        POINTWISE_CASE(3)
        POINTWISE_CASE(4)
        POINTWISE_CASE(5)
        POINTWISE_CASE(6)
#if defined(__AVX512F__)
        POINTWISE_CASE(7)
        POINTWISE_CASE(8)
        POINTWISE_CASE(9)
        POINTWISE_CASE(10)
        POINTWISE_CASE(11)
        POINTWISE_CASE(12)
        POINTWISE_CASE(13)
        POINTWISE_CASE(14)
#endif
    default: break;
    }
}

static const qn_pointwise_kernels pointwise_kernels = {POINTWISE_PLACES, pointwise_tile};

#endif
