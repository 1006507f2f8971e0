/* How ranges converge while samples come in, and which samples are outliers. */
#include "calib/convergence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Extremes -------------------------------------------------------------------------------- */

void qn_extremes_init(qn_extremes *x, qn_context *ctx)
{
    *x = (qn_extremes){.ctx = ctx};
    qn_arena_init(&x->arena, &ctx->allocator);
    qn_names_init(&x->by_name, ctx);
}

void qn_extremes_free(qn_extremes *x)
{
    if (!x->ctx)
        return;
    qn_free(x->ctx, x->entries);
    qn_names_free(&x->by_name);
    qn_arena_free(&x->arena);
}

static qn_status extremes_entry(qn_extremes_entry **out, qn_extremes *x, const char *name)
{
    *out = qn_names_get(&x->by_name, name);
    if (*out)
        return QN_OK;
    QN_TRY_GROW(x->ctx, x->entries, x->capacity, x->n_entries + 1);
    qn_extremes_entry *e = qn_arena_alloc(&x->arena, sizeof *e);
    QN_TRY_ALLOC(x->ctx, e);
    e->name = qn_arena_text(&x->arena, name, strlen(name));
    QN_TRY_ALLOC(x->ctx, e->name);
    for (int s = 0; s < 4; s++)
        e->reach[s / 2][s % 2] = (qn_extreme){0, -1};
    QN_TRY(qn_names_set(&x->by_name, e->name, e));
    x->entries[x->n_entries++] = e;
    *out = e;
    return QN_OK;
}

static bool is_farther(qn_extreme a, qn_extreme b)
{
    return fabsf(a.end) > fabsf(b.end) || (fabsf(a.end) == fabsf(b.end) && a.sample < b.sample);
}

static void reach_add(qn_extreme *two, qn_extreme fresh)
{
    if (fresh.sample < 0)
        return;
    if (two[0].sample < 0 || is_farther(fresh, two[0])) {
        two[1] = two[0];
        two[0] = fresh;
    } else if (two[1].sample < 0 || is_farther(fresh, two[1])) {
        two[1] = fresh;
    }
}

qn_status qn_extremes_add(qn_extremes *x, const char *name, qn_range ends, int64_t sample)
{
    qn_extremes_entry *e;
    QN_TRY(extremes_entry(&e, x, name));
    reach_add(e->reach[0], (qn_extreme){fminf(0, ends.min), sample});
    reach_add(e->reach[1], (qn_extreme){fmaxf(0, ends.max), sample});
    return QN_OK;
}

qn_status qn_extremes_merge(qn_extremes *to, const qn_extremes *from)
{
    for (size_t i = 0; i < from->n_entries; i++) {
        qn_extremes_entry *e;
        QN_TRY(extremes_entry(&e, to, from->entries[i]->name));
        for (int s = 0; s < 4; s++)
            reach_add(e->reach[s / 2], from->entries[i]->reach[s / 2][s % 2]);
    }
    return QN_OK;
}

void qn_put_extremes(qn_text *out, const qn_extremes *x)
{
    qn_put_varint(out, x->n_entries);
    for (size_t i = 0; i < x->n_entries; i++) {
        qn_put_name(out, x->entries[i]->name);
        for (int s = 0; s < 4; s++) {
            qn_put_f32(out, x->entries[i]->reach[s / 2][s % 2].end);
            qn_put_varint(out, (uint64_t)(x->entries[i]->reach[s / 2][s % 2].sample + 1));
        }
    }
}

qn_status qn_get_extremes(qn_extremes *x, qn_byte_reader *in, int64_t samples)
{
    const uint64_t count = qn_get_count(in, (uint64_t)(in->end - in->at));
    for (uint64_t i = 0; i < count && !in->wrong; i++) {
        qn_extremes_entry *e;
        const char *name = qn_get_name(in, &x->arena);
        if (!name)
            return in->wrong ? QN_OK : qn_fail_nomem(x->ctx);
        QN_TRY(extremes_entry(&e, x, name));
        for (int s = 0; s < 4; s++) {
            const float end = qn_get_f32(in);
            e->reach[s / 2][s % 2] =
                (qn_extreme){end, (int64_t)qn_get_count(in, (uint64_t)samples) - 1};
            in->wrong = in->wrong || !isfinite(end);
        }
    }
    return QN_OK;
}

/* ---- Outliers -------------------------------------------------------------------------------- */

static const double STRETCH = 1.25;

/* The sample without which the range of the value would be much smaller, or -1. */
static int64_t stretched_by(const qn_extremes_entry *e)
{
    for (int s = 0; s < 2; s++) {
        const qn_extreme *two = e->reach[s], *other = e->reach[1 - s];
        const int64_t sample = two[0].sample;
        if (sample < 0 || two[1].sample < 0)
            continue;
        /* Without the sample its second takes its place, on the other side too if it is first
         * there. */
        const double across = other[other[0].sample == sample].end;
        const double with = fabs((double)two[0].end) + fabs((double)other[0].end);
        const double without = fabs((double)two[1].end) + fabs(across);
        if (with > STRETCH * without)
            return sample;
    }
    return -1;
}

