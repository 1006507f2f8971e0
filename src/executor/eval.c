/* qn_eval_run: what a model is good for on labelled data, and how far it is from its float
 * original. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/pin.h"
#include "executor/eval.h"
#include "executor/feed.h"
#include "report/report.h"
#include "run/plan.h"
#include "task/box_layouts.h"
#include "task/task.h"

/* A model at work. */
typedef struct player {
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    /* The outputs that the task looks at */
    size_t first_output, n_outputs;
    /* [n_outputs] of a sample */
    qn_task_output *outputs;
    double run_ms;
} player;

typedef struct job {
    qn_context *ctx;
    const qn_eval_options *options;
    qn_feed feed;
    /* Other.model NULL: there is none */
    player own, other;
    qn_task_options task_options;
    qn_data_options data;
    qn_task *task;
    int64_t done;
    double wall_ms;
    /* Feed */
    bool opened;
} job;

/* ---- Preparing ------------------------------------------------------------------------------- */

/* The one that is asked for, or all. */
static qn_status find_outputs(player *p, const job *j)
{
    const char *wanted = j->options->output;
    const size_t count = qn_model_output_count(p->model);
    p->n_outputs = wanted ? 1 : count;
    for (size_t i = 0; wanted && i < count; i++) {
        p->first_output = i;
        if (strcmp(qn_model_output_name(p->model, i), wanted) == 0)
            return QN_OK;
    }
    return wanted ? qn_fail(j->ctx, QN_E_OPTION, "the model has no output '%s'", wanted) : QN_OK;
}

static qn_status same_inputs(const job *j)
{
    const qn_model *a = j->own.model, *b = j->other.model;
    bool same = qn_model_input_count(a) == qn_model_input_count(b);
    for (size_t i = 0; same && i < qn_model_input_count(a); i++)
        same = strcmp(qn_model_input_name(a, i), qn_model_input_name(b, i)) == 0;
    return same ? QN_OK
                : qn_fail(j->ctx, QN_E_INVALID, "the float model has other inputs than the model");
}

static qn_status make_player(player *p, job *j)
{
    qn_plan_options plan = j->options->plan;
    qn_input_shape *shapes;
    QN_TRY(find_outputs(p, j));
    p->outputs = qn_alloc_zero(j->ctx, p->n_outputs + 1, sizeof *p->outputs);
    QN_TRY_ALLOC(j->ctx, p->outputs);
    QN_TRY(qn_feed_shapes(&shapes, &plan.graph.n_shapes, &j->feed));
    plan.graph.shapes = shapes;
    QN_TRY(qn_plan_create(&p->plan, j->ctx, p->model, &plan));
    return qn_session_create(&p->session, j->ctx, p->plan);
}

static qn_status check_fed(const job *j)
{
    for (size_t i = 0; i < j->feed.n_in; i++) {
        if (!j->feed.in[i].sampled && !j->feed.files[i])
            return qn_fail(j->ctx, QN_E_INVALID, "input '%s' has no data", j->feed.infos[i].name);
    }
    return qn_task_check(j->task, j->feed.dataset, j->other.model != NULL);
}

static qn_status prepare(job *j)
{
    QN_TRY(check_fed(j));
    QN_TRY(make_player(&j->own, j));
    if (j->other.model) {
        QN_TRY(same_inputs(j));
        QN_TRY(make_player(&j->other, j));
    }
    return qn_feed_fill(&j->feed, j->own.plan);
}

/* ---- Running --------------------------------------------------------------------------------- */

static qn_status run_player(player *p, job *j)
{
    const double start = qn_clock_ms();
    QN_TRY(qn_session_run(p->session, j->feed.tensors, j->feed.n_in));
    p->run_ms += qn_clock_ms() - start;
    return QN_OK;
}

/* The part of sample `row` in the outputs of a run of `count` samples. */
static qn_status cut_outputs(player *p, job *j, int64_t row, int64_t count)
{
    for (size_t i = 0; i < p->n_outputs; i++) {
        const qn_tensor *output = qn_session_output(p->session, p->first_output + i);
        const int64_t rows = j->feed.stacked ? 1 : output->rank > 0 ? output->dims[0] : 0;
        const bool fits = rows == 1 || rows == count || rows == j->feed.batch;
        p->outputs[i].name = qn_model_output_name(p->model, p->first_output + i);
        QN_TRY(qn_task_cut(&p->outputs[i], j->ctx, output, row, fits ? rows : 0));
        p->outputs[i].scale = qn_model_output_scale(p->model, p->first_output + i);
    }
    return QN_OK;
}

static qn_status judge(job *j, int64_t row, int64_t count)
{
    qn_task_sample sample = {.data = j->feed.dataset,
                             .index = j->feed.first + j->done + row,
                             .place = j->feed.places[row]};
    qn_task_place(&sample.place, j->feed.tensors, j->feed.n_in);
    QN_TRY(cut_outputs(&j->own, j, row, count));
    sample.outputs = j->own.outputs;
    sample.n_outputs = j->own.n_outputs;
    if (j->other.model) {
        QN_TRY(cut_outputs(&j->other, j, row, count));
        sample.float_outputs = j->other.outputs;
        sample.n_float_outputs = j->other.n_outputs;
    }
    return qn_task_add(j->task, &sample);
}

