/* Conversions between layouts: tiles of channels by positions are transposed. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"

enum { POSITIONS = 128, ALONE_BELOW = 8192 };

typedef struct state {
    const qn_kernels *kernels;
    qn_layout from, to;
    int64_t samples, channels, area;
    /* From sample to sample. */
    qn_strides stride;
    /* The numbers of bands of positions and of blocks of channels. */
    int64_t bands, blocks;
} state;

typedef struct work {
    const state *s;
    float *y;
    const float *x;
} work;

/* Where channel c of position p lies, in floats, and how far the next position is. Channels of a
 * block lie side by side except in rows, where they are `area` apart. */
static int64_t offset_of(const state *s, qn_layout layout, int64_t c, int64_t p, int64_t *step)
{
    switch ((qn_layout_kind)layout.kind) {
    case QN_LAYOUT_BLOCKED: *step = layout.block; return c * s->area + p * layout.block;
    case QN_LAYOUT_CHANNELS_LAST: *step = s->channels; return p * s->channels + c;
    case QN_LAYOUT_ROWS: break;
    }
    *step = 1;
    return c * s->area + p;
}

/* From or to rows: channels c.. of positions [p, last). */
static void transpose_band(const work *w, float *y, const float *x, int64_t c, int64_t p,
                           int64_t last)
{
    const state *s = w->s;
    const int64_t width = s->kernels->width, lanes = QN_MIN(width, s->channels - c);
    const bool from_rows = s->from.kind == QN_LAYOUT_ROWS;
    for (; p < last; p += width) {
        int64_t x_step, y_step;
        const int64_t count = QN_MIN(width, last - p);
        const int64_t from = offset_of(s, s->from, c, p, &x_step);
        const int64_t to = offset_of(s, s->to, c, p, &y_step);
        qn_transpose_tile t = {.y = y + to, .x = x + from, .fill = s->to.kind == QN_LAYOUT_BLOCKED};
        t.x_step = from_rows ? s->area : x_step;
        t.y_step = from_rows ? y_step : s->area;
        t.rows = from_rows ? lanes : count;
        t.columns = from_rows ? count : lanes;
        s->kernels->transpose(&t);
    }
}

/* Positions [p, last) of some channels, from `from` on to `to`. */
typedef struct positions {
    float *to;
    const float *from;
    int64_t to_step, from_step, count;
} positions;

/* `lanes` is a number that the compiler knows where a block is whole. */
static inline void copy_lanes(const positions *p, int64_t lanes)
{
    for (int64_t i = 0; i < p->count; i++)
        memcpy(p->to + i * p->to_step, p->from + i * p->from_step, (size_t)lanes * sizeof *p->to);
}

/* Between blocked and channels last: the lanes of a position stay side by side. */
static void copy_band(const work *w, float *y, const float *x, int64_t c, int64_t p, int64_t last)
{
    const state *s = w->s;
    const int64_t width = s->kernels->width, lanes = QN_MIN(width, s->channels - c);
    positions all = {.count = last - p};
    all.from = x + offset_of(s, s->from, c, p, &all.from_step);
    all.to = y + offset_of(s, s->to, c, p, &all.to_step);
    if (lanes == 16)
        copy_lanes(&all, 16);
    else if (lanes == 8)
        copy_lanes(&all, 8);
    else
        copy_lanes(&all, lanes);
    if (s->to.kind != QN_LAYOUT_BLOCKED || lanes == width)
        return;
    for (int64_t i = 0; i < all.count; i++)
        memset(all.to + i * all.to_step + lanes, 0, (size_t)(width - lanes) * sizeof *all.to);
}

/* Item: a band of positions of one block of channels. */
static void convert_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const bool transposes = s->from.kind == QN_LAYOUT_ROWS || s->to.kind == QN_LAYOUT_ROWS;
    for (int64_t i = first; i < last; i++) {
        const int64_t c = i % s->blocks * s->kernels->width;
        const int64_t p = i / s->blocks % s->bands * POSITIONS, n = i / s->blocks / s->bands;
        (transposes ? transpose_band : copy_band)(w, w->y + n * s->stride.out,
                                                  w->x + n * s->stride.in, c, p,
                                                  QN_MIN(p + POSITIONS, s->area));
    }
}

static qn_status convert_prepare(qn_claim *claim)
{
    ((state *)claim->state)->stride = qn_claim_strides(claim);
    return QN_OK;
}

static qn_status convert_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    const int64_t each = QN_MIN(s->area, POSITIONS) * s->kernels->width;
    (void)bound;
    qn_parallel(io->threads, s->samples * s->bands * s->blocks, ALONE_BELOW / each + 1,
                convert_range, &w);
    return QN_OK;
}

static const qn_kernel convert_kernel = {
    .name = "convert", .prepare = convert_prepare, .run = convert_run};

static bool is_known(qn_layout layout)
{
    return layout.kind != QN_LAYOUT_BLOCKED || qn_layout_same(layout, qn_layout_native());
}

qn_status qn_convert_layout(qn_claim *claim)
{
    qn_tensor shape;
    const qn_layout from = claim->in[0].layout, to = claim->out[0].layout;
    if (!qn_build_shape(&shape, claim->builder, claim->in[0].value))
        return QN_OK;
    const size_t size = qn_dtype_size(shape.dtype);
    if (size == 1 || size == 2)
        return qn_convert_integers(claim, &shape);
    if (shape.dtype != QN_FLOAT32 || shape.rank < 2 || qn_tensor_count(&shape) == 0 ||
        !is_known(from) || !is_known(to) || qn_layout_same(from, to))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_kernels_get();
    s->from = from;
    s->to = to;
    s->samples = shape.dims[0];
    s->channels = shape.dims[1];
    s->area = qn_tensor_count(&shape) / s->samples / s->channels;
    s->bands = (s->area + POSITIONS - 1) / POSITIONS;
    s->blocks = (s->channels + s->kernels->width - 1) / s->kernels->width;
    claim->state = s;
    claim->kernel = &convert_kernel;
    return QN_OK;
}
