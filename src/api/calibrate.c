/* qn_calibrate: joins model, data and the collection of statistics; and what is told of statistics. */
#include "api/calibrate.h"

#include <stdio.h>

#include "api/prepare.h"
#include "base/clock.h"
#include "ops/fingerprint.h"
#include "report/report.h"

/* ---- What is looked at ------------------------------------------------------------------------------------ */

static bool is_one_of(const qn_op *op, const qn_op *const *list)
{
    while (*list && *list != op)
        list++;
    return *list != NULL;
}

/* A quantized network does these by the limits of the integers before them. */
static const qn_op *const limits[] = {&qn_op_Relu, &qn_op_Clip, NULL};
static const qn_op *const channels_first[] = {&qn_op_Conv,
                                              &qn_op_ConvTranspose,
                                              &qn_op_MaxPool,
                                              &qn_op_AveragePool,
                                              &qn_op_GlobalAveragePool,
                                              &qn_op_GlobalMaxPool,
                                              &qn_op_BatchNormalization,
                                              &qn_op_InstanceNormalization,
                                              NULL};

static bool is_cut_off(const qn_value *value)
{
    const qn_node *user = qn_value_only_user(value), *node = value->producer;
    return user && node && is_one_of(user->op, limits) &&
           (node->op->quant == QN_QUANT_MAC || node->op->quant == QN_QUANT_ELEMENT);
}

bool qn_observe_default(const void *user, const qn_value *value)
{
    (void)user;
    if (value->data || value->is_capture || value->type.kind != QN_TYPE_TENSOR ||
        !qn_dtype_is_float(value->type.dtype))
        return false;
    if (value->is_input)
        return value->n_users > 0;
    return value->producer && value->producer->op->quant != QN_QUANT_SHAPE && !is_cut_off(value);
}

int32_t qn_axis_default(const void *user, const qn_value *value)
{
    const int32_t rank = value->type.rank;
    (void)user;
    if (rank != 3)
        return rank < 2 ? -1 : 1;
    if (value->producer && is_one_of(value->producer->op, channels_first))
        return 1;
    for (size_t i = 0; i < value->n_users; i++) {
        if (is_one_of(value->users[i]->op, channels_first))
            return 1;
    }
    return 2;
}

/* ---- The job ----------------------------------------------------------------------------------------------- */

typedef struct job {
    qn_feed feed;
    qn_feed_source samples;
    qn_plan *plan;
    qn_course course;
    double plan_ms, run_ms;
} job;

static qn_status make_plan(job *j, const qn_calibrate_options *o)
{
    const qn_watch watch = {
        .purpose = QN_PURPOSE_QUANTIZE, .direct = true, .observe = qn_observe_default};
    qn_plan_options plan = {.threads = 1, .graph = o->graph};
    qn_input_shape *shapes;
    const double start = qn_clock_ms();
    QN_TRY(qn_feed_shapes(&shapes, &plan.graph.n_shapes, &j->feed));
    plan.graph.shapes = shapes;
    QN_TRY(qn_plan_create_watched(&j->plan, j->feed.ctx, j->feed.model, &plan, &watch));
    j->plan_ms = qn_clock_ms() - start;
    return QN_OK;
}

static qn_status run_job(qn_stats **out, job *j, const qn_calibrate_options *o)
{
    qn_context *ctx = j->feed.ctx;
    qn_collect_options collect = {.threads = o->threads > 0 ? o->threads : ctx->threads,
                                  .checkpoint = o->checkpoint,
                                  .axis = qn_axis_default};
    QN_TRY(make_plan(j, o));
    QN_TRY(qn_feed_source_open(&j->samples, &j->feed, j->plan, collect.threads));
    if (j->feed.samples < 0)
        qn_log(
            ctx, QN_LOG_WARN,
            "no data were given: %lld samples of random numbers stand in for them, and ranges and "
            "accuracy mean nothing",
            (long long)j->samples.source.count);
    const double start = qn_clock_ms();
    collect.model = qn_model_fingerprint(j->feed.model);
    QN_TRY(qn_collect(out, &j->course, j->plan, ctx, &j->samples.source, &collect));
    j->run_ms = qn_clock_ms() - start;
    return QN_OK;
}

/* ---- Telling ------------------------------------------------------------------------------------------------- */