static qn_status run_batch(job *j, int64_t count)
{
    QN_TRY(run_player(&j->own, j));
    if (j->other.model)
        QN_TRY(run_player(&j->other, j));
    for (int64_t row = 0; row < count; row++) {
        const qn_status status = judge(j, row, count);
        char name[256];
        if (status != QN_OK)
            return qn_fail_within(
                j->ctx, status, "sample '%s'",
                qn_dataset_name(name, sizeof name, j->feed.dataset, j->feed.first + j->done + row));
    }
    j->done += count;
    qn_progress(j->ctx, "samples", j->done, j->feed.samples);
    return QN_OK;
}

static qn_status run_all(job *j)
{
    int64_t count = 0;
    const double start = qn_clock_ms();
    do {
        QN_TRY(qn_feed_next(&count, &j->feed));
        if (count)
            QN_TRY(run_batch(j, count));
    } while (count);
    j->wall_ms = qn_clock_ms() - start;
    return qn_task_finish(j->task);
}

/* ---- The report ------------------------------------------------------------------------------ */

static void report_model(qn_item *table, const char *name, const job *j, bool of_float)
{
    qn_item *row = qn_item_row(table);
    const player *p = of_float ? &j->other : &j->own;
    qn_item_text(row, "model", name);
    qn_task_describe_model(row, j->task, of_float);
    qn_item_real(row, "ms_per_sample", p->run_ms / (double)j->done, 3);
}

static qn_status fill_report(qn_report *report, const job *j)
{
    qn_item *root = &report->root;
    qn_item_text(root, "task", qn_task_name_of(j->task));
    qn_task_describe(root, j->task);
    qn_item_int(root, "batch", j->feed.batch);
    qn_item_real(root, "samples_per_second", (double)j->done * 1e3 / j->wall_ms, 1);
    qn_item *table = qn_item_table(root, "models");
    report_model(table, "model", j, false);
    if (j->other.model)
        report_model(table, "float", j, true);
    return qn_report_finish(report);
}

/* ---- The job --------------------------------------------------------------------------------- */

static qn_status run_pinned(job *j)
{
    QN_TRY(prepare(j));
    const bool pinned = qn_threads_pin(j->own.plan->threads);
    const qn_status status = run_all(j);
    if (pinned)
        qn_threads_unpin(j->own.plan->threads);
    return status;
}

static qn_status check_options(qn_context *ctx, const qn_eval_options *o)
{
    if (!o || !o->data.n_data)
        return qn_fail(ctx, QN_E_OPTION, "no data to measure on: `data` names it");
    return QN_OK;
}

static void free_player(player *p, qn_context *ctx)
{
    qn_session_free(p->session);
    qn_plan_free(p->plan);
    qn_free(ctx, p->outputs);
}

/* Runs all samples; the job is to be closed in any case. */
static qn_status run_job(job *j)
{
    const qn_eval_options *o = j->options;
    QN_TRY(check_options(j->ctx, o));
    j->data = o->data;
    j->task_options = (qn_task_options){.class_offset = o->class_offset, .detect = &o->detect};
    if (qn_task_own_labels(o->task)) {
        j->task_options.labels = o->data.labels;
        j->task_options.label_dir = o->detect.label_dir;
        j->data.labels = NULL;
    }
    QN_TRY(qn_task_create(&j->task, j->ctx, o->task, &j->task_options));
    const qn_feed_options feed = {
        .inputs = o->inputs, .n_inputs = o->n_inputs, .data = &j->data, .graph = &o->plan.graph};
    j->opened = true;
    QN_TRY(qn_feed_open(&j->feed, j->ctx, j->own.model, &feed));
    return run_pinned(j);
}

static void close_job(job *j)
{
    free_player(&j->own, j->ctx);
    free_player(&j->other, j->ctx);
    qn_task_free(j->task);
    if (j->opened)
        qn_feed_close(&j->feed);
}

const char *qn_detect_form(size_t i)
{
    return qn_box_layout_name(i);
}

const char *qn_task_name(size_t i)
{
    return qn_task_at(i);
}

qn_status qn_eval_run(qn_report **out, qn_context *ctx, qn_model *model, qn_model *float_model,
                      const qn_eval_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_eval_options, taken, ctx, options);
    job j = {.ctx = ctx, .options = &taken, .own.model = model, .other.model = float_model};
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    qn_status status = run_job(&j);
    if (status == QN_OK)
        status = fill_report(report, &j);
    close_job(&j);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

qn_status qn_eval_score(double *points, qn_context *ctx, qn_model *model,
                        const qn_eval_options *options)
{
    job j = {.ctx = ctx, .options = options, .own.model = model};
    qn_task_metric metrics[QN_TASK_METRICS];
    const qn_status status = run_job(&j);
    *points = 0;
    if (status == QN_OK) {
        qn_task_metrics(metrics, j.task, false);
        *points = isnan(metrics->value) ? 0 : metrics->value * (100 / metrics->most);
    }
    close_job(&j);
    return status;
}
