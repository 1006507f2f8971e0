/* Multiply-adds without memory, as many as the registers allow to be under way at once: what the
 * core can do at most. Included once per instruction set. */
#ifndef QN_CPU_PEAK_KERNELS_H
#define QN_CPU_PEAK_KERNELS_H

#include "backend/cpu/float/peak.h"
#include "backend/cpu/simd/vec.h"

#if defined(__FMA__) || defined(__AVX512F__)
#define PEAK_STEP(sum, a, b) vec_fma(sum, a, b)
#else
#define PEAK_STEP(sum, a, b) vec_add(vec_mul(sum, a), b)
#endif

static float peak(int64_t rounds)
{
    enum { CHAINS = QN_PEAK_CHAINS };
    vec sums[CHAINS];
    float out[VEC_WIDTH], total = 0;
    const vec a = vec_set(0.5f), b = vec_set(0.25f);
    for (int c = 0; c < CHAINS; c++)
        sums[c] = vec_set((float)c);
    for (int64_t i = 0; i < rounds; i++) {
        for (int c = 0; c < CHAINS; c++)
            sums[c] = PEAK_STEP(sums[c], a, b);
    }
    for (int c = 0; c < CHAINS; c++) {
        vec_store(out, sums[c]);
        total += out[0];
    }
    return total;
}

#endif
