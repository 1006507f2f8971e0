/* Bands of rows of the map, copied in the order and as the numbers that the tiles read. */
#include "backend/cpu/int/conv/q_conv_band.h"

#include <string.h>

int64_t qn_q_conv_element_bytes(const qn_q_conv *c)
{
    return c->plan.copies && c->plan.kernels->reads_int16 ? 2 : 1;
}

static int64_t source_bytes(const qn_q_conv *c)
{
    return c->source.is_int16 ? 2 : 1;
}

int64_t qn_q_band_row_bytes(const qn_q_conv *c)
{
    return c->plan.copy_width * c->shape.channels * qn_q_conv_element_bytes(c);
}

bool qn_q_band_in_pairs(const qn_q_conv *c)
{
    return c->plan.algorithm == QN_Q_CONV_DEPTHWISE && c->plan.kernels->depth_tiles;
}

/* There is slack behind the copy, since the last step of a segment reads whole groups of bytes, and
 * depthwise runs read whole blocks. */
size_t qn_q_band_copy_bytes(const qn_q_conv *c)
{
    enum { SLACK = 256 };
    const int64_t high =
        qn_q_conv_seen(&c->plan.grid, 0, qn_q_conv_rows(c, c->plan.band)) + qn_q_band_in_pairs(c);
    const size_t rows = (size_t)(high * qn_q_band_row_bytes(c));
    return c->plan.copies ? sizeof(qn_q_band_copy) + (rows + SLACK) / 64 * 64 : 0;
}

/* Writes pixels of padding. */
static void fill(const qn_q_conv *c, uint8_t *to, int64_t pixels)
{
    const int32_t padding = qn_q_conv_padding(c);
    if (pixels > 0 && (!c->plan.kernels->reads_int16 || padding == 0))
        memset(to, padding, (size_t)(pixels * c->shape.channels * qn_q_conv_element_bytes(c)));
    else
        for (int64_t i = 0; i < pixels * c->shape.channels; i++)
            ((int16_t *)(void *)to)[i] = (int16_t)padding;
}

/* Copies row `row` of pixels that are counted off. */
static void copy_pixels(const qn_q_conv *c, uint8_t *to, const uint8_t *x, int64_t row)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t first = row * g->width, bytes = c->shape.channels * qn_q_conv_element_bytes(c);
    const int64_t count = row == g->height - 1 ? c->plan.last_width : g->width;
    for (int64_t i = 0; i < count; i++, to += bytes) {
        const int64_t down = (first + i) / c->tiles.across, right = (first + i) % c->tiles.across;
        const int64_t from = down * c->tiles.apart[0] + right * c->tiles.apart[1];
        c->plan.kernels->copy(to, x + from * source_bytes(c), c->shape.channels, &c->source);
    }
    fill(c, to, c->plan.copy_width - count);
}

/* The pixels that are counted off do not stand side by side. */
static bool has_gaps(const qn_q_conv *c)
{
    const qn_q_conv_algorithm algorithm = c->plan.algorithm;
    return (algorithm == QN_Q_CONV_PIXELS || algorithm == QN_Q_CONV_INNER_PRODUCT) &&
           c->tiles.across > 0;
}

/* Row `row` of the map, which may lie outside, with what stands left and right of it. */
static void copy_row(const qn_q_conv *c, uint8_t *to, const uint8_t *x, int64_t row)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t bytes = c->shape.channels * qn_q_conv_element_bytes(c), left = g->pad[1];
    if (has_gaps(c)) {
        copy_pixels(c, to, x, row);
        return;
    }
    if (row < 0 || row >= g->height) {
        fill(c, to, c->plan.copy_width);
        return;
    }
    const bool is_last = row == g->height - 1 && c->plan.last_width < g->out_width;
    const int64_t width = is_last ? c->plan.last_width : g->width;
    const int64_t inside = QN_MIN(width, c->plan.copy_width - left);
    fill(c, to, QN_MIN(left, c->plan.copy_width));
    if (inside > 0)
        c->plan.kernels->copy(to + left * bytes,
                              x + row * g->width * c->shape.channels * source_bytes(c),
                              inside * c->shape.channels, &c->source);
    if (inside > 0)
        fill(c, to + (left + inside) * bytes, c->plan.copy_width - left - inside);
}

/* Rows `row` and the one below it, as qn_depthwise_parity has them. */
static void copy_pair(const qn_q_conv *c, uint8_t *to, const uint8_t *x, int64_t row)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t bytes = 4 * c->shape.channels, left = QN_MIN(g->pad[1], c->plan.copy_width);
    const int64_t inside = QN_MIN(g->width, c->plan.copy_width - left);
    const uint8_t *rows[2];
    for (int64_t i = 0; i < 2; i++)
        rows[i] = row + i < 0 || row + i >= g->height
                      ? NULL
                      : x + (row + i) * g->width * c->shape.channels;
    memset(to, 0, (size_t)(left * bytes));
    c->plan.kernels->pair(to + left * bytes, rows, inside * c->shape.channels, &c->source);
    memset(to + (left + inside) * bytes, 0, (size_t)((c->plan.copy_width - left - inside) * bytes));
}

void qn_q_band_make(qn_q_band *b, const qn_q_conv *c, const uint8_t *x, qn_q_band_copy *to,
                    int64_t row)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t rows = qn_q_conv_seen(g, 0, qn_q_conv_rows(c, b->count));
    const int64_t bytes = qn_q_band_row_bytes(c);
    const int64_t top = b->first * g->stride[0] - g->pad[0];
    int32_t *pair_sums = (int32_t *)(void *)((uint8_t *)(void *)to + qn_q_band_copy_bytes(c));
    b->copied_before = to->row == row;
    for (int64_t i = 0; i < rows && !b->copied_before; i += qn_q_band_in_pairs(c) ? 2 : 1)
        (qn_q_band_in_pairs(c) ? copy_pair : copy_row)(c, to->bytes + i * bytes, x, top + i);
    if (c->plan.algorithm == QN_Q_CONV_INNER_PRODUCT && !b->copied_before)
        c->plan.kernels->pair_sums(pair_sums, to->bytes, rows * c->plan.copy_width,
                                   c->shape.channels);
    b->pair_sums = c->plan.algorithm == QN_Q_CONV_INNER_PRODUCT ? pair_sums : NULL;
    to->row = row;
    b->x = to->bytes;
    b->x_first = 0;
    b->x_row = bytes * g->stride[0];
}
