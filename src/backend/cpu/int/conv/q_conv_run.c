/* The walk of q_conv.h: shares of threads, their pieces, bands of rows, blocks of filters, tiles. */
#include <stdalign.h>
#include <string.h>

#include "backend/cpu/int/conv/q_winograd.h"
#include "backend/cpu/parallel.h"

typedef struct work {
    const qn_q_conv *c;
    const qn_q_conv_data *data;
} work;

/* Rows of outputs of one sample and the map that they see. The first window of the first row begins x_first
 * bytes from x (before it, where that window is all padding), that of the next row x_row bytes later. */
typedef struct band {
    const uint8_t *x, *r;
    uint8_t *y;
    const int32_t *less; /* by pixel, where products are halved */
    int64_t x_first, x_row, first, count;
    bool copied_before; /* for other filters, and nothing else since */
} band;

static int64_t element_bytes(const qn_q_conv *c)
{
    return c->copies && c->kernels->is_wide ? 2 : 1;
}

static int64_t source_bytes(const qn_q_conv *c)
{
    return c->source.wide ? 2 : 1;
}

/* ---- Bands --------------------------------------------------------------------------------------------- */

static int64_t copy_row_bytes(const qn_q_conv *c)
{
    return c->copy_width * c->channels * element_bytes(c);
}

static bool in_pairs(const qn_q_conv *c)
{
    return c->form == QN_Q_DEPTHWISE && c->kernels->depth_tiles;
}

/* A thread's copy of a band. */
typedef struct copy {
    int64_t row; /* where it begins; -1: none yet */
    alignas(64) uint8_t bytes[];
} copy;

/* Slack, since the last step of a segment reads whole groups of bytes, and depthwise runs whole blocks. */
static size_t copy_bytes(const qn_q_conv *c)
{
    enum { SLACK = 256 };
    const int64_t high = qn_q_conv_seen(c, 0, qn_q_conv_rows(c, c->band)) + in_pairs(c);
    const size_t rows = (size_t)(high * copy_row_bytes(c));
    return c->copies ? sizeof(copy) + (rows + SLACK) / 64 * 64 : 0;
}

/* All that a thread needs. */
static size_t thread_bytes(const qn_q_conv *c)
{
    const size_t less = (size_t)(c->band * c->out_width) * sizeof(int32_t);
    return copy_bytes(c) + (c->form == QN_Q_WINOGRAD ? qn_q_wino_scratch(c) : 0) +
           (c->form == QN_Q_HALVED ? (less + 63) / 64 * 64 : 0);
}

static void fill(const qn_q_conv *c, uint8_t *to, int64_t pixels)
{
    const int32_t padding = qn_q_conv_padding(c);
    if (pixels > 0 && (!c->kernels->is_wide || padding == 0))
        memset(to, padding, (size_t)(pixels * c->channels * element_bytes(c)));
    else
        for (int64_t i = 0; i < pixels * c->channels; i++)
            ((int16_t *)(void *)to)[i] = (int16_t)padding;
}

/* Row `row` of points that are counted off. */
static void copy_points(const qn_q_conv *c, uint8_t *to, const uint8_t *x, int64_t row)
{
    const int64_t first = row * c->width, bytes = c->channels * element_bytes(c);
    const int64_t count = row == c->height - 1 ? c->last_width : c->width;
    for (int64_t i = 0; i < count; i++, to += bytes) {
        const int64_t down = (first + i) / c->across, right = (first + i) % c->across;
        const int64_t from = down * c->apart[0] + right * c->apart[1];
        c->kernels->copy(to, x + from * source_bytes(c), c->channels, &c->source);
    }
    fill(c, to, c->copy_width - count);
}

/* Row `row` of the map, which may lie outside, with what stands left and right of it. */
static void copy_row(const qn_q_conv *c, uint8_t *to, const uint8_t *x, int64_t row)
{
    const int64_t bytes = c->channels * element_bytes(c), left = c->pad[1];
    if (c->across) {
        copy_points(c, to, x, row);
        return;
    }
    if (row < 0 || row >= c->height) {
        fill(c, to, c->copy_width);
        return;
    }
    const bool is_last = row == c->height - 1 && c->last_width < c->out_width;
    const int64_t width = is_last ? c->last_width : c->width;
    const int64_t inside = QN_MIN(width, c->copy_width - left);
    fill(c, to, QN_MIN(left, c->copy_width));
    if (inside > 0)
        c->kernels->copy(to + left * bytes, x + row * c->width * c->channels * source_bytes(c),
                         inside * c->channels, &c->source);
    if (inside > 0)
        fill(c, to + (left + inside) * bytes, c->copy_width - left - inside);
}

