/* The table of methods, and those that need no search. docs/calibration.md describes them all. */
#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "calib/kl.h"
#include "ir/width.h"

/* ---- Those that need no search --------------------------------------------------------------- */

static qn_status min_max(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                         const qn_range_options *options)
{
    (void)ctx;
    (void)options;
    *out = (qn_range){entry->min, entry->max};
    return QN_OK;
}

static qn_status mean(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                      const qn_range_options *options)
{
    const double samples = (double)entry->samples;
    (void)ctx;
    (void)options;
    *out = (qn_range){(float)(qn_sum128_value(entry->sum_min) / samples),
                      (float)(qn_sum128_value(entry->sum_max) / samples)};
    return QN_OK;
}

/* The magnitude on one side of 0 (on both sides where `other` is given) that `cut` elements
 * exceed. */
static double cut_at(const qn_histogram *h, const uint64_t *side, const uint64_t *other, double cut)
{
    const double width = ldexp(1, h->exponent);
    double beyond = 0;
    for (int64_t i = QN_HISTOGRAM_BINS - 1; i >= 0; i--) {
        const double here = (double)(side ? side[i] : 0) + (double)(other ? other[i] : 0);
        if (here > 0 && beyond + here > cut)
            return ((double)(i + 1) - (cut - beyond) / here) * width;
        beyond += here;
    }
    return 0;
}

static qn_status percentile(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                            const qn_range_options *options)
{
    const qn_histogram *h = &entry->histogram;
    const double cut = (1 - options->percentile) * (double)entry->count;
    (void)ctx;
    if (options->symmetric) {
        const float end = (float)cut_at(h, h->side[0], h->side[1], cut);
        *out = (qn_range){-end, end};
    } else {
        *out = (qn_range){-(float)cut_at(h, h->side[1], NULL, cut / 2),
                          (float)cut_at(h, h->side[0], NULL, cut / 2)};
    }
    return QN_OK;
}

static qn_status mse(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                     const qn_range_options *options)
{
    qn_density density;
    const qn_status status = qn_density_make(&density, ctx, entry, false);
    if (status == QN_OK)
        qn_density_best_range(out, &density, options);
    qn_density_free(&density, ctx);
    return status;
}

/* ---- The table ------------------------------------------------------------------------------- */

static const qn_method method_min_max = {"min_max", "the least and the largest element", min_max};
static const qn_method method_kl = {
    "kl", "clips |x| where the entropy of the classical search is least", qn_range_kl};
static const qn_method method_kl_v2 = {
    "kl_v2", "entropy without zeros, with all levels on one side, no more clipping than rounding",
    qn_range_kl_v2};
static const qn_method method_mse = {"mse", "the least squared error of quantization", mse};
static const qn_method method_percentile = {
    "percentile", "leaves out a share of the elements at the ends", percentile};
static const qn_method method_mean = {"mean", "the mean of the samples' own extremes", mean};

const qn_method *const qn_methods[] = {&method_min_max,    &method_kl,   &method_kl_v2, &method_mse,
                                       &method_percentile, &method_mean, NULL};
const size_t qn_methods_count = QN_COUNT_OF(qn_methods) - 1;

qn_status qn_method_find(const qn_method **out, qn_context *ctx, const char *name)
{
    char list[256] = "";
    for (size_t i = 0; i < qn_methods_count; i++) {
        if (strcmp(qn_methods[i]->name, name) == 0) {
            *out = qn_methods[i];
            return QN_OK;
        }
        qn_word_list(list, sizeof list, "%s", qn_methods[i]->name);
    }
    return qn_fail(ctx, QN_E_INVALID, "there is no calibration method '%s'; there are %s", name,
                   list);
}

static qn_status check_options(qn_context *ctx, const qn_range_options *o)
{
    if (!qn_width_of_bits(o->bits))
        return qn_fail(ctx, QN_E_INVALID, "there are no integers of %d bits to choose a range for",
                       o->bits);
    if (!(o->percentile >= 0.5 && o->percentile <= 1))
        return qn_fail(ctx, QN_E_INVALID, "the percentile must be from 0.5 to 1, not %g",
                       o->percentile);
    return QN_OK;
}

/* Inside what was seen, with 0, and even where that is asked for. */
static void tidy(qn_range *range, const qn_range *seen, bool symmetric)
{
    range->min = fminf(0, fmaxf(range->min, seen->min));
    range->max = fmaxf(0, fminf(range->max, seen->max));
    if (symmetric) {
        range->max = fmaxf(range->max, -range->min);
        range->min = -range->max;
    }
    range->min += 0.0f; /* never -0 */
}

qn_status qn_stats_range(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                         const qn_method *method, const qn_range_options *options)
{
    const qn_range_options defaults = QN_RANGE_OPTIONS_INIT;
    const qn_range_options *o = options ? options : &defaults;
    *out = (qn_range){0, 0};
    QN_TRY(check_options(ctx, o));
    if (entry->histogram.exponent == INT32_MIN)
        return QN_OK;
    qn_range seen = {fminf(0, entry->min), fmaxf(0, entry->max)};
    if (o->symmetric)
        seen = (qn_range){-fmaxf(seen.max, -seen.min), fmaxf(seen.max, -seen.min)};
    *out = seen;
    QN_TRY(method->range(out, ctx, entry, o));
    tidy(out, &seen, o->symmetric);
    if (out->min == 0 && out->max == 0) /* nothing may be cut down to nothing */
        *out = seen;
    return QN_OK;
}
