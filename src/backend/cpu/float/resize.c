/* Resize of [N, C, H, W] along H and W by nearest or linear, row-major or blocked by channels. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/float/resize_axis.h"
#include "backend/cpu/parallel.h"

enum { ALONE_BELOW = 8192 };

typedef struct resize_state {
    /* The planes of all samples: [H, W, lanes] each. */
    int64_t planes;
    int64_t in_h, in_w, out_h, out_w, lanes;
    int32_t taps_h, taps_w;
    /* [out, taps]. */
    int64_t *index_h, *index_w;
    float *weight_h, *weight_w;
} resize_state;

typedef struct resize_work {
    const resize_state *state;
    float *y;
    const float *x;
} resize_work;

/* y[w] = x[index[w]], groups of `lanes` floats */
static void nearest_row(float *y, const float *x, const resize_state *s)
{
    for (int64_t w = 0; w < s->out_w; w++)
        memcpy(y + w * s->lanes, x + s->index_w[w] * s->lanes, (size_t)s->lanes * sizeof *y);
}

static void linear_row(float *y, const float *plane, const resize_state *s, int64_t h)
{
    const int64_t row = s->in_w * s->lanes;
    const float *top = plane + s->index_h[h * s->taps_h] * row;
    const float *low = plane + s->index_h[h * s->taps_h + s->taps_h - 1] * row;
    const float a = s->weight_h[h * s->taps_h];
    const float b = s->taps_h > 1 ? s->weight_h[h * s->taps_h + 1] : 0;
    for (int64_t w = 0; w < s->out_w; w++) {
        const int64_t *at = s->index_w + w * s->taps_w, last = s->taps_w - 1;
        const float c = s->weight_w[w * s->taps_w];
        const float d = last ? s->weight_w[w * s->taps_w + 1] : 0;
        const int64_t left = at[0] * s->lanes, right = at[last] * s->lanes;
        for (int64_t k = 0; k < s->lanes; k++)
            y[w * s->lanes + k] = a * (c * top[left + k] + d * top[right + k]) +
                                  b * (c * low[left + k] + d * low[right + k]);
    }
}

/* Items are output rows of all planes. */
static void resize_range(const void *opaque, int64_t first, int64_t last)
{
    const resize_work *work = opaque;
    const resize_state *s = work->state;
    const int64_t in_row = s->in_w * s->lanes, out_row = s->out_w * s->lanes;
    for (int64_t i = first; i < last; i++) {
        const float *plane = work->x + i / s->out_h * s->in_h * in_row;
        float *y = work->y + i * out_row;
        const int64_t h = i % s->out_h;
        if (s->taps_h > 1 || s->taps_w > 1) {
            linear_row(y, plane, s, h);
            continue;
        }
        /* Rows that show the same input row are copies of each other. */
        if (h > 0 && i > first && s->index_h[h] == s->index_h[h - 1])
            memcpy(y, y - out_row, (size_t)out_row * sizeof *y);
        else
            nearest_row(y, plane + s->index_h[h] * in_row, s);
    }
}

static qn_status resize_run(const void *state, void *bound, const qn_step_io *io)
{
    const resize_state *s = state;
    const resize_work work = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    qn_parallel(io->threads, s->planes * s->out_h, ALONE_BELOW / (s->out_w * s->lanes) + 1,
                resize_range, &work);
    return QN_OK;
}

/* ---- Claim ----------------------------------------------------------------------------------- */

static bool can_take(const qn_claim *claim, const qn_tensor *in, const qn_tensor *out)
{
    return in->dtype == QN_FLOAT32 && qn_resize_is_plain(claim->node, 1, in, out);
}

static qn_status resize_prepare(qn_claim *claim)
{
    resize_state *s = claim->state;
    qn_resize_taps_of h, w;
    QN_TRY(qn_resize_axis_make(&h, claim, 1, 2));
    QN_TRY(qn_resize_axis_make(&w, claim, 1, 3));
    s->taps_h = h.taps;
    s->taps_w = w.taps;
    s->index_h = h.index;
    s->index_w = w.index;
    s->weight_h = h.weight;
    s->weight_w = w.weight;
    return QN_OK;
}

static const qn_kernel resize_kernel = {
    .name = "resize", .prepare = resize_prepare, .run = resize_run};

qn_status qn_claim_resize(bool *taken, qn_claim *claim)
{
    qn_tensor in, out;
    qn_node *node = claim->node;
    if (node->in[0]->data || !qn_build_shape(&in, claim->builder, node->in[0]) ||
        !qn_build_shape(&out, claim->builder, node->out[0]) || !can_take(claim, &in, &out))
        return QN_OK;
    resize_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    const qn_layout native = qn_layout_native();
    const bool blocked = qn_layout_same(qn_build_layout(claim->builder, node->in[0]), native);
    const qn_layout layout = blocked ? native : QN_ROWS;
    const int64_t lanes = blocked ? native.block : 1;
    *s = (resize_state){.planes = in.dims[0] * ((in.dims[1] + lanes - 1) / lanes),
                        .in_h = in.dims[2],
                        .in_w = in.dims[3],
                        .out_h = out.dims[2],
                        .out_w = out.dims[3],
                        .lanes = lanes};
    qn_claim_in(claim, node->in[0], layout);
    qn_claim_out(claim, node->out[0], layout);
    claim->state = s;
    claim->kernel = &resize_kernel;
    *taken = true;
    return QN_OK;
}
