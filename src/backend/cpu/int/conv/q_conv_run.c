/* How a convolution of integers is run: shares of threads, their pieces, bands of rows, blocks of
 * filters, tiles. */
#include "backend/cpu/int/conv/q_conv_band.h"
#include "backend/cpu/int/conv/q_winograd.h"
#include "backend/cpu/parallel.h"

typedef struct work {
    const qn_q_conv *c;
    const qn_q_conv_data *data;
} work;

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* One block of filters over the rows of a band. */
typedef struct block {
    /* Weights and parameters. */
    qn_mac_tile tile;
    /* Bytes to its channels and its filters, in a pixel. */
    int64_t x, y;
    int64_t vectors;
    qn_mac_fn *const *fns;
} block;

/* The first filter of a block, of all groups. */
static int64_t first_filter(const qn_q_conv *c, int64_t index)
{
    const int64_t group = index / c->plan.blocks, at = index % c->plan.blocks;
    return group * c->shape.group_filters + at * qn_q_conv_block_filters(c);
}

static int64_t count_filters(const qn_q_conv *c, int64_t index)
{
    const int64_t width = qn_q_conv_block_filters(c);
    return QN_MIN(width, c->shape.group_filters - index % c->plan.blocks * width);
}

static block block_of(const qn_q_conv *c, int64_t index)
{
    const qn_mac_kernels *kernels = c->plan.kernels;
    const int64_t width = qn_q_conv_block_filters(c), steps = index * c->tiles.steps;
    const bool inner = c->plan.algorithm == QN_Q_CONV_INNER_PRODUCT;
    block b = {.x = index / c->plan.blocks * c->shape.group_channels * qn_q_conv_element_bytes(c),
               .y = first_filter(c, index),
               .vectors = qn_q_conv_vectors(c, index)};
    b.fns = inner ? kernels->inner_product : kernels->tiles[b.vectors / 2];
    b.tile.weights = c->packed.weights + steps * width * kernels->weight_bytes;
    b.tile.runs = c->packed.step_runs ? c->packed.step_runs + steps : NULL;
    b.tile.param = index * width;
    b.tile.filters = count_filters(c, index);
    return b;
}

/* Elements [*first, *last) of the kernel, along dim d, that are to be summed for output place
 * `at`. */
static void inside(int64_t *first, int64_t *last, const qn_q_conv *c, int d, int64_t at)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t size = d == 0 ? g->height : g->width, step = g->dilation[d];
    const int64_t top = at * g->stride[d] - g->pad[d];
    *first = 0;
    *last = g->kernel[d];
    if (!c->plan.skips_padding || (top >= 0 && top + (g->kernel[d] - 1) * step < size))
        return;
    const int64_t above = top < 0 ? (step - 1 - top) / step : 0;
    const int64_t below = top >= size ? 0 : (size - top + step - 1) / step;
    *first = QN_MIN(above, g->kernel[d]);
    *last = QN_MAX(QN_MIN(below, g->kernel[d]), *first);
}

/* One row of patches, or two that sum the same rows of the kernel, by a block of filters. */
typedef struct line {
    const qn_q_conv *c;
    const qn_q_band *b;
    const block *k;
    qn_mac_tile tile;
    int64_t row;
    bool two;
} line;

