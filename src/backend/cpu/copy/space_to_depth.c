/* Slices of one image that a Concat joins along the channels, as in the focus layer of detectors:
 * one pass writes them straight into blocks of channels. */
#include <string.h>

#include "backend/cpu/copy/slices.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/tensor_attrs.h"

enum { RANK = 4, MOST_PARTS = 16, MOST_LANES = 16, COLUMNS = 64 };

typedef struct state {
    const qn_kernels *kernels;
    /* The sizes of the result. */
    int64_t samples, channels, height, width;
    /* From sample to sample. */
    qn_strides stride;
    /* Channel c of the result at (0, 0), in floats of a sample; steps down and across. */
    struct {
        int64_t first, down, across;
    } * from;
} state;

typedef struct work {
    const state *s;
    float *y;
    const float *x;
} work;

/* Every second element is what these layers take. */
static void copy_line(float *to, const float *from, int64_t count, int64_t step)
{
    if (step == 2) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[2 * i];
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * step];
    }
}

/* Item: one row of one block of channels. */
static void gather_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t b = s->kernels->width, blocks = (s->channels + b - 1) / b;
    float lines[MOST_LANES * COLUMNS];
    for (int64_t item = first; item < last; item++) {
        const int64_t row = item % s->height, block = item / s->height % blocks;
        const int64_t n = item / s->height / blocks, lanes = QN_MIN(b, s->channels - block * b);
        float *y = w->y + n * s->stride.out + (block * s->height + row) * s->width * b;
        for (int64_t left = 0; left < s->width; left += COLUMNS) {
            const int64_t columns = QN_MIN(COLUMNS, s->width - left);
            for (int64_t lane = 0; lane < lanes; lane++) {
                const int64_t c = block * b + lane, across = s->from[c].across;
                const float *x = w->x + n * s->stride.in + s->from[c].first +
                                 row * s->from[c].down + left * across;
                copy_line(lines + lane * COLUMNS, x, columns, across);
            }
            for (int64_t i = 0; i < columns; i += b) {
                const qn_transpose_tile t = {.y = y + (left + i) * b,
                                             .x = lines + i,
                                             .y_step = b,
                                             .x_step = COLUMNS,
                                             .rows = lanes,
                                             .columns = QN_MIN(b, columns - i),
                                             .fill = true};
                s->kernels->transpose(&t);
            }
        }
    }
}

static qn_status gather_prepare(qn_claim *claim)
{
    ((state *)claim->state)->stride = qn_claim_strides(claim);
    return QN_OK;
}

static qn_status gather_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    const int64_t b = s->kernels->width, blocks = (s->channels + b - 1) / b;
    (void)bound;
    qn_parallel(io->threads, s->samples * blocks * s->height, 2, gather_range, &w);
    return QN_OK;
}

static const qn_kernel gather_kernel = {
    .name = "space to depth", .prepare = gather_prepare, .run = gather_run};

/* ---- Finding --------------------------------------------------------------------------------- */

/* The slices between the image and the Concat. */
typedef struct found {
    qn_node *concat;
    /* By input of the Concat. */
    qn_slice_range parts[MOST_PARTS][RANK];
    bool has[MOST_PARTS];
} found;

/* The slice `node`, whose input is cut out of the image by `before`, and those behind it: every
 * path must end in the one Concat. */
static bool follow(found *f, qn_claim *claim, qn_node *node, const qn_slice_range *before)
{
    qn_slice_range ranges[RANK], inner[RANK];
    if (claim->n_nodes >= QN_CLAIM_SPARE || !qn_slice_ranges(inner, claim, node) ||
        qn_build_shown(claim->builder, node->out[0]) || qn_build_taken(claim->builder, node))
        return false;
    memcpy(ranges, before, sizeof ranges);
    qn_slice_compose(ranges, inner, RANK);
    if (node != claim->node)
        qn_claim_add(claim, node);
    for (size_t u = 0; u < node->out[0]->n_users; u++) {
        qn_node *user = node->out[0]->users[u];
        if (user->op == &qn_op_Slice) {
            if (!follow(f, claim, user, ranges))
                return false;
            continue;
        }
        if (user->op != &qn_op_Concat || (f->concat && f->concat != user) ||
            user->n_in > MOST_PARTS)
            return false;
        f->concat = user;
        for (int32_t i = 0; i < user->n_in; i++) {
            if (user->in[i] != node->out[0])
                continue;
            memcpy(f->parts[i], ranges, sizeof ranges);
            f->has[i] = true;
        }
    }
    return true;
}

/* All slices of the image lead to one Concat along the channels, and it has no other inputs. */
static bool find(found *f, qn_claim *claim, const qn_tensor *x)
{
    const qn_value *image = claim->node->in[0];
    qn_slice_range whole[RANK];
    for (int d = 0; d < RANK; d++)
        whole[d] = (qn_slice_range){0, 1, x->dims[d]};
    for (size_t u = 0; u < image->n_users; u++) {
        if (image->users[u]->op == &qn_op_Slice && !follow(f, claim, image->users[u], whole))
            return false;
    }
    if (!f->concat || ((const qn_concat_attrs *)f->concat->attrs)->axis != 1)
        return false;
    for (int32_t i = 0; i < f->concat->n_in; i++) {
        if (!f->has[i] || f->parts[i][0].count != x->dims[0] || f->parts[i][0].step != 1)
            return false;
    }
    return true;
}

static qn_status describe(state *s, const qn_claim *claim, const found *f, const qn_tensor *x)
{
    qn_tensor y;
    if (!qn_build_shape(&y, claim->builder, f->concat->out[0]))
        return QN_OK;
    s->kernels = qn_kernels_get();
    s->samples = y.dims[0];
    s->channels = y.dims[1];
    s->height = y.dims[2];
    s->width = y.dims[3];
    s->from = qn_build_alloc(claim->builder, (size_t)s->channels * sizeof *s->from);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s->from);
    int64_t to = 0;
    for (int32_t i = 0; i < f->concat->n_in; i++) {
        const qn_slice_range *r = f->parts[i];
        for (int64_t c = 0; c < r[1].count; c++, to++) {
            const int64_t channel = r[1].first + c * r[1].step;
            s->from[to].first = (channel * x->dims[2] + r[2].first) * x->dims[3] + r[3].first;
            s->from[to].down = r[2].step * x->dims[3];
            s->from[to].across = r[3].step;
        }
    }
    return QN_OK;
}

qn_status qn_claim_space_to_depth(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    found f = {.concat = NULL};
    qn_tensor x;
    state *s;
    if (!qn_build_shape(&x, claim->builder, node->in[0]) || x.rank != RANK ||
        x.dtype != QN_FLOAT32 || node->in[0]->data || !find(&f, claim, &x)) {
        claim->n_nodes = 1; /* those that were added on the way */
        return QN_OK;
    }
    qn_claim_add(claim, f.concat);
    s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    QN_TRY(describe(s, claim, &f, &x));
    qn_claim_in(claim, node->in[0], QN_ROWS)->strided = true;
    qn_claim_out(claim, f.concat->out[0], qn_layout_native())->strided = true;
    claim->state = s;
    claim->kernel = &gather_kernel;
    *taken = true;
    return QN_OK;
}
