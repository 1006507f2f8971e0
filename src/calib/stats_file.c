/* The statistics file. All numbers are little-endian; "v" is a varint, "f" a float, "x" a
 * qn_sum128.
 *
 *   "qnstats2"
 *   fingerprint of the model, of the data (16 bytes each)
 *   v samples, v entries; for each, in ascending order of names:
 *       v length, name
 *       v samples, count, zeros      f min, max     x sum, sum_min, sum_max
 *       v axis + 1, channels + 1; for each channel: f min, max     x sum, sum of squares
 *       v exponent - QN_HISTOGRAM_EXPONENT_MIN + 1 (0: no histogram), then both sides:
 *           v bins up to the last that is not 0; each a varint, zeros as 0 and their number
 *   fingerprint of all before
 *
 * Everything is checked when read: what reads back is a state that counting can reach. */
#include <math.h>
#include <string.h>

#include "calib/byte_stream.h"
#include "calib/histogram.h"

static const char magic[] = "qnstats2";

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_side(qn_text *out, const uint64_t *bins)
{
    size_t last = bins ? QN_HISTOGRAM_BINS : 0;
    while (last > 0 && bins[last - 1] == 0)
        last--;
    qn_put_varint(out, last);
    for (size_t i = 0; i < last;) {
        size_t run = 0;
        qn_put_varint(out, bins[i]);
        for (; bins[i] == 0; i++)
            run++;
        if (run)
            qn_put_varint(out, run);
        else
            i++;
    }
}

static void put_channels(qn_text *out, const qn_stats_entry *e)
{
    qn_put_varint(out, (uint64_t)(e->axis + 1));
    qn_put_varint(out, (uint64_t)(e->channels + 1));
    for (int64_t c = 0; c < e->channels; c++) {
        qn_put_f32(out, e->channel_min[c]);
        qn_put_f32(out, e->channel_max[c]);
        qn_put_sum128(out, e->channel_sum[c]);
        qn_put_sum128(out, e->channel_square[c]);
    }
}

static void put_entry(qn_text *out, const qn_stats_entry *e)
{
    const qn_histogram *h = &e->histogram;
    qn_put_name(out, e->name);
    qn_put_varint(out, e->samples);
    qn_put_varint(out, e->count);
    qn_put_varint(out, e->zeros);
    qn_put_f32(out, e->min);
    qn_put_f32(out, e->max);
    qn_put_sum128(out, e->sum);
    qn_put_sum128(out, e->sum_min);
    qn_put_sum128(out, e->sum_max);
    put_channels(out, e);
    qn_put_varint(out, h->exponent == INT32_MIN
                           ? 0
                           : (uint64_t)(h->exponent - QN_HISTOGRAM_EXPONENT_MIN + 1));
    if (h->exponent == INT32_MIN)
        return;
    put_side(out, h->side[0]);
    put_side(out, h->side[1]);
}

/* Values that never had an element are not in the file, so that it does not depend on what was
 * asked for. */
void qn_put_stats(qn_text *out, const qn_stats *stats)
{
    size_t filled = 0;
    for (size_t i = 0; i < stats->n_entries; i++)
        filled += stats->entries[i]->count > 0;
    qn_put_fingerprint(out, stats->model);
    qn_put_fingerprint(out, stats->data);
    qn_put_varint(out, stats->samples);
    qn_put_varint(out, filled);
    for (size_t i = 0; i < stats->n_entries; i++) {
        if (stats->entries[i]->count > 0)
            put_entry(out, stats->entries[i]);
    }
}

