/* The statistics of a model's values: entries, merging, order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/histogram.h"

/* ---- Entries --------------------------------------------------------------------------------- */

static void entry_free(qn_stats_entry *e, qn_context *ctx)
{
    qn_histogram_free(&e->histogram, ctx);
    qn_free(ctx, e->channel_min);
    qn_free(ctx, e->channel_max);
    qn_free(ctx, e->channel_sum);
    qn_free(ctx, e->channel_square);
}

static void drop_channels(qn_stats_entry *e, qn_context *ctx)
{
    qn_free(ctx, e->channel_min);
    qn_free(ctx, e->channel_max);
    qn_free(ctx, e->channel_sum);
    qn_free(ctx, e->channel_square);
    e->channel_min = e->channel_max = NULL;
    e->channel_sum = e->channel_square = NULL;
    e->channels = -1;
}

static qn_status make_channels(qn_stats_entry *e, qn_context *ctx, int64_t channels)
{
    e->channel_min = qn_alloc_zero(ctx, (size_t)channels, sizeof *e->channel_min);
    e->channel_max = qn_alloc_zero(ctx, (size_t)channels, sizeof *e->channel_max);
    e->channel_sum = qn_alloc_zero(ctx, (size_t)channels, sizeof *e->channel_sum);
    e->channel_square = qn_alloc_zero(ctx, (size_t)channels, sizeof *e->channel_square);
    if (!e->channel_min || !e->channel_max || !e->channel_sum || !e->channel_square)
        return qn_fail_nomem(ctx);
    for (int64_t c = 0; c < channels; c++) {
        e->channel_min[c] = INFINITY;
        e->channel_max[c] = -INFINITY;
    }
    e->channels = channels;
    return QN_OK;
}

qn_status qn_entry_channels(qn_stats_entry *e, qn_context *ctx, int64_t channels)
{
    if (e->axis < 0 || e->channels < 0 || channels == e->channels)
        return QN_OK;
    if (e->channels == 0 && channels > 0 && channels <= QN_STATS_CHANNELS_MAX)
        return make_channels(e, ctx, channels);
    drop_channels(e, ctx);
    return QN_OK;
}

/* ---- Integers -------------------------------------------------------------------------------- */

static bool is_whole(qn_sum128 sum)
{
    return (sum.low & ((UINT64_C(1) << 56) - 1)) == 0;
}

/* No bin is in use that an integer cannot be in. */
static bool has_whole_bins(const qn_histogram *h)
{
    bool whole = true;
    for (int side = 0; side < 2 && h->exponent < 0 && h->exponent != INT32_MIN; side++) {
        const size_t bins = h->exponent < -12 ? QN_HISTOGRAM_BINS : (size_t)1 << -h->exponent;
        for (size_t i = 0; i < QN_HISTOGRAM_BINS && h->side[side] && whole; i++)
            whole = i % bins == 0 || h->side[side][i] == 0;
    }
    return whole;
}

bool qn_entry_is_integral(const qn_stats_entry *entry)
{
    bool whole = is_whole(entry->sum) && is_whole(entry->sum_min) && is_whole(entry->sum_max) &&
                 has_whole_bins(&entry->histogram);
    for (int64_t c = 0; c < entry->channels && whole; c++)
        whole = is_whole(entry->channel_sum[c]) && is_whole(entry->channel_square[c]);
    return whole;
}

double qn_entry_mean(const qn_stats_entry *e)
{
    return e->count ? qn_sum128_value(e->sum) / (double)e->count : 0;
}

double qn_entry_channel_mean(const qn_stats_entry *e, int64_t channel)
{
    const double count = (double)(e->count / (uint64_t)e->channels);
    return qn_sum128_value(e->channel_sum[channel]) / count;
}

double qn_entry_channel_power(const qn_stats_entry *e, int64_t channel)
{
    const double count = (double)(e->count / (uint64_t)e->channels);
    return qn_sum128_value(e->channel_square[channel]) / count;
}

static qn_status merge_channels(qn_stats_entry *e, qn_context *ctx, const qn_stats_entry *other)
{
    if (other->channels == 0)
        return QN_OK;
    QN_TRY(qn_entry_channels(e, ctx, other->channels));
    for (int64_t c = 0; c < e->channels; c++) {
        e->channel_min[c] = fminf(e->channel_min[c], other->channel_min[c]);
        e->channel_max[c] = fmaxf(e->channel_max[c], other->channel_max[c]);
        qn_sum128_merge(&e->channel_sum[c], other->channel_sum[c]);
        qn_sum128_merge(&e->channel_square[c], other->channel_square[c]);
    }
    return QN_OK;
}

static qn_status entry_merge(qn_stats_entry *e, qn_context *ctx, const qn_stats_entry *other)
{
    e->samples += other->samples;
    e->count += other->count;
    e->zeros += other->zeros;
    e->min = fminf(e->min, other->min);
    e->max = fmaxf(e->max, other->max);
    qn_sum128_merge(&e->sum, other->sum);
    qn_sum128_merge(&e->sum_min, other->sum_min);
    qn_sum128_merge(&e->sum_max, other->sum_max);
    QN_TRY(qn_histogram_merge(&e->histogram, ctx, &other->histogram));
    return merge_channels(e, ctx, other);
}

