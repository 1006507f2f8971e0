/* Conversion of 8- and 16-bit tensors between row-major and channels last. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"

enum { BAND = 128 }; /* positions of an item */

typedef struct state {
    const qn_q_kernels *kernels;
    bool to_rows;
    int64_t size, samples, channels, area, bands;
    /* Bytes from sample to sample. */
    int64_t from_stride, to_stride;
} state;

typedef struct work {
    const state *s;
    uint8_t *y;
    const uint8_t *x;
} work;

static void convert_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / s->bands, p = i % s->bands * BAND, count = QN_MIN(BAND, s->area - p);
        const int64_t in_rows = p * s->size, in_last = p * s->channels * s->size;
        uint8_t *y = w->y + n * s->to_stride + (s->to_rows ? in_rows : in_last);
        const uint8_t *x = w->x + n * s->from_stride + (s->to_rows ? in_last : in_rows);
        const int64_t y_step = s->to_rows ? s->area : s->channels;
        const int64_t x_step = s->to_rows ? s->channels : s->area;
        const int64_t rows = s->to_rows ? count : s->channels;
        const int64_t columns = s->to_rows ? s->channels : count;
        if (s->size == 1)
            s->kernels->transpose_uint8(y, x, y_step, x_step, rows, columns);
        else
            s->kernels->transpose_uint16((uint16_t *)(void *)y, (const uint16_t *)(const void *)x,
                                         y_step, x_step, rows, columns);
    }
}

static qn_status convert_prepare(qn_claim *claim)
{
    state *s = claim->state;
    s->from_stride = (int64_t)claim->in[0].stride;
    s->to_stride = (int64_t)claim->out[0].stride;
    return QN_OK;
}

static qn_status convert_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    qn_parallel(io->threads, s->samples * s->bands,
                QN_Q_CHUNK * QN_Q_ALONE / (QN_MIN(BAND, s->area) * s->channels) + 1, convert_range,
                &w);
    return QN_OK;
}

static const qn_kernel convert_kernel = {
    .name = "convert bytes", .prepare = convert_prepare, .run = convert_run};

qn_status qn_convert_integers(qn_claim *claim, const qn_tensor *shape)
{
    const qn_layout from = claim->in[0].layout, to = claim->out[0].layout;
    if (from.kind == QN_LAYOUT_BLOCKED || to.kind == QN_LAYOUT_BLOCKED ||
        qn_layout_same(from, to) || shape->rank < 3 || qn_tensor_count(shape) == 0)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (state){.kernels = qn_q_kernels_get(),
                 .to_rows = to.kind == QN_LAYOUT_ROWS,
                 .size = (int64_t)qn_dtype_size(shape->dtype),
                 .samples = shape->dims[0],
                 .channels = shape->dims[1]};
    s->area = qn_tensor_count(shape) / s->samples / s->channels;
    s->bands = (s->area + BAND - 1) / BAND;
    claim->state = s;
    claim->kernel = &convert_kernel;
    return QN_OK;
}
