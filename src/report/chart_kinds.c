/* The kinds of charts: bars beside names, and two distributions over one range. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart.h"

static const qn_rgb ink = {40, 40, 40}, pale = {225, 225, 225}, soft = {120, 120, 120},
                    alarm = {200, 20, 20};
/* Orange and blue: told apart by those who do not see red and green, too. */
static const qn_rgb colours[QN_CHART_SERIES] = {{230, 126, 20}, {60, 120, 190}};
static const qn_rgb filled = {165, 200, 235};

enum { MARGIN = 14, LINE = 12, TITLE = 34 };

/* ---- Axes ------------------------------------------------------------------------------------ */

/* 1, 2 or 5 times a power of ten, so that the range has about `wanted` steps. */
static double nice_step(double range, int wanted)
{
    if (!(range > 0) || !isfinite(range))
        return 1;
    const double power = pow(10, floor(log10(range / wanted)));
    const double rest = range / wanted / power;
    return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

typedef struct axis {
    /* Numbers */
    double low, high;
    /* Places */
    double from, extent;
} axis;

static double place(const axis *a, double x)
{
    return a->from + (a->high > a->low ? (x - a->low) / (a->high - a->low) : 0) * a->extent;
}

/* Lines from y to y + height with their numbers below. */
static void draw_x_axis(qn_chart *chart, const axis *a, double y, double height)
{
    const double step = nice_step(a->high - a->low, 8);
    for (double k = ceil(a->low / step - 1e-9); k * step <= a->high + step * 1e-6; k++) {
        const double value = fabs(k * step) < step * 1e-6 ? 0 : k * step;
        const double x = place(a, value);
        qn_chart_box(
            chart, &(qn_chart_item){.x = x, .y = y, .width = 1, .height = height, .colour = pale});
        qn_chart_text(chart, x, y + height + 4, QN_ANCHOR_MIDDLE, soft, "%g", value);
    }
}

static void draw_frame(qn_chart *chart, double x, double y, double width, double height)
{
    qn_chart_box(chart,
                 &(qn_chart_item){.x = x, .y = y, .width = 1, .height = height, .colour = ink});
    qn_chart_box(chart, &(qn_chart_item){
                            .x = x, .y = y + height, .width = width, .height = 1, .colour = ink});
}

static void draw_legend(qn_chart *chart, const char *const *series, const qn_rgb *shown, double x)
{
    for (int k = 0; k < QN_CHART_SERIES; k++) {
        if (!series[k])
            continue;
        qn_chart_box(
            chart,
            &(qn_chart_item){
                .x = x, .y = MARGIN + LINE + 2, .width = 10, .height = 8, .colour = shown[k]});
        qn_chart_text(chart, x + 14, MARGIN + LINE + 2, QN_ANCHOR_LEFT, ink, "%s", series[k]);
        x += 14 + qn_draw_letters(series[k]) * QN_LETTER_WIDTH + 18;
    }
}

/* ---- Bars ------------------------------------------------------------------------------------ */

enum { NAME_MOST = 44, PLOT = 480, BAR = 5, ROW = 14 };

/* So many letters of the beginning, and of the end what there is room for behind them. */
static void cut_name(char out[NAME_MOST + 1], const char *name, int begin)
{
    const size_t length = strlen(name);
    if (length <= NAME_MOST)
        memcpy(out, name, length + 1);
    else
        snprintf(out, NAME_MOST + 1, "%.*s..%s", begin, name,
                 name + length - (size_t)(NAME_MOST - 2 - begin));
}

static bool is_unique(const qn_bars *bars, size_t i, int begin)
{
    char own[NAME_MOST + 1], other[NAME_MOST + 1];
    cut_name(own, bars->at[i].name, begin);
    for (size_t k = 0; k < bars->count; k++) {
        cut_name(other, bars->at[k].name, begin);
        if (k != i && strcmp(own, other) == 0)
            return false;
    }
    return true;
}

/* The end tells layers apart better than the beginning; where two have the same, more of the
 * beginning is shown, and where that does not help either, the place of the bar. */
static const char *short_name(char out[NAME_MOST + 1], const qn_bars *bars, size_t i)
{
    enum { STEP = 6 };
    const char *name = bars->at[i].name;
    for (int begin = 0; begin <= NAME_MOST - 2; begin += STEP) {
        cut_name(out, name, begin);
        if (is_unique(bars, i, begin))
            return out;
    }
    char place[8];
    const int length = snprintf(place, sizeof place, "%zu", i % 1000);
    cut_name(out, name, length);
    if (strlen(name) > NAME_MOST)
        memcpy(out, place, (size_t)length);
    return out;
}

static double largest_of(const qn_bars *bars)
{
    double most = 0;
    for (size_t i = 0; i < bars->count; i++) {
        for (int k = 0; k < QN_CHART_SERIES; k++) {
            if (isfinite(bars->at[i].values[k]))
                most = fmax(most, bars->at[i].values[k]);
        }
    }
    return most > 0 ? most : 1;
}

static int name_width(const qn_bars *bars)
{
    char room[NAME_MOST + 1];
    int most = 4;
    for (size_t i = 0; i < bars->count; i++)
        most = QN_MAX(most, qn_draw_letters(short_name(room, bars, i)));
    return most * QN_LETTER_WIDTH;
}

static void draw_bar(qn_chart *chart, const qn_bars *bars, size_t i, const axis *a)
{
    char room[NAME_MOST + 1];
    const qn_bar *bar = &bars->at[i];
    const double y = TITLE + MARGIN + (double)i * ROW;
    qn_chart_text(chart, a->from - 6, y + 3, QN_ANCHOR_RIGHT, bar->marked ? alarm : ink, "%s",
                  short_name(room, bars, i));
    for (int k = 0; k < QN_CHART_SERIES; k++) {
        const double value = bar->values[k];
        if (!bars->series[k] || isnan(value))
            continue;
        qn_chart_box(chart, &(qn_chart_item){.x = a->from + 1,
                                             .y = y + 2 + k * BAR,
                                             .width = place(a, fmin(value, a->high)) - a->from,
                                             .height = BAR,
                                             .colour = colours[k]});
    }
}

qn_status qn_chart_bars(qn_context *ctx, const qn_bars *bars, const char *path)
{
    qn_chart chart;
    const double height = (double)bars->count * ROW + 4;
    const axis a = {0, largest_of(bars), MARGIN + name_width(bars) + 6, PLOT};
    qn_chart_init(&chart, ctx, (int32_t)(a.from + PLOT) + 2 * MARGIN,
                  (int32_t)height + TITLE + 3 * MARGIN + 2 * LINE);
    qn_chart_text(&chart, MARGIN, MARGIN - 2, QN_ANCHOR_LEFT, ink, "%s", bars->title);
    draw_legend(&chart, bars->series, colours, a.from);
    if (bars->marked)
        qn_chart_text(&chart, a.from - 6, MARGIN + LINE + 2, QN_ANCHOR_RIGHT, alarm, "%s",
                      bars->marked);
    draw_x_axis(&chart, &a, TITLE + MARGIN, height);
    for (size_t i = 0; i < bars->count; i++)
        draw_bar(&chart, bars, i, &a);
    draw_frame(&chart, a.from, TITLE + MARGIN, PLOT, height);
    qn_chart_text(&chart, a.from + PLOT / 2.0, TITLE + MARGIN + height + 18, QN_ANCHOR_MIDDLE, ink,
                  "%s", bars->axis);
    const qn_status status = qn_chart_save(&chart, path);
    qn_chart_free(&chart);
    return status;
}

/* ---- Distributions --------------------------------------------------------------------------- */

enum { OVER_WIDTH = 576, OVER_HEIGHT = 240, OVER_LEFT = 60 };

static int64_t most_often(const qn_overlay *o)
{
    int64_t most = 1;
    for (int k = 0; k < QN_CHART_SERIES; k++) {
        for (int i = 0; i < o->count; i++)
            most = QN_MAX(most, o->bins[k][i]);
    }
    return most;
}

/* 0 at the bottom, then a step of its own for one, ten, ... */
static double height_of(int64_t count, double decades)
{
    return count > 0 ? (log10((double)count) + 0.3) / decades * OVER_HEIGHT : 0;
}

static void draw_y_axis(qn_chart *chart, double decades, int64_t most)
{
    for (int64_t n = 1; n <= most; n *= 10) {
        const double y = TITLE + MARGIN + OVER_HEIGHT - height_of(n, decades);
        qn_chart_box(chart,
                     &(qn_chart_item){
                         .x = OVER_LEFT, .y = y, .width = OVER_WIDTH, .height = 1, .colour = pale});
        qn_chart_text(chart, OVER_LEFT - 4, y - 4, QN_ANCHOR_RIGHT, soft, "%lld", (long long)n);
        if (n > most / 10)
            break;
    }
}

/* Filled for the first, a line of steps for the second, so that both are seen. */
static void draw_bins(qn_chart *chart, const qn_overlay *o, double decades)
{
    const double bottom = TITLE + MARGIN + OVER_HEIGHT, width = (double)OVER_WIDTH / o->count;
    for (int i = 0; i < o->count; i++) {
        const double height = height_of(o->bins[0][i], decades);
        if (height > 0)
            qn_chart_box(chart, &(qn_chart_item){.x = OVER_LEFT + i * width,
                                                 .y = bottom - height,
                                                 .width = width,
                                                 .height = height,
                                                 .colour = filled});
    }
    double before = 0;
    for (int i = 0; i <= o->count; i++) {
        const double height = i < o->count ? height_of(o->bins[1][i], decades) : 0;
        const double x = OVER_LEFT + i * width;
        if (height != before)
            qn_chart_box(chart, &(qn_chart_item){.x = x,
                                                 .y = bottom - fmax(height, before),
                                                 .width = 1.5,
                                                 .height = fabs(height - before),
                                                 .colour = colours[0]});
        if (height > 0)
            qn_chart_box(chart, &(qn_chart_item){.x = x,
                                                 .y = bottom - height,
                                                 .width = width + 1.5,
                                                 .height = 1.5,
                                                 .colour = colours[0]});
        before = height;
    }
}

qn_status qn_chart_overlay(qn_context *ctx, const qn_overlay *o, const char *path)
{
    qn_chart chart;
    const qn_rgb shown[QN_CHART_SERIES] = {filled, colours[0]};
    const int64_t most = most_often(o);
    const double decades = log10((double)most) + 0.5;
    const bool flat = !(o->high > o->low);
    const axis a = {flat ? o->low - 1 : o->low, flat ? o->high + 1 : o->high, OVER_LEFT,
                    OVER_WIDTH};
    qn_chart_init(&chart, ctx, OVER_LEFT + OVER_WIDTH + 2 * MARGIN,
                  TITLE + OVER_HEIGHT + 3 * MARGIN + 2 * LINE);
    qn_chart_text(&chart, MARGIN, MARGIN - 2, QN_ANCHOR_LEFT, ink, "%s", o->title);
    draw_legend(&chart, o->series, shown, OVER_LEFT);
    draw_y_axis(&chart, decades, most);
    draw_x_axis(&chart, &a, TITLE + MARGIN, OVER_HEIGHT);
    draw_bins(&chart, o, decades);
    draw_frame(&chart, OVER_LEFT, TITLE + MARGIN, OVER_WIDTH, OVER_HEIGHT);
    qn_chart_text(&chart, OVER_LEFT + OVER_WIDTH / 2.0, TITLE + MARGIN + OVER_HEIGHT + 18,
                  QN_ANCHOR_MIDDLE, ink, "%s", o->axis);
    const qn_status status = qn_chart_save(&chart, path);
    qn_chart_free(&chart);
    return status;
}
