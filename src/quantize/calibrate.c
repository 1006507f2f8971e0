/* qn_calibrate: joins model, data and the collection of statistics; and what is told of
 * statistics. */
#include "base/clock.h"
#include "base/options.h"
#include "dist/ranks.h"
#include "quantize/calibration.h"
#include "quantize/nan_check.h"

typedef struct job {
    qn_calibration calibration;
    qn_convergence convergence;
    double run_ms;
} job;

/* ---- Telling --------------------------------------------------------------------------------- */

static void report_course(qn_item *root, const job *j)
{
    const qn_convergence *c = &j->convergence;
    const qn_sample_source *source = &j->calibration.samples.source;
    qn_calibration_report_data(root, &j->calibration);
    qn_item_int(root, "samples", c->samples);
    qn_item_int(root, "tensors", c->values);
    qn_item_real(root, "plan_ms", j->calibration.plan_ms, 3);
    qn_item_real(root, "run_ms", j->run_ms, 3);
    if (c->converged)
        qn_item_int(root, "enough_after", c->converged);
    else
        qn_item_text(root, "enough_after", "not yet: more samples change the ranges");
    qn_item *stages = qn_item_table(root, "convergence");
    for (size_t i = 0; i < c->n_points; i++) {
        qn_item *row = qn_item_row(stages);
        qn_item_int(row, "samples", c->points[i].samples);
        qn_item_real(row, "median_change_percent", 100 * c->points[i].median, 2);
        qn_item_real(row, "worst_change_percent", 100 * c->points[i].worst, 2);
    }
    if (c->n_outliers == 0)
        return;
    qn_item *outliers = qn_item_table(root, "outliers");
    for (size_t i = 0; i < c->n_outliers; i++) {
        char name[256];
        qn_item *row = qn_item_row(outliers);
        source->name(source->user, c->outliers[i].sample, name, sizeof name);
        qn_item_text(row, "sample", name);
        qn_item_int(row, "tensors_stretched", c->outliers[i].values);
    }
}

static qn_status make_report(qn_report **out, const job *j)
{
    qn_report *report;
    QN_TRY(qn_report_create(&report, j->calibration.ctx));
    report_course(&report->root, j);
    const qn_status status = qn_report_finish(report);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

static qn_status run_job(qn_stats **out, job *j)
{
    QN_TRY(qn_calibration_feed(&j->calibration));
    const double start = qn_clock_ms();
    const qn_collect_options shared = {.ranks = qn_ranks_of(j->calibration.ctx)};
    QN_TRY(qn_calibration_collect(out, &j->convergence, &j->calibration, &shared));
    j->run_ms = qn_clock_ms() - start;
    return QN_OK;
}

qn_status qn_calibrate(qn_stats **out, qn_report **report, qn_context *ctx, qn_model *model,
                       const qn_calibrate_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_calibrate_options, taken, ctx, options);
    job j = {.convergence = {0}};
    if (report)
        *report = NULL;
    qn_status status = qn_calibration_open(&j.calibration, ctx, model, &taken);
    if (status == QN_OK)
        status = qn_nan_check(ctx, j.calibration.real->graph);
    if (status == QN_OK)
        status = run_job(out, &j);
    if (status == QN_OK && report)
        status = make_report(report, &j);
    status = qn_ranks_fail(qn_ranks_of(ctx), status);
    if (status != QN_OK) {
        qn_stats_free(*out);
        *out = NULL;
    } else {
        qn_ranks_finish_job(qn_ranks_of(ctx));
    }
    qn_calibration_close(&j.calibration);
    return status;
}

/* ---- Ranges of every tensor ------------------------------------------------------------------ */

static qn_status report_entry(qn_item *table, qn_context *ctx, const qn_stats_entry *entry)
{
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "tensor", entry->name);
    qn_item_real(row, "mean", qn_entry_mean(entry), 4);
    qn_item_real(row, "zeros_percent", 100 * (double)entry->zeros / (double)entry->count, 1);
    qn_item *ranges = qn_item_group(row, "ranges");
    for (size_t m = 0; m < qn_methods_count; m++) {
        qn_range range;
        QN_TRY(qn_stats_range(&range, ctx, entry, qn_methods[m], NULL));
        qn_item_range(ranges, qn_methods[m]->name, range.min, range.max);
    }
    return QN_OK;
}

static void report_prints(qn_item *root, const qn_stats *stats)
{
    char print[QN_FINGERPRINT_TEXT];
    qn_item_text(root, "model", qn_fingerprint_format(print, stats->model));
    qn_item_text(root, "data", qn_fingerprint_format(print, stats->data));
    qn_item_int(root, "samples", (int64_t)stats->samples);
}

static qn_status report_count(qn_report *report, const qn_stats *stats)
{
    report_prints(&report->root, stats);
    qn_item_int(&report->root, "tensors", (int64_t)stats->n_entries);
    return qn_report_finish(report);
}

static qn_status report_entries(qn_report *report, const qn_stats *stats)
{
    report_prints(&report->root, stats);
    qn_item *table = qn_item_table(&report->root, "tensors");
    for (size_t i = 0; i < stats->n_entries; i++)
        QN_TRY(report_entry(table, report->ctx, stats->entries[i]));
    return qn_report_finish(report);
}

typedef qn_status fill_fn(qn_report *report, const qn_stats *stats);

static qn_status make_stats_report(qn_report **out, qn_context *ctx, const qn_stats *stats,
                                   fill_fn *fill)
{
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, ctx));
    const qn_status status = fill(report, stats);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

qn_status qn_stats_brief(qn_report **out, qn_context *ctx, const qn_stats *stats)
{
    return make_stats_report(out, ctx, stats, report_count);
}

qn_status qn_stats_report(qn_report **out, qn_context *ctx, const qn_stats *stats)
{
    return make_stats_report(out, ctx, stats, report_entries);
}
