/* The methods kl and kl_v2: the range for which the distribution, rounded to the levels, is most
 * like the distribution that was seen. */
#include <math.h>

#include "base/real.h"
#include "calib/kl.h"

/* Sums over the bins before each place, so that a candidate costs one step per level, not per
 * bin. */
typedef struct entropy {
    /* [bins] */
    const double *mass;
    int64_t bins;
    /* [bins + 1] */
    double *count, *filled, *plogp;
    /* Elements that a bin of the quantized side has at least */
    double smoothing;
} entropy;

static double xlogx(double x)
{
    return x > 0 ? x * qn_real_log(x) : 0;
}

static qn_status entropy_make(entropy *e, qn_context *ctx, const qn_density *density,
                              double smoothing)
{
    const int64_t n = density->bins;
    *e = (entropy){.mass = density->mass, .bins = n, .smoothing = smoothing};
    e->count = qn_alloc_zero(ctx, (size_t)n + 1, sizeof *e->count);
    e->filled = qn_alloc_zero(ctx, (size_t)n + 1, sizeof *e->filled);
    e->plogp = qn_alloc_zero(ctx, (size_t)n + 1, sizeof *e->plogp);
    if (!e->count || !e->filled || !e->plogp)
        return qn_fail_nomem(ctx);
    for (int64_t i = 0; i < n; i++) {
        e->count[i + 1] = e->count[i] + e->mass[i];
        e->filled[i + 1] = e->filled[i] + (e->mass[i] > 0);
        e->plogp[i + 1] = e->plogp[i] + xlogx(e->mass[i]);
    }
    return QN_OK;
}

static void entropy_free(entropy *e, qn_context *ctx)
{
    qn_free(ctx, e->count);
    qn_free(ctx, e->filled);
    qn_free(ctx, e->plogp);
}

/* Bins [begin, end) rounded to `levels` levels. */
typedef struct cut {
    int64_t begin, end, levels;
} cut;

/* What is clipped is counted in the last bin of the seen side P, and not in the quantized side
 * Q. */
static double clip_cost(const entropy *e, double clipped, double at_edge, double q_at_edge)
{
    if (clipped <= 0)
        return 0;
    const double q = at_edge > 0 ? q_at_edge : e->smoothing;
    return xlogx(at_edge + clipped) - xlogx(at_edge) - clipped * qn_real_log(q);
}

/* KL(P || Q). A level of Q gives each of its filled bins the same share. */
static double divergence(const entropy *e, const cut *c)
{
    const double all = e->count[e->bins], inside = e->count[c->end] - e->count[c->begin];
    double log_sum = 0, first = 0, last = 0;
    if (inside <= 0)
        return INFINITY;
    for (int64_t k = 0; k < c->levels; k++) {
        const int64_t from = c->begin + (c->end - c->begin) * k / c->levels;
        const int64_t to = c->begin + (c->end - c->begin) * (k + 1) / c->levels;
        const double count = e->count[to] - e->count[from];
        const double share = count > 0 ? count / (e->filled[to] - e->filled[from]) : 0;
        log_sum += count > 0 ? count * qn_real_log(share) : 0;
        if (from == c->begin)
            first = share;
        last = share;
    }
    double cost = e->plogp[c->end] - e->plogp[c->begin] - log_sum;
    cost += clip_cost(e, e->count[c->begin], e->mass[c->begin], first);
    cost += clip_cost(e, all - e->count[c->end], e->mass[c->end - 1], last);
    return cost / all - qn_real_log(all) + qn_real_log(inside);
}

/* ---- The classical search -------------------------------------------------------------------- */

/* The largest share of elements that an end may clip: beyond it too little of the distribution is
 * left to compare with. Without it the ends found for sigmoids, whose values fall into few bins,
 * would clip all of them. */
static const double MOST_CLIPPED = 0.1;

static int64_t best_end(const entropy *e, int64_t levels)
{
    enum { CANDIDATES = 512 };
    const int64_t step = QN_MAX(1, (e->bins - levels) / CANDIDATES);
    int64_t best = e->bins;
    double least = INFINITY;
    for (int64_t end = levels; end <= e->bins; end += step) {
        const cut c = {0, end, levels};
        if (e->count[end] < (1 - MOST_CLIPPED) * e->count[e->bins])
            continue;
        const double cost = divergence(e, &c);
        if (cost < least) {
            least = cost;
            best = end;
        }
    }
    return best;
}

/* Leaves at most 2,048 bins; the first, which is full of elements close to 0, counts like the
 * second. */
static void tidy_bins(qn_density *c)
{
    enum { MOST = 2048 };
    if (c->bins > MOST) {
        for (int64_t i = 0; 2 * i < c->bins; i++)
            c->mass[i] = c->mass[2 * i] + (2 * i + 1 < c->bins ? c->mass[2 * i + 1] : 0);
        c->bins = (c->bins + 1) / 2;
        c->width *= 2;
    }
    if (c->bins > 1)
        c->mass[0] = c->mass[1];
}

