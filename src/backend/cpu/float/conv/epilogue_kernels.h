/* The last operations of own convolutions, on vectors that are still in registers. */
#ifndef QN_CPU_EPILOGUE_KERNELS_H
#define QN_CPU_EPILOGUE_KERNELS_H

#include "backend/cpu/float/conv/epilogue.h"
#include "backend/cpu/float/elementwise/chain_kernels.h"

/* Functions of `count` vectors; one branch for all of them. */
#define EPILOGUE_CASE(name)                                                                        \
    case QN_FN_##name:                                                                             \
        for (int i = 0; i < count; i++)                                                            \
            x[i] = apply_##name(x[i], a, b, b);                                                    \
        break;

VEC_INLINE void epilogue_step(vec *x, int count, const qn_epilogue_step *s)
{
    const vec a = vec_set(s->a), b = vec_set(s->b);
    switch (s->fn) {
        EPILOGUE_CASE(CLIP)
        EPILOGUE_CASE(HARD_SIGMOID)
        EPILOGUE_CASE(HARD_SWISH)
        EPILOGUE_CASE(LEAKY_RELU)
        EPILOGUE_CASE(LINEAR)
        EPILOGUE_CASE(RELU)
        EPILOGUE_CASE(SIGMOID)
        EPILOGUE_CASE(SILU)
    default: break;
    }
}

/* The residual's vectors lie at r, r + VEC_WIDTH, ... */
VEC_INLINE void epilogue_vectors(vec *x, int count, const qn_epilogue_fused *f, const float *r)
{
    for (int i = 0; i < count && f->residual == QN_RESIDUAL_BEFORE; i++)
        x[i] = vec_add(x[i], vec_load(r + i * VEC_WIDTH));
    for (int32_t s = 0; s < f->n_steps; s++)
        epilogue_step(x, count, &f->steps[s]);
    for (int i = 0; i < count && f->residual == QN_RESIDUAL_AFTER; i++)
        x[i] = vec_add(x[i], vec_load(r + i * VEC_WIDTH));
}

#endif