static void run_tile(const line *l, int64_t at, int64_t count, bool empty)
{
    const qn_q_conv *c = l->c;
    const qn_q_conv_grid *g = &c->plan.grid;
    const qn_mac *m = &c->mac;
    const qn_q_band *b = l->b;
    const int64_t first = l->two ? count : (count + 1) / 2, y = qn_q_conv_filter_bytes(c, l->k->y);
    const int64_t r = l->k->y * qn_q_epilogue_r_bytes(&m->epilogue);
    qn_mac_tile t = l->tile;
    t.two = l->two;
    t.edges = (at == 0 ? QN_MAC_LEFT : 0) | (at + count == g->out_width ? QN_MAC_RIGHT : 0);
    if (empty)
        t.n_segments = 0;
    for (int64_t h = 0; h < 2; h++) {
        const int64_t row = l->row + (l->two ? h : 0), column = l->two ? at : at + h * first;
        const int64_t pixel = row * g->out_width + column;
        t.x[h] = b->x;
        if (t.n_segments > 0)
            t.x[h] += b->x_first + row * b->x_row + column * m->x_step + l->k->x;
        t.y[h] = b->y + pixel * m->y_step + y;
        t.r[h] = b->r ? b->r + pixel * m->r_step + r : t.y[h];
    }
    l->k->fns[(l->two ? 2 * count : count) - 1](m, &t);
}

/* Columns [at, end) in tiles of about the same size. */
static void run_columns(const line *l, int64_t at, int64_t end, bool empty)
{
    const qn_q_conv *c = l->c;
    const int64_t tile =
        c->plan.vectors == 4 ? c->plan.kernels->patches_by_4 : c->plan.kernels->patches;
    const int64_t most = l->two ? tile / 2 : tile, width = end - at;
    int64_t parts = 1;
    while (parts * most < width)
        parts++;
    const int64_t size = parts == 1 ? width : width / parts, more = width - size * parts;
    for (int64_t i = 0; i < parts && width > 0; i++) {
        const int64_t count = size + (i < more);
        run_tile(l, at, count, empty);
        at += count;
    }
}

/* Where the kernel is one element wide the patches left and right of the map sum nothing. */
static void run_line(const line *l, int64_t width)
{
    const qn_q_conv *c = l->c;
    int64_t from = 0, to = width, first, last;
    if (c->plan.grid.kernel[1] == 1 && c->plan.skips_padding) {
        for (; from < to && (inside(&first, &last, c, 1, from), first == last); from++)
            ;
        for (; from < to && (inside(&first, &last, c, 1, to - 1), first == last); to--)
            ;
    }
    run_columns(l, 0, from, true);
    run_columns(l, from, to, false);
    run_columns(l, to, width, true);
}

/* Patches that are pixels: every row is one tile. */
static void run_pixels(const qn_q_conv *c, const qn_q_band *b, const block *k)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const qn_mac *m = &c->mac;
    const int64_t y = qn_q_conv_filter_bytes(c, k->y),
                  r = k->y * qn_q_epilogue_r_bytes(&m->epilogue);
    qn_mac_tile t = k->tile;
    t.segments = c->tiles.segments;
    t.n_segments = c->tiles.n_segments;
    for (int64_t row = 0; row < b->count; row++) {
        const bool is_last = b->first + row == g->out_height - 1;
        const int64_t width = is_last ? c->plan.last_width : g->out_width;
        for (int64_t h = 0; h < 2; h++) {
            const int64_t pixel = row * g->out_width + h * ((width + 1) / 2);
            t.x[h] = b->x + b->x_first + pixel * m->x_step + k->x;
            t.pair_sums[h] = b->pair_sums ? b->pair_sums + pixel : NULL;
            t.y[h] = b->y + pixel * m->y_step + y;
            t.r[h] = b->r ? b->r + pixel * m->r_step + r : t.y[h];
        }
        k->fns[width - 1](m, &t);
    }
}