/* Rows `row` and the one below it, as qn_depth_phase has them. */
static void copy_pair(const qn_q_conv *c, uint8_t *to, const uint8_t *x, int64_t row)
{
    const int64_t bytes = 4 * c->channels, left = QN_MIN(c->pad[1], c->copy_width);
    const int64_t inside = QN_MIN(c->width, c->copy_width - left);
    const uint8_t *rows[2];
    for (int64_t i = 0; i < 2; i++)
        rows[i] =
            row + i < 0 || row + i >= c->height ? NULL : x + (row + i) * c->width * c->channels;
    memset(to, 0, (size_t)(left * bytes));
    c->kernels->pair(to + left * bytes, rows, inside * c->channels, &c->source);
    memset(to + (left + inside) * bytes, 0, (size_t)((c->copy_width - left - inside) * bytes));
}

/* `row`: the band's first one, of all samples. It may have been copied for other filters. */
static void copy_band(band *b, const qn_q_conv *c, const uint8_t *x, copy *to, int64_t row)
{
    const int64_t rows = qn_q_conv_seen(c, 0, qn_q_conv_rows(c, b->count));
    const int64_t bytes = copy_row_bytes(c);
    const int64_t top = b->first * c->stride[0] - c->pad[0];
    int32_t *less = (int32_t *)(void *)((uint8_t *)(void *)to + copy_bytes(c));
    b->copied_before = to->row == row;
    for (int64_t i = 0; i < rows && !b->copied_before; i += in_pairs(c) ? 2 : 1)
        (in_pairs(c) ? copy_pair : copy_row)(c, to->bytes + i * bytes, x, top + i);
    if (c->form == QN_Q_HALVED && !b->copied_before)
        c->kernels->less(less, to->bytes, rows * c->copy_width, c->channels);
    b->less = c->form == QN_Q_HALVED ? less : NULL;
    to->row = row;
    b->x = to->bytes;
    b->x_first = 0;
    b->x_row = bytes * c->stride[0];
}

/* ---- Tiles ----------------------------------------------------------------------------------------------- */

/* One block of filters over the rows of a band. */
typedef struct block {
    qn_mac_tile tile; /* weights and parameters */
    int64_t x, y;     /* bytes to its channels and its filters, in a pixel */
    int64_t vectors;
    qn_mac_fn *const *fns;
} block;

static block block_of(const qn_q_conv *c, int64_t index)
{
    const int64_t width = c->vectors * c->kernels->lanes, group = index / c->blocks;
    const int64_t first = index % c->blocks * width;
    block b = {.x = group * c->group_channels * element_bytes(c),
               .y = group * c->group_filters + first,
               .vectors = qn_q_conv_vectors(c, index)};
    b.fns = c->form == QN_Q_HALVED ? c->kernels->halved : c->kernels->tiles[b.vectors / 2];
    b.tile.weights = c->weights + index * c->steps * width * c->kernels->weight_bytes;
    b.tile.runs = c->step_runs ? c->step_runs + index * c->steps : NULL;
    b.tile.param = index * width;
    b.tile.filters = QN_MIN(width, c->group_filters - first);
    return b;
}

/* Elements [*first, *last) of the kernel, along dim d, that are to be summed for output place `at`. */
static void inside(int64_t *first, int64_t *last, const qn_q_conv *c, int d, int64_t at)
{
    const int64_t size = d == 0 ? c->height : c->width, step = c->dilation[d];
    const int64_t top = at * c->stride[d] - c->pad[d];
    *first = 0;
    *last = c->kernel[d];
    if (!c->skips || (top >= 0 && top + (c->kernel[d] - 1) * step < size))
        return;
    const int64_t above = top < 0 ? (step - 1 - top) / step : 0;
    const int64_t below = top >= size ? 0 : (size - top + step - 1) / step;
    *first = QN_MIN(above, c->kernel[d]);
    *last = QN_MAX(QN_MIN(below, c->kernel[d]), *first);
}

