/* The last operations of own convolutions, on vectors that are still in registers. */
#ifndef QN_CPU_EPILOGUE_KERNELS_H
#define QN_CPU_EPILOGUE_KERNELS_H

#include "backend/cpu/float/conv/epilogue.h"
#include "backend/cpu/float/elementwise/chain_kernels.h"

/* Functions of `count` vectors; one branch for all of them. */
#define FINISH_CASE(name)                                                                          \
    case QN_FN_##name:                                                                             \
        for (int i = 0; i < count; i++)                                                            \
            x[i] = apply_##name(x[i], a, b, b);                                                    \
        break;

VEC_INLINE void finish_step(vec *x, int count, const qn_finish_step *s)
{
    const vec a = vec_set(s->a), b = vec_set(s->b);
    switch (s->fn) {
        FINISH_CASE(CLIP)
        FINISH_CASE(HARD_SIGMOID)
        FINISH_CASE(HARD_SWISH)
        FINISH_CASE(LEAKY_RELU)
        FINISH_CASE(LINEAR)
        FINISH_CASE(RELU)
        FINISH_CASE(SIGMOID)
        FINISH_CASE(SILU)
    default: break;
    }
}

/* The residual's vectors lie at r, r + VEC_WIDTH, ... */
VEC_INLINE void finish_vectors(vec *x, int count, const qn_finish *f, const float *r)
{
    for (int i = 0; i < count && f->residual == QN_RESIDUAL_BEFORE; i++)
        x[i] = vec_add(x[i], vec_load(r + i * VEC_WIDTH));
    for (int32_t s = 0; s < f->n_steps; s++)
        finish_step(x, count, &f->steps[s]);
    for (int i = 0; i < count && f->residual == QN_RESIDUAL_AFTER; i++)
        x[i] = vec_add(x[i], vec_load(r + i * VEC_WIDTH));
}

#endif