qn_status qn_range_kl(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                      const qn_range_options *options)
{
    const int64_t levels = (int64_t)1 << (options->bits - 1);
    qn_density density;
    entropy e = {.bins = 0};
    qn_status status = qn_density_make(&density, ctx, entry, true);
    if (status == QN_OK) {
        tidy_bins(&density);
        status = entropy_make(&e, ctx, &density, 1e-4);
    }
    if (status == QN_OK && e.bins > levels) {
        const float end = (float)((double)best_end(&e, levels) * density.width);
        *out = (qn_range){fmaxf(out->min, -end), fminf(out->max, end)};
    }
    entropy_free(&e, ctx);
    qn_density_free(&density, ctx);
    return status;
}

static const double HANDFUL = 3e-5; /* of the elements that are not 0 */

/* ---- The one without its failures ------------------------------------------------------------ */

/* Values that stand alone, so few that each can have a level: clipping can only lose. */
static bool few_values(const qn_density *c, int64_t levels)
{
    int64_t filled = 0, alone = 0;
    for (int64_t i = 0; i < c->bins; i++) {
        if (c->mass[i] <= 0)
            continue;
        filled++;
        alone += (i == 0 || c->mass[i - 1] <= 0) && (i + 1 == c->bins || c->mass[i + 1] <= 0);
    }
    return filled <= levels && 2 * alone >= filled;
}

typedef struct search {
    const qn_density *density;
    const entropy *entropy;
    const qn_range_options *options;
    cut best;
    double cost;
} search;

/* Clipping must not lose more than rounding does, but for a handful of far outliers. */
static bool clips_little(const search *s, const cut *c)
{
    const double min = s->density->origin + (double)c->begin * s->density->width;
    const double max = s->density->origin + (double)c->end * s->density->width;
    const double step = (max - min) / (double)c->levels;
    const double inside = s->entropy->count[c->end] - s->entropy->count[c->begin];
    return s->entropy->count[s->entropy->bins] - inside <=
               HANDFUL * s->entropy->count[s->entropy->bins] ||
           qn_density_clip_error(s->density, min, max) <= inside * step * step / 12;
}

static void consider(search *s, const cut *c)
{
    const double cost = divergence(s->entropy, c);
    if (cost < s->cost && clips_little(s, c)) {
        s->cost = cost;
        s->best = *c;
    }
}

/* One end moves towards 0, which stands before bin `zero`. */
static void search_end(search *s, int64_t zero, bool upper)
{
    enum { CANDIDATES = 256 };
    const cut start = s->best;
    const int64_t reach = upper ? start.end - zero : zero - start.begin;
    const int64_t step = QN_MAX(1, reach / CANDIDATES);
    for (int64_t i = step; i < reach; i += step) {
        cut c = start;
        if (upper)
            c.end -= i;
        else
            c.begin += i;
        if (c.end - c.begin >= c.levels)
            consider(s, &c);
    }
}

static void search_both(search *s, int64_t zero)
{
    enum { ROUNDS = 2 };
    for (int round = 0; round < ROUNDS; round++) {
        const double before = s->cost;
        search_end(s, zero, true);
        search_end(s, zero, false);
        if (s->cost >= before)
            break;
    }
}

/* Where the levels are as fine as the bins, as behind a far outlier, the histogram has no more
 * information: from there on the squared error of the elements that are not clipped decides. */
static void finish(qn_range *out, const search *s, qn_density *signed_curve)
{
    const double width = s->density->width;
    const double min = s->density->origin + (double)s->best.begin * width;
    const double max = s->density->origin + (double)s->best.end * width;
    out->max = fminf(out->max, (float)max);
    out->min = s->options->symmetric ? -out->max : fmaxf(out->min, (float)min);
    if (4 * (s->best.end - s->best.begin) > 5 * s->best.levels)
        return;
    qn_density_crop(signed_curve, out);
    qn_density_best_range(out, signed_curve, s->options);
}

static qn_status search_v2(qn_range *out, qn_context *ctx, const qn_density *axis,
                           qn_density *signed_curve, const qn_range_options *options)
{
    const int64_t levels = (int64_t)1 << (options->bits - (options->symmetric ? 1 : 0));
    entropy e;
    if (axis->bins <= levels || few_values(axis, levels))
        return QN_OK;
    const qn_status status = entropy_make(&e, ctx, axis, 0.5);
    if (status == QN_OK) {
        search s = {axis, &e, options, {0, axis->bins, levels}, INFINITY};
        s.cost = divergence(&e, &s.best);
        search_both(&s, (int64_t)rint(-axis->origin / axis->width));
        finish(out, &s, signed_curve);
    }
    entropy_free(&e, ctx);
    return status;
}

qn_status qn_range_kl_v2(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                         const qn_range_options *options)
{
    qn_density signed_curve, folded = {.bins = 0};
    qn_status status = qn_density_make(&signed_curve, ctx, entry, false);
    if (status == QN_OK && options->symmetric)
        status = qn_density_make(&folded, ctx, entry, true);
    if (status == QN_OK)
        status = search_v2(out, ctx, options->symmetric ? &folded : &signed_curve, &signed_curve,
                           options);
    qn_density_free(&folded, ctx);
    qn_density_free(&signed_curve, ctx);
    return status;
}
