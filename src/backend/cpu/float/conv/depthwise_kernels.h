/* Rows of depthwise.h: groups of outputs side by side share the inputs between them. */
#ifndef QN_CPU_DEPTHWISE_KERNELS_H
#define QN_CPU_DEPTHWISE_KERNELS_H

#include "backend/cpu/float/conv/depthwise.h"
#include "backend/cpu/float/conv/epilogue_kernels.h"

enum { DEPTHWISE_MOST = 8, DEPTHWISE_KERNEL = 5, DEPTHWISE_INPUTS = 7 * 2 + 5 };

/* The part of a kernel that lies on the input, [y0, y1) by [x0, x1). */
typedef struct depthwise_window {
    int64_t y0, y1, x0, x1;
} depthwise_window;

/* A line of outputs on its way. Sizes of kernels and groups are parameters of their own, so that
 * they are constants wherever these functions are inlined. */
typedef struct depthwise_line {
    const qn_depthwise *d;
    const qn_depthwise_row *row;
    /* The input's line under the first row of the kernel; column 0. */
    const float *x;
    /* As wide as the kernel. */
    depthwise_window window;
} depthwise_line;

/* `count` outputs from `at` on, whose patches are inside from left to right. */
VEC_INLINE void depthwise_group(const depthwise_line *l, int64_t at, int kernel, int stride,
                                int count)
{
    const qn_depthwise *d = l->d;
    const float *x = l->x + (at * stride - d->pad_left) * VEC_WIDTH;
    vec sums[DEPTHWISE_MOST];
#pragma GCC unroll 8
    for (int g = 0; g < count; g++) {
        sums[g] = vec_set(0);
        VEC_PREFETCH_WRITE(l->row->y_soon + (at + g) * VEC_WIDTH);
        for (int j = 0; j < stride * stride; j++)
            VEC_PREFETCH(l->row->x_soon +
                         ((at + g) * stride + j % stride + j / stride * d->width) * VEC_WIDTH);
    }
    for (int64_t i = l->window.y0; i < l->window.y1; i++) {
        const float *line = x + i * d->width * VEC_WIDTH;
        vec in[DEPTHWISE_INPUTS], w[DEPTHWISE_KERNEL];
#pragma GCC unroll 19
        for (int j = 0; j < (count - 1) * stride + kernel; j++)
            in[j] = vec_load(line + j * VEC_WIDTH);
#pragma GCC unroll 5
        for (int j = 0; j < kernel; j++)
            w[j] = vec_load(l->row->weights + (i * kernel + j) * VEC_WIDTH);
#pragma GCC unroll 5
        for (int j = 0; j < kernel; j++) {
#pragma GCC unroll 8
            for (int g = 0; g < count; g++)
                sums[g] = vec_fma(in[g * stride + j], w[j], sums[g]);
        }
    }
    const vec bias = vec_load(l->row->bias);
    for (int g = 0; g < count; g++)
        sums[g] = vec_add(sums[g], bias);
    epilogue_vectors(sums, count, &d->end.fused, l->row->r + at * VEC_WIDTH);
    for (int g = 0; g < count; g++)
        vec_store(l->row->y + (at + g) * VEC_WIDTH, sums[g]);
}

/* One output whose patch reaches over the edge; x: the input under the kernel's corner. */
VEC_INLINE void depthwise_edge(const depthwise_line *l, const float *x, int64_t at,
                               depthwise_window window, int kernel)
{
    vec sum = vec_set(0);
    for (int64_t i = window.y0; i < window.y1; i++) {
        for (int64_t j = window.x0; j < window.x1; j++)
            sum = vec_fma(vec_load(x + (i * l->d->width + j) * VEC_WIDTH),
                          vec_load(l->row->weights + (i * kernel + j) * VEC_WIDTH), sum);
    }
    sum = vec_add(sum, vec_load(l->row->bias));
    epilogue_vectors(&sum, 1, &l->d->end.fused, l->row->r + at * VEC_WIDTH);
    vec_store(l->row->y + at * VEC_WIDTH, sum);
}

/* Outputs [first, last) one by one. */
VEC_INLINE void depthwise_edges(const depthwise_line *l, int64_t first, int64_t last, int kernel,
                                int stride)
{
    depthwise_window window = l->window;
    for (int64_t at = first; at < last; at++) {
        const int64_t left = at * stride - l->d->pad_left, over = left + kernel - l->d->width;
        window.x0 = left < 0 ? -left : 0;
        window.x1 = over > 0 ? kernel - over : kernel;
        depthwise_edge(l, l->x + left * VEC_WIDTH, at, window, kernel);
    }
}

/* Outputs [first, last), whose patches are inside, in groups. */
VEC_INLINE void depthwise_inside(const depthwise_line *l, int64_t first, int64_t last, int kernel,
                                 int stride, int group)
{
    int64_t at = first;
    for (; at + group <= last; at += group)
        depthwise_group(l, at, kernel, stride, group);
    if (at < last && last - first >= group && l->d->end.fused.residual == QN_RESIDUAL_NONE) {
        /* Some again, which is quicker than one by one. */
        depthwise_group(l, last - group, kernel, stride, group);
        return;
    }
    for (; at + 4 <= last; at += 4)
        depthwise_group(l, at, kernel, stride, 4);
    for (; at + 2 <= last; at += 2)
        depthwise_group(l, at, kernel, stride, 2);
    for (; at < last; at++)
        depthwise_group(l, at, kernel, stride, 1);
}

VEC_INLINE void depthwise_row(const qn_depthwise *d, const qn_depthwise_row *row, int kernel,
                              int stride, int group)
{
    const int64_t top = row->row * d->stride_down - d->pad_top, below = top + kernel - d->height;
    const depthwise_line line = {
        d,
        row,
        row->x + top * d->width * VEC_WIDTH,
        {top < 0 ? -top : 0, below > 0 ? kernel - below : kernel, 0, kernel}};
    const int64_t room = d->width - kernel + d->pad_left;
    int64_t last = room < 0 ? 0 : room / stride + 1;
    last = last > d->out_width ? d->out_width : last;
    int64_t first = (d->pad_left + stride - 1) / stride;
    first = first > last ? last : first;
    depthwise_edges(&line, 0, first, kernel, stride);
    depthwise_inside(&line, first, last, kernel, stride, group);
    depthwise_edges(&line, last, d->out_width, kernel, stride);
}

#define DEPTHWISE(kernel, stride, group)                                                           \
    static void depthwise_##kernel##_##stride(const qn_depthwise *d, const qn_depthwise_row *row)  \
    {                                                                                              \
        depthwise_row(d, row, kernel, stride, VEC_WIDTH == 16 ? (group) : 4);                      \
    }
DEPTHWISE(3, 1, 7)
DEPTHWISE(3, 2, 6)
DEPTHWISE(5, 1, 8)
DEPTHWISE(5, 2, 6)

/* By kernel (3, 5) and stride (1, 2). */
static qn_depthwise_fn *const depthwise_kernels[2][2] = {{depthwise_3_1, depthwise_3_2},
                                                         {depthwise_5_1, depthwise_5_2}};

#endif
