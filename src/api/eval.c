/* qn_eval_run: what a model is good for on labelled data, and how far it is from its float original. */
#include <math.h>
#include <string.h>

#include "api/eval.h"
#include "api/feed.h"
#include "base/clock.h"
#include "base/pin.h"
#include "report/report.h"
#include "run/plan.h"
#include "task/classify.h"

/* A model at work. */
typedef struct player {
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    size_t output; /* that has the scores */
    double run_ms;
    double *scores; /* of a sample */
    int64_t room;   /* scores that there is room for */
} player;

typedef struct job {
    qn_context *ctx;
    const qn_eval_options *options;
    qn_feed feed;
    player own, other; /* other.model NULL: there is none */
    qn_classify task;
    int64_t done;
    double wall_ms;
    bool opened; /* feed */
} job;

/* ---- Preparing ---------------------------------------------------------------------------------------------- */

static qn_status find_output(player *p, const job *j)
{
    const char *wanted = j->options->output;
    const size_t count = qn_model_output_count(p->model);
    for (p->output = 0; wanted && p->output < count; p->output++) {
        if (strcmp(qn_model_output_name(p->model, p->output), wanted) == 0)
            return QN_OK;
    }
    if (wanted)
        return qn_fail(j->ctx, QN_E_INVALID, "the model has no output '%s'", wanted);
    if (count != 1)
        return qn_fail(j->ctx, QN_E_INVALID, "the model has %zu outputs: say which has the scores",
                       count);
    return QN_OK;
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
    QN_TRY(find_output(p, j));
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
    if (qn_dataset_label(j->feed.dataset, 0) < 0 && !j->other.model)
        return qn_fail(j->ctx, QN_E_INVALID,
                       "nothing to measure: give labels, or a float model to compare with");
    return QN_OK;
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

/* ---- Running --------------------------------------------------------------------------------------------------- */

static qn_status run_player(player *p, job *j)
{
    const double start = qn_clock_ms();
    QN_TRY(qn_session_run(p->session, j->feed.tensors, j->feed.n_in));
    p->run_ms += qn_clock_ms() - start;
    return QN_OK;
}

/* Row `row` of the scores of a run of `count` samples, as doubles; *classes of them. */
static qn_status take_scores(int64_t *classes, player *p, job *j, int64_t row, int64_t count)
{
    const qn_tensor *output = qn_session_output(p->session, p->output);
    const char *name = qn_model_output_name(p->model, p->output);
    const int64_t rows = j->feed.stacked ? 1 : output->rank > 0 ? output->dims[0] : 0;
    const qn_dtype_kind kind = qn_dtype_get(output->dtype)->kind;
    if (rows != 1 && rows != count && rows != j->feed.batch)
        return qn_fail(j->ctx, QN_E_INVALID,
                       "output '%s' has no first axis that counts the samples", name);
    if (kind == QN_KIND_NONE || kind == QN_KIND_STRING || kind == QN_KIND_COMPLEX)
        return qn_fail(j->ctx, QN_E_INVALID, "output '%s' holds no scores", name);
    *classes = rows ? qn_tensor_count(output) / rows : 0;
    if (row >= rows || *classes < 2)
        return qn_fail(j->ctx, QN_E_INVALID, "output '%s' has no scores of classes for each sample",
                       name);
    if (*classes > p->room) {
        qn_free(j->ctx, p->scores);
        p->scores = qn_alloc_zero(j->ctx, (size_t)*classes, sizeof *p->scores);
        p->room = p->scores ? *classes : 0;
        QN_TRY_ALLOC(j->ctx, p->scores);
    }
    qn_load_f64(p->scores, output->dtype, output->data, row * *classes, *classes);
    for (int64_t c = 0; c < *classes; c++) {
        if (!isfinite(p->scores[c]))
            return qn_fail(j->ctx, QN_E_INVALID, "output '%s' has a score that is %s", name,
                           isnan(p->scores[c]) ? "not a number" : "infinite");
    }
    return QN_OK;
}

static qn_status judge(job *j, int64_t row, int64_t count)
{
    qn_scores sample = {.label = qn_dataset_label(j->feed.dataset, j->feed.first + j->done + row)};
    int64_t classes = 0;
    QN_TRY(take_scores(&sample.classes, &j->own, j, row, count));
    sample.scores = j->own.scores;
    if (j->other.model) {
        QN_TRY(take_scores(&classes, &j->other, j, row, count));
        if (classes != sample.classes)
            return qn_fail(j->ctx, QN_E_INVALID, "the float model has %lld classes, the model %lld",
                           (long long)classes, (long long)sample.classes);
        sample.float_scores = j->other.scores;
    }
    if (sample.label >= 0) {
        sample.label += j->options->class_offset;
        if (sample.label < 0)
            return qn_fail(j->ctx, QN_E_INVALID, "the class offset makes the class negative");
    }
    return qn_classify_add(&j->task, j->ctx, &sample);
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
    return QN_OK;
}

/* ---- Telling ------------------------------------------------------------------------------------------------------ */

static void tell_model(qn_item *table, const char *name, const qn_hits *hits, const player *p,
                       const job *j)
{
    qn_item *row = qn_item_row(table);
    const double percent = j->task.labelled ? 100.0 / (double)j->task.labelled : 0;
    qn_item_text(row, "model", name);
    if (j->task.labelled) {
        qn_item_real(row, "top_1", percent * (double)hits->top1, 2);
        qn_item_real(row, "top_5", percent * (double)hits->top5, 2);
        qn_item_int(row, "top_1_hits", hits->top1);
        qn_item_int(row, "top_5_hits", hits->top5);
    }
    qn_item_real(row, "ms_per_sample", p->run_ms / (double)j->done, 3);
}

static qn_status fill_report(qn_report *report, const job *j)
{
    qn_item *root = &report->root;
    const double n = (double)j->task.samples;
    qn_item_text(root, "task", "classification");
    qn_item_int(root, "samples", j->task.samples);
    qn_item_int(root, "classes", j->task.classes);
    qn_item_int(root, "batch", j->feed.batch);
    if (j->other.model) {
        qn_item_real(root, "agreement", 100.0 * (double)j->task.agreed / n, 2);
        qn_item_int(root, "agreed", j->task.agreed);
        qn_item_real(root, "mean_kl", j->task.divergence / n, 6);
        qn_item_text(root, "kl_of",
                     j->task.probabilities ? "outputs as they are" : "softmax of the outputs");
    }
    qn_item_real(root, "samples_per_second", n * 1e3 / j->wall_ms, 1);
    qn_item *table = qn_item_table(root, "models");
    tell_model(table, "model", &j->task.hits, &j->own, j);
    if (j->other.model)
        tell_model(table, "float", &j->task.float_hits, &j->other, j);
    return qn_report_finish(report);
}

/* ---- The job -------------------------------------------------------------------------------------------------------- */

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
        return qn_fail(ctx, QN_E_INVALID, "no data to measure on: -d names it");
    if (o->task && strcmp(o->task, "classification") != 0)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "no task '%s': there is classification", o->task);
    return QN_OK;
}

