/* Adds the elements of a sample block by block: extremes and sums of each channel first, then the
 * histogram, while the block is in the first-level cache, so that memory is read once. */
#include <math.h>
#include <string.h>

#include "calib/accumulator.h"
#include "calib/histogram.h"

/* ---- Bins and histogram ---------------------------------------------------------------------- */

static qn_status flush_side(qn_accumulator *c, int side, size_t count)
{
    qn_stats_bin *bins = c->bins + side * QN_HISTOGRAM_BINS;
    uint32_t any = 0;
    for (size_t b = 0; b < count; b++) {
        for (int t = 0; t < QN_STATS_COUNTERS; t++)
            any |= bins[b].counter[t];
    }
    if (!any)
        return QN_OK;
    QN_TRY(qn_histogram_side(&c->entry->histogram, c->ctx, side));
    uint64_t *to = c->entry->histogram.side[side];
    for (size_t b = 0; b < count; b++) {
        for (int t = 0; t < QN_STATS_COUNTERS; t++)
            to[b] += bins[b].counter[t];
    }
    memset(bins, 0, count * sizeof *bins);
    return QN_OK;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

qn_status qn_accumulator_flush(qn_accumulator *c)
{
    if (c->in_bins == 0)
        return QN_OK;
    const size_t bins = (size_t)(float_of(c->largest) * c->scale) + 1;
    QN_TRY(flush_side(c, 0, bins));
    QN_TRY(flush_side(c, 1, bins));
    c->in_bins = 0;
    c->largest = 0;
    return QN_OK;
}

/* Makes room for a number of this magnitude. */
static qn_status widen(qn_accumulator *c, uint32_t largest)
{
    qn_histogram *h = &c->entry->histogram;
    const int32_t exponent = qn_histogram_exponent(float_of(largest));
    if (exponent > h->exponent) {
        QN_TRY(qn_accumulator_flush(c));
        qn_histogram_coarsen(h, exponent);
    }
    c->scale = ldexpf(1, -h->exponent);
    return QN_OK;
}

/* Elements in memory: `rows` of `width`, `step` from one row to the next. */
typedef struct region {
    const float *x;
    int64_t rows, width, step;
} region;

/* A region whose largest magnitude is known. */
static qn_status count_region(qn_accumulator *c, const region *g, uint32_t largest)
{
    if (largest == 0)
        return QN_OK;
    if (largest >= UINT32_C(0x7f800000))
        return qn_fail(c->ctx, QN_E_INVALID, "tensor '%s' has NaN or infinite elements",
                       c->entry->name);
    QN_TRY(widen(c, largest));
    c->largest = QN_MAX(c->largest, largest);
    c->in_bins += g->rows * g->width;
    const bool together = g->width == g->step;
    const int64_t calls = together ? 1 : g->rows, n = together ? g->rows * g->width : g->width;
    for (int64_t r = 0; r < calls; r++)
        c->nonzero += c->kernels->count(c->bins, g->x + r * g->step, n, c->scale);
    return c->in_bins > INT32_MAX / 2 ? qn_accumulator_flush(c) : QN_OK;
}

static qn_status count_span(qn_accumulator *c, const float *x, int64_t n, uint32_t largest)
{
    return count_region(c, &(region){x, 1, n, n}, largest);
}

/* ---- Regions --------------------------------------------------------------------------------- */

/* Adds `rows` rows of `lanes` neighbouring channels, from channel `first` on. */
static uint32_t fold_lanes(qn_accumulator *c, int64_t first, int64_t lanes, const region *g)
{
    qn_stats_sums to = {.largest = 0};
    const qn_channel_sums *sums = c->to;
    const size_t floats = (size_t)lanes * sizeof(float), doubles = (size_t)lanes * sizeof(double);
    memcpy(to.min, sums->min + first, floats);
    memcpy(to.max, sums->max + first, floats);
    memcpy(to.sum, sums->sum + first, doubles);
    memcpy(to.square, sums->square + first, doubles);
    c->kernels->fold(&to, g->x, g->rows, g->step, lanes);
    memcpy(sums->min + first, to.min, floats);
    memcpy(sums->max + first, to.max, floats);
    memcpy(sums->sum + first, to.sum, doubles);
    memcpy(sums->square + first, to.square, doubles);
    return to.largest;
}

/* Neighbouring elements of one channel, at most QN_STATS_BLOCK. */
static uint32_t fold_span(qn_accumulator *c, int64_t channel, const float *x, int64_t n)
{
    const int64_t rows = n / QN_STATS_LANES, rest = n % QN_STATS_LANES;
    qn_stats_sums to = {.largest = 0};
    for (int l = 0; l < QN_STATS_LANES; l++) {
        to.min[l] = INFINITY;
        to.max[l] = -INFINITY;
    }
    if (rows)
        c->kernels->fold(&to, x, rows, QN_STATS_LANES, QN_STATS_LANES);
    if (rest)
        c->kernels->fold(&to, x + rows * QN_STATS_LANES, 1, QN_STATS_LANES, rest);
    const qn_channel_sums *sums = c->to;
    for (int l = 0; l < QN_STATS_LANES; l++) {
        sums->min[channel] = fminf(sums->min[channel], to.min[l]);
        sums->max[channel] = fmaxf(sums->max[channel], to.max[l]);
        sums->sum[channel] += to.sum[l];
        sums->square[channel] += to.square[l];
    }
    return to.largest;
}

/* Adds channels [first, first + lanes), which are adjacent in each row of the region; padding of a
 * row is 0. How rows are divided into blocks depends on their step alone, so that sums do not
 * depend on the number of threads. */
static qn_status add_lanes(qn_accumulator *c, int64_t first, int64_t lanes, const region *all)
{
    const int64_t most = QN_MAX(1, QN_STATS_BLOCK / all->step);
    for (int64_t r = 0; r < all->rows; r += most) {
        const region here = {all->x + r * all->step, QN_MIN(most, all->rows - r), all->width,
                             all->step};
        uint32_t largest = 0;
        for (int64_t l = 0; l < lanes; l += QN_STATS_LANES) {
            const int64_t width = QN_MIN(lanes - l, QN_STATS_LANES);
            const region part = {here.x + l, here.rows, width, here.step};
            const uint32_t found = fold_lanes(c, first + l, width, &part);
            largest = QN_MAX(largest, found);
        }
        QN_TRY(count_region(c, &here, largest));
    }
    return QN_OK;
}

/* Rows [channels], of which the accumulator has some. */
static qn_status add_columns(qn_accumulator *c, const float *x, int64_t rows, int64_t channels)
{
    const int64_t lanes = c->last - c->first;
    return add_lanes(c, c->first, lanes, &(region){x + c->first, rows, lanes, channels});
}

/* Channels [first, last) of [channels, inner]. */
static qn_status add_spans(qn_accumulator *c, int64_t first, int64_t last, const float *x,
                           int64_t inner)
{
    if (inner >= QN_STATS_BLOCK) {
        for (int64_t k = first; k < last; k++) {
            for (int64_t i = 0; i < inner; i += QN_STATS_BLOCK) {
                const int64_t n = QN_MIN(QN_STATS_BLOCK, inner - i);
                const float *at = x + k * inner + i;
                QN_TRY(count_span(c, at, n, fold_span(c, k, at, n)));
            }
        }
        return QN_OK;
    }
    const int64_t most = QN_STATS_BLOCK / inner;
    for (int64_t k = first; k < last; k += most) {
        const int64_t here = QN_MIN(most, last - k);
        uint32_t largest = 0;
        for (int64_t j = k; j < k + here; j++) {
            const uint32_t found = fold_span(c, j, x + j * inner, inner);
            largest = QN_MAX(largest, found);
        }
        QN_TRY(count_span(c, x + k * inner, here * inner, largest));
    }
    return QN_OK;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

static int64_t product(const int64_t *dims, int32_t from, int32_t to)
{
    int64_t result = 1;
    for (int32_t d = from; d < to; d++)
        result *= dims[d];
    return result;
}

/* Row-major elements of these dims; axis -1: no channels. */
static qn_status add_rows(qn_accumulator *c, const float *x, const int64_t *dims, int32_t rank,
                          int32_t axis)
{
    if (axis < 0)
        return c->first == 0 ? add_spans(c, 0, 1, x, product(dims, 0, rank)) : QN_OK;
    const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, rank);
    if (inner == 1)
        return add_columns(c, x, outer, dims[axis]);
    for (int64_t o = 0; o < outer; o++)
        QN_TRY(add_spans(c, c->first, c->last, x + o * dims[axis] * inner, inner));
    return QN_OK;
}

/* One sample [C, spatial...] whose channels lie in blocks, which one accumulator has as a whole. */
static qn_status add_blocked(qn_accumulator *c, const float *x, const qn_tensor *shape,
                             int64_t block)
{
    const int64_t area = product(shape->dims, 2, shape->rank);
    for (int64_t k = c->first; k < c->last; k += block)
        QN_TRY(add_lanes(c, k, QN_MIN(block, c->last - k),
                         &(region){x + k * area, area, block, block}));
    return QN_OK;
}

static qn_status add_sample(qn_accumulator *c, const float *x, const qn_observation *seen)
{
    const qn_tensor *shape = seen->tensor;
    const int32_t axis = c->entry->axis;
    switch ((qn_layout_kind)seen->layout.kind) {
    case QN_LAYOUT_BLOCKED: return add_blocked(c, x, shape, seen->layout.block);
    case QN_LAYOUT_CHANNELS_LAST:
        return add_columns(c, x, product(shape->dims, 2, shape->rank), shape->dims[1]);
    case QN_LAYOUT_ROWS: break;
    }
    return add_rows(c, x, shape->dims + 1, shape->rank - 1, axis > 0 ? axis - 1 : -1);
}

qn_status qn_accumulator_add_elements(qn_accumulator *c, const qn_observation *seen)
{
    const qn_tensor *shape = seen->tensor;
    const char *data = shape->data;
    size_t bytes = 0;
    if (!qn_layout_bytes(&bytes, seen->layout, shape))
        return qn_fail(c->ctx, QN_E_INVALID, "tensor '%s' is too large", c->entry->name);
    const int64_t samples = shape->rank > 0 ? shape->dims[0] : 1;
    const bool together = samples == 1 || seen->stride == bytes / (size_t)samples;
    const int32_t axis = c->entry->axis < shape->rank ? c->entry->axis : -1;
    if (seen->layout.kind == QN_LAYOUT_ROWS && together)
        return add_rows(c, (const float *)shape->data, shape->dims, shape->rank, axis);
    for (int64_t n = 0; n < samples; n++)
        QN_TRY(add_sample(c, (const float *)(const void *)(data + (size_t)n * seen->stride), seen));
    return QN_OK;
}
