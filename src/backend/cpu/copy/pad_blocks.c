/* Pad by zeros in the blocked layout of images: channels may move to other lanes. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/parallel.h"
#include "ops/pad.h"
#include "ops/tensor_attrs.h"

enum { RANK = 4 };

typedef struct state {
    /* Dims, and what stands before them. */
    int64_t in[RANK], out[RANK], begin[RANK];
    int64_t block;
    /* From sample to sample. */
    qn_strides stride;
} state;

typedef struct work {
    const state *s;
    float *y;
    const float *x;
} work;

/* Lanes of one place of block `block` of the result: channels from `c` of the input on, some of
 * which may not be there. x: that place of block 0 of the input. */
static void pad_lanes(const state *s, float *y, const float *x, int64_t c, int64_t plane)
{
    const int64_t b = s->block;
    for (int64_t lane = 0; lane < b;) {
        const int64_t from = c + lane;
        if (from < 0 || from >= s->in[1]) {
            y[lane++] = 0;
            continue;
        }
        const int64_t left = QN_MIN(b - from % b, s->in[1] - from);
        const int64_t count = QN_MIN(left, b - lane);
        memcpy(y + lane, x + from / b * plane + from % b, (size_t)count * sizeof *y);
        lane += count;
    }
}

/* Item: one row (last dim) of one block; [N, blocks, rows, width, b]. */
static void pad_blocks(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t b = s->block, height = s->out[2], width = s->out[3];
    const int64_t blocks = (s->out[1] + b - 1) / b, plane = s->in[2] * s->in[3] * b;
    for (int64_t item = first; item < last; item++) {
        const int64_t row = item % height, block = item / height % blocks;
        const int64_t n = item / height / blocks, from = row - s->begin[2];
        float *y = w->y + n * s->stride.out + (block * height + row) * width * b;
        const bool inside = from >= 0 && from < s->in[2];
        const float *x = w->x + n * s->stride.in + (inside ? from : 0) * s->in[3] * b;
        for (int64_t i = 0; i < width; i++) {
            const int64_t column = i - s->begin[3];
            if (inside && column >= 0 && column < s->in[3])
                pad_lanes(s, y + i * b, x + column * b, block * b - s->begin[1], plane);
            else
                memset(y + i * b, 0, (size_t)b * sizeof *y);
        }
    }
}

static qn_status pad_prepare(qn_claim *claim)
{
    ((state *)claim->state)->stride = qn_claim_strides(claim);
    return QN_OK;
}

static qn_status pad_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    const int64_t rows = s->out[0] * ((s->out[1] + s->block - 1) / s->block) * s->out[2];
    (void)bound;
    qn_parallel(io->threads, rows, 8192 / (s->out[3] * s->block) + 1, pad_blocks, &w);
    return QN_OK;
}

static const qn_kernel pad_kernel = {.name = "pad", .prepare = pad_prepare, .run = pad_run};

/* ---- Claim ----------------------------------------------------------------------------------- */

/* The pads of all dims, none of which cuts and none along the samples; false where they are not
 * constant or the border is not 0. */
static bool pads_of(state *s, const qn_node *node)
{
    const qn_value *value = node->n_in > 2 ? node->in[2] : NULL;
    qn_pad_amounts amounts;
    float number = 0;
    if (!qn_pad_read_node(&amounts, node) || (value && !value->data))
        return false;
    if (value)
        memcpy(&number, value->data->data, sizeof number);
    for (int d = 0; d < RANK; d++) {
        s->begin[d] = amounts.before[d];
        if (amounts.before[d] < 0 || amounts.after[d] < 0)
            return false;
    }
    return number == 0 && s->in[0] == s->out[0];
}

qn_status qn_claim_pad_blocks(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_layout layout = qn_layout_native();
    qn_tensor x, y;
    if (((const qn_pad_attrs *)node->attrs)->mode != QN_PAD_CONSTANT ||
        !qn_layout_same(qn_build_layout(claim->builder, node->in[0]), layout) ||
        !qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || x.rank != RANK)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    memcpy(s->in, x.dims, sizeof s->in);
    memcpy(s->out, y.dims, sizeof s->out);
    if (!pads_of(s, node))
        return QN_OK;
    s->block = layout.block;
    qn_claim_in(claim, node->in[0], layout)->strided = true;
    qn_claim_out(claim, node->out[0], layout)->strided = true;
    claim->state = s;
    claim->kernel = &pad_kernel;
    *taken = true;
    return QN_OK;
}