static void run_patches(const qn_q_conv *c, const qn_q_band *b, const block *k)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t most =
        c->plan.vectors == 4 ? c->plan.kernels->patches_by_4 : c->plan.kernels->patches;
    const bool narrow = 2 * g->out_width <= most && c->plan.last_width == g->out_width;
    const int64_t across = c->tiles.n_segments / g->kernel[0],
                  lanes = k->vectors * c->plan.kernels->lanes;
    const int64_t steps = across * c->tiles.segments[0].steps;
    const int64_t weights = steps * lanes * c->plan.kernels->weight_bytes;
    line l = {.c = c, .b = b, .k = k, .tile = k->tile};
    for (l.row = 0; l.row < b->count; l.row += l.two ? 2 : 1) {
        const int64_t row = b->first + l.row;
        int64_t from, to, next[2];
        inside(&from, &to, c, 0, row);
        l.two = narrow && l.row + 1 < b->count;
        if (l.two) {
            inside(&next[0], &next[1], c, 0, row + 1);
            l.two = next[0] == from && next[1] == to;
        }
        l.tile.segments = c->tiles.segments + from * across;
        l.tile.n_segments = (to - from) * across;
        l.tile.weights = k->tile.weights + from * weights;
        l.tile.runs = c->packed.step_runs ? k->tile.runs + from * steps : NULL;
        run_line(&l, row == g->out_height - 1 ? c->plan.last_width : g->out_width);
    }
}

/* ---- Depthwise ------------------------------------------------------------------------------- */

/* The columns of one row in tiles of about the same size. */
static void run_depth_tiles(const qn_q_conv *c, const qn_q_band *b, int64_t row)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const qn_mac *m = &c->mac;
    const int64_t top = row * g->stride[0], most = c->plan.kernels->depth_patches;
    const int64_t parts = (g->out_width + most - 1) / most, r_step = b->r ? m->r_step : 0;
    const qn_depthwise_parity *parity = &c->depthwise.parities[top % 2];
    const uint8_t *x = b->x + top / 2 * 2 * qn_q_band_row_bytes(c);
    const uint8_t *r = b->r ? b->r + row * g->out_width * r_step : x;
    uint8_t *y = b->y + row * g->out_width * m->y_step;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t count = g->out_width * (i + 1) / parts - g->out_width * i / parts;
        const int64_t half = (count + 1) / 2;
        const qn_mac_tile t = {.x = {x, x + half * m->x_step},
                               .r = {r, r + half * r_step},
                               .y = {y, y + half * m->y_step},
                               .segments = parity->segments,
                               .n_segments = parity->n_segments,
                               .weights = parity->weights,
                               .filters = c->shape.channels};
        c->plan.kernels->depth_tiles[count - 1](m, &t);
        x += count * m->x_step;
        y += count * m->y_step;
        r += count * r_step;
    }
}

static void run_depth_runs(const qn_q_conv *c, const qn_q_band *b, int64_t row)
{
    uint8_t *y = b->y + row * c->plan.grid.out_width * c->mac.y_step;
    for (int64_t i = 0; i < c->depthwise.runs; i++)
        c->plan.kernels->depth(&c->depthwise.depth,
                               y + qn_q_conv_filter_bytes(c, i * c->depthwise.depth.count),
                               b->x + row * b->x_row + i * c->depthwise.x_run);
}

/* ---- Algorithms ------------------------------------------------------------------------------ */

/* Blocks [first, last) of the filters over a band; own: the thread's memory. */
typedef void run_fn(const qn_q_conv *c, const qn_q_band *b, const int64_t blocks[2],
                    qn_q_band_copy *own);

static void run_blocks(const qn_q_conv *c, const qn_q_band *b, const int64_t blocks[2],
                       qn_q_band_copy *own)
{
    (void)own;
    for (int64_t i = blocks[0]; i < blocks[1]; i++) {
        const block k = block_of(c, i);
        (c->plan.algorithm == QN_Q_CONV_PATCHES ? run_patches : run_pixels)(c, b, &k);
    }
}

static void run_depthwise(const qn_q_conv *c, const qn_q_band *b, const int64_t blocks[2],
                          qn_q_band_copy *own)
{
    (void)blocks;
    (void)own;
    for (int64_t row = 0; row < b->count; row++)
        (qn_q_band_in_pairs(c) ? run_depth_tiles : run_depth_runs)(c, b, row);
}

