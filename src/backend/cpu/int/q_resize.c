/* Resize of 8- and 16-bit integers along H and W: nearest as a copy, linear as QLinearResize;
 * channels last where the input is, and linear always. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/resize_axis.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"

typedef struct state {
    const qn_q_kernels *kernels;
    bool linear;
    /* [H, W] of pixels each. */
    int64_t planes;
    int64_t in_h, in_w, out_h, out_w;
    /* Bytes that stay together. */
    int64_t pixel;
    /* [out], of linear [out, 2]. */
    int64_t *index_h, *index_w;
    float *weight_h, *weight_w;
    qn_q_cast cast;
} state;

typedef struct work {
    const state *s;
    uint8_t *y;
    const uint8_t *x;
} work;

static void nearest_row(uint8_t *y, const uint8_t *x, const state *s)
{
    if (s->pixel == 1) {
        for (int64_t w = 0; w < s->out_w; w++)
            y[w] = x[s->index_w[w]];
        return;
    }
    for (int64_t w = 0; w < s->out_w; w++)
        memcpy(y + w * s->pixel, x + s->index_w[w] * s->pixel, (size_t)s->pixel);
}

static void linear_row(uint8_t *y, const uint8_t *plane, const state *s, int64_t h)
{
    const int64_t row = s->in_w * s->pixel, size = s->cast.is_int16 ? 2 : 1;
    const qn_q_linear line = {.top = plane + s->index_h[2 * h] * row,
                              .low = plane + s->index_h[2 * h + 1] * row,
                              .index = s->index_w,
                              .weight = s->weight_w,
                              .top_weight = s->weight_h[2 * h],
                              .low_weight = s->weight_h[2 * h + 1],
                              .out_w = s->out_w,
                              .channels = s->pixel / size};
    s->kernels->linear(y, &line, &s->cast);
}

/* Item: an output row. */
static void resize_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t in_row = s->in_w * s->pixel, out_row = s->out_w * s->pixel;
    for (int64_t i = first; i < last; i++) {
        const uint8_t *plane = w->x + i / s->out_h * s->in_h * in_row;
        const int64_t h = i % s->out_h;
        uint8_t *y = w->y + i * out_row;
        if (s->linear)
            linear_row(y, plane, s, h);
        else if (h > 0 && i > first && s->index_h[h] == s->index_h[h - 1])
            memcpy(y, y - out_row, (size_t)out_row); /* shows the same row again */
        else
            nearest_row(y, plane + s->index_h[h] * in_row, s);
    }
}

static qn_status resize_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    qn_parallel(io->threads, s->planes * s->out_h,
                QN_Q_CHUNK * QN_Q_ALONE / (s->out_w * s->pixel) + 1, resize_range, &w);
    return QN_OK;
}

/* ---- Claiming -------------------------------------------------------------------------------- */

/* An axis that has one tap gets a second that adds nothing. */
static qn_status two_taps(qn_resize_taps_of *taps, const qn_claim *claim, int64_t out)
{
    if (taps->taps == 2)
        return QN_OK;
    int64_t *index = qn_build_alloc(claim->builder, (size_t)out * 2 * sizeof *index);
    float *weight = qn_build_alloc(claim->builder, (size_t)out * 2 * sizeof *weight);
    if (!index || !weight)
        return qn_fail_nomem(qn_build_context(claim->builder));
    for (int64_t i = 0; i < out; i++) {
        index[2 * i] = index[2 * i + 1] = taps->index[i];
        weight[2 * i] = taps->weight[i];
    }
    *taps = (qn_resize_taps_of){2, index, weight};
    return QN_OK;
}

static qn_status resize_prepare(qn_claim *claim)
{
    state *s = claim->state;
    const int32_t roi = claim->node->op == &qn_op_Resize ? 1 : 5;
    qn_resize_taps_of h, w;
    QN_TRY(qn_resize_axis_make(&h, claim, roi, 2));
    QN_TRY(qn_resize_axis_make(&w, claim, roi, 3));
    if (s->linear) {
        QN_TRY(two_taps(&h, claim, s->out_h));
        QN_TRY(two_taps(&w, claim, s->out_w));
    }
    s->index_h = h.index;
    s->index_w = w.index;
    s->weight_h = h.weight;
    s->weight_w = w.weight;
    return QN_OK;
}

static const qn_kernel nearest_kernel = {
    .name = "int nearest", .prepare = resize_prepare, .run = resize_run};
static const qn_kernel linear_kernel = {
    .name = "int linear", .prepare = resize_prepare, .run = resize_run};

static qn_status begin(state **out, const qn_claim *claim, int32_t roi)
{
    const qn_node *node = claim->node;
    qn_tensor in, y;
    *out = NULL;
    if (!node->in[0] || node->in[0]->data || !qn_build_shape(&in, claim->builder, node->in[0]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || !qn_q_is_integer(in.dtype) ||
        !qn_resize_is_plain(node, roi, &in, &y))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (state){.kernels = qn_q_kernels_get(),
                 .planes = in.dims[0],
                 .in_h = in.dims[2],
                 .in_w = in.dims[3],
                 .out_h = y.dims[2],
                 .out_w = y.dims[3],
                 .pixel = in.dims[1] * (int64_t)qn_dtype_size(in.dtype)};
    *out = s;
    return QN_OK;
}

static void close_claim(bool *taken, qn_claim *claim, state *s, qn_layout layout, qn_value *value)
{
    qn_claim_in(claim, claim->node->in[0], layout);
    qn_claim_out(claim, value, layout);
    claim->state = s;
    claim->kernel = s->linear ? &linear_kernel : &nearest_kernel;
    *taken = true;
}

qn_status qn_claim_q_nearest(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    state *s;
    QN_TRY(begin(&s, claim, 1));
    if (!s || ((const qn_resize_attrs *)node->attrs)->mode != QN_RESIZE_NEAREST)
        return QN_OK;
    const qn_layout layout = qn_q_layout(claim, node->in[0]);
    if (layout.kind == QN_LAYOUT_ROWS) {
        const int64_t size = (int64_t)qn_dtype_size(node->in[0]->type.dtype);
        s->planes *= s->pixel / size;
        s->pixel = size;
    }
    close_claim(taken, claim, s, layout, node->out[0]);
    return QN_OK;
}

qn_status qn_claim_q_linear(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_value *value = node->out[0];
    const qn_dtype to = value->type.dtype;
    qn_qparams x, y;
    state *s;
    QN_TRY(begin(&s, claim, 5));
    if (!s || ((const qn_resize_attrs *)node->attrs)->mode != QN_RESIZE_LINEAR ||
        !qn_q_param_of(&x, node, 1, 2) || !qn_q_param_of(&y, node, 3, 4) ||
        qn_dtype_size(to) != qn_dtype_size(node->in[0]->type.dtype))
        return QN_OK;
    s->linear = true;
    s->cast = (qn_q_cast){.from = qn_q_side_of(node->in[0]->type.dtype, x.zero),
                          .scale = (x.scale / y.scale),
                          .round = qn_q_round_of(to, y.zero),
                          .is_int16 = qn_dtype_size(to) == 2};
    qn_q_take_clips(claim, &value, &s->cast.round);
    close_claim(taken, claim, s, QN_LAST, value);
    return QN_OK;
}
