/* Adding a sample of a value to its statistics: pieces that stay in the first cache are folded (extremes,
 * sums, channel by channel) and then counted, so that memory is read once. */
#include <math.h>
#include <string.h>

#include "calib/count.h"
#include "calib/histogram.h"

/* Of the sample at hand, by channel. */
typedef struct channel_sums {
    float *min, *max;
    double *sum, *square;
    size_t capacity;
} channel_sums;

struct qn_counter {
    qn_context *ctx;
    const qn_count_kernels *kernels;
    qn_count_bin *bins; /* [QN_COUNT_BINS], all zero between entries */
    channel_sums own;
    void *plain; /* a sample as row-major float32, where it is something else */
    size_t plain_capacity;
    /* Of the sample at hand. */
    qn_stats_entry *entry; /* whose histogram is counted into */
    channel_sums *to;      /* of the first of those who share it */
    int64_t first, last;   /* channels that are this counter's */
    qn_status status;
    float scale;      /* 2^-exponent */
    uint32_t largest; /* bits of the largest |x| in the bins */
    int64_t in_bins, nonzero;
    qn_range ends; /* of the last sample */
};

qn_status qn_counter_create(qn_counter **out, qn_context *ctx)
{
    *out = NULL;
    qn_counter *c = qn_alloc_zero(ctx, 1, sizeof *c);
    QN_TRY_ALLOC(ctx, c);
    c->ctx = ctx;
    c->kernels = qn_count_kernels_get();
    c->bins = qn_alloc_zero(ctx, QN_COUNT_BINS, sizeof *c->bins);
    if (!c->bins) {
        qn_counter_free(c);
        return qn_fail_nomem(ctx);
    }
    *out = c;
    return QN_OK;
}

void qn_counter_free(qn_counter *c)
{
    if (!c)
        return;
    qn_free(c->ctx, c->bins);
    qn_free(c->ctx, c->own.min);
    qn_free(c->ctx, c->own.max);
    qn_free(c->ctx, c->own.sum);
    qn_free(c->ctx, c->own.square);
    qn_free(c->ctx, c->plain);
    qn_free(c->ctx, c);
}

/* ---- Bins and histogram --------------------------------------------------------------------------------- */