static void run_winograd(const qn_q_conv *c, const qn_q_band *b, const int64_t blocks[2],
                         qn_q_band_copy *own)
{
    const qn_q_winograd_band tiles = {.x = b->x,
                                      .r = b->r,
                                      .y = b->y,
                                      .scratch = (uint8_t *)(void *)own + qn_q_band_copy_bytes(c),
                                      .rows = b->count,
                                      .seen_before = b->copied_before};
    qn_q_winograd_run(c, &tiles, blocks);
}

static run_fn *const run_algorithm[] = {[QN_Q_CONV_PATCHES] = run_blocks,
                                        [QN_Q_CONV_PIXELS] = run_blocks,
                                        [QN_Q_CONV_INNER_PRODUCT] = run_blocks,
                                        [QN_Q_CONV_DEPTHWISE] = run_depthwise,
                                        [QN_Q_CONV_WINOGRAD] = run_winograd};

/* ---- Shares ---------------------------------------------------------------------------------- */

static void look_up(const qn_q_epilogue *f, uint8_t *y, int64_t bytes)
{
    float *floats = (float *)(void *)y;
    if (f->table)
        f->look_up(y, y, bytes, f->table);
    else
        f->map(floats, floats, bytes / (int64_t)sizeof *floats, &f->stage, NULL, QN_SPREAD_ONE);
}

/* Applies the table, or the function, to what blocks [first, last) have written. */
static void apply_function(const qn_q_conv *c, const qn_q_band *b, const int64_t blocks[2])
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const qn_q_epilogue *f = &c->mac.epilogue;
    const bool is_last = b->first + b->count == g->out_height;
    const int64_t pixels =
        (b->count - 1) * g->out_width + (is_last ? c->plan.last_width : g->out_width);
    if (blocks[1] - blocks[0] == c->shape.groups * c->plan.blocks && !c->memory.y_pitch &&
        !c->memory.blocked) {
        look_up(f, b->y, pixels * c->mac.y_step);
        return;
    }
    const int64_t from = qn_q_conv_filter_bytes(c, first_filter(c, blocks[0]));
    const int64_t to =
        qn_q_conv_filter_bytes(c, first_filter(c, blocks[1] - 1) + count_filters(c, blocks[1] - 1));
    for (int64_t at = from; at < to && c->memory.blocked; at += c->mac.y_vector)
        look_up(f, b->y + at, pixels * c->mac.y_step);
    for (int64_t i = 0; i < pixels && !c->memory.blocked; i++)
        look_up(f, b->y + i * c->mac.y_step + from, to - from);
}

/* Rows [from, to) of one sample, blocks [first, last). */
static void run_rows(const work *w, const int64_t rows[2], const int64_t blocks[2], int64_t sample,
                     qn_q_band_copy *own)
{
    const qn_q_conv *c = w->c;
    const qn_q_conv_grid *g = &c->plan.grid;
    const uint8_t *x = w->data->x + sample * c->memory.x_stride;
    for (int64_t row = rows[0]; row < rows[1]; row += c->plan.band) {
        const int64_t pixel = row * g->out_width;
        qn_q_band b = {.first = row, .count = QN_MIN(c->plan.band, rows[1] - row)};
        b.y = w->data->y + sample * c->memory.y_stride + pixel * c->mac.y_step;
        if (w->data->r)
            b.r = w->data->r + sample * c->memory.r_stride + pixel * c->mac.r_step;
        b.x = x;
        b.x_row = g->width * c->shape.channels * g->stride[0];
        b.x_first = row * b.x_row - (g->pad[0] * g->width + g->pad[1]) * c->shape.channels;
        if (c->plan.copies)
            qn_q_band_make(&b, c, x, own, sample * g->out_height + row);
        run_algorithm[c->plan.algorithm](c, &b, blocks, own);
        if ((c->mac.epilogue.table || c->mac.epilogue.map) &&
            (c->plan.algorithm == QN_Q_CONV_DEPTHWISE || blocks[0] < blocks[1]))
            apply_function(c, &b, blocks);
    }
}

