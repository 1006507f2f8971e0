/* The error of rounding and clipping, for any range of a value, from its histogram. */
#include "calib/density.h"

#include <math.h>

/* ---- Making ---------------------------------------------------------------------------------- */

static int64_t last_bin(const uint64_t *side)
{
    int64_t last = side ? QN_HISTOGRAM_BINS : 0;
    while (last > 0 && side[last - 1] == 0)
        last--;
    return last;
}

static double count_at(const uint64_t *side, int64_t bin)
{
    return side && bin < QN_HISTOGRAM_BINS ? (double)side[bin] : 0;
}

static void fill_mass(qn_density *c, const qn_histogram *h, int64_t negative, bool folded)
{
    for (int64_t i = 0; i < c->bins; i++) {
        if (folded)
            c->mass[i] = count_at(h->side[0], i) + count_at(h->side[1], i);
        else
            c->mass[i] = i < negative ? count_at(h->side[1], negative - 1 - i)
                                      : count_at(h->side[0], i - negative);
    }
}

/* Integral of x^k over [a, b), times the density. */
static double moment_of(int k, double density, double a, double b)
{
    switch (k) {
    case 0: return density * (b - a);
    case 1: return density * (b * b - a * a) / 2;
    default: return density * (b * b * b - a * a * a) / 3;
    }
}

static void fill_moments(qn_density *c)
{
    for (int k = 0; k < 3; k++) {
        c->moment[k][0] = 0;
        for (int64_t i = 0; i < c->bins; i++) {
            const double left = c->origin + (double)i * c->width;
            c->moment[k][i + 1] =
                c->moment[k][i] + moment_of(k, c->mass[i] / c->width, left, left + c->width);
        }
    }
}

qn_status qn_density_make(qn_density *c, qn_context *ctx, const qn_stats_entry *entry, bool folded)
{
    const qn_histogram *h = &entry->histogram;
    const int64_t positive = last_bin(h->side[0]), negative = last_bin(h->side[1]);
    *c = (qn_density){.width = ldexp(1, h->exponent)};
    c->bins = folded ? QN_MAX(positive, negative) : positive + negative;
    c->origin = folded ? 0 : -(double)negative * c->width;
    c->mass = qn_alloc_zero(ctx, (size_t)c->bins + 1, sizeof *c->mass);
    QN_TRY_ALLOC(ctx, c->mass);
    for (int k = 0; k < 3; k++) {
        c->moment[k] = qn_alloc_zero(ctx, (size_t)c->bins + 1, sizeof *c->moment[k]);
        QN_TRY_ALLOC(ctx, c->moment[k]);
    }
    fill_mass(c, h, negative, folded);
    fill_moments(c);
    return QN_OK;
}

void qn_density_crop(qn_density *c, const qn_range *range)
{
    for (int64_t i = 0; i < c->bins; i++) {
        const double left = c->origin + (double)i * c->width;
        if (left + c->width <= range->min || left >= range->max)
            c->mass[i] = 0;
    }
    fill_moments(c);
}

void qn_density_free(qn_density *c, qn_context *ctx)
{
    qn_free(ctx, c->mass);
    for (int k = 0; k < 3; k++)
        qn_free(ctx, c->moment[k]);
}

