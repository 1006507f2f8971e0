/* Charts: a list of rectangles and texts that is written as SVG or painted as PNG. */
#ifndef QN_CHART_H
#define QN_CHART_H

#include "base/text.h"
#include "image/draw.h"

typedef enum qn_anchor { QN_ANCHOR_LEFT, QN_ANCHOR_MIDDLE, QN_ANCHOR_RIGHT } qn_anchor;

typedef struct qn_chart_item {
    /* The rectangle, or where the text stands. */
    double x, y, width, height;
    qn_rgb colour;
    /* The text, in letters 6 wide and 8 high; NULL: the item is a rectangle. */
    const char *text;
    /* Which end of the text x is. */
    qn_anchor anchor;
} qn_chart_item;

/* A chart. Like a report it remembers that memory was short, and fails when it is saved. */
typedef struct qn_chart {
    qn_context *ctx;
    qn_arena arena;
    int32_t width, height;
    qn_chart_item *items;
    size_t count, capacity;
    bool failed;
} qn_chart;

void qn_chart_init(qn_chart *chart, qn_context *ctx, int32_t width, int32_t height);
void qn_chart_free(qn_chart *chart);
void qn_chart_box(qn_chart *chart, const qn_chart_item *box);
/* Adds a text, which is copied. */
void qn_chart_text(qn_chart *chart, double x, double y, qn_anchor anchor, qn_rgb colour,
                   const char *format, ...) QN_PRINTF(6, 7);
/* Writes "<path>.svg" and "<path>.png", the latter twice as large. */
QN_MUST_CHECK qn_status qn_chart_save(const qn_chart *chart, const char *path);

/* ---- The charts ------------------------------------------------------------------------------ */

enum { QN_CHART_SERIES = 2 };

/* A row of horizontal bars beside a name, one for each series. */
typedef struct qn_bar {
    const char *name;
    /* The lengths; NaN: no bar. */
    double values[QN_CHART_SERIES];
    bool marked;
} qn_bar;

typedef struct qn_bars {
    const char *title, *axis;
    /* The names of the series; NULL: there is none. */
    const char *series[QN_CHART_SERIES];
    /* The legend of marked bars. */
    const char *marked;
    const qn_bar *at;
    size_t count;
} qn_bars;
QN_MUST_CHECK qn_status qn_chart_bars(qn_context *ctx, const qn_bars *bars, const char *path);

/* Two distributions over one range, with frequencies on a logarithmic axis. */
typedef struct qn_overlay {
    const char *title, *axis;
    const char *series[QN_CHART_SERIES];
    double low, high;
    /* [count] */
    const int64_t *bins[QN_CHART_SERIES];
    int count;
} qn_overlay;
QN_MUST_CHECK qn_status qn_chart_overlay(qn_context *ctx, const qn_overlay *overlay,
                                         const char *path);

#endif