/* Cuts the items [range[0], range[1]) to those of piece i of n: whole units, but for the last. */
static void cut(int64_t range[2], int64_t i, int64_t n, int64_t unit)
{
    const int64_t first = range[0], count = range[1] - first;
    range[0] = first + count * i / n / unit * unit;
    range[1] = i + 1 == n ? first + count : first + count * (i + 1) / n / unit * unit;
}

static void run_piece(const work *w, int64_t part, int64_t piece, qn_q_band_copy *own)
{
    const qn_q_conv *c = w->c;
    const qn_q_conv_grid *g = &c->plan.grid;
    int64_t blocks[2] = {0, c->shape.groups * c->plan.blocks},
            all[2] = {0, g->samples * g->out_height};
    cut(blocks, part % c->plan.filter_parts, c->plan.filter_parts, 1);
    cut(blocks, piece % c->plan.block_cuts, c->plan.block_cuts, 1);
    cut(all, part / c->plan.filter_parts, c->plan.row_parts,
        c->plan.algorithm == QN_Q_CONV_WINOGRAD ? qn_q_conv_unit(c) : 1);
    cut(all, piece / c->plan.block_cuts, c->plan.row_cuts, qn_q_conv_unit(c));
    for (int64_t n = all[0] / g->out_height; n * g->out_height < all[1]; n++) {
        const int64_t rows[2] = {QN_MAX(all[0] - n * g->out_height, 0),
                                 QN_MIN(all[1] - n * g->out_height, g->out_height)};
        run_rows(w, rows, blocks, n, own);
    }
}

/* Bytes of scratch memory of one thread. */
static size_t thread_bytes(const qn_q_conv *c)
{
    const size_t pair_sums = (size_t)(c->plan.band * c->plan.grid.out_width) * sizeof(int32_t);
    return qn_q_band_copy_bytes(c) +
           (c->plan.algorithm == QN_Q_CONV_WINOGRAD ? qn_q_winograd_scratch(c) : 0) +
           (c->plan.algorithm == QN_Q_CONV_INNER_PRODUCT ? (pair_sums + 63) / 64 * 64 : 0);
}

static qn_q_band_copy *copy_of(const qn_q_conv *c, const qn_q_conv_data *data, int64_t i)
{
    return c->plan.copies ? (qn_q_band_copy *)(void *)(data->scratch + (size_t)i * thread_bytes(c))
                          : NULL;
}

void qn_q_conv_run_part(const qn_q_conv *c, const qn_q_conv_data *data, int64_t part)
{
    const work w = {c, data};
    qn_q_band_copy *own = copy_of(c, data, part);
    if (own)
        own->row = -1;
    for (int64_t piece = 0; piece < c->plan.block_cuts * c->plan.row_cuts; piece++)
        run_piece(&w, part, piece, own);
}

static void run_item(const void *opaque, int64_t item, int thread)
{
    const work *w = opaque;
    const int64_t pieces = w->c->plan.block_cuts * w->c->plan.row_cuts;
    run_piece(w, item / pieces, item % pieces, copy_of(w->c, w->data, thread));
}

int64_t qn_q_conv_parts(const qn_q_conv *c)
{
    return c->plan.filter_parts * c->plan.row_parts;
}

size_t qn_q_conv_scratch(const qn_q_conv *c)
{
    return thread_bytes(c) * (size_t)qn_q_conv_parts(c);
}

void qn_q_conv_run(const qn_q_conv *c, const qn_q_conv_data *data, int threads)
{
    const work w = {c, data};
    const int64_t parts = qn_q_conv_parts(c);
    for (int64_t i = 0; i < parts && c->plan.copies; i++)
        copy_of(c, data, i)->row = -1;
    qn_parallel_items((int)QN_MIN(parts, (int64_t)threads),
                      parts * c->plan.block_cuts * c->plan.row_cuts, run_item, &w);
}