void qn_density_below(double moment[3], const qn_density *c, double x)
{
    const double place = (x - c->origin) / c->width;
    const int64_t bin = place <= 0 ? 0 : place >= (double)c->bins ? c->bins : (int64_t)place;
    for (int k = 0; k < 3; k++) {
        moment[k] = c->moment[k][bin];
        if (bin < c->bins && place > 0)
            moment[k] +=
                moment_of(k, c->mass[bin] / c->width, c->origin + (double)bin * c->width, x);
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

qn_integer_grid qn_integer_grid_of(double min, double max, const qn_range_options *options)
{
    const int64_t levels = (int64_t)1 << options->bits;
    if (options->symmetric) {
        const int64_t half = levels / 2 - 1;
        return (qn_integer_grid){QN_MAX(max, -min) / (double)half, half, 2 * half + 1};
    }
    const double step = (max - min) / (double)(levels - 1);
    return (qn_integer_grid){step, step > 0 ? (int64_t)rint(-min / step) : 0, levels};
}

/* Sum of (x - level)^2 over what lies between the two places. */
static double cell_error(const double from[3], const double to[3], double level)
{
    return (to[2] - from[2]) - 2 * level * (to[1] - from[1]) + level * level * (to[0] - from[0]);
}

static void all_moments(double out[3], const qn_density *c)
{
    for (int k = 0; k < 3; k++)
        out[k] = c->moment[k][c->bins];
}

double qn_density_clip_error(const qn_density *c, double min, double max)
{
    const double none[3] = {0, 0, 0};
    double below[3], inside[3], all[3];
    qn_density_below(below, c, min);
    qn_density_below(inside, c, max);
    all_moments(all, c);
    return cell_error(none, below, min) + cell_error(inside, all, max);
}

/* Cells much narrower than a bin: an element is anywhere in its cell. */
static double fine_error(const qn_density *c, const qn_integer_grid *g)
{
    const double min = -(double)g->zero * g->step;
    const double max = (double)(g->levels - 1 - g->zero) * g->step;
    double below[3], inside[3];
    qn_density_below(below, c, min);
    qn_density_below(inside, c, max);
    return qn_density_clip_error(c, min, max) + (inside[0] - below[0]) * g->step * g->step / 12;
}

double qn_density_error(const qn_density *c, const qn_integer_grid *g)
{
    const double end = c->origin + (double)c->bins * c->width;
    double error = 0, from[3] = {0, 0, 0}, to[3];
    if (g->step * 4 < c->width)
        return fine_error(c, g);
    for (int64_t i = 0; i < g->levels; i++) {
        const double level = (double)(i - g->zero) * g->step;
        const double edge = level + g->step / 2;
        if (i + 1 == g->levels || edge >= end)
            all_moments(to, c);
        else
            qn_density_below(to, c, edge);
        error += cell_error(from, to, level);
        if (i + 1 == g->levels || edge >= end)
            break;
        for (int k = 0; k < 3; k++)
            from[k] = to[k];
    }
    return error;
}

/* ---- The least error ------------------------------------------------------------------------- */

typedef struct search {
    const qn_density *density;
    const qn_range_options *options;
    /* The range that is being tried. */
    double min, max;
    /* The least error so far. */
    double error;
} search;

static double error_with(const search *s, bool upper, double end)
{
    const double min = s->options->symmetric ? -end : upper ? s->min : end;
    const double max = upper || s->options->symmetric ? end : s->max;
    const qn_integer_grid grid = qn_integer_grid_of(min, max, s->options);
    return qn_density_error(s->density, &grid);
}

static void try_end(search *s, double *best, bool upper, double end)
{
    const double error = error_with(s, upper, end);
    if (error < s->error) {
        s->error = error;
        *best = end;
    }
}

/* Ever finer around the best: first the whole way from 0, then a 16th of it, and so on. */
static void search_end(search *s, bool upper)
{
    enum { STEPS = 64, FINER = 16, TURNS = 3 };
    const double whole = upper ? s->max : s->min;
    double best = whole, reach = whole;
    for (int turn = 0; turn < TURNS; turn++, reach /= FINER) {
        const double centre = best, start = turn ? centre - reach : 0;
        const double step = (turn ? 2 : 1) * reach / STEPS;
        for (int i = 1; i <= STEPS; i++) {
            const double end = start + step * i;
            if (end * whole > 0 && fabs(end) < fabs(whole))
                try_end(s, &best, upper, end);
        }
    }
    /* A far outlier leaves nothing at a 64th of the way: halve as long as it pays. */
    for (double end = best / 2; fabs(end) > fabs(whole) * 0x1p-24; end /= 2) {
        const double before = s->error;
        try_end(s, &best, upper, end);
        if (s->error >= before)
            break;
    }
    if (upper)
        s->max = best;
    else
        s->min = best;
}

void qn_density_best_range(qn_range *range, const qn_density *c, const qn_range_options *options)
{
    enum { ROUNDS = 3 };
    search s = {c, options, range->min, range->max, 0};
    const qn_integer_grid grid = qn_integer_grid_of(s.min, s.max, options);
    s.error = qn_density_error(c, &grid);
    for (int round = 0; round < ROUNDS; round++) {
        const double before = s.error;
        if (s.max > 0)
            search_end(&s, true);
        if (s.min < 0 && !options->symmetric)
            search_end(&s, false);
        if (options->symmetric || s.error >= before)
            break;
    }
    *range = (qn_range){(float)(options->symmetric ? -s.max : s.min), (float)s.max};
}
