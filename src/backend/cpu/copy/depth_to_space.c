/* DepthToSpace and SpaceToDepth of any element type: between a map of deep pixels, b * b times the
 * channels, and a wide one, b times the height and the width. Both are row-major, or channels last
 * where integers are. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/tensor_attrs.h"

enum { ALONE_BELOW = 32768 }; /* bytes that one thread copies faster by itself */

typedef struct state {
    /* The channels of the wide map, the sides of the deep one, the block. */
    int64_t samples, channels, height, width, block;
    /* Bytes of an element. */
    int64_t size;
    /* The wide map is the result. */
    bool widens;
    /* The deep channel is (c * b + i) * b + j, else (i * b + j) * channels + c. */
    bool channel_first;
    bool last;
} state;

typedef struct work {
    const state *s;
    uint8_t *wide, *deep;
} work;

/* Elements of one line, one after another and `step` elements apart. */
#define SPREAD(SIZE)                                                                               \
    case SIZE:                                                                                     \
        for (int64_t i = 0; i < count; i++)                                                        \
            memcpy(out ? spread + i *step *SIZE : line + i * SIZE,                                 \
                   out ? line + i * SIZE : spread + i * step * SIZE, SIZE);                        \
        break;
static void spread_out(uint8_t *spread, int64_t step, uint8_t *line, int64_t count, int64_t size)
{
    const bool out = true;
    switch (size) {
        SPREAD(1)
        SPREAD(2)
        SPREAD(4)
        SPREAD(8)
    default: break; /* the claim takes no other size */
    }
}

static void gather_in(uint8_t *line, uint8_t *spread, int64_t step, int64_t count, int64_t size)
{
    const bool out = false;
    switch (size) {
        SPREAD(1)
        SPREAD(2)
        SPREAD(4)
        SPREAD(8)
    default: break; /* the claim takes no other size */
    }
}
#undef SPREAD

/* The usual block: two lines become one or one becomes two. */
#define PAIRS(T)                                                                                   \
    static void zip_##T(T *restrict wide, const T *restrict even, const T *restrict odd,           \
                        int64_t count)                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            wide[2 * i] = even[i];                                                                 \
            wide[2 * i + 1] = odd[i];                                                              \
        }                                                                                          \
    }                                                                                              \
    static void unzip_##T(T *restrict even, T *restrict odd, const T *restrict wide,               \
                          int64_t count)                                                           \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            even[i] = wide[2 * i];                                                                 \
            odd[i] = wide[2 * i + 1];                                                              \
        }                                                                                          \
    }                                                                                              \
    static void pairs_##T(uint8_t *wide, uint8_t *even, uint8_t *odd, int64_t count, bool widens)  \
    {                                                                                              \
        if (widens)                                                                                \
            zip_##T((T *)(void *)wide, (T *)(void *)even, (T *)(void *)odd, count);                \
        else                                                                                       \
            unzip_##T((T *)(void *)even, (T *)(void *)odd, (T *)(void *)wide, count);              \
    }
PAIRS(uint8_t)
PAIRS(uint16_t)
PAIRS(uint32_t)
PAIRS(uint64_t)
#undef PAIRS

static void pairs(const state *s, uint8_t *wide, uint8_t *even, uint8_t *odd)
{
    switch (s->size) {
    case 1: pairs_uint8_t(wide, even, odd, s->width, s->widens); break;
    case 2: pairs_uint16_t(wide, even, odd, s->width, s->widens); break;
    case 4: pairs_uint32_t(wide, even, odd, s->width, s->widens); break;
    default: pairs_uint64_t(wide, even, odd, s->width, s->widens); break;
    }
}

static int64_t deep_channel(const state *s, int64_t c, int64_t i, int64_t j)
{
    return s->channel_first ? (c * s->block + i) * s->block + j
                            : (i * s->block + j) * s->channels + c;
}

/* Item: a row of the wide map, [n][c][h][i]. */
static void row_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t b = s->block, deep = s->channels * b * b;
    for (int64_t item = first; item < last; item++) {
        const int64_t i = item % b, h = item / b % s->height;
        const int64_t c = item / b / s->height % s->channels;
        const int64_t n = item / b / s->height / s->channels;
        uint8_t *lines[2], *wide = w->wide + item * s->width * b * s->size;
        for (int64_t j = 0; j < b; j++) {
            const int64_t row = (n * deep + deep_channel(s, c, i, j)) * s->height + h;
            uint8_t *line = w->deep + row * s->width * s->size;
            lines[j & 1] = line;
            if (b == 2)
                continue;
            if (s->widens)
                spread_out(wide + j * s->size, b, line, s->width, s->size);
            else
                gather_in(line, wide + j * s->size, b, s->width, s->size);
        }
        if (b == 2)
            pairs(s, wide, lines[0], lines[1]);
    }
}

/* Item: a row of the wide map, [n][h][i], of pixels. */
static void pixel_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int64_t b = s->block, pixel = s->channels * s->size, deep = b * b * pixel;
    for (int64_t item = first; item < last; item++) {
        const int64_t i = item % b, row = item / b;
        for (int64_t x = 0; x < s->width; x++) {
            uint8_t *wide = w->wide + (item * s->width + x) * b * pixel;
            uint8_t *from = w->deep + (row * s->width + x) * deep;
            for (int64_t j = 0; j < b && s->channel_first; j++) {
                uint8_t *part = from + (i * b + j) * s->size;
                if (s->widens)
                    gather_in(wide + j * pixel, part, b * b, s->channels, s->size);
                else
                    spread_out(part, b * b, wide + j * pixel, s->channels, s->size);
            }
            from += i * b * pixel;
            if (!s->channel_first)
                qn_move_bytes(s->widens ? wide : from, s->widens ? from : wide,
                              (size_t)(b * pixel));
        }
    }
}

static qn_status depth_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data};
    const work narrows = {s, io->in[0]->data, io->out[0]->data};
    const int64_t rows = s->samples * (s->last ? 1 : s->channels) * s->height * s->block;
    const int64_t bytes = s->width * s->block * (s->last ? s->channels : 1) * s->size;
    (void)bound;
    qn_parallel(io->threads, rows, ALONE_BELOW / bytes + 1, s->last ? pixel_range : row_range,
                s->widens ? &w : &narrows);
    return QN_OK;
}

static const qn_kernel depth_kernel = {.name = "depth to space", .run = depth_run};

qn_status qn_claim_depth_to_space(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_depth_attrs *a = node->attrs;
    const bool widens = node->op == &qn_op_DepthToSpace;
    qn_tensor x, y;
    if (node->in[0]->data || !qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || qn_tensor_count(&x) == 0)
        return QN_OK;
    const size_t size = qn_dtype_size(x.dtype);
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    const qn_tensor *wide = widens ? &y : &x, *deep = widens ? &x : &y;
    const qn_layout layout = qn_q_is_integer(x.dtype) ? qn_q_layout(claim, node->in[0]) : QN_ROWS;
    *s = (state){.samples = x.dims[0],
                 .channels = wide->dims[1],
                 .height = deep->dims[2],
                 .width = deep->dims[3],
                 .block = a->blocksize,
                 .size = (int64_t)size,
                 .widens = widens,
                 .channel_first = widens && a->mode == QN_DEPTH_CRD,
                 .last = layout.kind == QN_LAYOUT_CHANNELS_LAST};
    qn_claim_in(claim, node->in[0], layout);
    qn_claim_out(claim, node->out[0], layout);
    claim->state = s;
    claim->kernel = &depth_kernel;
    *taken = true;
    return QN_OK;
}
