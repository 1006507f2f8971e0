/* Weighted sums of elements that lie anywhere in a plane. */
#ifndef QN_TAPS_KERNELS_H
#define QN_TAPS_KERNELS_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/vec.h"

static void sum_taps(float *y, const float *plane, const qn_taps *t)
{
    for (int64_t p = 0; p < t->points; p += VEC_WIDTH) {
        vec sum = vec_mul(vec_load(t->weight + p), vec_gather(plane, t->at + p));
        for (int64_t k = 1; k < t->taps; k++)
            sum = vec_fma(vec_load(t->weight + k * t->pitch + p),
                          vec_gather(plane, t->at + k * t->pitch + p), sum);
        vec_store_first(y + p, sum, t->points - p < VEC_WIDTH ? t->points - p : VEC_WIDTH);
    }
}

#endif