static void free_player(player *p, qn_context *ctx)
{
    qn_session_free(p->session);
    qn_plan_free(p->plan);
    qn_free(ctx, p->scores);
}

/* Runs all samples; the job is to be closed in any case. */
static qn_status run_job(job *j)
{
    const qn_eval_options *o = j->options;
    QN_TRY(check_options(j->ctx, o));
    const qn_feed_options feed = {
        .inputs = o->inputs, .n_inputs = o->n_inputs, .data = &o->data, .graph = &o->plan.graph};
    j->opened = true;
    QN_TRY(qn_feed_open(&j->feed, j->ctx, j->own.model, &feed));
    return run_pinned(j);
}

static void close_job(job *j)
{
    free_player(&j->own, j->ctx);
    free_player(&j->other, j->ctx);
    qn_classify_free(&j->task, j->ctx);
    if (j->opened)
        qn_feed_close(&j->feed);
}

qn_status qn_eval_run(qn_report **out, qn_context *ctx, qn_model *model, qn_model *float_model,
                      const qn_eval_options *options)
{
    job j = {.ctx = ctx, .options = options, .own.model = model, .other.model = float_model};
    qn_report *report;
    *out = NULL;
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

qn_status qn_eval_top1(double *percent, qn_context *ctx, qn_model *model,
                       const qn_eval_options *options)
{
    job j = {.ctx = ctx, .options = options, .own.model = model};
    const qn_status status = run_job(&j);
    *percent = j.task.labelled ? 100.0 * (double)j.task.hits.top1 / (double)j.task.labelled : 0;
    close_job(&j);
    return status;
}