/* One row of windows, or two that sum the same rows of the kernel, below a block of filters. */
typedef struct line {
    const qn_q_conv *c;
    const band *b;
    const block *k;
    qn_mac_tile tile;
    int64_t row;
    bool two;
} line;

static void run_tile(const line *l, int64_t at, int64_t count, bool empty)
{
    const qn_q_conv *c = l->c;
    const qn_mac *m = &c->mac;
    const band *b = l->b;
    const int64_t first = l->two ? count : (count + 1) / 2, y = qn_q_conv_filter_bytes(c, l->k->y);
    const int64_t r = l->k->y * qn_q_finish_r_size(&m->finish);
    qn_mac_tile t = l->tile;
    t.two = l->two;
    t.edges = (at == 0 ? QN_MAC_LEFT : 0) | (at + count == c->out_width ? QN_MAC_RIGHT : 0);
    if (empty)
        t.n_segments = 0;
    for (int64_t h = 0; h < 2; h++) {
        const int64_t row = l->row + (l->two ? h : 0), column = l->two ? at : at + h * first;
        const int64_t pixel = row * c->out_width + column;
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
    const int64_t tile = c->vectors == 4 ? c->kernels->few : c->kernels->windows;
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

/* Where the kernel is one element wide the windows left and right of the map sum nothing. */
static void run_line(const line *l, int64_t width)
{
    const qn_q_conv *c = l->c;
    int64_t from = 0, to = width, first, last;
    if (c->kernel[1] == 1 && c->skips) {
        for (; from < to && (inside(&first, &last, c, 1, from), first == last); from++)
            ;
        for (; from < to && (inside(&first, &last, c, 1, to - 1), first == last); to--)
            ;
    }
    run_columns(l, 0, from, true);
    run_columns(l, from, to, false);
    run_columns(l, to, width, true);
}

/* Windows that are pixels: every row is one tile. */
static void run_points(const qn_q_conv *c, const band *b, const block *k)
{
    const qn_mac *m = &c->mac;
    const int64_t y = qn_q_conv_filter_bytes(c, k->y), r = k->y * qn_q_finish_r_size(&m->finish);
    qn_mac_tile t = k->tile;
    t.segments = c->segments;
    t.n_segments = c->n_segments;
    for (int64_t row = 0; row < b->count; row++) {
        const bool is_last = b->first + row == c->out_height - 1;
        const int64_t width = is_last ? c->last_width : c->out_width;
        for (int64_t h = 0; h < 2; h++) {
            const int64_t pixel = row * c->out_width + h * ((width + 1) / 2);
            t.x[h] = b->x + b->x_first + pixel * m->x_step + k->x;
            t.less[h] = b->less ? b->less + pixel : NULL;
            t.y[h] = b->y + pixel * m->y_step + y;
            t.r[h] = b->r ? b->r + pixel * m->r_step + r : t.y[h];
        }
        k->fns[width - 1](m, &t);
    }
}

static void run_windows(const qn_q_conv *c, const band *b, const block *k)
{
    const int64_t most = c->vectors == 4 ? c->kernels->few : c->kernels->windows;
    const bool narrow = 2 * c->out_width <= most && c->last_width == c->out_width;
    const int64_t across = c->n_segments / c->kernel[0], lanes = k->vectors * c->kernels->lanes;
    const int64_t steps = across * c->segments[0].steps;
    const int64_t weights = steps * lanes * c->kernels->weight_bytes;
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
        l.tile.segments = c->segments + from * across;
        l.tile.n_segments = (to - from) * across;
        l.tile.weights = k->tile.weights + from * weights;
        l.tile.runs = c->step_runs ? k->tile.runs + from * steps : NULL;
        run_line(&l, row == c->out_height - 1 ? c->last_width : c->out_width);
    }
}

/* ---- Depthwise -------------------------------------------------------------------------------------------- */

/* The columns of one row in tiles of about the same size. */
static void run_depth_tiles(const qn_q_conv *c, const band *b, int64_t row)
{
    const qn_mac *m = &c->mac;
    const int64_t top = row * c->stride[0], most = c->kernels->depth_windows;
    const int64_t parts = (c->out_width + most - 1) / most, r_step = b->r ? m->r_step : 0;
    const qn_depth_phase *phase = &c->phases[top % 2];
    const uint8_t *x = b->x + top / 2 * 2 * copy_row_bytes(c);
    const uint8_t *r = b->r ? b->r + row * c->out_width * r_step : x;
    uint8_t *y = b->y + row * c->out_width * m->y_step;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t count = c->out_width * (i + 1) / parts - c->out_width * i / parts;
        const int64_t half = (count + 1) / 2;
        const qn_mac_tile t = {.x = {x, x + half * m->x_step},
                               .r = {r, r + half * r_step},
                               .y = {y, y + half * m->y_step},
                               .segments = phase->segments,
                               .n_segments = phase->n_segments,
                               .weights = phase->weights,
                               .filters = c->channels};
        c->kernels->depth_tiles[count - 1](m, &t);
        x += count * m->x_step;
        y += count * m->y_step;
        r += count * r_step;
    }
}