static void report_course(qn_item *root, const job *j)
{
    const qn_course *c = &j->course;
    qn_item_int(root, "samples", c->samples);
    qn_item_int(root, "tensors", c->values);
    qn_item_real(root, "plan_ms", j->plan_ms, 3);
    qn_item_real(root, "run_ms", j->run_ms, 3);
    if (c->enough)
        qn_item_int(root, "enough_after", c->enough);
    else
        qn_item_text(root, "enough_after", "not yet: more samples change the ranges");
    qn_item *stages = qn_item_table(root, "convergence");
    for (size_t i = 0; i < c->n_stages; i++) {
        qn_item *row = qn_item_row(stages);
        qn_item_int(row, "samples", c->stages[i].samples);
        qn_item_real(row, "median_change_percent", 100 * c->stages[i].median, 2);
        qn_item_real(row, "worst_change_percent", 100 * c->stages[i].worst, 2);
    }
    if (c->n_outliers == 0)
        return;
    qn_item *outliers = qn_item_table(root, "outliers");
    for (size_t i = 0; i < c->n_outliers; i++) {
        char name[256];
        qn_item *row = qn_item_row(outliers);
        j->samples.source.name(j->samples.source.user, c->outliers[i].sample, name, sizeof name);
        qn_item_text(row, "sample", name);
        qn_item_int(row, "tensors_stretched", c->outliers[i].values);
    }
}

static qn_status make_report(qn_report **out, const job *j)
{
    qn_report *report;
    QN_TRY(qn_report_create(&report, j->feed.ctx));
    report_course(&report->root, j);
    const qn_status status = qn_report_finish(report);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

qn_status qn_calibrate(qn_stats **out, qn_report **report, qn_context *ctx, qn_model *model,
                       const qn_calibrate_options *options)
{
    const qn_calibrate_options defaults = QN_CALIBRATE_OPTIONS_INIT;
    const qn_calibrate_options *o = options ? options : &defaults;
    qn_data_options data = o->data;
    const qn_feed_options feed = {.inputs = o->inputs,
                                  .n_inputs = o->n_inputs,
                                  .data = &data,
                                  .seed = o->seed,
                                  .graph = &o->graph};
    data.batch = 1;
    data.loaders = -1; /* the workers read */
    job j = {.plan = NULL};
    *out = NULL;
    if (report)
        *report = NULL;
    qn_status status = qn_feed_open(&j.feed, ctx, model, &feed);
    if (status == QN_OK)
        status = run_job(out, &j, o);
    if (status == QN_OK && report)
        status = make_report(report, &j);
    if (status != QN_OK) {
        qn_stats_free(*out);
        *out = NULL;
    }
    qn_plan_free(j.plan);
    qn_feed_close(&j.feed);
    return status;
}

/* ---- Ranges of every tensor ------------------------------------------------------------------------------------ */

static qn_status report_entry(qn_item *table, qn_context *ctx, const qn_stats_entry *entry)
{
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "tensor", entry->name);
    qn_item_real(row, "mean", qn_entry_mean(entry), 4);
    qn_item_real(row, "zeros_percent", 100 * (double)entry->zeros / (double)entry->count, 1);
    for (size_t m = 0; m < qn_methods_count; m++) {
        qn_range range;
        char text[64];
        QN_TRY(qn_stats_range(&range, ctx, entry, qn_methods[m], NULL));
        snprintf(text, sizeof text, "%.5g..%.5g", range.min, range.max);
        qn_item_text(row, qn_methods[m]->name, text);
    }
    return QN_OK;
}

static qn_status report_entries(qn_report *report, const qn_stats *stats)
{
    char print[QN_FINGERPRINT_TEXT];
    qn_item *root = &report->root;
    qn_item_text(root, "model", qn_fingerprint_format(print, stats->model));
    qn_item_text(root, "data", qn_fingerprint_format(print, stats->data));
    qn_item_int(root, "samples", (int64_t)stats->samples);
    qn_item *table = qn_item_table(root, "tensors");
    for (size_t i = 0; i < stats->n_entries; i++)
        QN_TRY(report_entry(table, report->ctx, stats->entries[i]));
    return qn_report_finish(report);
}

qn_status qn_stats_report(qn_report **out, qn_context *ctx, const qn_stats *stats)
{
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, ctx));
    const qn_status status = report_entries(report, stats);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
