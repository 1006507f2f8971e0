/* GlobalAveragePool of floats that lie channels last, as integer convolutions leave them: pixels
 * are added one after another in doubles, all channels side by side: the reference's bits on every
 * machine. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel.h"

enum { CHANNELS = 64 }; /* of an item */

typedef struct state {
    int64_t samples, channels, area, chunks;
    /* Bytes from sample to sample. */
    int64_t x_stride;
} state;

typedef struct work {
    const state *s;
    float *y;
    const char *x;
} work;

static void mean_chunk(const state *s, float *y, const float *x, int64_t count)
{
    double sums[CHANNELS] = {0};
    for (int64_t p = 0; p < s->area; p++, x += s->channels) {
        if (count == CHANNELS) {
            for (int c = 0; c < CHANNELS; c++)
                sums[c] += (double)x[c];
        } else {
            for (int64_t c = 0; c < count; c++)
                sums[c] += (double)x[c];
        }
    }
    for (int64_t c = 0; c < count; c++)
        y[c] = (float)(sums[c] / (double)s->area);
}

static void mean_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / s->chunks, c = i % s->chunks * CHANNELS;
        const float *x = (const float *)(const void *)(w->x + n * s->x_stride) + c;
        mean_chunk(s, w->y + n * s->channels + c, x, QN_MIN(CHANNELS, s->channels - c));
    }
}

static qn_status mean_prepare(qn_claim *claim)
{
    state *s = claim->state;
    s->x_stride = (int64_t)claim->in[0].stride;
    return QN_OK;
}

static qn_status mean_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    qn_parallel(io->threads, s->samples * s->chunks, 2, mean_range, &w);
    return QN_OK;
}

static const qn_kernel mean_kernel = {
    .name = "mean channels last", .prepare = mean_prepare, .run = mean_run};

qn_status qn_claim_mean_last(bool *taken, qn_claim *claim)
{
    qn_value *x = claim->node->in[0];
    qn_tensor shape;
    if (x->data || !qn_build_shape(&shape, claim->builder, x) || shape.dtype != QN_FLOAT32 ||
        shape.rank < 3 || qn_tensor_count(&shape) == 0 ||
        qn_build_layout(claim->builder, x).kind != QN_LAYOUT_CHANNELS_LAST)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (state){.samples = shape.dims[0],
                 .channels = shape.dims[1],
                 .area = qn_tensor_count(&shape) / shape.dims[0] / shape.dims[1],
                 .chunks = (shape.dims[1] + CHANNELS - 1) / CHANNELS};
    qn_claim_in(claim, x, (qn_layout){QN_LAYOUT_CHANNELS_LAST, 0})->strided = true;
    qn_claim_out(claim, claim->node->out[0], QN_ROWS);
    claim->state = s;
    claim->kernel = &mean_kernel;
    *taken = true;
    return QN_OK;
}