static void run_depth_runs(const qn_q_conv *c, const band *b, int64_t row)
{
    uint8_t *y = b->y + row * c->out_width * c->mac.y_step;
    for (int64_t i = 0; i < c->runs; i++)
        c->kernels->depth(&c->depth, y + qn_q_conv_filter_bytes(c, i * c->depth.count),
                          b->x + row * b->x_row + i * c->x_run);
}

/* ---- Forms ------------------------------------------------------------------------------------------------- */

/* Blocks [first, last) of the filters over a band; own: the thread's memory. */
typedef void run_fn(const qn_q_conv *c, const band *b, const int64_t blocks[2], copy *own);

static void run_blocks(const qn_q_conv *c, const band *b, const int64_t blocks[2], copy *own)
{
    (void)own;
    for (int64_t i = blocks[0]; i < blocks[1]; i++) {
        const block k = block_of(c, i);
        (c->form == QN_Q_WINDOWS ? run_windows : run_points)(c, b, &k);
    }
}

static void run_depthwise(const qn_q_conv *c, const band *b, const int64_t blocks[2], copy *own)
{
    (void)blocks;
    (void)own;
    for (int64_t row = 0; row < b->count; row++)
        (in_pairs(c) ? run_depth_tiles : run_depth_runs)(c, b, row);
}

static void run_winograd(const qn_q_conv *c, const band *b, const int64_t blocks[2], copy *own)
{
    const qn_q_wino_band tiles = {.x = b->x,
                                  .r = b->r,
                                  .y = b->y,
                                  .scratch = (uint8_t *)(void *)own + copy_bytes(c),
                                  .rows = b->count,
                                  .seen_before = b->copied_before};
    qn_q_wino_run(c, &tiles, blocks);
}

static run_fn *const run_form[] = {[QN_Q_WINDOWS] = run_blocks,
                                   [QN_Q_POINTS] = run_blocks,
                                   [QN_Q_HALVED] = run_blocks,
                                   [QN_Q_DEPTHWISE] = run_depthwise,
                                   [QN_Q_WINOGRAD] = run_winograd};

/* ---- Shares ------------------------------------------------------------------------------------------------ */

static void look_up(const qn_q_finish *f, uint8_t *y, int64_t bytes)
{
    float *floats = (float *)(void *)y;
    if (f->table)
        f->look_up(y, y, bytes, f->table);
    else
        f->map(floats, floats, bytes / (int64_t)sizeof *floats, &f->stage, NULL, QN_SPREAD_ONE);
}

/* The table, or the function, over what blocks [first, last) have written. */
static void finish_band(const qn_q_conv *c, const band *b, const int64_t blocks[2])
{
    const qn_q_finish *f = &c->mac.finish;
    const bool is_last = b->first + b->count == c->out_height;
    const int64_t pixels = (b->count - 1) * c->out_width + (is_last ? c->last_width : c->out_width);
    if (blocks[1] - blocks[0] == c->groups * c->blocks && !c->y_pitch && !c->blocked) {
        look_up(f, b->y, pixels * c->mac.y_step);
        return;
    }
    const block first = block_of(c, blocks[0]), last = block_of(c, blocks[1] - 1);
    const int64_t from = qn_q_conv_filter_bytes(c, first.y),
                  to = qn_q_conv_filter_bytes(c, last.y + last.tile.filters);
    for (int64_t at = from; at < to && c->blocked; at += c->mac.y_vector)
        look_up(f, b->y + at, pixels * c->mac.y_step);
    for (int64_t i = 0; i < pixels && !c->blocked; i++)
        look_up(f, b->y + i * c->mac.y_step + from, to - from);
}