static int by_sample(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Keeps the list sorted: the most values first, then by number. */
static void outlier_add(qn_convergence *convergence, qn_outlier fresh)
{
    size_t at = convergence->n_outliers;
    while (at > 0 && convergence->outliers[at - 1].values < fresh.values)
        at--;
    if (at == QN_OUTLIERS_MAX)
        return;
    convergence->n_outliers = QN_MIN(convergence->n_outliers + 1, (size_t)QN_OUTLIERS_MAX);
    memmove(&convergence->outliers[at + 1], &convergence->outliers[at],
            (convergence->n_outliers - 1 - at) * sizeof fresh);
    convergence->outliers[at] = fresh;
}

qn_status qn_extremes_outliers(qn_convergence *convergence, const qn_extremes *x)
{
    /* A sample with one value to itself is chance. */
    const int64_t least = (int64_t)QN_MAX(3, x->n_entries / 20);
    int64_t *samples = qn_alloc_zero(x->ctx, x->n_entries + 1, sizeof *samples);
    size_t count = 0;
    QN_TRY_ALLOC(x->ctx, samples);
    for (size_t i = 0; i < x->n_entries; i++) {
        samples[count] = stretched_by(x->entries[i]);
        count += samples[count] >= 0;
    }
    qsort(samples, count, sizeof *samples, by_sample);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && samples[end] == samples[i];)
            end++;
        if ((int64_t)(end - i) >= least)
            outlier_add(convergence, (qn_outlier){samples[i], (int64_t)(end - i)});
    }
    qn_free(x->ctx, samples);
    return QN_OK;
}

/* ---- Ranges at some moment ------------------------------------------------------------------- */

/* Methods that are cheap and converge; the extremes of all elements grow as long as data come. */
static const char *const stage_methods[QN_CONVERGENCE_METHODS] = {"percentile", "mean"};

static qn_status ranges_of(qn_range *out, qn_context *ctx, const qn_stats_entry *entry)
{
    for (int m = 0; m < QN_CONVERGENCE_METHODS; m++) {
        const qn_method *method = NULL;
        QN_TRY(qn_method_find(&method, ctx, stage_methods[m]));
        QN_TRY(qn_stats_range(&out[m], ctx, entry, method, NULL));
    }
    return QN_OK;
}

qn_status qn_range_snapshot_take(qn_range_snapshot *out, qn_context *ctx, const qn_stats *stats)
{
    out->entries = qn_alloc_zero(ctx, stats->n_entries + 1, sizeof *out->entries);
    QN_TRY_ALLOC(ctx, out->entries);
    for (size_t i = 0; i < stats->n_entries; i++) {
        qn_range_snapshot_entry *e = &out->entries[out->n_entries++];
        e->name = stats->entries[i]->name;
        QN_TRY(ranges_of(e->range, ctx, stats->entries[i]));
    }
    return QN_OK;
}

void qn_range_snapshot_free(qn_range_snapshot *snapshot, qn_context *ctx)
{
    qn_free(ctx, snapshot->entries);
    *snapshot = (qn_range_snapshot){NULL, 0};
}

static double change_of(const qn_range *early, const qn_range *final)
{
    const double width = (double) final->max - final->min;
    const double change =
        fabs((double)early->max - final->max) + fabs((double)early->min - final->min);
    return width > 0 ? change / width : 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One number a value; values that are not there early have changed wholly. */
static qn_status changes(double *out, qn_context *ctx, const qn_range_snapshot *early,
                         const qn_stats *final)
{
    for (size_t i = 0; i < final->n_entries; i++)
        out[i] = 1;
    for (size_t i = 0; i < early->n_entries; i++) {
        const qn_stats_entry *entry = qn_stats_find(final, early->entries[i].name);
        qn_range now[QN_CONVERGENCE_METHODS];
        if (!entry)
            continue;
        QN_TRY(ranges_of(now, ctx, entry));
        out[i] = 0;
        for (int m = 0; m < QN_CONVERGENCE_METHODS; m++)
            out[i] = fmax(out[i], change_of(&early->entries[i].range[m], &now[m]));
    }
    return QN_OK;
}

qn_status qn_range_snapshot_compare(qn_convergence_point *stage, qn_context *ctx,
                                    const qn_range_snapshot *early, const qn_stats *final)
{
    const size_t n = final->n_entries;
    double *list = qn_alloc_zero(ctx, n + 1, sizeof *list);
    QN_TRY_ALLOC(ctx, list);
    const qn_status status = changes(list, ctx, early, final);
    if (status == QN_OK && n) {
        qsort(list, n, sizeof *list, by_size);
        stage->median = list[n / 2];
        stage->worst = list[n - 1];
    }
    qn_free(ctx, list);
    return status;
}