static qn_status flush_side(qn_counter *c, int side, size_t count)
{
    qn_count_bin *bins = c->bins + side * QN_HISTOGRAM_BINS;
    uint32_t any = 0;
    for (size_t b = 0; b < count; b++) {
        for (int t = 0; t < QN_COUNT_TURNS; t++)
            any |= bins[b].turn[t];
    }
    if (!any)
        return QN_OK;
    QN_TRY(qn_histogram_side(&c->entry->histogram, c->ctx, side));
    uint64_t *to = c->entry->histogram.side[side];
    for (size_t b = 0; b < count; b++) {
        for (int t = 0; t < QN_COUNT_TURNS; t++)
            to[b] += bins[b].turn[t];
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

static qn_status flush(qn_counter *c)
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
static qn_status widen(qn_counter *c, uint32_t largest)
{
    qn_histogram *h = &c->entry->histogram;
    const int32_t exponent = qn_histogram_exponent(float_of(largest));
    if (exponent > h->exponent) {
        QN_TRY(flush(c));
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
static qn_status count_region(qn_counter *c, const region *g, uint32_t largest)
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
    return c->in_bins > INT32_MAX / 2 ? flush(c) : QN_OK;
}

static qn_status count_span(qn_counter *c, const float *x, int64_t n, uint32_t largest)
{
    return count_region(c, &(region){x, 1, n, n}, largest);
}

/* ---- Regions -------------------------------------------------------------------------------------------- */

/* `rows` of `lanes` neighbouring channels from channel `first` on. */
static uint32_t fold_lanes(qn_counter *c, int64_t first, int64_t lanes, const region *g)
{
    qn_count_sums to = {.largest = 0};
    const channel_sums *sums = c->to;
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

/* Neighbouring elements of one channel, at most QN_COUNT_PIECE. */
static uint32_t fold_span(qn_counter *c, int64_t channel, const float *x, int64_t n)
{
    const int64_t rows = n / QN_COUNT_LANES, rest = n % QN_COUNT_LANES;
    qn_count_sums to = {.largest = 0};
    for (int l = 0; l < QN_COUNT_LANES; l++) {
        to.min[l] = INFINITY;
        to.max[l] = -INFINITY;
    }
    if (rows)
        c->kernels->fold(&to, x, rows, QN_COUNT_LANES, QN_COUNT_LANES);
    if (rest)
        c->kernels->fold(&to, x + rows * QN_COUNT_LANES, 1, QN_COUNT_LANES, rest);
    const channel_sums *sums = c->to;
    for (int l = 0; l < QN_COUNT_LANES; l++) {
        sums->min[channel] = fminf(sums->min[channel], to.min[l]);
        sums->max[channel] = fmaxf(sums->max[channel], to.max[l]);
        sums->sum[channel] += to.sum[l];
        sums->square[channel] += to.square[l];
    }
    return to.largest;
}

/* Channels [first, first + lanes) stand in each row of the region; what pads a row is 0. How the rows are divided
 * depends on their step alone, so that sums are the same whoever has which channels. */
static qn_status add_lanes(qn_counter *c, int64_t first, int64_t lanes, const region *all)
{
    const int64_t most = QN_MAX(1, QN_COUNT_PIECE / all->step);
    for (int64_t r = 0; r < all->rows; r += most) {
        const region here = {all->x + r * all->step, QN_MIN(most, all->rows - r), all->width,
                             all->step};
        uint32_t largest = 0;
        for (int64_t l = 0; l < lanes; l += QN_COUNT_LANES) {
            const int64_t width = QN_MIN(lanes - l, QN_COUNT_LANES);
            const region part = {here.x + l, here.rows, width, here.step};
            const uint32_t found = fold_lanes(c, first + l, width, &part);
            largest = QN_MAX(largest, found);
        }
        QN_TRY(count_region(c, &here, largest));
    }
    return QN_OK;
}

/* Rows [channels], of which the counter has some. */
static qn_status add_columns(qn_counter *c, const float *x, int64_t rows, int64_t channels)
{
    const int64_t lanes = c->last - c->first;
    return add_lanes(c, c->first, lanes, &(region){x + c->first, rows, lanes, channels});
}

/* Channels [first, last) of [channels, inner]. */
static qn_status add_spans(qn_counter *c, int64_t first, int64_t last, const float *x,
                           int64_t inner)
{
    if (inner >= QN_COUNT_PIECE) {
        for (int64_t k = first; k < last; k++) {
            for (int64_t i = 0; i < inner; i += QN_COUNT_PIECE) {
                const int64_t n = QN_MIN(QN_COUNT_PIECE, inner - i);
                const float *at = x + k * inner + i;
                QN_TRY(count_span(c, at, n, fold_span(c, k, at, n)));
            }
        }
        return QN_OK;
    }
    const int64_t most = QN_COUNT_PIECE / inner;
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

/* ---- Layouts -------------------------------------------------------------------------------------------- */

static int64_t product(const int64_t *dims, int32_t from, int32_t to)
{
    int64_t result = 1;
    for (int32_t d = from; d < to; d++)
        result *= dims[d];
    return result;
}

/* Row-major elements of these dims; axis -1: no channels. */
static qn_status add_rows(qn_counter *c, const float *x, const int64_t *dims, int32_t rank,
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

/* One sample [C, spatial...] whose channels lie in blocks, which one counter has as a whole. */
static qn_status add_blocked(qn_counter *c, const float *x, const qn_tensor *shape, int64_t block)
{
    const int64_t area = product(shape->dims, 2, shape->rank);
    for (int64_t k = c->first; k < c->last; k += block)
        QN_TRY(add_lanes(c, k, QN_MIN(block, c->last - k),
                         &(region){x + k * area, area, block, block}));
    return QN_OK;
}

static qn_status add_sample(qn_counter *c, const float *x, const qn_observation *seen)
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

static qn_status add_all(qn_counter *c, const qn_observation *seen)
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

/* ---- Other forms ---------------------------------------------------------------------------------------- */

static qn_status plain_room(qn_counter *c, size_t bytes)
{
    if (bytes <= c->plain_capacity)
        return QN_OK;
    qn_free(c->ctx, c->plain);
    c->plain_capacity = 0;
    c->plain = qn_alloc(c->ctx, bytes);
    QN_TRY_ALLOC(c->ctx, c->plain);
    c->plain_capacity = bytes;
    return QN_OK;
}

/* Row-major float32 in c->plain. */
static qn_status make_plain(qn_counter *c, qn_tensor *out, const qn_observation *seen)
{
    enum { PART = 256 };
    const qn_tensor *shape = seen->tensor;
    const int64_t count = qn_tensor_count(shape);
    const size_t size = qn_dtype_size(shape->dtype);
    const size_t samples = shape->rank > 0 ? (size_t)shape->dims[0] : 1;
    QN_TRY(plain_room(c, (size_t)count * (size + sizeof(float))));
    char *rows = (char *)c->plain + (size_t)count * sizeof(float);
    const qn_laid_out to = {rows, QN_ROWS, (size_t)count / samples * size};
    const qn_laid_out from = {shape->data, seen->layout, seen->stride};
    qn_layout_convert(&to, &from, shape);
    double wide[PART];
    for (int64_t i = 0; i < count; i += PART) {
        const int64_t n = QN_MIN(PART, count - i);
        qn_load_f64(wide, shape->dtype, rows, i, n);
        qn_store_f64(c->plain, QN_FLOAT32, i, wide, n);
    }
    *out = *shape;
    out->dtype = QN_FLOAT32;
    out->data = c->plain;
    return QN_OK;
}

/* ---- One sample ------------------------------------------------------------------------------------------ */

static qn_status grow_floats(qn_counter *c, float **at, int64_t count)
{
    float *grown =
        qn_realloc(c->ctx, *at, c->own.capacity * sizeof **at, (size_t)count * sizeof **at);
    QN_TRY_ALLOC(c->ctx, grown);
    *at = grown;
    return QN_OK;
}

static qn_status grow_doubles(qn_counter *c, double **at, int64_t count)
{
    double *grown =
        qn_realloc(c->ctx, *at, c->own.capacity * sizeof **at, (size_t)count * sizeof **at);
    QN_TRY_ALLOC(c->ctx, grown);
    *at = grown;
    return QN_OK;
}

static qn_status channel_room(qn_counter *c, int64_t channels)
{
    channel_sums *own = &c->own;
    if ((size_t)channels > own->capacity) {
        QN_TRY(grow_doubles(c, &own->sum, channels));
        QN_TRY(grow_doubles(c, &own->square, channels));
        QN_TRY(grow_floats(c, &own->min, channels));
        QN_TRY(grow_floats(c, &own->max, channels));
        own->capacity = (size_t)channels;
    }
    return QN_OK;
}

static void begin_channels(const qn_counter *c)
{
    for (int64_t k = c->first; k < c->last; k++) {
        c->to->min[k] = INFINITY;
        c->to->max[k] = -INFINITY;
        c->to->sum[k] = c->to->square[k] = 0;
    }
}

/* What the entry has of the counter's channels. */
static void take_channels(qn_stats_entry *e, const qn_counter *c)
{
    const channel_sums *sums = c->to;
    for (int64_t k = c->first; k < c->last; k++) {
        sums->min[k] += 0.0f; /* -0 becomes 0: which zero comes out must not depend on the order */
        sums->max[k] += 0.0f;
    }
    for (int64_t k = c->first; k < QN_MIN(c->last, e->channels); k++) {
        e->channel_min[k] = fminf(e->channel_min[k], sums->min[k]);
        e->channel_max[k] = fmaxf(e->channel_max[k], sums->max[k]);
        qn_fixed_add(&e->channel_sum[k], sums->sum[k]);
        qn_fixed_add(&e->channel_square[k], sums->square[k]);
    }
}

static void take_sample(qn_counter *c, int64_t channels, uint64_t count, uint64_t nonzero)
{
    qn_stats_entry *e = c->entry;
    const channel_sums *sums = c->to;
    float min = INFINITY, max = -INFINITY;
    double sum = 0;
    for (int64_t k = 0; k < channels; k++) {
        min = fminf(min, sums->min[k]);
        max = fmaxf(max, sums->max[k]);
        sum += sums->sum[k];
    }
    e->samples++;
    e->count += count;
    e->zeros += count - nonzero;
    c->ends = (qn_range){min, max};
    e->min = fminf(e->min, min);
    e->max = fmaxf(e->max, max);
    qn_fixed_add(&e->sum, sum);
    qn_fixed_add(&e->sum_min, min);
    qn_fixed_add(&e->sum_max, max);
}

qn_range qn_counter_ends(const qn_counter *c)
{
    return c->ends;
}

/* Channels of a layout other than row-major are those of axis 1. */
static bool is_direct(const qn_observation *seen, int32_t axis)
{
    return seen->tensor->dtype == QN_FLOAT32 && (seen->layout.kind == QN_LAYOUT_ROWS || axis == 1);
}

/* ---- Together ------------------------------------------------------------------------------------------------ */

/* Gives each of the counters channels, in whole vectors and blocks; how many got some. */
static int divide(const qn_counters *all, const qn_observation *seen, int64_t channels)
{
    enum { ALONE = 16384 }; /* elements that are not worth waking anybody */
    const int64_t unit = QN_MAX((int64_t)seen->layout.block, QN_COUNT_LANES);
    const int64_t units = (channels + unit - 1) / unit;
    const int64_t most = qn_tensor_count(seen->tensor) < ALONE ? 1 : all->count;
    const int64_t n = QN_MAX(QN_MIN(most, units), 1);
    for (int64_t i = 0; i < n; i++) {
        qn_counter *c = all->at[i];
        c->entry = all->entries[i];
        c->to = &all->at[0]->own;
        c->first = units * i / n * unit;
        c->last = QN_MIN(units * (i + 1) / n * unit, channels);
        c->in_bins = c->nonzero = 0;
        c->largest = 0;
    }
    return (int)n;
}

static qn_status add_share(qn_counter *c, qn_stats_entry *whole, const qn_observation *seen)
{
    begin_channels(c);
    qn_status status = add_all(c, seen);
    if (status == QN_OK)
        status = flush(c);
    if (status == QN_OK)
        take_channels(whole, c);
    else
        memset(c->bins, 0, QN_COUNT_BINS * sizeof *c->bins);
    return status;
}

static qn_status add_shares(const qn_counters *all, int n, const qn_observation *seen)
{
    qn_counter *leader = all->at[0];
#pragma omp parallel for num_threads(n) if (n > 1)
    for (int i = 0; i < n; i++)
        all->at[i]->status = add_share(all->at[i], all->entries[0], seen);
    for (int i = 0; i < n; i++) {
        const qn_counter *c = all->at[i];
        if (c->status != QN_OK)
            return i ? qn_fail(leader->ctx, c->status, "%s", qn_context_error(c->ctx)) : c->status;
    }
    return QN_OK;
}

qn_status qn_entry_add_shared(const qn_counters *all, const qn_observation *seen)
{
    qn_counter *c = all->at[0];
    qn_stats_entry *entry = all->entries[0];
    const int64_t count = qn_tensor_count(seen->tensor);
    const int32_t axis = entry->axis < seen->tensor->rank ? entry->axis : -1;
    const int64_t channels = axis >= 0 ? seen->tensor->dims[axis] : 1;
    qn_observation plain = *seen;
    qn_tensor tensor;
    uint64_t nonzero = 0;
    if (count == 0)
        return QN_OK;
    if (!is_direct(seen, axis)) {
        QN_TRY(make_plain(c, &tensor, seen));
        plain = (qn_observation){seen->value, &tensor, QN_ROWS, 0};
        if (tensor.rank > 0)
            plain.stride = (size_t)(count / tensor.dims[0]) * sizeof(float);
    }
    QN_TRY(channel_room(c, channels));
    QN_TRY(qn_entry_channels(entry, c->ctx, axis >= 0 ? channels : -1));
    const int n = divide(all, &plain, channels);
    QN_TRY(add_shares(all, n, &plain));
    for (int i = 0; i < n; i++)
        nonzero += (uint64_t)all->at[i]->nonzero;
    take_sample(c, channels, (uint64_t)count, nonzero);
    return QN_OK;
}

qn_status qn_entry_add(qn_stats_entry *entry, qn_counter *counter, const qn_observation *seen)
{
    const qn_counters alone = {.at = &counter, .entries = &entry, .count = 1};
    return qn_entry_add_shared(&alone, seen);
}
