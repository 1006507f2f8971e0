/* Tiles transposed in registers. */
#ifndef QN_CPU_TRANSPOSE_KERNELS_H
#define QN_CPU_TRANSPOSE_KERNELS_H

#include "backend/cpu/float/kernels.h"
#include "backend/cpu/simd/vec.h"

static void transpose(const qn_transpose_tile *t)
{
    vec r[VEC_WIDTH];
    if (t->columns == VEC_WIDTH && t->rows == VEC_WIDTH) {
        for (int i = 0; i < VEC_WIDTH; i++)
            r[i] = vec_load(t->x + i * t->x_step);
        vec_transpose(r);
        for (int i = 0; i < VEC_WIDTH; i++)
            vec_store(t->y + i * t->y_step, r[i]);
        return;
    }
    for (int i = 0; i < VEC_WIDTH; i++)
        r[i] = i < t->rows ? vec_load_first(t->x + i * t->x_step, t->columns) : vec_set(0);
    vec_transpose(r);
    for (int i = 0; i < t->columns; i++) {
        if (t->fill)
            vec_store(t->y + i * t->y_step, r[i]);
        else
            vec_store_first(t->y + i * t->y_step, r[i], t->rows);
    }
}

#endif