qn_status qn_stats_save(qn_context *ctx, const qn_stats *stats, const char *path)
{
    qn_text text;
    qn_text_init(&text, ctx);
    qn_text_add(&text, magic, QN_MAGIC);
    qn_put_stats(&text, stats);
    return qn_write_checked(ctx, &text, path);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Adds the counts to *total and sets *last to the bins in use. */
static qn_status get_side(qn_histogram *h, qn_context *ctx, qn_byte_reader *in, int side,
                          uint64_t *total, size_t *last)
{
    *last = (size_t)qn_get_count(in, QN_HISTOGRAM_BINS);
    if (*last == 0)
        return QN_OK;
    QN_TRY(qn_histogram_side(h, ctx, side));
    uint64_t *bins = h->side[side];
    bool zeros = false;
    for (size_t i = 0; i < *last && !in->wrong;) {
        const uint64_t count = qn_get_varint(in);
        bins[i] = count;
        *total += count;
        in->wrong = in->wrong || *total < count || (count == 0 && zeros);
        zeros = count == 0;
        const size_t run = zeros ? (size_t)qn_get_count(in, *last - i) : 1;
        in->wrong = in->wrong || run == 0;
        i += run;
    }
    in->wrong = in->wrong || zeros; /* the last one is not 0 */
    return QN_OK;
}

static qn_status get_histogram(qn_stats_entry *e, qn_context *ctx, qn_byte_reader *in)
{
    enum { EXPONENTS = 128 - 12 - QN_HISTOGRAM_EXPONENT_MIN + 1 };
    qn_histogram *h = &e->histogram;
    const uint64_t code = qn_get_count(in, EXPONENTS);
    uint64_t total = e->zeros;
    size_t positive = 0, negative = 0;
    if (code > 0) {
        h->exponent = (int32_t)code - 1 + QN_HISTOGRAM_EXPONENT_MIN;
        QN_TRY(get_side(h, ctx, in, 0, &total, &positive));
        QN_TRY(get_side(h, ctx, in, 1, &total, &negative));
        const size_t larger = QN_MAX(positive, negative);
        in->wrong = in->wrong || larger == 0 ||
                    (larger <= QN_HISTOGRAM_BINS / 2 && h->exponent > QN_HISTOGRAM_EXPONENT_MIN);
    }
    in->wrong = in->wrong || total != e->count || (positive > 0) != (e->max > 0) ||
                (negative > 0) != (e->min < 0);
    return QN_OK;
}

/* Two ends that elements can have; -0 is written as 0. */
static bool get_ends(qn_byte_reader *in, float *min, float *max)
{
    *min = qn_get_f32(in);
    *max = qn_get_f32(in);
    return isfinite(*min) && isfinite(*max) && *min <= *max && !(*min == 0 && signbit(*min)) &&
           !(*max == 0 && signbit(*max));
}

static qn_status get_channels(qn_stats_entry *e, qn_context *ctx, qn_byte_reader *in)
{
    e->axis = (int32_t)qn_get_count(in, QN_MAX_RANK) - 1;
    const int64_t channels = (int64_t)qn_get_count(in, QN_STATS_CHANNELS_MAX + 1) - 1;
    if (in->wrong || channels == -1) {
        e->channels = -1;
        in->wrong = in->wrong || (e->axis < 0);
        return QN_OK;
    }
    in->wrong = (channels > 0) != (e->axis >= 0) ||
                (channels > 0 && (e->count % (uint64_t)channels != 0 ||
                                  (size_t)channels > (size_t)(in->end - in->at) / 40));
    if (in->wrong || channels == 0)
        return QN_OK;
    QN_TRY(qn_entry_channels(e, ctx, channels));
    for (int64_t c = 0; c < channels && !in->wrong; c++) {
        in->wrong = !get_ends(in, &e->channel_min[c], &e->channel_max[c]);
        e->channel_sum[c] = qn_get_sum128(in);
        e->channel_square[c] = qn_get_sum128(in);
        in->wrong = in->wrong || e->channel_square[c].high < 0;
    }
    return QN_OK;
}

static qn_status get_entry(qn_stats *stats, qn_byte_reader *in, const char **before)
{
    qn_stats_entry *e;
    const char *name = qn_get_name(in, &stats->arena);
    if (!name)
        return in->wrong ? QN_OK : qn_fail_nomem(stats->ctx);
    in->wrong = *before && strcmp(*before, name) >= 0;
    if (in->wrong)
        return QN_OK;
    *before = name;
    QN_TRY(qn_stats_entry_get(&e, stats, name, 0));
    e->samples = qn_get_varint(in);
    e->count = qn_get_varint(in);
    e->zeros = qn_get_varint(in);
    const bool ends = get_ends(in, &e->min, &e->max);
    e->sum = qn_get_sum128(in);
    e->sum_min = qn_get_sum128(in);
    e->sum_max = qn_get_sum128(in);
    in->wrong = in->wrong || !ends || e->samples == 0 || e->samples > e->count ||
                e->samples > stats->samples || e->zeros > e->count;
    if (!in->wrong)
        QN_TRY(get_channels(e, stats->ctx, in));
    return in->wrong ? QN_OK : get_histogram(e, stats->ctx, in);
}

qn_status qn_get_stats(qn_stats **out, qn_context *ctx, qn_byte_reader *in)
{
    qn_stats *stats;
    const char *before = NULL;
    qn_status status = QN_OK;
    *out = NULL;
    QN_TRY(qn_stats_create(&stats, ctx));
    stats->model = qn_get_fingerprint(in);
    stats->data = qn_get_fingerprint(in);
    stats->samples = qn_get_varint(in);
    const uint64_t entries = qn_get_count(in, (uint64_t)(in->end - in->at));
    for (uint64_t i = 0; i < entries && !in->wrong && status == QN_OK; i++)
        status = get_entry(stats, in, &before);
    if (status == QN_OK && in->wrong)
        status = qn_fail(ctx, QN_E_FORMAT, "the statistics contradict themselves");
    if (status == QN_OK)
        *out = stats;
    else
        qn_stats_free(stats);
    return status;
}

static qn_status read_all(qn_stats **out, qn_context *ctx, const void *data, size_t size)
{
    qn_byte_reader in = {NULL, NULL, false};
    QN_TRY(qn_get_checked(&in, ctx, data, size, magic));
    QN_TRY(qn_get_stats(out, ctx, &in));
    if (in.at == in.end)
        return QN_OK;
    qn_stats_free(*out);
    *out = NULL;
    return qn_fail(ctx, QN_E_FORMAT, "there are bytes behind the statistics");
}

qn_status qn_stats_read(qn_stats **out, qn_context *ctx, const void *data, size_t size,
                        const char *name)
{
    *out = NULL;
    const qn_status status = read_all(out, ctx, data, size);
    return status == QN_OK ? QN_OK : qn_fail_within(ctx, status, "%s", name);
}

qn_status qn_stats_load(qn_stats **out, qn_context *ctx, const char *path)
{
    qn_map map;
    *out = NULL;
    QN_TRY(qn_map_open(&map, ctx, path));
    const qn_status status = qn_stats_read(out, ctx, map.data, map.size, path);
    qn_map_close(&map);
    return status;
}
