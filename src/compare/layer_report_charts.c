/* The pictures of a comparison. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/layer_report.h"
#include "report/chart.h"

/* More bars than these are no picture any more: then the worst layers are shown, in their order. */
enum { MOST_BARS = 100 };

/* What the MOST_BARS-th worst layer is worth: those below it are not drawn. */
static double least_drawn(const qn_layer_report *c)
{
    return c->n_worst > MOST_BARS ? qn_compare_row_worth(c, c->worst[MOST_BARS - 1]) : -1;
}

static void list_bars(qn_bars *out, qn_bar *at, const qn_layer_report *c)
{
    const double least = least_drawn(c);
    out->at = at;
    for (size_t i = 0; i < c->n_order && out->count < MOST_BARS; i++) {
        const qn_compare_row *row = c->order[i];
        if (row->through || qn_compare_row_worth(c, row) < least)
            continue;
        at[out->count++] =
            (qn_bar){.name = row->name,
                     .values = {row->single.count ? qn_errors_rmse(&row->single) : NAN,
                                qn_errors_rmse(&row->all)},
                     .marked = row->advice != NULL};
        if (row->single.count)
            out->series[0] = "single: exact inputs";
        if (row->advice)
            out->marked = "red: stands out";
    }
}

static qn_status draw_errors(qn_layer_report *c, const char *folder)
{
    char title[256];
    qn_bar *at = qn_arena_array(&c->arena, MOST_BARS, sizeof *at);
    const char *path = qn_arena_format(&c->arena, "%s/errors", folder);
    if (!at || !path)
        return qn_fail_nomem(c->ctx);
    qn_bars bars = {.title = title,
                    .axis = "rmse: sqrt(sum (r - l)^2 / sum l^2)",
                    .series = {NULL, "accumulated"}};
    list_bars(&bars, at, c);
    if (bars.count < c->n_worst)
        snprintf(title, sizeof title, "Error of layers: the worst %zu of %zu", bars.count,
                 c->n_worst);
    else
        snprintf(title, sizeof title, "Error of layers");
    return qn_chart_bars(c->ctx, &bars, path);
}

static qn_status draw_row(qn_layer_report *c, const char *folder, const qn_compare_row *row)
{
    char title[256];
    snprintf(title, sizeof title, "Layer %lld: %s %s", (long long)row->index, row->op, row->name);
    char *path = qn_arena_format(&c->arena, "%s/hist_%04lld_%.180s", folder, (long long)row->index,
                                 row->name);
    QN_TRY_ALLOC(c->ctx, path);
    for (char *p = path + strlen(folder) + 1; *p; p++) {
        if (*p == '/' || *p == '\\')
            *p = '_';
    }
    const bool self = row->single.count > 0;
    const qn_bin_range range = qn_compare_row_bins(row);
    const qn_overlay overlay = {.title = title,
                                .axis = "value; numbers of each bin, logarithmic",
                                .series = {self ? "float" : "left", self ? "quantized" : "right"},
                                .low = range.low,
                                .high = range.low + range.width * range.count,
                                .bins = {row->bins[0], row->bins[1]},
                                .count = range.count};
    return qn_chart_overlay(c->ctx, &overlay, path);
}

qn_status qn_layer_report_draw(qn_layer_report *c, const char *folder)
{
    QN_TRY(draw_errors(c, folder));
    for (size_t i = 0; i < c->n_order; i++) {
        if (c->order[i]->drawn)
            QN_TRY(draw_row(c, folder, c->order[i]));
    }
    return QN_OK;
}
