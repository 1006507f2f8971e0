/* Adds a sample of a value to its statistics: brings it into a layout that can be counted, divides
 * it among the threads, and joins their results. */
#include <math.h>
#include <string.h>

#include "calib/accumulator.h"
#include "calib/histogram.h"

qn_status qn_accumulator_create(qn_accumulator **out, qn_context *ctx)
{
    *out = NULL;
    qn_accumulator *c = qn_alloc_zero(ctx, 1, sizeof *c);
    QN_TRY_ALLOC(ctx, c);
    c->ctx = ctx;
    c->kernels = qn_stats_kernels_get();
    c->bins = qn_alloc_zero(ctx, QN_STATS_BINS, sizeof *c->bins);
    if (!c->bins) {
        qn_accumulator_free(c);
        return qn_fail_nomem(ctx);
    }
    *out = c;
    return QN_OK;
}

void qn_accumulator_free(qn_accumulator *c)
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

/* ---- Other forms ----------------------------------------------------------------------------- */

static qn_status plain_room(qn_accumulator *c, size_t bytes)
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
static qn_status make_plain(qn_accumulator *c, qn_tensor *out, const qn_observation *seen)
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

/* ---- One sample ------------------------------------------------------------------------------ */

static qn_status grow_floats(qn_accumulator *c, float **at, int64_t count)
{
    float *grown =
        qn_realloc(c->ctx, *at, c->own.capacity * sizeof **at, (size_t)count * sizeof **at);
    QN_TRY_ALLOC(c->ctx, grown);
    *at = grown;
    return QN_OK;
}

static qn_status grow_doubles(qn_accumulator *c, double **at, int64_t count)
{
    double *grown =
        qn_realloc(c->ctx, *at, c->own.capacity * sizeof **at, (size_t)count * sizeof **at);
    QN_TRY_ALLOC(c->ctx, grown);
    *at = grown;
    return QN_OK;
}

static qn_status channel_room(qn_accumulator *c, int64_t channels)
{
    qn_channel_sums *own = &c->own;
    if ((size_t)channels > own->capacity) {
        QN_TRY(grow_doubles(c, &own->sum, channels));
        QN_TRY(grow_doubles(c, &own->square, channels));
        QN_TRY(grow_floats(c, &own->min, channels));
        QN_TRY(grow_floats(c, &own->max, channels));
        own->capacity = (size_t)channels;
    }
    return QN_OK;
}

static void begin_channels(const qn_accumulator *c)
{
    for (int64_t k = c->first; k < c->last; k++) {
        c->to->min[k] = INFINITY;
        c->to->max[k] = -INFINITY;
        c->to->sum[k] = c->to->square[k] = 0;
    }
}

/* What the entry has of the accumulator's channels. */
static void take_channels(qn_stats_entry *e, const qn_accumulator *c)
{
    const qn_channel_sums *sums = c->to;
    for (int64_t k = c->first; k < c->last; k++) {
        sums->min[k] += 0.0f; /* -0 becomes 0: which zero comes out must not depend on the order */
        sums->max[k] += 0.0f;
    }
    for (int64_t k = c->first; k < QN_MIN(c->last, e->channels); k++) {
        e->channel_min[k] = fminf(e->channel_min[k], sums->min[k]);
        e->channel_max[k] = fmaxf(e->channel_max[k], sums->max[k]);
        qn_sum128_add(&e->channel_sum[k], sums->sum[k]);
        qn_sum128_add(&e->channel_square[k], sums->square[k]);
    }
}

static void take_sample(qn_accumulator *c, int64_t channels, uint64_t count, uint64_t nonzero)
{
    qn_stats_entry *e = c->entry;
    const qn_channel_sums *sums = c->to;
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
    qn_sum128_add(&e->sum, sum);
    qn_sum128_add(&e->sum_min, min);
    qn_sum128_add(&e->sum_max, max);
}

qn_range qn_accumulator_extremes(const qn_accumulator *c)
{
    return c->ends;
}

/* Channels of a layout other than row-major are those of axis 1. */
static bool is_direct(const qn_observation *seen, int32_t axis)
{
    return seen->tensor->dtype == QN_FLOAT32 && (seen->layout.kind == QN_LAYOUT_ROWS || axis == 1);
}

/* ---- Together -------------------------------------------------------------------------------- */

/* Gives each of the accumulators channels, in whole vectors and blocks; how many got some. */
static int divide(const qn_accumulator_group *all, const qn_observation *seen, int64_t channels)
{
    enum { ALONE = 16384 }; /* elements that are not worth waking anybody */
    const int64_t unit = QN_MAX((int64_t)seen->layout.block, QN_STATS_LANES);
    const int64_t units = (channels + unit - 1) / unit;
    const int64_t most = qn_tensor_count(seen->tensor) < ALONE ? 1 : all->count;
    const int64_t n = QN_MAX(QN_MIN(most, units), 1);
    for (int64_t i = 0; i < n; i++) {
        qn_accumulator *c = all->at[i];
        c->entry = all->entries[i];
        c->to = &all->at[0]->own;
        c->first = units * i / n * unit;
        c->last = QN_MIN(units * (i + 1) / n * unit, channels);
        c->in_bins = c->nonzero = 0;
        c->largest = 0;
    }
    return (int)n;
}

static qn_status add_share(qn_accumulator *c, qn_stats_entry *whole, const qn_observation *seen)
{
    begin_channels(c);
    qn_status status = qn_accumulator_add_elements(c, seen);
    if (status == QN_OK)
        status = qn_accumulator_flush(c);
    if (status == QN_OK)
        take_channels(whole, c);
    else
        memset(c->bins, 0, QN_STATS_BINS * sizeof *c->bins);
    return status;
}

static qn_status add_shares(const qn_accumulator_group *all, int n, const qn_observation *seen)
{
    qn_accumulator *leader = all->at[0];
#pragma omp parallel for num_threads(n) if (n > 1)
    for (int i = 0; i < n; i++)
        all->at[i]->status = add_share(all->at[i], all->entries[0], seen);
    for (int i = 0; i < n; i++) {
        const qn_accumulator *c = all->at[i];
        if (c->status != QN_OK)
            return i ? qn_fail(leader->ctx, c->status, "%s", qn_context_error(c->ctx)) : c->status;
    }
    return QN_OK;
}

qn_status qn_entry_add_shared(const qn_accumulator_group *all, const qn_observation *seen)
{
    qn_accumulator *c = all->at[0];
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

qn_status qn_entry_add(qn_stats_entry *entry, qn_accumulator *accumulator,
                       const qn_observation *seen)
{
    const qn_accumulator_group alone = {.at = &accumulator, .entries = &entry, .count = 1};
    return qn_entry_add_shared(&alone, seen);
}