/* ---- Statistics ------------------------------------------------------------------------------ */

qn_status qn_stats_create(qn_stats **out, qn_context *ctx)
{
    qn_stats *stats = qn_alloc_zero(ctx, 1, sizeof *stats);
    *out = stats;
    QN_TRY_ALLOC(ctx, stats);
    stats->ctx = ctx;
    qn_arena_init(&stats->arena, &ctx->allocator);
    qn_names_init(&stats->by_name, ctx);
    return QN_OK;
}

void qn_stats_free(qn_stats *stats)
{
    if (!stats)
        return;
    for (size_t i = 0; i < stats->n_entries; i++)
        entry_free(stats->entries[i], stats->ctx);
    qn_free(stats->ctx, stats->entries);
    qn_names_free(&stats->by_name);
    qn_arena_free(&stats->arena);
    qn_free(stats->ctx, stats);
}

const qn_stats_entry *qn_stats_find(const qn_stats *stats, const char *name)
{
    const qn_stats_entry *entry = stats ? qn_names_get(&stats->by_name, name) : NULL;
    return entry && entry->count ? entry : NULL;
}

qn_status qn_stats_entry_get(qn_stats_entry **out, qn_stats *stats, const char *name, int32_t axis)
{
    *out = qn_names_get(&stats->by_name, name);
    if (*out)
        return QN_OK;
    QN_TRY_GROW(stats->ctx, stats->entries, stats->capacity, stats->n_entries + 1);
    qn_stats_entry *e = qn_arena_alloc(&stats->arena, sizeof *e);
    QN_TRY_ALLOC(stats->ctx, e);
    e->name = qn_arena_text(&stats->arena, name, strlen(name));
    QN_TRY_ALLOC(stats->ctx, e->name);
    e->axis = axis;
    e->min = INFINITY;
    e->max = -INFINITY;
    e->histogram.exponent = INT32_MIN;
    QN_TRY(qn_names_set(&stats->by_name, e->name, e));
    stats->entries[stats->n_entries++] = e;
    *out = e;
    return QN_OK;
}

static int by_name(const void *a, const void *b)
{
    const qn_stats_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

void qn_stats_sort(qn_stats *stats)
{
    if (stats->n_entries)
        qsort(stats->entries, stats->n_entries, sizeof(qn_stats_entry *), by_name);
}

/* Entries of one value that were made with different axes have channels that do not go together. */
static void join_axes(qn_stats_entry *e, qn_context *ctx, const qn_stats_entry *other)
{
    if (e->axis == other->axis)
        return;
    drop_channels(e, ctx);
    e->axis = QN_MIN(e->axis, other->axis);
    e->channels = e->axis < 0 ? 0 : -1;
}

qn_status qn_stats_add(qn_stats *stats, const qn_stats *part)
{
    for (size_t i = 0; i < part->n_entries; i++) {
        qn_stats_entry *e;
        QN_TRY(qn_stats_entry_get(&e, stats, part->entries[i]->name, part->entries[i]->axis));
        join_axes(e, stats->ctx, part->entries[i]);
        QN_TRY(entry_merge(e, stats->ctx, part->entries[i]));
    }
    stats->samples += part->samples;
    qn_fingerprint_add(&stats->data, part->data);
    return QN_OK;
}

/* ---- Of one model, of these data ------------------------------------------------------------- */

qn_status qn_stats_check(const qn_stats *stats, const qn_fingerprint *model,
                         const qn_fingerprint *data)
{
    if (!qn_fingerprint_same(stats->model, *model))
        return qn_fail(stats->ctx, QN_E_INVALID,
                       "the statistics are of another model: calibrate this one");
    if (data && !qn_fingerprint_same(stats->data, *data))
        return qn_fail(stats->ctx, QN_E_INVALID,
                       "the statistics are of other data: calibrate with these");
    return QN_OK;
}

qn_status qn_stats_merge(qn_stats **out, qn_context *ctx, const qn_stats *const *parts,
                         size_t count)
{
    qn_stats *all;
    qn_status status = QN_OK;
    *out = NULL;
    if (count == 0)
        return qn_fail(ctx, QN_E_INVALID, "there are no statistics to merge");
    QN_TRY(qn_stats_create(&all, ctx));
    all->model = parts[0]->model;
    for (size_t i = 0; i < count && status == QN_OK; i++) {
        for (size_t k = 0; k < i; k++) {
            if (qn_fingerprint_same(parts[k]->data, parts[i]->data))
                qn_log(ctx, QN_LOG_WARN,
                       "statistics %zu and %zu are of the same data: it counts "
                       "twice",
                       k + 1, i + 1);
        }
        if (qn_fingerprint_same(all->model, parts[i]->model))
            status = qn_stats_add(all, parts[i]);
        else
            status =
                qn_fail(ctx, QN_E_INVALID,
                        "statistics %zu and 1 are of different models: they do not merge", i + 1);
    }
    qn_stats_sort(all);
    if (status == QN_OK)
        *out = all;
    else
        qn_stats_free(all);
    return status;
}