/* Rows [from, to) of one sample, blocks [first, last). */
static void run_rows(const work *w, const int64_t rows[2], const int64_t blocks[2], int64_t sample,
                     copy *own)
{
    const qn_q_conv *c = w->c;
    const uint8_t *x = w->data->x + sample * c->x_stride;
    for (int64_t row = rows[0]; row < rows[1]; row += c->band) {
        const int64_t pixel = row * c->out_width;
        band b = {.first = row, .count = QN_MIN(c->band, rows[1] - row)};
        b.y = w->data->y + sample * c->y_stride + pixel * c->mac.y_step;
        if (w->data->r)
            b.r = w->data->r + sample * c->r_stride + pixel * c->mac.r_step;
        b.x = x;
        b.x_row = c->width * c->channels * c->stride[0];
        b.x_first = row * b.x_row - (c->pad[0] * c->width + c->pad[1]) * c->channels;
        if (c->copies)
            copy_band(&b, c, x, own, sample * c->out_height + row);
        run_form[c->form](c, &b, blocks, own);
        if ((c->mac.finish.table || c->mac.finish.map) &&
            (c->form == QN_Q_DEPTHWISE || blocks[0] < blocks[1]))
            finish_band(c, &b, blocks);
    }
}

/* Of items [range[0], range[1]) those of piece i of n: whole units, but for the last. */
static void cut(int64_t range[2], int64_t i, int64_t n, int64_t unit)
{
    const int64_t first = range[0], count = range[1] - first;
    range[0] = first + count * i / n / unit * unit;
    range[1] = i + 1 == n ? first + count : first + count * (i + 1) / n / unit * unit;
}

static void run_piece(const work *w, int64_t part, int64_t piece, copy *own)
{
    const qn_q_conv *c = w->c;
    int64_t blocks[2] = {0, c->groups * c->blocks}, all[2] = {0, c->samples * c->out_height};
    cut(blocks, part % c->filter_parts, c->filter_parts, 1);
    cut(blocks, piece % c->block_cuts, c->block_cuts, 1);
    cut(all, part / c->filter_parts, c->row_parts,
        c->form == QN_Q_WINOGRAD ? qn_q_conv_unit(c) : 1);
    cut(all, piece / c->block_cuts, c->row_cuts, qn_q_conv_unit(c));
    for (int64_t n = all[0] / c->out_height; n * c->out_height < all[1]; n++) {
        const int64_t rows[2] = {QN_MAX(all[0] - n * c->out_height, 0),
                                 QN_MIN(all[1] - n * c->out_height, c->out_height)};
        run_rows(w, rows, blocks, n, own);
    }
}

static copy *copy_of(const qn_q_conv *c, const qn_q_conv_data *data, int64_t i)
{
    return c->copies ? (copy *)(void *)(data->scratch + (size_t)i * thread_bytes(c)) : NULL;
}

void qn_q_conv_run_part(const qn_q_conv *c, const qn_q_conv_data *data, int64_t part)
{
    const work w = {c, data};
    copy *own = copy_of(c, data, part);
    if (own)
        own->row = -1;
    for (int64_t piece = 0; piece < c->block_cuts * c->row_cuts; piece++)
        run_piece(&w, part, piece, own);
}

static void run_item(const void *opaque, int64_t item, int thread)
{
    const work *w = opaque;
    const int64_t pieces = w->c->block_cuts * w->c->row_cuts;
    run_piece(w, item / pieces, item % pieces, copy_of(w->c, w->data, thread));
}

int64_t qn_q_conv_parts(const qn_q_conv *c)
{
    return c->filter_parts * c->row_parts;
}

size_t qn_q_conv_scratch(const qn_q_conv *c)
{
    return thread_bytes(c) * (size_t)qn_q_conv_parts(c);
}

void qn_q_conv_run(const qn_q_conv *c, const qn_q_conv_data *data, int threads)
{
    const work w = {c, data};
    const int64_t parts = qn_q_conv_parts(c);
    for (int64_t i = 0; i < parts && c->copies; i++)
        copy_of(c, data, i)->row = -1;
    qn_parallel_items((int)QN_MIN(parts, (int64_t)threads), parts * c->block_cuts * c->row_cuts,
                      run_item, &w);
}
